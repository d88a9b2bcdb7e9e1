"""Rates of events times changes: the right-hand side, once for all laws.

Misra and Ott (2003), eq. 1, for every event: the mean change of a state per second is the sum over
events of the rate of the event times its mean change. What travels between senders and links is
the Wire; only what is looked up on it (Past) is ever late.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from fluidcc import ops
from fluidcc.fluid.delays import Past, State, Wire, round_trip
from fluidcc.laws.law import Ack, Arrival, Signal
from fluidcc.network import Flows, Link, Network
from fluidcc.ops import Num

FREE, LOW, HIGH, WAITING = 0, -1, 1, 2
"""Modes of a bounded quantity: between its bounds, held at the lower, held at the upper one; and of
windows whose flows have not started."""

_SOME_RATE = 1e-9  # packet/s; keeps C/Y finite where nothing arrives


class Modes(NamedTuple):
    """Which bounds hold: per link an integer, per group of flows integers (m,)."""

    queues: tuple
    windows: tuple


def heard(flows: Flows, signals: tuple[Signal, ...]) -> Signal:
    """What the flows hear of the signals of the links on their way."""
    quiet_mark: Num = 1.0
    quiet_drop: Num = 1.0
    for link_signal in signals:
        marked = flows.marking.probability(link_signal.mark, flows.window)
        signal = flows.feedback.hears(Signal(marked, link_signal.drop))
        quiet_mark = quiet_mark * (1 - signal.mark)
        quiet_drop = quiet_drop * (1 - signal.drop)
    return Signal(1 - quiet_mark, 1 - quiet_drop)


def _scaled(rate: Num, change: Any) -> Any:
    return jax.tree.map(lambda c: rate * c, change)


def _sum(*changes: Any) -> Any:
    return jax.tree.map(lambda *c: sum(c), *changes)


def sender_rate(
    flows: Flows, s: Any, *, growth: Num, acks: Num, carried: Num, signal: Signal, rtt: Num
) -> Any:
    """Mean change of a sender per second.

    `growth`, `acks`, `carried` [packet/s]: rate of the ACKs that let it grow before the reaction's
    share, of all ACKs, of the packets that bring the signal; `rtt` [s]; all of shape (m,).
    """
    law, w = flows.window, flows.window.window(s)
    share = flows.reaction.shares(signal.mark, w)
    per_ack = ops.slope(lambda k: law.on_ack(s, Ack(k, 0.0, rtt)), s, rtt, w)
    per_second = ops.slope(lambda k: law.on_ack(s, Ack(0.0, k, rtt)), s, rtt, w)
    one = Ack(1.0, 0.0, rtt)
    lost = (1 - (1 - ops.minimum(signal.drop, 1 - 1e-12)) ** w) / w  # at most one per round trip
    return _sum(
        _scaled(growth, per_ack),
        per_second,
        _scaled(carried * share.heard, law.on_mark(s, one)),
        _scaled(acks * lost, law.on_loss(s, one)),
    )


def queue_law_rate(link: Link, x: Any, q: Num, offered: Num) -> Any:
    """Mean change of a queue law's memory per second, at arrivals `offered` [packet/s]."""
    law, capacity = link.queue, link.capacity

    def counted(count: Num, elapsed: Num) -> Any:
        return law.on_arrival(x, Arrival(count, elapsed, q, capacity))

    per_packet = ops.slope(lambda k: counted(k, 0.0), x, q, capacity)
    per_second = ops.slope(lambda k: counted(0.0, k), x, q, capacity)
    return _sum(_scaled(law.counted(offered, capacity), per_packet), per_second)


class Flux(NamedTuple):
    """The present of a network: change of its state per second, its Wire, and the raw changes
    of queues and windows before their bounds act.
    """

    drift: State
    wire: Wire
    queue_raw: tuple
    window_raw: tuple


def _hold(raw: Num, value: Num, low: Num, high: Num, mode: Num | None) -> Num:
    """Zero where a bound stops `raw`; `mode` decides where it is given, else `value` does."""
    if mode is not None:
        return ops.where(mode == FREE, raw, 0.0)
    up = ops.where(value > low, raw, ops.maximum(raw, 0.0))
    return ops.where(value < high, up, ops.minimum(up, 0.0))


