"""Views of optima, verdicts on bounds, and checks of laws."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.measures import EQUILIBRIUM, NOISE, PACKETS, RUN, measures
from fluidcc.result import View
from fluidcc.results.axes import legend_above, width_of, wrapped
from fluidcc.results.blocks import (
    Block,
    Column,
    Line,
    Number,
    Path,
    Table,
    lines,
    number,
    parameter,
    quantity,
    table,
    verdict,
)
from fluidcc.results.tex import quantity_label

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

_SENSE = {"maximize": "largest", "minimize": "least"}
_REASONS = 78  # letters: a table of reasons has 115 in all
_HOLDS = {True: "holds", False: "missed", None: "undecided"}


class OptimumView(View):
    """Parameters, constraints, starts, the trade-off curve and the verification."""

    heads = (
        "path", "value", "unit", "constraint", "", "worst at", "multiplier", "scenario", "start",
        "points", "goal", "constraints", "quantity or constraint", "fluid", "packets (95 %)",
        "status",
    )  # fmt: skip

    @classmethod
    def columns(cls, net: Any, paths: Sequence[str]) -> list[str]:
        """With a trade-off curve, the quantity and the goal too."""
        return [*cls.heads, *paths, *measures(net, EQUILIBRIUM, RUN, PACKETS, NOISE)]

    @property
    def size(self) -> Any:
        """Size of a comparison of both engines, or of the trade-off curve."""
        return (6.6, 1) if self.found.curve is None else self.found.curve.view.size

    def tables(self, rows: int | None = None) -> list[Block]:
        """Parameters, active constraints, and results in packets."""
        best, status = self.found, self.found.status
        head = f"{_SENSE[best.sense]} {best.goal}: {quantity(best.objective, best.unit)}"
        head = verdict(status == "ok", head if status == "ok" else f"{head}, {status}")
        out = [head, *lines(best.message)]
        if best.given_meets is not None:
            missed = "" if best.given_meets else ", which misses a constraint"
            out += lines(f"as given: {_finite(best.given, best.unit)}{missed}")
        values = table("Parameters", "path", "value", "unit")
        for path, value in best.values.items():
            values.add_row(Path(path), Number(value, 8), best.units[path])
        out += [values, *lines(*(f"worst scenario: {_scenario(worst)}" for worst in best.worst))]
        out += _rules("Constraints", ("value", ""), "worst at", best.constraints, _value)
        out += _rules("Active constraints", ("multiplier",), "scenario", best.active, _multiplier)
        out += [_starts(best.starts, list(best.values))] if best.starts else []
        out += best.curve.tables() if best.curve else []
        return [*out, *(line for run in best.verification for line in _verification(run))]

    def draw(self, figure: "SubFigure") -> None:
        """The trade-off curve, if there is one, or both engines at the optimum."""
        best = self.found
        if best.curve is not None:
            best.curve.view.draw(figure)
            return
        runs = [run.comparison for run in best.verification if run.comparison is not None]
        if not runs:
            raise TypeError(
                f"an optimum ({best.status}) without a trade-off curve or packet runs has no "
                "picture: give it a curve with best.traded(QUANTITY)"
            )
        runs[0].view.draw(figure)


def _finite(value: float, unit: str) -> str:
    return "infinite" if abs(value) == float("inf") else quantity(value, unit)


def _value(rule: Any) -> tuple[Any, str]:
    infinite = abs(rule.value) == float("inf")
    return "infinite" if infinite else Number(rule.value, 6), "met" if rule.met else "missed"


def _multiplier(rule: Any) -> tuple[Any]:
    return (Number(rule.multiplier),)


def _rules(
    title: str, columns: Sequence[str], scenario_title: str, rules: Sequence[Any], cells: Any
) -> list[Block]:
    """Constraints line by line, with their worst scenario if there is a box; empty without any."""
    has_scenario = any(rule.scenario for rule in rules)
    out = table(title, "constraint", *columns, *([scenario_title] if has_scenario else []))
    for rule in rules:
        out.add_row(rule.text, *cells(rule), *([_scenario(rule.scenario)] if has_scenario else []))
    return [out] if rules else []


def _scenario(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{path} = {number(value)}" for path, value in values.items())


def _starts(starts: Sequence[Any], paths: list[str]) -> Table:
    out = table("Starts", "start", "points", *map(parameter, paths), "goal", "constraints")
    for k, start in enumerate(starts, start=1):
        ends = (Number(start.end[path]) for path in paths)
        met = "met" if start.feasible else "missed"
        out.add_row(str(k), str(start.points), *ends, Number(start.objective, 7), met)
    return out


def _verification(run: Any) -> list[Block]:
    seeds = f"{len(run.seeds)} seeds, {number(run.warmup)} to {number(run.until)} s"
    out: list[Block] = []
    if run.scenario:
        worst = f"the worst for {' and '.join(run.worst_for)}"
        out.append(Line(f"Verified at {_scenario(run.scenario)}, {worst}", "bold"))
    for link in run.settling:
        out.append(verdict(link.settles, f"Trajectory: the queue of {_settled(link)}"))
    checks = table(f"Packets, {seeds}", "quantity or constraint", "fluid", "packets (95 %)", "")
    for check in run.checks:
        value = Number(check.value, half=check.ci95)
        holds = "" if check.bound is None else _HOLDS[check.holds]
        checks.add_row(check.text, Number(check.fluid), value, holds)
    out += [checks] if run.checks else []
    warnings = run.comparison.validity_warnings if run.comparison else ()
    reasons = (f"validity warning: {reason}" for reason in warnings)
    return [*out, *lines(*reasons, run.message)]


def _settled(link: Any) -> str:
    phrases = {
        True: f"settles after {quantity(link.time, 's')}",
        False: "does not settle",
        None: "has no equilibrium to settle at",
    }
    return f"{link.link} {phrases[link.settles]}"


class TradeoffView(View):
    """The best goal for every level of another quantity."""

    size = (2.8, 1)

    def tables(self, rows: int | None = None) -> list[Block]:
        """A line for each level."""
        curve, paths = self.found, list(self.found.levels[0].values)
        names = ((curve.quantity, curve.quantity_unit), (curve.goal, curve.unit))
        out = table("Trade-off", *names, *map(parameter, paths), "status")
        for level in curve.levels:
            ends = (Number(level.values[path]) for path in paths)
            out.add_row(Number(level.quantity), Number(level.objective), *ends, level.status)
        return [out]

    def draw(self, figure: "SubFigure") -> None:
        """The best goal over the other quantity; levels without an optimum are hollow."""
        curve = self.found
        ax = figure.subplots()
        optima = [p for p in curve.levels if p.status == "ok"]
        ax.plot([p.quantity for p in optima], [p.objective for p in optima], "o-", label="optimum")
        others = [p for p in curve.levels if p.status != "ok"]
        if others:
            x, y = [p.quantity for p in others], [p.objective for p in others]
            ax.plot(x, y, "o", color="C1", markerfacecolor="none", label="no optimum")
            legend_above(ax)
        ax.set(xlabel=quantity_label(curve.quantity, curve.quantity_unit))
        ax.set(ylabel=quantity_label(curve.goal, curve.unit))


class BoundsView(View):
    """Verdicts on bounds, and the cases that decide them."""

    @property
    def size(self) -> Any:
        """Size for one bound, or for several."""
        return (2.8 if len(self.found.reports) == 1 else 4.0), 1

    def tables(self, rows: int | None = None) -> list[Block]:
        """The statement of each bound, and its verdicts by the definitions."""
        out: list[Block] = []
        for report in self.found.reports:
            if report.readings:
                why = (reading.why for reading in report.readings)
                out += [*_heads(report), _lines(report.readings), *lines(*why)]
        skipped = [f"{r.id}: {r.message}" for r in self.found.reports if not r.readings]
        return [*out, *([Line("Not applicable", "bold"), *lines(*skipped)] if skipped else [])]

    def draw(self, figure: "SubFigure") -> None:
        """The value of each reading's worst case, relative to the bound."""
        judged = [
            (report.id, k, reading)
            for report in self.found.reports
            for k, reading in enumerate(report.readings)
            if reading.worst is not None and reading.worst.bound
        ]
        if not judged:
            raise TypeError("no case decided a bound: there is no picture, print the verdicts")
        ax = figure.subplots()
        ax.axvline(1.0, color="0.4", linewidth=0.8)
        for word, style in (("holds", "C0o"), ("violated", "C1X"), ("unknown", "kd")):
            rows = [i for i, (_, _, reading) in enumerate(judged) if reading.verdict == word]
            worst = [judged[i][2].worst for i in rows]
            if rows:
                ax.plot([w.value / w.bound for w in worst], rows, style, linestyle="", label=word)
        names = [name if not k else f"{name}, reading {k + 1}" for name, k, _ in judged]
        ax.set_yticks(np.arange(len(judged)), names)
        ax.invert_yaxis()
        label = wrapped("value over bound, at the worst case found", width_of(ax) / 2)
        ax.set(xlabel=label, ylabel="bound")
        legend_above(ax)


