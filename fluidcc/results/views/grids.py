"""Views of results over grids: sweeps and stability maps."""

import functools
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fluidcc.analysis.crossings import Gap
from fluidcc.analysis.scan import DECADE
from fluidcc.quantities import SHARES, TABLE, at_share, name_at
from fluidcc.result import LISTED, Result, View
from fluidcc.results.axes import (
    MARKERS,
    PALE,
    STABLE,
    ParameterAxis,
    abreast,
    are_numbers,
    fit_scale,
    from_zero,
    interval_bars,
    is_narrow,
    legend_above,
    parameter_axis,
    whole_ticks,
    width_of,
    wrapped,
)
from fluidcc.results.blocks import (
    DASH,
    Block,
    Cell,
    Column,
    Measured,
    Number,
    Table,
    cells_of,
    in_unit,
    lines,
    number,
    parameter,
)
from fluidcc.results.export import columns, scaled
from fluidcc.results.tex import quantity_label
from fluidcc.results.views.equilibria import (
    CHANGE,
    COLOURS,
    MEANINGS,
    ROOT,
    STATES,
    root,
    state_of,
    stretches,
    undetermined,
)
from fluidcc.results.views.runs import COLUMNS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure
    from xarray import DataArray, Dataset

_FEW = 4  # most numbers per point along another dimension that have a column each
_HIDDEN = ("failed", "message")  # variables of points that are reported elsewhere
_MOST = 8  # panels
_MANY = 40  # points of a line that has no markers
_HEIGHT, _TALL = 1.7, 3.0  # of a panel and of a map [inch]
_COUNTS = ("unstable", "curves", "branches", "cycles")
_FLAGS = ("failed", "stable", "certified", "proven")
_MAP = ("root_real", "stable")
_FIRST = (
    "queue", "queueing_delay", "mark_probability", "utilization", "window", "root_real",
    "unstable", "phase_margin", "gain_margin", "delay_margin", "period", "window_mean",
    "window_bias", "link_utilization", "link_queue_mean", "group_goodput", "group_window_mean",
    "fluid", "trains", "packets", "link_queue", "group_window", "group_goodput_sampled",
)  # fmt: skip
"""Variables of data sets that are drawn; without any of these, all numeric ones."""


class Panel(NamedTuple):
    """A quantity at every point (P,), half widths of its 95 % intervals (NaN: none), its unit."""

    values: np.ndarray
    halves: np.ndarray
    unit: str

    def measured(self, count: int) -> list[Measured]:
        """The first numbers as those of a table."""
        pairs = zip(self.values[:count].tolist(), self.halves[:count].tolist(), strict=True)
        return [Measured(value, self.unit, half) for value, half in pairs]


class Change(NamedTuple):
    """A change of stability as a data set has it."""

    value: float
    frequency: float
    becomes: str
    kind: str


class Changes(NamedTuple):
    """The changes of stability at a point, as `Crossings` has them."""

    crossings: list[Change]
    without_equilibrium: list[Gap]
    stable_at_low: bool | None
    low: float
    high: float

    @property
    def stretches(self) -> list[tuple[str, float, float]]:
        """Parts of the range and what they are, in order."""
        known = [(STATES[stable], a, b) for a, b, stable in stretches(self)]
        gaps = [(state_of(gap), gap.low, gap.high) for gap in self.without_equilibrium]
        return sorted([*known, *gaps], key=lambda part: part[1:])

    @property
    def order(self) -> list[str]:
        """What follows what: neighbours of one order are joined."""
        return [name for name, *_ in self.stretches]


_GAP = re.compile(r"(\S+) to (\S+): (\w+)")


LEVEL_STYLES = {
    "": ("C0", "o", "-"), "mean": ("C0", "", "-"), "population": ("0.4", "", "--"),
    "trains": ("C2", "^", ":"), "packets": ("C1", "o", ""),
}  # fmt: skip
"""Colour, marker and line of each level of description in the panel of a quantity."""


