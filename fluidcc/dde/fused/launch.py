"""Kernels compiled and run by Warp: on an NVIDIA GPU, or on the processor without a C compiler."""

import functools
from typing import Any

import numpy as np
from jax import Array

from fluidcc import memory
from fluidcc.arrays import jax, jnp
from fluidcc.dde.fused.dialect import SIMD_LANES
from fluidcc.dde.fused.source import Plan, write_source
from fluidcc.dde.integrate import in_single_precision, one_of
from fluidcc.dde.steps import Saved
from fluidcc.dde.system import Args, System, shapes_of

_MOST_LANES, _MOST_BYTES = 256, 1 << 28
"""Most trajectories of one launch on a processor, and most bytes for them."""
_SHARE = 0.8
"""Share of a GPU's free memory for one launch."""
_LONGEST = (1 << 31) - 1
"""Most elements of an array in Warp."""


def device() -> str:
    """The device of kernels, as named by Warp: the GPU on which JAX computes, or else ``cpu``.

    Raises ValueError if Warp does not find that GPU.
    """
    target = memory.place()
    if target.platform != "gpu":
        return "cpu"
    if not _import_threads().cards():
        raise ValueError("Uniform(fused=True): JAX computes on a graphics card that Warp lacks")
    return f"cuda:{target.local_hardware_id}"


def batch_size(history: int, saved: int, trajectories: int) -> int:
    """Number of trajectories in one launch; on a processor a multiple of SIMD_LANES if possible.

    `history` and `saved` are the numbers of each in its history and in its saved results. Raises
    TooLittleMemory if they do not fit for a single trajectory.
    """
    longest, target = max(history, saved, 1), device()
    if longest > _LONGEST:
        raise memory.TooLittleMemory(
            f"a fused kernel has up to {_LONGEST} numbers in a history and in saved results, "
            f"got {longest}: take a larger step, fewer saved times, or leave fused=True out"
        )
    size = 8 * (history + saved)
    fit = min(_MOST_LANES, _MOST_BYTES // size)
    if target != "cpu":
        fit = int(_SHARE * _import_threads().free_memory(target)) // size
    most = min(fit, _LONGEST // longest)
    if target == "cpu" and trajectories > 1 and most >= SIMD_LANES:
        return min(most, trajectories + SIMD_LANES - 1) // SIMD_LANES * SIMD_LANES
    return max(min(most, trajectories), 1)


@functools.lru_cache(maxsize=16)
def kernel(plan: Plan) -> Any:
    """The kernel of a plan, compiled at its first launch; raises ValueError without Warp."""
    return _import_threads().kernel(
        write_source(plan), simd_lanes=plan.simd_lanes, fuse_multiply_add=plan.interleaved
    )


def _import_threads() -> Any:
    """The module that needs Warp."""
    try:
        from fluidcc.dde.fused import threads
    except ImportError:
        raise ValueError(
            "Uniform(fused=True) needs the package warp-lang: pip install 'fluidcc[gpu]', or "
            "warp-lang alone without a graphics card"
        ) from None
    return threads


def integrate(
    system: System,
    y0: Array,
    t0: Any,
    t1: Any,
    step: Any,
    ts: Any,
    args: Args,
    *,
    slots: int,
    lanes: int,
    batched: bool,
    single: bool,
) -> Saved:
    """As `uniform.integrate`, by one kernel with a thread for each trajectory, or for several.

    Each launch has `lanes` trajectories.

    Raises
    ------
    ValueError
        Without Warp, or for an operation that a kernel cannot do.
    """
    shared_args, target = tuple(args[1:]), device()
    one_y0, one_args = one_of(y0, args, batched)
    record = system.record_size(one_y0, t0, one_args)
    trees = ((one_y0, one_args[0]), shared_args)
    lane_shapes, shared_shapes = map(shapes_of, in_single_precision(trees) if single else trees)
    count = y0.shape[0] if batched else 1
    simd_lanes = 1 if target != "cpu" or lanes % SIMD_LANES else SIMD_LANES
    shapes = lane_shapes, shared_shapes
    plan = Plan(system, type(args), *shapes, record, slots, target != "cpu", simd_lanes)
    columns = _columns((y0, args[0]), count)
    columns = np.pad(columns, ((0, 0), (0, -count % simd_lanes)), mode="edge")
    shared = np.concatenate([np.array([[t0], [step], [t1]], float), _columns(shared_args, 1)])
    ts, sizes = np.asarray(ts, float), [y0.shape[-1], y0.shape[-1], record]
    words = plan.ring // 2 if single else plan.ring
    results = _import_threads().run(
        kernel(plan), columns, shared, ts, history=words, width=sum(sizes), device=target,
        simd_lanes=simd_lanes, lanes=lanes,
    )  # fmt: skip
    saved, times, ended = (values[:count] for values in results)
    y, slope, records = np.split(saved, np.cumsum(sizes)[:-1], axis=-1)
    values = (y, slope, records, ended[:, 0], times, ended[:, 1])
    return Saved(*(jnp.asarray(v if batched else v[0]) for v in values))


def _columns(tree: Any, lanes: int) -> np.ndarray:
    """Leaves of a PyTree as numbers in double precision, a column for each lane: (K, lanes).

    Raises ValueError for integers that double precision cannot represent.
    """
    parts = [np.zeros((lanes, 0))]
    for leaf in map(np.asarray, jax.tree.leaves(tree)):
        if leaf.dtype.kind in "iu" and np.any(np.abs(leaf.astype(float)) > 2.0**53):
            raise ValueError("a fused kernel takes whole numbers up to 2^53: leave fused=True out")
        parts.append(leaf.astype(float).reshape(lanes, -1))
    return np.concatenate(parts, axis=1).T
