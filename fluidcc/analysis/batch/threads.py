"""Process blocks of equal length in parallel threads."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from typing import Any

import numpy as np

from fluidcc.analysis.linear import Array
from fluidcc.machine import threads
from fluidcc.memory import in_place


def in_threads(function: Callable[[slice], Any], count: int, size: int) -> list[Any]:
    """Results of a function for each block of up to `size` of `count` items, in order."""
    parts = [slice(i, min(i + size, count)) for i in range(0, count, size)]
    with concurrent.futures.ThreadPoolExecutor(threads()) as pool:
        return list(pool.map(in_place(function), parts))


def filled(block: Array, size: int, axis: int = 0) -> Array:
    """The block with its last entry repeated up to `size` of them."""
    missing = size - block.shape[axis]
    if not missing:
        return block
    last = np.take(block, [-1], axis=axis)
    return np.concatenate([block, np.repeat(last, missing, axis=axis)], axis=axis)
