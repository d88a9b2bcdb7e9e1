"""The problem of an optimisation: parameters as coordinates of the unit cube, and values there, of
which some are quantities of runs: a trajectory of the fluid model, and packets over seeds.

A constraint is a quantity by name with a bound, ``utilization >= 0.95`` or ``queue <= 90 kB``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import qmc

from fluidcc.analysis.equilibrium import equilibrium
from fluidcc.analysis.fluctuations import fluctuations
from fluidcc.analysis.gradient import gradients
from fluidcc.analysis.linear import Array
from fluidcc.analysis.measures import EQUILIBRIUM, NOISE, PACKETS, RUN, Gradient, Measure
from fluidcc.analysis.scan import Scale, unit_of
from fluidcc.dde.integrate import Status
from fluidcc.dde.uniform import Uniform
from fluidcc.errors import Fault, ScenarioError
from fluidcc.model.simulate import Trajectory, simulate
from fluidcc.optimize.constraints import Constraint
from fluidcc.packets.run import simulate_packets
from fluidcc.results.compare import POINTS
from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import (
    check_paths,
    full_path,
    number_at,
    replace,
    require_once,
    value_at,
)

ENOUGH = 1e3
"""Limit of scaled slack on either side: solvers take no infinite margins, and a constraint so far
from its bound plays no part."""

_DECADE = 10.0  # high over low from which on a positive range is taken by its logarithm, as even
# steps would hardly see its low end
_WHOLE = 1e-9  # relative distance from a whole number that is rounding: of coordinates and logs
_END = 1e-12  # distance from the end of a range that is rounding
_STEP = 1e-6  # of a range: step of a one-sided difference, far above an equilibrium's rounding


def halton(size: int, count: int) -> Array:
    """Points (count, size) of Halton's sequence in the unit cube, always the same."""
    sampler = qmc.Halton(size, scramble=False)
    sampler.fast_forward(1)  # the first is a corner
    return sampler.random(count)


@dataclasses.dataclass(frozen=True)
class Range:
    """A parameter between two numbers; `whole` if only whole numbers count."""

    path: str
    low: float
    high: float
    unit: str
    whole: bool

    @property
    def log(self) -> bool:
        """Whether equal steps are equal ratios: positive ranges of a decade or more."""
        return self.low > 0 and self.high >= _DECADE * self.low

    @property
    def _scale(self) -> Scale:
        return Scale(self.low, self.high, self.log)

    def value(self, u: float) -> float:
        """The value at a coordinate, 0 to 1; whole ones are corrected for rounding errors only."""
        value = self._scale.value(min(max(float(u), 0.0), 1.0))
        near = float(round(value))
        return near if self.whole and abs(value - near) <= _WHOLE * max(1.0, near) else value

    def coordinate(self, value: float) -> float:
        """Position of a value in the range, 0 at its low end and 1 at its high end."""
        return self._scale.share(value)

    def slope(self, u: float) -> float:
        """Derivative of the value by the coordinate."""
        if not self.log:
            return self.high - self.low
        return self.value(u) * math.log(self.high / self.low)


def ranges(
    net: Network, over: Mapping[str, Iterable[Any]], whole: Iterable[str] = (), *, where: str
) -> tuple[Range, ...]:
    """The ranges of ``{path: (low, high)}``; numbers of flows and paths of `whole` are whole.

    Ends are numbers in the parameter's unit or text with one; `where` is the option
    that messages name. Raises ScenarioError for paths that lead to no number or come twice, and
    ends that are no range.
    """
    check_paths(net, over, where=where)
    require_once(net, over, where)
    full = [full_path(net, path) for path in over]
    counted = {full_path(net, path) for path in whole}
    varied = f"a path that is varied, {' or '.join(over)}"
    if faults := [Fault("integer", path, varied, path) for path in counted - set(full)]:
        raise ScenarioError(faults)
    out = []
    for name, (path, ends) in zip(full, over.items(), strict=True):
        number_at(net, path)
        low, high = _ends(net, path, ends, where)
        is_count = name in counted or name.endswith(".n")
        if is_count:
            low, high = math.ceil(low), math.floor(high)
            if low >= high:
                raise ScenarioError([Fault(where, path, "two whole numbers", f"{tuple(ends)!r}")])
        out.append(Range(path, float(low), float(high), unit_of(net, path), is_count))
    return tuple(out)


