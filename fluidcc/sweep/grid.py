"""The blocks into which a grid of parameters is cut, and the verbs that take a whole one."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fluidcc.scenario.grid import Grid

GRID_VERBS = {
    "fluidcc.analysis.stability_map.stability_map": 16384,
    "fluidcc.sweep.simulate_map.simulate_map": 256,
}
"""Verbs of a network and a grid, and the most points that each takes at once.

They compute points together, and start some from the results of neighbours, so that the results
depend on this number.
"""


def name_of(verb: Callable[..., Any]) -> str:
    """Module and name of a function, or of the function inside a `functools.partial`."""
    found = inner(verb)
    return f"{getattr(found, '__module__', '')}.{getattr(found, '__qualname__', '')}"


def inner(verb: Callable[..., Any]) -> Any:
    """The function inside of `functools.partial`."""
    while isinstance(verb, functools.partial):
        verb = verb.func
    return verb


@dataclasses.dataclass(frozen=True)
class Blocks:
    """A grid cut into boxes, `parts` along each axis; they depend only on the grid and a size.

    The results of a block do not depend on the worker, or on the other blocks of its chunk.
    """

    grid: Grid
    parts: tuple[int, ...]

    @classmethod
    def of(cls, grid: Grid, most: int) -> "Blocks":
        """Boxes of up to `most` points, of nearly equal size."""
        if most == 1:
            return cls(grid, grid.shape)
        parts = [1] * len(grid.shape)
        while math.prod(longest := -(-np.array(grid.shape) // parts)) > most:
            parts[int(np.argmax(longest))] += 1
        return cls(grid, tuple(parts))

    def __len__(self) -> int:
        return math.prod(self.parts)

    def _ends(self, block: int) -> list[tuple[int, int]]:
        """First index and the one after the last along each axis."""
        position = np.unravel_index(block, self.parts)
        return [
            (int(k) * n // p, (int(k) + 1) * n // p)
            for k, n, p in zip(position, self.grid.shape, self.parts, strict=True)
        ]

    def axes(self, block: int) -> dict[str, tuple]:
        """The part of each axis that a block covers."""
        pairs = zip(self.grid.axes.items(), self._ends(block), strict=True)
        return {path: values[low:high] for (path, values), (low, high) in pairs}

    def numbers(self, block: int) -> np.ndarray:
        """Numbers of a block's points in the grid, the last axis fastest."""
        sides = [np.arange(low, high) for low, high in self._ends(block)]
        indices = np.meshgrid(*sides, indexing="ij")
        return np.ravel_multi_index([k.ravel() for k in indices], self.grid.shape)
