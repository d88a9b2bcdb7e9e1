"""The best point of a box by gradients: a sample, several starts, and the ends made exact."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from fluidcc.analysis.linear import Array
from fluidcc.optimize.descent import Descent, Unbounded, descend, finish
from fluidcc.optimize.measures import REST
from fluidcc.optimize.points import halton
from fluidcc.optimize.problem import Evaluator, Problem
from fluidcc.optimize.ridge import down_a_ridge
from fluidcc.optimize.scaled import Scaled
from fluidcc.optimize.stationary import STATIONARY, forces
from fluidcc.scenario.paths import number_at

Progress = Callable[[float], None]

_SAMPLE = 5  # points for each parameter, and as many again: about what one start costs
_APART = 0.15  # least distance of starts, in shares: nearer ones would end at the same place
_CLOSE = 1e-4  # of the end of a range: taken for the end, which interior points never reach
_ROUNDS = 4  # of ends made exact and ridges followed, while that helps
_SAMPLED, _TRIED = 0.3, 0.9  # shares of the progress when sample and starts are done


@dataclasses.dataclass(frozen=True)
class Found:
    """The best point (None where no point has numbers), how it was found, and what is to be said.

    `status` is `ok`, `infeasible`, `unbounded` or `unknown` (no point has numbers).
    """

    shares: Array | None
    status: str
    message: str
    starts: tuple[Descent, ...]
    scaled: Scaled | None
    points: int


def search(
    problem: Problem,
    *,
    starts: int,
    given: Sequence[Array] = (),
    progress: Progress | None = None,
) -> Found:
    """Search with gradients.

    Parameters
    ----------
    problem
        What is wanted; everything in it needs derivatives.
    starts
        How many points of the sample to start from.
    given
        Starts, shares (K,) of the ranges, in place of those.
    progress
        Called with the finished share.
    """
    look = Evaluator(problem)
    sample = _sample(problem, look, given, progress)
    known = [p for p in sample if look(p).known]
    if not known:
        return Found(None, "unknown", reason(look), (), None, len(look.seen))
    scaled = Scaled(look, sample)
    chosen = list(given) or _chosen(scaled, known, starts)
    tried: list[Descent] = []
    told = ""
    try:
        _best(scaled)
        for k, begin in enumerate(chosen):
            tried.append(descend(scaled, begin))
            if progress is not None:
                progress(_SAMPLED + (_TRIED - _SAMPLED) * (k + 1) / len(chosen))
        best = _refined(scaled, _feasible(scaled, _best(scaled), starts))
        if any(r.whole for r in problem.ranges):
            best, told = _whole(scaled, best)
    except Unbounded as at:
        best = at.shares
    status, message = judged(scaled, best)
    if status == "ok" and not told and forces(scaled, best).residual > STATIONARY:
        told = (
            "the optimum is no smooth one, and there are no multipliers: a kink, roots or "
            "crossovers that tie, the edge of points without numbers, or a search that ended early"
        )
    message = "; ".join(filter(None, [told, message]))
    return Found(best, status, message, tuple(tried), scaled, len(look.seen))


def present(problem: Problem) -> Array | None:
    """The scenario's own values as shares (K,); None where they lie outside the ranges."""
    values = [number_at(problem.net, r.path) for r in problem.ranges]
    pairs = list(zip(problem.ranges, values, strict=True))
    if all(r.low <= value <= r.high for r, value in pairs):
        return np.array([r.share(value) for r, value in pairs])
    return None


def _sample(
    problem: Problem, look: Evaluator, given: Sequence[Array], progress: Progress | None
) -> list[Array]:
    """Points all over the box, the scenario's own among them; a few where starts are given."""
    size = len(problem.ranges)
    if given:
        return [*given, *halton(size, size + 2)]
    points = [np.full(size, 0.5), *halton(size, _SAMPLE * (size + 1))]
    own = present(problem)
    points = points if own is None else [own, *points]
    for k, point in enumerate(points):
        look(point)
        if progress is not None:
            progress(_SAMPLED * (k + 1) / len(points))
    return points


def _chosen(scaled: Scaled, known: Sequence[Array], starts: int) -> list[Array]:
    """The best points of the sample that are not next to each other."""
    chosen: list[Array] = []
    for point in sorted(known, key=scaled.merit):
        if all(np.linalg.norm(point - other) >= _APART for other in chosen):
            chosen.append(point)
        if len(chosen) == starts:
            break
    return chosen


def _best(scaled: Scaled) -> Array:
    """The best point seen, at the ends of ranges that it is next to.

    Raises Unbounded where the goal is infinitely good there.
    """
    best = min((point for point, _ in scaled.look.seen.values()), key=scaled.merit)
    near = np.round(best)
    snapped = np.where(np.abs(best - near) <= _CLOSE, near, best)
    best = min(snapped, best, key=lambda p: _rounded(scaled.merit(p)))
    if scaled.merit(best) == (0, -math.inf):
        raise Unbounded(best)
    return best


