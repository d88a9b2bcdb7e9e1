"""`gradient`: derivatives of what a network comes to, by the implicit function theorem."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fluidcc.analysis.characteristic import Characteristic
from fluidcc.analysis.contacts import NoDerivative
from fluidcc.analysis.delay_equation import DelayEquation
from fluidcc.analysis.equilibrium import Equilibrium, FlowsRest, LinkRest, equilibrium, without
from fluidcc.analysis.gradients import loop
from fluidcc.analysis.gradients.branches import Branches, branches
from fluidcc.analysis.gradients.directions import directions
from fluidcc.analysis.gradients.quantities import Quantity, mean_over_flows, quantity
from fluidcc.analysis.gradients.rest import Moving, Seen, moving
from fluidcc.analysis.gradients.result import Gradient
from fluidcc.analysis.linear import Array, Linear
from fluidcc.analysis.linearize import at_kink, linearize
from fluidcc.analysis.margins import GainCrossover, PhaseCrossover, link_margins, scale_of
from fluidcc.analysis.model import unit_of
from fluidcc.analysis.roots import Roots, rightmost_roots
from fluidcc.analysis.stability import stability
from fluidcc.analysis.winding import count_roots
from fluidcc.errors import Fault, ScenarioError
from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import check_paths

_SAME = 1e-9  # relative difference up to which two numbers are the same
_ROUNDING = 1e-12  # of the largest relative change, in derivatives that are zero
_NEAR = 1e-6  # of a root's size: how far right of it another one is looked for
_BRIEF = 3000  # evaluations spent on one line
_ROOT = {"rightmost": np.real, "decay_rate": lambda s: -np.real(s), "frequency": np.imag}


class _Found(Exception):
    """A value whose derivatives do not exist, with status and message."""

    def __init__(self, value: float, status: str, message: str) -> None:
        super().__init__(message)
        self.value, self.status, self.message = value, status, message


def gradient(net: Network, of: str | Callable[[Equilibrium], Any], over: Sequence[str]) -> Gradient:
    """Derivatives of a quantity of a network at rest by some of its parameters.

    Equilibria, roots and margins are differentiated at the solution by the implicit function
    theorem, with the motion of the equilibrium in those of roots and margins. An equilibrium that
    slides on a jump, or fills a buffer, stays on that surface: it has derivatives, but no
    linearisation, hence no roots and margins. At the edge of a regime both sides are told.

    Parameters
    ----------
    net
        The network, or for cycles a delay equation.
    of
        The quantity: ``queue``, ``average``, ``signal``, ``utilization`` or ``load`` of a link
        (``links.NAME.queue``), ``window``, ``rtt``, ``rate`` or ``heard`` of a group (the mean over
        its flows), without its owner where there is one; ``phase_margin``, ``gain_margin``,
        ``delay_margin``, ``gain_crossover``, ``phase_crossover``, ``decay_rate``, ``rightmost``,
        ``frequency``; ``cycle.period`` and extremes such as ``cycle.link.queue.max``,
        ``cycle.flow.window.min``; or a function of the `Equilibrium` written with jax.numpy.
    over
        Paths of numbers, delays and flow numbers included; `n` scales a group as a whole.

    Returns
    -------
    Gradient
        NaN stands for derivatives that do not exist; its `status` says why.

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
        from fluidcc.analysis.gradients.cycle import cycle_gradients

        if isinstance(net, Network):
            check_paths(net, over, where="gradient")
        return cycle_gradients(net, [of], over)[0]
    if isinstance(net, DelayEquation):
        raise ValueError(f"gradient: of a delay equation expected a cycle's quantity, got {of!r}")
    return gradients(net, [of], over)[0]


def gradients(
    net: Network, of: Sequence[str | Callable[[Equilibrium], Any]], over: Sequence[str]
) -> tuple[Gradient, ...]:
    """The gradients of several quantities at once, which share equilibrium and linearisation."""
    check_paths(net, over, where="gradient")
    if not over:
        raise ScenarioError([Fault("gradient", "", "at least one path", "none")])
    point = _Point(net, tuple(dict.fromkeys(over)))
    wanted = [quantity(point.eq.net, name) if isinstance(name, str) else name for name in of]
    return tuple(point.gradient(each) for each in wanted)


