"""Bisection that compiles and runs in batches."""

from collections.abc import Callable

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
