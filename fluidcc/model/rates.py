"""Rates of events times changes: the right-hand side, once for all laws, of senders and of links.

Misra and Ott (2003), eq. 1, for every event: the mean change of a state per second is the sum over
events of the rate of the event times its mean change. The Outputs travel between senders and
links; only values read from them (DelayedInputs) have delays.
"""

import functools
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from fluidcc import ops
from fluidcc.laws.law import (
    SIGNALS,
    AbstractLossClosure,
    AbstractWindowLaw,
    Ack,
    Arrival,
    Shares,
    Signal,
    combine,
    queueing_delay,
)
from fluidcc.laws.reaction import HalveOnly
from fluidcc.model.delays import (
    DelayedInputs,
    Outputs,
    State,
    is_at_source,
    make_outputs,
    round_trip,
)
from fluidcc.model.fluid import with_service
from fluidcc.ops import Num
from fluidcc.programs import map_tree, slope
from fluidcc.scenario.network import Flows, Link, Network, growth_per_packet

_FASTEST_ESTIMATE = (
    32.0  # per round trip, of the error: the limit for rates that a step cannot resolve
)
_FASTEST_END = 8.0  # per round trip: exp(-8) is left after one, and steps can stay long


class Sender(NamedTuple):
    """Memory of a group of flows, shapes (m,); `()` for parts that the group does not need."""

    law: Any  # state of the window law
    slow: Any = ()  # share of the flows that are in slow start
    active: Any = ()  # share of the sources that have something to send
    estimate: Any = ()  # load factor that the senders know of


def starts_slowly(flows: Flows) -> bool:
    """Whether the model of these flows has slow start."""
    return flows.initial.slow_start or flows.traffic.starts


def start_law(law: AbstractWindowLaw, window: Num) -> Any:
    """State of a window law with windows of any shape, in which its constants are repeated."""
    return map_tree(lambda v: v + 0.0 * window, law.start(window))


def start_sender(flows: Flows, window: Num) -> Sender:
    """Memory of flows with a window (m,) [packet], all of them active."""
    one = ops.ones_like(window)
    slow = one if flows.initial.slow_start else 0.0 * one
    return Sender(
        law=start_law(flows.window, window),
        slow=slow if starts_slowly(flows) else (),
        active=one if flows.traffic.starts else (),
        estimate=0.0 * one if flows.estimator.remembers else (),
    )


def scaled(rate: Num, change: Any) -> Any:
    """A change of a state, times a rate."""
    return map_tree(lambda c: rate * c, change)


def summed(*changes: Any) -> Any:
    """Sum of changes of one state."""
    return map_tree(lambda *c: sum(c), *changes)


def marks_seen(flows: Flows, signal: Signal) -> Num:
    """Probability that a carrier brings a mark to which the window law reacts."""
    return signal.mark if flows.feedback.marks else 0.0 * signal.mark


def reaction_shares(flows: Flows, signal: Signal, w: Num, rtt: Num) -> Shares:
    """Shares of ACKs that let windows `w` grow and of carriers of `signal` that are reacted to."""
    rounds = flows.window.rounds(Ack(0.0, 0.0, rtt))
    if not isinstance(rounds, int):
        w, rtt = w / rounds, rtt / rounds
    return flows.reaction.shares(marks_seen(flows, signal), w, rtt)


def growing_rate(flows: Flows, s: Sender, signal: Signal, acks: Num, rtt: Num) -> Num:
    """Rate of the ACKs, of all that come at `acks` [packet/s], that let the window grow."""
    return acks * reaction_shares(flows, signal, _in_round_trip(flows, s, acks, rtt), rtt).growing


def _in_round_trip(flows: Flows, s: Sender, acks: Num, rtt: Num) -> Num:
    """Packets that are acknowledged in a round trip: a window, unless a sender goes by rate."""
    return acks * rtt if flows.window.rate_based else flows.window.window(s.law)


def known_load(flows: Flows, s: Sender, signal: Signal) -> Num:
    """Load factor that the senders act on."""
    remembers = flows.estimator.remembers
    return flows.estimator.known_load(s.estimate, signal.load) if remembers else signal.load


