"""One optimum: by gradients or by trials, in one scenario or in the worst of many."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fluidcc.analysis.linear import Array
from fluidcc.optimize.points import halton
from fluidcc.optimize.problem import Evaluator, Problem
from fluidcc.optimize.ranges import Range
from fluidcc.optimize.scaled import MET
from fluidcc.optimize.search import Found, Progress, search
from fluidcc.optimize.trials import trials

_CHECKED = 16
_ROUNDS = 4


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
) -> Found:
    """The optimum of a problem; `given` are starts to be taken in place of a sample's."""
    if problem.smooth:
        return search(problem, starts=effort.starts, given=given, progress=progress)
    return trials(problem, count=effort.trials, seed=effort.seed, progress=progress)


def scenarios(box: Sequence[Range]) -> tuple[dict[str, Any], ...]:
    """The corners of a box of scenarios, and its centre."""
    if not box:
        return ({},)
    corners = [np.array(corner) for corner in itertools.product((0.0, 1.0), repeat=len(box))]
    return _named(box, [*corners, np.full(len(box), 0.5)])


def _named(box: Sequence[Range], points: Sequence[Array]) -> tuple[dict[str, Any], ...]:
    """Scenarios at points of the box, numbers of flows rounded, none of them twice."""
    out: list[dict[str, Any]] = []
    for point in points:
        values = {r.path: r.value(float(u)) for r, u in zip(box, point, strict=True)}
        for r in box:
            values[r.path] = float(round(values[r.path])) if r.whole else values[r.path]
        if values not in out:
            out.append(values)
    return tuple(out)


def robust(
    problem: Problem, box: Sequence[Range], effort: Effort, *, progress: Progress | None = None
) -> tuple[Problem, Found]:
    """The best worst case over a box of scenarios, and the problem with those that decide it.

    The optimum over a finite set is put to scenarios of the box that are not in it; what is worse
    there joins the set, until nothing is (or a few rounds are over, which the message says).
    """
    found = solve(problem, effort, progress=progress)
    others = _named(box, list(halton(len(box), _CHECKED)))
    for _ in range(_ROUNDS):
        if found.status != "ok" or found.scaled is None or found.shares is None:
            return problem, found
        worse = _worse(problem, found, others)
        if not worse:
            told = (
                f"worst of {len(problem.scenarios)} scenarios, corners included; none of "
                f"{len(others)} others is worse"
            )
            return problem, dataclasses.replace(found, message=_joined(told, found.message))
        problem = dataclasses.replace(problem, scenarios=(*problem.scenarios, *worse))
        given = (found.shares,) if problem.smooth else ()
        found = solve(problem, effort, given=given)
    told = f"worst of {len(problem.scenarios)} scenarios; others inside may still be worse"
    return problem, dataclasses.replace(found, message=_joined(told, found.message))


def _worse(
    problem: Problem, found: Found, others: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The scenarios not looked at in which the optimum is worst, by goal and by constraints."""
    scaled = found.scaled
    assert scaled is not None and found.shares is not None
    known = scaled.rows(found.shares, slopes=False)
    fresh = [s for s in others if s not in problem.scenarios]
    look = Evaluator(dataclasses.replace(problem, scenarios=tuple(fresh)))
    if not fresh:
        return []
    seen = look(found.shares)
    if not seen.known:
        bad = np.flatnonzero(np.any(np.isnan(seen.values), axis=1))
        return [fresh[int(bad[0])]]
    costs, slacks = scaled.costs(seen), scaled.slacks(seen).reshape(-1, len(fresh))
    at = {int(np.argmax(costs))} if costs.max() > known.cost + _tolerance(known.cost) else set()
    for row in slacks:
        if row.min() < -10 * MET:
            at.add(int(np.argmin(row)))
    return [fresh[k] for k in sorted(at)]


def _tolerance(cost: float) -> float:
    return 1e-6 * max(1.0, abs(cost))


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))
