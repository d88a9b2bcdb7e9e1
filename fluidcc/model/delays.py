"""Signals that travel through a network, and the delays at which laws see them.

Delays are those of the present queues, or of first-in first-out queues, solved on the record of the
queues: a packet that entered a queue at s leaves it at s + q(s)/C, so the packets acknowledged now
are found by going back through the queues one by one. Unlike the delay by present queues this clock
never turns back: the derivative of s + q(s)/C is Y(s)/C.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.laws.law import (
    ALWAYS,
    SIGNALS,
    Ack,
    MarkingPoint,
    PathTimes,
    Signal,
    queueing_delay,
)
from fluidcc.ops import Num
from fluidcc.programs import map_tree
from fluidcc.scenario.network import (
    Flows,
    Link,
    Network,
    first_hop,
    forward_delays,
    link_delays,
    reverse_delays,
)

QueueAt = Callable[[int, Num, int], Num]
"""Queue of link k at earlier times (m,) [packet], at which packets of a passage entered it. The
passages of a group are numbered as `PathDelays.passages` lists them."""

_ITERATIONS = 60
_LEAST_SLOPE = 1e-6  # s + q(s)/C is flat while nothing arrives


class State(NamedTuple):
    """State of the network: senders per group (m,), queues and queue laws per link.

    Simulations also keep the piecewise constant parts: the times of the next ticks [s], per link,
    per group (m,), and per link with calls that vary; and the rate of these calls [packet/s]. `()`
    stands for none.
    """

    senders: tuple
    queues: tuple
    laws: tuple
    clocks: tuple = ()
    services: tuple = ()


def kinks(net: Network, y: State) -> list[tuple[int, Num]]:
    """Links with switching functions of their signals: 0 at a kink or jump, in a fixed order."""
    return [
        (k, distance)
        for k, (link, x, q) in enumerate(zip(net.links, y.laws, y.queues, strict=True))
        for distance in link.queue.breakpoints(x, link.arrival(0.0, 0.0, q))
    ]


def breakpoint_distances(net: Network, y: State) -> Num:
    """Values of the switching functions of `kinks`, (c,)."""
    distances = [distance for _, distance in kinks(net, y)]
    return ops.stack(distances) if distances else np.zeros(0)


class Outputs(NamedTuple):
    """Quantities that travel: only these are ever seen with a delay."""

    rates: tuple  # of one flow, per group (m,) [packet/s]
    signals: tuple  # Signal per link; None for fields that it lacks
    paces: tuple  # per link: C/(C + q'), packets acknowledged or missed per packet entered


def signal_fields(net: Network, k: int) -> tuple[str, ...]:
    """Fields of link k's signal: those its law emits, and measured ones that flows use."""
    received = {name for flows in net.flows if k in flows.route for name in flows.window.signals}
    emitted = {*ALWAYS, *net.links[k].queue.emits}
    return tuple(
        name for name, field in SIGNALS.items() if name in (received if field.measure else emitted)
    )


def fields_heard(net: Network, flows: Flows, k: int) -> tuple[str, ...]:
    """Fields of link k's signal that a group of flows receives."""
    carried, measured = (*ALWAYS, *flows.feedback.carries), flows.window.signals
    return tuple(
        name
        for name in signal_fields(net, k)
        if name in (measured if SIGNALS[name].measure else carried)
    )


def only(signal: Signal, fields: tuple[str, ...]) -> Signal:
    """The signal with None in all but some fields."""
    return Signal(*(v if k in fields else None for k, v in signal._asdict().items()))


def make_outputs(net: Network, rates: tuple, signals: tuple[Signal, ...], paces: tuple) -> Outputs:
    """The outputs from rates, signals with all fields, and paces."""
    used = (only(signal, signal_fields(net, k)) for k, signal in enumerate(signals))
    return Outputs(rates, tuple(used), paces)


class Passed(NamedTuple):
    """Signal and pace that packets met at a link on their way."""

    signal: Signal
    pace: Num


class DelayedInputs(NamedTuple):
    """Delayed outputs that laws see: per group (m,), and per group and link of its route.

    None stands for values that no law can see: arrivals from a source at its link, paces if they do
    not clock the senders, and carriers that are the acknowledged packets.
    """

    acked: tuple  # rate, as the packets acknowledged now were sent
    carried: tuple  # rate, as the packets that bring the signal were sent
    received: tuple  # Signal, at the time of marking
    arriving: tuple  # rate, as the packets entering the queue now were sent
    passed: tuple  # Passed of each link before, as the packets entering the queue now entered it
    paces: tuple  # of the link, as the packets acknowledged now entered it


