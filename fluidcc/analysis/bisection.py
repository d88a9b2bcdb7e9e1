"""Bisection that compiles and runs in batches."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from fluidcc.ops import Num

_HALVINGS = 200


def bisect(function: Callable[[Num], Num], low: Num, high: Num) -> tuple[Num, Num]:
    """Neighbouring numbers between which a decreasing function (elementwise) changes sign."""

    def unfinished(carry: tuple) -> Num:
        step, low, high = carry
        middle = 0.5 * (low + high)
        return (step < _HALVINGS) & jnp.any((middle > low) & (middle < high))

    def halve(carry: tuple) -> tuple:
        step, low, high = carry
        middle = 0.5 * (low + high)
        above = function(middle) > 0
        return step + 1, jnp.where(above, middle, low), jnp.where(above, high, middle)

    return jax.lax.while_loop(unfinished, halve, (0, low, high))[1:]


class Crossing(NamedTuple):
    """First change of a function from above 0 to 0 or below: its values at the points tried, the
    first of them that is not above 0 (at least 1; the last if all are), and neighbouring numbers
    before it between which the sign changes, with the values there.
    """

    values: Num
    first: Num
    below: Num
    above: Num
    at_below: Num
    at_above: Num


def first_crossing(function: Callable[[Num], Num], tried: Num) -> Crossing:
    """Try points (n,), then halve between the two around the first crossing.

    The function, of one number, is in the compiled program once, however large it is.
    """
    last = len(tried) - 1

    def unfinished(carry: tuple) -> Num:
        step, found = carry
        middle = 0.5 * (found.below + found.above)
        halving = (step < last + 1 + _HALVINGS) & (middle > found.below) & (middle < found.above)
        return (step <= last) | halving

    def go(carry: tuple) -> tuple:
        step, found = carry
        place, trying, bracket = jnp.minimum(step, last), step <= last, step == last
        x = jnp.where(trying, tried[place], 0.5 * (found.below + found.above))
        value = function(x)
        values = jnp.where(trying, found.values.at[place].set(value), found.values)
        over = values > 0
        first = jnp.where(jnp.all(over), last, jnp.maximum(jnp.argmin(over), 1))
        rises, falls = ~trying & (value > 0), ~trying & ~(value > 0)

        def now(start: Num, moves: Num, new: Num, old: Num) -> Num:
            return jnp.where(bracket, start, jnp.where(moves, new, old))

        return step + 1, Crossing(
            values, first,
            now(tried[first - 1], rises, x, found.below), now(tried[first], falls, x, found.above),
            now(values[first - 1], rises, value, found.at_below),
            now(values[first], falls, value, found.at_above),
        )  # fmt: skip

    nothing = jnp.zeros(())
    begun = Crossing(jnp.zeros(last + 1), jnp.zeros((), int), nothing, nothing, nothing, nothing)
    return jax.lax.while_loop(unfinished, go, (0, begun))[1]
