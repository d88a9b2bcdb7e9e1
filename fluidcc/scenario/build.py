"""Build a network from the tables of a scenario, and check that its parts fit together."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidcc.laws.parameters import Info, Interval, infos
from fluidcc.laws.registry import LAWS
from fluidcc.laws.voice import Voice
from fluidcc.scenario.fits import check_group, check_link, check_model, check_reverse_delay
from fluidcc.scenario.network import Flows, FlowsInitial, Link, LinkInitial, Network, Start
from fluidcc.scenario.reader import FAULTY, Laws, Reader, got, sound
from fluidcc.scenario.sender import read_sender
from fluidcc.scenario.window import read_sender_laws

_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_TRIPS = 100_000  # of all groups, distinct ones
_MOST = 1000  # links, and groups of flows
_MOST_TRIPS = 10_000  # round trips of one group
_START = Info("", "s", "start of a flow", Interval("[0, inf)"))
_LAWS = ("marking", "estimator", "traffic")  # of a group, with a key for each
_KEYS = (
    *infos(Flows), "route", "reverse_route", "window", "feedback", *_LAWS, "start", "initial",
    "sender",
)  # fmt: skip


def build(raw: Mapping[str, Any], where: str, laws: Laws = LAWS) -> Network:
    """The network of a scenario's tables.

    Parameters
    ----------
    raw
        Tables as TOML gives them.
    where
        Name of the file, or of another origin, for messages.
    laws
        Laws by kind and name.

    Raises
    ------
    ScenarioError
        With every fault there is.
    """
    reader = Reader(where, laws)
    reader.unknown(raw, "", ["title", "source", "model", "links", "flows"])
    texts = {name: reader.text(raw.get(name, ""), name) for name in ("title", "source")}
    choices = sound(reader.values(raw.get("model", {}), "model", infos(Network)))
    links = {
        name: _read_link(reader, f"links.{name}", table)
        for name, table in _named(reader, raw, "links").items()
    }
    sizes = {name: _size(link) for name, link in links.items()}
    groups = {
        name: _read_flows(reader, f"flows.{name}", table, sizes)
        for name, table in _named(reader, raw, "flows").items()
    }
    trips = sum(np.size(flows.rtt) for flows in sound(groups).values())
    if trips > _TRIPS:
        reader.fault("flows", f"at most {_TRIPS} round trips in all", f"{trips}")
    delays = {name: link.get("delay", Link.delay) for name, link in links.items()}
    for name, flows in sound(groups).items():
        check_reverse_delay(reader, name, flows, delays)
    check_model(reader, choices, sound(groups))
    reader.finish()
    return Network(
        links=tuple(Link(**link) for link in links.values()),
        flows=tuple(groups.values()),
        link_names=tuple(links),
        flow_names=tuple(groups),
        **choices,
        **texts,
    )


def _named(reader: Reader, raw: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The tables of links or of flows, by name."""
    if key not in raw:
        reader.fault(key, f"at least one table [{key}.NAME]", "nothing")
        return {}
    tables = reader.table(raw[key], key)
    if tables is FAULTY:
        return {}
    if not tables:
        reader.fault(key, f"at least one table [{key}.NAME]", "none")
    if len(tables) > _MOST:
        reader.fault(key, f"at most {_MOST} tables [{key}.NAME]", f"{len(tables)}")
        return {}
    for name in tables:
        if not _NAME.fullmatch(name):
            reader.fault(key, "names of at most 100 letters, digits, _ and -", got(name))
    return tables


def _size(link: Mapping[str, Any]) -> float:
    """The packet size of a link [B]; the default if it is faulty."""
    return sound(link).get("packet_size", Link.packet_size)


