"""Tables of grids: one line per point."""

from collections.abc import Mapping, Sequence
from typing import Any

from fluidcc import summary
from fluidcc.tables.blocks import DASH, Cell, Number, Table, table


def _cells(point: Mapping[str, Any], view: str) -> dict[str, Cell]:
    """The summary of one point, in words for its status."""
    found = getattr(summary, view)(point)
    status = {"status": point["status"]} if "status" in point else {}
    return status | found


def sweep(points: Sequence[Mapping[str, Any]], axes: Sequence[str], view: str) -> Table:
    """The points of a grid over `axes`; `view` names the function of `summary` for them."""
    lines = [None if p.get("status") == "failed" else _cells(p, view) for p in points]
    columns = list(dict.fromkeys(name for line in lines if line is not None for name in line))
    columns = columns or ["status"]
    out = table(f"{len(points)} points", *axes, *columns)
    for point, line in zip(points, lines, strict=True):
        values = [Number(point["set"][a]) for a in axes]
        shown: dict[str, Cell] = {"status": "failed"} if line is None else line
        absent = "" if line is None else DASH
        out.add_row(*values, *(shown.get(name, absent) for name in columns))
    return out
