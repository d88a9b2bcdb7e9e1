"""Pictures over time, and of what packets did."""

from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
from matplotlib.figure import SubFigure

from fluidcc.results.export import scaled, with_unit
from fluidcc.results.pictures.axes import PALE, abreast, from_zero, from_zero_late, legend
from fluidcc.scenario.paths import number_at

_BINS = 60
_LINES = 7  # of a solution


def trajectory(figure: SubFigure, run: Any) -> None:
    """Queue and windows over time."""
    above, below = figure.subplots(2, 1, sharex=True)
    for name, link in run.links.items():
        (line,) = above.plot(run.time, link.queue, label=f"{name}: queue")
        above.plot(run.time, link.average, "--", color=line.get_color(), label=f"{name}: average")
    for k, (name, group) in enumerate(run.flows.items()):
        low, high = group.window.min(axis=1), group.window.max(axis=1)
        mean = np.average(group.window, axis=1, weights=group.n)
        below.plot(run.time, mean, label=name)
        below.fill_between(run.time, low, high, color=f"C{k}", alpha=PALE, linewidth=0)
    above.set(title=run.net.title, ylabel="queue [packet]")
    below.set(xlabel="time [s]", ylabel="window [packet]")
    legend(above, 2)
    legend(below, 3)


def sensitivity(figure: SubFigure, found: Any) -> None:
    """Queues over time, and what they change by for a relative change of each parameter."""
    above, below = figure.subplots(2, 1, sharex=True)
    run = found.run
    for name, link in run.links.items():
        above.plot(run.time, link.queue, label=name)
    for path, (links, _) in found.slopes.items():
        value = number_at(run.net, path)
        for name, link in links.items():
            label = path if len(links) == 1 else f"{name} by {path}"
            below.plot(run.time, value * link.queue / 100, label=label)
    above.set(title=run.net.title, ylabel="queue [packet]")
    below.set(xlabel="time [s]", ylabel="change of the queue\nfor + 1 % [packet]")
    for ax in (above, below):
        legend(ax, 2)


def cycle(figure: SubFigure, found: Any) -> None:
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
            legend(ax, 3)


def windows(figure: SubFigure, found: Any) -> None:
    """Densities of the windows over time, and the windows of the fluid model."""
    if not found.groups:
        raise ValueError(f"no picture: {found.message}")
    axes = abreast(figure, len(found.groups))
    for k, (ax, (name, own)) in enumerate(zip(axes, found.groups.items(), strict=True)):
        edges = np.linspace(own.quantile(0.0), own.quantile(1.0 - 1e-4), _BINS + 1)
        for shares, style, label in ((own.time, "-", "over time"), (own.packets, ":", "over ACKs")):
            counts, _ = np.histogram(own.window, edges, weights=shares)
            density = counts / np.diff(edges)
            ax.stairs(density, edges, linestyle=style, color=f"C{k}", label=label)
        if own.fluid is not None:
            ax.axvline(own.fluid, color="0.3", linestyle="--", label="fluid")
        ax.set(title=f"{name}, marks {own.p:.3g}", xlabel="window [packet]")
        from_zero(ax)
        ax.set(ylabel="density [1/packet]")
    legend(axes[0])


def window(figure: SubFigure, found: Any) -> None:
    """The same for one window."""
    windows(figure, SimpleNamespace(groups={"window": found}, message=found.message))


def relay_cycle(figure: SubFigure, found: Any) -> None:
    """What queue, average and window reach in the cycle of a relay."""
    ax = figure.subplots()
    ranges = {"queue": found.queue, "average": found.average, "window": found.window}
    for k, (low, high) in enumerate(ranges.values()):
        ax.barh(k, high - low, left=low, height=0.5, color=f"C{k}")
        ax.text(high, k, f" {low:.4g} to {high:.4g}", va="center", fontsize=7)
    ax.set_yticks(range(len(ranges)), [f"{name} [packet]" for name in ranges])
    ax.margins(x=0.3)
    ax.set(title=f"relay cycle, period {found.period:.4g} s", xlabel="least to greatest [packet]")
    ax.set(ylabel="quantity [packet]")


def solution(figure: SubFigure, found: Any) -> None:
    """Components of the state of a delay equation over time."""
    if np.ndim(found.status):
        raise TypeError("a batch of solutions has no picture: choose one, with jax.tree.map")
    ax = figure.subplots()
    parts = {
        f"y{jax.tree_util.keystr(path)}": np.reshape(leaf, (len(found.t), -1))
        for path, leaf in jax.tree_util.tree_leaves_with_path(found.y)
    }
    lines = [
        (name if own.shape[1] == 1 else f"{name}[{k}]", own[:, k])
        for name, own in parts.items()
        for k in range(own.shape[1])
    ]
    for name, values in lines[:_LINES]:
        ax.plot(found.t, values, label=name)
    rest = f", {_LINES} of {len(lines)} components" if len(lines) > _LINES else ""
    ax.set(title=f"{found.message}{rest}", xlabel="time [s]", ylabel="state")
    legend(ax, 4)


def packets(figure: SubFigure, runs: Any) -> None:
    """Goodput of each group, and queue of each link, with intervals."""
    left, right = abreast(figure)
    for ax, kind, metric, words, unit in (
        (left, "flows", "goodput", "goodput of a group", "bit/s"),
        (right, "links", "system_mean", "mean queue", "packet"),
    ):
        names = list(runs.mean[kind])
        pairs = [(runs.mean[kind][n][metric], runs.ci95[kind][n][metric]) for n in names]
        scale, unit = scaled([value for value, _ in pairs], unit)
        values, halves = np.array(pairs, float).T / scale
        ax.errorbar(names, values, yerr=np.nan_to_num(halves), fmt="o")
        what = {"flows": "group of flows", "links": "link"}[kind]
        ax.set(xlabel=what, ylabel=with_unit(words, unit))
        ax.margins(x=0.3)
    from_zero(left, right)
    left.set_title(f"{runs.message}: mean and 95 % interval")


def packet_series(figure: SubFigure, runs: Any) -> None:
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
        below.fill_between(time, low, high, color=f"C{k}", alpha=PALE, linewidth=0)
        below.plot(time, high, color=f"C{k}", alpha=PALE, linewidth=0.3)
        below.plot(run.time, run.group_window.sel(group=name), color=f"C{k}", label=f"{name}: mean")
    above.set(title=f"{runs.message}, here seed {runs.seeds[0]}", ylabel="queue [packet]")
    below.set(xlabel="time [s]", ylabel="window [packet]")
    from_zero(above)
    from_zero_late(below, runs.warmup)
    legend(above, 2)
    legend(below, 3)