def _read_link(reader: Reader, key: str, raw: Any) -> dict[str, Any]:
    """The values of a link, faulty ones as FAULTY."""
    table = reader.table(raw, key)
    if table is FAULTY:
        return {"delay": FAULTY}
    described = infos(Link)
    reader.unknown(table, key, [*described, "queue", "voice", "initial"])
    first = {"packet_size": described.pop("packet_size")}
    values = reader.fields(table, key, first)
    size = _size(values)
    values |= reader.fields(table, key, described, size)
    if "capacity" not in table:
        reader.missing(f"{key}.capacity", described["capacity"])
    queue = table.get("queue")
    if isinstance(queue, dict):
        values["queue"] = reader.law(queue, f"{key}.queue", "queue", size)
    else:
        reader.fault(f"{key}.queue", 'a table such as { law = "droptail" }', got(queue))
    for name, cls in (("initial", LinkInitial), ("voice", Voice)):
        if name in table:
            values[name] = reader.record(table[name], f"{key}.{name}", cls, size)
    check_link(reader, key, sound(values))
    return values


def _read_flows(reader: Reader, key: str, raw: Any, sizes: Mapping[str, float]) -> Any:
    """A group of flows of a scenario; `sizes` are the links' packet sizes by name [B]."""
    table = reader.table(raw, key)
    if table is FAULTY:
        return FAULTY
    before, links, described = len(reader.faults), list(sizes), infos(Flows)
    reader.unknown(table, key, _KEYS)
    route = _route(reader, table, key, links)
    size = Link.packet_size if route is FAULTY else list(sizes.values())[route[0]]
    access = {name: described[name] for name in ("access_delay", "access_capacity")}
    values = reader.fields(table, key, access, size)
    if values.get("access_delay") == 0:
        del values["access_delay"]
    if links and table.get("reverse_route", []) != []:
        at = f"{key}.reverse_route"
        values["reverse_route"] = _links_passed(reader, table["reverse_route"], at, links)
    if "reverse_delay" in table:
        at = f"{key}.reverse_delay"
        values["reverse_delay"] = _reverse_delay(reader, table["reverse_delay"], at, route)
    values |= read_sender_laws(reader, table, key, size)
    for kind in _LAWS:
        if kind in table:
            values[kind] = reader.law_or_name(table[kind], f"{key}.{kind}", kind, size)
    if "start" in table:
        values["start"] = _start(reader, table["start"], f"{key}.start")
    if "initial" in table:
        at = f"{key}.initial"
        values["initial"] = reader.record(table["initial"], at, FlowsInitial, size)
    if "sender" in table:
        values["sender"] = read_sender(reader, table["sender"], f"{key}.sender")
    check_group(reader, key, sound(values))
    classes = _classes(reader, key, table)
    if len(reader.faults) > before or route is FAULTY:
        return FAULTY
    n, rtt = classes
    return reader.made(Flows, key, {"n": n, "rtt": rtt, "route": route, **values})


def _vector(reader: Reader, raw: Any, key: str, info: Info) -> Any:
    """A number, or a list of numbers, as a vector."""
    if not isinstance(raw, list):
        values = [reader.number(raw, key, info)]
    elif len(raw) > _MOST_TRIPS:
        return reader.fault(key, f"at most {_MOST_TRIPS} numbers", f"{len(raw)}")
    elif raw:
        values = [reader.number(v, f"{key}[{k}]", info) for k, v in enumerate(raw)]
    else:
        return reader.fault(key, "at least one number", "an empty list")
    return FAULTY if any(v is FAULTY for v in values) else np.asarray(values, float)


def _spread(reader: Reader, key: str, n: Any, rtt: dict[str, Any], info: Info) -> Any:
    """Round trips spaced evenly from min to max, one flow each."""
    ends = sound(reader.values(rtt, f"{key}.rtt", {"min": info, "max": info}))
    for name in ("min", "max"):
        if name not in rtt:
            reader.fault(f"{key}.rtt.{name}", "a round trip [s]", "nothing")
    whole = isinstance(n, int | float) and not isinstance(n, bool) and n == n // 1
    if not whole or not 2 <= n <= _MOST_TRIPS:
        expected = f"a whole number from 2 to {_MOST_TRIPS}, as rtt has min and max"
        return reader.fault(f"{key}.n", expected, got(n))
    if len(ends) < 2:
        return FAULTY
    if ends["min"] >= ends["max"]:
        return reader.fault(f"{key}.rtt", "min < max", f"{ends['min']!r} and {ends['max']!r} s")
    return np.ones(int(n)), np.linspace(ends["min"], ends["max"], int(n))


