"""Results over a grid as they are, before they are numbers in a table."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.result import Result
from fluidcc.sweep.grid import Grid
from fluidcc.sweep.point import Point
from fluidcc.sweep.table import Table, dataset, join, outcome, table_of


@dataclasses.dataclass(frozen=True)
class Sweep(Result):
    """Results over a grid; `points` in the order of the grid, the last axis fastest.

    Examples
    --------
    >>> import fluidcc as fc
    >>> curve = fc.sweep(fc.load("hollot2001/slow"), {"flow.n": [40, 60]}, fc.equilibrium)
    >>> [point.status for point in curve.points], curve.failed
    (['interior', 'interior'], ())
    """

    _view = "grids.SweepView"

    axes: Mapping[str, tuple]
    units: Mapping[str, str]
    points: tuple[Point, ...]

    @property
    def failed(self) -> tuple[Point, ...]:
        """The points without a sound result."""
        return tuple(p for p in self.points if p.message)

    def to_dict(self) -> dict[str, Any]:
        """All points as plain values."""
        return {"points": [p.to_dict() for p in self.points]}

    def to_dataset(self) -> xr.Dataset:
        """All points in one dataset with the axes as dimensions, NaN where a point failed.

        Raises ValueError if every point failed.
        """
        return dataset(Grid(self.axes, self.units), self.table(np.arange(len(self.points))))

    def table(self, numbers: np.ndarray) -> Table:
        """All points as one table, with their numbers (P,) in a grid."""
        return join([of_point(p, k) for p, k in zip(self.points, numbers, strict=True)])

    def __repr__(self) -> str:
        lines = [f"Sweep of {len(self.points)} points over {', '.join(self.axes)}"]
        lines += [f"  {p.told()}" for p in self.failed]
        return "\n".join(lines)


def of_point(point: Point, number: Any) -> Table:
    """A point of a sweep as a table."""
    columns = outcome([point.status], [point.why], [bool(point.message)])
    if point.result is None:
        return Table(np.array([number]), {}, columns)
    table = table_of(point.result.to_dataset(), np.array([number]))
    return dataclasses.replace(table, columns=table.columns | columns)