class SweepView(View):
    """Results over a grid: a line for each point, a panel for each quantity over the last axis."""

    @property
    def size(self) -> Any:
        """Two panels per row, one for each quantity."""
        return _HEIGHT * math.ceil(len(self._drawn()[0]) / 2) + 0.5, 2

    @classmethod
    def columns(
        cls, net: Any, paths: Sequence[str], engines: Sequence[str] = View.engines
    ) -> list[str]:
        """Those of a data set: its labels, and quantities of links, groups and the whole."""
        flows = [(name, f"[{k}]") for name in net.flow_names for k in range(_FEW)]
        places: dict[str, list[dict[str, Any]]] = {
            "links": [{"link": name} for name in net.by_group.link_names],
            "flows": [{"group": g} for g in net.flow_names] + [{"flow": flow} for flow in flows],
        }
        known = ((q.kind, getattr(q, engine)) for q in TABLE for engine in engines)
        each = [(kind, at_share(name, p)) for kind, name in known if name for p in SHARES]
        names = [
            name_at(name, place)
            for kind, name in dict.fromkeys(each) for place in places.get(kind, [{}])
        ]  # fmt: skip
        return [*paths, *names]

    def _axis(self, path: str) -> ParameterAxis:
        """The axis of a parameter of the grid."""
        found = self.found
        sized = any(other.endswith("packet_size") for other in found.axes)
        net = None if sized or path == "time" else found.net
        return parameter_axis(net, path, found.units[path], found.axes[path])

    def _numbers(self, point: Any) -> dict[str, Measured]:
        """The numbers of a point; none if it failed."""
        return point.result.numbers() if isinstance(point.result, Result) else {}

    def _measured(self, points: Sequence[Any]) -> dict[str, list[Measured]]:
        """Each quantity at each point, None at points without it."""
        by_point = [self._numbers(point) for point in points]
        out: dict[str, list[Measured]] = {}
        for name in dict.fromkeys(name for numbers in by_point for name in numbers):
            known = [numbers.get(name) for numbers in by_point]
            unit = next(m.unit for m in known if m)
            out[name] = [m or Measured(None, unit) for m in known]
        return out

    def _interval(self) -> str:
        """Meaning of the half widths."""
        results = (point.result for point in self.found.points)
        return next(found.view.interval for found in results if isinstance(found, Result))

    def tables(self, rows: int | None = None) -> list[Block]:
        """The points with their few numbers, and why some have none."""
        result, points = self.found, self.found.points[:rows]
        first: dict[Column, Sequence[Cell]] = {
            parameter(path, result.units[path]): [Number(point.set[path]) for point in points]
            for path in result.axes
        }
        measured, title = self._measured(points), f"{len(result.points)} points"
        if any(m.half is not None for known in measured.values() for m in known):
            title += f", {self._interval()}"
        statuses = [point.status for point in points]
        first |= {Column("status"): statuses} if any(statuses) else {}
        parts = {title: [{name: known} for name, known in measured.items()]}
        return self._point_tables(first, parts, len(result.points) - len(points))

    def _point_tables(
        self,
        first: Mapping[Column, Sequence[Cell]],
        parts: Mapping[str, Sequence[Mapping[str, Sequence[Measured]]]],
        hidden: int,
        quantities: Sequence[str] = (),
    ) -> list[Block]:
        """A table of points under each heading: the `first` columns, then groups of numbers, each
        in one unit; and what the statuses mean, and why points lack numbers. `quantities` are those
        of the tables, if each has one.
        """
        out: list[Block] = []
        for k, (heading, groups) in enumerate(parts.items()):
            columns, of = {**first}, quantities[k] if quantities else ""
            for group in groups:
                columns |= _in_one_unit(group)
            if len(columns) > len(first) or len(parts) == 1:
                rows = [*zip(*columns.values(), strict=True)]
                out.append(Table(heading, tuple(columns), rows, hidden, of))
        statuses = {cell for cells in first.values() for cell in cells if isinstance(cell, str)}
        meanings = (f"{status}: {text}" for status, text in MEANINGS.items() if status in statuses)
        return [*out, *lines(*meanings), *self._reasons()]

    def _reasons(self) -> list[Block]:
        """Why points lack numbers, for the first of them; those that failed are named elsewhere."""
        reasons = [found for found in self.found.reasons if found.status != "failed"]
        left = len(reasons) - LISTED
        more = f"... and {left} more points for such reasons" if left > 0 else ""
        return lines(*(found.describe() for found in reasons[:LISTED]), more)

    def _panels(self) -> dict[str, dict[str, Panel]]:
        """The quantities of a sweep by level; raises TypeError if there are none to draw."""
        out: dict[str, dict[str, Panel]] = {}
        for name, known in self._measured(self.found.points).items():
            values, halves = np.array([(m.value, m.half) for m in known], float).T
            out[name] = {"": Panel(values, halves, known[0].unit)}
        if not out:
            raise TypeError("a sweep without numbers that go along its axes has no picture")
        return out

    def _drawn(self) -> tuple[dict[str, dict[str, Panel]], list[str]]:
        """The quantities that are drawn, and those that are 0 at all points, which a line names."""
        panels = self._panels()
        zero = [
            name for name, levels in panels.items()
            if not any(np.any(np.nan_to_num(panel.values)) for panel in levels.values())
        ]  # fmt: skip
        if len(zero) == len(panels):
            return panels, []
        return {name: levels for name, levels in panels.items() if name not in zero}, zero

    def _line_label(self, others: list[str], line: int) -> str:
        """Values of the other parameters on a line of the picture, with units."""
        if not others:
            return ""
        axes, parts = self.found.axes, []
        indices = np.unravel_index(line, [len(axes[path]) for path in others])
        for path, k in zip(others, indices, strict=True):
            axis = self._axis(path)
            (value,) = axis.values((axes[path][int(k)],))
            shown = f"{value:.4g}" if are_numbers((value,)) else str(value)
            unit = "" if axis.unit in ("", "1") else f" {axis.unit}"
            parts.append(f"{path.split('.')[-1]} = {shown}{unit}")
        return ", ".join(parts)

    def draw(self, figure: "SubFigure") -> None:
        """Each quantity over the last axis; one line for each value of the others and each level
        of description.
        """
        sweep, (panels, zero) = self.found, self._drawn()
        *others, along = sweep.axes
        axis = self._axis(along)
        x = axis.values(sweep.axes[along])
        width = 1 if is_narrow(figure) else 2
        rows = math.ceil(len(panels) / width)
        axes = figure.subplots(rows, width, squeeze=False, sharex=True).ravel()
        for ax, (name, levels) in zip(axes, panels.items(), strict=False):
            known = [value for panel in levels.values() for value in panel.values.tolist()]
            scale, unit = scaled(known, next(iter(levels.values())).unit)
            for level, panel in levels.items():
                lines = panel.values.reshape(-1, len(x)) / scale
                halves = panel.halves.reshape(-1, len(x)) / scale
                for k, (line, half) in enumerate(zip(lines, halves, strict=True)):
                    colour, mark, style = LEVEL_STYLES[level]
                    own = {"color": colour, "linestyle": style} if level and not others else {}
                    own |= {"color": f"C{k}", "linestyle": style} if level and others else {}
                    own |= {"drawstyle": "steps-mid"} if name in _COUNTS else {}
                    label = ", ".join(filter(None, [self._line_label(others, k), level]))
                    bars = interval_bars(line, half)
                    if len(x) > _MANY:
                        pale = {"color": own.get("color", f"C{k}"), "alpha": PALE}
                        ax.fill_between(x, line - bars[0], line + bars[1], **pale)
                        ax.plot(x, line, label=label or None, **own)
                        continue
                    ax.errorbar(
                        x, line, yerr=None if np.isnan(half).all() else bars, label=label or None,
                        marker=mark if level else MARKERS[k % len(MARKERS)], **own,
                    )  # fmt: skip
            ax.set(ylabel=wrapped(quantity_label(name, unit), _HEIGHT - 0.3))
            if np.ptp(known := [v for v in known if v is not None and np.isfinite(v)] or [0]) == 0:
                from_zero(ax)
            whole_ticks(ax, "y", known)
            if len(x) > _MANY:
                ax.margins(x=0)
            if are_numbers(x):
                whole_ticks(ax, "x", x)
            fit_scale(ax, x[0], x[-1])
        for ax in axes[len(panels) :]:
            ax.set_visible(False)
        for ax in axes[max(len(panels) - width, 0) : len(panels)]:
            ax.set(xlabel=wrapped(axis.label, width_of(ax)))
            ax.xaxis.set_tick_params(labelbottom=True)
        every = [panel for levels in panels.values() for panel in levels.values()]
        said = [self._interval()] if any(np.isfinite(p.halves).any() for p in every) else []
        if zero:
            said.append(f"0 at all points: {', '.join(quantity_label(name, '1') for name in zero)}")
        figure.suptitle("; ".join(said))
        legend_above(axes[0])


