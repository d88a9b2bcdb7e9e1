"""Pictures of sweeps: each quantity over the last axis."""

import math
from typing import Any

import numpy as np
from matplotlib.figure import SubFigure

from fluidcc.pictures.axes import fit_scale, with_unit
from fluidcc.results import scaled
from fluidcc.summary import SUMMARIES
from fluidcc.tables.blocks import Quantity


def panels_of(sweep: Any) -> dict[str, list[Quantity | None]]:
    """Quantities of each panel, one per point of the sweep."""
    results = [p.result for p in sweep.points]
    kind = next(type(r).__name__ for r in results if r is not None)
    summaries = [None if r is None else SUMMARIES[kind](r.to_dict()) for r in results]
    names = dict.fromkeys(name for s in summaries if s is not None for name in s)
    return {name: [None if s is None else s.get(name) for s in summaries] for name in names}


def swept(figure: SubFigure, sweep: Any) -> None:
    """Each quantity over the last axis; one line for each value of the others."""
    panels = panels_of(sweep)
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
        ax.set(ylabel=with_unit(name, unit))
        fit_scale(ax, x[0], x[-1])
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    for ax in axes[max(len(panels) - 2, 0) : len(panels)]:
        ax.set(xlabel=with_unit(along, sweep.units[along]))
        ax.xaxis.set_tick_params(labelbottom=True)
    if others:
        axes[0].legend()


def _grid(sweep: Any, values: list[float | None]) -> np.ndarray:
    """Numbers of all points, one row for each line of the picture."""
    flat = np.array([np.nan if v is None else v for v in values], float)
    return flat.reshape(-1, len(list(sweep.axes.values())[-1]))
