"""Tables of grids: one line per point."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fluidcc.results.export import columns
from fluidcc.results.tables.blocks import (
    DASH,
    Cell,
    Column,
    Number,
    Quantity,
    Table,
    parameter,
    table,
)

if TYPE_CHECKING:
    from xarray import Dataset

_FEW = 4  # numbers of a point along another dimension up to which each has a column
_TOLD = ("failed", "message")  # of points, which have lines of their own


def sweep(
    points: Sequence[Mapping[str, Any]],
    axes: Mapping[str, str],
    summary: Callable[[Mapping[str, Any]], Mapping[str, Quantity]],
    *,
    total: int | None = None,
) -> Table:
    """The points of a grid: `axes` are paths with their units, `summary` is one of `summary`.

    `total` is how many points there are, if not all are given.
    """

    def cells(point: Mapping[str, Any]) -> dict[str, Cell]:
        status = {"status": point["status"]} if "status" in point else {}
        return status | dict(summary(point))

    lines = [None if p.get("status") == "failed" else cells(p) for p in points]
    names = list(dict.fromkeys(name for line in lines if line is not None for name in line))
    names = names or ["status"]
    count = len(points) if total is None else total
    out = table(f"{count} points", *(parameter(*axis) for axis in axes.items()), *names)
    out.hidden = count - len(points)
    for point, line in zip(points, lines, strict=True):
        values = [Number(point["set"][a]) for a in axes]
        shown: Mapping[str, Cell] = {"status": "failed"} if line is None else line
        absent = "" if line is None else DASH
        out.add_row(*values, *(shown.get(name, absent) for name in names))
    return out


def dataset(data: "Dataset", axes: Sequence[str], rows: int | None = None) -> Table:
    """The points of a labelled grid: what differs from point to point, and has few numbers there.

    `rows` is how many points are wanted, from the first; all for None.
    """
    total = math.prod(data.sizes[a] for a in axes)
    wanted = total if rows is None else min(rows, total)
    chosen = [
        name for name, variable in data.variables.items()
        if name in axes or (name not in _TOLD and few(variable, axes))
    ]  # fmt: skip
    found = columns(data[chosen].isel(_first(data, axes, wanted)), list(axes))
    out = table(f"{total} points", *(Column(name, unit, name in axes) for name, unit, _ in found))
    out.hidden = total - wanted
    for row in zip(*(values[:wanted] for _, _, values in found), strict=True):
        out.add_row(*(value if isinstance(value, str) else Number(value) for value in row))
    return out


def few(variable: Any, axes: Sequence[str]) -> bool:
    """Whether a variable differs along all axes, and has but a few numbers at each point."""
    others = math.prod(size for dim, size in variable.sizes.items() if dim not in axes)
    return set(axes) <= set(variable.dims) and others <= _FEW


def _first(data: "Dataset", axes: Sequence[str], wanted: int) -> dict[Any, slice]:
    """The smallest part of a grid that has its first points."""
    box, inner = {}, 1
    for axis in reversed(axes):
        box[axis] = slice(-(-wanted // inner))
        inner *= data.sizes[axis]
    return box