class SweepDataView(SweepView):
    """Results over a grid as a data set."""

    @functools.cached_property
    def data(self) -> "Dataset":
        """The data set."""
        return self.found.to_xarray()

    @property
    def size(self) -> Any:
        """Size of the panels, or of a map."""
        if "crossing" in self.data.dims:
            return 3.2, 1 + bool(np.isfinite(self.data["frequency"]).any())
        return (3.7, 1) if self._is_map() else super().size

    def _interval(self) -> str:
        """Intervals over seeds."""
        return self.interval

    def tables(self, rows: int | None = None) -> list[Block]:
        """The points with their variables that differ and have few numbers per point, or, for so
        many rows, those that are drawn; of comparisons a table for each quantity, of crossings a
        line for each.
        """
        axes = list(self.found.axes)
        total = math.prod(self.data.sizes[a] for a in axes)
        if "crossing" in self.data.dims:
            path, outside = self.data.attrs["path"], self.data["without_equilibrium"]
            names = ["status", "stable_at_low", path, *CHANGE, outside.name, "failed"]
            own = columns(self.data[names], [*axes, "crossing"])
            given = [c for c in own if c.name != "failed" and (c.name != "status" or any(c.values))]
            every = cells_of(given, [*axes, path], rows)
            hidden = len(own[0].values[len(own[0].values[:rows]) :])
            found = self._point_tables(every, {f"{total} points": []}, hidden)
            return [*found, *lines(*undetermined(outside.values.ravel()))]
        wanted = total if rows is None else min(rows, total)
        data, title = self.data.isel(_first_points(self.data, axes, wanted)), f"{total} points"
        words = "to_trust" if "to_trust" in data else "status"
        first = cells_of(columns(data[[*axes, words]], axes), axes, wanted)
        if "quantity" in data.dims:
            compared = self._compared(data)
            every = [panel for levels in compared.values() for panel in levels.values()]
            if any(np.isfinite(panel.halves).any() for panel in every):
                title += f", {self._interval()}"
            parts = {
                f"{name}, {title}": [{level: p.measured(wanted) for level, p in levels.items()}]
                for name, levels in compared.items()
            }
            return self._point_tables(first, parts, total - wanted, [*compared])
        names = [str(k) for k, v in data.variables.items() if k not in axes and _few(v, axes)]
        names = [name for name in names if name not in ("status", *_HIDDEN)]
        drawn = [name for name in _FIRST if name in names]
        groups = []
        for name in drawn if rows is not None and len(drawn) > 1 else names:
            if data[name].dtype.kind in "iufb":
                groups += [{k: p.measured(wanted)} for k, p in _over_seeds(data[name], axes)]
            else:
                own = columns(data[[name]], axes)
                first |= {Column(c.name): c.values[:wanted] for c in own if c.variable == name}
        return self._point_tables(first, {title: groups}, total - wanted)

    def _is_map(self) -> bool:
        """Whether these are growth rates and verdicts over two parameters that are numbers."""
        data, axes = self.data, self.found.axes
        on_grid = all(name in data and {*data[name].dims} == {*axes} for name in _MAP)
        numbers = all(np.asarray(values).dtype.kind in "iuf" for values in axes.values())
        return len(axes) == 2 and on_grid and numbers

    def _compared(self, data: "Dataset") -> dict[str, dict[str, Panel]]:
        """The quantities of comparisons by level of description."""
        data, out = data.transpose(..., *self.found.axes), {}
        for k, name in enumerate(data["quantity"].values.tolist()):
            own = data.isel(quantity=k)
            for level, fields in COLUMNS.items():
                values, halves = (
                    np.ravel(own[field] if field in own else np.full(own["failed"].shape, np.nan))
                    for field in fields
                )
                if np.isfinite(values).any():
                    unit = str(own["unit"].values)
                    out.setdefault(name, {})[level] = Panel(values, halves, unit)
        return out

    def _panels(self) -> dict[str, dict[str, Panel]]:
        """The variables that are drawn."""
        if "quantity" in self.data.dims:
            return self._compared(self.data)
        data, axes = self.data, list(self.found.axes)
        numeric = [
            str(k) for k, v in data.data_vars.items() if v.dtype.kind in "iuf" and _few(v, axes)
        ]
        numeric = [name for name in numeric if name not in _FLAGS]
        out: dict[str, dict[str, Panel]] = {}
        first = [n for k in _FIRST for n in numeric if n == k or re.fullmatch(rf"\w+\.\w+\.{k}", n)]
        for name in first or numeric:
            for column, panel in _over_seeds(data[name], axes):
                out[column] = {"": panel}
        if not out:
            raise TypeError("a sweep without numbers that go along its axes has no picture")
        return dict(list(out.items())[:_MOST])

    def draw(self, figure: "SubFigure") -> None:
        """Changes of stability, a map, or panels as for any sweep."""
        if "crossing" in self.data.dims:
            self._draw_changes(figure)
            return
        if not self._is_map():
            super().draw(figure)
            return
        result = self.found
        data = self.data.transpose(*result.axes, ...)
        stable = np.nan_to_num(data["stable"].values, nan=-1)
        axes = {path: self._axis(path) for path in result.axes}
        _growth_map(figure, result.axes, axes, data["root_real"].values, stable)

    def _changes(self) -> list[Changes]:
        """The changes of stability at each point."""
        data, axes, out = self.data, [*self.found.axes], []
        path, low, high = (data.attrs[name] for name in ("path", "low", "high"))
        for place in np.ndindex(*(data.sizes[axis] for axis in axes)):
            own = data.isel(dict(zip(axes, place, strict=True)))
            each = (own[name].values.tolist() for name in (path, "frequency", "becomes", "kind"))
            found = [Change(*c) for c in zip(*each, strict=True) if c[2]]
            gaps = _GAP.findall(str(own["without_equilibrium"].values))
            ends = [Gap(float(a), float(b), status) for a, b, status in gaps]
            stable = {"yes": True, "no": False}.get(str(own["stable_at_low"].values))
            out.append(Changes(found, ends, stable, low, high))
        return out

    def _draw_changes(self, figure: "SubFigure") -> None:
        """Values at which stability changes over the last axis, and their frequencies; with the
        parts of the range if there is one line only.
        """
        data, (*others, along) = self.data, self.found.axes
        path, ends = data.attrs["path"], (data.attrs["low"], data.attrs["high"])
        across = self._axis(along)
        own = parameter_axis(self.found.net, path, str(data[path].attrs["units"]), ends)
        x = across.values(self.found.axes[along])
        places = x if are_numbers(x) else np.arange(len(x))
        values, *rest = panels = abreast(figure, self.size[1])
        every = self._changes()
        lines = [every[k : k + len(x)] for k in range(0, len(every), len(x))]
        for k, line in enumerate(lines):
            label = self._line_label(others, k)
            if not label:
                _shade_changes(values, places, line, own)
            number = k if others else None
            _plot_changes(values, places, line, "value", own.scale, number, label)
            for ax in rest:
                _plot_changes(ax, places, line, "frequency", 1.0, number, label)
        if others:
            for word, fill in (("stable above", "full"), ("unstable above", "none")):
                values.plot([], [], "ko", fillstyle=fill, label=word)
        low, high = own.values(ends)
        values.set(ylabel=wrapped(own.label, self.size[0] - 0.7), ylim=(low, high))
        if path.endswith(".n"):  # a count
            whole_ticks(values, "y", ends)
        fit_scale(values, low, high, "y", DECADE)
        for ax in rest:
            ax.set(ylabel=quantity_label("frequency", "rad/s"))
        for ax in panels:
            ax.set(xlabel=wrapped(across.label, width_of(ax)))
            ax.plot(places, np.full(len(places), np.nan))  # begins and ends as the grid
            ax.update_datalim(np.column_stack([places, places]), updatey=False)
            if are_numbers(x):
                whole_ticks(ax, "x", x)
                fit_scale(ax, x[0], x[-1])
            else:
                ax.set_xticks(places, x)
        legend_above(values)