def is_at_source(flows: Flows, j: int) -> bool:
    """Whether the sources sit at link number `j` of their route."""
    return flows.access_delay is None and all(k in flows.passes for k in flows.route[:j])


def _seen(net: Network, past: DelayedInputs) -> DelayedInputs:
    """The delayed inputs with None in place of those that no law can see."""
    none = [(None,) * len(flows.route) for flows in net.flows]
    groups = list(zip(net.flows, none, strict=True))
    carried = zip(groups, past.carried, strict=True)
    arriving = zip(net.flows, past.arriving, strict=True)
    paces = zip(net.flows, past.paces, strict=True) if net.rates == "self_clocked" else ()

    def waited(flows: Flows, seen: tuple) -> tuple:
        """What is seen of the links at which the flows wait."""
        return tuple(
            None if k in flows.passes else v
            for k, v in zip(flows.route, seen, strict=False)
        )  # fmt: skip

    return past._replace(
        carried=tuple(v if f.feedback.quench else empty for (f, empty), v in carried),
        arriving=tuple(
            tuple(None if is_at_source(f, j) else one for j, one in enumerate(v))
            for f, v in arriving
        ),
        passed=tuple(
            tuple(waited(f, links) for links in v)
            for f, v in zip(net.flows, past.passed, strict=True)
        ),
        paces=tuple(waited(f, v) for f, v in paces) or tuple(none),
    )


class PathDelays(NamedTuple):
    """How long ago a group's packets passed each link of its route [s], shape (m,) each."""

    trips: tuple[PathTimes, ...]  # of packets acknowledged now; quenched now with quenches
    entering: tuple[Num, ...]  # since packets that enter each queue now were sent
    entered: tuple[Num, ...]  # since packets acknowledged now entered each queue
    before: tuple[tuple[Num, ...], ...]  # since packets entering each now entered those before it
    passages: tuple[tuple[int, Num], ...] = ()  # through queues on record: link, since the entry
    lookback: Num = 0.0  # from these packets to that of the delay before


def signal_age(flows: Flows, link: Link, trip: PathTimes) -> Num:
    """Age of a link's signal when the flows receive it [s]; its law may decide as packets leave."""
    feedback = flows.feedback
    entering = feedback.on_data and feedback.marking_point is MarkingPoint.ENTRY
    if entering and link.queue.at_departure:
        trip = trip._replace(forward=trip.forward + trip.queueing)
    return feedback.age(trip)


def path_delay(net: Network, flows: Flows, queues: Sequence[Num]) -> Num:
    """Queueing delay over all links on the route of a packet sent now [s]."""
    waits = (
        queueing_delay(queues[k], net.links[k].capacity)
        for k in flows.route if k not in flows.passes
    )  # fmt: skip
    return sum(waits)


def round_trip(net: Network, flows: Flows, queues: tuple[Num, ...]) -> Num:
    """Round-trip time of a packet sent now [s], shape (m,)."""
    return flows.rtt + path_delay(net, flows, queues)


def explicit_delays(net: Network, flows: Flows, queues: tuple[Num, ...]) -> PathDelays:
    """Delays as if every packet had met the present queues."""
    total = round_trip(net, flows, queues)
    forward, trips = first_hop(flows), []
    for k, reverse in zip(flows.route, reverse_delays(flows, link_delays(net)), strict=True):
        if k in flows.passes:
            trips.append(PathTimes(total, forward, 0.0, reverse))
            continue
        wait = queueing_delay(queues[k], net.links[k].capacity)
        trips.append(PathTimes(total, forward, wait, reverse))
        forward = forward + wait + net.links[k].delay
    ahead = tuple(t.forward for t in trips)
    before = tuple(tuple(f - earlier for earlier in ahead[:j]) for j, f in enumerate(ahead))
    return PathDelays(tuple(trips), ahead, tuple(total - f for f in ahead), before)


