"""`gradient`: derivatives of equilibria, roots and margins, by the implicit function theorem."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fluidcc.analysis.characteristic import Characteristic
from fluidcc.analysis.delay_equation import DelayEquation
from fluidcc.analysis.equilibrium import Equilibrium, equilibrium, without
from fluidcc.analysis.implicit import (
    Motion,
    Observed,
    crossover_slopes,
    directions,
    edge,
    motion,
    population_motion,
    root_slopes,
    slopes_of_linear,
)
from fluidcc.analysis.linear import Array, Linear
from fluidcc.analysis.linearize import at_kink, linearize
from fluidcc.analysis.margins import PhaseCrossover, link_margins, scale_of
from fluidcc.analysis.measures import EQUILIBRIUM, Gradient, Measure, find, measures
from fluidcc.analysis.roots import Roots, rightmost_roots
from fluidcc.analysis.scan import family, unit_of
from fluidcc.analysis.sliding import NoDerivativeError, SlidingSurface
from fluidcc.analysis.stability import judge, stability
from fluidcc.analysis.winding import count_roots
from fluidcc.arrays import jax, jnp
from fluidcc.errors import Fault, ScenarioError
from fluidcc.progress import counted, part, reporting
from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import check_paths, number_at

_SAME = 1e-9  # relative difference up to which two numbers are the same
_ROUNDING = 1e-12  # of the largest relative change, in derivatives that are zero
_NEAR = 1e-6  # of a root's size: distance of a line right of it, beyond which none may lie
_ASIDE = (
    1e-6  # of a parameter: neighbours of an edge, farther from it than an equilibrium's rounding
)
_SIDES = (-2, -1, 1, 2)  # steps of differences
_STEP, _ALIKE = 2e-3, 0.02  # of a parameter, and relative difference of those of two lengths
_LOOP_STEP, _LOOP_ALIKE = 2e-2, 0.1  # of loops, whose grid of windows is felt more
_BRIEF = 3000  # evaluations spent on one line
_ROOT = {"decay_rate": lambda s: -np.real(s), "frequency": np.imag}


class _NoSlopes(Exception):
    """A value whose derivatives do not exist, with status and message."""

    def __init__(self, value: float, status: str, message: str) -> None:
        super().__init__(message)
        self.value, self.status, self.message = value, status, message


@reporting
def gradient(
    net: Network,
    of: str | Callable[[Equilibrium], Any],
    over: Sequence[str],
    *,
    progress: Callable[[float], object] | None = None,
) -> Gradient:
    """Derivatives of a quantity of a network at equilibrium by some of its parameters.

    Equilibria, roots and margins are differentiated at the solution by the implicit function
    theorem; those of roots and margins include the motion of the equilibrium. An equilibrium that
    is on a discontinuity, or fills a buffer, stays there: it has derivatives, but no linearisation,
    hence no roots and margins. At a corner of the marking function, and where a queue begins to
    empty or to fill, both one-sided derivatives are returned. Roots and margins of a population,
    and its equilibrium on a discontinuity, at a full buffer or with window laws that remember, are
    differentiated by differences.

    Parameters
    ----------
    net
        The network, or for cycles a delay equation.
    of
        The quantity: ``queue``, ``queueing_delay``, ``average``, ``mark_probability``,
        ``utilization`` or ``load_factor`` of a link (``links.NAME.queue``), ``window``, ``rtt``,
        ``queueing_delay``, ``rate`` or ``mark_probability`` of a group (the mean over its flows),
        without its owner if there is only one; ``phase_margin``, ``gain_margin``,
        ``delay_margin``, ``gain_crossover``, ``phase_crossover``, ``decay_rate``,
        ``frequency``; ``cycle.period`` and extremes such as ``cycle.link.queue.max``,
        ``cycle.flow.window.min``; or a function of the `Equilibrium` written with jax.numpy.
    over
        Paths of numbers, delays and flow numbers included; `n` scales a group as a whole.
    progress
        Called with the finished share, in [0, 1], from time to time.

    Returns
    -------
    Gradient
        Derivatives that do not exist are NaN; `status` has the reason.

    Raises
    ------
    ScenarioError
        For names and paths that do not exist, and paths that lead to no number.

    Examples
    --------
    >>> import fluidcc as fc
    >>> fc.gradient(fc.load("hollot2001/slow"), "queue", ["flow.n"]).status
    'ok'
    """
    if isinstance(of, str) and of.startswith("cycle."):
        from fluidcc.analysis.cycles.gradient import cycle_gradients

        if isinstance(net, Network):
            check_paths(net, over, where="gradient")
        return cycle_gradients(net, [of], over)[0]
    if isinstance(net, DelayEquation):
        raise ValueError(f"gradient: of a delay equation expected a cycle's quantity, got {of!r}")
    with part(0.0, 1.0, verb=True):
        return gradients(net, [of], over)[0]


@reporting
def gradients(
    net: Network, of: Sequence[str | Callable[[Equilibrium], Any]], over: Sequence[str]
) -> tuple[Gradient, ...]:
    """The gradients of several quantities at once, which share equilibrium and linearisation."""
    check_paths(net, over, where="gradient")
    if not over:
        raise ScenarioError([Fault("gradient", "", "at least one path", "none")])
    point = _Point(net, tuple(dict.fromkeys(over)))
    known = measures(point.eq.net, EQUILIBRIUM)
    wanted = [find(point.eq.net, x, known, "gradient") if isinstance(x, str) else x for x in of]
    return tuple(point.gradient(each) for each in wanted)


class _Point:
    """A network at equilibrium and its derivatives, each computed when first needed."""

    def __init__(self, net: Network, paths: tuple[str, ...]) -> None:
        self.net, self.paths = net, paths
        self.eq = equilibrium(net)

    @functools.cached_property
    def along(self) -> Network:
        """Derivatives of the network's numbers, leaves (K, ...)."""
        each = directions(self.net, self.paths)
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)

    @functools.cached_property
    def edge(self) -> tuple[tuple[SlidingSurface, ...], str]:
        """The discontinuities that hold the equilibrium, and the edge that it is at.

        Raises NoDerivativeError.
        """
        return edge(self.eq)

    @functools.cached_property
    def motion(self) -> Motion:
        """Derivatives of the equilibrium, which stays on its discontinuities."""
        if self.eq.net.closure == "population":
            return population_motion(self.eq, self.along)
        return motion(self.eq, self.along, self.edge[0])

    @functools.cached_property
    def system(self) -> Linear:
        """The linearisation."""
        return linearize(self.eq.net, self.eq)

    @functools.cached_property
    def slopes(self) -> list[Linear]:
        """Derivatives of the linearisation."""
        move = self.motion
        return slopes_of_linear(self.eq, self.system, self.along, move.state, move.outputs)

    @functools.cached_property
    def roots(self) -> Roots:
        """The rightmost roots."""
        return rightmost_roots(self.system)

    @functools.cached_property
    def margins(self) -> list[tuple[int, Any]]:
        """Margins per link whose signal reaches a sender."""
        return link_margins(self.system, scale=scale_of(self.system))

    @functools.cached_property
    def neighbours(self) -> dict[tuple[str, int], list[_Point]]:
        """Neighbours towards smaller and larger values (-1 and 1) of each path: two off the
        edge, the point itself if the neighbours are on the edge too, none beyond the range.
        """
        return {
            (path, sign): self._find_neighbours(path, sign)
            for path in self.paths
            for sign in (-1, 1)
        }

    def _find_neighbours(self, path: str, sign: int) -> list[_Point]:
        at = number_at(self.net, path)
        step = sign * _ASIDE * (abs(at) or 1.0)
        member: Any = family(self.net, [path], "gradient")
        try:
            found = [_Point(member(at + k * step), self.paths) for k in (1, 2)]
            return [self] if any(point.edge[1] for point in found) else found
        except (ValueError, NoDerivativeError):
            return []

    def gradient(self, of: Measure | Callable[[Equilibrium], Any]) -> Gradient:
        """The gradient of one quantity."""
        units = {path: unit_of(self.net, path) for path in self.paths}
        sides: dict[str, tuple[float, float]] = {}
        status, message, name, unit = "ok", "", getattr(of, "__name__", "function"), "1"
        if isinstance(of, Measure):
            name, unit = of.name, of.unit
        try:
            is_loop = isinstance(of, Measure) and of.kind == "loop"
            smooth = self.eq.status in ("regular", "empty") and not is_loop
            remembers = any(flows.window.states for flows in self.eq.net.flows)
            if self.net.closure == "population" and (remembers or not smooth):
                value, slopes = self._by_differences(of)
            elif isinstance(of, Measure) and is_loop:
                value, slopes = self._of_loop(of.key)
            else:
                read = of.read if isinstance(of, Measure) else of
                value, slopes, sides = self._of_equilibrium(read)
                if np.any(np.isnan(slopes)):
                    status, message = "kink", f"{self.edge[1]}: one-sided derivatives"
        except _NoSlopes as found:
            value, status, message = found.value, found.status, found.message
            slopes = np.full(len(self.paths), math.nan)
        derivatives = dict(zip(self.paths, map(float, slopes), strict=True))
        return Gradient(name, value, derivatives, status, message, unit, units, sides)

    def _by_differences(self, of: Measure | Callable[[Equilibrium], Any]) -> tuple[float, Array]:
        """The value and its derivatives at a population, which has no equations of motion: from
        steps of two lengths to both sides, which have to agree.
        """
        value = _of_population(self.eq, of)
        if math.isnan(value):
            raise _NoSlopes(value, self.eq.status, self.eq.message or "there is no such number")
        slopes, is_loop = [], isinstance(of, Measure) and of.kind == "loop"
        share, alike = (_LOOP_STEP, _LOOP_ALIKE) if is_loop else (_STEP, _ALIKE)
        for path in counted(self.paths):
            at = number_at(self.net, path)
            member: Any = family(self.net, [path], "gradient")
            step = share * (abs(at) or 1.0)
            try:
                four = [_of_population(equilibrium(member(at + k * step)), of) for k in _SIDES]
            except ValueError as edge:
                raise _NoSlopes(value, "kink", f"at the end of a range: {edge}") from None
            short, long = (four[2] - four[1]) / (2 * step), (four[3] - four[0]) / (4 * step)
            if not all(map(math.isfinite, four)):
                raise _NoSlopes(value, "kink", f"{path}: no such number {share:.1%} away")
            size = max(abs(short), _ROUNDING * abs(value) / step)
            if not abs(short - long) <= alike * size:
                raise _NoSlopes(value, "kink", f"{path}: differences of two lengths disagree")
            slopes.append((4 * short - long) / 3)
        return value, np.array(slopes)

    def _without(self, reason: str) -> tuple[str, str]:
        """Status and message if the equilibrium, or its linearisation, has no derivatives."""
        eq = self.eq
        smooth = "undetermined" if eq.net.closure == "population" else "sliding"
        status = eq.status if eq.status not in ("regular", "empty") else smooth
        return status, "; ".join(filter(None, [eq.message, f"no derivatives: {reason}"]))

    def _of_equilibrium(
        self, read: Callable[[Equilibrium], Any]
    ) -> tuple[float, Array, dict[str, tuple[float, float]]]:
        """The value, its derivatives, and at the edge of a regime those towards smaller and larger
        values of each parameter.
        """
        value = float(read(self.eq))
        try:
            _, where = self.edge
        except NoDerivativeError as reason:
            raise _NoSlopes(value, *self._without(str(reason))) from None
        if not where:
            self._require_motion(value)
            return value, _slopes(self.eq, read, self.motion), {}
        rounding = _ROUNDING * self.motion.pace * (1 + abs(value))
        sides = {}
        for k, path in enumerate(self.paths):
            low, high = (self._limit(read, k, self.neighbours[path, sign]) for sign in (-1, 1))
            sides[path] = (low, high)
        if np.isnan(list(sides.values())).all():
            self._require_motion(value)
        pairs = zip(sides.values(), rounding, strict=True)
        both = [_common_derivative(low, high, up_to) for (low, high), up_to in pairs]
        return value, np.array(both), sides

    def _limit(self, read: Callable[[Equilibrium], Any], k: int, points: list[_Point]) -> float:
        """The derivative by parameter k at a point, extrapolated from one or two on one side."""
        if not points or any(point.motion.message for point in points):
            return math.nan
        each = [float(_slopes(point.eq, read, point.motion)[k]) for point in points]
        return 2 * each[0] - each[-1]

    def _require_motion(self, value: float) -> None:
        if self.motion.message:
            raise _NoSlopes(value, "singular", self.motion.message)

    def _of_loop(self, key: str) -> tuple[float, Array]:
        """A root or a margin."""
        if not self.eq.smooth:
            raise _NoSlopes(math.nan, *self._without(f"no linearisation, as {without(self.eq)}"))
        if at_kink(self.eq.net, self.eq):
            raise _NoSlopes(
                _of_stability(stability(self.net), key), "kink", "the marking function has a "
                "corner here: this quantity differs on its two sides; the value is that of the "
                "worse one",
            )  # fmt: skip
        return self._of_root(key) if key in _ROOT else self._of_crossover(key)

    def _of_root(self, key: str) -> tuple[float, Array]:
        roots = self.roots
        if roots.rightmost is None:
            raise _NoSlopes(math.nan, "none", roots.reason or "there is no characteristic root")
        first = roots.rightmost
        line = first.real + _NEAR * abs(first)
        if not roots.proven and count_roots(Characteristic(self.system), line, nodes=_BRIEF).number:
            message = "a root further right is counted but not located: two roots nearly meet"
            raise _NoSlopes(math.nan, "grazing", message)
        take = _ROOT[key]
        value = float(take(first))
        others = [s for s in roots.values[1:] if abs(s - first.conjugate()) > _SAME * abs(first)]
        if any(abs(s.real - first.real) <= _SAME * abs(first) for s in others):
            raise _NoSlopes(value, "tie", "two characteristic roots are equally far to the right")
        self._require_motion(value)
        slopes = root_slopes(self.system, first, self.slopes)
        if slopes is None:
            raise _NoSlopes(value, "grazing", "the rightmost root is double")
        return value, take(slopes)

    def _of_crossover(self, key: str) -> tuple[float, Array]:
        """The crossover nearest to critical: by angle or gain, for the delay margin by delay."""
        gain = key in ("phase_margin", "gain_crossover", "delay_margin")
        far: Callable[[Any], float] = {
            "delay_margin": lambda c: abs(c.delay_margin),
            "phase_margin": lambda c: abs(c.phase_margin),
            "gain_crossover": lambda c: abs(c.phase_margin),
        }.get(key, lambda c: abs(math.log(c.gain_margin)))
        every = [
            (k, c)
            for k, found in self.margins
            for c in (found.gain_crossovers if gain else found.phase_crossovers)
        ]
        if not every:
            value = math.nan if key.endswith("crossover") else math.inf
            raise _NoSlopes(value, "no_crossover", "the loop has no such crossover")
        every.sort(key=lambda pair: far(pair[1]))
        link, first = every[0]
        value = float(getattr(first, "frequency" if key.endswith("crossover") else key))
        if len(every) > 1 and far(every[1][1]) - far(first) <= _SAME * far(first):
            raise _NoSlopes(value, "tie", "two crossovers are equally near to critical")
        self._require_motion(value)
        slopes = crossover_slopes(self.system, link, first.frequency, self.slopes, gain=gain)
        if slopes is None:
            raise _NoSlopes(value, "grazing", "the loop only touches its crossover")
        by_frequency, level = slopes
        if key.endswith("crossover"):
            return value, by_frequency
        if isinstance(first, PhaseCrossover):
            return value, -first.gain_margin * level
        if key == "phase_margin":
            return value, np.degrees(level)
        return value, (level - first.delay_margin * by_frequency) / first.frequency