def _shade_changes(ax: "Axes", x: np.ndarray, line: Sequence[Changes], axis: ParameterAxis) -> None:
    """Shade the parts of the range between neighbours: of one order up to the lines between their
    changes, else as far as both are alike.
    """
    for (left, a), (right, b) in itertools.pairwise(zip(x, line, strict=True)):
        same = a.order == b.order
        pairs = (
            zip(a.stretches, b.stretches, strict=True)
            if same
            else itertools.product(a.stretches, b.stretches)
        )
        for (word, *ends), (other, *others) in pairs:
            low, high = zip(ends, others, strict=True)
            if not same:
                low, high = (max(low),) * 2, (min(high),) * 2
            if word == other and low < high:
                style = {"color": COLOURS[word], "linewidth": 0, "zorder": 0, "label": word}
                ax.fill_between((left, right), axis.values(low), axis.values(high), **style)


def _plot_changes(
    ax: "Axes", x: np.ndarray, line: Sequence[Changes], name: str, scale: float,
    number: int | None, label: str,
) -> None:  # fmt: skip
    """Mark the changes of stability at each point: by their kinds, or those of a line with a
    number, hollow below what is unstable. Neighbours of one order are joined.
    """
    colour = "0.5" if number is None else f"C{number}"

    def values(changes: Changes) -> list[float]:
        return [getattr(c, name) / scale for c in changes.crossings]

    for (left, a), (right, b) in itertools.pairwise(zip(x, line, strict=True)):
        if a.order == b.order:
            for pair in zip(values(a), values(b), strict=True):
                ax.plot((left, right), pair, "-", color=colour, linewidth=0.9)
    for place, changes in zip(x, line, strict=True):
        for value, change in zip(values(changes), changes.crossings, strict=True):
            if number is None:
                smooth = change.kind.startswith(("Hopf", "fold"))
                ax.plot(place, value, "C0o" if smooth else "C1s", label=change.kind)
                continue
            fill = "full" if change.becomes == "stable" else "none"
            mark = MARKERS[number % len(MARKERS)]
            ax.plot(place, value, mark, color=colour, fillstyle=fill, label=label)


