"""Views of frequency responses."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.margins import LoopCurve
from fluidcc.result import View
from fluidcc.results.axes import is_narrow, legend
from fluidcc.results.blocks import Block, Measured
from fluidcc.results.views.equilibria import (
    decibels,
    draw_nyquist,
    gain_label,
    head,
    judged,
    margin_table,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure


class FrequencyResponseView(View):
    """Verdict and margins; magnitude and phase over frequency, and the Nyquist curve."""

    size = (3.8, 2)

    def tables(self, rows: int | None = None) -> list[Block]:
        """The verdict and the margins."""
        found = self.found.stability
        return [head(found.equilibrium), *judged(found), *margin_table(found)]

    def numbers(self) -> dict[str, Measured]:
        """Those of the stability."""
        return self.found.stability.numbers()

    def draw(self, figure: "SubFigure") -> None:
        """Magnitude above the phase, and the Nyquist curve next to them, or below."""
        result, curves = self.found.stability, self.found.named()
        if not curves:
            raise ValueError(f"no picture: {result.message or 'no signal reaches a sender'}")
        narrow = is_narrow(figure)
        grid = figure.add_gridspec(4 if narrow else 2, 1 if narrow else 2)
        size = figure.add_subplot(grid[0, 0])
        phase = figure.add_subplot(grid[1, 0], sharex=size)
        low, high = _window(result, [*curves.values()])
        for k, (name, curve) in enumerate(curves.items()):
            label, w = name if len(curves) > 1 else None, curve.frequency
            seen = (w > low) & (w < high)
            size.plot(w[seen], decibels(curve.magnitude[seen]), color=f"C{k}", label=label)
            phase.plot(w[seen], curve.phase[seen], color=f"C{k}")
        size.set(xscale="log", ylabel="magnitude [dB]")
        phase.set(xlabel="frequency [rad/s]", ylabel="phase [deg]")
        ticks: Any = phase.yaxis.get_major_locator()
        ticks.set_params(steps=[1, 1.8, 4.5, 9, 10])
        for ax, level in ((size, 0.0), (phase, -180.0)):
            ax.axhline(level, color="0.4", linewidth=0.8)
        _mark(size, phase, result)
        for ax in (size, phase):
            if ax.get_legend_handles_labels()[0]:
                legend(ax, loc="lower left", fontsize=6)
        draw_nyquist(
            figure.add_subplot(grid[2:, 0] if narrow else grid[:, 1]), result, [*curves.values()]
        )


def _window(result: Any, curves: Sequence[LoopCurve]) -> tuple[float, float]:
    """The frequencies [rad/s] that are drawn: from where L begins to move to a while beyond its
    crossovers.
    """
    moves = [
        c.frequency[np.argmax(abs(decibels(c.magnitude / c.magnitude[0])) > 1)] for c in curves
    ]
    crossovers = [w for w in (result.gain_crossover, result.phase_crossover) if w is not None]
    last = max(crossovers, default=max(c.frequency[-1] for c in curves))
    return min(moves + crossovers) / 10, 3 * last


def _mark(size: "Axes", phase: "Axes", result: Any) -> None:
    """Gain and phase margin between the curves and 0 dB and -180 deg, dashed at the crossovers."""
    gain, angle = result.gain_margin, result.phase_margin
    for ax in (size, phase):
        for w in (result.phase_crossover, result.gain_crossover):
            if w is not None:
                ax.axvline(w, color="0.4", linestyle="--", linewidth=0.8)
    if gain is not None:
        ends = [0.0, -decibels(gain)]
        size.plot(2 * [result.phase_crossover], ends, "C1-", linewidth=2, label=gain_label(gain))
    if angle is not None:
        label = f"phase margin {angle:.3g} deg"
        ends = [-180.0, angle - 180.0]
        phase.plot(2 * [result.gain_crossover], ends, "C2-", linewidth=2, label=label)
