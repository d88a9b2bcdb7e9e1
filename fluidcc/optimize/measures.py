"""What can be optimised or bounded, by name: at rest, along a trajectory, in packets.

Quantities at rest are those of `gradient`. A trajectory has two of each link, ``settling_time`` and
``queue_variation``. Metrics of packet runs carry the prefix ``packets.``, such as
``packets.goodput`` or ``packets.links.bottleneck.queue_mean``, and have the names that
`PacketRuns` has. The owner goes without its name where only one fits. A constraint is such a name
with a bound, ``utilization >= 0.95`` or ``queue <= 90 kB``.
"""

from __future__ import annotations

import dataclasses
import re

from fluidcc.analysis.gradients.quantities import quantities
from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.quantities import in_packets
from fluidcc.quantities import units as units_of
from fluidcc.scenario import units
from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import full_path

REST, RUN, PACKETS = "rest", "run", "packets"

RUN_UNITS = {"settling_time": "s", "queue_variation": "1"}
"""`settling_time` is when the queue of the trajectory from the scenario's own start last enters
the band of 5 % of its value at rest, or of one packet if that is wider, to stay there until the end
of the run; infinite if it does not stay. `queue_variation` is the standard deviation of the queue
of the trajectory over its mean, over the time after the warm-up; 0 of one that stays empty."""

MET = 1e-8
"""Share of its scale by which a constraint may be missed and still counts as met: more than the
rounding of searches that end on it, and less than what anybody reads off a result."""

_PREFIX = "packets."
_LISTS = ("goodput_flows",)  # one number a flow
_TEXT = re.compile(r"^\s*([^<>=\s]+)\s*(<=|>=)\s*([^<>=]+?)\s*$")


@dataclasses.dataclass(frozen=True)
class Measure:
    """One number of a network: `engine` says what it is taken from, `key` which one it is.

    `kind` is ``links`` or ``flows`` with the `owner`'s name, or ``loop``.
    """

    name: str
    engine: str
    kind: str
    owner: str
    key: str
    unit: str

    def in_packets(self, net: Network) -> Measure | None:
        """The metric of packets that stands for the same thing; None where there is none."""
        if self.engine == PACKETS:
            return self
        metric = in_packets(net, self.kind, self.owner, self.key)
        return None if metric is None else dataclasses.replace(self, engine=PACKETS, key=metric)


def measures(net: Network) -> dict[str, Measure]:
    """Everything that has a number, by full name."""
    owners = {"links": net.link_names, "flows": net.flow_names}
    found = [
        Measure(q.name, REST, q.kind, owners[q.kind][q.index] if q.kind in owners else "", q.key,
                q.unit)
        for q in quantities(net).values()
    ]  # fmt: skip
    for engine, prefix, kind, known in (
        (RUN, "", "links", RUN_UNITS),
        (PACKETS, _PREFIX, "links", units_of("packets", "links")),
        (PACKETS, _PREFIX, "flows", units_of("packets", "flows")),
    ):
        found += [
            Measure(f"{prefix}{kind}.{owner}.{key}", engine, kind, owner, key, unit)
            for owner in owners[kind]
            for key, unit in known.items()
            if key not in _LISTS
        ]
    return {each.name: each for each in found}


def measure(net: Network, name: str, *, where: str = "optimize") -> Measure:
    """What a name stands for.

    Parameters
    ----------
    net
        The network.
    name
        The name, in full or without an owner that is clear.
    where
        What to call its place in messages.

    Raises
    ------
    ScenarioError
        For a name that nothing has or that several have, with the nearest ones.
    """
    known = measures(net)
    prefix = _PREFIX if name.startswith(_PREFIX) else ""
    short = name.removeprefix(prefix)
    tried = (prefix + full_path(net, one) for one in (short, f"link.{short}", f"flow.{short}"))
    found = [full for full in dict.fromkeys(tried) if full in known]
    if len(found) == 1:
        return known[found[0]]
    ending = [f for f in known if f.startswith(prefix) and f".{f}".endswith(f".{short}")]
    got = "one that several have" if ending or found else "no such one"
    close = tuple(found or ending[:3]) or nearest(name, list(known), least=0.0)
    raise ScenarioError([Fault(where, name, "the name of a quantity", got, close)])


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
