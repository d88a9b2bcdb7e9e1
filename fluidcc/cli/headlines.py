"""One line per point of a sweep."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from fluidcc import summary
from fluidcc.cli.report import number, quantity, table


def _cells(point: Mapping[str, Any], view: str) -> dict[str, str]:
    """The summary of one point, in words for its status."""
    found = getattr(summary, view)(point)
    status = {"status": point["status"]} if "status" in point else {}
    return status | {name: quantity(*q) for name, q in found.items()}


def sweep(points: list[dict[str, Any]], axes: list[str], view: str) -> list[Table]:
    """The points of a grid over `axes`; `view` names the function of `summary` for them."""
    lines = [None if p.get("status") == "failed" else _cells(p, view) for p in points]
    columns = list(dict.fromkeys(name for line in lines if line is not None for name in line))
    columns = columns or ["status"]
    out = table(f"{len(points)} points", *axes, *columns)
    for point, line in zip(points, lines, strict=True):
        values = [number(point["set"][a]) for a in axes]
        shown = {"status": "failed"} if line is None else line
        absent = "" if line is None else number(None)
        out.add_row(*values, *(shown.get(name, absent) for name in columns))
    return [out]
