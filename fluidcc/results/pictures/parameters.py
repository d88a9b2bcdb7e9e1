"""Pictures of the rest and its stability, over parameters."""

import itertools
import math
from typing import Any

import numpy as np
from matplotlib.figure import SubFigure

from fluidcc.results.export import with_unit
from fluidcc.results.pictures.axes import MARKERS, PALE, abreast, fit_scale, from_zero, legend


def equilibrium(figure: SubFigure, rest: Any) -> None:
    """Rates and windows over round trips."""
    axes = abreast(figure)
    for name, group in rest.flows.items():
        for ax, key in zip(axes, ("rate", "window"), strict=True):
            mark = MARKERS[list(rest.flows).index(name) % len(MARKERS)]
            ax.plot(1000 * np.asarray(group.rtt), getattr(group, key), mark, label=name)
    queues = ", ".join(f"{name} {v.queue:.4g}" for name, v in rest.links.items())
    figure.suptitle(f"{rest.status}; queue [packet]: {queues}", fontsize=8)
    for ax, label in zip(axes, ("rate of a flow [packet/s]", "window [packet]"), strict=True):
        ax.set(xlabel="round trip [ms]", ylabel=label)
    from_zero(*axes)
    axes[0].legend()


def boundary(figure: SubFigure, found: Any) -> None:
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
    labels = [with_unit(p, u) for p, u in zip(found.paths, found.units, strict=True)]
    ax.set(xlabel=labels[0], ylabel=labels[1])
    ax.legend()


def crossings(figure: SubFigure, found: Any) -> None:
    """Stable and unstable parts of the range, and the frequencies at its changes."""
    ax = figure.subplots()
    edges = [found.low, *(c.value for c in found.crossings), found.high]
    stable = found.stable_at_low
    for low, high in itertools.pairwise(edges):
        word, colour = ("stable", "C2") if stable else ("unstable", "C1")
        ax.axvspan(low, high, color=colour, alpha=PALE, linewidth=0, label=word)
        stable = not stable
    for gap in found.gaps:
        ax.axvspan(gap.low, gap.high, color="0.8", label=gap.status)
    values = [c.value for c in found.crossings]
    ax.plot(values, [c.frequency for c in found.crossings], "ko")
    fit_scale(ax, found.low, found.high)
    if values:
        from_zero(ax)
    ax.set_xlim(found.low, found.high)
    ax.set(xlabel=with_unit(found.path, found.unit), ylabel="frequency [rad/s]")
    known = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    ax.legend(known.values(), known.keys())


def cycles(figure: SubFigure, found: Any) -> None:
    """Extremes of queues, or of states, and periods along branches; unstable cycles are hollow."""
    above, below = figure.subplots(2, 1, sharex=True)
    branches = [branch for branch in found.branches if branch.cycles]
    for k, branch in enumerate(branches):
        names = list(branch.cycles[0].links) or list(range(len(branch.cycles[0].states)))
        for j, name in enumerate(names):
            pairs = [c.links[name].queue if c.links else c.states[name] for c in branch.cycles]
            colour, label = f"C{k * len(names) + j}", name if k == 0 else None
            above.fill_between(branch.values, *np.array(pairs).T, color=colour, alpha=PALE)
            above.plot(branch.values, pairs, "-", color=colour, label=[label, None])
        periods = [c.period for c in branch.cycles]
        faces = ["none" if c.stable is False else f"C{k}" for c in branch.cycles]
        below.plot(branch.values, periods, color=f"C{k}")
        below.scatter(branch.values, periods, c=faces, edgecolors=f"C{k}", zorder=3)
        below.plot(branch.hopf, 2 * math.pi / branch.frequency, "k*")
    above.set(ylabel="queue [packet]" if any(b.cycles[0].links for b in branches) else "state")
    below.set(xlabel=with_unit(found.path, found.unit), ylabel="period [s]")
    fit_scale(below, found.low, found.high)
    if branches:
        legend(above, 3)
