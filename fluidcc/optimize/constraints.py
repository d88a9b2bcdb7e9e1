"""Constraints: a quantity by name with a bound, ``utilization >= 0.95`` or ``queue <= 90 kB``."""

from __future__ import annotations

import dataclasses
import re

from fluidcc.analysis.measures import Measure, measure
from fluidcc.errors import Fault, ScenarioError
from fluidcc.scenario import units
from fluidcc.scenario.network import Network

MET = 1e-8
"""Share of its scale by which a constraint may be missed and still counts as met: more than the
rounding of searches that end on it, and less than what anybody reads off a result."""

_TEXT = re.compile(r"^\s*([^<>=\s]+)\s*(<=|>=)\s*([^<>=]+?)\s*$")


@dataclasses.dataclass(frozen=True)
class Constraint:
    """A quantity and its bound; `sign` is 1 where it has to be at least that, -1 at most."""

    measure: Measure
    sign: int
    bound: float

    @property
    def scale(self) -> float:
        """What a violation is measured by: the bound, or one unit where that is 0."""
        return abs(self.bound) or 1.0

    def slack(self, value: float) -> float:
        """How far the value is on the right side."""
        return self.sign * (value - self.bound)

    def met(self, value: float) -> bool:
        """Whether the value is on the right side, up to `MET`; not where there is no value."""
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
    if match is None:
        expected = "QUANTITY >= NUMBER or QUANTITY <= NUMBER"
        raise ScenarioError([Fault(where, "", expected, repr(text))])
    name, relation, number = match.groups()
    found = measure(net, name, where=where)
    try:
        bound = float(number.removesuffix("" if found.unit == "1" else found.unit))
    except ValueError:
        bound = _bound(net, found, number, where)
    return Constraint(found, 1 if relation == ">=" else -1, bound)


def _bound(net: Network, found: Measure, number: str, where: str) -> float:
    """A bound with a unit of its own, such as ``20 ms``."""
    link = net.link_names.index(found.owner) if found.kind == "links" else 0
    if found.kind == "flows":
        link = net.flows[net.flow_names.index(found.owner)].route[0]
    try:
        return units.read(number, found.unit, float(net.links[link].packet_size))
    except units.UnitError as error:
        fault = Fault(where, found.name, str(error), repr(number), error.nearest)
        raise ScenarioError([fault]) from None