def _ends(net: Network, path: str, ends: Iterable[Any], where: str) -> tuple[float, float]:
    try:
        low, high = (float(value_at(net, path, end, where=where)) for end in ends)
    except (TypeError, ValueError) as error:
        if isinstance(error, ScenarioError):
            raise
        raise ScenarioError([Fault(where, path, "two numbers (low, high)", f"{ends!r}")]) from None
    if not -math.inf < low < high < math.inf:
        raise ScenarioError([Fault(where, path, "low < high, both finite", f"{ends!r}")])
    return low, high


@dataclasses.dataclass(frozen=True)
class Problem:
    """A network, ranges, goal and constraints, and the scenarios in which these have to hold.

    `sign` is 1 if the goal is maximised, -1 if it is minimised. `constraints` has those asked for,
    and that the equilibrium is stable if any quantity is taken from it.
    """

    net: Network
    ranges: tuple[Range, ...]
    goal: Measure
    sign: int
    constraints: tuple[Constraint, ...]
    scenarios: tuple[Mapping[str, float], ...]
    runs: Runs

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The quantity of the goal, then those of the constraints."""
        return (self.goal, *(c.measure for c in self.constraints))

    @property
    def smooth(self) -> bool:
        """Whether everything has derivatives."""
        return all(quantity.engine == EQUILIBRIUM for quantity in self.measures)

    def met(self, values: Array) -> bool:
        """Whether values (S, M) of the measures meet every constraint in every scenario."""
        each = enumerate(self.constraints, start=1)
        return all(c.met(float(value)) for j, c in each for value in values[:, j])

    def values(self, x: Array) -> dict[str, float]:
        """The parameters at a point of the unit cube."""
        return {r.path: r.value(u) for r, u in zip(self.ranges, x, strict=True)}

    def network(self, x: Array, scenario: Mapping[str, float] | None = None) -> Network:
        """The network at a point."""
        return replace(self.net, {**self.values(x), **(scenario or {})}, where="optimize")

    def initial_point(self) -> Array | None:
        """The point (K,) of the network as it is; None if it lies outside the ranges."""
        values = [number_at(self.net, r.path) for r in self.ranges]
        pairs = list(zip(self.ranges, values, strict=True))
        inside = all(r.low <= value <= r.high for r, value in pairs)
        return np.array([r.coordinate(value) for r, value in pairs]) if inside else None

    def numbers(self, x: Array, scenario: Mapping[str, float]) -> tuple[Array, Array, str]:
        """Values (M,), slopes (M, K) by the coordinates, and why some have no number."""
        wanted = self.measures
        values, slopes = np.full(len(wanted), np.nan), np.full((len(wanted), len(x)), np.nan)
        try:
            found, reasons = self._compute(self.network(x, scenario))
        except Exception as error:  # whatever goes wrong at one point must not end the search
            return values, slopes, str(error) or type(error).__name__
        scale = np.array([r.slope(u) for r, u in zip(self.ranges, x, strict=True)])
        for j, each in enumerate(wanted):
            got = found.get(each.name, math.nan)
            if isinstance(got, Gradient):
                by = np.array([_slope(got, r.path) for r in self.ranges])
                slopes[j] = by * scale if math.isfinite(got.value) else 0.0
                got = got.value
            values[j] = got
        return values, slopes, "; ".join(dict.fromkeys(reasons))

    def _compute(self, net: Network) -> tuple[dict[str, Any], list[str]]:
        """All measures of a network by name, and why some are missing or infinite."""
        found: dict[str, Any] = {}
        reasons: list[str] = []
        for engine, take in (
            (EQUILIBRIUM, self._at_equilibrium),
            (RUN, _of_trajectory),
            (PACKETS, _of_packets),
            (NOISE, _of_noise),
        ):
            wanted = [m for m in dict.fromkeys(self.measures) if m.engine == engine]
            if wanted:
                numbers, why = take(net, wanted, self.runs)
                found |= numbers
                reasons += why
        return found, reasons

    def _at_equilibrium(
        self, net: Network, wanted: Sequence[Measure], _: Runs
    ) -> tuple[dict, list[str]]:
        each = gradients(net, [m.name for m in wanted], [r.path for r in self.ranges])
        why = [f"{g.of}: {g.message or g.status}" for g in each if math.isnan(g.value)]
        return {m.name: g for m, g in zip(wanted, each, strict=True)}, why


def _slope(gradient: Gradient, path: str) -> float:
    """A derivative; at a kink the one towards larger values."""
    slope = gradient.derivatives[path]
    return gradient.sides[path][1] if math.isnan(slope) and path in gradient.sides else slope


def worst_at(sign: int, values: Array) -> int:
    """The scenario in which a quantity (S,) is worst: the least where large values are good."""
    return int(np.argmin(sign * values))


def worst(sign: int, values: Array) -> float:
    """Its value (S,) there."""
    return float(values[worst_at(sign, values)])


@dataclasses.dataclass(frozen=True)
class Point:
    """A point in S scenarios: values (S, M) of the measures, their slopes (S, M, K), and reasons
    for values that are missing (NaN) or infinite.
    """

    x: Array
    values: Array
    slopes: Array
    reasons: tuple[str, ...]

    @property
    def known(self) -> bool:
        """Whether every measure has a number in every scenario."""
        return not np.any(np.isnan(self.values))


class Evaluator:
    """Evaluates points of the unit cube, caches them, and scales their numbers to order one.

    Scaled numbers (S, M) are the cost, which is to be small: the goal, negative if maximised, over
    its spread in a sample of the cube; and the slack of each constraint, which is to be positive,
    over the spread of its quantity, or over the constraint's scale if it does not vary.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.points: dict[bytes, Point] = {}
        self.scales = np.ones(len(problem.measures))
        self._signs = np.array([-problem.sign, *(c.sign for c in problem.constraints)], float)
        self._bounds = np.array([0.0, *(c.bound for c in problem.constraints)])

    def __call__(self, x: Array) -> Point:
        """The numbers at a point."""
        x = np.clip(np.asarray(x, float), 0.0, 1.0)
        x = np.where(np.abs(x - np.round(x)) < _END, np.round(x), x)
        if x.tobytes() not in self.points:
            each = [self.problem.numbers(x, scenario) for scenario in self.problem.scenarios]
            values, slopes, reasons = zip(*each, strict=True)
            self.points[x.tobytes()] = Point(x, np.array(values), np.array(slopes), reasons)
        return self.points[x.tobytes()]

    def measure_scales(self, sample: Iterable[Array]) -> None:
        """Take the scales from points all over the cube."""
        values = np.array([self(x).values for x in sample])
        least = [1.0, *(c.scale for c in self.problem.constraints)]
        self.scales = np.array([_spread(values[:, :, j]) or s for j, s in enumerate(least)])

    def scaled(self, x: Array) -> Array:
        """Scaled numbers (S, M) at a point."""
        out = self._signs * (self(x).values - self._bounds) / self.scales
        out[:, 1:] = np.clip(out[:, 1:], -ENOUGH, ENOUGH)
        return out

    def scaled_slopes(self, x: Array) -> Array:
        """Slopes (S, M, K) of those; one-sided differences replace them at kinks and ties."""
        point = self(x)
        slopes = np.array(point.slopes)
        for k in np.flatnonzero(np.any(np.isnan(slopes), axis=(0, 1))):
            step = np.zeros(len(x))
            step[k] = _STEP if point.x[k] < 0.5 else -_STEP
            with np.errstate(invalid="ignore"):
                difference = (self(point.x + step).values - point.values) / step[k]
            difference = np.nan_to_num(difference, nan=0.0, posinf=0.0, neginf=0.0)
            slopes[:, :, k] = np.where(np.isnan(slopes[:, :, k]), difference, slopes[:, :, k])
        slopes *= (self._signs / self.scales)[:, None]
        slopes[:, 1:][np.abs(self.scaled(x)[:, 1:]) >= ENOUGH] = 0.0
        return slopes

    def merit(self, x: Array) -> tuple[int, float]:
        """Sort key, smaller is better: constraints met, missed or unknown; cost or violation."""
        point, scaled = self(x), self.scaled(x)
        if not point.known:
            return 2, math.inf
        if self.problem.met(point.values):
            return 0, float(scaled[:, 0].max())
        return 1, float(-scaled[:, 1:].min())

    def best(self) -> Array:
        """The best point evaluated."""
        return min((point.x for point in self.points.values()), key=self.merit)


