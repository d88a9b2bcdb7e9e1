"""A state in its numbers: in a batch each is an array over the lanes, which vectorises."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

MOST_PARTS = 16
"""States up to this size are stepped number by number."""

Parts = tuple[Array, ...]


def split(y: Array) -> Parts:
    """The numbers of a state (n,); a large one stays as it is."""
    return tuple(y) if y.size <= MOST_PARTS else (y,)


def join(parts: Parts) -> Array:
    """The state that has been split."""
    return parts[0] if parts[0].ndim else jnp.stack(parts)


@jax.custom_batching.custom_vmap
def scaled(step: Array, slope: Array) -> Parts:
    """Step times the slopes (n,), in parts; in a batch written side by side, lanes last.

    They are multiplied as a whole, which the compiler keeps. It would else compute a part anew
    wherever it is used, and all that it is made of.
    """
    return split(step * slope)


@scaled.def_vmap
def _(size: int, batched: Any, step: Array, slope: Array) -> tuple[Parts, tuple[bool, ...]]:
    del size
    if not any(batched):  # of derivatives, where tangents alone are batched
        parts = split(step * slope)
        return parts, (False,) * len(parts)
    if batched[0]:
        axes = tuple(0 if moves else None for moves in batched)
        parts = jax.vmap(lambda a, b: split(a * b), axes)(step, slope)
        return parts, (True,) * len(parts)
    if slope.shape[1] > MOST_PARTS:
        return (step * slope,), (True,)
    parts = tuple(step * jnp.stack([slope[:, i] for i in range(slope.shape[1])]))
    return parts, (True,) * len(parts)


def added(y: Parts, rises: list[Array], lost: Parts) -> tuple[Parts, Parts]:
    """`y` with its rises, and what rounding has put too much into it: Kahan's sum, if `lost` is.

    In single precision the rise of a slow filter may lie below the last digit of its state.
    """
    if not lost:
        return tuple(a + b for a, b in zip(y, rises, strict=True)), ()
    due = [b - c for b, c in zip(rises, lost, strict=True)]
    new = tuple(a + b for a, b in zip(y, due, strict=True))
    return new, tuple((s - a) - b for s, a, b in zip(new, y, due, strict=True))
