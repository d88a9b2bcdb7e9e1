"""What must fit together in a scenario, beyond the range of each value."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidcc.laws.law import AbstractFeedback, Moment
from fluidcc.laws.marking import EqualWindow
from fluidcc.laws.window.polynomial import AbstractPolynomial
from fluidcc.scenario.network import Flows, FlowsInitial, Link, Network
from fluidcc.scenario.reader import FAULTY, Reader, got
from fluidcc.scenario.ways import forward_delays, reverse_delays

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
    by_loss = getattr(law, "trigger", "queue") == "loss"  # what is reached then is the buffer
    for name in _LEVELS:
        level = getattr(law, name, None)
        if level is None or (level == buffer if by_loss else level < buffer):
            continue
        limit = f"{key}.buffer, {buffer!r} packet"
        expected = f"{limit}, as losses trigger" if by_loss else f"less than {limit}"
        reader.fault(f"{key}.queue.{name}", expected, f"{level!r} packet")


def check_group(reader: Reader, key: str, values: Mapping[str, Any]) -> None:
    """The laws of a group, and its window before the start, must fit to each other."""

    def need(fits: bool, at: str, expected: str, seen: str) -> None:
        if not fits:
            reader.fault(f"{key}.{at}", expected, seen)

    window, feedback = values.get("window"), values.get("feedback")
    reaction, estimator = values.get("reaction"), values.get("estimator", Flows.estimator)
    if window is not None:
        most = f"at most {key}.window.max_window, {window.max_window!r} packet"
        polynomial = isinstance(window, AbstractPolynomial)
        need(
            polynomial or not isinstance(values.get("marking"), EqualWindow), "marking",
            '"plain", as equal_window needs a polynomial window law',
            f'"equal_window" with {window.name}',
        )  # fmt: skip
        first = values["initial"].window if "initial" in values else FlowsInitial.window
        # a maximum below the default of the first window must not need another default
        fits = first <= window.max_window or first == FlowsInitial.window
        need(fits, "initial.window", most, f"{first!r} packet")
        opening = getattr(values.get("traffic"), "first", None)
        if opening is not None and opening != type(values["traffic"]).first:
            seen, least = f"{opening!r} packet", f"at least {key}.window.min_window, "
            need(opening <= window.max_window, "traffic.first", most, seen)
            least += f"{window.min_window!r} packet"
            need(opening >= window.min_window, "traffic.first", least, seen)
        seen = f"{window.min_window!r} packet"
        need(window.min_window <= window.max_window, "window.min_window", most, seen)
        pause = getattr(window, "pause", None)
        if pause is not None and reaction is not None:
            expected = f'"pause", or {key}.window.pause = false' if pause else "another than pause"
            fits = pause == (reaction.name == "pause")
            need(fits, "window.reaction", expected, got(reaction.name))
    if feedback is not None:
        growth, name = getattr(reaction, "growth", "all"), got(feedback.name)
        expected = f'"all", as {feedback.name} marks no acknowledgement'
        need(growth == "all" or not feedback.quench, "window.growth", expected, got(growth))
        expected = f'"exact", as {feedback.name} tells no load factor'
        fits = feedback.loads or not estimator.remembers
        if window is not None:
            acts = f'"load_factor", as {window.name} acts on the load factor'
            need(feedback.loads or not window.loads, "feedback", acts, name)
            deaf = f"one with marks or losses, as {window.name} knows no load factor"
            need(window.loads or not feedback.loads, "feedback", deaf, name)
        need(fits, "estimator", expected, got(estimator.name))


def check_way(reader: Reader, name: str, flows: Flows, delays: Mapping[str, Any]) -> None:
    """The way there must be shorter than the round trip, and links on the way need a delay."""
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
    elif flows.reverse_delay is not None or flows.feedback.moment is Moment.REVERSE:
        _check_ways_back(reader, name, flows, delays)


def _check_ways_back(reader: Reader, name: str, flows: Flows, delays: Mapping[str, Any]) -> None:
    """A packet and the quench for it take a round trip at most; rewritten ACKs pass all routers on
    their own way, from the last to the first.
    """
    names, known, given = list(delays), list(delays.values()), flows.reverse_delay
    listed = isinstance(given, np.ndarray)
    *ahead, way = forward_delays(flows, known)
    shortest, on_acks = float(np.min(flows.rtt)), flows.feedback.moment is Moment.REVERSE
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
        changes = type(flows.feedback).sending is not AbstractFeedback.sending
        for law, loose in ((flows.feedback, changes), (flows.traffic, flows.traffic.starts)):
            if loose:
                expected = f'"ack" or "mgt", as {law.name} of flows.{name} changes the flight'
                reader.fault("model.rates", expected, got(rates))