def _heads(report: Any) -> list[Block]:
    """The statement of a bound, and the definitions that all its readings share."""
    first, *others = report.readings
    same = {
        axis: value
        for axis, value in first.definitions.items()
        if all(other.definitions[axis] == value for other in others)
    }
    shared = "throughout: " + "; ".join(f"{axis}: {v}" for axis, v in same.items())
    return [
        Line(f"\n{report.id}", "bold"),
        *lines(f"{report.statement} ({report.source}; {report.engine})", shared if same else ""),
        *lines(*(f"by algebra, {step}" for step in report.derivation)),
    ]


def _lines(readings: Sequence[Any]) -> Table:
    """One line for each reading."""
    varied = [
        axis for axis in readings[0].definitions
        if len({reading.definitions[axis] for reading in readings}) > 1
    ]  # fmt: skip
    out = table("", *varied, "verdict", "bound", "value", "searched")
    for reading in readings:
        worst = reading.worst
        word = f"{reading.verdict}, tight" if reading.tight else reading.verdict
        definitions = [reading.definitions[axis] for axis in varied]
        numbers = (Number(worst and worst.bound), Number(worst and worst.value))
        out.add_row(
            *definitions, verdict(reading.verdict == "holds", word), *numbers, str(reading.searched)
        )
    return out


class LawView(View):
    """The checks of a law."""

    instead = "it is a list of verdicts; draw the results for a network with the law"

    def tables(self, rows: int | None = None) -> list[Block]:
        """Every check with its verdict and the reason, and the counts."""
        report, good = self.found, {"ok": True, "failed": False}
        why = Column("why", width=_REASONS)
        out = table(f"{report.law}, a {report.kind} law", "check", "verdict", why)
        for check in report.findings:
            out.add_row(check.check, verdict(good.get(check.verdict), check.verdict), check.why)
        return [out, verdict(report.sound, report.summary)]