class _Point:
    """A network at rest, and how it moves: everything is found when it is first needed."""

    def __init__(self, net: Network, paths: tuple[str, ...]) -> None:
        self.net, self.paths = net, paths
        self.eq = equilibrium(net)

    @functools.cached_property
    def along(self) -> Network:
        """Derivatives of the network's numbers, leaves (K, ...)."""
        each = directions(self.net, self.paths)
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)

    @functools.cached_property
    def kink(self) -> bool:
        """Whether the rest is at a kink of a marking function."""
        return at_kink(self.eq.net, self.eq)

    @functools.cached_property
    def branches(self) -> Branches | str:
        """How the rest moves to either side, or why that is not known."""
        try:
            return branches(self.eq, self.along)
        except NoDerivative as reason:
            return str(reason)

    @functools.cached_property
    def smooth(self) -> Moving:
        """How the rest moves away from kinks."""
        return moving(self.eq, self.along)[0]

    @functools.cached_property
    def system(self) -> Linear:
        """The linearisation."""
        return linearize(self.eq.net, self.eq)

    @functools.cached_property
    def motion(self) -> loop.Motion:
        """How the linearisation moves."""
        return loop.motion(self.eq, self.along, self.smooth.state, self.smooth.wire)

    @functools.cached_property
    def roots(self) -> Roots:
        """The rightmost roots."""
        return rightmost_roots(self.system)

    @functools.cached_property
    def margins(self) -> list[tuple[int, Any]]:
        """Margins per link whose signal is heard."""
        return link_margins(self.system, scale=scale_of(self.system))

    def gradient(self, of: Quantity | Callable[[Equilibrium], Any]) -> Gradient:
        """The gradient of one quantity."""
        units = {path: unit_of(self.net, path) for path in self.paths}
        named = isinstance(of, Quantity)
        name = of.name if named else getattr(of, "__name__", "function")
        unit = of.unit if named else "1"
        unknown = dict.fromkeys(self.paths, math.nan)
        sides: dict[str, tuple[float, float]] = {}
        status, message = "ok", ""
        try:
            if named and of.kind == "loop":
                value, slopes = self._of_loop(of.key)
            else:
                value, slopes, sides, edge = self._of_rest(of)
                if np.any(np.isnan(slopes)):
                    status, message = "kink", f"{edge}: one-sided derivatives"
                sides = sides if edge else {}
            derivatives = dict(zip(self.paths, map(float, slopes), strict=True))
        except _Found as found:
            value, derivatives, status, message = (
                found.value, unknown, found.status, found.message
            )  # fmt: skip
        return Gradient(name, value, derivatives, status, message, unit, units, sides)

    def _without(self, reason: str) -> tuple[str, str]:
        """Status and message where the equilibrium, or its linearisation, has no derivatives."""
        eq = self.eq
        status = eq.status if eq.status not in ("interior", "empty") else "sliding"
        return status, "; ".join(filter(None, [eq.message, f"no derivatives: {reason}"]))

    def _value(self, of: Quantity | Callable[[Equilibrium], Any]) -> float:
        """A quantity of the rest."""
        if not isinstance(of, Quantity):
            return float(of(self.eq))
        if of.kind == "links":
            value = getattr(list(self.eq.links.values())[of.index], of.key)
            return math.nan if value is None else float(value)
        key = "signal" if of.key == "heard" else of.key
        each = getattr(list(self.eq.flows.values())[of.index], key)
        return float(mean_over_flows(self.eq.net.flows[of.index].n, each))

    def _slopes(self, of: Quantity | Callable[[Equilibrium], Any], moved: Moving) -> Array:
        """Derivatives (K,) of a quantity of the rest."""
        if isinstance(of, Quantity):
            if of.kind == "links":
                return moved.slopes.links[of.key][:, of.index]
            n = self.eq.net.flows[of.index].n
            return mean_over_flows(n, moved.slopes.flows[of.key][of.index])
        shell = functools.partial(_shell, self.eq)
        seen = jax.tree.map(jnp.asarray, moved.seen)

        def along(slopes: Seen) -> Any:
            return jax.jvp(lambda seen: jnp.asarray(of(shell(seen)), float), (seen,), (slopes,))[1]

        return np.asarray(jax.vmap(along)(jax.tree.map(jnp.asarray, moved.slopes)))

    def _of_rest(
        self, of: Quantity | Callable[[Equilibrium], Any]
    ) -> tuple[float, Array, dict[str, tuple[float, float]], str]:
        """The value, its derivatives, those towards smaller and larger values of each parameter,
        and what edge of a regime the rest is at, if any.
        """
        value, found = self._value(of), self.branches
        if isinstance(found, str):
            raise _Found(value, *self._without(found))
        faults = [branch.moving.message for branch in found.each]
        if all(faults):
            raise _Found(value, "singular", faults[0])
        each = [(self._slopes(of, branch.moving), branch) for branch in found.each]
        pace = np.max([branch.moving.pace for branch in found.each], axis=0)
        rounding = _ROUNDING * pace * (1 + abs(value))
        sides = {}
        for k, path in enumerate(self.paths):
            below = [float(slopes[k]) for slopes, branch in each if branch.below[k]]
            above = [float(slopes[k]) for slopes, branch in each if branch.above[k]]
            sides[path] = (_agreed(below, rounding[k]), _agreed(above, rounding[k]))
        both = [_agreed(pair, up_to) for pair, up_to in zip(sides.values(), rounding, strict=True)]
        return value, np.array(both), sides, found.edge

    def _of_loop(self, key: str) -> tuple[float, Array]:
        """A root or a margin."""
        if not self.eq.smooth:
            raise _Found(math.nan, *self._without(f"no linearisation, as {without(self.eq)}"))
        if self.kink:
            found = stability(self.net)
            raise _Found(
                _of_stability(found, key), "kink", "at a kink of the marking the linearisation "
                "jumps, and this quantity with it; the value is that of the worse side",
            )  # fmt: skip
        if key in _ROOT:
            return self._of_root(key)
        return self._of_crossover(key)

    def _moved(self, value: float) -> loop.Motion:
        if self.smooth.message:
            raise _Found(value, "singular", self.smooth.message)
        return self.motion

    def _of_root(self, key: str) -> tuple[float, Array]:
        roots = self.roots
        if roots.rightmost is None:
            raise _Found(math.nan, "none", roots.reason or "there is no characteristic root")
        first = roots.rightmost
        if not roots.proven and self._hidden(first):
            told = "a root right of those located is counted: two that nearly meet"
            raise _Found(math.nan, "grazing", told)
        take = _ROOT[key]
        value = float(take(first))
        others = [s for s in roots.values[1:] if abs(s - first.conjugate()) > _SAME * abs(first)]
        if any(abs(s.real - first.real) <= _SAME * abs(first) for s in others):
            raise _Found(value, "tie", "two characteristic roots are equally far to the right")
        slopes = loop.root_slopes(self.system, first, self._moved(value))
        if slopes is None:
            raise _Found(value, "grazing", "the rightmost root is double")
        return value, take(slopes)

    def _hidden(self, first: complex) -> bool:
        """Whether a root lies right of the one that is taken for the rightmost."""
        line = first.real + _NEAR * abs(first)
        return bool(count_roots(Characteristic(self.system), line, nodes=_BRIEF).number)

    def _of_crossover(self, key: str) -> tuple[float, Array]:
        """The crossover nearest to critical: by angle or gain, for the delay margin by delay."""
        at_gain = key in ("phase_margin", "gain_crossover", "delay_margin")
        far = {
            "delay_margin": lambda c: abs(c.delay_margin),
            "phase_margin": lambda c: abs(c.phase_margin),
            "gain_crossover": lambda c: abs(c.phase_margin),
        }.get(key, lambda c: abs(math.log(c.gain_margin)))
        every = [
            (k, c)
            for k, found in self.margins
            for c in (found.gain_crossovers if at_gain else found.phase_crossovers)
        ]
        if not every:
            value = math.nan if key.endswith("crossover") else math.inf
            raise _Found(value, "no_crossover", "the loop has no such crossover")
        every.sort(key=lambda pair: far(pair[1]))
        link, first = every[0]
        value = float(getattr(first, "frequency" if key.endswith("crossover") else key))
        if len(every) > 1 and far(every[1][1]) - far(first) <= _SAME * far(first):
            raise _Found(value, "tie", "two crossovers are equally near to critical")
        find = loop.gain_crossover_slopes if at_gain else loop.phase_crossover_slopes
        slopes = find(self.system, link, first.frequency, self._moved(value))
        if slopes is None:
            raise _Found(value, "grazing", "the loop only touches its crossover")
        return value, _of_margin(key, first, slopes)