def acknowledgement(flows: Flows, s: Sender, signal: Signal, rtt: Num, acks: Num = math.nan) -> Ack:
    """The record of an acknowledgement for senders that receive `signal`, with round trip [s], and
    ACKs at a rate of `acks` [packet/s].

    The least round trip is that of propagation, as once in its memory a sender finds queues empty;
    the greatest is the present one, as means do not vary.
    """
    known = signal._replace(load=known_load(flows, s, signal))
    fields = {name: getattr(known, name) for name in SIGNALS if name in Ack._fields}
    if flows.window.measured:
        trip = flows.rtt + 0.0 * rtt
        fields |= {"propagation": trip, "one_way": signal.delay, "least_rtt": trip}
        fields |= {"greatest_rtt": rtt, "acked": acks * rtt, "rate": acks, "flight": acks * rtt}
    return Ack(1.0, 0.0, rtt, marked=signal.mark, **fields)


def sending_rate(flows: Flows, s: Sender, signal: Signal, rtt: Num) -> Num:
    """Rate of one active flow [packet/s]: its flight over the round trip, or its pace, in the share
    of time that it is not recovering from losses.
    """
    return _running(flows, s, signal, rtt) * unhindered_rate(flows, s, signal, rtt)


def unhindered_rate(flows: Flows, s: Sender, signal: Signal, rtt: Num) -> Num:
    """Rate of a flow that is not recovering from losses [packet/s]."""
    law, rate = flows.window, _flight(flows, s, signal) / rtt
    if not law.is_paced:
        return rate
    pace = law.pacing(s.law, acknowledgement(flows, s, signal, rtt, rate))
    return pace if law.rate_based else ops.minimum(rate, pace)


def _flight(flows: Flows, s: Sender, signal: Signal) -> Num:
    """Mean packets in flight of a flow that is not recovering from losses."""
    return flows.feedback.flight_size(flows.window.window(s.law), signal.mark)


def _running(flows: Flows, s: Sender, signal: Signal, rtt: Num) -> Num:
    """Share of the time in which a flow is not recovering from losses."""
    closure = _closure(flows)
    if closure.window(signal.drop, rtt) is not None:  # it includes the whole cost of losses
        return 1.0
    rate = unhindered_rate(flows, s, signal, rtt)
    w = _in_round_trip(flows, s, rate, rtt)
    return closure.lost(signal.drop, w, rtt, rate, flows.window.recovery).running


def _closure(flows: Flows) -> AbstractLossClosure:
    """The loss closure: a router with quenches reports a drop at once, which halves the window
    without a recovery. Akujobi et al. (2002), IV.B.
    """
    return HalveOnly() if flows.feedback.quench else flows.loss


def _law_change(
    flows: Flows,
    s: Sender,
    *,
    growth: Num,
    acks: Num,
    carried: Num,
    signal: Signal,
    rtt: Num,
    ticks: bool,
) -> Any:
    """Mean change of the window law's state per second."""
    law, w = flows.window, _in_round_trip(flows, s, acks, rtt)
    mark, opening = marks_seen(flows, signal), acks
    if (share := growth_per_packet(flows)) != 1:
        growth, opening = share * growth, share * acks
    one = acknowledgement(flows, s, signal, rtt, acks)
    like = (s, *one)

    def ack(count: Num, elapsed: Num) -> Ack:
        return one._replace(count=count, elapsed=elapsed)

    in_time = slope(lambda k: law.on_ack(s.law, ack(0.0, k)), *like)
    growing = summed(
        scaled(growth, slope(lambda k: law.on_ack(s.law, ack(k, 0.0)), *like)),
        scaled(_running(flows, s, signal, rtt), in_time),
    )
    if starts_slowly(flows):  # one packet more for each clean ACK
        slowly = law.change(s.law, window=s.slow * opening * (1 - mark))
        growing = summed(scaled(1 - s.slow, growing), slowly)
    lost = _closure(flows).lost(
        signal.drop, w, rtt, carried if flows.feedback.quench else acks, law.recovery
    )
    to_one_packet = law.change(s.law, window=ops.minimum(1.0 - law.window(s.law), 0.0))
    reacting = reaction_shares(flows, signal, w, rtt).reacting
    changes = [
        growing,
        scaled(acks, slope(lambda k: law.observe(s.law, ack(k, 0.0)), *like)),
        scaled(carried * reacting, law.on_mark(s.law, one)),
        scaled(lost.recovering, law.on_loss(s.law, one)),
        scaled(lost.timing_out, to_one_packet),
    ]
    between = law.period(one)
    if ticks and between is not None:
        changes.append(scaled(1.0 / between, law.on_tick(s.law, one)))
    return summed(*changes)