def _classes(reader: Reader, key: str, raw: Mapping[str, Any]) -> Any:
    """How many flows, and their round trips: two vectors of one length."""
    described = infos(Flows)
    missing = [name for name in ("n", "rtt") if name not in raw]
    for name in missing:
        reader.missing(f"{key}.{name}", described[name])
    if "n" in raw and isinstance(raw.get("rtt"), dict):
        return _spread(reader, key, raw["n"], raw["rtt"], described["rtt"])
    read = [
        _vector(reader, raw[name], f"{key}.{name}", described[name])
        for name in ("n", "rtt")
        if name in raw and not isinstance(raw.get("rtt"), dict)
    ]
    if missing or any(values is FAULTY for values in read):
        return FAULTY
    n, rtt = read
    if isinstance(raw["n"], list) != isinstance(raw["rtt"], list) or len(n) != len(rtt):
        size = f"a list of {len(rtt)}" if isinstance(raw["rtt"], list) else "a number"
        return reader.fault(f"{key}.n", f"{size}, as rtt is", got(raw["n"]))
    return n, rtt


def _start(reader: Reader, raw: Any, key: str) -> Any:
    """When flows start: a time, or two between which each does."""
    if not isinstance(raw, dict):
        at = reader.number(raw, key, _START)
        return FAULTY if at is FAULTY else Start(at, at)
    reader.unknown(raw, key, ["uniform"])
    ends = raw.get("uniform")
    if not isinstance(ends, list) or len(ends) != 2:
        return reader.fault(f"{key}.uniform", "two times, [first, last]", got(ends))
    low, high = (reader.number(v, f"{key}.uniform[{k}]", _START) for k, v in enumerate(ends))
    if low is FAULTY or high is FAULTY:
        return FAULTY
    if low > high:
        return reader.fault(f"{key}.uniform", "first <= last", f"{low!r} and {high!r} s")
    return Start(low, high)


def _links_passed(reader: Reader, route: Any, key: str, links: list[str]) -> Any:
    """Indices of the links that a list names, each once."""
    if not isinstance(route, list) or not 0 < len(route) <= max(len(links), 100):
        return reader.fault(key, "a list of names of links", got(route))
    names = [reader.word(name, f"{key}[{k}]", links) for k, name in enumerate(route)]
    if any(name is FAULTY for name in names):
        return FAULTY
    if len(set(names)) < len(names):
        return reader.fault(key, "each link once", got(route))
    return tuple(links.index(name) for name in names)


def _route(reader: Reader, raw: Mapping[str, Any], key: str, links: list[str]) -> Any:
    """Indices of the links of the route; the only link if none is named."""
    if not links:
        return FAULTY  # already reported
    if "route" in raw:
        return _links_passed(reader, raw["route"], f"{key}.route", links)
    if len(links) == 1:
        return (0,)
    return reader.fault(f"{key}.route", f"a list of links out of {', '.join(links)}", "nothing")


def _reverse_delay(reader: Reader, raw: Any, key: str, route: Any) -> Any:
    """The delay from the first router to the source, or one for each link of the route."""
    info = infos(Flows)["reverse_delay"]
    if not isinstance(raw, list):
        return reader.number(raw, key, info)
    if route is not FAULTY and len(raw) != len(route):
        expected = f"a number, or a list of {len(route)}, one for each link of the route"
        return reader.fault(key, expected, got(raw))
    delays = _vector(reader, raw, key, info)
    return float(delays[0]) if delays is not FAULTY and len(delays) == 1 else delays
