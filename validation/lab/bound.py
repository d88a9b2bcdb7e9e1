"""What declares a published bound: a statement, the definitions it depends on, how to attack it."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import sympy as sp

from fluidcc.scenario.network import Network

Definitions = Mapping[str, str]
"""One value for each axis of the definitions."""

Point = Mapping[str, float]
"""A value for each range of a search."""

ROUNDING = 1e-9
_RULES = "it speaks of rules alone, whatever the network"


class Range(NamedTuple):
    """Values of one parameter in a search, and the one where cases are simplest."""

    low: float
    high: float
    simple: float
    kind: str = "linear"  # or "log", or "whole" for whole numbers
    grid: float = 0.0  # half of the draws are multiples of this, if it is above 0
    small: tuple[float, ...] = ()  # values of which all combinations are tried


class Judged(NamedTuple):
    """What is bounded in one case, its bound, and by how much the bound is missed (above 0)."""

    bound: float
    value: float
    excess: float


class Identity(NamedTuple):
    """One step of a derivation: two expressions that are the same."""

    words: str
    left: Any
    right: Any

    @property
    def holds(self) -> bool:
        """Whether SymPy finds no difference."""
        difference = sp.sympify(self.left) - sp.sympify(self.right)
        return sp.simplify(sp.nsimplify(difference, rational=True)) == 0

    def __str__(self) -> str:
        return f"{self.words}: {sp.sstr(sp.simplify(self.right))}"


def at_most(value: float, bound: float) -> Judged:
    """A value that must not be above its bound."""
    return Judged(float(bound), float(value), float(value) - float(bound))


def at_least(value: float, bound: float) -> Judged:
    """A value that must not be below its bound."""
    return Judged(float(bound), float(value), float(bound) - float(value))


def within(value: float, target: float, tolerance: float) -> Judged:
    """A value that must not be farther from its target than a tolerance."""
    return Judged(float(target), float(value), abs(float(value) - float(target)) - tolerance)


def every(axes: Mapping[str, Iterable[str]]) -> tuple[dict[str, str], ...]:
    """All combinations of values of axes, those of the last axis side by side."""
    return tuple(
        dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())
    )


@dataclasses.dataclass(frozen=True)
class Bound:
    """A published statement about networks, or about the rules of a law.

    Parameters
    ----------
    id, source, statement, hypotheses, claims
        Its name; the key of the bibliography with section or equation; what is stated, and under
        which conditions; the numbers of the claims that it decides.
    judge
        Compares a subject, and what was measured of it, with the bound under some definitions.
    ranges
        The parameters of a search under some definitions.
    engine
        What measures: ``packets``, ``fluid`` or ``rules``.
    axes, judged
        The definitions that the words leave open, with their values; those in `judged` change only
        how a subject is judged, the others which network is searched too.
    readings
        The definitions that are searched, first those of the words.
    subject
        What is judged at a point of a search: a network, or the numbers of the point themselves.
    measure
        Runs what has to be run: judging a subject by several definitions needs it once.
    obstacle, of_network, found_in
        Of a network: why the statement says nothing about it, empty where it does; the subject that
        it is; the definitions that it settles.
    silent, settled
        Of what was measured: why the statement says nothing about it; the definitions it settles.
    derivation
        The steps that follow from the laws by algebra.
    quick
        Networks searched for each reading unless given otherwise.
    reached, clear
        A bound missed by less is met; least excess of the counterexample shown, if there is one.
    asked
        Whether it is searched only if it is named, as it takes long.
    """

    id: str
    source: str
    statement: str
    judge: Callable[[Any, Any, Definitions], Judged]
    ranges: Callable[[Definitions], Mapping[str, Range]]
    readings: tuple[Definitions, ...]
    claims: tuple[str, ...] = ()
    hypotheses: tuple[str, ...] = ()
    engine: str = "rules"
    axes: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    judged: tuple[str, ...] = ()
    quick: int = 40
    reached: float = ROUNDING
    clear: float = ROUNDING
    asked: bool = False
    subject: Callable[[Point, Definitions], Any] = lambda point, definitions: point
    measure: Callable[[Any], Any] = lambda subject: None
    obstacle: Callable[[Network], str] = lambda net: _RULES
    of_network: Callable[[Network], Any] = lambda net: net
    found_in: Callable[[Network], Definitions] = lambda net: {}
    silent: Callable[[Any], str] = lambda measured: ""
    settled: Callable[[Any], Definitions] = lambda measured: {}
    derivation: Callable[[], tuple[Identity, ...]] = lambda: ()

    @property
    def networks(self) -> tuple[str, ...]:
        """The axes that change the network, not only the judging."""
        return tuple(axis for axis in self.axes if axis not in self.judged)

    def defined(self, given: Definitions) -> dict[str, str]:
        """All axes: those given, the first value of the others."""
        return {name: given.get(name, values[0]) for name, values in self.axes.items()}


def bound(
    id: str,
    source: str,
    statement: str,
    *,
    ranges: Mapping[str, Range] | Callable[[Definitions], Mapping[str, Range]],
    axes: Mapping[str, tuple[str, ...]] | None = None,
    readings: Iterable[Definitions] | None = None,
    **parts: Any,
) -> Callable[[Callable], Bound]:
    """Declare a function of ``validation/bounds`` as that which judges a bound.

    Arguments as in `Bound`: `ranges` may be the same under all definitions, and `readings` are all
    combinations of the axes by default.
    """
    axes = axes or {}
    read = every(axes) if readings is None else tuple(readings)
    ranged = ranges if callable(ranges) else lambda definitions: ranges
    return lambda judge: Bound(id, source, statement, judge, ranged, read, axes=axes, **parts)


def packet_means(
    net: Network, *, until: float, warmup: float = 0.0, seeds: Iterable[int] = (1,)
) -> dict[str, Any]:
    """Means over runs that end at `until`, counted from `warmup` on [s]: links and flows by name.

    Searches run many short ones, so one after the other.
    """
    from fluidcc.packets.run import simulate_packets

    found = simulate_packets(net, until=until, warmup=warmup, seeds=seeds, threads=1)
    return found.complete().mean
