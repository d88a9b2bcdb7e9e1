"""Pictures of results, in the house style."""

import itertools
import math
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from fluidcc.results import scaled
from fluidcc.summary import SUMMARIES, Quantity

_WIDTH = 7.0  # inch
_PALE = 0.18  # opacity of bands


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
    """
    if not results:
        raise TypeError("plot: expected at least one result, got none")
    drawn = [_drawing(result) for result in results]
    with _house_style():
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
    with _house_style():
        figure.savefig(path)


def _house_style() -> Any:
    with as_file(files("fluidcc") / "fluidcc.mplstyle") as style:
        return rc_context(fname=style)


def _label(name: str, unit: str) -> str:
    return name if unit in ("", "1") else f"{name} [{unit}]"


def _from_zero(*axes: Axes) -> None:
    """Let the vertical axis begin at 0 and leave room for a legend above the data."""
    for ax in axes:
        top = ax.dataLim.y1
        ax.set_ylim(0, 1.25 * top if top > 0 else None)


def _from_zero_late(ax: Axes, begin: float) -> None:
    """The same for what is drawn from time `begin` on: a slow start may leave the picture."""
    lines = [line.get_xydata() for line in ax.get_lines()]
    late = [xy[(xy[:, 0] >= begin) & np.isfinite(xy[:, 1]), 1] for xy in map(np.asarray, lines)]
    top = max((float(values.max()) for values in late if values.size), default=0.0)
    ax.set_ylim(0, 1.5 * top if top > 0 else None)


def _fit_scale(ax: Axes, low: Any, high: Any) -> None:
    """A logarithmic axis where the values span more than a decade or so."""
    numbers = all(isinstance(v, int | float) for v in (low, high))
    if numbers and low > 0 and high > 30 * low:
        ax.set_xscale("log")


def _trajectory(figure: SubFigure, run: Any) -> None:
    """Queue and windows over time."""
    above, below = figure.subplots(2, 1, sharex=True)
    for name, link in run.links.items():
        (line,) = above.plot(run.time, link.queue, label=f"{name}: queue")
        above.plot(run.time, link.average, "--", color=line.get_color(), label=f"{name}: average")
    for k, (name, group) in enumerate(run.flows.items()):
        low, high = group.window.min(axis=1), group.window.max(axis=1)
        mean = np.average(group.window, axis=1, weights=group.n)
        below.plot(run.time, mean, color=f"C{k}", label=name)
        below.fill_between(run.time, low, high, color=f"C{k}", alpha=_PALE, linewidth=0)
    above.set(title=run.net.title, ylabel="queue [packet]")
    below.set(xlabel="time [s]", ylabel="window [packet]")
    above.legend(ncols=2)
    below.legend(ncols=3)


def _cycle(figure: SubFigure, found: Any) -> None:
    """One period: queues and averages above, windows below; or the states of an equation."""
    above, below = figure.subplots(2, 1, sharex=True)
    if found.course is not None:
        for name, values in found.course.values.items():
            ax = below if name.partition("[")[0].endswith(".window") else above
            style = "--" if name.endswith(".average") else "-"
            ax.plot(found.course.time, values, style, label=name)
    known = "no cycle" if found.period is None else f"{found.status}, period {found.period:.5g} s"
    above.set(title=known, ylabel="queue [packet]" if found.links else "state")
    below.set(xlabel="time [s]", ylabel="window [packet]")
    for ax in (above, below):
        if ax.get_lines():
            ax.legend(ncols=3)


def _cycles(figure: SubFigure, found: Any) -> None:
    """Extremes of queues, or of states, and periods along branches; unstable cycles are hollow."""
    above, below = figure.subplots(2, 1, sharex=True)
    branches = [branch for branch in found.branches if branch.cycles]
    for k, branch in enumerate(branches):
        names = list(branch.cycles[0].links) or list(range(len(branch.cycles[0].states)))
        for j, name in enumerate(names):
            pairs = [c.links[name].queue if c.links else c.states[name] for c in branch.cycles]
            colour, label = f"C{k * len(names) + j}", name if k == 0 else None
            above.fill_between(branch.values, *np.array(pairs).T, color=colour, alpha=_PALE)
            above.plot(branch.values, pairs, color=colour, label=[label, None])
        periods = [c.period for c in branch.cycles]
        faces = ["none" if c.stable is False else f"C{k}" for c in branch.cycles]
        below.plot(branch.values, periods, color=f"C{k}")
        below.scatter(branch.values, periods, c=faces, edgecolors=f"C{k}", zorder=3)
        below.plot(branch.hopf, 2 * math.pi / branch.frequency, "k*")
    above.set(ylabel="queue [packet]" if any(b.cycles[0].links for b in branches) else "state")
    below.set(xlabel=_label(found.path, found.unit), ylabel="period [s]")
    _fit_scale(below, found.low, found.high)
    if branches:
        above.legend(ncols=3)


def _equilibrium(figure: SubFigure, rest: Any) -> None:
    """Rates and windows over round trips."""
    axes = figure.subplots(1, 2)
    for name, group in rest.flows.items():
        for ax, key in zip(axes, ("rate", "window"), strict=True):
            ax.plot(1000 * np.asarray(group.rtt), getattr(group, key), "o", label=name)
    queues = ", ".join(f"{name} {v.queue:.4g}" for name, v in rest.links.items())
    figure.suptitle(f"{rest.status}; queue [packet]: {queues}", fontsize=8)
    for ax, label in zip(axes, ("rate of a flow [packet/s]", "window [packet]"), strict=True):
        ax.set(xlabel="round trip [ms]", ylabel=label)
    _from_zero(*axes)
    axes[0].legend()


def _stability(figure: SubFigure, found: Any) -> None:
    """The rightmost roots in the complex plane."""
    ax = figure.subplots()
    ax.axvline(0, color="0.4", linewidth=0.8)
    for colour, unstable in (("C0", False), ("C1", True)):
        roots = [complex(s) for s in found.roots if (s.real > 0) == unstable]
        ax.plot([s.real for s in roots], [s.imag for s in roots], "x", color=colour)
    verdict = "stable" if found.stable else f"not stable ({found.status})"
    ax.set(title=verdict, xlabel="real part [1/s]", ylabel="imaginary part [rad/s]")


def _boundary(figure: SubFigure, found: Any) -> None:
    """Curves over both parameters, and the grid points that are stable."""
    ax = figure.subplots()
    for kind, style in (("hopf", "C0-"), ("fold", "C3-"), ("jump", "C4--")):
        curves = [c for c in found.curves if c.kind == kind]
        for k, curve in enumerate(curves):
            ax.plot(curve.x, curve.y, style, label=kind if k == 0 else None)
    for curve in found.further:
        ax.plot(curve.x, curve.y, color="0.8", linewidth=0.8, zorder=0)
    x, y = np.meshgrid(*found.grid, indexing="ij")
    for marker, chosen, word in ((".", found.unstable == 0, "stable"),
                                 ("x", found.unstable > 0, "unstable")):  # fmt: skip
        ax.plot(x[chosen], y[chosen], marker, color="0.6", markersize=4, label=word, linestyle="")
    for axis, (low, high) in zip("xy", found.ranges, strict=True):
        if low > 0 and high > 10 * low:
            getattr(ax, f"set_{axis}scale")("log")
        getattr(ax, f"set_{axis}lim")(low, high)
    labels = [_label(p, u) for p, u in zip(found.paths, found.units, strict=True)]
    ax.set(xlabel=labels[0], ylabel=labels[1])
    ax.legend()


def _uneven(values: np.ndarray) -> float:
    """How much the steps between values differ."""
    steps = np.diff(values)
    return float(np.ptp(steps) / np.max(np.abs(steps))) if steps.size > 1 else 0.0


def _edges(values: np.ndarray, *, log: bool) -> np.ndarray:
    """Ends of the cells about values, half-way between them on the axis as it is drawn."""
    if len(values) < 2:
        return values[0] + np.array([-0.5, 0.5]) * (abs(values[0]) or 1.0)
    on_axis = np.log(values) if log else values
    middle = (on_axis[1:] + on_axis[:-1]) / 2
    ends = 2 * on_axis[0] - middle[0], 2 * on_axis[-1] - middle[-1]
    edges = np.array([ends[0], *middle, ends[1]])
    return np.exp(edges) if log else edges


def _stability_map(figure: SubFigure, found: Any) -> None:
    """Growth rates over one or two parameters, and where there is no verdict."""
    if len(found.axes) > 2:
        raise TypeError(f"a map over {len(found.axes)} parameters has no picture: choose two")
    ax = figure.subplots()
    paths, rate = list(found.axes), np.real(found.grid("rightmost"))
    x, *others = (np.asarray(values, float) for values in found.axes.values())
    labels = [_label(path, found.units[path]) for path in paths]
    if not others:
        ax.plot(x, rate, ".-")
        ax.axhline(0.0, color="0.6", linewidth=0.8)
        ax.set(xlabel=labels[0], ylabel="growth rate [1/s]")
        _fit_scale(ax, x[0], x[-1])
        return
    y = others[0]
    known = rate[np.isfinite(rate)]
    most = float(np.max(np.abs(known), initial=0.0)) or 1.0
    logs = [v.min() > 0 and _uneven(np.log(v)) < _uneven(v) for v in (x, y)]
    corners = [_edges(v, log=log) for v, log in zip((x, y), logs, strict=True)]
    image = ax.pcolormesh(*corners, rate.T, cmap="RdBu_r", vmin=-most, vmax=most, rasterized=True)
    if known.size and known.min() < 0 < known.max() and min(rate.shape) > 1:
        ax.contour(x, y, rate.T, levels=[0.0], colors="black", linewidths=1.0)
    i, j = np.nonzero(found.grid("stable") < 0)
    ax.plot(x[i], y[j], "x", color="0.6", markersize=4, linestyle="", label="no verdict")
    figure.colorbar(image, ax=ax, label="growth rate [1/s]")
    for axis, log in zip("xy", logs, strict=True):
        if log:
            getattr(ax, f"set_{axis}scale")("log")
    ax.set(xlabel=labels[0], ylabel=labels[1])
    if i.size:
        ax.legend()


def _crossings(figure: SubFigure, found: Any) -> None:
    """Stable and unstable parts of the range, and the frequencies at its changes."""
    ax = figure.subplots()
    edges = [found.low, *(c.value for c in found.crossings), found.high]
    stable = found.stable_at_low
    for low, high in itertools.pairwise(edges):
        word, colour = ("stable", "C2") if stable else ("unstable", "C1")
        ax.axvspan(low, high, color=colour, alpha=_PALE, linewidth=0, label=word)
        stable = not stable
    for gap in found.gaps:
        ax.axvspan(gap.low, gap.high, color="0.8", label=gap.status)
    values = [c.value for c in found.crossings]
    ax.plot(values, [c.frequency for c in found.crossings], "ko")
    _fit_scale(ax, found.low, found.high)
    if values:
        _from_zero(ax)
    ax.set_xlim(found.low, found.high)
    ax.set(xlabel=_label(found.path, found.unit), ylabel="frequency [rad/s]")
    known = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    ax.legend(known.values(), known.keys())


def _packets(figure: SubFigure, runs: Any) -> None:
    """Goodput of each group, and queue of each link, with intervals."""
    left, right = figure.subplots(1, 2)
    for ax, kind, metric, unit in (
        (left, "flows", "goodput", "bit/s"),
        (right, "links", "system_mean", "packet"),
    ):
        names = list(runs.mean[kind])
        pairs = [(runs.mean[kind][n][metric], runs.ci95[kind][n][metric]) for n in names]
        scale, unit = scaled([value for value, _ in pairs], unit)
        values, halves = np.array(pairs, float).T / scale
        ax.errorbar(names, values, yerr=np.nan_to_num(halves), fmt="o")
        ax.set(ylabel=_label(metric.replace("_", " "), unit))
        ax.margins(x=0.3)
    _from_zero(left, right)
    left.set_title(runs.message)


def _packet_series(figure: SubFigure, runs: Any) -> None:
    """Queues and windows of the first run over time."""
    above, below = figure.subplots(2, 1, sharex=True)
    run = runs.series.isel(seed=0)
    for k, name in enumerate(run.link.values):
        link, colour = run.sel(link=name), f"C{k}"
        above.plot(run.time, link.link_queue, color=colour, linewidth=0.7, label=f"{name}: queue")
        if not np.array_equal(link.link_average, link.link_queue):
            label = f"{name}: average"
            above.plot(run.time, link.link_average, "--", color="0.2", linewidth=1, label=label)
    for k, name in enumerate(run.group.values):
        windows = run.flow_window.values[:, run.flow_group.values == name]
        known = ~np.isnan(windows).all(axis=1)
        time, windows = run.time.values[known], windows[known]
        low, high = np.nanmin(windows, axis=1), np.nanmax(windows, axis=1)
        below.fill_between(time, low, high, color=f"C{k}", alpha=_PALE, linewidth=0)
        below.plot(time, high, color=f"C{k}", alpha=_PALE, linewidth=0.3)
        below.plot(run.time, run.group_window.sel(group=name), color=f"C{k}", label=f"{name}: mean")
    above.set(title=f"{runs.message}, here seed {runs.seeds[0]}", ylabel="queue [packet]")
    below.set(xlabel="time [s]", ylabel="window [packet]")
    _from_zero(above)
    _from_zero_late(below, runs.warmup)
    above.legend(ncols=2)
    below.legend(ncols=3)


def _comparison(figure: SubFigure, both: Any) -> None:
    """Queues and windows over time, goodputs, and all relative differences."""
    grid = figure.add_gridspec(3, 2)
    queues = figure.add_subplot(grid[0, :])
    _queues(queues, both)
    _windows(figure.add_subplot(grid[1, :], sharex=queues), both)
    _goodputs(figure.add_subplot(grid[2, 0]), both)
    _differences(figure.add_subplot(grid[2, 1]), both)


def _one_run(both: Any, variable: str, label: str) -> Any:
    """A series of the first packet run, with its times; nothing where there is none."""
    series = both.packets.series
    if series is None:
        return [], []
    return series.time, series[variable].isel(seed=0).sel({variable.split("_")[0]: label})


def _queues(ax: Axes, both: Any) -> None:
    rows = {row.name: row for row in both.rows}
    for k, name in enumerate(both.equilibrium.links):
        seen = _one_run(both, "link_system", name)
        ax.plot(*seen, color=f"C{2 * k + 1}", linewidth=0.5, alpha=2 * _PALE)
        if both.fluid is not None:
            queue = both.fluid.links[name].queue
            ax.plot(both.fluid.time, queue, color=f"C{2 * k}", label=f"{name}: fluid")
        row, colour = rows[f"links.{name}.queue"], f"C{2 * k + 1}"
        if row.packets is not None:
            half = row.ci95 or 0.0
            span, mean = [both.warmup, both.until], row.packets
            ax.fill_between(span, mean - half, mean + half, color=colour, alpha=2 * _PALE)
            ax.plot(span, [mean, mean], color=colour, label=f"{name}: packets, mean and 95 %")
        if row.equilibrium is not None:
            ax.axhline(row.equilibrium, color="0.3", linestyle=":", label=f"{name}: equilibrium")
    ax.set(title=both.equilibrium.net.title, ylabel="queue [packet]")
    _from_zero(ax)
    ax.legend(ncols=3)


def _windows(ax: Axes, both: Any) -> None:
    """Mean window of each group."""
    for k, name in enumerate(both.equilibrium.flows):
        seen = _one_run(both, "group_window", name)
        label = f"{name}: packets, seed {both.packets.seeds[0]}"
        ax.plot(*seen, color=f"C{2 * k + 1}", linewidth=0.7, label=label)
        if both.fluid is not None:
            group = both.fluid.flows[name]
            mean = np.average(group.window, axis=1, weights=group.n)
            ax.plot(both.fluid.time, mean, color=f"C{2 * k}", label=f"{name}: fluid")
    ax.set(xlabel="time [s]", ylabel="window [packet]")
    _from_zero_late(ax, both.warmup)
    ax.legend(ncols=min(len(both.equilibrium.flows), 3))


def _goodputs(ax: Axes, both: Any) -> None:
    rows = [row for row in both.rows if row.name.endswith(".goodput")]
    scale, unit = scaled([row.packets for row in rows], "bit/s")
    places = np.arange(len(rows))
    fluid = [np.nan if row.model is None else row.model / scale for row in rows]
    packets = [np.nan if row.packets is None else row.packets / scale for row in rows]
    halves = [(row.ci95 or 0.0) / scale for row in rows]
    ax.bar(places - 0.2, fluid, 0.38, label="fluid", color="C0")
    ax.bar(places + 0.2, packets, 0.38, yerr=halves, label="packets", color="C1")
    ax.set_xticks(places, [row.name.split(".")[1] for row in rows])
    ax.set(ylabel=f"goodput of a flow [{unit}]")
    ax.grid(visible=False, axis="x")
    _from_zero(ax)
    ax.legend(ncols=2)


def _differences(ax: Axes, both: Any) -> None:
    rows = [row for row in reversed(both.rows) if row.difference is not None]
    places = np.arange(len(rows))
    # the fluid is exact here: the interval of the ratio is that of the packets
    halves = [100 * (row.ci95 or 0.0) / row.packets * (1 + row.difference) for row in rows]
    ax.axvline(0, color="0.4", linewidth=0.8)
    ax.errorbar([100 * row.difference for row in rows], places, xerr=halves, fmt="o")
    ax.set_yticks(places, [" ".join(row.name.split(".")[1:]) for row in rows])
    ax.set(xlabel="fluid relative to packets [%]")
    ax.margins(y=0.15)


def _panels(sweep: Any) -> dict[str, list[Quantity | None]]:
    """Quantities of each panel, one per point of the sweep."""
    results = [p.result for p in sweep.points]
    kind = next(type(r).__name__ for r in results if r is not None)
    summaries = [None if r is None else SUMMARIES[kind](r.to_dict()) for r in results]
    names = dict.fromkeys(name for s in summaries if s is not None for name in s)
    return {name: [None if s is None else s.get(name) for s in summaries] for name in names}


def _sweep(figure: SubFigure, sweep: Any) -> None:
    """Each quantity over the last axis; one line for each value of the others."""
    panels = _panels(sweep)
    *others, along = sweep.axes
    x = sweep.axes[along]
    axes = figure.subplots(math.ceil(len(panels) / 2), 2, squeeze=False, sharex=True).ravel()
    for ax, (name, quantities) in zip(axes, panels.items(), strict=False):
        known = [q for q in quantities if q is not None]
        scale, unit = scaled([q.value for q in known], known[0].unit)
        values = _grid(sweep, [None if q is None else q.value for q in quantities]) / scale
        halves = _grid(sweep, [None if q is None else q.half for q in quantities]) / scale
        for k, (line, half) in enumerate(zip(values, halves, strict=True)):
            point = sweep.points[k * len(x)].set
            label = ", ".join(f"{path.split('.')[-1]} = {point[path]}" for path in others)
            ax.errorbar(x, line, yerr=np.nan_to_num(half), fmt="o-", label=label or None)
        ax.set(ylabel=_label(name, unit))
        _fit_scale(ax, x[0], x[-1])
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    for ax in axes[max(len(panels) - 2, 0) : len(panels)]:
        ax.set(xlabel=_label(along, sweep.units[along]))
        ax.xaxis.set_tick_params(labelbottom=True)
    if others:
        axes[0].legend()


def _grid(sweep: Any, values: list[float | None]) -> np.ndarray:
    """Numbers of all points, one row for each line of the picture."""
    flat = np.array([np.nan if v is None else v for v in values], float)
    return flat.reshape(-1, len(list(sweep.axes.values())[-1]))


_DRAWINGS: dict[str, tuple[Callable[[SubFigure, Any], None], float]] = {
    "Trajectory": (_trajectory, 4.0),
    "Cycle": (_cycle, 4.0),
    "Cycles": (_cycles, 4.0),
    "Equilibrium": (_equilibrium, 2.6),
    "Stability": (_stability, 3.0),
    "StabilityMap": (_stability_map, 4.0),
    "Boundary": (_boundary, 4.0),
    "Crossings": (_crossings, 3.0),
    "PacketRuns": (_packets, 2.6),
    "Comparison": (_comparison, 6.6),
}


def _drawing(result: Any) -> tuple[Callable[[SubFigure, Any], None], float]:
    """How a result is drawn, and the height of its picture [inch]."""
    name = type(result).__name__
    if name == "Sweep":
        return _sweep, 1.7 * math.ceil(len(_panels(result)) / 2) + 0.3
    if name == "PacketRuns" and result.series is not None:
        return _packet_series, 4.0
    if name not in _DRAWINGS:
        raise TypeError(f"plot: expected a result or a sweep, got {name}")
    return _DRAWINGS[name]
