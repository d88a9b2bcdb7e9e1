"""One optimum, in one scenario or in the worst of many, and a curve of them, the best goal for
every level of another quantity; as results, with their verification in both engines.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.linear import Array
from fluidcc.analysis.measures import measure
from fluidcc.optimize.constraints import Constraint
from fluidcc.optimize.problem import (
    Evaluator,
    Problem,
    Range,
    halton,
    worst,
    worst_at,
)
from fluidcc.optimize.search import Active, SearchResult, search, trials
from fluidcc.progress import part
from fluidcc.quantities import BY_UNIT, about, labels
from fluidcc.result import Result, plain
from fluidcc.results.compare import Comparison
from fluidcc.scenario.network import Network

if TYPE_CHECKING:
    import xarray

    from fluidcc.optimize.problem import Problem


@dataclasses.dataclass(frozen=True)
class Start:
    """A start of the search and where it ended: parameters by path, the goal there (NaN if it has
    no number), whether all constraints are met, and how many points were evaluated.
    """

    begin: Mapping[str, float]
    end: Mapping[str, float]
    objective: float
    feasible: bool
    points: int


@dataclasses.dataclass(frozen=True)
class ConstraintValue:
    """A constraint at the optimum: the value of its quantity in the scenario worst for it.

    `met` allows 1e-8 of the bound (of one unit if that is 0).
    """

    text: str
    quantity: str
    value: float
    met: bool
    scenario: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Plain values; an infinite one is None, with `infinite` true."""
        own = {name: plain(value) for name, value in vars(self).items()}
        return {**own, "infinite": math.isinf(self.value)}


@dataclasses.dataclass(frozen=True)
class Settling:
    """How a link's queue settles along the trajectory from the scenario's own start.

    `time` [s] is as `settling_time` defines it, infinite if it does not settle, NaN if it has
    no equilibrium to settle at.
    """

    link: str
    time: float
    variation: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        own = {name: plain(value) for name, value in vars(self).items()}
        return {**own, "settles": self.settles}

    @property
    def settles(self) -> bool | None:
        """Whether the queue comes to its equilibrium and stays there; None if it has none."""
        return None if math.isnan(self.time) else math.isfinite(self.time)


@dataclasses.dataclass(frozen=True)
class Check:
    """A quantity in packets: mean over seeds, half width of its 95 % interval, and the bound.

    `fluid` is the value at the equilibrium of the fluid model, None if it has no number. `bound` is
    None if there is none; `holds` is None then, and if the bound lies inside the interval.
    """

    text: str
    metric: str
    bound: float | None
    fluid: float | None
    value: float
    ci95: float
    holds: bool | None


@dataclasses.dataclass(frozen=True)
class Verification:
    """The network at the optimum in both engines; `message` has the reason of missing parts.

    `scenario` is the one of a box in which it was run, `worst_for` the goal and the constraints for
    which that one is the worst; both are empty without a box.
    """

    scenario: dict[str, float]
    worst_for: tuple[str, ...]
    settling: tuple[Settling, ...]
    checks: tuple[Check, ...]
    comparison: Comparison | None
    until: float
    warmup: float
    seeds: tuple[int, ...]
    message: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        both = self.comparison
        names = "scenario", "worst_for", "settling", "checks", "until", "warmup", "seeds", "message"
        return {name: plain(getattr(self, name)) for name in names} | {
            "validity_warnings": list(both.validity_warnings) if both else [],
            "rows": both.to_dict()["rows"] if both else [],
        }


@dataclasses.dataclass(frozen=True)
class Level:
    """The best goal with a quantity at a level: `relation` is the side on which it was kept."""

    level: float
    relation: str
    objective: float
    quantity: float
    values: dict[str, float]
    status: str


