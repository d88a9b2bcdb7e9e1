"""Mean change of a group of flows per second: rates of events times the changes by its laws."""

from typing import Any, NamedTuple

from fluidcc import ops
from fluidcc.laws.law import SIGNALS, AbstractLossClosure, Ack, Signal
from fluidcc.laws.loss import HalveOnly
from fluidcc.ops import Num
from fluidcc.programs import slope
from fluidcc.scenario.network import Flows
from fluidcc.trees import map_tree

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


def start_sender(flows: Flows, window: Num) -> Sender:
    """Memory of flows with a window (m,) [packet], all of them active."""
    one = ops.ones_like(window)
    slow = one if flows.initial.slow_start else 0.0 * one
    return Sender(
        law=flows.window.start(window),
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


def growing_rate(flows: Flows, s: Sender, signal: Signal, acks: Num) -> Num:
    """Rate of the ACKs, of all that come at `acks` [packet/s], that let the window grow."""
    window = flows.window.window(s.law)
    return acks * flows.reaction.shares(marks_seen(flows, signal), window).growing


def known_load(flows: Flows, s: Sender, signal: Signal) -> Num:
    """Load factor that the senders act on."""
    remembers = flows.estimator.remembers
    return flows.estimator.known_load(s.estimate, signal.load) if remembers else signal.load


def acknowledgement(
    flows: Flows, s: Sender, signal: Signal, rtt: Num, count: Num = 1.0, elapsed: Num = 0.0
) -> Ack:
    """The record of acknowledgements for senders that receive `signal`, with round trip [s]."""
    known = signal._replace(load=known_load(flows, s, signal))
    fields = {name: getattr(known, name) for name in SIGNALS if name in Ack._fields}
    return Ack(count, elapsed, rtt, marked=signal.mark, **fields)


def sending_rate(flows: Flows, s: Sender, signal: Signal, rtt: Num) -> Num:
    """Rate of one active flow [packet/s]: its flight over the round trip, in the share of time
    that it is not recovering from losses.
    """
    return _running(flows, s, signal, rtt) * _flight(flows, s, signal) / rtt


def _flight(flows: Flows, s: Sender, signal: Signal) -> Num:
    """Mean packets in flight of a flow that is not recovering from losses."""
    return flows.feedback.flight_size(flows.window.window(s.law), signal.mark)


def _running(flows: Flows, s: Sender, signal: Signal, rtt: Num) -> Num:
    """Share of the time in which a flow is not recovering from losses."""
    closure = _closure(flows)
    if closure.window(signal.drop, rtt) is not None:  # it includes the whole cost of losses
        return 1.0
    w, rate = flows.window.window(s.law), _flight(flows, s, signal) / rtt
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
    law, w = flows.window, flows.window.window(s.law)
    mark = marks_seen(flows, signal)
    one = acknowledgement(flows, s, signal, rtt)
    like = (s, *one)

    def ack(count: Num, elapsed: Num) -> Ack:
        return one._replace(count=count, elapsed=elapsed)

    in_time = slope(lambda k: law.on_ack(s.law, ack(0.0, k)), *like)
    growing = summed(
        scaled(growth, slope(lambda k: law.on_ack(s.law, ack(k, 0.0)), *like)),
        scaled(_running(flows, s, signal, rtt), in_time),
    )
    if starts_slowly(flows):  # one packet more for each clean ACK
        slowly = law.change(s.law, window=s.slow * acks * (1 - mark))
        growing = summed(scaled(1 - s.slow, growing), slowly)
    lost = _closure(flows).lost(
        signal.drop, w, rtt, carried if flows.feedback.quench else acks, law.recovery
    )
    to_one_packet = law.change(s.law, window=ops.minimum(1.0 - w, 0.0))
    reacting = flows.reaction.shares(mark, w).reacting
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
        fresh = flows.window.start(0.0 * w + traffic.first_window())
        law = map_tree(lambda c, a, b: c + renewed * (a - b), law, fresh, s.law)
        slow = slow + renewed * (1 - s.slow)
    return Sender(law, slow, active, estimate)