def sender_change(
    flows: Flows,
    s: Sender,
    *,
    growth: Num,
    acks: Num,
    carried: Num,
    signal: Signal,
    rtt: Num,
    ticks: bool = False,
) -> Sender:
    """Mean change of a group's memory per second.

    Parameters
    ----------
    flows, s
        The group and its memory.
    growth, acks, carried
        Rates of one active flow [packet/s]: of the ACKs that let its window grow, of all ACKs, of
        the packets that bring the signal.
    signal, rtt
        What is heard, and the round trip [s].
    ticks
        Whether ticks count as change over period, as equilibria and roots have it.
    """
    rates = {"growth": growth, "acks": acks, "carried": carried, "signal": signal, "rtt": rtt}
    law = _law_change(flows, s, **rates, ticks=ticks)
    slow, active, estimate = (), (), ()
    if flows.estimator.remembers:
        left = _FASTEST_ESTIMATE / rtt * (flows.estimator.coded(signal.load) - s.estimate)
        by_acks = acks * flows.estimator.mean(s.estimate, signal.load)
        estimate = ops.clip(by_acks, ops.minimum(left, 0.0), ops.maximum(left, 0.0))
    if starts_slowly(flows):  # the first signal of any kind ends it
        signals = carried * marks_seen(flows, signal) + acks * signal.drop
        slow = -ops.minimum(signals, _FASTEST_END / rtt) * s.slow
    if flows.traffic.starts:
        traffic, w = flows.traffic, flows.window.window(s.law)
        ending = traffic.ending(sending_rate(flows, s, signal, rtt))
        begun = (1 - s.active) * traffic.beginning()
        active = begun - s.active * ending
        renewed = begun / ops.maximum(s.active, 1e-9)  # per active flow
        fresh = start_law(flows.window, 0.0 * w + traffic.first_window())
        law = map_tree(lambda c, a, b: c + renewed * (a - b), law, fresh, s.law)
        slow = slow + renewed * (1 - s.slow)
    return Sender(law, slow, active, estimate)


FREE, LOW, HIGH, WAITING = 0, -1, 1, 2
"""Modes of a bounded quantity: between its bounds, held at the lower, held at the upper one; and of
windows whose flows have not started."""

_SOME_RATE = 1e-9  # packet/s; keeps C/Y finite if nothing arrives
_SOME_SHARE = 1e-3  # of a link, the least that a queue which always goes first leaves
SOME_ACTIVE = 1e-30  # share of sources; at equilibrium all single files have ended

_MOST_PACE = 10.0
"""Largest pace of a link: if next to nothing came in, C/(C + q') is rounding error."""


class Modes(NamedTuple):
    """Which bounds hold: per link an integer, per group of flows integers (m,).

    `emitted` has, per link, the signal of its queue if the state does not determine it, on a
    discontinuity of the law (a Filippov combination of both sides); None for other links.
    """

    queues: tuple
    windows: tuple
    emitted: tuple = ()


def interpret_signal(flows: Flows, signal: Signal, link: int) -> Signal:
    """The signal of a link, by its number, as the flows interpret it.

    Flows that pass a queue beside theirs hear its mark, which is coupled, and lose nothing there;
    the mark of their own queue is for them alone.
    """
    passes, mark = link in flows.passes, signal.mark
    if passes or not flows.passes:
        mark = flows.marking.probability(mark, flows.window)
    drop = 0.0 * signal.drop if passes else signal.drop
    return flows.feedback.interpret(signal._replace(mark=mark, drop=drop))


def link_signal(net: Network, flows: Flows, signals: Sequence[Signal], k: int) -> Signal:
    """The signal of link k to packets of flows that wait there, with that of a queue beside it."""
    own, beside = interpret_signal(flows, signals[k], k), net.links[k].beside
    if beside not in flows.passes:
        return own
    return combine((own, interpret_signal(flows, signals[beside], beside)))