def _senders(net: Network, y: State, past: Past, modes: Modes | None) -> tuple[tuple, tuple, tuple]:
    """Changes of the senders, raw changes of their windows, and their present rates."""
    changes, raws, rates = [], [], []
    for i, flows in enumerate(net.flows):
        s, rtt = y.senders[i], round_trip(net, flows, y.queues)
        window = flows.window.window(s)
        pace = math.prod(past.paces[i]) if net.rates == "self_clocked" else 1.0
        acks, carried = past.acked[i] * pace, past.carried[i][0] * pace
        signal = heard(flows, past.heard[i])
        if net.rates == "mgt":
            growth = window / rtt
        else:
            growth = acks * flows.reaction.shares(signal.mark, window).growing
        raw = sender_rate(
            flows, s, growth=growth, acks=acks, carried=carried, signal=signal, rtt=rtt
        )
        raw_window = flows.window.window(raw)
        mode = None if modes is None else modes.windows[i]
        held = _hold(raw_window, window, flows.window.min_window, flows.window.max_window, mode)
        change = flows.window.with_window(raw, held)
        changes.append(change)
        raws.append(raw_window)
        rate = acks + held if net.rates == "self_clocked" else window / rtt
        rates.append(rate if mode is None else ops.where(mode == WAITING, 0.0, rate))
    return tuple(changes), tuple(raws), tuple(rates)


def _arrivals(net: Network, past: Past, rates: tuple, signals: list[Signal]) -> tuple[list, list]:
    """Rates offered to each link and accepted by its early drops [packet/s]."""
    offered: list[Num] = [0.0] * len(net.links)
    accepted: list[Num] = [0.0] * len(net.links)
    for i, flows in enumerate(net.flows):
        for j, k in enumerate(flows.route):
            at_source = j == 0 and flows.access_delay is None
            flow = flows.n * (rates[i] if at_source else past.arriving[i][j])
            lost = heard(flows, (signals[k],)).drop
            offered[k] = offered[k] + jnp.sum(flow)
            accepted[k] = accepted[k] + jnp.sum(flow * (1 - lost))
    return offered, accepted


def flux(net: Network, y: State, past: Past, modes: Modes | None = None) -> Flux:
    """The present of a network from its state and from what it sees of the past.

    With `modes`, the bounds that hold are taken as given and the result is smooth within them;
    without, the state decides.
    """
    changes, window_raw, rates = _senders(net, y, past, modes)
    early = [
        link.queue.signal(x, Arrival(1.0, 0.0, q, link.capacity))
        for link, x, q in zip(net.links, y.laws, y.queues, strict=True)
    ]
    offered, accepted = _arrivals(net, past, rates, early)
    queue_raw, queues, laws, signals, paces = [], [], [], [], []
    for k, link in enumerate(net.links):
        q, capacity, mode = y.queues[k], link.capacity, None if modes is None else modes.queues[k]
        raw = accepted[k] - capacity
        queue_raw.append(raw)
        queues.append(_hold(raw, q, 0.0, link.buffer, mode))
        laws.append(queue_law_rate(link, y.laws[k], q, offered[k]))
        full = q >= link.buffer if mode is None else mode == HIGH
        share = capacity / ops.maximum(accepted[k], _SOME_RATE)
        over = ops.where(full, ops.maximum(1 - share, 0.0), 0.0)
        signals.append(Signal(early[k].mark, 1 - (1 - early[k].drop) * (1 - over)))
        paces.append(capacity / ops.maximum(capacity + queues[k], _SOME_RATE))
    return Flux(
        State(changes, tuple(queues), tuple(laws)),
        Wire(rates, tuple(signals), tuple(paces)),
        tuple(queue_raw),
        window_raw,
    )


def drift(net: Network, y: State, past: Past) -> State:
    """Change of the state per second."""
    return flux(net, y, past).drift


def wire(net: Network, y: State, past: Past) -> Wire:
    """What is sent and signalled now."""
    return flux(net, y, past).wire