def _in_one_unit(rows: Mapping[str, Sequence[Measured]]) -> dict[Column, list[Number]]:
    """Columns of numbers in one unit by their names; those without any number are left out."""
    known = {k: v for k, v in rows.items() if any(number(m.value) != DASH for m in v)}
    every = [measured for row in known.values() for measured in row]
    if not every:
        return {}
    unit, numbers = in_unit(every[0].unit, *every)
    count = len(every) // len(known)
    return {Column(name, unit): numbers[k * count :][:count] for k, name in enumerate(known)}


def _over_seeds(variable: "DataArray", axes: Sequence[str]) -> Iterator[tuple[str, Panel]]:
    """A variable at all points, a panel for each place along further dimensions: of runs the mean
    over seeds with its interval.
    """
    import xarray as xr

    from fluidcc.packets.accounts import half_width

    mean = variable.transpose(..., *axes)
    halves = xr.full_like(mean, math.nan, dtype=float)
    if "seed" in mean.dims:
        seeds = mean.transpose("seed", ...)
        mean = seeds.mean("seed", keep_attrs=True)
        halves = mean.copy(data=half_width(seeds.values))
    means, spreads = (columns(v.to_dataset(name=variable.name), axes) for v in (mean, halves))
    for c, half in zip(means, spreads, strict=True):
        if c.variable == variable.name:
            yield c.name, Panel(np.array(c.values, float), np.array(half.values, float), c.unit)


