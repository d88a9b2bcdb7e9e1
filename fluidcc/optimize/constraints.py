"""Constraints: a quantity by name and its bound, read before anything is computed."""

import dataclasses
import re

from fluidcc.analysis.measures import Measure, measure
from fluidcc.errors import Fault, ScenarioError
from fluidcc.quantities import without_unit
from fluidcc.scenario import parsing
from fluidcc.scenario.network import Network

MET = 1e-8
"""Share of its scale by which a constraint may be missed and still counts as met: more than the
rounding of searches that end on it, and less than the digits of a result show."""

_TEXT = re.compile(r"^\s*([^<>=]+?)\s*(<=|>=)\s*([^<>=]+?)\s*$")
_ALIKE = re.compile(r"^\s*([^<>=]+?)\s*([<>≤≥])=?\s*([^<>=]+?)\s*$")  # such as `queue < 3`


@dataclasses.dataclass(frozen=True)
class Constraint:
    """A quantity and its bound; `sign` is 1 for a lower, -1 for an upper bound."""

    measure: Measure
    sign: int
    bound: float

    @property
    def scale(self) -> float:
        """The scale of violations: the size of the bound, or one unit if that is 0."""
        return abs(self.bound) or 1.0

    def slack(self, value: float) -> float:
        """How far the value is on the right side."""
        return self.sign * (value - self.bound)

    def met(self, value: float) -> bool:
        """Whether the value is on the right side, up to `MET`; False without a value."""
        return self.slack(value) >= -MET * self.scale

    @property
    def text(self) -> str:
        """The constraint with its full name and unit."""
        unit = "" if self.measure.unit in ("", "1") else f" {self.measure.unit}"
        return f"{self.measure.name} {'>=' if self.sign > 0 else '<='} {self.bound:g}{unit}"


def constraint(net: Network, text: str, *, where: str = "subject_to") -> Constraint:
    """The constraint of a text: a quantity by name, ``<=`` or ``>=``, and a number in its unit or
    with one of its own; raises ScenarioError, with what was expected, for a text that is none.
    """
    match = _TEXT.match(text)
    if match is None or parsing.NUMBER.match(text.strip()):
        expected = "QUANTITY >= NUMBER or QUANTITY <= NUMBER"
        raise ScenarioError([Fault(where, "", expected, repr(text), _close(text))])
    heading, relation, number = match.groups()
    name = without_unit(heading)
    quantity, unit = measure(net, name, where=where), heading.removeprefix(name).strip(" ()[]")
    if unit not in ("", "1", quantity.unit) and parsing.NUMBER.fullmatch(number):
        number = f"{number} {unit}"
    try:
        bound = float(number.removesuffix("" if quantity.unit == "1" else quantity.unit))
    except ValueError:
        bound = _bound(net, quantity, number, where)
    return Constraint(quantity, 1 if relation == ">=" else -1, bound)


def _close(text: str) -> tuple[str, ...]:
    """A constraint as it is to be written, from one with another sign or with its sides changed."""
    left, sign, right = match.groups() if (match := _ALIKE.match(text)) else ("", "", "")
    upper = sign in "<≤"
    if parsing.NUMBER.match(left) and not parsing.NUMBER.match(right):
        left, upper, right = right, not upper, left
    return (f"{left} {'<=' if upper else '>='} {right}",) if left else ()


def _bound(net: Network, quantity: Measure, number: str, where: str) -> float:
    """A bound that is given with a unit, such as ``20 ms``."""
    net = net.by_group
    link = net.link_names.index(quantity.owner) if quantity.kind == "links" else 0
    if quantity.kind == "flows":
        link = net.flows[net.flow_names.index(quantity.owner)].route[0]
    try:
        return parsing.read(number, quantity.unit, float(net.links[link].packet_size))
    except parsing.UnitError as error:
        fault = Fault(where, quantity.name, str(error), repr(number), error.nearest)
        raise ScenarioError([fault]) from None
