"""Groups of flows in a scenario."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidcc.laws.parameters import Info, Interval, infos
from fluidcc.scenario.fits import check_group
from fluidcc.scenario.laws import Laws, read_name_or_table
from fluidcc.scenario.network import Flows, FlowsInitial, Link, Start
from fluidcc.scenario.reader import FAULTY, Reader, got, sound
from fluidcc.scenario.sender import read_sender
from fluidcc.scenario.window import read_sender_laws

_KEYS = (
    "n", "rtt", "access_delay", "reverse_delay", "route", "reverse_route", "window", "marking",
    "feedback", "estimator", "traffic", "start", "initial", "access_capacity", "sender",
)  # fmt: skip
_MOST = 10_000  # round trips of one group
_START = Info("", "s", "start of a flow", Interval("[0, inf)"))


def _vector(reader: Reader, raw: Any, key: str, info: Info) -> Any:
    """A number, or a list of numbers, as a vector."""
    if not isinstance(raw, list):
        values = [reader.number(raw, key, info)]
    elif len(raw) > _MOST:
        return reader.fault(key, f"at most {_MOST} numbers", f"{len(raw)}")
    elif raw:
        values = [reader.number(v, f"{key}[{k}]", info) for k, v in enumerate(raw)]
    else:
        return reader.fault(key, "at least one number", "an empty list")
    return FAULTY if any(v is FAULTY for v in values) else np.asarray(values, float)


def _spread(reader: Reader, key: str, n: Any, rtt: dict[str, Any], info: Info) -> Any:
    """Round trips spaced evenly from min to max, one flow each."""
    ends = reader.numbers(rtt, f"{key}.rtt", {"min": info, "max": info})
    for name in ("min", "max"):
        if name not in rtt:
            reader.fault(f"{key}.rtt.{name}", "a round trip [s]", "nothing")
    whole = isinstance(n, int | float) and not isinstance(n, bool) and n == n // 1
    if not whole or not 2 <= n <= _MOST:
        expected = f"a whole number from 2 to {_MOST}, as rtt has min and max"
        return reader.fault(f"{key}.n", expected, got(n))
    if len(ends) < 2:
        return FAULTY
    if ends["min"] >= ends["max"]:
        return reader.fault(f"{key}.rtt", "min < max", f"{ends['min']!r} and {ends['max']!r} s")
    return np.ones(int(n)), np.linspace(ends["min"], ends["max"], int(n))


def _classes(reader: Reader, key: str, raw: Mapping[str, Any]) -> Any:
    """How many flows, and their round trips: two vectors of one length."""
    described = infos(Flows)
    for name in ("n", "rtt"):
        if name not in raw:
            reader.missing(f"{key}.{name}", described[name])
    if "n" in raw and isinstance(raw.get("rtt"), dict):
        return _spread(reader, key, raw["n"], raw["rtt"], described["rtt"])
    n, rtt = (
        _vector(reader, raw[name], f"{key}.{name}", described[name])
        if name in raw and not (name == "rtt" and isinstance(raw[name], dict))
        else FAULTY
        for name in ("n", "rtt")
    )
    if n is FAULTY or rtt is FAULTY:
        return FAULTY
    if isinstance(raw["n"], list) != isinstance(raw["rtt"], list) or len(n) != len(rtt):
        size = f"a list of {len(rtt)}" if isinstance(raw["rtt"], list) else "a number"
        return reader.fault(f"{key}.n", f"{size}, as rtt is", got(raw["n"]))
    return n, rtt


def _start(reader: Reader, raw: Any, key: str) -> Any:
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
    """Indices of the links of the route; the only link where there is one and none is named."""
    if not links:
        return FAULTY  # which is told already
    if "route" in raw:
        return _links_passed(reader, raw["route"], f"{key}.route", links)
    if len(links) == 1:
        return (0,)
    return reader.fault(f"{key}.route", f"a list of links out of {', '.join(links)}", "nothing")


def _reverse_route(reader: Reader, raw: Mapping[str, Any], key: str, links: list[str]) -> Any:
    """Indices of the links that acknowledgements pass; () where they meet none."""
    if raw.get("reverse_route", []) == [] or not links:
        return ()
    return _links_passed(reader, raw["reverse_route"], f"{key}.reverse_route", links)


def _ways_back(reader: Reader, raw: Any, key: str, route: Any) -> Any:
    """The delay from the first router to the source, or one for each link of the route."""
    info = infos(Flows)["reverse_delay"]
    if not isinstance(raw, list):
        return reader.number(raw, key, info)
    if route is not FAULTY and len(raw) != len(route):
        expected = f"a number, or a list of {len(route)}, one for each link of the route"
        return reader.fault(key, expected, got(raw))
    ways = _vector(reader, raw, key, info)
    return float(ways[0]) if ways is not FAULTY and len(ways) == 1 else ways


def _quantities(
    reader: Reader, raw: Mapping[str, Any], key: str, packet_size: float | None
) -> dict[str, Any]:
    """Delay and rate of the access link; a delay of 0 is none."""
    described = infos(Flows)
    names = ("access_delay", "access_capacity")
    out = {
        name: reader.number(raw[name], f"{key}.{name}", described[name], packet_size)
        for name in names
        if name in raw
    }
    if out.get("access_delay") == 0:
        del out["access_delay"]
    return sound(out)


def read_flows(reader: Reader, name: str, raw: Any, sizes: Mapping[str, float], laws: Laws) -> Any:
    """The group of flows `name` of a scenario; `sizes` are the links' packet sizes by name [B]."""
    key = f"flows.{name}"
    table = reader.table(raw, key)
    if table is FAULTY:
        return FAULTY
    before = len(reader.faults)
    reader.unknown(table, key, _KEYS)
    route = _route(reader, table, key, list(sizes))
    size = Link.packet_size if route is FAULTY else list(sizes.values())[route[0]]
    values: dict[str, Any] = {"route": route, **_quantities(reader, table, key, size)}
    values["reverse_route"] = _reverse_route(reader, table, key, list(sizes))
    if "reverse_delay" in table:
        at = f"{key}.reverse_delay"
        values["reverse_delay"] = _ways_back(reader, table["reverse_delay"], at, route)
    values |= read_sender_laws(reader, table, key, packet_size=size, laws=laws)
    for kind in ("marking", "estimator", "traffic"):
        if kind in table:
            at = f"{key}.{kind}"
            values[kind] = read_name_or_table(
                reader, table[kind], at, kind, packet_size=size, laws=laws
            )
    if "start" in table:
        values["start"] = _start(reader, table["start"], f"{key}.start")
    if "initial" in table:
        given = reader.numbers(table["initial"], f"{key}.initial", infos(FlowsInitial), size)
        values["initial"] = reader.made(FlowsInitial, f"{key}.initial", given)
    if "sender" in table:
        values["sender"] = read_sender(reader, table["sender"], f"{key}.sender")
    check_group(reader, key, sound(values))
    classes = _classes(reader, key, table)
    if len(reader.faults) > before or route is FAULTY:
        return FAULTY
    n, rtt = classes
    return reader.made(Flows, key, {"n": n, "rtt": rtt, **values})
