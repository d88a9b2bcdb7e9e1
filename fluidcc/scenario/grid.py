"""Grids of parameters, and results at their points that are kept as arrays."""

import abc
import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast, overload

import numpy as np

from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import axes_of

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Grid:
    """The product of values by path, the last axis fastest, with the unit of each path."""

    axes: Mapping[str, tuple]
    units: Mapping[str, str]

    @classmethod
    def of(cls, net: Network, over: Mapping[str, Iterable[Any]]) -> "Grid":
        """The grid of a network.

        Raises ScenarioError if a path, the unit of a value or the list of them is wrong.
        """
        return cls(*axes_of(net, over))

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return tuple(map(len, self.axes.values()))

    def __len__(self) -> int:
        return math.prod(self.shape)

    def point(self, number: int) -> dict[str, Any]:
        """The changes at the point of this number, by path."""
        indices = np.unravel_index(number, self.shape)
        return {path: self.axes[path][k] for path, k in zip(self.axes, indices, strict=True)}

    def points(self) -> Iterator[dict[str, Any]]:
        """The changes at every point, in their order."""
        for values in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))


class GridPoints(Sequence[T]):
    """Results at the points of a grid that are kept as arrays, each made when it is asked for."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid

    @abc.abstractmethod
    def at(self, number: int) -> T:
        """The result at the point of this number."""

    def __len__(self) -> int:
        return len(self.grid)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and tuple(self) == tuple(cast("GridPoints[T]", other))

    @overload
    def __getitem__(self, place: int) -> T: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[T, ...]: ...

    def __getitem__(self, place: int | slice) -> T | tuple[T, ...]:
        numbers = range(len(self))[place]
        return self.at(numbers) if isinstance(numbers, int) else tuple(map(self.at, numbers))
