"""What travels, what is seen late, and how late: the delays of a network.

Delays are those of the present queues, or of first-in first-out queues, solved on the record of the
queues: a packet that entered a queue at s leaves it at s + q(s)/C, so the packets acknowledged now
are found by going back through the queues one by one. Unlike the delay by present queues this clock
never turns back: the derivative of s + q(s)/C is Y(s)/C.
"""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fluidcc.laws.law import Signal, Trip
from fluidcc.ops import Num
from fluidcc.scenario.network import Flows, Network
from fluidcc.scenario.ways import first_hop, link_delays, reverse_delays

QueueAt = Callable[[int, Num, int], Num]
"""Queue of link k at earlier times (m,) [packet], at which packets of a passage entered it; the
passages of a group are numbered as `Way.passages` lists them."""

_ITERATIONS = 60
_LEAST_SLOPE = 1e-6  # s + q(s)/C is flat while nothing arrives


class State(NamedTuple):
    """Everything that has memory: senders per group (m,), queues and queue laws per link.

    Simulations also keep what moves by jumps alone: the times of the next ticks [s], per link, per
    group (m,), and per link with calls that vary; and the rate of these calls [packet/s]. `()` is
    where there is none.
    """

    senders: tuple
    queues: tuple
    laws: tuple
    clocks: tuple = ()
    services: tuple = ()


def kinks(net: Network, y: State) -> list[tuple[int, Num]]:
    """Links and distances to the kinks and jumps of their signals, 0 there, in a fixed order."""
    return [
        (k, distance)
        for k, (link, x, q) in enumerate(zip(net.links, y.laws, y.queues, strict=True))
        for distance in link.queue.kinks(x, q)
    ]


def kink_distances(net: Network, y: State) -> Num:
    """The distances of `kinks`, (c,)."""
    found = [jnp.asarray(distance, float) for _, distance in kinks(net, y)]
    return jnp.stack(found) if found else jnp.zeros(0)


class Wire(NamedTuple):
    """Everything that travels, hence everything that is ever seen late."""

    rates: tuple  # of one flow, per group (m,) [packet/s]
    signals: tuple  # Signal per link
    paces: tuple  # per link: C/(C + q'), packets acknowledged or missed per packet entered


class Passed(NamedTuple):
    """What packets met at a link on their way."""

    signal: Signal
    pace: Num


class Past(NamedTuple):
    """What is looked up on the wire: per group (m,), and per group and link of its route."""

    acked: tuple  # rate, as the packets acknowledged now were sent
    carried: tuple  # rate, as the packets that bring the signal were sent
    heard: tuple  # Signal, as it was decided
    arriving: tuple  # rate, as the packets entering the queue now were sent
    passed: tuple  # Passed of each link before, as the packets entering the queue now entered it
    paces: tuple  # of the link, as the packets acknowledged now entered it


class Way(NamedTuple):
    """How long ago a group's packets passed each link of its route [s], shape (m,) each."""

    trips: tuple[Trip, ...]  # of the packets acknowledged now, or quenched where quenches tell
    entering: tuple[Num, ...]  # since packets that enter each queue now were sent
    entered: tuple[Num, ...]  # since packets acknowledged now entered each queue
    before: tuple[tuple[Num, ...], ...]  # since packets entering each now entered those before it
    passages: tuple[tuple[int, Num], ...] = ()  # through queues on record: link, since the entry


def round_trip(net: Network, flows: Flows, queues: tuple[Num, ...]) -> Num:
    """Round-trip time of a packet sent now [s], shape (m,)."""
    return flows.rtt + sum(queues[k] / net.links[k].capacity for k in flows.route)


def explicit_way(net: Network, flows: Flows, queues: tuple[Num, ...]) -> Way:
    """The passage as if every packet had met the present queues."""
    total = round_trip(net, flows, queues)
    forward, trips = first_hop(flows), []
    for k, reverse in zip(flows.route, reverse_delays(flows, link_delays(net)), strict=True):
        wait = queues[k] / net.links[k].capacity
        trips.append(Trip(total, forward, wait, reverse))
        forward = forward + wait + net.links[k].delay
    ahead = tuple(t.forward for t in trips)
    before = tuple(tuple(f - earlier for earlier in ahead[:j]) for j, f in enumerate(ahead))
    return Way(tuple(trips), ahead, tuple(total - f for f in ahead), before)


def entry_time(leaving: Num, wait_at: Callable[[Num], Num]) -> Num:
    """Time s at which packets that leave a queue at `leaving` entered it: s + wait(s) = leaving.

    Newton's method for times of shape (m,), kept between the latest that was too early and the
    earliest that was too late, as the wait may have kinks anywhere; differentiable twice.
    """

    def newton(s: Num) -> tuple[Num, Num]:
        excess, slope = jax.jvp(lambda s: s + wait_at(s) - leaving, (s,), (jnp.ones_like(s),))
        return excess, s - excess / jnp.maximum(slope, _LEAST_SLOPE)

    def narrow(state: tuple[Num, ...]) -> tuple[Num, ...]:
        s, low, high, _, count = state
        excess, ahead = lax.stop_gradient(newton(s))
        low, high = jnp.where(excess < 0, s, low), jnp.where(excess < 0, high, s)
        inside = ((ahead > low) & (ahead < high)) | (ahead == s)
        middle = 0.5 * (low + high)
        ahead = jnp.where(inside | ~jnp.isfinite(middle), ahead, middle)
        moved = jnp.abs(ahead - s) > 1e-15 * (jnp.abs(s) + jnp.abs(leaving - s))
        return ahead, low, high, moved & (excess != 0), count + 1

    def on(state: tuple[Num, ...]) -> Num:
        return jnp.any(state[3]) & (state[4] < _ITERATIONS)

    far = jnp.full_like(leaving, jnp.inf)
    start = (lax.stop_gradient(leaving), -far, far, jnp.ones_like(leaving, bool), jnp.int32(0))
    found = lax.while_loop(on, narrow, start)[0]
    # first and second derivatives, one step each: slopes of what is read at s are derivatives of s
    return newton(newton(found)[1])[1]


