"""The search for the length at which a step ends on an event."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

MAX_TRIALS = 60


class Search(NamedTuple):
    """State of the search for the end of the present step."""

    first_guards: Array  # at the start of the step
    low: Array  # longest length tried at which every guard was positive
    high: Array  # shortest length tried at which some guard was negative, or infinity
    high_guards: Array
    last: Array  # latest length tried
    last_guards: Array
    landing: Array  # whether the next trial is the one that lands
    hit: Array  # (m,) guards that are zero there
    trials: Array
    passes: Array  # of a step on its own interpolant


def fresh(guards: Array) -> Search:
    """The search at the start of a step where the guards have these values."""
    zero = jnp.zeros((), guards.dtype)
    return Search(
        first_guards=guards,
        low=zero,
        high=zero + jnp.inf,
        high_guards=guards,
        last=zero,
        last_guards=guards,
        landing=jnp.zeros((), bool),
        hit=jnp.zeros(guards.shape, bool),
        trials=jnp.int32(0),
        passes=jnp.int32(0),
    )


def narrow(search: Search, h: Array, guards: Array) -> tuple[Search, Array, Array]:
    """Take a trial into the bracket; the next length to try, and the guard that decides it.

    Each guard that is negative at the far end predicts its zero by the secant through the last
    two trials; the first counts. What leaves the bracket is replaced by its middle.
    """
    bad = jnp.any(guards <= 0.0)
    low = jnp.where(bad, search.low, h)
    high = jnp.where(bad, h, search.high)
    high_guards = jnp.where(bad, guards, search.high_guards)
    gap = h - search.last
    fall = (guards - search.last_guards) / jnp.where(gap == 0.0, 1.0, gap)
    usable = (high_guards <= 0.0) & (fall < 0.0)
    zero = jnp.where(usable, h - guards / jnp.where(usable, fall, -1.0), jnp.inf)
    index = jnp.where(jnp.any(usable), jnp.argmin(zero), jnp.argmin(high_guards))
    length = zero[index]
    inside = (length > low) & (length <= high) & (search.trials < MAX_TRIALS // 2)
    length = jnp.where(inside, length, 0.5 * (low + high))
    narrowed = search._replace(
        low=low,
        high=high,
        high_guards=high_guards,
        last=h,
        last_guards=guards,
        trials=search.trials + 1,
    )
    return narrowed, length, index
