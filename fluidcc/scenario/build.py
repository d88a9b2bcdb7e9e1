"""Build a network from the tables of a scenario, and check that its parts fit together, beyond the
range of each value.
"""

import itertools
import re
from collections.abc import Container, Iterator, Mapping
from typing import Any

import numpy as np

from fluidcc.laws.law import SIGNALS, AbstractFeedback, MarkingPoint, Signal
from fluidcc.laws.marking import Coupled, EqualWindow
from fluidcc.laws.parameters import Info, Interval, infos
from fluidcc.laws.registry import LAWS
from fluidcc.laws.voice import Voice
from fluidcc.laws.window.polynomial import AbstractPolynomial
from fluidcc.scenario.network import (
    NO_OTHERS,
    OF_QUEUES,
    ONE_SCHEDULER,
    Change,
    Flows,
    FlowsInitial,
    Link,
    LinkInitial,
    Network,
    Start,
    early_stop,
    forward_delays,
    unfit_fair,
    unfit_reverse_delays,
    unfit_route,
)
from fluidcc.scenario.reader import FAULTY, Laws, Reader, got, sound
from fluidcc.scenario.sender import read_sender, read_sender_laws

_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_TRIPS = 100_000  # of all groups, distinct ones
_MOST = 1000  # links, and groups of flows
_MOST_TRIPS = 10_000  # round trips of one group
_MOST_CHANGES = 10_000  # of a link
_START = Info("", "s", "start of a flow", Interval("[0, inf)"))
_STOP = Info("", "s", "time from which a flow has no new data", Interval("(0, inf)"))
_AT = Info("", "s", "time of the change", Interval("(0, inf)"))
_LAWS = ("marking", "estimator", "traffic")  # of a group, with a key for each
_KEYS = (
    *infos(Flows), "route", "reverse_route", "window", "feedback", *_LAWS, "start", "stop",
    "initial", "sender",
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
    found = _named(reader, raw, "links")
    links = {
        name: _read_link(reader, f"links.{name}", _shared(reader, name, table, found))
        for name, table in found.items()
    }
    sizes = {name: _size(link) for name, link in links.items()}
    aside = {name for name, table in found.items() if isinstance(table, dict) and "beside" in table}
    groups = {
        name: _read_flows(reader, f"flows.{name}", table, sizes, aside)
        for name, table in _named(reader, raw, "flows").items()
    }
    trips = sum(np.size(flows.rtt) for flows in sound(groups).values())
    if trips > _TRIPS:
        reader.fault("flows", f"at most {_TRIPS} round trips in all", f"{trips}")
    delays = {name: link.get("delay", Link.delay) for name, link in links.items()}
    for name, flows in sound(groups).items():
        _check_reverse_delay(reader, name, flows, delays)
        _check_route(reader, name, flows, links)
    _check_model(reader, choices, sound(groups))
    reader.finish()
    return Network(
        links=tuple(Link(**link, beside=_beside(found, name)) for name, link in links.items()),
        flows=tuple(groups.values()),
        link_names=tuple(links),
        flow_names=tuple(groups),
        **choices,
        **texts,
    )


def _named(reader: Reader, raw: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The tables of links or of flows, by name."""
    tables = raw.get(key, {})
    if not isinstance(tables, dict) or not tables:
        shown = got(tables) if tables else "none" if key in raw else "nothing"
        reader.fault(key, f"at least one table [{key}.NAME]", shown)
        return {}
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


def _beside(tables: Mapping[str, Any], name: str) -> int | None:
    """The index of the link that a queue is beside."""
    other = tables[name].get("beside")
    return None if other is None else list(tables).index(other)


def _shared(reader: Reader, name: str, raw: Any, tables: Mapping[str, Any]) -> Any:
    """The table of a link; that of a queue beside another has the keys of that link too."""
    if not isinstance(raw, dict) or "beside" not in raw:
        for k in ("weight", "shift") if isinstance(raw, dict) else ():
            if k in raw:
                reader.fault(f"links.{name}.{k}", "it with beside = a link", got(raw[k]))
        return raw
    key, others = f"links.{name}.beside", {k: t for k, t in tables.items() if k != name}
    whole = {k: t for k, t in others.items() if isinstance(t, dict)}
    taken = {t.get("beside") for t in whole.values()}
    free = [k for k, t in whole.items() if "beside" not in t and k not in taken]
    other = reader.word(raw["beside"], key, free)
    if other is FAULTY:
        return raw
    seconds = {"voice": "which has the second queue", "fair": "which has one for each flow"}
    for own, why in seconds.items():
        if tables[other].get(own):
            reader.fault(key, f"a link without {own}, {why}", got(other))
    given = [k for k in raw if k not in (*OF_QUEUES, "beside")]
    reader.unknown({k: raw[k] for k in given if k not in infos(Link)}, f"links.{name}", OF_QUEUES)
    for k in (k for k in given if k in infos(Link) or k == "schedule"):
        reader.fault(f"links.{name}.{k}", f"none, as it is that of links.{other}", got(raw[k]))
    lent = {k: v for k, v in tables[other].items() if k not in (*OF_QUEUES, "voice")}
    if "weight" in raw and "shift" in raw:
        reader.fault(f"links.{name}.shift", ONE_SCHEDULER, got(raw["shift"]))
    usual = {} if "shift" in raw else {"weight": 0.9}
    return usual | {k: v for k, v in raw.items() if k not in given} | lent


def _read_link(reader: Reader, key: str, raw: Any) -> dict[str, Any]:
    """The values of a link, faulty ones as FAULTY."""
    table = reader.table(raw, key)
    if table is FAULTY:
        return {"delay": FAULTY}
    described = infos(Link)
    reader.unknown(table, key, [*described, "beside", "queue", "voice", "schedule", "initial"])
    first = {"packet_size": described.pop("packet_size")}
    values = reader.fields(table, key, first)
    size = _size(values)
    values |= reader.fields(table, key, described, size)
    if "capacity" not in table:
        reader.missing(f"{key}.capacity", described["capacity"])
    if "queue" in table:
        values["queue"] = reader.law_or_name(table["queue"], f"{key}.queue", "queue", size)
    else:
        reader.fault(f"{key}.queue", 'a table such as { law = "droptail" }', "nothing")
    for name, cls in (("initial", LinkInitial), ("voice", Voice)):
        if name in table:
            values[name] = reader.record(table[name], f"{key}.{name}", cls, size)
    if values.get("random_loss") == 0:
        del values["random_loss"]
    if "schedule" in table:
        values["schedule"] = _schedule(reader, table["schedule"], f"{key}.schedule", size)
    _check_link(reader, key, sound(values))
    for name in unfit_fair(values.get("fair") is True, sound(values)):
        reader.fault(f"{key}.{name}", f"none, {NO_OTHERS}", got(table[name]))
    return values


def _read_flows(
    reader: Reader, key: str, raw: Any, sizes: Mapping[str, float], aside: Container[str]
) -> Any:
    """A group of flows of a scenario; `sizes` are the links' packet sizes by name [B], and the
    queues `aside` are beside another, whose marks are coupled to theirs.
    """
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
    if route is not FAULTY and any(links[k] in aside for k in route):
        values["marking"] = Coupled()
        feedback = values.get("feedback", Flows.feedback)
        if feedback is not FAULTY and not _marks_data(feedback):
            expected = '"mark_tail" or "mark_front", as a queue beside another marks its packets'
            reader.fault(f"{key}.feedback", expected, got(feedback.name))
    for kind in _LAWS:
        if kind in table:
            values[kind] = reader.law_or_name(table[kind], f"{key}.{kind}", kind, size)
    if "initial" in table:
        at = f"{key}.initial"
        values["initial"] = reader.record(table["initial"], at, FlowsInitial, size)
    if "sender" in table:
        values["sender"] = read_sender(reader, table["sender"], f"{key}.sender")
    _check_group(reader, key, sound(values))
    classes = _classes(reader, key, table)
    count = 0 if classes is FAULTY else int(np.sum(classes[0]))
    if "start" in table:
        values["start"] = _start(reader, table["start"], f"{key}.start", count)
    if "stop" in table:
        values["stop"] = _stop(reader, table["stop"], f"{key}.stop", count, sound(values))
    if len(reader.faults) > before or route is FAULTY:
        return FAULTY
    n, rtt = classes
    return reader.made(Flows, key, {"n": n, "rtt": rtt, "route": route, **values})


def _marks_data(feedback: AbstractFeedback) -> bool:
    """Whether data packets carry marks to the receivers."""
    marked = feedback.interpret(Signal(0.5, 0.0, 1.0)).mark
    return feedback.on_data and "mark" in feedback.carries and float(marked) > 0


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


def _each(reader: Reader, raw: list, key: str, info: Info, count: int) -> Any:
    """Times, one for each of `count` flows; any number if that is 0, as it is faulty itself."""
    if count and len(raw) != count:
        return reader.fault(key, f"one time, or a list of {count}, one for each flow", got(raw))
    times = _vector(reader, raw, key, info)
    return FAULTY if times is FAULTY else tuple(map(float, times))


def _stop(reader: Reader, raw: Any, key: str, count: int, values: Mapping[str, Any]) -> Any:
    """When flows have no more new data, after their start: one time, or one for each."""
    traffic = values.get("traffic", Flows.traffic)
    if traffic.starts:
        expected = f"none, as files of {traffic.name} end by themselves"
        return reader.fault(key, expected, got(raw))
    if isinstance(raw, list):
        stops = _each(reader, raw, key, _STOP, count)
    else:
        time = reader.number(raw, key, _STOP)
        stops = FAULTY if time is FAULTY else (time,)
    if stops is FAULTY:
        return FAULTY
    if early := early_stop(values.get("start", Start()), stops):
        k, first, last = early
        at = f"{key}[{k}]" if len(stops) > 1 else key
        return reader.fault(at, f"a time after the start, {first:g} s", f"{last:g} s")
    return stops


def _schedule(reader: Reader, raw: Any, key: str, size: float) -> Any:
    """Changes of a link: a list of tables, each with a time and another capacity or delay."""
    form = 'a list of tables such as { at = "20 s", capacity = "5 Mbit/s" }'
    if not isinstance(raw, list) or not 0 < len(raw) <= _MOST_CHANGES:
        return reader.fault(key, form, got(raw))
    described = {"at": _AT} | {name: infos(Link)[name] for name in ("capacity", "delay")}
    changes, last = [], 0.0
    for k, table in enumerate(raw):
        at = f"{key}[{k}]"
        if not isinstance(table, dict):
            reader.fault(at, form.removeprefix("a list of tables such as "), got(table))
            continue
        values = reader.values(table, at, described, size)
        if "at" not in table:
            reader.missing(f"{at}.at", _AT)
        elif len(table) == 1:
            reader.fault(at, "another capacity or delay, or both", "neither")
        elif len(sound(values)) == len(table):
            if values["at"] <= last:
                reader.fault(
                    f"{at}.at", f"a time after the one before, {last:g} s", got(table["at"])
                )
            last = values["at"]
            changes.append(Change(**values))
    return tuple(changes) if len(changes) == len(raw) else FAULTY


def _start(reader: Reader, raw: Any, key: str, count: int) -> Any:
    """When flows start: a time, two between which each does, or a list with one for each."""
    if isinstance(raw, list):
        times = _each(reader, raw, key, _START, count)
        return FAULTY if times is FAULTY else Start.at(*times)
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
    if isinstance(route, str):
        return reader.fault(key, "a list of names of links", got(route), [f"[{got(route)}]"])
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


_Need = tuple[bool, str, str, str]
"""Whether two values fit, the key of one, the expected value and the given one."""

_LEVELS = ("max_th", "at", "threshold", "q_ref")  # queues that a law must be able to see


def _check_link(reader: Reader, key: str, values: Mapping[str, Any]) -> None:
    """The queue before the start and the levels of the queue law must fit into the buffer."""
    buffer = values.get("buffer", Link.buffer)
    queue = values["initial"].queue if "initial" in values else 0.0
    if queue > buffer:
        expected = f"at most {key}.buffer, {buffer!r} packet"
        reader.fault(f"{key}.initial.queue", expected, f"{queue!r} packet")
    law = values.get("queue")
    by_loss = getattr(law, "trigger", "queue") == "loss"  # the level reached then is the buffer
    for name in _LEVELS:
        level = getattr(law, name, None)
        if level is None or (level == buffer if by_loss else level < buffer):
            continue
        limit = f"{key}.buffer, {buffer!r} packet"
        expected = f"{limit}, as losses trigger" if by_loss else f"less than {limit}"
        reader.fault(f"{key}.queue.{name}", expected, f"{level!r} packet")


def _check_group(reader: Reader, key: str, values: Mapping[str, Any]) -> None:
    """The laws of a group, and its window before the start, must fit to each other."""
    needs: list[_Need] = []
    if "window" in values:
        needs += _needs_of_window(f"{key}.window", values)
    if "feedback" in values:
        needs += _needs_of_feedback(values)
    for fits, at, expected, seen in needs:
        if not fits:
            reader.fault(f"{key}.{at}", expected, seen)


def _needs_of_window(table: str, values: Mapping[str, Any]) -> Iterator[_Need]:
    """Requirements of a window law on the other laws and on initial windows."""
    window, reaction = values["window"], values.get("reaction")
    traffic: Any = values.get("traffic")
    least = f"at least {table}.min_window, {window.min_window!r} packet"
    most = f"at most {table}.max_window, {window.max_window!r} packet"
    plain = '"plain", as equal_window needs a polynomial window law'
    polynomial = isinstance(window, AbstractPolynomial)
    fits = polynomial or not isinstance(values.get("marking"), EqualWindow)
    yield fits, "marking", plain, f'"equal_window" with {window.name}'
    first = values["initial"].window if "initial" in values else FlowsInitial.window
    # a maximum below the default of the first window must not need another default
    fits = first <= window.max_window or first == FlowsInitial.window
    yield fits, "initial.window", most, f"{first!r} packet"
    opening = getattr(traffic, "first", None)
    if opening is not None and opening != type(traffic).first:
        seen = f"{opening!r} packet"
        yield opening >= window.min_window, "traffic.first", least, seen
        yield opening <= window.max_window, "traffic.first", most, seen
    fits = window.min_window <= window.max_window
    yield fits, "window.min_window", most, f"{window.min_window!r} packet"
    pause = getattr(window, "pause", None)
    if pause is not None and reaction is not None:
        expected = f'"pause", or {table}.pause = false' if pause else "another than pause"
        yield pause == (reaction.name == "pause"), "window.reaction", expected, got(reaction.name)


def _needs_of_feedback(values: Mapping[str, Any]) -> Iterator[_Need]:
    """Requirements of a feedback law on the other laws."""
    feedback, window = values["feedback"], values.get("window")
    estimator = values.get("estimator", Flows.estimator)
    growth, name = getattr(values.get("reaction"), "growth", "all"), got(feedback.name)
    grow = f'"all", as {feedback.name} marks no acknowledgement'
    yield growth == "all" or not feedback.quench, "window.growth", grow, got(growth)
    if window is not None:
        lacking = [k for k in window.written if k not in feedback.written]
        carrier = "load_factor" if lacking == ["load"] else "explicit"
        acts = " and ".join(f"the {SIGNALS[k].name}" for k in lacking)
        yield not lacking, "feedback", f'"{carrier}", as {window.name} acts on {acts}', name
        unread = "".join(f" {SIGNALS[k].name}" for k in feedback.written[:1])
        mark = f"one with marks or losses, as {window.name} knows no{unread}"
        yield bool(window.written) or not unread, "feedback", mark, name
    exact = f'"exact", as {feedback.name} tells no load factor'
    yield feedback.loads or not estimator.remembers, "estimator", exact, got(estimator.name)


def _check_route(reader: Reader, name: str, flows: Flows, links: Mapping[str, Any]) -> None:
    """Links on the way must write what the window law moves by."""
    queues: list[Any] = [sound(link).get("queue") for link in links.values()]
    if all(queues):
        for expected, found in unfit_route(flows, queues, list(links)):
            reader.fault(f"flows.{name}.route", expected, found)


def _check_reverse_delay(
    reader: Reader, name: str, flows: Flows, delays: Mapping[str, Any]
) -> None:
    """Forward delays must be below the round trip, and links before the last need a delay."""
    names = list(delays)
    if any(delays[names[k]] is FAULTY for k in flows.route):
        return
    for k, after in zip(flows.route[:-1], flows.route[1:], strict=True):
        if delays[names[k]] <= 0:
            reader.fault(
                f"links.{names[k]}.delay",
                f"a delay above 0 s, as {names[after]} follows on the route of flows.{name}",
                f"{float(delays[names[k]])!r} s",
            )
    way = float(forward_delays(flows, list(delays.values()))[-1])
    shortest = float(np.min(flows.rtt))
    if way >= shortest:
        reader.fault(
            f"flows.{name}.rtt",
            f"more than the way there, {way!r} s (access_delay and the delays of the route)",
            f"{shortest!r} s",
        )
    elif flows.reverse_delay is not None or flows.feedback.marking_point is MarkingPoint.REVERSE:
        listed = isinstance(flows.reverse_delay, np.ndarray)
        unfit = unfit_reverse_delays(flows, list(delays.values()), names)
        for j, expected, found in itertools.islice(unfit, None if listed else 1):
            at = f"flows.{name}.reverse_delay" + (f"[{j}]" if listed else "")
            of = f" for {names[flows.route[j]]}" if j and not listed else ""
            of += ", the way there" if flows.reverse_delay is None else ""
            reader.fault(at, expected, f"{found:.6g} s{of}")


def _check_model(reader: Reader, choices: Mapping[str, Any], groups: Mapping[str, Flows]) -> None:
    """Self-clocked senders have their window in flight, at all times."""
    rates = choices.get("rates", Network.rates)
    if rates != "self_clocked":
        return
    for name, flows in groups.items():
        changes = type(flows.feedback).flight_size is not AbstractFeedback.flight_size
        for law, loose in ((flows.feedback, changes), (flows.traffic, flows.traffic.starts)):
            if loose:
                expected = f'"ack" or "mgt", as {law.name} of flows.{name} changes the flight'
                reader.fault("model.rates", expected, got(rates))