def fifo_way(
    net: Network,
    flows: Flows,
    t: Num,
    queue_at: QueueAt,
    entry: Callable[[Num, Callable[[Num], Num]], Num] = entry_time,
) -> Way:
    """The passage of packets through queues that serve in order of arrival.

    `entry` finds the time at which packets that leave a queue entered it.
    """
    passages: list[tuple[int, Num]] = []
    now = jnp.broadcast_to(jnp.asarray(t, float), jnp.shape(flows.rtt))

    def entered(k: int, leaving: Num) -> Num:
        """When packets entered queue k that leave it at `leaving`."""
        number = len(passages)
        found = entry(leaving, lambda s: queue_at(k, s, number) / net.links[k].capacity)
        passages.append((k, now - found))
        return found

    def back_from(last: int, time: Num) -> list[Num]:
        """Entry times up to link number `last` of the route, which is entered at `time`."""
        times = [time]
        for j in reversed(range(last)):
            k = flows.route[j]
            times.insert(0, entered(k, times[0] - net.links[k].delay))
        return times

    last = len(flows.route) - 1
    before_last = first_hop(flows) + sum(net.links[k].delay for k in flows.route[:last])
    left = now - (flows.rtt - before_last)
    times = back_from(last, entered(flows.route[last], left))
    sent = times[0] - first_hop(flows)
    arriving = [back_from(j, now) for j in range(last + 1)]
    entering = tuple(now - (found[0] - first_hop(flows)) for found in arriving)
    before = tuple(tuple(now - s for s in found[:-1]) for found in arriving)
    upstream = zip(times[1:], flows.route[:-1], strict=True)
    leaving = [*(s - net.links[k].delay for s, k in upstream), left]
    trips = []
    for j, reverse in enumerate(reverse_delays(flows, link_delays(net))):
        ahead = times[j] - sent
        if flows.feedback.quench:
            ahead = now - reverse - (back_from(j, now - reverse)[0] - first_hop(flows))
        trips.append(Trip(now - sent, ahead, leaving[j] - times[j], reverse))
    ages = tuple(now - s for s in times)
    return Way(tuple(trips), entering, ages, before, tuple(passages))


def ages_on(net: Network, ways: list[Way]) -> Past:
    """Age of every looked-up number [s], in the shape of Past, for the passage of each group."""

    def each(pick: Callable[[Flows, Way], Any]) -> tuple:
        def full(flows: Flows, way: Way) -> Any:
            shape = jnp.shape(flows.rtt)
            return jax.tree.map(
                lambda v: jnp.broadcast_to(jnp.asarray(v, float), shape), pick(flows, way)
            )

        return tuple(full(f, w) for f, w in zip(net.flows, ways, strict=True))

    def signal_ages(age: Num) -> Signal:
        return Signal(*(age for _ in Signal._fields))

    def heard(flows: Flows, way: Way) -> tuple[Signal, ...]:
        return tuple(signal_ages(flows.feedback.age(t)) for t in way.trips)

    def passed(flows: Flows, way: Way) -> tuple[tuple[Passed, ...], ...]:
        return tuple(tuple(Passed(signal_ages(age), age) for age in ages) for ages in way.before)

    return Past(
        acked=each(lambda f, w: w.trips[0].round_trip),
        carried=each(lambda f, w: tuple(f.feedback.carrier(t) for t in w.trips)),
        heard=each(heard),
        arriving=each(lambda f, w: w.entering),
        passed=each(passed),
        paces=each(lambda f, w: w.entered),
    )


def ages(net: Network, y: State) -> Past:
    """Age of every looked-up number [s], in the shape of Past, from the present queues."""
    return ages_on(net, [explicit_way(net, flows, y.queues) for flows in net.flows])


def picks(net: Network) -> Past:
    """Index of every looked-up number in the flattened Wire, in the shape of Past."""
    sizes = [np.size(f.rtt) for f in net.flows]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    fields = len(Signal._fields)
    first_signal = int(starts[-1])
    first_pace = first_signal + fields * len(net.links)
    own = [np.arange(a, b) for a, b in itertools.pairwise(starts)]

    def same(index: int, flows: Flows) -> np.ndarray:
        return np.full(np.shape(flows.rtt), index)

    def signal(k: int, flows: Flows) -> Signal:
        return Signal(*(same(first_signal + fields * k + j, flows) for j in range(fields)))

    def before(flows: Flows) -> tuple[tuple[Passed, ...], ...]:
        met = [Passed(signal(k, flows), same(first_pace + k, flows)) for k in flows.route]
        return tuple(tuple(met[:j]) for j in range(len(met)))

    return Past(
        acked=tuple(own),
        carried=tuple(tuple(o for _ in f.route) for o, f in zip(own, net.flows, strict=True)),
        heard=tuple(tuple(signal(k, f) for k in f.route) for f in net.flows),
        arriving=tuple(tuple(o for _ in f.route) for o, f in zip(own, net.flows, strict=True)),
        passed=tuple(before(f) for f in net.flows),
        paces=tuple(tuple(same(first_pace + k, f) for k in f.route) for f in net.flows),
    )
