"""Labels and scales of axes."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.quantities import quantity
from fluidcc.results.export import with_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase, SubFigure

PALE = 0.18  # opacity of bands
MARKERS = "osD^vP*"
_NARROW = 5.0  # inch below which panels stand below each other


def axis_label(kind: str, name: str) -> str:
    """The name of a quantity with its unit."""
    return with_unit(name, quantity(kind, name).unit)


def narrow(width: float) -> bool:
    """Whether a picture of this width [inch] is for one column of a page."""
    return width < _NARROW


def is_narrow(figure: "FigureBase") -> bool:
    """Whether a figure is for one column of a page."""
    root: Any = figure.figure
    return narrow(root.get_figwidth())


def abreast(figure: "FigureBase", count: int = 2) -> np.ndarray:
    """Panels next to each other, or below each other in a narrow picture, shape (count,)."""
    rows, columns = (count, 1) if is_narrow(figure) else (1, count)
    panels: Any = figure.subplots(rows, columns, squeeze=False)
    return panels.ravel()


def add_delay(ax: "Axes", queues: Iterable[tuple[Any, Any]], axis: str = "y") -> None:
    """Add a scale of the queueing delay to an axis of queues [packet], if all share one rate.

    `queues` has each queue with its delay [s], numbers or arrays.
    """
    pairs = [np.broadcast_arrays(*map(np.asarray, pair)) for pair in queues]
    rates = np.concatenate([delay[queue > 0] / queue[queue > 0] for queue, delay in pairs])
    if rates.size and np.allclose(rates, rates[0], rtol=1e-6):
        each = 1e3 * float(rates[0])  # ms for a packet
        scale = getattr(ax, f"secondary_{axis}axis")
        second = scale(
            "right" if axis == "y" else "top", functions=(lambda q: each * q, lambda d: d / each)
        )
        getattr(second, f"set_{axis}label")(with_unit("queueing delay", "ms"))


def over_time(figure: "SubFigure") -> tuple["Axes", "Axes"]:
    """Two panels over one time, for queues above and for windows below."""
    above, below = figure.subplots(2, 1, sharex=True)
    above.set(ylabel=axis_label("links", "queue"))
    below.set(xlabel="time [s]", ylabel=axis_label("flows", "window"))
    return above, below


def legend(ax: "Axes", columns: int = 1, **options: Any) -> None:
    """A legend, with half the columns in a narrow figure."""
    figure: Any = ax.figure
    ax.legend(ncols=max(columns // 2, 1) if is_narrow(figure) else columns, **options)


def from_zero(*axes: "Axes") -> None:
    """Let the vertical axis begin at 0 and leave room for a legend above the data."""
    for ax in axes:
        top = ax.dataLim.y1
        ax.set_ylim(0, 1.25 * top if top > 0 else None)


def from_zero_late(ax: "Axes", begin: float) -> None:
    """The same for data from time `begin` [s] on: a slow start may leave the picture."""
    lines = [line.get_xydata() for line in ax.get_lines()]
    late = [xy[(xy[:, 0] >= begin) & np.isfinite(xy[:, 1]), 1] for xy in map(np.asarray, lines)]
    top = max((float(values.max()) for values in late if values.size), default=0.0)
    ax.set_ylim(0, 1.5 * top if top > 0 else None)


def fit_scale(ax: "Axes", low: Any, high: Any, axis: str = "x") -> None:
    """Make an axis logarithmic if the values span a factor of more than 30."""
    numbers = all(isinstance(v, int | float) for v in (low, high))
    if numbers and low > 0 and high > 30 * low:
        getattr(ax, f"set_{axis}scale")("log")
