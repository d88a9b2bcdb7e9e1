"""Maps of stability over one or two parameters."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import SubFigure

from fluidcc.results.export import with_unit
from fluidcc.results.pictures.axes import fit_scale, legend


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
    rate = np.real(found.grid("rightmost"))
    growth_map(figure, found.axes, found.units, rate, found.grid("stable"))


def growth_map(
    figure: SubFigure,
    over: Mapping[str, Any],
    units: Mapping[str, str],
    rate: np.ndarray,
    stable: np.ndarray,
) -> None:
    """The same for growth rates [1/s] and verdicts (-1: none) on the grid `over`.

    Raises TypeError where there are more than two parameters.
    """
    if len(over) > 2:
        raise TypeError(f"a map over {len(over)} parameters has no picture: choose two")
    ax = figure.subplots()
    x, *others = (np.asarray(values, float) for values in over.values())
    labels = [with_unit(path, units[path]) for path in over]
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
    i, j = np.nonzero(stable < 0)
    ax.plot(x[i], y[j], "x", color="0.6", markersize=4, linestyle="", label="no verdict")
    figure.colorbar(image, ax=ax, label="growth rate [1/s]")
    for axis, log in zip("xy", logs, strict=True):
        if log:
            getattr(ax, f"set_{axis}scale")("log")
    ax.set(xlabel=labels[0], ylabel=labels[1])
    if i.size:
        legend(ax)
