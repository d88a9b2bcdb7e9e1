"""Many trajectories: in blocks that suit the cache, or one after the other."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax


def _each(function: Callable[[Array, Any], Any], args: Any) -> Callable[[tuple[Array, Any]], Any]:
    """`function` of what differs along a batch: a pair of y0 and `args[0]`."""
    return lambda pair: function(pair[0], type(args)(pair[1], *args[1:]))


def side_by_side(function: Callable[[Array, Any], Any], batched: bool, y0: Array, args: Any) -> Any:
    """`function(y0, args)`, mapped along the leading axis of y0 and of `args[0]` if batched."""
    return jax.vmap(_each(function, args))((y0, args[0])) if batched else function(y0, args)


def one_by_one(function: Callable[[Array, Any], Any], batched: bool, y0: Array, args: Any) -> Any:
    """The same, one after the other."""
    return lax.map(_each(function, args), (y0, args[0])) if batched else function(y0, args)


def over_blocks(
    function: Callable[[Array, Any], Any], batched: bool, y0: Array, args: Any, block: int
) -> Any:
    """`function(y0, args)`; a batch in equal blocks of at most `block` trajectories, one after the
    other.

    The last block is filled up with trajectories of the batch, so that one shape is compiled.
    """
    if not batched or y0.shape[0] <= block:
        return function(y0, args)
    total = y0.shape[0]
    count = -(-total // block)
    size = -(-total // count)
    fill = count * size - total

    def cut(leaf: Array) -> Array:
        leaf = jnp.concatenate([leaf, leaf[:fill]]) if fill else leaf
        return leaf.reshape(count, size, *leaf.shape[1:])

    y0, first = jax.tree.map(cut, (y0, args[0]))
    found = lax.map(_each(function, args), (y0, first))
    return jax.tree.map(lambda v: v.reshape(count * size, *v.shape[2:])[:total], found)


def sequential(function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)` that becomes a loop under vmap.

    In lockstep every trajectory would copy its whole past in each step, and wait for the slowest.
    Tangents of one trajectory do run side by side.
    """
    leaves, structure = jax.tree.flatten(args)
    form = jax.tree.structure(jax.eval_shape(function, *args))

    def plain(*leaves: Array) -> tuple[Array, ...]:
        return tuple(jax.tree.leaves(function(*jax.tree.unflatten(structure, leaves))))

    flat = jax.custom_batching.custom_vmap(plain)

    @flat.def_vmap
    def rule(
        axis_size: int, in_batched: list[bool], *leaves: Array
    ) -> tuple[tuple[Array, ...], tuple[bool, ...]]:
        del axis_size
        moving = [leaf for leaf, moves in zip(leaves, in_batched, strict=True) if moves]

        def one(moving: list[Array]) -> tuple[Array, ...]:
            rest, pairs = iter(moving), zip(leaves, in_batched, strict=True)
            return flat(*(next(rest) if moves else leaf for leaf, moves in pairs))

        result = lax.map(one, moving) if moving else plain(*leaves)
        return result, (bool(moving),) * len(result)

    return jax.tree.unflatten(form, flat(*leaves))