def _spread(values: Array) -> float:
    """Interquartile range of the finite values; 0 if they do not vary."""
    known = values[np.isfinite(values)]
    if known.size < 2:
        return 0.0
    low, high = np.percentile(known, (25, 75))
    return float(high - low) or float(np.ptp(known))


_BAND = 0.05  # of the queue at equilibrium: the usual band of a settling time
_LEAST_BAND = 1.0  # packet: of a short queue 5 % would be less than a packet, which is none


@dataclasses.dataclass(frozen=True)
class Runs:
    """How trajectories and packets are run: end and warm-up [s], and seeds."""

    until: float
    warmup: float
    seeds: tuple[int, ...]


def settling_time(time: Array, queue: Array, steady: float) -> float:
    """Time [s] at which a queue (T,) [packet] enters the band about `steady` until the end.

    The band is 5 % of `steady`, or one packet if that is wider. Infinite if the queue does not
    stay, NaN if `steady` is, as without an equilibrium.
    """
    if math.isnan(steady):
        return math.nan
    band = max(_BAND * steady, _LEAST_BAND)
    outside = np.flatnonzero(~(np.abs(queue - steady) <= band))
    if not outside.size:
        return float(time[0])
    last = int(outside[-1])
    return float(time[last + 1]) if last + 1 < len(time) else math.inf


