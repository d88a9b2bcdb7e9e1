"""The one table of scalar quantities of a network, by names such as ``links.bottleneck.queue``, and
a quantity with its derivatives.

`gradient`, `sensitivity` and `optimize` use these names for quantities of an equilibrium, of a
trajectory, of packet runs (with the prefix ``packets.``) and of fluctuations (``noise.``, such as
``noise.queueing_delay_95``, which the queueing delay does not exceed for 95 % of the time). The
name of the owner may be omitted if it is unique; a link comes before a group.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.quantities import (
    BY_UNIT,
    LISTS,
    SHARES,
    about,
    at_share,
    full_name,
    in_packets,
    labels,
    units,
    without_unit,
)
from fluidcc.result import Result
from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import full_path

if TYPE_CHECKING:
    import xarray

    from fluidcc.analysis.equilibrium import Equilibrium

Known = TypeVar("Known")

EQUILIBRIUM, FLUID, RUN, PACKETS, NOISE = "equilibrium", "fluid", "run", "packets", "noise"
"""Engines that compute a quantity: the equilibrium and its loop, a trajectory at one time, a
trajectory as a whole, packet runs, fluctuations around an equilibrium."""

_LISTED = 18  # names in a message
_PREFIXES = {PACKETS: "packets.", NOISE: "noise."}
_LISTS = (*LISTS, "queue_density")  # one number a flow, a link or a frequency


@dataclasses.dataclass(frozen=True)
class Measure:
    """A scalar quantity of a network: `engine` computes it, `key` is its short name.

    `kind` is ``links`` or ``flows`` with the `owner`'s name, or ``loop``. Those of a group with
    several round trips are means over its flows, or of the round trip with this `number`.
    """

    name: str
    engine: str
    kind: str
    owner: str
    key: str
    unit: str
    number: int | None = None

    def read(self, eq: Equilibrium) -> Any:
        """The value at an equilibrium; None if it has none."""
        own = getattr(eq, self.kind, {}).get(self.owner)
        if self.kind != "flows":
            return getattr(own, self.key, None)
        each = getattr(own, self.key, None)
        flows = eq.net.flows[eq.net.flow_names.index(self.owner)]
        return None if each is None else self.of_flows(flows.n, each)

    def of_flows(self, n: Any, each: Any) -> Any:
        """The value from those (..., m) of the round trips of a group of `n` (m,) flows."""
        return mean_over_flows(n, each) if self.number is None else each[..., self.number]

    def in_packets(self, net: Network) -> Measure | None:
        """The equivalent metric of packet runs; None if there is none."""
        if self.engine == PACKETS:
            return self
        metric = in_packets(net, self.kind, self.owner, self.key)
        return (
            None
            if metric is None or self.number is not None
            else dataclasses.replace(self, engine=PACKETS, key=metric)
        )


def mean_over_flows(n: Any, each: Any) -> Any:
    """Mean over the flows of a group of `n` (m,) of values (..., m), one for each round trip."""
    count = np.asarray(n, float)
    return each @ (count / count.sum())


def measures(net: Network, *engines: str) -> dict[str, Measure]:
    """All quantities of these engines, by full name."""
    net = net.by_group
    owners = {"links": net.link_names, "flows": net.flow_names, "loop": ("",)}
    found = []
    for engine in engines:
        prefix = _PREFIXES.get(engine, "")
        for kind, names in owners.items():
            found += [
                Measure(
                    prefix + full_name(kind, owner, key) + f"[{number}]" * (number is not None),
                    engine, kind, owner, key, unit, number,
                )
                for k, owner in enumerate(names)
                for row, unit in units(engine, kind).items()
                for key in dict.fromkeys(at_share(row, share) for share in SHARES)
                if key not in _LISTS
                and (engine != EQUILIBRIUM or key != "load_factor" or net.links[k].queue.loads)
                for number in (None, *_round_trips(net, engine, kind, k))
            ]  # fmt: skip
    return {each.name: each for each in found}


def _round_trips(net: Network, engine: str, kind: str, k: int) -> range:
    """Numbers of the round trips of a group, if it has several and they have quantities."""
    count = np.size(net.flows[k].rtt) if kind == "flows" else 1
    return range(count if count > 1 and engine in (EQUILIBRIUM, FLUID) else 0)


def measure(net: Network, name: str, *, where: str = "optimize") -> Measure:
    """The quantity of a name in any engine of `optimize`; raises as `find` does."""
    return find(net, name, measures(net, EQUILIBRIUM, RUN, PACKETS, NOISE), where)


def find(
    net: Network, name: str, known: Mapping[str, Known], where: str, what: str = "quantity"
) -> Known:
    """The entry of `known` that a full or short name stands for.

    Parameters
    ----------
    net
        The network.
    name
        The name, in full or without an owner that is unique.
    known
        Possible entries by full name.
    where, what
        For messages: the place of the name, and the kind of thing that it names.

    Raises
    ------
    ScenarioError
        For an unknown or ambiguous name, with the nearest ones.
    """
    name = without_unit(name)
    prefix = next((p for p in _PREFIXES.values() if name.startswith(p)), "")
    short = name.removeprefix(prefix)
    tried = (prefix + full_path(net, one) for one in (short, f"link.{short}", f"flow.{short}"))
    found = next((full for full in tried if full in known), None)
    if found is not None:
        return known[found]
    own = [full for full in known if full.startswith(prefix)] or [*known]
    owned, longer = ([f for f in own if f.endswith(f"{mark}{short}")] for mark in "._")
    got = "an ambiguous name" if owned else "an unknown name"
    close = tuple((owned or longer)[:3]) or nearest(name, list(known), least=0.0)
    raise ScenarioError([Fault(where, name, f"a {what}{listed(own)}", got, close)])


def listed(names: Iterable[str]) -> str:
    """Names for a message without their owners, each once, the first of many."""
    short = [*dict.fromkeys(name.rpartition(".")[2].partition("[")[0] for name in names)]
    more = ", ... (`fluidcc list quantities`)" if len(short) > _LISTED else ""
    return f" among {', '.join(short[:_LISTED])}{more}"


@dataclasses.dataclass(frozen=True, repr=False)
class Gradient(Result):
    """A quantity of a network and its derivatives by parameters, by path.

    `status` is `ok`, or the reason for NaN derivatives: `kink` (they differ on both sides, as at a
    corner of the marking function, or where a queue begins to empty: `sides` has those towards
    smaller and towards larger values, NaN if unknown), `tie` (two roots or crossovers are equally
    near), `grazing` (a double crossover or root), `no_crossover` (an infinite margin), `singular`,
    or the status of an equilibrium without derivatives, or without a linearisation for a root or
    margin (`discontinuity`, `sliding`, `continuum`, `none`); `message` has details. `units` are
    those of the parameters.

    `of` is the quantity, `value` its value in `unit`; `derivatives` are in that over `units`.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.load("hollot2001/slow")
    >>> found = fc.gradient(net, "queue", ["flow.n"])
    >>> round(found.value, 3), round(found.derivatives["flow.n"], 3)
    (194.4, 1.353)
    """

    _view = "runs.GradientView"
    _in_dict = "of", "value", "unit", "derivatives", "units", "status", "message", "sides"

    of: str
    value: float
    derivatives: dict[str, float]
    status: str
    message: str
    unit: str
    units: dict[str, str]
    sides: dict[str, tuple[float, float]]

    @property
    def failure(self) -> str:
        """Why derivatives are unknown; empty if all are known, or those of both sides."""
        each = [self.sides.get(path, (value,)) for path, value in self.derivatives.items()]
        known = all(math.isfinite(value) for values in each for value in values)
        return "" if known else f"{self.of}: {self.message or self.status}"

    def to_xarray(self) -> xarray.Dataset:
        """The value and its derivatives as labelled arrays with units."""
        import xarray as xr

        paths = list(self.derivatives)
        variables = {
            "value": ((), self.value, about("value", self.unit)),
            "derivative": (
                "parameter", [self.derivatives[path] for path in paths],
                about("derivative", BY_UNIT),
            ),
        }  # fmt: skip
        each = [f"({self.unit}) / ({self.units[path]})" for path in paths]
        coords = labels(parameter=paths) | {"unit": ("parameter", each, about("unit"))}
        attrs = {"of": self.of, "status": self.status, "message": self.message}
        return xr.Dataset(variables, coords=coords, attrs=attrs)
