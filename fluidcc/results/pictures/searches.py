"""Pictures of what is best, and of bounds."""

from typing import Any

import numpy as np
from matplotlib.figure import SubFigure

from fluidcc.results.export import with_unit
from fluidcc.results.pictures.axes import legend
from fluidcc.results.pictures.comparison import comparison


def tradeoff(figure: SubFigure, curve: Any) -> None:
    """The best goal over the other quantity; levels without an optimum are hollow."""
    ax = figure.subplots()
    sound = [p for p in curve.levels if p.status == "ok"]
    ax.plot([p.quantity for p in sound], [p.objective for p in sound], "o-", label="optimum")
    others = [p for p in curve.levels if p.status != "ok"]
    if others:
        x, y = [p.quantity for p in others], [p.objective for p in others]
        ax.plot(x, y, "o", color="C1", markerfacecolor="none", label="no optimum")
        legend(ax)
    ax.set(xlabel=with_unit(curve.quantity, curve.quantity_unit))
    ax.set(ylabel=with_unit(curve.goal, curve.unit))


def optimum(figure: SubFigure, best: Any) -> None:
    """The trade-off curve, if there is one, or both engines at the optimum."""
    if best.curve is not None:
        tradeoff(figure, best.curve)
        return
    runs = [run.comparison for run in best.verification if run.comparison is not None]
    if not runs:
        raise TypeError(
            f"an optimum ({best.status}) without a trade-off curve or packet runs has no picture: "
            "give it a curve with best.traded(QUANTITY)"
        )
    comparison(figure, runs[0])


def bounds(figure: SubFigure, found: Any) -> None:
    """The value of each reading's worst case, relative to the bound."""
    reports = getattr(found, "reports", (found,))
    judged = [
        (report.id, k, reading)
        for report in reports
        for k, reading in enumerate(report.readings)
        if reading.worst is not None and reading.worst.bound
    ]
    if not judged:
        raise TypeError("bounds that no case was judged by have no picture: print them instead")
    ax = figure.subplots()
    ax.axvline(1.0, color="0.4", linewidth=0.8)
    for verdict, style in (("holds", "C0o"), ("violated", "C1X"), ("unknown", "kd")):
        rows = [i for i, (_, _, reading) in enumerate(judged) if reading.verdict == verdict]
        worst = [judged[i][2].worst for i in rows]
        if rows:
            ax.plot([w.value / w.bound for w in worst], rows, style, linestyle="", label=verdict)
    names = [name if not k else f"{name}, reading {k + 1}" for name, k, _ in judged]
    ax.set_yticks(np.arange(len(judged)), names)
    ax.invert_yaxis()
    ax.set(xlabel="value over bound, at the worst case found", ylabel="bound")
    legend(ax, 3)
