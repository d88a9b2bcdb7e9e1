"""Kernels compiled and run by Warp: on an NVIDIA card, or on the processor without a compiler."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc import memory
from fluidcc.dde.fused.dialect import ABREAST
from fluidcc.dde.fused.source import Plan, source
from fluidcc.dde.integrate import in_single_precision, one_of
from fluidcc.dde.steps import Saved
from fluidcc.dde.system import Args, System, shapes_of

_TOGETHER, _HELD = 256, 1 << 28
"""Trajectories in one launch on a processor, and bytes for them."""
_SHARE = 0.8
"""Of a card's free memory, for those in one launch."""
_LONGEST = (1 << 31) - 1
"""Of an array that Warp has."""


def device() -> str:
    """Where kernels run, as Warp calls it: on the card where JAX computes on one, or else ``cpu``.

    Raises ValueError where Warp does not see that card.
    """
    place = memory.place()
    if place.platform != "gpu":
        return "cpu"
    if not _threads().cards():
        raise ValueError("Uniform(fused=True): JAX computes on a graphics card that Warp lacks")
    return f"cuda:{place.local_hardware_id}"


def together(history: int, saved: int, trajectories: int) -> int:
    """How many trajectories to have in one launch; on a processor whole threads of them if it can.

    `history` and `saved` are the numbers of each that are kept for later and for the caller.
    Raises TooLittleMemory where there are too many for one.
    """
    longest, place = max(history, saved, 1), device()
    if longest > _LONGEST:
        raise memory.TooLittleMemory(
            f"a fused kernel has up to {_LONGEST} numbers in a history and among what is saved, "
            f"got {longest}: take a larger step, fewer saved times, or leave fused=True out"
        )
    size = 8 * (history + saved)
    fit = min(_TOGETHER, _HELD // size)
    if place != "cpu":
        fit = int(_SHARE * _threads().free_memory(place)) // size
    most = min(fit, _LONGEST // longest)
    if place == "cpu" and trajectories > 1 and most >= ABREAST:
        return min(most, trajectories + ABREAST - 1) // ABREAST * ABREAST
    return max(min(most, trajectories), 1)


@functools.lru_cache(maxsize=16)
def kernel(plan: Plan) -> Any:
    """The kernel of a plan, compiled at its first launch; ValueError where Warp is missing."""
    return _threads().kernel(source(plan), abreast=plan.abreast, contracted=plan.side_by_side)


def _threads() -> Any:
    """The part that needs Warp."""
    try:
        from fluidcc.dde.fused import threads
    except ImportError:
        raise ValueError(
            "Uniform(fused=True) needs the package warp-lang: pip install 'fluidcc[gpu]', or "
            "warp-lang alone where there is no card"
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
    """As `uniform.integrate`, by one kernel: a thread for each trajectory, or for several.

    `lanes` trajectories are in one launch.

    Raises
    ------
    ValueError
        Without Warp, or for an operation from which no kernel can be made.
    """
    rest, place = tuple(args[1:]), device()
    one_y0, one_args = one_of(y0, args, batched)
    record = system.record_size(one_y0, t0, one_args)
    trees = ((one_y0, one_args[0]), rest)
    mine, common = map(shapes_of, in_single_precision(trees) if single else trees)
    count = y0.shape[0] if batched else 1
    abreast = 1 if place != "cpu" or lanes % ABREAST else ABREAST
    plan = Plan(system, type(args), mine, common, record, slots, place != "cpu", abreast)
    columns = _numbers((y0, args[0]), count)
    columns = np.pad(columns, ((0, 0), (0, -count % abreast)), mode="edge")
    shared = np.concatenate([np.array([[t0], [step], [t1]], float), _numbers(rest, 1)])
    ts, sizes = np.asarray(ts, float), [y0.shape[-1], y0.shape[-1], record]
    words = plan.ring // 2 if single else plan.ring
    found = _threads().run(
        kernel(plan), columns, shared, ts, history=words, width=sum(sizes), place=place,
        abreast=abreast, lanes=lanes,
    )  # fmt: skip
    saved, times, ended = (values[:count] for values in found)
    y, slope, kept = np.split(saved, np.cumsum(sizes)[:-1], axis=-1)
    values = (y, slope, kept, ended[:, 0], times, ended[:, 1])
    return Saved(*(jnp.asarray(v if batched else v[0]) for v in values))


def _numbers(tree: Any, lanes: int) -> np.ndarray:
    """Leaves of a PyTree as numbers in double precision: (K, lanes).

    Raises ValueError for whole numbers that are none there.
    """
    parts = [np.zeros((lanes, 0))]
    for leaf in map(np.asarray, jax.tree.leaves(tree)):
        if leaf.dtype.kind in "iu" and np.any(np.abs(leaf.astype(float)) > 2.0**53):
            raise ValueError("a fused kernel takes whole numbers up to 2^53: leave fused=True out")
        parts.append(leaf.astype(float).reshape(lanes, -1))
    return np.concatenate(parts, axis=1).T
