"""Delays of first-in first-out queues, solved on the record of the queues.

A packet that entered a queue at s leaves it at s + q(s)/C, so the packets acknowledged now are
found by going back through the queues one by one. Unlike the delay by present queues this clock
never turns back: the derivative of s + q(s)/C is Y(s)/C.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from fluidcc.fluid.delays import Way
from fluidcc.laws.law import Trip
from fluidcc.network import Flows, Network
from fluidcc.ops import Num
from fluidcc.ways import first_hop, link_delays, reverse_delays

QueueAt = Callable[[int, Num], Num]
"""Queue of link k at earlier times (m,) [packet]."""

_ITERATIONS = 16
_LEAST_SLOPE = 0.2  # s + q(s)/C is nearly flat while little arrives


def entry_time(leaving: Num, wait_at: Callable[[Num], Num]) -> Num:
    """Time s at which packets that leave a queue at `leaving` entered it: s + wait(s) = leaving.

    Newton's method for times of shape (m,) between times that are known to be too early and too
    late, as the wait may have kinks anywhere; differentiable.
    """

    def late(s: Num) -> Num:
        return s + wait_at(s) - leaving

    def newton(s: Num) -> tuple[Num, Num]:
        excess, slope = jax.jvp(late, (s,), (jnp.ones_like(s),))
        return excess, s - excess / jnp.maximum(slope, _LEAST_SLOPE)

    def narrow(_: Num, bracket: tuple[Num, Num, Num]) -> tuple[Num, Num, Num]:
        s, low, high = bracket
        excess, ahead = newton(s)
        low, high = jnp.where(excess < 0, s, low), jnp.where(excess < 0, high, s)
        inside = ((ahead > low) & (ahead < high)) | (ahead == s)
        return jnp.where(inside, ahead, 0.5 * (low + high)), low, high

    start = (leaving, jnp.full_like(leaving, -jnp.inf), leaving)
    s = lax.stop_gradient(lax.fori_loop(0, _ITERATIONS, narrow, start)[0])
    return jnp.minimum(newton(s)[1], leaving)


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

    def wait(k: int) -> Callable[[Num], Num]:
        return lambda s: queue_at(k, s) / net.links[k].capacity

    def back_from(last: int, entered: Num) -> list[Num]:
        """Entry times up to link number `last` of the route, which is entered at `entered`."""
        times = [entered]
        for j in reversed(range(last)):
            k = flows.route[j]
            times.insert(0, entry(times[0] - net.links[k].delay, wait(k)))
        return times

    last = len(flows.route) - 1
    now = jnp.broadcast_to(jnp.asarray(t, float), jnp.shape(flows.rtt))
    before_last = first_hop(flows) + sum(net.links[k].delay for k in flows.route[:last])
    left = now - (flows.rtt - before_last)
    times = back_from(last, entry(left, wait(flows.route[last])))
    sent = times[0] - first_hop(flows)
    arriving = [back_from(j, now) for j in range(last + 1)]
    entering = tuple(now - (found[0] - first_hop(flows)) for found in arriving)
    before = tuple(tuple(now - s for s in found[:-1]) for found in arriving)
    trips = []
    backs = reverse_delays(flows, link_delays(net))
    for j, (k, reverse) in enumerate(zip(flows.route, backs, strict=True)):
        ahead = times[j] - sent
        if flows.feedback.quench:
            ahead = now - reverse - (back_from(j, now - reverse)[0] - first_hop(flows))
        trips.append(Trip(now - sent, ahead, wait(k)(times[j]), reverse))
    return Way(tuple(trips), entering, tuple(now - s for s in times), before)
