"""Labels and scales of axes."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fluidcc.quantities import quantity
from fluidcc.results.export import scaled, with_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase, SubFigure

PALE = 0.18  # opacity of bands
MARKERS = "osD^vP*"
STABLE = "#d9efe3"  # of stable regions
_NARROW = 5.0  # inch below which panels stand below each other
_LETTER, _HANDLE = 0.06, 0.5  # inch, about: of a label, and of the sign before one in a legend
_TIED = "\N{NO-BREAK SPACE}"  # between words of a label that stay on one line


def axis_label(kind: str, name: str) -> str:
    """The name of a quantity with its unit."""
    return with_unit(name, quantity(kind, name).unit)


class ParameterAxis(NamedTuple):
    """How an axis shows a parameter: in words with symbol and unit, values divided by `scale`."""

    label: str
    scale: float = 1.0
    unit: str = "1"

    def values(self, given: Sequence[Any]) -> Any:
        """Values as they are drawn; words as they are."""
        return np.asarray(given) / self.scale if are_numbers(given) else given


def parameter_axis(net: Any, path: str, unit: str, values: Sequence[Any]) -> ParameterAxis:
    """The axis of a parameter at a path, from its meaning, symbol and unit in a network.

    Rates of packets are drawn as bit rates. A parameter of a delay equation, or of no network, has
    its path alone.
    """
    from fluidcc.scenario.paths import full_path, info_at, packet_size

    info = info_at(net, path) if hasattr(net, "link_names") else None
    if info is None or info.within is None:
        return ParameterAxis(with_unit(path, unit), unit=unit)
    bits = 8 * packet_size(net, path) if unit == "packet/s" else 1.0
    known = [bits * v for v in values] if are_numbers(values) else []
    scale, unit = scaled(known, "bit/s" if unit == "packet/s" else unit)
    kind, owner, *_, last = full_path(net, path).split(".")
    words = info.doc.rpartition(": ")[2].partition(";")[0]
    words = f"{ {'min': 'least ', 'max': 'largest '}.get(last, '') }{words}"
    symbol = f"${info.symbol}$" if info.symbol else ""
    others = len(net.link_names if kind == "links" else net.flow_names) > 1
    tied = with_unit(_TIED.join(filter(None, [symbol, f"({owner})" * others])), unit)
    label = f"{words[:1].upper()}{words[1:]} {tied.strip().replace(' ', _TIED)}".strip()
    return ParameterAxis(label, scale / bits, unit)


def are_numbers(values: Sequence[Any]) -> bool:
    """Whether all values are numbers: those of a choice are words, those of groups may be lists."""
    return all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in values)


def wrapped(label: str, inches: float) -> str:
    """A label in lines that fit a length, broken between words."""
    letters = max(int(inches / _LETTER), 12)
    lines = textwrap.wrap(label, letters, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace(_TIED, " ")


def width_of(ax: "Axes") -> float:
    """The room for a label below an axes [inch], about."""
    root: Any = ax.figure.figure
    place: Any = ax.get_subplotspec()
    return 0.8 * root.get_figwidth() * len(place.colspan) / place.get_gridspec().ncols


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


def legend_above(ax: "Axes") -> None:
    """A legend above an axes, clear of all that is drawn."""
    legend(ax, 99, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)


def legend(ax: "Axes", columns: int = 1, **options: Any) -> None:
    """A legend with at most as many columns as fit, if it has anything to say; each label once."""
    handles, labels = ax.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    if unique:
        longest = _LETTER * max(map(len, unique)) + _HANDLE
        fit = max(int(width_of(ax) / longest), 1)
        ax.legend(unique.values(), unique, ncols=min(columns, fit), **options)


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


def fit_scale(ax: "Axes", low: Any, high: Any, axis: str = "x", beyond: float = 30.0) -> None:
    """Make an axis logarithmic if the values span more than a factor, with plain numbers over less
    than three decades.
    """
    if not (are_numbers((low, high)) and low > 0 and high > beyond * low):
        return
    getattr(ax, f"set_{axis}scale")("log")
    if low >= 1e-3 and high < 1e5 and high < 1000 * low:
        from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

        own = getattr(ax, f"{axis}axis")
        own.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        own.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        own.set_minor_formatter(NullFormatter())