def variation(time: Array, queue: Array, warmup: float) -> float:
    """Standard deviation over mean of a queue (T,) after the warm-up; 0 if it stays empty."""
    late = queue[time >= warmup]
    spread = float(late.std())
    return spread / float(late.mean()) if spread > 0 else 0.0


def trajectory(net: Network, until: float) -> Trajectory:
    """The trajectory from the scenario's own start, on steps that suit its round trips."""
    points = np.linspace(0.0, until, POINTS)
    return simulate(net, until=until, points=points, mesh=Uniform())


def _of_trajectory(
    net: Network, wanted: Sequence[Measure], runs: Runs
) -> tuple[dict[str, float], list[str]]:
    """Quantities of one trajectory by name, and why some are missing or infinite."""
    run = trajectory(net, runs.until)
    if run.status is not Status.ok:
        return {}, [f"the trajectory ended at {run.status_time:.4g} s: {run.status.advice}"]
    eq = equilibrium(net)
    values, why = {}, []
    for quantity in wanted:
        queue = run.links[quantity.owner].queue
        if quantity.key == "queue_cov":
            values[quantity.name] = variation(run.time, queue, runs.warmup)
            continue
        values[quantity.name] = settling_time(run.time, queue, eq.links[quantity.owner].queue)
        if math.isnan(values[quantity.name]):
            why.append(f"{quantity.name}: no equilibrium to settle at, {eq.message or eq.status}")
        elif math.isinf(values[quantity.name]):
            why.append(f"{quantity.name}: the queue does not settle within {runs.until:g} s")
    return values, why


def _of_noise(
    net: Network, wanted: Sequence[Measure], _: Runs
) -> tuple[dict[str, float], list[str]]:
    """Quantities of fluctuations by name, and why they are refused."""
    found = fluctuations(net)
    if found.status != "regular":
        return {}, [f"noise: {found.message}"]
    return {m.name: found.number(m) for m in wanted}, []


def _of_packets(
    net: Network, wanted: Sequence[Measure], runs: Runs
) -> tuple[dict[str, float], list[str]]:
    """Means over the seeds of metrics of packets by name, and which have no number."""
    runs_done = simulate_packets(net, until=runs.until, warmup=runs.warmup, seeds=runs.seeds)
    mean = runs_done.complete().mean
    means = {m.name: float(mean[m.kind][m.owner].get(m.key, math.nan)) for m in wanted}
    none = [name for name, value in means.items() if not math.isfinite(value)]
    return (
        {name: value for name, value in means.items() if name not in none},
        [f"{name}: the packet runs have no number for it" for name in none],
    )
