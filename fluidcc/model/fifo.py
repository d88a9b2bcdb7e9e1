"""Delays of first-in first-out queues, solved on the record of the queues.

A packet that entered a queue at s leaves it at s + q(s)/C, so the packets acknowledged now are
found by going back through the queues one by one. Unlike the delay by present queues this clock
never turns back: the derivative of s + q(s)/C is Y(s)/C.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from fluidcc.laws.law import Trip
from fluidcc.model.delays import Way
from fluidcc.ops import Num
from fluidcc.scenario.network import Flows, Network
from fluidcc.scenario.ways import first_hop, link_delays, reverse_delays

QueueAt = Callable[[int, Num, int], Num]
"""Queue of link k at earlier times (m,) [packet], at which packets of a passage entered it; the
passages of a group are numbered as `Way.passages` lists them."""

_ITERATIONS = 60
_LEAST_SLOPE = 1e-6  # s + q(s)/C is flat while nothing arrives


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