def entry_time(leaving: Num, wait_at: Callable[[Num], Num]) -> Num:
    """Time s at which packets that leave a queue at `leaving` entered it: s + wait(s) = leaving.

    Newton's method for times of shape (m,), safeguarded by a bracket, as the wait may have kinks:
    the latest time that was too early and the earliest that was too late. Differentiable twice.
    """
    from fluidcc.arrays import jax, jnp

    def excess(s: Num) -> Num:
        return s + wait_at(s) - leaving

    def narrow(state: tuple[Num, ...]) -> tuple[Num, ...]:
        s, low, high, _, count = state
        over, slope = jax.jvp(excess, (s,), (jnp.ones_like(s),))
        ahead = s - over / jnp.maximum(slope, _LEAST_SLOPE)
        low, high = jnp.where(over < 0, s, low), jnp.where(over < 0, high, s)
        inside = ((ahead > low) & (ahead < high)) | (ahead == s)
        middle = 0.5 * (low + high)
        ahead = jnp.where(inside | ~jnp.isfinite(middle), ahead, middle)
        moved = jnp.abs(ahead - s) > 1e-15 * (jnp.abs(s) + jnp.abs(leaving - s))
        return ahead, low, high, moved & (over != 0), count + 1

    def is_unfinished(state: tuple[Num, ...]) -> Num:
        return jnp.any(state[3]) & (state[4] < _ITERATIONS)

    def solve(_: Any, guess: Num) -> Num:
        far = jnp.full_like(guess, jnp.inf)
        start = (guess, -far, far, jnp.ones_like(guess, bool), jnp.int32(0))
        return jax.lax.while_loop(is_unfinished, narrow, start)[0]

    def divide(linear: Callable[[Num], Num], change: Num) -> Num:
        return change / jnp.maximum(linear(jnp.ones_like(change)), _LEAST_SLOPE)

    # the loop has no derivatives: those of the root are those of an implicit function
    return jax.lax.custom_root(excess, leaving, solve, divide)


def fifo_delays(
    net: Network,
    flows: Flows,
    t: Num,
    queue_at: QueueAt,
    entry: Callable[[Num, Callable[[Num], Num]], Num] = entry_time,
) -> PathDelays:
    """Delays of packets through queues that serve in order of arrival.

    `entry` finds the time at which packets that leave a queue entered it.
    """
    passages: list[tuple[int, Num]] = []
    now = ops.broadcast_to(t, np.shape(flows.rtt))

    def find_entry(k: int, leaving: Num) -> Num:
        """When packets entered queue k that leave it at `leaving`."""
        number = len(passages)
        capacity = net.links[k].capacity
        entered = entry(leaving, lambda s: queueing_delay(queue_at(k, s, number), capacity))
        passages.append((k, now - entered))
        return entered

    def back_from(last: int, time: Num) -> list[Num]:
        """Entry times up to link number `last` of the route, which is entered at `time`."""
        times = [time]
        for j in reversed(range(last)):
            k = flows.route[j]
            passes = k in flows.passes
            entered = times[0] if passes else find_entry(k, times[0] - net.links[k].delay)
            times.insert(0, entered)
        return times

    last = len(flows.route) - 1
    before_last = forward_delays(flows, link_delays(net))[last]
    left = now - (flows.rtt - before_last)
    times = back_from(last, find_entry(flows.route[last], left))
    sent = times[0] - first_hop(flows)
    arriving = [back_from(j, now) for j in range(last + 1)]
    entering = tuple(now - (times[0] - first_hop(flows)) for times in arriving)
    before = tuple(tuple(now - s for s in times[:-1]) for times in arriving)
    upstream = zip(times[1:], flows.route[:-1], strict=True)
    own = (s if k in flows.passes else s - net.links[k].delay for s, k in upstream)
    leaving = [*own, left]
    trips = []
    for j, reverse in enumerate(reverse_delays(flows, link_delays(net))):
        ahead = times[j] - sent
        if flows.feedback.quench:
            ahead = now - reverse - (back_from(j, now - reverse)[0] - first_hop(flows))
        trips.append(PathTimes(now - sent, ahead, leaving[j] - times[j], reverse))
    ages = tuple(now - s for s in times)
    return PathDelays(tuple(trips), entering, ages, before, tuple(passages))


