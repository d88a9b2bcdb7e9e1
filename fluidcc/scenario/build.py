"""Tables of a scenario to a network: everything that must fit together is checked here."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fluidcc.laws.parameters import infos
from fluidcc.laws.registry import LAWS
from fluidcc.laws.voice import Voice
from fluidcc.scenario.fits import check_link, check_model, check_way
from fluidcc.scenario.flows import read_flows
from fluidcc.scenario.laws import Laws, make, read_fields, read_law
from fluidcc.scenario.network import Link, LinkInitial, Network
from fluidcc.scenario.reader import FAULTY, Reader, got, sound

_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_TRIPS = 100_000  # of all groups, distinct ones
_MOST = 1000  # links, and groups of flows


class _Read(NamedTuple):
    """A link (or FAULTY), its packet size, by default where that is faulty [B], and its delay."""

    link: Any
    packet_size: float
    delay: Any


def _read_link(reader: Reader, name: str, raw: Any, laws: Laws) -> _Read:
    key = f"links.{name}"
    table = reader.table(raw, key)
    if table is FAULTY:
        return _Read(FAULTY, Link.packet_size, FAULTY)
    before = len(reader.faults)
    described = infos(Link)
    reader.unknown(table, key, [*described, "queue", "voice", "initial"])
    size = Link.packet_size
    if "packet_size" in table:
        size = reader.number(table["packet_size"], f"{key}.packet_size", described["packet_size"])
    known = Link.packet_size if size is FAULTY else size
    values: dict[str, Any] = {"packet_size": size}
    for entry in described:
        if entry in table and entry != "packet_size":
            info = described[entry]
            values[entry] = reader.described(table[entry], f"{key}.{entry}", info, known)
    if "capacity" not in table:
        reader.missing(f"{key}.capacity", described["capacity"])
    if "queue" in table:
        raw_queue = table["queue"]
        values["queue"] = read_law(
            reader, raw_queue, f"{key}.queue", "queue", packet_size=known, laws=laws
        )
    else:
        reader.fault(f"{key}.queue", 'a table such as { law = "droptail" }', "nothing")
    if "initial" in table:
        given = reader.numbers(table["initial"], f"{key}.initial", infos(LinkInitial), known)
        values["initial"] = reader.made(LinkInitial, f"{key}.initial", given)
    if "voice" in table:
        values["voice"] = _read_voice(reader, table["voice"], f"{key}.voice")
    check_link(reader, key, sound(values))
    delay = values.get("delay", Link.delay)
    if len(reader.faults) > before:
        return _Read(FAULTY, known, delay)
    return _Read(reader.made(Link, key, values), known, delay)


def _read_voice(reader: Reader, raw: Any, key: str) -> Any:
    """The calls on a link."""
    table = reader.table(raw, key)
    if table is FAULTY:
        return FAULTY
    reader.unknown(table, key, infos(Voice))
    values = read_fields(reader, table, key, Voice, packet_size=None, laws={})
    return make(reader, Voice, key, values)


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


def build(raw: Mapping[str, Any], where: str, laws: Laws = LAWS) -> Network:
    """The network of a scenario's tables.

    Parameters
    ----------
    raw
        Tables as TOML gives them.
    where
        File, or what else stands in for it in messages.
    laws
        Laws by kind and name.

    Raises
    ------
    ScenarioError
        With every fault there is.
    """
    reader = Reader(where)
    reader.unknown(raw, "", ["title", "source", "model", "links", "flows"])
    texts = {name: reader.text(raw.get(name, ""), name) for name in ("title", "source")}
    choices = reader.numbers(raw.get("model", {}), "model", infos(Network))
    tables = _named(reader, raw, "links")
    read = {name: _read_link(reader, name, table, laws) for name, table in tables.items()}
    links = sound({name: one.link for name, one in read.items()})
    sizes = {name: one.packet_size for name, one in read.items()}
    delays = {name: one.delay for name, one in read.items()}
    groups = {
        name: read_flows(reader, name, table, sizes, laws)
        for name, table in _named(reader, raw, "flows").items()
    }
    trips = sum(np.size(flows.rtt) for flows in sound(groups).values())
    if trips > _TRIPS:
        reader.fault("flows", f"at most {_TRIPS} round trips in all", f"{trips}")
    for name, flows in sound(groups).items():
        check_way(reader, name, flows, delays)
    check_model(reader, choices, sound(groups))
    reader.finish()
    return Network(
        links=tuple(links.values()),
        flows=tuple(groups.values()),
        link_names=tuple(links),
        flow_names=tuple(groups),
        **choices,
        **texts,
    )
