"""Kernels compiled and run by Warp: on an NVIDIA card, or on the processor without a compiler."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.fluid.shapes import Shapes, shapes_of
from fluidcc.fluid.system import Args, System
from fluidcc.fluid.uniform import Saved
from fluidcc.fused.source import Plan, source

_TOGETHER = 64
"""Trajectories in one launch on a processor, which has them one after the other."""
_SHARE = 0.8
"""Of a card's free memory, for those in one launch."""


def on_card() -> bool:
    """Whether JAX computes on a graphics card, so that kernels do."""
    return jax.devices()[0].platform in ("gpu", "cuda")


@functools.lru_cache(maxsize=64)
def kernel(plan: Plan) -> Any:
    """The kernel of a plan, compiled at its first launch; ValueError where Warp is missing."""
    return _threads().kernel(source(plan), fused=plan.side_by_side)


def _threads() -> Any:
    """The part that needs Warp."""
    try:
        from fluidcc.fused import threads
    except ImportError:
        raise ValueError(
            "Uniform(fused=True) needs the package warp-lang: pip install 'fluidcc[gpu]'"
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
    batched: bool,
    single: bool,
) -> Saved:
    """As `uniform.integrate`, by one kernel in which each trajectory has a thread of its own.

    Raises
    ------
    ValueError
        Without Warp, or for an operation from which no kernel can be made.
    """
    own, rest = (y0, args[0]), tuple(args[1:])
    one = jax.tree.map(lambda leaf: leaf[0], own) if batched else own
    record = system.record_size(one[0], t0, type(args)(one[1], *rest))
    mine, common = (_in_precision(shapes_of(tree), single) for tree in (one, rest))
    plan = Plan(system, type(args), mine, common, record, slots, on_card())
    columns = _numbers(own, y0.shape[0] if batched else 1)
    shared = np.concatenate([np.array([[t0], [step], [t1]], float), _numbers(rest, 1)])
    ts, sizes = np.asarray(ts, float), [y0.shape[-1], y0.shape[-1], record]
    history, together = slots * 2 * record * (4 if single else 8), _TOGETHER
    if on_card():
        each = history + 8 * (ts.size * sum(sizes) + len(columns) + 2)
        together = max(int(_SHARE * _threads().free_memory() / each), 1)
    parts = [
        _threads().launch(
            kernel(plan), columns[:, i : i + together], shared, ts, history, sum(sizes), on_card()
        )
        for i in range(0, columns.shape[1], together)
    ]
    saved, times, ended = (np.concatenate(values) for values in zip(*parts, strict=True))
    y, slope, kept = np.split(saved, np.cumsum(sizes)[:-1], axis=-1)
    values = (y, slope, kept, ended[:, 0], times, ended[:, 1])
    return Saved(*(jnp.asarray(v if batched else v[0]) for v in values))


def _numbers(tree: Any, lanes: int) -> np.ndarray:
    """Leaves of a PyTree as numbers in double precision: (K, lanes)."""
    leaves = [np.asarray(leaf, float).reshape(lanes, -1) for leaf in jax.tree.leaves(tree)]
    return np.concatenate([np.zeros((lanes, 0)), *leaves], axis=1).T


def _in_precision(shapes: Shapes, single: bool) -> Shapes:
    """Shapes with floats of single precision if `single`."""

    def kind(dtype: Any) -> Any:
        return jnp.dtype("float32") if single and jnp.issubdtype(dtype, jnp.floating) else dtype

    return shapes[0], tuple((shape, kind(dtype)) for shape, dtype in shapes[1])
