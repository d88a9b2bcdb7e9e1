"""One optimum, in one scenario or in the worst of many, and a curve of them: the best goal for
every level of another quantity.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fluidcc.analysis.linear import Array
from fluidcc.analysis.measures import measure
from fluidcc.optimize.problem import (
    Constraint,
    Evaluator,
    Problem,
    Range,
    halton,
    worst,
    worst_at,
)
from fluidcc.optimize.result import Level, Optimum, Tradeoff
from fluidcc.optimize.search import Progress, SearchResult, search, trials

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
    progress: Progress | None = None,
) -> SearchResult:
    """The optimum of a problem; with derivatives, from the `given` points (K,), if any."""
    if problem.smooth:
        return search(problem, starts=effort.starts, given=given, progress=progress)
    return trials(problem, count=effort.trials, seed=effort.seed, progress=progress)


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
    problem: Problem, box: Sequence[Range], effort: Effort, *, progress: Progress | None = None
) -> tuple[Problem, SearchResult]:
    """The best worst case over a box of scenarios, and the problem with those that decide it.

    The optimum over a finite set is evaluated in scenarios of the box that are not in it; those in
    which it is worse join the set, until there are none (or after a few rounds, as the message
    notes). Starts and points are those of all rounds; each takes half of the progress left.
    """
    show = progress or (lambda _: None)
    others = _scenarios(box, list(halton(len(box), _CHECKED)))
    rounds: list[SearchResult] = []
    given: tuple[Array, ...] = ()
    note = ""
    while True:
        left = 0.5 ** len(rounds)
        result = solve(
            problem, effort, given=given,
            progress=lambda share, left=left: show(1.0 - left * (1.0 - share / 2)),
        )  # fmt: skip
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
