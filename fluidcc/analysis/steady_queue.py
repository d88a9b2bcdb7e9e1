"""Where the memory of a queue law comes to rest, for a given queue or for a given signal.

The place of a link is one number: at 0 and above it is the queue of a busy link [packet], below 0
the queue is empty and 1 + place of its capacity arrives.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from fluidcc.laws.law import Arrival, Signal
from fluidcc.model.rates import arrival_rate, link_says
from fluidcc.ops import Num
from fluidcc.scenario.network import Link

_LONG = 1e12  # s of arrivals after which averages are at rest
_ROUNDS = 400  # of ticks, or of ever more ticks at once
_MOST_TICKS = 2.0**200
_STEPS = 20
_LEAST_KEPT = 1e-6  # of the arrivals; keeps their rate finite where all are lost
_SAME = 1e-14  # difference of two marking probabilities that are the same
_ASIDE = 1e-9  # relative distance to either side of a place


def queue_at(place: Num) -> Num:
    """The queue [packet]."""
    return jnp.maximum(place, 0.0)


def offered_rate(link: Link, place: Num, lost: Num = 0.0) -> Num:
    """The rate that arrives [packet/s]; at a busy link the share `lost` of it does not get in."""
    busy = link.capacity / jnp.maximum(1 - lost, _LEAST_KEPT)
    return jnp.where(place < 0, link.capacity * (1 + place), busy)


def just_beside(place: Num, side: Num) -> Num:
    """A place that is next to this one: below it (`side` -1) or above (1)."""
    return place + side * _ASIDE * (1 + jnp.abs(place))


def _moved(state: Any, change: Any) -> Any:
    return jax.tree.map(lambda a, b: a + b, state, change)


def tick_change(link: Link, x: Any, place: Num) -> Any:
    """Change at a tick."""
    return link.queue.on_tick(x, Arrival(0.0, 0.0, queue_at(place), link.capacity))


def after_arrivals(link: Link, x: Any, place: Num, time: Num = _LONG, lost: Num = 0.0) -> Any:
    """Memory after `time` seconds of arrivals at the rate of the place; without ticks.

    The share `lost` of them, at a full buffer, arrives beyond that rate.
    """
    law = link.queue
    seen = Arrival(offered_rate(link, place, lost) * time, time, queue_at(place), link.capacity)
    new = _moved(x, law.on_arrival(x, seen))
    if law.limits is None:
        return new
    low, high = law.limits
    return jax.tree.map(jnp.clip, new, low, high)


def steady_memory(link: Link, place: Num, start: int = 0, lost: Num = 0.0) -> Any:
    """Memory of a queue law after endless time at a place, from one of the law's starts.

    The share `lost` of the arrivals, at a full buffer, does not get in.

    Arrivals without end first; then periods of arrivals with a tick, until nothing moves or all
    that moves is beyond any bound. The memory is the one that the next tick finds.
    """
    law = link.queue
    starts = law.initial_states(queue_at(place))
    first = starts[min(start, len(starts) - 1)]
    x = jax.tree.map(lambda v: jnp.asarray(v, float), first)
    if not jax.tree.leaves(x):
        return x
    x = after_arrivals(link, x, place, lost=lost)
    if law.period is None:
        return x
    time = getattr(law, law.period)

    def change(x: Any) -> Any:
        due = after_arrivals(link, x, place, time, lost)
        after = _moved(due, tick_change(link, due, place))
        return jax.tree.map(lambda a, b: a - b, after, x)

    return after_arrivals(link, _ticked(change, x), place, time, lost)


def _ticked(change: Any, x: Any) -> Any:
    """The state after endless steps of `change`: many at once as long as each is like the one
    before, or the same share of it, as averages and multiplied probabilities move.
    """
    flat, shape = ravel_pytree(x)

    def step(v: Num) -> Num:
        return ravel_pytree(change(shape(v)))[0]

    def moving(carry: tuple) -> Num:
        count, _, move, _, _ = carry
        return (count < _ROUNDS) & jnp.any(move != 0)

    def go(carry: tuple) -> tuple:
        count, v, move, rate, ticks = carry  # each step is exp(rate) of the one before
        grown = jnp.expm1(ticks * rate)
        there = v + move * jnp.where(rate == 0, ticks, grown / jnp.expm1(rate))
        next_move = step(there)
        off = jnp.abs(next_move - move * (1 + grown))
        same = jnp.all(off <= 1e-6 * jnp.abs(move * (1 + grown)) + 1e-15 * jnp.abs(there))
        fine = same | (ticks <= 1)
        share = jnp.where(move * next_move > 0, next_move / jnp.where(move == 0, 1.0, move), 1.0)
        like = jnp.abs(share - 1) <= 1e-9
        found = jnp.where(like, 0.0, jnp.log(share) / ticks)
        ticks = jnp.where(fine, jnp.minimum(2 * ticks, _MOST_TICKS), jnp.maximum(ticks / 2, 1.0))
        return (
            count + 1, jnp.where(fine, there, v), jnp.where(fine, next_move, move),
            jnp.where(fine, found, rate), ticks,
        )  # fmt: skip

    first = (0, flat, step(flat), jnp.zeros_like(flat), jnp.ones(()))
    return shape(jax.lax.while_loop(moving, go, first)[1])


def signal_of(link: Link, x: Any, place: Num, lost: Num = 0.0) -> Signal:
    """What a link with this memory says to packets, shapes ()."""
    return link_says(link, x, queue_at(place), offered_rate(link, place, lost))


def steady_signal(link: Link, place: Num, start: int = 0, lost: Num = 0.0) -> Signal:
    """What a link says after endless time at a place, where the share `lost` does not get in."""
    return signal_of(link, steady_memory(link, place, start, lost), place, lost)


class HeldMemory(NamedTuple):
    """A memory that says a given signal at a place."""

    memory: Any
    found: Num  # whether there is one
    smooth: Num  # whether the ticks leave it alone on both sides of the place
    sliding: Num  # whether they move it on both sides


@jax.jit
def memory_with_mark(link: Link, place: Num, mark: Num, lost: Num) -> HeldMemory:
    """The memory with which a link marks with probability `mark` at a place where it may rest,
    while the share `lost` of what arrives does not get in.

    Arrivals leave it alone; whether ticks do as well decides if the place is an equilibrium, a
    sliding one, where ticks move the signal up on one side and down on the other, or the end of
    many equilibria, where they move it on one side alone.
    """
    first, shape = ravel_pytree(steady_memory(link, place, lost=lost))

    def residual(v: Num) -> Num:
        x = shape(v)
        still = arrival_rate(link, x, queue_at(place), offered_rate(link, place, lost))
        return jnp.append(ravel_pytree(still)[0], signal_of(link, x, place, lost).mark - mark)

    def improve(_: int, v: Num) -> Num:
        slopes = jax.jacfwd(residual)(v)
        return v - jnp.linalg.pinv(slopes) @ residual(v)

    x = shape(jax.lax.fori_loop(0, _STEPS, improve, first))
    found = jnp.abs(signal_of(link, x, place, lost).mark - mark) < _SAME
    if link.queue.period is None:
        return HeldMemory(x, found, jnp.asarray(True), jnp.asarray(False))

    size = 1 + jnp.abs(ravel_pytree(x)[0])
    places = (just_beside(place, -1), place, just_beside(place, 1))
    ticks = [
        ravel_pytree(tick_change(link, after_arrivals(link, x, there, lost=lost), there))[0]
        for there in places
    ]
    ticks = jnp.stack([change / size for change in ticks])
    moved = jnp.any(jnp.abs(ticks) >= 1e-6, axis=1)
    return HeldMemory(x, found, ~jnp.any(moved), moved[0] & moved[2])
