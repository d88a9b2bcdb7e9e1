"""The picture of stability: roots in the plane, and the loop with its margins."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure
from matplotlib.patches import Arc

from fluidcc.analysis.equilibrium import Equilibrium
from fluidcc.analysis.nyquist import LoopCurve, loop_curves
from fluidcc.results.pictures.axes import abreast, legend
from fluidcc.results.pictures.courses import relay_cycle

_VIEW = ((-2.2, 1.4), (-1.9, 1.4))  # of the loop's plane: where margins are


def stability(figure: SubFigure, found: Any) -> None:
    """The rightmost roots, and Nyquist's curve with gain and phase margin where there is a loop.

    Raises ValueError where there is no verdict, unless a relay cycle is known instead.
    """
    if not len(found.roots):
        if found.cycle is None:
            raise ValueError(f"no picture: {found.message or found.status}")
        relay_cycle(figure, found.cycle)
        return
    curves = loop_curves(found.linear) if has_loop(found) else ()
    left, *right = abreast(figure, 2 if curves else 1)
    _roots(left, found)
    for ax in right:
        _nyquist(ax, found, curves)


def has_loop(found: Any) -> bool:
    """Whether a result of `stability` is one of a network with a linearisation."""
    whole = found.linear is not None and found.margins is not None
    return whole and isinstance(found.equilibrium, Equilibrium)


def _roots(ax: Axes, found: Any) -> None:
    ax.axvline(0, color="0.4", linewidth=0.8)
    for colour, mark, unstable in (("C0", "x", False), ("C1", "+", True)):
        roots = [complex(s) for s in found.roots if (s.real > 0) == unstable]
        word = "unstable roots" if unstable else "stable roots"
        if roots:
            x, y = [s.real for s in roots], [s.imag for s in roots]
            ax.plot(x, y, mark, color=colour, markersize=6, label=word)
    verdicts = {True: "stable", False: f"unstable, {found.unstable} roots", None: "no verdict"}
    proof = "certified" if found.certified else "not certified"
    ax.set(title=f"{verdicts[found.stable]} ({proof})", xlabel="real part [1/s]")
    ax.set(ylabel="imaginary part [rad/s]")
    legend(ax)


def _nyquist(ax: Axes, found: Any, curves: Sequence[LoopCurve]) -> None:
    names = found.equilibrium.net.link_names
    for k, curve in enumerate(curves):
        x, y = np.real(curve.response), np.imag(curve.response)
        ax.plot(x, y, color=f"C{k}", label="loop gain L(iω)" if not k else None)
    circle = np.exp(1j * np.linspace(0, 2 * math.pi, 361))
    ax.plot(np.real(circle), np.imag(circle), color="0.6", linewidth=0.7, linestyle=":")
    ax.plot(-1, 0, "k+", markersize=8, label="-1")
    _margins(ax, found)
    ax.set(xlim=_VIEW[0], ylim=_VIEW[1], aspect="equal")
    ax.set(xlabel="real part of the loop gain", ylabel="imaginary part of the loop gain")
    where = names[0] if len(names) == 1 else "each link"
    ax.set_title(f"loop cut at the signal of {where}")
    legend(ax, loc="lower left", fontsize=6, frameon=True, framealpha=0.8, edgecolor="none")


def _margins(ax: Axes, found: Any) -> None:
    """Where the loop meets the negative axis and the unit circle, and how far from -1."""
    gain, phase = found.gain_margin, found.phase_margin
    if gain is not None:
        ax.plot([-1, -1 / gain], [0, 0], color="C1", linestyle="-", linewidth=2, alpha=0.7)
        label = f"gain margin {gain:.3g} at {found.phase_crossover:.3g} rad/s"
        ax.plot(-1 / gain, 0, "s", color="C1", label=label)
    if phase is not None:
        angle = math.radians(phase) - math.pi
        low, high = sorted((180.0, 180.0 + phase))
        ax.add_patch(Arc((0, 0), 2, 2, theta1=low, theta2=high, color="C2", linewidth=2))
        delay = f", delay margin {found.delay_margin:.3g} s" if found.delay_margin else ""
        label = f"phase margin {phase:.3g} deg at {found.gain_crossover:.3g} rad/s{delay}"
        ax.plot(math.cos(angle), math.sin(angle), "o", color="C2", label=label)
