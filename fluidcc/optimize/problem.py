"""What is to be optimised, and its numbers at a point of the search in every scenario."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidcc.analysis.gradients.gradient import gradients
from fluidcc.analysis.gradients.result import Gradient
from fluidcc.analysis.linear import Array
from fluidcc.optimize.constraints import Constraint
from fluidcc.optimize.measures import PACKETS, REST, RUN, Measure, measure
from fluidcc.optimize.ranges import Range
from fluidcc.optimize.runs import Runs, of_packets, of_trajectory
from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import replace

_ASIDE = 1e-6  # of a range: step of a one-sided difference, far above the rounding of a rest
_WHOLE = 1e-9  # relative distance from a whole number that is rounding: of shares and logarithms
_STABLE = "decay_rate"


@dataclasses.dataclass(frozen=True)
class Problem:
    """A network, what is varied, what is wanted, and the scenarios in which it has to hold.

    `sign` is 1 where the goal is maximised, -1 where it is minimised. `constraints` has what was
    asked for, and that the equilibrium is stable where anything is taken from it.
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
        """The goal, then what each constraint is about."""
        return (self.goal, *(c.measure for c in self.constraints))

    @property
    def smooth(self) -> bool:
        """Whether everything has derivatives."""
        return all(each.engine == REST for each in self.measures)

    def met(self, values: Array) -> bool:
        """Whether values (S, M) of the measures meet every constraint in every scenario."""
        each = enumerate(self.constraints, start=1)
        return all(c.met(float(value)) for j, c in each for value in values[:, j])

    def values(self, shares: Array) -> dict[str, Any]:
        """The parameters at a point of the unit box; whole ones are not rounded."""
        pairs = zip(self.ranges, shares, strict=True)
        return {r.path: _exact(r, r.value(float(share))) for r, share in pairs}

    def network(self, shares: Array, scenario: Mapping[str, float] | None = None) -> Network:
        """The network at a point."""
        return replace(self.net, {**self.values(shares), **(scenario or {})}, where="optimize")


def _exact(where: Range, value: float) -> float:
    """The value, without the rounding errors of one that is meant to be whole."""
    near = float(round(value))
    return near if where.whole and abs(value - near) <= _WHOLE * max(1.0, near) else value


def worst_at(sign: int, values: Array) -> int:
    """The scenario in which a quantity (S,) is worst: the least where large values are good."""
    return int(np.argmin(sign * values))


def worst(sign: int, values: Array) -> float:
    """Its value (S,) there."""
    return float(values[worst_at(sign, values)])


def with_stability(net: Network, goal: Measure, asked: tuple[Constraint, ...]) -> tuple:
    """The constraints with that of a stable rest, where anything is taken from the rest.

    A decay rate that is asked for says it already.
    """
    rest = any(each.engine == REST for each in (goal, *(c.measure for c in asked)))
    stable = Constraint(measure(net, _STABLE), 1, 0.0)
    told = any(c.measure == stable.measure and c.sign > 0 and c.bound >= 0 for c in asked)
    return (*asked, stable) if rest and not told else asked


@dataclasses.dataclass(frozen=True)
class Seen:
    """A point in S scenarios: values (S, M) of the measures, and their slopes (S, M, K) by shares.

    NaN stands for what has no number; `reasons` (S,) says why that is, or why one is infinite.
    """

    values: Array
    slopes: Array
    reasons: tuple[str, ...]

    @property
    def known(self) -> bool:
        """Whether every measure has a number in every scenario."""
        return not np.any(np.isnan(self.values))


class Evaluator:
    """Looks at points of the unit box and remembers what it saw."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.seen: dict[bytes, tuple[Array, Seen]] = {}

    def __call__(self, shares: Array) -> Seen:
        """The numbers at a point."""
        point = np.clip(np.asarray(shares, float), 0.0, 1.0)
        key = point.tobytes()
        if key not in self.seen:
            self.seen[key] = (point, self._look(point))
        return self.seen[key][1]

    def _look(self, point: Array) -> Seen:
        each = [self._in(point, scenario) for scenario in self.problem.scenarios]
        values, slopes, reasons = zip(*each, strict=True)
        return Seen(np.array(values), np.array(slopes), reasons)

    def _in(self, point: Array, scenario: Mapping[str, float]) -> tuple[Array, Array, str]:
        """Values, slopes and what is missing in one scenario."""
        wanted, size = self.problem.measures, len(point)
        values, slopes = np.full(len(wanted), np.nan), np.full((len(wanted), size), np.nan)
        try:
            net = self.problem.network(point, scenario)
            found, reasons = self._found(net)
        except Exception as error:  # whatever goes wrong at one point must not end the search
            return values, slopes, str(error) or type(error).__name__
        scale = np.array([r.slope(u) for r, u in zip(self.problem.ranges, point, strict=True)])
        for j, each in enumerate(wanted):
            got = found.get(each.name)
            if isinstance(got, Gradient):
                values[j] = got.value
                by = [_either(got, r.path) for r in self.problem.ranges]
                slopes[j] = np.array(by) * scale if math.isfinite(got.value) else 0.0
            elif got is not None:
                values[j] = got
        return values, slopes, "; ".join(dict.fromkeys(reasons))

    def _found(self, net: Network) -> tuple[dict[str, Any], list[str]]:
        """Everything wanted of a network by name, and why something is missing."""
        wanted = dict.fromkeys(self.problem.measures)
        by = {engine: [m for m in wanted if m.engine == engine] for engine in (REST, RUN, PACKETS)}
        found: dict[str, Any] = {}
        reasons = []
        if by[REST]:
            paths = [r.path for r in self.problem.ranges]
            each = gradients(net, [m.name for m in by[REST]], paths)
            found |= {m.name: g for m, g in zip(by[REST], each, strict=True)}
            reasons += [f"{g.of}: {g.message or g.status}" for g in each if math.isnan(g.value)]
        if by[RUN]:
            numbers, told = of_trajectory(net, by[RUN], self.problem.runs)
            found |= numbers
            reasons += told
        if by[PACKETS]:
            numbers = of_packets(net, by[PACKETS], self.problem.runs)
            found |= numbers
            missing = [m.name for m in by[PACKETS] if m.name not in numbers]
            reasons += [f"{name}: the packet runs have no number for it" for name in missing]
        return found, reasons

    def slopes(self, shares: Array) -> Array:
        """Slopes (S, M, K) at a point; differences to one side stand in at kinks and ties."""
        point, seen = np.clip(np.asarray(shares, float), 0.0, 1.0), self(shares)
        missing = np.any(np.isnan(seen.slopes), axis=(0, 1))
        if not np.any(missing):
            return seen.slopes
        out = np.array(seen.slopes)
        for k in np.flatnonzero(missing):
            step = np.zeros(len(point))
            step[k] = _ASIDE if point[k] < 0.5 else -_ASIDE
            with np.errstate(invalid="ignore"):
                aside = (self(point + step).values - seen.values) / step[k]
            lacking = np.isnan(out[:, :, k])
            out[:, :, k][lacking] = np.nan_to_num(aside, nan=0.0, posinf=0.0, neginf=0.0)[lacking]
        return out


def _either(found: Gradient, path: str) -> float:
    """A derivative; at a kink that towards larger values."""
    slope = found.derivatives[path]
    return found.sides[path][1] if math.isnan(slope) and path in found.sides else slope
