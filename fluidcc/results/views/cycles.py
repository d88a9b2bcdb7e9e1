"""Views of limit cycles: a single one, and branches along a parameter."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.quantities import full_name
from fluidcc.result import View
from fluidcc.results.axes import (
    PALE,
    axis_label,
    fit_scale,
    legend_above,
    over_time,
    parameter_axis,
    width_of,
    wrapped,
)
from fluidcc.results.blocks import (
    Block,
    Measured,
    Number,
    Table,
    lines,
    number,
    parameter,
    quantity,
    span,
    table,
    verdict,
)
from fluidcc.results.export import scaled

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

_SHOWN = 8  # multipliers
_FOUND = {
    "smooth": "by collocation", "simulated": "by simulation",
    "nonsmooth": "by collocation between switches",
}  # fmt: skip


def _leading_multiplier(cycle: Any) -> float | None:
    """Modulus of the largest Floquet multiplier except the trivial one, 1."""
    return max(map(abs, cycle.floquet[1:]), default=None)


def _extremes(links: Any, flows: Any, states: Any = ()) -> Table:
    """Least and greatest queues and windows, or states."""
    out = table("Over a cycle", "quantity", "least", "greatest")
    for name, link in links.items():
        for key in ("queue", "average"):
            full = full_name("links", name, key)
            out.add_row(f"{full} [packet]", *map(Number, getattr(link, key)))
    for name, group in flows.items():
        for k, pair in enumerate(group):
            full = full_name("flows", name, "window") + f"[{k}]" * (len(group) > 1)
            out.add_row(f"{full} [packet]", *map(Number, pair))
    for k, pair in enumerate(states):
        out.add_row(f"state {k}", *map(Number, pair))
    return out


class CycleView(View):
    """Period, extremes and Floquet multipliers of a limit cycle."""

    names = ("period", "leading_multiplier", "links.queue_min", "links.queue_max")
    heads = ("quantity", "least", "greatest", "real", "imaginary", "modulus")

    def tables(self, rows: int | None = None) -> list[Block]:
        """Extremes and multipliers."""
        cycle = self.found
        if cycle.period is None:
            return [verdict(None, cycle.message)]
        word = {True: "stable", False: "unstable", None: "stability not known"}[cycle.stable]
        head = f"Cycle: {word}, period {quantity(cycle.period, 's')}, found {_FOUND[cycle.status]}"
        turn = quantity(2 * math.pi / cycle.period, "rad/s")
        frequency = (
            f"frequency {turn}, of the finished oscillation; a small one has that of the rightmost "
            "root (fluidcc stability)"
        )
        flows = {name: group.window for name, group in cycle.flows.items()}
        ends = _extremes(cycle.links, flows, cycle.states)
        out = [verdict(cycle.stable, head), *lines(frequency, cycle.message), ends]
        if cycle.floquet:
            multipliers = table("Floquet multipliers", "real", "imaginary", "modulus")
            for mu in cycle.floquet[:_SHOWN]:
                multipliers.add_row(*(Number(float(v), 8) for v in (mu.real, mu.imag, abs(mu))))
            out.append(multipliers)
        return out

    def value(self, part: Any, name: str) -> float | None:
        """Period, modulus of the leading multiplier, and least and greatest queue of each link."""
        if name == "leading_multiplier":
            return _leading_multiplier(part)
        return part.period if name == "period" else part.queue[name == "queue_max"]

    def draw(self, figure: "SubFigure") -> None:
        """One period: queues and averages above, windows below; or the states of an equation."""
        cycle = self.found
        if cycle.period is None:
            raise ValueError(f"no picture: {cycle.message}")
        scale, unit = scaled([cycle.period], "s")
        above, below = over_time(figure, unit)
        time, course = np.zeros(0), {}
        if cycle.course is not None:
            time, course = cycle.course.time / scale, cycle.course.values
        for name, values in course.items():
            ax = below if name.partition("[")[0].endswith(".window") else above
            average = name.endswith(".average")
            if not (average and np.array_equal(values, course[f"{name[:-7]}queue"])):
                ax.plot(time, values, "--" if average else "-", label=name)
        figure.suptitle(f"period {quantity(cycle.period, 's')}, found {_FOUND[cycle.status]}")
        if not cycle.links:
            above.set(ylabel="state")
        for ax in (above, below):
            legend_above(ax)


class CyclesView(View):
    """Cycles along one parameter, a branch for each Hopf point."""

    def tables(self, rows: int | None = None) -> list[Block]:
        """A table for each Hopf point."""
        message = self.found.message
        out: list[Block] = [verdict(None, message)] if message else []
        for branch in self.found.branches:
            links = list(branch.cycles[0].links) if branch.cycles else []
            frequency = quantity(branch.frequency, "rad/s")
            cycles = table(
                f"From the Hopf point at {number(branch.hopf, 8)}, {frequency}",
                parameter(self.found.path, self.found.unit), ("period", "s"),
                *((full_name("links", name, "queue"), "packet") for name in links),
                "leading_multiplier", "", "found",
            )  # fmt: skip
            for value, cycle in zip(branch.values, branch.cycles, strict=True):
                ranges = (span(cycle.links[name].queue) for name in links)
                word = {True: "stable", False: "unstable", None: ""}[cycle.stable]
                line = (Number(float(value), 8), Number(cycle.period, 8), *ranges)
                cycles.add_row(
                    *line, Number(_leading_multiplier(cycle)), word, _FOUND[cycle.status]
                )
            out.append(cycles)
            ends = [f"fold at {number(float(value), 8)}" for value in branch.folds]
            ends += [f"ends: {branch.message}"] if branch.message else []
            out += lines("; ".join(ends))
        return out

    def numbers(self) -> dict[str, Measured]:
        """How many branches and cycles there are, the first Hopf point and fold."""
        branches = self.found.branches
        folds = [value for branch in branches for value in branch.folds]
        return {
            "branches": Measured(len(branches)),
            "cycles": Measured(sum(len(branch.cycles) for branch in branches)),
            f"first Hopf point {self.found.path}": Measured(
                branches[0].hopf if branches else None, self.found.unit
            ),
            f"first fold {self.found.path}": Measured(folds[0] if folds else None, self.found.unit),
        }

    @classmethod
    def quantities(cls, net: Any, paths: Sequence[str]) -> list[str]:
        """Those of branches along a path."""
        first = [f"first {what} {path}" for what in ("Hopf point", "fold") for path in paths]
        return ["branches", "cycles", *first]

    @classmethod
    def columns(cls, net: Any, paths: Sequence[str]) -> list[str]:
        """Those of each branch, with the queues."""
        queues = [full_name("links", name, "queue") for name in net.link_names]
        return [*paths, "period", *queues, "leading_multiplier", "found"]

    def draw(self, figure: "SubFigure") -> None:
        """Extremes of queues or states, and periods; unstable cycles are hollow."""
        result = self.found
        above, below = figure.subplots(2, 1, sharex=True)
        axis = parameter_axis(result.net, result.path, result.unit, (result.low, result.high))
        branches = [branch for branch in result.branches if branch.cycles]
        for k, branch in enumerate(branches):
            values = axis.values(branch.values)
            names = list(branch.cycles[0].links) or list(range(len(branch.cycles[0].states)))
            for j, name in enumerate(names):
                pairs = [c.links[name].queue if c.links else c.states[name] for c in branch.cycles]
                colour = f"C{k * len(names) + j}"
                label = f"{name}: least and greatest" if k == 0 else None
                above.fill_between(values, *np.array(pairs).T, color=colour, alpha=PALE)
                above.plot(values, pairs, "-", color=colour, label=[label, None])
            periods = [c.period for c in branch.cycles]
            faces = ["none" if c.stable is False else f"C{k}" for c in branch.cycles]
            below.plot(values, periods, color=f"C{k}")
            for face, word in ((f"C{k}", "stable"), ("none", "unstable")):
                chosen = [own == face for own in faces]
                if any(chosen):
                    x, y = np.array(values)[chosen], np.array(periods)[chosen]
                    below.scatter(x, y, c=face, edgecolors=f"C{k}", zorder=3, label=word)
            place = branch.hopf / axis.scale
            below.plot(place, 2 * math.pi / branch.frequency, "k*", label="Hopf")
        above.set(
            ylabel=axis_label("links", "queue")
            if any(b.cycles[0].links for b in branches)
            else "state"
        )
        below.set(xlabel=wrapped(axis.label, width_of(below)), ylabel="period [s]")
        fit_scale(below, result.low, result.high)
        for ax in (above, below):
            legend_above(ax)
