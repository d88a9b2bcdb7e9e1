"""Pictures of the rest and its stability, over parameters."""

import itertools
import math
from typing import Any

import numpy as np
from matplotlib.figure import SubFigure

from fluidcc.pictures.axes import PALE, fit_scale, from_zero, with_unit


def equilibrium(figure: SubFigure, rest: Any) -> None:
    """Rates and windows over round trips."""
    axes = figure.subplots(1, 2)
    for name, group in rest.flows.items():
        for ax, key in zip(axes, ("rate", "window"), strict=True):
            ax.plot(1000 * np.asarray(group.rtt), getattr(group, key), "o", label=name)
    queues = ", ".join(f"{name} {v.queue:.4g}" for name, v in rest.links.items())
    figure.suptitle(f"{rest.status}; queue [packet]: {queues}", fontsize=8)
    for ax, label in zip(axes, ("rate of a flow [packet/s]", "window [packet]"), strict=True):
        ax.set(xlabel="round trip [ms]", ylabel=label)
    from_zero(*axes)
    axes[0].legend()


def stability(figure: SubFigure, found: Any) -> None:
    """The rightmost roots in the complex plane."""
    ax = figure.subplots()
    ax.axvline(0, color="0.4", linewidth=0.8)
    for colour, unstable in (("C0", False), ("C1", True)):
        roots = [complex(s) for s in found.roots if (s.real > 0) == unstable]
        ax.plot([s.real for s in roots], [s.imag for s in roots], "x", color=colour)
    verdict = "stable" if found.stable else f"not stable ({found.status})"
    ax.set(title=verdict, xlabel="real part [1/s]", ylabel="imaginary part [rad/s]")


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


def stability_map(figure: SubFigure, found: Any) -> None:
    """Growth rates over one or two parameters, and where there is no verdict."""
    if len(found.axes) > 2:
        raise TypeError(f"a map over {len(found.axes)} parameters has no picture: choose two")
    ax = figure.subplots()
    paths, rate = list(found.axes), np.real(found.grid("rightmost"))
    x, *others = (np.asarray(values, float) for values in found.axes.values())
    labels = [with_unit(path, found.units[path]) for path in paths]
    if not others:
        ax.plot(x, rate, ".-")
        ax.axhline(0.0, color="0.6", linewidth=0.8)
        ax.set(xlabel=labels[0], ylabel="growth rate [1/s]")
        fit_scale(ax, x[0], x[-1])
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
            above.plot(branch.values, pairs, color=colour, label=[label, None])
        periods = [c.period for c in branch.cycles]
        faces = ["none" if c.stable is False else f"C{k}" for c in branch.cycles]
        below.plot(branch.values, periods, color=f"C{k}")
        below.scatter(branch.values, periods, c=faces, edgecolors=f"C{k}", zorder=3)
        below.plot(branch.hopf, 2 * math.pi / branch.frequency, "k*")
    above.set(ylabel="queue [packet]" if any(b.cycles[0].links for b in branches) else "state")
    below.set(xlabel=with_unit(found.path, found.unit), ylabel="period [s]")
    fit_scale(below, found.low, found.high)
    if branches:
        above.legend(ncols=3)
