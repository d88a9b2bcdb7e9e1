"""Pictures of results, in the house style."""

import math
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure, SubFigure

from fluidcc.pictures.comparison import comparison
from fluidcc.pictures.courses import (
    cycle,
    packet_series,
    packets,
    sensitivity,
    trajectory,
    windows,
)
from fluidcc.pictures.parameters import (
    boundary,
    crossings,
    cycles,
    equilibrium,
    stability,
    stability_map,
)
from fluidcc.pictures.sweeps import panels_of, swept

_WIDTH = 7.0  # inch


def plot(*results: Any) -> Figure:
    """Draw results below each other.

    Parameters
    ----------
    results
        What the verbs return, or a sweep of it.

    Raises
    ------
    TypeError
        For something that has no picture.

    Examples
    --------
    >>> import fluidcc as fc
    >>> figure = fc.plot(fc.equilibrium(fc.load("hollot2001/slow")))
    >>> len(figure.subfigs)
    1
    """
    if not results:
        raise TypeError("plot: expected at least one result, got none")
    drawn = [_drawing(result) for result in results]
    with house_style():
        height = sum(height for _, height in drawn)
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        ratios = [height for _, height in drawn]
        parts = figure.subfigures(len(drawn), 1, squeeze=False, height_ratios=ratios)[:, 0]
        for part, (draw, _), result in zip(parts, drawn, results, strict=True):
            draw(part, result)
    return figure


def save(result: Any, path: Path) -> None:
    """Draw a result into a file: png, pdf or svg, by its ending."""
    figure = plot(result)
    with house_style():
        figure.savefig(path)


def house_style() -> Any:
    """The context in which figures of this project are drawn and saved."""
    with as_file(files("fluidcc") / "fluidcc.mplstyle") as style:
        return rc_context(fname=style)


_DRAWINGS: dict[str, tuple[Callable[[SubFigure, Any], None], float]] = {
    "Trajectory": (trajectory, 4.0),
    "Sensitivity": (sensitivity, 4.0),
    "StationaryWindows": (windows, 2.8),
    "Cycle": (cycle, 4.0),
    "Cycles": (cycles, 4.0),
    "Equilibrium": (equilibrium, 2.6),
    "Stability": (stability, 3.0),
    "StabilityMap": (stability_map, 4.0),
    "Boundary": (boundary, 4.0),
    "Crossings": (crossings, 3.0),
    "PacketRuns": (packets, 2.6),
    "Comparison": (comparison, 6.6),
}


def _drawing(result: Any) -> tuple[Callable[[SubFigure, Any], None], float]:
    """How a result is drawn, and the height of its picture [inch]."""
    name = type(result).__name__
    if name == "Sweep":
        return swept, 1.7 * math.ceil(len(panels_of(result)) / 2) + 0.3
    if name == "PacketRuns" and result.series is not None:
        return packet_series, 4.0
    if name not in _DRAWINGS:
        raise TypeError(f"plot: expected a result or a sweep, got {name}")
    return _DRAWINGS[name]
