"""Pictures of results, in the house style."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib import rc_context
from matplotlib.figure import Figure, SubFigure

from fluidcc.folders import whole
from fluidcc.results.pictures.axes import narrow
from fluidcc.results.pictures.comparison import comparison
from fluidcc.results.pictures.courses import (
    cycle,
    packet_series,
    packets,
    relay_cycle,
    sensitivity,
    solution,
    trajectory,
    window,
    windows,
)
from fluidcc.results.pictures.loops import has_loop, stability
from fluidcc.results.pictures.maps import stability_map
from fluidcc.results.pictures.parameters import boundary, crossings, cycles, equilibrium
from fluidcc.results.pictures.searches import bounds, optimum, tradeoff
from fluidcc.results.pictures.sweeps import rows_of, swept

_WIDTH = 7.0  # inch: two columns of a page


class Drawing(NamedTuple):
    """How a result is drawn: height of its picture [inch], and panels beside each other."""

    draw: Callable[[SubFigure, Any], None]
    height: float
    abreast: int = 1


def plot(*results: Any, width: float = _WIDTH) -> Figure:
    """Draw results below each other.

    Parameters
    ----------
    results
        What the verbs return, or a sweep of it.
    width
        Of the picture [inch]: 7 for two columns of a page, 3.5 for one, where panels stand below
        each other.

    Raises
    ------
    TypeError
        For something that has no picture.
    ValueError
        For a result without anything to draw, such as windows that no group has, and for a width
        below 2 inch.

    Examples
    --------
    >>> import fluidcc as fc
    >>> figure = fc.plot(fc.equilibrium(fc.load("hollot2001/slow")), width=3.5)
    >>> figure.axes[0].get_ylabel()
    'rate of a flow [packet/s]'
    """
    if not results:
        raise TypeError("plot: expected at least one result, got none")
    if not width >= _LEAST:
        raise ValueError(f"width: expected at least {_LEAST:g} inch, got {width!r}")
    drawn = [_drawing(result, slim=narrow(width)) for result in results]
    heights = [d.height * (d.abreast if narrow(width) else 1) for d in drawn]
    with style():
        figure = Figure(figsize=(width, sum(heights)), layout="constrained")
        parts = figure.subfigures(len(drawn), 1, squeeze=False, height_ratios=heights)[:, 0]
        for part, drawing, result in zip(parts, drawn, results, strict=True):
            drawing.draw(part, result)
    return figure


def save(result: Any, path: Path) -> None:
    """Draw a result into a file: png, pdf or svg, by its ending."""
    figure = plot(result)
    with style(), whole(path) as part:
        figure.savefig(part)


def style() -> AbstractContextManager[None]:
    """The house style, for figures of your own: make and save them inside ``with fc.style():``.

    A figure is 3.5 inch wide, one column of a page, unless `figsize` says otherwise; 7 inch are two
    columns. Fonts are embedded as TrueType in PDF. Colours are told apart by colour-blind readers,
    lines by their dashes in grey.

    Examples
    --------
    >>> import fluidcc as fc
    >>> from matplotlib.figure import Figure
    >>> with fc.style():
    ...     print(Figure().get_figwidth())
    3.5
    """
    with as_file(files("fluidcc.results") / "fluidcc.mplstyle") as file:
        return rc_context(fname=file)


_DRAWINGS: dict[str, Drawing] = {
    "Trajectory": Drawing(trajectory, 4.0),
    "Sensitivity": Drawing(sensitivity, 4.0),
    "Solution": Drawing(solution, 2.8),
    "StationaryWindow": Drawing(window, 2.8),
    "Cycle": Drawing(cycle, 4.0),
    "Cycles": Drawing(cycles, 4.0),
    "RelayCycle": Drawing(relay_cycle, 2.2),
    "Equilibrium": Drawing(equilibrium, 2.6, 2),
    "StabilityMap": Drawing(stability_map, 4.0),
    "Boundary": Drawing(boundary, 4.0),
    "Crossings": Drawing(crossings, 3.0),
    "Comparison": Drawing(comparison, 6.6),
    "Tradeoff": Drawing(tradeoff, 2.8),
    "BoundReport": Drawing(bounds, 2.8),
    "BoundReports": Drawing(bounds, 4.0),
}

_LEAST = 2.0  # inch

_NUMBERS = {
    "Gradient": "its derivatives have units of their own; draw a sweep over a parameter",
    "EquationRest": "it is a point; draw its stability, or a solution that goes there",
    "Oscillation": "it is a few numbers; draw the trajectory that they are of",
    "GainAndLoss": "it is a few numbers; draw a comparison of the mix",
    "LawReport": "it is a list of verdicts; draw what a verb finds about a network with the law",
    "SweepStatus": "it is a count; draw the finished sweep",
    "Network": "it is a scenario; draw what a verb finds about it",
    "DelayEquation": "it is an equation; draw what a verb finds about it",
    "Linear": "it is a linear system; draw the stability that it is of",
}
"""Why there is no picture of what is known but not drawn, by its class."""


def _drawing(result: Any, *, slim: bool) -> Drawing:
    """How a result is drawn."""
    name = type(result).__name__
    match name:
        case "Sweep" | "SweepData":
            return Drawing(swept, 1.7 * rows_of(result, slim=slim) + 0.3)
        case "StationaryWindows":
            return Drawing(windows, 2.8, max(len(result.groups), 1))
        case "Stability":
            return Drawing(stability, 3.4, 2 if has_loop(result) else 1)
        case "Optimum":
            return Drawing(optimum, 6.6 if result.curve is None else 2.8)
        case "PacketRuns":
            return Drawing(packets, 2.6, 2) if result.series is None else Drawing(packet_series, 4)
    if name in _NUMBERS:
        raise TypeError(f"plot: {name} has no picture: {_NUMBERS[name]}")
    if name not in _DRAWINGS:
        raise TypeError(f"plot: expected a result or a sweep, got {name}")
    return _DRAWINGS[name]