def ages_along(
    net: Network, delays: list[PathDelays], senders: tuple | None = None
) -> DelayedInputs:
    """Age of every delayed input [s], from the path delays of each group; without the memories of
    the `senders` their laws do not look back.
    """
    if senders is not None:
        delays = list(map(looking_back, net.flows, senders, delays))

    def each(pick: Callable[[Flows, PathDelays], Any]) -> tuple:
        def full(flows: Flows, path: PathDelays) -> Any:
            shape = np.shape(flows.rtt)
            return map_tree(lambda v: ops.broadcast_to(v, shape), pick(flows, path))

        return tuple(full(f, w) for f, w in zip(net.flows, delays, strict=True))

    def signal_ages(
        age: Num, fields: tuple[str, ...] = ALWAYS, entered: Num = 0.0, lookback: Num = 0.0
    ) -> Signal:
        ages = []
        for field in SIGNALS.values():
            measured = entered + lookback if field.looks_back else entered
            ages.append(measured if field.measure else age)
        return only(Signal(*ages), fields)

    def received(flows: Flows, way: PathDelays) -> tuple[Signal, ...]:
        return tuple(
            signal_ages(
                signal_age(flows, net.links[k], trip), fields_heard(net, flows, k), entered,
                way.lookback,
            )
            for k, trip, entered in zip(flows.route, way.trips, way.entered, strict=True)
        )  # fmt: skip

    def passed(flows: Flows, way: PathDelays) -> tuple[tuple[Passed, ...], ...]:
        return tuple(tuple(Passed(signal_ages(age), age) for age in ages) for ages in way.before)

    past = DelayedInputs(
        acked=each(lambda f, w: w.trips[0].round_trip),
        carried=each(lambda f, w: tuple(f.feedback.carrier(t) for t in w.trips)),
        received=each(received),
        arriving=each(lambda f, w: w.entering),
        passed=each(passed),
        paces=each(lambda f, w: w.entered),
    )
    return _seen(net, past)


def ages(net: Network, y: State) -> DelayedInputs:
    """Age of every delayed number [s], in the shape of DelayedInputs, from the present queues."""
    delays = [explicit_delays(net, flows, y.queues) for flows in net.flows]
    return ages_along(net, delays, y.senders)


def looking_back(flows: Flows, s: Any, delays: PathDelays) -> PathDelays:
    """The delays of senders with a memory `s`, whose law may read a delay before."""
    if not any(SIGNALS[name].looks_back for name in flows.window.signals):
        return delays
    rtt = delays.trips[0].round_trip
    ack = Ack(1.0, 0.0, rtt, propagation=flows.rtt + 0.0 * rtt)
    return delays._replace(lookback=flows.window.lookback(s.law, ack))


def output_index(net: Network) -> Outputs:
    """Index of every number in the flattened Outputs."""
    ends = np.cumsum([np.size(f.rtt) for f in net.flows])
    rates = tuple(np.split(np.arange(ends[-1]), ends[:-1]))
    count = itertools.count(int(ends[-1]))
    signals = tuple(
        Signal(*(next(count) if name in fields else None for name in SIGNALS))
        for fields in (signal_fields(net, k) for k in range(len(net.links)))
    )
    return Outputs(rates, signals, tuple(next(count) for _ in net.links))


def output_indices(net: Network) -> DelayedInputs:
    """Index of every delayed number in the flattened Outputs, in the shape of DelayedInputs."""
    rates, signals, paces = output_index(net)

    def for_each_trip(flows: Flows, index: Any) -> Any:
        return map_tree(lambda i: np.full(np.shape(flows.rtt), i), index)

    def received(flows: Flows) -> tuple[Signal, ...]:
        known = ((k, fields_heard(net, flows, k)) for k in flows.route)
        return tuple(for_each_trip(flows, only(signals[k], fields)) for k, fields in known)

    def before(flows: Flows) -> tuple[tuple[Passed, ...], ...]:
        met = [
            for_each_trip(flows, Passed(only(signals[k], ALWAYS), paces[k])) for k in flows.route
        ]
        return tuple(tuple(met[:j]) for j in range(len(met)))

    by_link = tuple((rate,) * len(f.route) for rate, f in zip(rates, net.flows, strict=True))
    past = DelayedInputs(
        acked=rates,
        carried=by_link,
        received=tuple(received(f) for f in net.flows),
        arriving=by_link,
        passed=tuple(before(f) for f in net.flows),
        paces=tuple(tuple(for_each_trip(f, paces[k]) for k in f.route) for f in net.flows),
    )
    return _seen(net, past)
