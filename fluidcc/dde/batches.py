"""Batches of trajectories: in blocks that fit the cache, in sequence, or divided among devices.

Each device integrates its part of a batch and waits for no other.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import Array, lax
from jax.sharding import Mesh, PartitionSpec

from fluidcc import memory
from fluidcc.arrays import jax, jnp

_BATCH = "batch"
Devices = tuple[jax.Device, ...]


def _each(function: Callable[[Array, Any], Any], args: Any) -> Callable[[tuple[Array, Any]], Any]:
    """`function` of the values that differ along a batch: a pair of y0 and `args[0]`."""
    return lambda pair: function(pair[0], type(args)(pair[1], *args[1:]))


def side_by_side(function: Callable[[Array, Any], Any], batched: bool, y0: Array, args: Any) -> Any:
    """`function(y0, args)`, mapped along the leading axis of y0 and of `args[0]` if batched."""
    return jax.vmap(_each(function, args))((y0, args[0])) if batched else function(y0, args)


def one_by_one(function: Callable[[Array, Any], Any], batched: bool, y0: Array, args: Any) -> Any:
    """The same, in sequence (`lax.map`)."""
    return lax.map(_each(function, args), (y0, args[0])) if batched else function(y0, args)


def over_blocks(
    function: Callable[[Array, Any], Any], batched: bool, y0: Array, args: Any, block: int
) -> Any:
    """`function(y0, args)`; a batch in equal blocks of at most `block` trajectories, in
    sequence.

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
    results = lax.map(_each(function, args), (y0, first))
    return jax.tree.map(lambda v: v.reshape(count * size, *v.shape[2:])[:total], results)


def sequential(function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)` that becomes a loop under vmap.

    Under plain vmap every trajectory would copy its whole past in each step, and wait for the
    slowest. Tangents of one trajectory are vectorised.
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
        moving = [leaf for leaf, is_batched in zip(leaves, in_batched, strict=True) if is_batched]

        def call_one(moving: list[Array]) -> tuple[Array, ...]:
            parts, pairs = iter(moving), zip(leaves, in_batched, strict=True)
            return flat(*(next(parts) if is_batched else leaf for leaf, is_batched in pairs))

        result = lax.map(call_one, moving) if moving else plain(*leaves)
        return result, (bool(moving),) * len(result)

    return jax.tree.unflatten(form, flat(*leaves))


def devices_for(values: Any) -> Devices:
    """The devices of this process; none if it has only one, or values were put on a chosen one.

    Other processes of a `jax.distributed` job have devices too, but would have to make each call
    together with this one.
    """
    devices = jax.local_devices()
    arrays = [leaf for leaf in jax.tree.leaves(values) if isinstance(leaf, Array)]
    put = any(leaf.committed and len(leaf.devices()) == 1 for leaf in arrays)
    chosen = put or memory.chosen() is not None
    return () if len(devices) == 1 or chosen else tuple(devices)


def in_one_memory(devices: Devices) -> int:
    """How many of the devices share one memory: those of a processor do."""
    return len(devices) if devices and devices[0].platform == "cpu" else 1


def divide_batch(run: Callable[..., Any], devices: Devices, y0: Any, args: Any) -> Any:
    """`run(y0, args=args, shared=mesh)` with a batch filled up to equal shares, and cut again.

    `run` hands `mesh` to `on_each_device`; there is none for a single trajectory.
    """
    total = y0.shape[0] if devices else 1
    if total == 1:
        return run(y0, args=args, shared=None)
    share = -(-total // len(devices))
    mesh = Mesh(np.array(devices[: -(-total // share)]), _BATCH)
    index = np.arange(share * mesh.size) % total
    y0, first = jax.tree.map(lambda leaf: leaf[index], (y0, args[0]))
    results = run(y0, args=type(args)(first, *args[1:]), shared=mesh)
    if index.size == total:
        return results
    # devices exchange numbers in a cut, and one that waits long for another ends the process
    return jax.tree.map(lambda leaf: leaf[:total], jax.block_until_ready(results))


def on_each_device(run: Callable[..., Any], mesh: Mesh | None, y0: Array, args: Any) -> Any:
    """`run(y0, args)` in compiled code, on each device of the mesh for its part of the batch."""
    if mesh is None:
        return run(y0, args)

    def run_part(y0: Array, first: Any, others: Any) -> Any:
        return run(y0, type(args)(first, *others))

    along, whole = PartitionSpec(_BATCH), PartitionSpec()
    # loops begin with numbers replicated over devices, which the check would refuse
    spread = jax.shard_map(
        run_part, mesh=mesh, in_specs=(along, along, whole), out_specs=along, check_vma=False
    )
    return spread(y0, args[0], tuple(args[1:]))
