"""A network as tables of plain values, complete with every default, and those as TOML."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidcc.laws.law import AbstractReaction, Law
from fluidcc.laws.own import laws_in
from fluidcc.laws.parameters import infos
from fluidcc.laws.registry import LAWS, kind_of
from fluidcc.scenario.network import OF_QUEUES, Flows, Link, Network, require_network
from fluidcc.scenario.reader import Laws

Tables = dict[str, Any]


def _plain(value: Any) -> Any:
    """A number, or a list of numbers, as TOML would return it."""
    if isinstance(value, str | bool):
        return value
    if np.ndim(value) == 1:
        return [_plain(v) for v in value]
    number = float(value)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _fields(thing: Any) -> Tables:
    """The described fields of a law, link or group; laws within it by name."""
    out = {}
    for name in infos(thing):
        value = getattr(thing, name)
        if value is not None:
            out[name] = value.name if isinstance(value, Law) else _plain(value)
    return out


def _link(link: Link, names: tuple[str, ...]) -> Tables:
    table = _fields(link)
    if link.beside is not None:
        table = {"beside": names[link.beside]} | {k: v for k, v in table.items() if k in OF_QUEUES}
    if not link.fair:
        table.pop("fair", None)
    table["queue"] = {"law": link.queue.name, **_fields(link.queue)}
    if link.voice is not None:
        table["voice"] = _fields(link.voice)
    if link.schedule and link.beside is None:
        table["schedule"] = [
            {name: _plain(v) for name, v in change._asdict().items() if v is not None}
            for change in link.schedule
        ]
    table["initial"] = _fields(link.initial)
    return table


def _round_trips(flows: Flows) -> Tables:
    """`n` and `rtt`: numbers, evenly spread round trips, or lists."""
    n, rtt = np.asarray(flows.n, float), np.asarray(flows.rtt, float)
    if len(n) == 1:
        return {"n": _plain(n[0]), "rtt": _plain(rtt[0])}
    even = np.linspace(rtt[0], rtt[-1], len(rtt))
    if np.all(n == 1) and rtt[0] < rtt[-1] and np.array_equal(rtt, even):
        return {"n": len(n), "rtt": {"min": _plain(rtt[0]), "max": _plain(rtt[-1])}}
    return {"n": _plain(n), "rtt": _plain(rtt)}


def _name_or_table(law: Law) -> Any:
    """A law as a table, or its name alone if it has no parameters."""
    inside = _fields(law)
    return {"law": law.name, **inside} if inside else law.name


def reaction_table(reaction: AbstractReaction) -> Tables:
    """A reaction as it stands in the window table."""
    return {"reaction": reaction.name, **_fields(reaction)}


def _group(flows: Flows, link_names: tuple[str, ...]) -> Tables:
    table: Tables = _round_trips(flows)
    for name in infos(Flows):
        value = getattr(flows, name)
        if name not in table and value is not None:
            table[name] = _plain(value)
    table["route"] = [link_names[k] for k in flows.route]
    if flows.reverse_route:
        table["reverse_route"] = [link_names[k] for k in flows.reverse_route]
    table["window"] = {
        "law": flows.window.name,
        **_fields(flows.window),
        **reaction_table(flows.reaction),
        "loss": flows.loss.name,
        **_fields(flows.loss),
        **_fields(flows.feedback),
    }
    table["feedback"] = flows.feedback.name
    for kind in ("marking", "estimator", "traffic"):
        table[kind] = _name_or_table(getattr(flows, kind))
    low, high, each = flows.start.low, flows.start.high, flows.start.each
    table["start"] = _plain(low) if low == high else {"uniform": [_plain(low), _plain(high)]}
    if each:
        table["start"] = [_plain(time) for time in each]
    if flows.stop:
        stop = [_plain(time) for time in flows.stop]
        table["stop"] = stop if len(stop) > 1 else stop[0]
    table["initial"] = _fields(flows.initial)
    if flows.sender:
        table["sender"] = dict(flows.sender)
    return table


def tables(net: Network) -> Tables:
    """The scenario of a network, every value explicit: SI with packets, laws by name.

    Raises TypeError if `net` is no network.
    """
    require_network(net)
    groups = zip(net.flow_names, net.flows, strict=True)
    return {
        "title": net.title,
        "source": net.source,
        "model": {name: getattr(net, name) for name in infos(Network)},
        "links": {
            name: _link(v, net.link_names)
            for name, v in zip(net.link_names, net.links, strict=True)
        },
        "flows": {name: _group(v, net.link_names) for name, v in groups},
    }


def laws_of(net: Network) -> Laws:
    """The registered laws, and those of the network in place of others of the same name."""
    used: dict[str, dict[str, type[Law]]] = {kind: dict(known) for kind, known in LAWS.items()}
    for law in laws_in(net):
        used[kind_of(law)][law.name] = law
    return used


def literal(value: Any) -> str:
    """A value as TOML text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        inside = ", ".join(f"{key} = {literal(v)}" for key, v in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(value)


def to_toml(values: Tables) -> str:
    """Tables of a scenario as TOML text."""
    lines = [f"{key} = {literal(v)}" for key, v in values.items() if isinstance(v, str)]
    sections = {"model": values["model"]}
    for kind in ("links", "flows"):
        sections.update({f"{kind}.{name}": table for name, table in values[kind].items()})
    for name, table in sections.items():
        lines += ["", f"[{name}]", *(f"{key} = {literal(v)}" for key, v in table.items())]
    return "\n".join(lines) + "\n"
