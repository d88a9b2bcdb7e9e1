"""What a bound is: a statement, the definitions that it depends on, and how to attack it."""

import abc
import itertools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import sympy as sp

from fluidcc.scenario.network import Network

Definitions = Mapping[str, str]
"""One value for each axis of the definitions."""

Point = Mapping[str, float]
"""A value for each range of a search."""

ROUNDING = 1e-9


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


def every(axes: Mapping[str, tuple[str, ...]]) -> tuple[dict[str, str], ...]:
    """All combinations of values of axes, those of the last axis side by side."""
    return tuple(
        dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())
    )


class AbstractBound(abc.ABC):
    """A published statement about networks, or about rules of a law.

    A `subject` is what is judged: a network, or a record of numbers where rules alone matter.
    """

    id: ClassVar[str]
    source: ClassVar[str]  # key of the bibliography, section or equation
    claims: ClassVar[tuple[str, ...]] = ()  # numbers in the ledger of claims
    statement: ClassVar[str]
    hypotheses: ClassVar[tuple[str, ...]] = ()
    engine: ClassVar[str]  # what measures: packets, fluid or rules
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType({})
    networks: ClassVar[tuple[str, ...]] = ()  # axes that change the network, not only the judging
    readings: ClassVar[tuple[Mapping[str, str], ...]] = (MappingProxyType({}),)
    quick: ClassVar[int] = 40  # networks searched for each reading unless told otherwise
    reached: ClassVar[float] = ROUNDING  # a bound missed by less is met
    clear: ClassVar[float] = ROUNDING  # least excess of the counterexample shown, if there is one
    asked: ClassVar[bool] = False  # searched only where it is named, as it takes long

    def defined(self, given: Definitions) -> dict[str, str]:
        """All axes: those given, the first value of the others."""
        return {name: given.get(name, values[0]) for name, values in self.axes.items()}

    @abc.abstractmethod
    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """The parameters of a search."""

    @abc.abstractmethod
    def subject(self, point: Point, definitions: Definitions) -> Any:
        """What is judged at a point of the search."""

    def measure(self, subject: Any) -> Any:
        """Run what has to be run; judging a subject by several definitions needs it once."""
        return None

    @abc.abstractmethod
    def judge(self, subject: Any, measured: Any, definitions: Definitions) -> Judged:
        """Compare with the bound."""

    def obstacle(self, net: Network) -> str:
        """Why the statement says nothing about a network; empty where it does."""
        return "it speaks of rules alone, whatever the network"

    def of_network(self, net: Network) -> Any:
        """The subject that a network is."""
        return net

    def found_in(self, net: Network) -> Definitions:
        """The definitions that a network settles."""
        return {}

    def silent(self, measured: Any) -> str:
        """Why the statement says nothing about what was measured; empty where it does."""
        return ""

    def settled(self, measured: Any) -> Definitions:
        """The definitions that only what was measured settles."""
        return {}

    def derivation(self) -> tuple[Identity, ...]:
        """The steps that follow from the laws by algebra."""
        return ()
