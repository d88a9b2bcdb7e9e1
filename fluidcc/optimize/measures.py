"""What can be optimised or bounded, by name: at rest, along a trajectory, in packets.

Quantities at rest are those of `gradient`. A trajectory has two of each link, ``settling_time`` and
``queue_variation``. Metrics of packet runs carry the prefix ``packets.``, such as
``packets.goodput`` or ``packets.links.bottleneck.queue_mean``, and have the names that
`PacketRuns` has. The owner goes without its name where only one fits.
"""

from __future__ import annotations

import dataclasses

from fluidcc.analysis.gradients.quantities import Quantity, quantities
from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.quantities import in_packets, units
from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import full_path

REST, RUN, PACKETS = "rest", "run", "packets"

RUN_UNITS = {"settling_time": "s", "queue_variation": "1"}
"""`settling_time` is when the queue of the trajectory from the scenario's own start last enters
the band of 5 % of its value at rest, or of one packet if that is wider, to stay there until the end
of the run; infinite if it does not stay. `queue_variation` is the standard deviation of the queue
of the trajectory over its mean, over the time after the warm-up; 0 of one that stays empty."""

_PREFIX = "packets."
_LISTS = ("goodput_flows",)  # one number a flow


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
    found = [_at_rest(net, q) for q in quantities(net).values()]
    owners = (("links", net.link_names), ("flows", net.flow_names))
    found += [
        Measure(f"links.{name}.{key}", RUN, "links", name, key, unit)
        for name in net.link_names
        for key, unit in RUN_UNITS.items()
    ]
    found += [
        Measure(f"{_PREFIX}{kind}.{name}.{key}", PACKETS, kind, name, key, unit)
        for kind, names in owners
        for name in names
        for key, unit in units("packets", kind).items()
        if key not in _LISTS
    ]
    return {each.name: each for each in found}


def _at_rest(net: Network, q: Quantity) -> Measure:
    names = {"links": net.link_names, "flows": net.flow_names}.get(q.kind)
    return Measure(q.name, REST, q.kind, names[q.index] if names else "", q.key, q.unit)


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
    ending = tuple(full for full in known if full.startswith(prefix) and _ends(full, short))
    got = "one that several have" if ending or found else "no such one"
    close = tuple(found) or ending[:3] or nearest(name, list(known), least=0.0)
    raise ScenarioError([Fault(where, name, "the name of a quantity", got, close)])


def _ends(full: str, short: str) -> bool:
    return full == short or full.endswith(f".{short}")
