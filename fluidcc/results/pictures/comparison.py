"""The picture of both engines side by side."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure

from fluidcc.results.export import scaled
from fluidcc.results.pictures.axes import PALE, from_zero, from_zero_late, is_narrow, legend


def comparison(figure: SubFigure, both: Any) -> None:
    """Queues and windows over time, goodputs, and all relative differences."""
    slim = is_narrow(figure)
    grid = figure.add_gridspec(4 if slim else 3, 1 if slim else 2)
    queues = figure.add_subplot(grid[0, :])
    _queues(queues, both)
    _windows(figure.add_subplot(grid[1, :], sharex=queues), both)
    _goodputs(figure.add_subplot(grid[2, 0]), both)
    _differences(figure.add_subplot(grid[3, 0] if slim else grid[2, 1]), both)


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
        ax.plot(*seen, linestyle="-", color=f"C{2 * k + 1}", linewidth=0.5, alpha=2 * PALE)
        if both.fluid is not None:
            queue = both.fluid.links[name].queue
            ax.plot(both.fluid.time, queue, "-", color=f"C{2 * k}", label=f"{name}: fluid")
        row, colour = rows[f"links.{name}.queue"], f"C{2 * k + 1}"
        if row.packets is not None:
            half = row.ci95 or 0.0
            span, mean = [both.warmup, both.until], row.packets
            ax.fill_between(span, mean - half, mean + half, color=colour, alpha=2 * PALE)
            ax.plot(span, [mean, mean], "--", color=colour, label=f"{name}: packets, mean and 95 %")
        if row.equilibrium is not None:
            ax.axhline(row.equilibrium, color="0.3", linestyle=":", label=f"{name}: equilibrium")
    ax.set(title=both.equilibrium.net.title, ylabel="queue [packet]")
    from_zero(ax)
    legend(ax, 3)


def _windows(ax: Axes, both: Any) -> None:
    """Mean window of each group."""
    for k, name in enumerate(both.equilibrium.flows):
        seen = _one_run(both, "group_window", name)
        label = f"{name}: packets, seed {both.packets.seeds[0]}"
        ax.plot(*seen, linestyle="-", color=f"C{2 * k + 1}", linewidth=0.7, label=label)
        if both.fluid is not None:
            group = both.fluid.flows[name]
            mean = np.average(group.window, axis=1, weights=group.n)
            ax.plot(both.fluid.time, mean, "-", color=f"C{2 * k}", label=f"{name}: fluid")
    ax.set(xlabel="time [s]", ylabel="window [packet]")
    from_zero_late(ax, both.warmup)
    legend(ax, min(len(both.equilibrium.flows), 3))


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
    ax.set(xlabel="group of flows", ylabel=f"goodput of a flow [{unit}]")
    ax.grid(visible=False, axis="x")
    from_zero(ax)
    legend(ax, 2)


def _differences(ax: Axes, both: Any) -> None:
    rows = [row for row in reversed(both.rows) if row.difference is not None]
    places = np.arange(len(rows))
    # the fluid is exact here: the interval of the ratio is that of the packets
    halves = [100 * (row.ci95 or 0.0) / row.packets * (1 + row.difference) for row in rows]
    ax.axvline(0, color="0.4", linewidth=0.8)
    ax.errorbar([100 * row.difference for row in rows], places, xerr=halves, fmt="o")
    ax.set_yticks(places, [" ".join(row.name.split(".")[1:]) for row in rows])
    ax.set(xlabel="fluid relative to packets [%]", ylabel="quantity")
    ax.set_title("with 95 % intervals of the packets")
    ax.margins(y=0.15)