@dataclasses.dataclass(frozen=True, repr=False)
class Tradeoff(Result):
    """The goal against another quantity: levels from the least to the greatest."""

    _view = "verdicts.TradeoffView"

    goal: str
    unit: str
    quantity: str
    quantity_unit: str
    levels: tuple[Level, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {name: plain(value) for name, value in vars(self).items()}

    def to_xarray(self) -> xarray.Dataset:
        """Goal, quantity and parameters along the dimension `level`."""
        import xarray as xr

        paths = list(self.levels[0].values)
        data: dict[str, Any] = {
            "level_objective": (
                "level", [p.objective for p in self.levels], about("level_objective", self.unit)
            ),
            "level_quantity": (
                "level", [p.quantity for p in self.levels],
                about("level_quantity", self.quantity_unit),
            ),
            "level_value": (
                ("level", "parameter"), [[p.values[path] for path in paths] for p in self.levels],
                about("level_value", BY_UNIT),
            ),
            "level_status": ("level", [p.status for p in self.levels], about("level_status")),
        }  # fmt: skip
        levels = [p.level for p in self.levels]
        coords = labels(parameter=paths) | {
            "level": ("level", levels, about("level", self.quantity_unit))
        }
        return xr.Dataset(data, coords, {"traded": self.quantity})


@dataclasses.dataclass(frozen=True, repr=False)
class Optimum(Result):
    """The best parameters found, the constraints active there, and whether both engines agree.

    `status` is `ok`, `infeasible` (no point meets all constraints and has a finite goal: the one
    that misses least is given), `unbounded` (the goal is infinitely good at the point given) or
    `unknown` (no point has all numbers); `message` has details. `values` are the parameters,
    `net` the network with them. `objective` is the goal in the worst scenario, `given` that of the
    network as it was and `given_meets` whether that meets the constraints; both are None if it
    has no number or lies outside the ranges, and an infinite `given` is None in JSON.
    `constraints` are those asked for, and that the equilibrium is stable, each with its value.
    `active` are constraints and ends of ranges active there, with their multipliers; `worst` the
    scenarios that decide the objective. `residual` is the slope left by the multipliers, in units
    of the goal's spread over a range: near 0 at a smooth optimum, None without derivatives.
    `starts` and `points` (how many were evaluated) are those of all rounds. `verification` has a
    run for each scenario that decides the objective or an active constraint, a single one without a
    box of scenarios; it is empty if it was not asked for or there is no optimum.

    `goal` is what was maximised or minimised (`sense`), in `unit`; `units` are those of the
    parameters. `problem` and `effort` repeat the search for `traded`, whose result is `curve`.
    """

    _view = "verdicts.OptimumView"

    status: str
    message: str
    goal: str
    sense: str
    objective: float
    unit: str
    given: float | None
    given_meets: bool | None
    values: dict[str, float]
    units: dict[str, str]
    constraints: tuple[ConstraintValue, ...]
    active: tuple[Active, ...]
    worst: tuple[dict[str, float], ...]
    residual: float | None
    starts: tuple[Start, ...]
    points: int
    net: Network = dataclasses.field(repr=False)
    verification: tuple[Verification, ...]
    problem: Problem = dataclasses.field(repr=False)
    effort: Effort = dataclasses.field(repr=False)
    curve: Tradeoff | None = None

    def tradeoff(self, quantity: str, points: int = 9) -> Tradeoff:
        """The best objective over the range of another quantity, other constraints kept.

        With a box of scenarios, over those that were found to decide the optimum.

        Parameters
        ----------
        quantity
            A quantity by name, as in `optimize`.
        points
            How many levels of it, from the least to the greatest that the constraints allow; each
            is a separate optimisation.

        Raises
        ------
        ScenarioError
            If there is no such quantity.
        ValueError
            If there is no optimum to trade from, the range of the quantity is not known, or there
            are less than two points.
        """
        return tradeoff(self, quantity, points)

    def traded(self, quantity: str, points: int = 9) -> Optimum:
        """The same result with the curve of `tradeoff`, or unchanged without an optimum.

        Raises the errors of `tradeoff`.
        """
        if self.status != "ok":
            return self
        return dataclasses.replace(self, curve=self.tradeoff(quantity, points))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, None for what is not known."""
        names = (
            "status", "message", "goal", "sense", "objective", "unit", "given", "given_meets",
            "values", "units", "worst", "residual", "points", "constraints", "active", "starts",
            "verification",
        )  # fmt: skip
        own = {name: plain(getattr(self, name)) for name in names}
        return {**own, "tradeoff": plain(self.curve)}

    def to_xarray(self) -> xarray.Dataset:
        """Parameters, constraints and starts as labelled arrays; the trade-off curve with them."""
        import xarray as xr

        paths, rules = list(self.values), self.constraints
        ends = [[start.end[path] for path in paths] for start in self.starts]
        data: dict[str, Any] = {
            "objective": ((), self.objective, about("objective", self.unit)),
            "value": ("parameter", [self.values[path] for path in paths], about("value", BY_UNIT)),
            "constraint_value": (
                "constraint",
                [rule.value for rule in rules],
                about("constraint_value", BY_UNIT),
            ),
            "constraint_met": ("constraint", [rule.met for rule in rules], about("constraint_met")),
        }
        if ends:
            data["start_end"] = (("start", "parameter"), ends, about("start_end", BY_UNIT))
            data["start_objective"] = (
                "start",
                [s.objective for s in self.starts],
                about("start_objective", self.unit),
            )
        coords = labels(parameter=paths, constraint=[rule.text for rule in rules])
        coords["unit"] = ("parameter", list(self.units.values()), about("unit"))
        attrs = {
            "status": self.status, "message": self.message, "goal": self.goal, "sense": self.sense
        }  # fmt: skip
        out = xr.Dataset(data, coords, attrs)
        return out if self.curve is None else out.merge(self.curve.to_xarray())


_CHECKED = 16  # scenarios that an optimum is tested in: as many as the largest box has corners
_ROUNDS = 5  # of adding worse scenarios: each adds at least one, and costs an optimisation
_SAME = 1e-6  # relative difference of costs that is rounding


@dataclasses.dataclass(frozen=True)
class Effort:
    """Starts of a search with gradients, trials of one without, and the seed of these."""

    starts: int
    trials: int
    seed: int


def solve(
    problem: Problem,
    effort: Effort,
    *,
    given: Sequence[Array] = (),
) -> SearchResult:
    """The optimum of a problem; with derivatives, from the `given` points (K,), if any."""
    if problem.smooth:
        return search(problem, starts=effort.starts, given=given)
    return trials(problem, count=effort.trials, seed=effort.seed)


def corners(box: Sequence[Range]) -> tuple[dict[str, Any], ...]:
    """The corners of a box of scenarios, and its centre."""
    if not box:
        return ({},)
    return _scenarios(box, [*itertools.product((0.0, 1.0), repeat=len(box)), [0.5] * len(box)])


def _scenarios(box: Sequence[Range], points: Sequence[Any]) -> tuple[dict[str, Any], ...]:
    """Scenarios at points of the box, numbers of flows rounded, none of them twice."""
    out: list[dict[str, Any]] = []
    for x in points:
        values = {r.path: r.value(u) for r, u in zip(box, x, strict=True)}
        values |= {r.path: float(round(values[r.path])) for r in box if r.whole}
        if values not in out:
            out.append(values)
    return tuple(out)


def solve_worst_case(
    problem: Problem, box: Sequence[Range], effort: Effort
) -> tuple[Problem, SearchResult]:
    """The best worst case over a box of scenarios, and the problem with those that decide it.

    The optimum over a finite set is evaluated in scenarios of the box that are not in it; those in
    which it is worse join the set, until there are none (or after a few rounds, as the message
    notes). Starts and points are those of all rounds; each takes half of the progress left.
    """
    others = _scenarios(box, list(halton(len(box), _CHECKED)))
    rounds: list[SearchResult] = []
    given: tuple[Array, ...] = ()
    note = ""
    while True:
        left = 0.5 ** len(rounds)
        with part(1.0 - left, 1.0 - left / 2):
            result = solve(problem, effort, given=given)
        rounds.append(result)
        if result.status != "ok" or result.x is None:
            break
        worse = _worse(problem, result, others)
        note = f"worst of {len(problem.scenarios)} scenarios, corners included; "
        note += (
            "others inside are still worse" if worse else f"none of {len(others)} others is worse"
        )
        if not worse or len(rounds) == _ROUNDS:
            break
        note, given = "", (result.x,) if problem.smooth else ()
        problem = dataclasses.replace(problem, scenarios=(*problem.scenarios, *worse))
    return problem, dataclasses.replace(
        result,
        message="; ".join(filter(None, [note, result.message])),
        starts=tuple(start for result in rounds for start in result.starts),
        points=sum(result.points for result in rounds),
    )


def _worse(
    problem: Problem, result: SearchResult, others: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The scenarios not looked at in which the optimum is worst, by goal and by constraints."""
    fresh = [s for s in others if s not in problem.scenarios]
    if not fresh or result.x is None:
        return []
    evaluator = Evaluator(dataclasses.replace(problem, scenarios=tuple(fresh)))
    evaluator.scales, point = result.evaluator.scales, evaluator(result.x)
    if not point.known:
        return [fresh[int(np.flatnonzero(np.any(np.isnan(point.values), axis=1))[0])]]
    costs, known = (
        evaluator.scaled(result.x)[:, 0],
        float(result.evaluator.scaled(result.x)[:, 0].max()),
    )
    at = {int(np.argmax(costs))} if costs.max() > known + _SAME * max(1.0, abs(known)) else set()
    for j, rule in enumerate(problem.constraints, start=1):
        s = worst_at(rule.sign, point.values[:, j])
        at |= set() if rule.met(float(point.values[s, j])) else {s}
    return [fresh[k] for k in sorted(at)]


def tradeoff(best: Optimum, quantity: str, points: int) -> Tradeoff:
    """The curve of an optimum, with the parameters and errors of `Optimum.tradeoff`.

    Levels below the quantity's value at the optimum are upper bounds on it, those above lower ones.
    """
    if best.status != "ok":
        raise ValueError(f"tradeoff: expected an optimum, got one that is {best.status}")
    if points < 2:
        raise ValueError(f"tradeoff: expected at least 2 points, got {points!r}")
    problem, traded = best.problem, measure(best.problem.net, quantity, where="tradeoff")
    pairs = zip(problem.ranges, best.values.values(), strict=True)
    optimum = np.array([r.coordinate(value) for r, value in pairs])
    ends = []
    for sign in (-1, 1):  # the least and the greatest that the constraints allow
        end = _solve(best, optimum, goal=traded, sign=sign)
        if end.x is None or end.status != "ok":
            raise ValueError(f"tradeoff: the range of {traded.name} is not known: {end.message}")
        ends.append(worst(sign, end.evaluator(end.x).values[:, 0]))
    at_optimum = worst(
        -1, Evaluator(dataclasses.replace(problem, goal=traded))(optimum).values[:, 0]
    )
    levels = np.linspace(ends[0], ends[1], points)
    curve: dict[int, Level] = {}
    starts = {-1: optimum, 1: optimum}  # the neighbour nearer to the optimum, on either side
    for k in sorted(range(points), key=lambda k: abs(levels[k] - at_optimum)):
        sign = -1 if levels[k] <= at_optimum else 1
        rule = Constraint(traded, sign, float(levels[k]))
        result = _solve(best, starts[sign], constraints=(*problem.constraints, rule))
        starts[sign] = starts[sign] if result.x is None else result.x
        curve[k] = _level(best, rule, result)
    return Tradeoff(
        best.goal, best.unit, traded.name, traded.unit, tuple(curve[k] for k in range(points))
    )


def _solve(best: Optimum, start: Array, **changes: Any) -> SearchResult:
    """The optimum of the same problem with changes, near a start."""
    problem = dataclasses.replace(best.problem, **changes)
    return solve(problem, best.effort, given=(start,) if problem.smooth else ())


def _level(best: Optimum, rule: Constraint, result: SearchResult) -> Level:
    relation = ">=" if rule.sign > 0 else "<="
    if result.x is None:
        missing = dict.fromkeys(best.values, math.nan)
        return Level(rule.bound, relation, math.nan, math.nan, missing, result.status)
    problem, values = best.problem, result.evaluator(result.x).values
    goal, reached = worst(problem.sign, values[:, 0]), worst(rule.sign, values[:, -1])
    return Level(rule.bound, relation, goal, reached, problem.values(result.x), result.status)
