"""Results at the points of a grid."""

from __future__ import annotations

import abc
import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.result import LISTED, REASONED, Result, View
from fluidcc.scenario.grid import Grid, GridPoints
from fluidcc.scenario.reader import Outcome

if TYPE_CHECKING:
    import xarray

    from fluidcc.scenario.network import Network


@dataclasses.dataclass(frozen=True)
class Point:
    """One point of a sweep: its changes, its result, and the error message if it failed."""

    set: Mapping[str, Any]
    result: Any = None
    message: str = ""

    def describe(self) -> str:
        """The changes of a failed point and its error, in one line."""
        return Outcome(self.set, "failed", self.message).describe()

    def to_dict(self) -> dict[str, Any]:
        """The result's dictionary with the changes under `set`."""
        if self.result is None:
            return {"set": dict(self.set), "status": "failed", "message": self.message}
        return {"set": dict(self.set), **self.result.to_dict()}

    @property
    def status(self) -> str:
        """The status of the result; `failed` if there is no result."""
        if self.result is None:
            return "failed"
        status = getattr(getattr(self.result, "fluid", self.result), "status", "")
        return status.name if isinstance(status, enum.IntEnum) else str(status)

    @property
    def why(self) -> str:
        """The error message, or the message of a valid result."""
        return self.message or str(getattr(self.result, "message", ""))


class Points(GridPoints[Point]):
    """Points of a sweep that are kept as arrays."""

    @property
    @abc.abstractmethod
    def failed(self) -> tuple[Point, ...]:
        """The points without a valid result, which are all that lack numbers."""

    @abc.abstractmethod
    def table(self, numbers: np.ndarray) -> xarray.Dataset:
        """All points as one table; `numbers` (P,) are their indices in a grid."""


@dataclasses.dataclass(frozen=True)
class Sweep(Result):
    """Results over a grid; `points` in the order of the grid, the last axis fastest.

    `axes` has values by path, `units` their units; `net` is the network that was changed.

    Examples
    --------
    >>> import fluidcc as fc
    >>> curve = fc.sweep(fc.load("hollot2001/slow"), {"flow.n": [40, 60]}, fc.equilibrium)
    >>> [point.status for point in curve.points], curve.failed
    (['regular', 'regular'], ())
    """

    _view = "grids.SweepView"

    axes: Mapping[str, tuple]
    units: Mapping[str, str]
    points: tuple[Point, ...] | Points
    net: Network | None = dataclasses.field(default=None, repr=False)

    @property
    def view(self) -> View:
        """How the points are shown: by their data set if results have lines of their own."""
        from fluidcc.results.views.grids import SweepDataView, SweepView

        results = (point.result for point in self.points if isinstance(point.result, Result))
        first = next(results, None)
        in_lines = first is not None and first.view_class().in_lines
        return (SweepDataView if in_lines else SweepView)(self)

    @property
    def failed(self) -> tuple[Point, ...]:
        """The points without a valid result."""
        if isinstance(self.points, Points):
            return self.points.failed
        return tuple(p for p in self.points if p.message)

    @property
    def reasons(self) -> tuple[Outcome, ...]:
        """The points that lack numbers, each with `set`, `status` and `message`: those that failed,
        and those without an equilibrium or without what a verb takes from it.
        """
        points = self.points.failed if isinstance(self.points, Points) else self.points
        outcomes = (Outcome(p.set, p.status, p.why) for p in points)
        return tuple(found for found in outcomes if found.status in REASONED)

    def to_dict(self) -> dict[str, Any]:
        """All points as plain values."""
        return {"points": [p.to_dict() for p in self.points]}

    def to_xarray(self) -> xarray.Dataset:
        """All points in one dataset with the axes as dimensions, NaN at points that failed.

        Raises ValueError if every point failed.
        """
        from fluidcc.sweep.table import dataset  # heavy

        return dataset(Grid(self.axes, self.units), self.table(np.arange(len(self.points))))

    def table(self, numbers: np.ndarray) -> xarray.Dataset:
        """All points as one table; `numbers` (P,) are their indices in a grid."""
        from fluidcc.sweep.table import tabulate

        if isinstance(self.points, Points):
            return self.points.table(numbers)
        return tabulate(self.points, numbers)

    def __repr__(self) -> str:
        return printed(self, self.failed)


def printed(result: Result, failed: Sequence[Point]) -> str:
    """The first points of a grid as a table, and why points failed."""
    from fluidcc.results.text import MOST, text

    lines = [text(result.tables(MOST)), *(p.describe() for p in failed[:LISTED])]
    more = len(failed) - LISTED
    return "\n".join([*lines, f"... and {more} more failed"] if more > 0 else lines)
