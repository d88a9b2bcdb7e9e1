"""Primitives of JAX that only move numbers: on arrays of anything, without a computation."""

from collections.abc import Callable
from typing import Any

import numpy as np

Moved = np.ndarray[Any, Any]


def _broadcast(a: Moved, shape: Any, broadcast_dimensions: Any, **_: Any) -> Moved:
    ones = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, a.shape, strict=True):
        ones[axis] = size
    return np.broadcast_to(a.reshape(ones), shape)


def _cut(a: Moved, start_indices: Any, limit_indices: Any, strides: Any) -> Moved:
    every = strides or (1,) * a.ndim
    return a[tuple(map(slice, start_indices, limit_indices, every))]


def _padded(a: Moved, value: Moved, padding_config: Any) -> Moved:
    gaps = [gap for *_, gap in padding_config]
    inner = [n + max(n - 1, 0) * gap for n, gap in zip(a.shape, gaps, strict=True)]
    spread = np.full(inner, value[()], object)
    spread[tuple(slice(None, None, gap + 1) for gap in gaps)] = a
    for axis, (low, high, _) in enumerate(padding_config):
        ends = [(max(low, 0), max(high, 0)) if k == axis else (0, 0) for k in range(a.ndim)]
        spread = np.pad(spread, ends, constant_values=value[()])
        keep = slice(max(-low, 0), spread.shape[axis] - max(-high, 0))
        spread = spread[(slice(None),) * axis + (keep,)]
    return spread


MOVES: dict[str, Callable[..., Any]] = {
    "reshape": lambda a, new_sizes, **_: a.reshape(new_sizes),
    "squeeze": lambda a, dimensions: np.squeeze(a, tuple(dimensions)),
    "expand_dims": lambda a, dimensions: np.expand_dims(a, tuple(dimensions)),
    "broadcast_in_dim": _broadcast,
    "transpose": lambda a, permutation: np.transpose(a, permutation),
    "rev": lambda a, dimensions: np.flip(a, dimensions),
    "concatenate": lambda *parts, dimension: np.concatenate(parts, dimension),
    "stack": lambda *parts, axis: np.stack(parts, axis),
    "unstack": lambda a, axis: [np.squeeze(v, axis) for v in np.split(a, a.shape[axis], axis)],
    "split": lambda a, sizes, axis: np.split(a, np.cumsum(sizes)[:-1], axis),
    "slice": _cut,
    "tile": lambda a, reps: np.tile(a, reps),
    "pad": _padded,
    "copy": lambda a: a,
    "copy_p": lambda a: a,
    "stop_gradient": lambda a: a,
    "optimization_barrier": lambda *parts: list(parts),
}
"""By primitive: function of operands and parameters."""