def _rounded(merit: tuple[int, float]) -> tuple[int, float]:
    """A merit without the digits that say nothing."""
    level, value = merit
    return level, round(value, 6) if math.isfinite(value) else value


def _feasible(scaled: Scaled, best: Array, starts: int) -> Array:
    """The point, or a better one that meets all constraints, if one can be reached."""
    if not scaled.merit(best)[0]:
        return best
    seen = [point for point, found in scaled.look.seen.values() if found.known]
    for begin in _chosen(scaled, seen, starts):
        finish(scaled, descend(scaled, begin, near=True).end, near=True)
    best = _best(scaled)
    if not scaled.merit(best)[0]:
        descend(scaled, best)
    return _best(scaled)


def _refined(scaled: Scaled, best: Array) -> Array:
    """The point, with nothing better around it."""
    if scaled.merit(best)[0]:
        return best
    for _ in range(_ROUNDS):
        before = scaled.merit(best)
        finish(scaled, best)
        best = _best(scaled)
        if forces(scaled, best).residual <= STATIONARY:
            return best
        down_a_ridge(scaled, best)
        best = _best(scaled)
        if _rounded(scaled.merit(best)) >= _rounded(before):
            return best
    return best


def _whole(scaled: Scaled, best: Array) -> tuple[Array, str]:
    """The best point at which whole parameters are whole, next to one at which they are not."""
    ranges = scaled.problem.ranges
    counted = [k for k, r in enumerate(ranges) if r.whole]
    values = [scaled.problem.values(best)[ranges[k].path] for k in counted]
    choices = [sorted({math.floor(value), math.ceil(value)}) for value in values]
    free = np.array([not r.whole for r in ranges])
    ends = []
    for combination in itertools.product(*choices):
        point = np.array(best)
        point[counted] = [ranges[k].share(v) for k, v in zip(counted, combination, strict=True)]
        ends.append(point)
        if free.any() and scaled.look(point).known:
            finish(scaled, point, free=free)
            ends += [
                p for p, _ in scaled.look.seen.values() if np.all(p[counted] == point[counted])
            ]
    pairs = zip(counted, values, strict=True)
    told = ", ".join(f"{ranges[k].path} was {value:.6g}" for k, value in pairs)
    return min(ends, key=scaled.merit), f"whole numbers next to the optimum without them: {told}"


def reason(look: Evaluator) -> str:
    """What most points without numbers say."""
    told = collections.Counter(
        reason
        for _, seen in look.seen.values()
        for row, reason in zip(seen.values, seen.reasons, strict=True)
        if reason and np.any(np.isnan(row))
    )
    first = told.most_common(1)
    why = f": {first[0][0]} ({first[0][1]} times)" if first else ""
    return f"none of {len(look.seen)} points of the ranges has all numbers{why}"


def judged(scaled: Scaled, best: Array) -> tuple[str, str]:
    """Status of the best point of a search, and what is to be said of it."""
    level, cost = scaled.merit(best)
    problem, place = scaled.problem, _place(scaled.problem, best)
    if level:
        return "infeasible", missed(scaled, best)
    if cost == -math.inf and problem.goal.engine == REST:
        return "unbounded", (
            f"{problem.goal.name} is infinite at {place}, where all constraints are met: the loop "
            "has no such crossover there; bound it by a constraint, or take another goal such as "
            "decay_rate"
        )
    why = "; ".join(filter(None, scaled.look(best).reasons))
    if cost == -math.inf:
        return "unbounded", f"{problem.goal.name} is infinite at {place}: {why}"
    if cost == math.inf:
        return "infeasible", (
            f"no point found that meets the constraints has a finite {problem.goal.name}; with "
            f"{place}: {why or 'infinite'}"
        )
    return "ok", ""


def _place(problem: Problem, shares: Array) -> str:
    return ", ".join(f"{path} = {value:.6g}" for path, value in problem.values(shares).items())


def missed(scaled: Scaled, best: Array) -> str:
    """The constraints that cannot be met together, and how near the search came."""
    problem, seen = scaled.problem, scaled.look(best)
    if not seen.known:
        return "; ".join(filter(None, seen.reasons))
    slacks = scaled.slacks(seen).reshape(-1, len(problem.scenarios))
    parts = []
    for j in np.argsort(slacks.min(axis=1)):
        rule, s = problem.constraints[j], int(np.argmin(slacks[j]))
        value = float(seen.values[s, j + 1])
        if not rule.met(value):
            here = "".join(f" at {path} = {v:g}" for path, v in problem.scenarios[s].items())
            why = f" ({seen.reasons[s]})" if math.isinf(value) and seen.reasons[s] else ""
            parts.append(f"{rule.text} came to {value:.6g}{here}{why}")
    return (
        f"no point found meets every constraint; nearest to it, with {_place(problem, best)}: "
        f"{'; '.join(parts)}; relax what is missed, or widen the ranges"
    )