def kept(flows: Flows, signal: Signal, link: int) -> Num:
    """Share of the packets that come to a link and are not lost there."""
    return 1 - interpret_signal(flows, signal, link).drop


def measured(link: Link, queue: Num, signal: Signal) -> Signal:
    """The signal of a link with those fields that packets measure at a queue [packet]."""
    values = {k: f.measure(queue, link.capacity) for k, f in SIGNALS.items() if f.measure}
    return signal._replace(**values)


def deciding_rate(link: Link, queue: Num, offered: Num) -> Num:
    """Rate of the packets that a queue law decides upon [packet/s]: of those that arrive, at
    `offered`, or of those that leave.
    """
    if not link.queue.at_departure:
        return offered
    return ops.where(queue > 0, link.capacity, ops.minimum(offered, link.capacity))


def _own_signal(link: Link, x: Any, queue: Num, offered: Num) -> Signal:
    """Signal of a queue law to packets, of which `offered` arrive [packet/s]."""
    rate = deciding_rate(link, queue, offered)
    between = 1.0 / ops.maximum(rate, _SOME_RATE)
    return link.queue.signal(x, link.arrival(1.0, between, queue, rate))


def emit_signal(link: Link, x: Any, queue: Num, offered: Num) -> Signal:
    """Signal of a link to packets that arrive at `offered` [packet/s], without overflow losses."""
    signal = _own_signal(link, x, queue, offered)
    if link.random_loss is not None:
        signal = signal._replace(drop=signal.drop + (1 - signal.drop) * link.random_loss)
    return measured(link, queue, Signal(*(v + 0.0 * queue for v in signal)))


def over_classes(rates: Num) -> Num:
    """Sum over the classes of a group: of (m,) the shape (), of several points (P, m) (P, 1)."""
    return rates.sum(axis=-1, keepdims=True) if rates.ndim > 1 else ops.total(rates)


def touched(flows: Flows, signals: tuple[Signal, ...]) -> Num:
    """Probability that a packet, or its acknowledgement, is marked or lost on its way."""
    emitted = map(functools.partial(interpret_signal, flows), signals, flows.route)
    return combine(tuple(Signal(mark=each.either) for each in emitted)).mark


def received(flows: Flows, signals: tuple[Signal, ...]) -> Signal:
    """The combined signal of the links on the route, as the flows receive it.

    `mark` is the probability, per packet sent, that a mark comes back: a mark on a data packet is
    lost with it, here or at another link.
    """
    emitted = combine(tuple(map(functools.partial(interpret_signal, flows), signals, flows.route)))
    comes_back = 1 - emitted.drop if flows.feedback.on_data else 1.0
    return emitted._replace(mark=emitted.mark * comes_back)


def carrier_rate(flows: Flows, carried: tuple, signals: tuple[Signal, ...]) -> Num:
    """Rate of the packets that cause quenches [packet/s], links weighted by their signals."""
    if len(carried) == 1:
        return carried[0]
    marks = [interpret_signal(flows, *each).mark for each in zip(signals, flows.route, strict=True)]
    total = sum(marks)
    some = ops.maximum(total, 1e-300)
    weighted = sum(c * p for c, p in zip(carried, marks, strict=True)) / some
    return ops.where(total > 0, weighted, sum(carried) / len(carried))


def arrival_rate(link: Link, x: Any, q: Num, offered: Num) -> Any:
    """Mean change of a queue law's memory per second by packets, before its limits act: by those
    that arrive, at `offered` packets per second, or leave, and by its signals.
    """
    law, capacity = link.queue, link.capacity
    deciding = deciding_rate(link, q, offered)

    def change(count: Num, elapsed: Num) -> Any:
        return law.move_memory(x, link.arrival(count, elapsed, q, deciding))

    per_packet = slope(lambda k: change(k, 0.0), x, q, capacity)
    per_second = slope(lambda k: change(0.0, k), x, q, capacity)
    moved = summed(scaled(law.sampling_rate(deciding, capacity), per_packet), per_second)
    if not law.heeds_signals:
        return moved
    signals = deciding * _own_signal(link, x, q, offered).either
    return summed(moved, scaled(signals, law.on_signal(x, link.arrival(1.0, 0.0, q, deciding))))


