"""One optimum: by gradients or by trials, in one scenario or in the worst of many."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fluidcc.analysis.linear import Array
from fluidcc.optimize.points import halton
from fluidcc.optimize.problem import Evaluator, Problem, worst_at
from fluidcc.optimize.ranges import Range
from fluidcc.optimize.search import Found, Progress, search
from fluidcc.optimize.trials import trials

_CHECKED = 16  # scenarios that an optimum is put to: as many as the largest box has corners
_ROUNDS = 5  # of adding what is worse: each adds a scenario at least, and costs an optimisation
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
) -> Found:
    """The optimum of a problem.

    Parameters
    ----------
    problem, effort
        What is wanted, and how much is spent on it.
    given
        Starts, shares (K,) of the ranges, in place of those of a sample; for what has derivatives.
    progress
        Called with the finished share.

    Raises
    ------
    MissingExtra
        Where a search needs optuna.
    """
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
    there joins the set, until nothing is (or a few rounds are over, which the message says). Starts
    and points are those of all rounds; what is left of the progress is halved by each.

    Parameters
    ----------
    problem
        The problem over the first scenarios.
    box
        The ranges of what is not chosen.
    effort
        Of each round.
    progress
        Called with the finished share.
    """
    others = _named(box, list(halton(len(box), _CHECKED)))
    rounds: list[Found] = []
    given: tuple[Array, ...] = ()
    while True:
        part = _part(progress, len(rounds))
        found = solve(problem, effort, given=given, progress=part)
        rounds.append(found)
        if found.status != "ok" or found.scaled is None or found.shares is None:
            return problem, _summed(rounds, "")
        worse = _worse(problem, found, others)
        if not worse or len(rounds) == _ROUNDS:
            break
        problem = dataclasses.replace(problem, scenarios=(*problem.scenarios, *worse))
        given = (found.shares,) if problem.smooth else ()
    told = f"worst of {len(problem.scenarios)} scenarios, corners included; "
    told += "others inside are still worse" if worse else f"none of {len(others)} others is worse"
    return problem, _summed(rounds, told)


def _part(progress: Progress | None, done: int) -> Progress | None:
    """The progress of a round after some that are `done`."""
    if progress is None:
        return None
    return lambda share: progress(1.0 - 0.5**done * (1.0 - share / 2))


def _summed(rounds: Sequence[Found], told: str) -> Found:
    """The last round with the starts and points of all."""
    last = rounds[-1]
    return dataclasses.replace(
        last,
        message="; ".join(filter(None, [told, last.message])),
        starts=tuple(start for each in rounds for start in each.starts),
        points=sum(each.points for each in rounds),
    )


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
    costs = scaled.costs(seen)
    rounding = _SAME * max(1.0, abs(known.cost))
    at = {int(np.argmax(costs))} if costs.max() > known.cost + rounding else set()
    for j, rule in enumerate(problem.constraints, start=1):
        s = worst_at(rule.sign, seen.values[:, j])
        if not rule.met(float(seen.values[s, j])):
            at.add(s)
    return [fresh[k] for k in sorted(at)]
