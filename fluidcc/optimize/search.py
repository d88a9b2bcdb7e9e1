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
from fluidcc.optimize.points import halton
from fluidcc.optimize.problem import Evaluator, Problem
from fluidcc.optimize.ridge import down_a_ridge
from fluidcc.optimize.scaled import MET, Scaled
from fluidcc.optimize.stationary import STATIONARY, forces

Progress = Callable[[float], None]

_SAMPLE = 5  # points for each parameter, and as many again
_APART = 0.15  # least distance of starts, in shares
_CLOSE = 1e-4  # of the end of a range: taken for the end
_ROUNDS = 4


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
    """Search with gradients, from `given` points or from the best of a sample."""
    look = Evaluator(problem)
    sample = _sample(problem, look, given, progress)
    known = [p for p in sample if look(p).known]
    if not known:
        return Found(None, "unknown", reason(look), (), None, len(look.seen))
    scaled = Scaled(look, sample)
    chosen = list(given) or _chosen(scaled, known, starts)
    tried: list[Descent] = []
    try:
        _check_bound(scaled, known)
        for k, begin in enumerate(chosen):
            tried.append(descend(scaled, begin))
            if progress is not None:
                progress(0.3 + 0.6 * (k + 1) / len(chosen))
        best = _refined(scaled, _feasible(scaled, _best(scaled), starts))
    except Unbounded as at:
        return Found(at.shares, "unbounded", _endless(problem, at.shares), tuple(tried), scaled,
                     len(look.seen))  # fmt: skip
    message = ""
    if any(r.whole for r in problem.ranges):
        best, message = _whole(scaled, best)
    if scaled.merit(best)[0]:
        status, message = "infeasible", "; ".join(filter(None, [message, missed(scaled, best)]))
    else:
        status = "ok"
        if not message and forces(scaled, best).residual > STATIONARY:
            message = (
                "the optimum is no smooth one, and there are no multipliers: a kink, roots or "
                "crossovers that tie, the edge of points without numbers, or a search that ended "
                "early"
            )
    return Found(best, status, message, tuple(tried), scaled, len(look.seen))


def present(problem: Problem) -> Array | None:
    """The scenario's own values as shares; None where they lie outside the ranges."""
    from fluidcc.scenario.paths import number_at

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
            progress(0.3 * (k + 1) / len(points))
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


def _check_bound(scaled: Scaled, known: Sequence[Array]) -> None:
    for point in known:
        if scaled.merit(point) == (0, -math.inf):
            raise Unbounded(point)


def _best(scaled: Scaled) -> Array:
    """The best point seen, at the ends of ranges that it is next to."""
    best = min((point for point, _ in scaled.look.seen.values()), key=scaled.merit)
    near = np.round(best)
    snapped = np.where(np.abs(best - near) <= _CLOSE, near, best)
    return min(snapped, best, key=lambda p: _rounded(scaled.merit(p)))


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
    values = {k: ranges[k].value(float(best[k])) for k in counted}
    choices = [sorted({math.floor(values[k] + MET), math.ceil(values[k] - MET)}) for k in counted]
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
    told = ", ".join(f"{ranges[k].path} was {values[k]:.6g}" for k in counted)
    return min(ends, key=scaled.merit), f"whole numbers next to the optimum without them: {told}"


def reason(look: Evaluator) -> str:
    """What most points without numbers say."""
    told = collections.Counter(
        reason for _, seen in look.seen.values() for reason in seen.reasons if reason
    )
    first = told.most_common(1)
    why = f": {first[0][0]} ({first[0][1]} times)" if first else ""
    return f"none of {len(look.seen)} points of the ranges has all numbers{why}"


def _endless(problem: Problem, shares: Array) -> str:
    place = ", ".join(f"{path} = {value:.6g}" for path, value in problem.values(shares).items())
    return (
        f"{problem.goal.name} is infinite at {place}, where all constraints are met: the loop has "
        "no such crossover there; bound it by a constraint, or take another goal such as decay_rate"
    )


def missed(scaled: Scaled, best: Array) -> str:
    """The constraints that cannot be met together, and how near the search came."""
    problem, slacks = scaled.problem, scaled.rows(best, slopes=False).slacks
    count, seen = len(problem.scenarios), scaled.look(best)
    if not seen.known:
        return "; ".join(filter(None, seen.reasons))
    short = [int(k) for k in np.argsort(slacks) if slacks[k] < -MET]
    parts = []
    for j in dict.fromkeys(k // count for k in short):
        s = int(np.argmin(slacks[j * count : (j + 1) * count]))
        here = "".join(f" at {path} = {v:g}" for path, v in problem.scenarios[s].items())
        parts.append(f"{problem.constraints[j].text} came to {seen.values[s, j + 1]:.6g}{here}")
    place = ", ".join(f"{path} = {value:.6g}" for path, value in problem.values(best).items())
    return (
        f"no point found meets every constraint; nearest to it, with {place}: {'; '.join(parts)}; "
        "relax what is missed, or widen the ranges"
    )
