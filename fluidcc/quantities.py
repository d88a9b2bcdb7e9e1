"""One table of quantities: name, symbol, unit, meaning, and their names in each engine.

If engines have several names for one quantity, its row in `quantities.csv` lists all of them, so
that another name is one edit there. No other part is imported, so that every part can use it.
"""

import csv
import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from fluidcc.scenario.network import Network


class Quantity(NamedTuple):
    """One quantity of a link, a group of flows, a loop or a distribution of windows (`kind`), or a
    label or column of results (kind `data`).

    The last fields are its names at equilibrium, in a fluid run, in metrics of packet runs
    and in their series, of a fluid run as a whole (`run`), in fluctuations around an
    equilibrium (`noise`), and in the data sets of all other results (`data`); empty if it has none.
    """

    kind: str
    unit: str
    meaning: str
    symbol: str = ""
    equilibrium: str = ""
    fluid: str = ""
    packets: str = ""
    series: str = ""
    run: str = ""
    noise: str = ""
    data: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Its names, each once."""
        return tuple(dict.fromkeys(filter(None, self[4:])))

    @property
    def places(self) -> dict[str, str]:
        """The results that have it, in words, by its name there."""
        words = list(zip(self[4:], _PLACES, strict=True))
        found = {
            n: [_OF_KIND.get(self.kind, w) for own, w in words if own == n] for n in self.names
        }
        return {name: ", ".join(places) for name, places in found.items()}


_PLACES = (
    "equilibrium", "trajectory", "packets", "samples", "whole trajectory",
    "fluctuations", "data sets",
)  # fmt: skip
"""The engines of `Quantity` in words."""
KINDS = {
    "links": "Of a link", "flows": "Of a group of flows", "loop": "Of a loop",
    "response": "Frequency response of a loop",
    "roots": "Roots of a loop", "windows": "Windows of one flow",
    "data": "Labels and columns of data sets",
}  # fmt: skip
"""Kinds of quantities in words."""
_OF_KIND = {
    "loop": "stability", "response": "bode", "roots": "stability", "windows": "window distribution",
}  # fmt: skip

PERCENTILES = {"p5": 0.05, "p50": 0.5, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}
"""Shares of packets or transfers by the ending of the time that they do not exceed."""

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
"""Shares of the time for which quantiles are given."""

LISTS = ("flow_goodput", "link_arrivals")
"""Metrics of packets with a number for each flow or link."""


BY_UNIT = "unit"
"""Unit of a column in which each number has its own, by the coordinate of this name."""

_FILE = Path(__file__).with_suffix(".csv")
TABLE = tuple(Quantity(**row) for row in csv.DictReader(_FILE.read_text("utf-8").splitlines()))
"""All quantities, those of packets in the order in which their metrics are printed."""


@functools.cache
def units(engine: str, kind: str) -> dict[str, str]:
    """Units by the names that an engine (a field of `Quantity`) has for quantities of a kind."""
    pairs = ((getattr(q, engine), q.unit) for q in TABLE if q.kind == kind)
    return {name: unit for name, unit in pairs if name}


def _rows(kind: str, name: str) -> list[Quantity]:
    """The quantities with this name, those of packets last: these call other queues `queue_cov`."""
    rows = (q for q in TABLE if q.kind == kind and name in q.names)
    return sorted(rows, key=lambda q: q.packets == name)


@functools.cache
def quantity(kind: str, name: str, engine: str = "") -> Quantity:
    """The quantity with this name in an engine (a field of `Quantity`), or in any.

    Raises KeyError if there is none.
    """
    for row in _rows(kind, name):
        if not engine or getattr(row, engine) == name:
            return row
    raise KeyError(f"{kind}: no quantity is called {name}")


def attributes(kind: str, name: str, engine: str = "") -> dict[str, str]:
    """Attributes of a variable in a data set: its unit and its meaning."""
    row = quantity(kind, name, engine)
    return {"units": row.unit, "long_name": row.meaning}


def about(name: str, unit: str = "") -> dict[str, str]:
    """Attributes of a label or column of a data set, in another `unit` if one is given."""
    row = attributes("data", name)
    return row | {"units": unit} if unit else row


def known(name: str) -> dict[str, str]:
    """Attributes of a label or number of any result, perhaps of an owner (``tcp.class``); its name
    alone if it is not in the table, as in results of one's own.
    """
    name = name.rpartition(".")[2]
    rows = sorted((q for q in TABLE if name in q.names), key=lambda q: q.kind != "data")
    units, long_name = (rows[0].unit, rows[0].meaning) if rows else ("1", name)
    return {"units": units, "long_name": long_name}


_ENDS = {"least": "min", "greatest": "max"}  # of a cycle, by their names in `extreme`
_QUANTILE = "_quantile"
_STATISTICS = {
    "mean": "mean", "min": "least", "max": "largest", "std": "standard deviation of the",
    "var": "variance of the",
}  # fmt: skip
_WORDS = {"root_real": "growth rate", "unstable": "unstable roots"}
_UNIT = re.compile(r" +(\[[^]]*\]|\([^)]*\))$")
_OWNED = re.compile(r"(links|flows)\.([\w-]+)\.(\w+)((?:\[[^]]*\])*)")


def full_name(kind: str, owner: str, name: str) -> str:
    """The name of a quantity in every result: ``links.bottleneck.queue``; of a loop, and of what
    has no owner, its own.
    """
    return f"{kind}.{owner}.{name}" if owner else name


def at_share(name: str, share: float) -> str:
    """The name of a quantile at a share of the time: ``queue_95``; other names as they are."""
    if not name.endswith(_QUANTILE):
        return name
    return f"{name.removesuffix(_QUANTILE)}_{100 * share:g}"


def name_at(name: str, places: Mapping[str, Any]) -> str:
    """The full name of a variable of a data set at labels of its dimensions.

    A label of the dimension `flow` is the group with the number in it; a dimension that is no owner
    and no statistic puts its label in brackets.
    """
    kind = owner = number = rest = ""
    for dim, label in places.items():
        if dim in ("group", "flow") or (dim == "link" and not owner):
            kind = "links" if dim == "link" else "flows"
            owner, number = label if dim == "flow" else (str(label), "")
            name = name.removeprefix(f"{dim}_")
        elif dim == "share" and name.endswith(_QUANTILE):
            name = at_share(name, label)
        elif dim == "extreme":
            name = f"{name}_{_ENDS[label]}"
        elif label != "":
            rest += f"[{label}]"
    return full_name(kind, owner, name) + number + rest


def without_unit(heading: str) -> str:
    """The name in a heading, ``queue`` of ``queue [packet]`` and of ``queue (packet)``."""
    return _UNIT.sub("", heading.strip())


def split_name(name: str) -> tuple[str, str, str, str] | None:
    """Kind, owner, own name and labels in brackets of a full name; None for other names."""
    found = _OWNED.fullmatch(name)
    return found and (found[1], found[2], found[3], found[4])


def unit_of(kind: str, name: str) -> str:
    """The unit of a quantity; of its least, mean or largest value that of itself."""
    base, _, end = name.rpartition("_")
    for known_name in (name, base if end in ("mean", "min", "max") else name):
        rows = [q for q in TABLE if known_name in q.names]
        if rows:
            return next((q.unit for q in rows if q.kind == kind), rows[0].unit)
    return "1"


def words_of(name: str) -> str:
    """A quantity's own name in words: ``mean queue`` for ``queue_mean``."""
    name = _WORDS.get(name, name)
    base, _, end = name.rpartition("_")
    words = f"{_STATISTICS[end]} {base}" if base and end in _STATISTICS else name
    return words.replace("_", " ")


def about_parameter(path: str, unit: str) -> dict[str, str]:
    """Attributes of the values of a parameter."""
    return {"units": unit, "long_name": f"parameter {path}"}


def labels(**values: Any) -> dict[str, Any]:
    """Coordinates of a data set, each along the dimension of its name."""
    return {name: (name, list(each), about(name)) for name, each in values.items()}


def in_packets(net: "Network", kind: str, owner: str, name: str) -> str | None:
    """The metric of `PacketRuns` that is the same quantity in packets; None if there is none.

    The fluid model's link is the part that voice leaves, so its utilization is of that.

    Parameters
    ----------
    net
        The network.
    kind, owner
        ``links`` or ``flows``, and the name of the link or group.
    name
        The quantity, such as ``queue``.
    """
    metric = next((q.packets for q in _rows(kind, name) if q.packets), None)
    whole = net.by_group
    if metric == "utilization" and whole.links[whole.link_names.index(owner)].voice is not None:
        return "utilization_left"
    return metric
