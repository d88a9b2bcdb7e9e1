"""What must fit together in a scenario, beyond the range of each value."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidcc.laws.law import AbstractFeedback
from fluidcc.laws.marking import EqualWindow
from fluidcc.laws.window.polynomial import AbstractPolynomial
from fluidcc.network import Flows, FlowsInitial, Link, Network
from fluidcc.scenario.reader import FAULTY, Reader, got

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
    window, feedback = values.get("window"), values.get("feedback")
    if window is not None:
        _check_window(reader, key, values, window)
    if feedback is None:
        return
    growth = getattr(values.get("reaction"), "growth", "all")
    if feedback.quench and growth != "all":
        reader.fault(
            f"{key}.window.growth", f'"all", as {feedback.name} marks no acknowledgement',
            f'"{growth}"',
        )  # fmt: skip
    if window is not None and window.loads and not feedback.loads:
        reader.fault(
            f"{key}.feedback", f'"load_factor", as {window.name} acts on the load factor',
            got(feedback.name),
        )  # fmt: skip
    if window is not None and feedback.loads and not window.loads:
        reader.fault(
            f"{key}.feedback", f"one with marks or losses, as {window.name} knows no load factor",
            got(feedback.name),
        )  # fmt: skip
    estimator = values.get("estimator", Flows.estimator)
    if estimator.remembers and not feedback.loads:
        reader.fault(
            f"{key}.estimator", f'"exact", as {feedback.name} tells no load factor',
            got(estimator.name),
        )  # fmt: skip


def _check_window(reader: Reader, key: str, values: Mapping[str, Any], window: Any) -> None:
    """What a window law needs of the other laws, and of the window before the start."""
    if isinstance(values.get("marking"), EqualWindow) and not isinstance(
        window, AbstractPolynomial
    ):
        reader.fault(
            f"{key}.marking", '"plain", as equal_window needs a polynomial window law',
            f'"equal_window" with {window.name}',
        )  # fmt: skip
    first = values["initial"].window if "initial" in values else FlowsInitial.window
    # a maximum below the default of the first window must not need another default
    if first > window.max_window and first != FlowsInitial.window:
        expected = f"at most {key}.window.max_window, {window.max_window!r} packet"
        reader.fault(f"{key}.initial.window", expected, f"{first!r} packet")
    if window.min_window > window.max_window:
        expected = f"at most {key}.window.max_window, {window.max_window!r} packet"
        reader.fault(f"{key}.window.min_window", expected, f"{window.min_window!r} packet")
    pause, reaction = getattr(window, "pause", None), values.get("reaction")
    if pause is not None and reaction is not None and pause != (reaction.name == "pause"):
        expected = f'"pause", or {key}.window.pause = false' if pause else "another than pause"
        reader.fault(f"{key}.window.reaction", expected, got(reaction.name))


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
    access = 0.0 if flows.access_delay is None else float(flows.access_delay)
    way = access + sum(float(delays[names[k]]) for k in flows.route)
    shortest = float(np.min(flows.rtt))
    if way >= shortest:
        reader.fault(
            f"flows.{name}.rtt",
            f"more than the way there, {way!r} s (access_delay and the delays of the route)",
            f"{shortest!r} s",
        )


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
