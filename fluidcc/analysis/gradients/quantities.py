"""Quantities of a network at rest by name, such as ``links.bottleneck.queue`` or ``phase_margin``.

One link's or group's quantities go without its name where there is only one.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.quantities import units
from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import full_path

if TYPE_CHECKING:
    from fluidcc.analysis.equilibrium import Equilibrium


@dataclasses.dataclass(frozen=True)
class Quantity:
    """One number of a network: `kind` is ``links``, ``flows`` or ``loop``; `index` of the owner.

    Those of a group with several round trips are means over its flows.
    """

    name: str
    kind: str
    index: int
    key: str
    unit: str

    def read(self, eq: Equilibrium) -> Any:
        """The number of an equilibrium."""
        if self.kind == "links":
            return getattr(list(eq.links.values())[self.index], self.key)
        each = list(eq.flows.values())[self.index]
        value = getattr(each, "signal" if self.key == "heard" else self.key)
        return mean_over_flows(eq.net.flows[self.index].n, value)


def mean_over_flows(n: Any, each: Any) -> Any:
    """Mean over the flows of a group of `n` (m,) of values (..., m), one for each round trip."""
    count = np.asarray(n, float)
    return each @ (count / count.sum())


def quantity(net: Network, name: str, *, where: str = "gradient") -> Quantity:
    """The quantity of a name; raises ScenarioError, with the nearest names, if there is none."""
    known = quantities(net)
    full = full_path(net, name)
    for short, kind in ((name, "link"), (name, "flow")):
        candidate = full_path(net, f"{kind}.{short}")
        full = candidate if full not in known and candidate in known else full
    if full not in known:
        ending = [other for other in known if other.endswith(f".{name}")]
        close = tuple(ending[:3]) or nearest(full, list(known), least=0.0)
        raise ScenarioError([Fault(where, name, "the name of a quantity", "no such one", close)])
    return known[full]


def quantities(net: Network) -> dict[str, Quantity]:
    """All quantities of a network at rest, by full name."""
    found = [
        Quantity(f"links.{name}.{key}", "links", k, key, unit)
        for k, name in enumerate(net.link_names)
        for key, unit in units("rest", "links").items()
        if key != "load" or net.links[k].queue.loads
    ]
    found += [
        Quantity(f"flows.{name}.{key}", "flows", i, key, unit)
        for i, name in enumerate(net.flow_names)
        for key, unit in units("rest", "flows").items()
    ]
    found += [Quantity(key, "loop", 0, key, unit) for key, unit in units("rest", "loop").items()]
    return {q.name: q for q in found}
