"""Labels and scales of axes."""

import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fluidcc.quantities import quantity
from fluidcc.results.export import scaled, with_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase, SubFigure

PALE = 0.18  # opacity of bands
MARKERS = "osD^vP*"
STABLE = "#d9efe3"  # of stable regions
_NARROW = 5.0  # inch below which panels stand below each other
_LETTER, _HANDLE = 0.06, 0.36  # inch, about: of a label, and of the sign before one in a legend
_TIED = "\N{NO-BREAK SPACE}"  # between words of a label that stay on one line
_PEAK = 4.0  # times what comes later, of a peak that is cut
_WHOLE = 12  # largest range of whole numbers whose ticks are whole


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
    own = with_unit(" ".join(filter(None, [symbol, f"({owner})" * others])), unit)
    label = f"{words[:1].upper()}{words[1:]} {tied(own.strip())}".strip()
    return ParameterAxis(label, scale / bits, unit)


def are_numbers(values: Sequence[Any]) -> bool:
    """Whether all values are numbers: those of a choice are words, those of groups may be lists."""
    return all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in values)


def tied(words: str) -> str:
    """Words that `wrapped` keeps on one line."""
    return words.replace(" ", _TIED)


def wrapped(label: str, inches: float) -> str:
    """A label in lines that fit a length, broken between words: not before a unit or a letter."""
    letters = max(int(inches / _LETTER), 12)
    label = re.sub(r" (?=\[|\S( |$)|\$)", _TIED, label)
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


def over_time(figure: "SubFigure", unit: str = "s") -> tuple["Axes", "Axes"]:
    """Two panels over one time, for queues above and for windows below."""
    above, below = figure.subplots(2, 1, sharex=True)
    above.set(ylabel=axis_label("links", "queue"))
    below.set(xlabel=with_unit("time", unit), ylabel=axis_label("flows", "window"))
    for ax in (above, below):
        ax.margins(x=0)
    return above, below


def mark_changes(ax: "Axes", net: Any, until: float) -> None:
    """Lines at the times at which links change, with what they become, for an axis of times [s]."""
    links = [] if net is None else [*zip(net.link_names, net.links, strict=True)]
    for name, link in links:
        for change in link.schedule:
            words = []
            if change.capacity is not None:
                scale, unit = scaled([8 * link.packet_size * change.capacity], "bit/s")
                words.append(f"{8 * link.packet_size * change.capacity / scale:.4g} {unit}")
            if change.delay is not None:
                words.append(f"{1e3 * change.delay:.4g} ms")
            if change.at < until:
                ax.axvline(change.at, color="0.4", linestyle=":", linewidth=0.9)
                text = f"{f'{name}: ' * (len(links) > 1)}{', '.join(words)}"
                _note(ax, change.at, text)


def _note(ax: "Axes", x: float, text: str) -> None:
    """A small text right of a place on the horizontal axis, at the top."""
    ax.annotate(
        text, (x, 1.0), xycoords=("data", "axes fraction"), xytext=(2, -1), fontsize=6,
        textcoords="offset points", va="top", color="0.3", zorder=5,
        bbox={"color": "white", "alpha": 0.7, "pad": 0.5, "linewidth": 0},
    )  # fmt: skip


def legend_above(ax: "Axes") -> None:
    """A legend above an axes, clear of all that is drawn, if it has anything to say: each label
    once, in as many columns as fit.
    """
    handles, labels = ax.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    if unique:
        longest = _LETTER * max(map(len, unique)) + _HANDLE
        ax.legend(
            unique.values(), unique, ncols=max(int(width_of(ax) / longest), 1), loc="lower left",
            bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2, handlelength=1.6, columnspacing=1.2,
        )  # fmt: skip


def from_zero(*axes: "Axes") -> None:
    """Let the vertical axis begin at 0, and end a little above the data."""
    for ax in axes:
        top = ax.dataLim.y1
        ax.set_ylim(0, 1.1 * top if top > 0 else 1.0)


def cut_peaks(ax: "Axes", begin: float) -> None:
    """Cut peaks before the time `begin` [s], such as that of slow start, that would leave little
    room for what comes later; their height stands next to them.

    Thin lines without a label, such as those of single flows, are cut by what has one.
    """
    lines = [(line.get_xydata(), str(line.get_label())) for line in ax.get_lines()]
    bands = [(path.vertices, band) for band in ax.collections for path in band.get_paths()]

    def points(shapes: Iterable[tuple[Any, Any]]) -> np.ndarray:
        xy = np.concatenate([np.zeros((1, 2)), *(xy for xy, _ in shapes)]).astype(float)
        return xy[np.isfinite(xy).all(axis=1)]

    every = points([*lines, *bands])
    main = points([*(line for line in lines if not line[1].startswith("_")), *bands])
    highest, late = main[:, 1].max(), main[main[:, 0] >= begin, 1].max(initial=0.0)
    height = late if 1 <= late < highest / _PEAK else highest
    time, peak = every[every[:, 1].argmax()]
    if peak > 1.3 * height:
        ax.set_ylim(-0.04 * height if ax.get_ylim()[0] else 0.0, 1.3 * height)
        _note(ax, time, f"up to {peak:.4g}")


def interval_bars(values: Any, halves: Any) -> np.ndarray:
    """Lengths below and above values (2, n) of intervals of what is not negative."""
    values, halves = np.nan_to_num(values), np.nan_to_num(halves)
    return np.array([np.where(values >= 0, np.minimum(halves, values), halves), halves])


def name_ticks(ax: "Axes", names: Sequence[str]) -> None:
    """Names below the places 0, 1, ... of an axes, upright if they would overlap."""
    ax.set_xticks(range(len(names)), names)
    if len(names) * (max(map(len, names), default=0) + 2) * _LETTER > width_of(ax):
        ax.tick_params(axis="x", labelrotation=90)


def whole_ticks(ax: "Axes", axis: str, values: Iterable[Any]) -> None:
    """Whole numbers at the ticks of an axis for few whole numbers, such as counts."""
    known = np.array([v for v in values if v is not None], float)
    known = known[np.isfinite(known)]
    if known.size and np.all(known == np.rint(known)) and np.ptp(known) <= _WHOLE:
        from matplotlib.ticker import MaxNLocator

        getattr(ax, f"{axis}axis").set_major_locator(MaxNLocator(integer=True))


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


def powers_in_labels(figure: "Figure") -> None:
    """Put the power of ten of an axis into the unit of its label: it would stand next to it."""
    from matplotlib.ticker import ScalarFormatter

    for ax in figure.get_axes():
        for own in (ax.xaxis, ax.yaxis):
            form, label = own.get_major_formatter(), own.get_label_text()
            if not isinstance(form, ScalarFormatter) or not label:
                continue
            form.format_ticks(own.get_majorticklocs().tolist())
            if form.get_offset():
                power = math.floor(math.log10(np.abs(own.get_view_interval()).max()))
                form.set_powerlimits((power, power))  # fixed, as the label has it
                own.get_offset_text().set_visible(False)
                words, unit, rest = label.rpartition("[")
                ten = f"$10^{{{power}}}$"
                own.set_label_text(f"{words}[{ten} {rest}" if unit else f"{label} [{ten}]")