def _few(variable: Any, axes: Sequence[str]) -> bool:
    """Whether a variable differs along all axes and has few numbers at each point and seed."""
    inner = {*axes, "seed"}
    others = math.prod(size for dim, size in variable.sizes.items() if dim not in inner)
    return set(axes) <= set(variable.dims) and others <= _FEW


def _first_points(data: "Dataset", axes: Sequence[str], wanted: int) -> dict[Any, slice]:
    """The smallest box of a grid that includes its first `wanted` points, as slices by axis."""
    box, inner = {}, 1
    for axis in reversed(axes):
        box[axis] = slice(-(-wanted // inner))
        inner *= data.sizes[axis]
    return box


class MapView(SweepView):
    """Verdicts over a grid."""

    size: Any = (4.0, 1)

    @classmethod
    def columns(cls, net: Any, paths: Sequence[str]) -> list[str]:
        """The parameters, the status and the rightmost root."""
        return [*paths, "status", *ROOT]

    def _numbers(self, point: Any) -> dict[str, Measured]:
        """Number of unstable roots and the rightmost root."""
        return {} if point.status == "failed" else root(point.rightmost, point.unstable)

    def draw(self, figure: "SubFigure") -> None:
        """Growth rates over one or two parameters, and the undetermined points."""
        result = self.found
        rate = np.real(result.grid("rightmost"))
        axes = {path: self._axis(path) for path in result.axes}
        _growth_map(figure, result.axes, axes, rate, result.grid("stable"))


def _unevenness(values: np.ndarray) -> float:
    """Relative difference between the largest and the smallest step of values."""
    steps = np.diff(values)
    return float(np.ptp(steps) / np.max(np.abs(steps))) if steps.size > 1 else 0.0


def _edges(values: np.ndarray, *, log: bool) -> np.ndarray:
    """Ends of the cells around values, half-way between them on a linear or logarithmic axis."""
    if len(values) < 2:
        return values[0] + np.array([-0.5, 0.5]) * (abs(values[0]) or 1.0)
    on_axis = np.log(values) if log else values
    middle = (on_axis[1:] + on_axis[:-1]) / 2
    ends = 2 * on_axis[0] - middle[0], 2 * on_axis[-1] - middle[-1]
    edges = np.array([ends[0], *middle, ends[1]])
    return np.exp(edges) if log else edges


def _growth_map(
    figure: "SubFigure",
    over: Mapping[str, Any],
    axes: Mapping[str, ParameterAxis],
    rate: np.ndarray,
    stable: np.ndarray,
) -> None:
    """Draw growth rates [1/s] and verdicts (-1: undetermined) over one or two parameters; verdicts
    alone if no rate is known, as for populations, whose roots are counted only.

    Raises TypeError for more than two parameters.
    """
    if len(over) > 2:
        raise TypeError(f"a map over {len(over)} parameters has no picture: choose two")
    ax = figure.subplots()
    x, *others = (np.asarray(axes[path].values(values), float) for path, values in over.items())
    first, *second = (axis.label for axis in axes.values())
    words = {} if np.isfinite(rate).any() else {"stable": -0.5, "unstable": 0.5}
    if words:
        rate = np.select([stable == 1, stable == 0], [*words.values()], np.nan)
    if not others:
        ax.plot(x, rate, ".-")
        ax.axhline(0.0, color="0.6", linewidth=0.8)
        label = wrapped(first, width_of(ax))
        ax.set(xlabel=label, ylabel="" if words else "growth rate [1/s]")
        if words:
            ax.set_yticks([*words.values()], [*words])
        ax.axhspan(ax.get_ylim()[0], 0.0, color=STABLE, linewidth=0, zorder=0, label="stable")
        ax.margins(y=0)
        fit_scale(ax, x[0], x[-1])
        legend_above(ax)
        return
    y = others[0]
    known = rate[np.isfinite(rate)]
    most = 1.0 if words else float(np.max(np.abs(known), initial=0.0)) or 1.0
    logs = [v.min() > 0 and _unevenness(np.log(v)) < _unevenness(v) for v in (x, y)]
    corners = [_edges(v, log=log) for v, log in zip((x, y), logs, strict=True)]
    image = ax.pcolormesh(*corners, rate.T, cmap="RdBu_r", vmin=-most, vmax=most, rasterized=True)
    between = known.size and known.min() < 0 < known.max() and min(rate.shape) > 1
    if between and not words:
        ax.contour(x, y, rate.T, levels=[0.0], colors="black", linewidths=1.0)
        ax.plot([], [], "k-", linewidth=1.0, label="limit of stability")
    i, j = np.nonzero(stable < 0)
    if i.size:
        ax.plot(x[i], y[j], "x", color="0.6", markersize=4, linestyle="", label="undetermined")
    for word, value in words.items():
        ax.plot([], [], "s", color=image.to_rgba(np.array([value]))[0], linestyle="", label=word)
    if not words:
        figure.colorbar(image, ax=ax, label="growth rate [1/s], stable below 0")
    for axis, log in zip("xy", logs, strict=True):
        if log:
            getattr(ax, f"set_{axis}scale")("log")
    ax.set(xlabel=wrapped(first, width_of(ax)), ylabel=wrapped(second[0], _TALL))
    legend_above(ax)
