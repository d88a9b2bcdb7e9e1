"""A batch dealt out to devices: each has its own trajectories and waits for no other."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import Array
from jax.sharding import Mesh, PartitionSpec

from fluidcc import memory

_BATCH = "batch"
Devices = tuple[jax.Device, ...]


def devices_for(values: Any) -> Devices:
    """The devices of this process; none where it has one, or some values were put on one.

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


def dealt_out(run: Callable[..., Any], devices: Devices, y0: Any, args: Any) -> Any:
    """`run(y0, args=args, shared=mesh)` with a batch filled up to equal shares, and cut again.

    `run` hands `mesh` to `each_its_own`; there is none for a single trajectory.
    """
    total = y0.shape[0] if devices else 1
    if total == 1:
        return run(y0, args=args, shared=None)
    share = -(-total // len(devices))
    mesh = Mesh(np.array(devices[: -(-total // share)]), _BATCH)
    index = np.arange(share * mesh.size) % total
    y0, first = jax.tree.map(lambda leaf: leaf[index], (y0, args[0]))
    found = run(y0, args=type(args)(first, *args[1:]), shared=mesh)
    if index.size == total:
        return found
    # devices exchange numbers in a cut, and one that waits long for another ends the process
    return jax.tree.map(lambda leaf: leaf[:total], jax.block_until_ready(found))


def each_its_own(run: Callable[[Array, Any], Any], mesh: Mesh | None, y0: Array, args: Any) -> Any:
    """`run(y0, args)` in compiled code, on each device of the mesh for its part of the batch."""
    if mesh is None:
        return run(y0, args)

    def own(y0: Array, first: Any, rest: Any) -> Any:
        return run(y0, type(args)(first, *rest))

    along, whole = PartitionSpec(_BATCH), PartitionSpec()
    # loops begin with numbers that are the same everywhere, which the check would refuse
    spread = jax.shard_map(
        own, mesh=mesh, in_specs=(along, along, whole), out_specs=along, check_vma=False
    )
    return spread(y0, args[0], tuple(args[1:]))
