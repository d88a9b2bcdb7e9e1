"""Checks that the values of a scenario fit together, beyond the range of each value."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fluidcc.laws.law import AbstractFeedback, MarkingPoint
from fluidcc.laws.marking import EqualWindow
from fluidcc.laws.window.polynomial import AbstractPolynomial
from fluidcc.scenario.network import Flows, FlowsInitial, Link, Network
from fluidcc.scenario.path_delays import forward_delays, reverse_delays
from fluidcc.scenario.reader import FAULTY, Reader, got

_Need = tuple[bool, str, str, str]
"""Whether two values fit, the key of one, the expected value and the given one."""

_ROUNDING = 1e-12  # of delays that are added up
_LEVELS = ("max_th", "at", "threshold", "q_ref")  # queues that a law must be able to see


def check_link(reader: Reader, key: str, values: Mapping[str, Any]) -> None:
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


def check_group(reader: Reader, key: str, values: Mapping[str, Any]) -> None:
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
        load = f'"load_factor", as {window.name} acts on the load factor'
        yield feedback.loads or not window.loads, "feedback", load, name
        mark = f"one with marks or losses, as {window.name} knows no load factor"
        yield window.loads or not feedback.loads, "feedback", mark, name
    exact = f'"exact", as {feedback.name} tells no load factor'
    yield feedback.loads or not estimator.remembers, "estimator", exact, got(estimator.name)


def check_reverse_delay(reader: Reader, name: str, flows: Flows, delays: Mapping[str, Any]) -> None:
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
        _check_reverse_delays(reader, name, flows, delays)


def _check_reverse_delays(
    reader: Reader, name: str, flows: Flows, delays: Mapping[str, Any]
) -> None:
    """A packet and the quench for it take a round trip at most; rewritten ACKs pass all routers
    from the last to the first.
    """
    names, known, given = list(delays), list(delays.values()), flows.reverse_delay
    listed = isinstance(given, np.ndarray)
    *ahead, way = forward_delays(flows, known)
    shortest, on_acks = (
        float(np.min(flows.rtt)),
        flows.feedback.marking_point is MarkingPoint.REVERSE,
    )
    backs, before = reverse_delays(flows, known), 0.0
    for j, (k, back) in enumerate(zip(flows.route, backs, strict=True)):
        there, what = (way, "the way to the receiver") if on_acks else (ahead[j], "the way there")
        most, found = shortest - float(there), float(back)
        late, early = found > most + _ROUNDING * shortest, on_acks and found < before
        if late or early:
            expected = f"at most {most:.6g} s, the round trip less {what}"
            if not late:
                expected = f"at least {before:.6g} s, as ACKs pass {names[k]} first"
            at, of = (f"[{j}]", "") if listed else ("", f" for {names[k]}" if j else "")
            of += ", the way there" if given is None else ""
            reader.fault(f"flows.{name}.reverse_delay{at}", expected, f"{found:.6g} s{of}")
            if not listed:
                return
        before = found


def check_model(reader: Reader, choices: Mapping[str, Any], groups: Mapping[str, Flows]) -> None:
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