def seen_at_tick(net: Network, queues: Sequence[Num], k: int) -> Arrival:
    """What the law of link k sees at a tick: its queue, and the longer of its delay and that of a
    queue that goes first. RFC 9332, appendix A.2.
    """
    ahead = (queues[j] for j, other in enumerate(net.links) if other.beside == k)
    longest = functools.reduce(ops.maximum, ahead, queues[k])
    seen = net.links[k].arrival(0.0, 0.0, queues[k])
    return seen._replace(sojourn=queueing_delay(longest, seen.capacity))


def queue_law_rate(link: Link, x: Any, q: Num, offered: Num, tick: Arrival | None = None) -> Any:
    """Mean change of a queue law's memory per second, at arrivals `offered` [packet/s].

    With what its ticks see, these count as change over period, as equilibria and roots have it.
    """
    law, change = link.queue, arrival_rate(link, x, q, offered)
    if law.limits is not None:
        low, high = law.limits
        change = map_tree(lambda raw, v, a, b: _hold(raw, v, a, b, None), change, x, low, high)
    between = law.period()
    if tick is not None and between is not None:
        change = summed(change, scaled(1.0 / between, law.on_tick(x, tick)))
    return change


class Flux(NamedTuple):
    """The present of a network: change of its state per second, its Outputs, and the raw changes
    of queues and windows before their bounds act, all per second.
    """

    drift: State
    outputs: Outputs
    queue_raw: tuple
    window_raw: tuple


def _hold(raw: Num, value: Num, low: Num, high: Num, mode: Num | None) -> Num:
    """`raw`, or zero at a bound that stops it; decided by `mode` if given, else by `value`."""
    if mode is not None:
        return ops.where(mode == FREE, raw, 0.0)
    up = ops.where(value > low, raw, ops.maximum(raw, 0.0))
    return ops.where(value < high, up, ops.minimum(up, 0.0))


def _senders(
    net: Network, y: State, past: DelayedInputs, modes: Modes | None, ticks: bool
) -> tuple[tuple, tuple, tuple]:
    """Changes of the senders, raw changes of their windows, and their present rates."""
    changes, raws, rates = [], [], []
    for i, flows in enumerate(net.flows):
        s, rtt, law = y.senders[i], round_trip(net, flows, y.queues), flows.window
        window = law.window(s.law)
        # packets that wait nowhere would keep their spacing for ever: their rate is smooth
        clocked = net.rates == "self_clocked" and not flows.passes and not law.is_paced
        pace = math.prod(past.paces[i]) if clocked else 1.0
        share = ops.maximum(s.active, SOME_ACTIVE) if flows.traffic.starts else 1.0
        acks = past.acked[i] * pace / share
        carried = acks
        if flows.feedback.quench:
            carried = carrier_rate(flows, past.carried[i], past.received[i]) * pace / share
        signal = received(flows, past.received[i])
        if net.rates == "mgt":
            growth = sending_rate(flows, s, signal, rtt)
        else:
            growth = growing_rate(flows, s, signal, acks, rtt)
        raw = sender_change(
            flows, s, growth=growth, acks=acks, carried=carried, signal=signal, rtt=rtt,
            ticks=ticks,
        )  # fmt: skip
        raw_window = law.window(raw.law)
        mode = None if modes is None else modes.windows[i]
        held = _hold(raw_window, window, law.min_window, law.max_window, mode)
        change = raw._replace(law=law.with_window(raw.law, held))
        if mode is not None:
            waiting = mode == WAITING
            change = map_tree(lambda c, w=waiting: ops.where(w, 0.0, c), change)
        changes.append(change)
        raws.append(raw_window)
        rate = acks + held
        if not clocked:
            rate = share * sending_rate(flows, s, signal, rtt)
        rates.append(rate if mode is None else ops.where(mode == WAITING, 0.0, rate))
    return tuple(changes), tuple(raws), tuple(rates)