def _of_population(eq: Equilibrium, of: Measure | Callable[[Equilibrium], Any]) -> float:
    """A quantity at the equilibrium of a population; NaN if it has none."""
    if isinstance(of, Measure):
        if of.kind == "loop":
            found = judge(eq)
            return math.nan if found.unstable is None else _of_stability(found, of.key)
        of = of.read
    return float(of(eq))


def _slopes(eq: Equilibrium, read: Callable[[Equilibrium], Any], motion: Motion) -> Array:
    """Derivatives (K,) of a value read off the equilibrium."""
    seen, slopes = (jax.tree.map(jnp.asarray, each) for each in (motion.seen, motion.slopes))

    def value(seen: Observed) -> Any:
        links = {
            name: dataclasses.replace(seen[0][name], quench_fraction=own.quench_fraction)
            for name, own in eq.links.items()
        }
        flows = {name: seen[1][name] for name in eq.flows}
        return jnp.asarray(read(dataclasses.replace(eq, links=links, flows=flows)), float)

    return np.asarray(jax.vmap(lambda along: jax.jvp(value, (seen,), (along,))[1])(slopes))


def _of_stability(found: Any, key: str) -> float:
    """A root or margin of a `Stability`."""
    if key in _ROOT:
        return math.nan if found.rightmost is None else float(_ROOT[key](found.rightmost))
    value = getattr(found, key)
    if value is None:
        return math.nan if key.endswith("crossover") else math.inf
    return float(value)


def _common_derivative(below: float, above: float, rounding: float) -> float:
    """The common derivative if both sides agree to rounding; else NaN."""
    apart = _SAME * max(abs(below), abs(above)) + rounding
    return above if abs(below - above) <= apart else math.nan
