"""Pictures of sweeps: each quantity over the last axis."""

import math
import textwrap
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.figure import SubFigure

from fluidcc.packets.accounts.results import half_width
from fluidcc.results.export import columns, scaled, with_unit
from fluidcc.results.pictures.axes import MARKERS, fit_scale, is_narrow, legend
from fluidcc.results.pictures.maps import growth_map
from fluidcc.results.summary import SUMMARIES
from fluidcc.results.tables.grids import few

_MOST = 8  # panels
_LETTERS = 22  # of a label beside a panel
_FLAGS = ("failed", "stable", "certified", "proven")
_MAP = ("root_real", "stable")
_FIRST = (
    "queue", "signal", "utilization", "window", "root_real", "unstable", "phase_margin",
    "gain_margin", "delay_margin", "period", "time_mean", "bias", "link_utilization",
    "link_queue_mean", "group_goodput", "group_window_mean", "fluid", "packets",
)  # fmt: skip
"""Variables of sweeps in chunks that are drawn; where there are none of them, the first ones."""


class Panel(NamedTuple):
    """A quantity at every point (P,), half widths of its intervals (NaN: none), and its unit."""

    values: np.ndarray
    halves: np.ndarray
    unit: str


def panels_of(sweep: Any) -> dict[str, Panel]:
    """The quantities of a sweep; raises TypeError where there are none to draw."""
    found = _of_data(sweep) if hasattr(sweep, "data") else _of_results(sweep)
    if not found:
        raise TypeError("a sweep without numbers that go along its axes has no picture")
    return found


def _of_results(sweep: Any) -> dict[str, Panel]:
    results = [p.result for p in sweep.points]
    kind = next((type(r).__name__ for r in results if r is not None), "")
    if kind not in SUMMARIES:
        told = f"a sweep of {kind}" if kind else "a sweep of which every point failed"
        raise TypeError(f"{told} has no picture")
    summaries = [{} if r is None else SUMMARIES[kind](r.to_dict()) for r in results]
    out = {}
    for name in dict.fromkeys(name for s in summaries for name in s):
        own = [s.get(name) for s in summaries]
        unit = next(q.unit for q in own if q is not None)
        values = [math.nan if q is None or q.value is None else q.value for q in own]
        halves = [math.nan if q is None or q.half is None else q.half for q in own]
        out[name] = Panel(np.array(values, float), np.array(halves, float), unit)
    return out


def _of_data(sweep: Any) -> dict[str, Panel]:
    data, axes = sweep.to_dataset(), list(sweep.axes)
    able = [str(k) for k, v in data.data_vars.items() if v.dtype.kind in "iuf" and few(v, axes)]
    able = [name for name in able if name not in _FLAGS]
    out: dict[str, Panel] = {}
    for name in [name for name in _FIRST if name in able] or able:
        own = data[name].transpose(..., *axes)
        halves = xr.full_like(own, math.nan, dtype=float)
        if "seed" in own.dims:
            seeds = own.transpose("seed", ...)
            own = seeds.mean("seed", keep_attrs=True)
            halves = own.copy(data=half_width(seeds.values))
        means, spreads = (columns(v.to_dataset(name=name), axes) for v in (own, halves))
        for (column, unit, values), (_, _, half) in zip(means, spreads, strict=True):
            if column.startswith(name):
                panel = Panel(np.array(values, float), np.array(half, float), unit)
                out[column.replace("_", " ")] = panel
    return dict(list(out.items())[:_MOST])


def rows_of(sweep: Any, *, slim: bool) -> int:
    """How many rows of panels the picture of a sweep has."""
    return 2 if _is_map(sweep) else math.ceil(len(panels_of(sweep)) / (1 if slim else 2))


def _is_map(sweep: Any) -> bool:
    """Whether these are growth rates and verdicts over two parameters that are numbers."""
    data = sweep.data if hasattr(sweep, "data") else {}
    laid = all(name in data and {*data[name].dims} == {*sweep.axes} for name in _MAP)
    numbers = all(np.asarray(values).dtype.kind in "iuf" for values in sweep.axes.values())
    return len(sweep.axes) == 2 and laid and numbers


def swept(figure: SubFigure, sweep: Any) -> None:
    """Each quantity over the last axis; one line for each value of the others. Or a map."""
    if _is_map(sweep):
        data = sweep.data.transpose(*sweep.axes, ...)
        stable = np.nan_to_num(data["stable"].values, nan=-1)
        growth_map(figure, sweep.axes, sweep.units, data["root_real"].values, stable)
        return
    panels = panels_of(sweep)
    *others, along = sweep.axes
    x = sweep.axes[along]
    width = 1 if is_narrow(figure) else 2
    rows = math.ceil(len(panels) / width)
    axes = figure.subplots(rows, width, squeeze=False, sharex=True).ravel()
    for ax, (name, panel) in zip(axes, panels.items(), strict=False):
        scale, unit = scaled(panel.values.tolist(), panel.unit)
        lines = panel.values.reshape(-1, len(x)) / scale
        halves = panel.halves.reshape(-1, len(x)) / scale
        for k, (line, half) in enumerate(zip(lines, halves, strict=True)):
            mark, spread = MARKERS[k % len(MARKERS)], None if np.isnan(half).all() else half
            ax.errorbar(x, line, yerr=spread, marker=mark, label=_told(sweep, others, k) or None)
        ax.set(ylabel=textwrap.fill(with_unit(name.replace("_", " "), unit), _LETTERS))
        fit_scale(ax, x[0], x[-1])
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    for ax in axes[max(len(panels) - width, 0) : len(panels)]:
        ax.set(xlabel=with_unit(along, sweep.units[along]))
        ax.xaxis.set_tick_params(labelbottom=True)
    if any(np.isfinite(panel.halves).any() for panel in panels.values()):
        axes[0].set_title("mean and 95 % interval")
    if others:
        legend(axes[0])


def _told(sweep: Any, others: list[str], line: int) -> str:
    """What a line of the picture has in common, with units."""
    if not others:
        return ""
    places = np.unravel_index(line, [len(sweep.axes[path]) for path in others])
    words = []
    for path, k in zip(others, places, strict=True):
        unit = "" if sweep.units[path] in ("", "1") else f" {sweep.units[path]}"
        words.append(f"{path.split('.')[-1]} = {sweep.axes[path][int(k)]}{unit}")
    return ", ".join(words)