def _offered(net: Network, past: DelayedInputs, rates: tuple) -> list[list[tuple[int, Num]]]:
    """Rates offered to each link [packet/s], by group of flows."""
    offered: list[list[tuple[int, Num]]] = [[] for _ in net.links]
    for i, flows in enumerate(net.flows):
        for j, k in enumerate(flows.route):
            flow = flows.n * (rates[i] if is_at_source(flows, j) else past.arriving[i][j])
            for before, met in zip(flows.route, past.passed[i][j], strict=False):
                if met is not None:  # links before pass on at most their capacity
                    flow = flow * kept(flows, met.signal, before)
                    flow = flow * ops.minimum(met.pace, _MOST_PACE)
            offered[k].append((i, flow))
    return offered


def own_share(net: Network, k: int, loads: Iterable[tuple[int, Num]]) -> Num:
    """Share of link k's capacity that is left for the flows which wait there, under the `loads`
    (group, packet/s) of all: what the queue beside it leaves, with its own weight at least.

    The state of such a queue is the delay in packets of the whole capacity, of which it has this
    share.
    """
    first = next((link for link in net.links if link.beside == k), None)
    if first is None:
        return 1.0
    passing = [over_classes(flow) for i, flow in loads if k in net.flows[i].passes]
    taken = sum(passing) + cross_beside(net, k)
    least = _SOME_SHARE if first.weight is None else 1 - first.weight
    return ops.maximum(1 - taken / net.links[k].capacity, least)


def in_its_share(link: Link, x: Any, queue: Num, share: Num) -> tuple[Num, Num, Num]:
    """Queue [packet], queueing delay [s] and average [packet] of a link with a share of its
    transmitter, whose state is the delay in packets of the whole capacity.
    """
    average = link.queue.average(x, queue)
    return share * queue, queueing_delay(queue, link.capacity), share * average


def cross_beside(net: Network, k: int) -> Num:
    """Cross traffic in the queue beside that of link k [packet/s]."""
    return sum(link.cross for link in net.links if link.beside == k)


def _link_flux(
    net: Network,
    k: int,
    y: State,
    arriving: list[tuple[int, Num]],
    modes: Modes | None,
    ticks: bool,
) -> tuple[Num, Num, Any, Signal, Num]:
    """Raw and bounded change of queue k per second, that of its law, its signal, its pace."""
    link, q, x = net.links[k], y.queues[k], y.laws[k]
    capacity, mode = link.capacity, None if modes is None else modes.queues[k]
    offered = link.cross + cross_beside(net, k) + sum(over_classes(flow) for _, flow in arriving)
    given = modes.emitted[k] if modes is not None and modes.emitted else None
    early = emit_signal(link, x, q, offered) if given is None else measured(link, q, given)
    accepted = link.cross * (1 - early.drop) + cross_beside(net, k)
    for i, flow in arriving:
        accepted = accepted + over_classes(flow * kept(net.flows[i], early, k))
    raw = (accepted - capacity) / own_share(net, k, arriving)
    change = _hold(raw, q, 0.0, link.buffer, mode)
    full = q >= link.buffer if mode is None else mode == HIGH
    share = capacity / ops.maximum(accepted, _SOME_RATE)
    over = ops.where(full, ops.maximum(1 - share, 0.0), 0.0)
    signal = early._replace(drop=early.drop + over * (1 - early.drop))
    pace = capacity / ops.maximum(capacity + change, _SOME_RATE)
    tick = seen_at_tick(net, y.queues, k) if ticks else None
    return raw, change, queue_law_rate(link, x, q, offered, tick), signal, pace


def flux(
    net: Network, y: State, past: DelayedInputs, modes: Modes | None = None, *, ticks: bool = False
) -> Flux:
    """The present of a network from its state and its delayed inputs.

    With `modes`, the bounds that hold are taken as given and the result is smooth within them;
    without, the state decides. With `ticks`, those of the laws count as change over period.
    """
    net = with_service(net, y.services)
    changes, window_raw, rates = _senders(net, y, past, modes, ticks)
    offered = _offered(net, past, rates)
    links = [_link_flux(net, k, y, offered[k], modes, ticks) for k in range(len(net.links))]
    raws, queues, laws, signals, paces = zip(*links, strict=True)
    still = map_tree(ops.zeros_like, (y.clocks, y.services))
    outputs = make_outputs(net, rates, signals, paces)
    return Flux(State(changes, queues, laws, *still), outputs, raws, window_raw)