def _of_margin(key: str, at: GainCrossover | PhaseCrossover, slopes: loop.CrossoverSlopes) -> Array:
    """Derivatives (K,) of a margin from those of its crossover."""
    if key.endswith("crossover"):
        return slopes.frequency
    if isinstance(at, PhaseCrossover):
        return -at.gain_margin * slopes.level
    if key == "phase_margin":
        return np.degrees(slopes.level)
    return (slopes.level - at.delay_margin * slopes.frequency) / at.frequency


def _of_stability(found: Any, key: str) -> float:
    """A root or margin of a `Stability`."""
    if key in _ROOT:
        return math.nan if found.rightmost is None else float(_ROOT[key](found.rightmost))
    value = getattr(found, key)
    if value is None:
        return math.nan if key.endswith("crossover") else math.inf
    return float(value)


def _agreed(each: Sequence[float], rounding: float) -> float:
    """One derivative where all are the same but for rounding."""
    if not each:
        return math.nan
    least, most = min(each), max(each)
    apart = _SAME * max(abs(least), abs(most)) + rounding
    return each[-1] if most - least <= apart else math.nan


def _shell(eq: Equilibrium, seen: Seen) -> Equilibrium:
    """The equilibrium with its numbers as JAX arrays."""
    one, many = seen
    links = {
        name: LinkRest(
            queue=one["queue"][k], average=one["average"][k], signal=one["signal"][k],
            utilization=one["utilization"][k], quench_ratio=rest.quench_ratio,
            load=None if rest.load is None else one["load"][k],
        )
        for k, (name, rest) in enumerate(eq.links.items())
    }  # fmt: skip
    flows = {
        name: FlowsRest(
            window=many["window"][i], rtt=many["rtt"][i], rate=many["rate"][i],
            signal=many["heard"][i], active=rest.active,
        )
        for i, (name, rest) in enumerate(eq.flows.items())
    }  # fmt: skip
    return dataclasses.replace(eq, links=links, flows=flows)
