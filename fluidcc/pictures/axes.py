"""Labels and scales of axes."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

PALE = 0.18  # opacity of bands


def with_unit(name: str, unit: str) -> str:
    """A label with its unit, if it has one."""
    return name if unit in ("", "1") else f"{name} [{unit}]"


def from_zero(*axes: Axes) -> None:
    """Let the vertical axis begin at 0 and leave room for a legend above the data."""
    for ax in axes:
        top = ax.dataLim.y1
        ax.set_ylim(0, 1.25 * top if top > 0 else None)


def from_zero_late(ax: Axes, begin: float) -> None:
    """The same for what is drawn from time `begin` on: a slow start may leave the picture."""
    lines = [line.get_xydata() for line in ax.get_lines()]
    late = [xy[(xy[:, 0] >= begin) & np.isfinite(xy[:, 1]), 1] for xy in map(np.asarray, lines)]
    top = max((float(values.max()) for values in late if values.size), default=0.0)
    ax.set_ylim(0, 1.5 * top if top > 0 else None)


def fit_scale(ax: Axes, low: Any, high: Any) -> None:
    """A logarithmic axis where the values span more than a decade or so."""
    numbers = all(isinstance(v, int | float) for v in (low, high))
    if numbers and low > 0 and high > 30 * low:
        ax.set_xscale("log")
