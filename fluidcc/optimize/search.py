"""The best point of the unit cube: by gradients from several starts, or by trials, with the
constraints that are active there.

Sequential quadratic programming of SciPy with our derivatives leads from each start onto the active
constraints. Where it ends at a kink (two roots or crossovers tie, the marking has a corner) slopes
mislead, and a simplex of Nelder and Mead goes on from there: in problems of few parameters it comes
as near to a kink as 1e-4 of the ranges.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import Bounds, minimize, nnls

from fluidcc.analysis.linear import Array
from fluidcc.analysis.measures import EQUILIBRIUM
from fluidcc.errors import extra
from fluidcc.optimize.problem import ENOUGH, Evaluator, Point, Problem, Range, halton, worst
from fluidcc.progress import counted, part

STATIONARY = 1e-3
"""Residual up to which a point is taken for stationary: by a step across a whole range the goal
would gain a thousandth of its spread."""

_SAMPLE = 5  # points for each parameter, and as many again: about what one start costs
_APART = 0.15  # least distance of starts, in coordinates: nearer ones would end at the same place
_SAMPLED, _TRIED = 0.3, 0.9  # of the progress when sample and starts are done

# Costs and slacks are of order one over a cube of width one, so that these hold for all problems.
_STEPS = 25  # of one quadratic programme after the other
_NEAR, _EXACT = 1e-9, 1e-12  # change of cost at which a start, and the best of all, has ended
_ROUNDS = 2  # of both methods at a kink, while that helps
_EDGE = 0.03  # of the simplex at first: of each range
_PENALTY = 10.0  # cost of a violation of 1: above the multipliers of most constraints, in scales
_TOUCHED = 1e-4  # slack, or difference of costs, up to which a row is active
_HEAVY = 1e3  # weight of the sum of the scenarios' weights, which is to be 1; slopes are of order 1


class Unbounded(Exception):
    """The goal is infinitely good at the point x, where all constraints are met."""

    def __init__(self, x: Array) -> None:
        super().__init__()
        self.x = x


@dataclasses.dataclass(frozen=True)
class Descent:
    """A start, the point at which it ended, and the number of points evaluated."""

    begin: Array
    end: Array
    points: int


@dataclasses.dataclass(frozen=True)
class SearchResult:
    """The best point (None if no point has numbers), its starts, and a message.

    `status` is `ok`, `infeasible`, `unbounded` or `unknown` (no point has numbers).
    """

    x: Array | None
    status: str
    message: str
    starts: tuple[Descent, ...]
    evaluator: Evaluator
    points: int


def search(
    problem: Problem,
    *,
    starts: int,
    given: Sequence[Array] = (),
) -> SearchResult:
    """Search with gradients, which everything in the problem needs.

    `starts` of the best points of a sample are started from, or the `given` points (K,) in place of
    those.
    """
    evaluator = Evaluator(problem)
    sample = _sample(problem, given)
    with part(0.0, _SAMPLED):
        for x in counted(sample):
            evaluator(x)
    known = [x for x in sample if evaluator(x).known]
    if not known:
        return SearchResult(
            None, "unknown", missing(evaluator), (), evaluator, len(evaluator.points)
        )
    evaluator.measure_scales(sample)
    chosen = list(given) or _chosen(evaluator, known, starts)
    tried: list[Descent] = []
    note = ""
    try:
        with part(_SAMPLED, _TRIED):
            tried.extend(_descend(evaluator, begin) for begin in counted(chosen))
        best = _polish(evaluator)
        if any(r.whole for r in problem.ranges):
            best, note = _whole(evaluator, best)
    except Unbounded as at:
        best = at.x
    status, message = judge(evaluator, best)
    if status == "ok" and not note and multipliers(evaluator, best).residual > STATIONARY:
        note = (
            "the optimum is no smooth one, and there are no multipliers: a corner, roots or "
            "crossovers that tie, the edge of points without numbers, or a search that ended early"
        )
    message = "; ".join(filter(None, [note, message]))
    return SearchResult(best, status, message, tuple(tried), evaluator, len(evaluator.points))


def _sample(problem: Problem, given: Sequence[Array]) -> list[Array]:
    """Points all over the cube, the network's own among them; a few if starts are given."""
    size = len(problem.ranges)
    if given:
        return [*given, *halton(size, size + 2)]
    initial = problem.initial_point()
    first = [] if initial is None else [initial]
    return [*first, np.full(size, 0.5), *halton(size, _SAMPLE * (size + 1))]


def _chosen(evaluator: Evaluator, known: Sequence[Array], starts: int) -> list[Array]:
    """The best points of the sample that are not next to each other."""
    chosen: list[Array] = []
    for x in sorted(known, key=evaluator.merit):
        if all(np.linalg.norm(x - start) >= _APART for start in chosen):
            chosen.append(x)
    return chosen[:starts]


def _descend(evaluator: Evaluator, begin: Array) -> Descent:
    """Descend from a start, first until the constraints are met."""
    end, passed = begin, [begin]
    for near in (True, False):
        if evaluator.merit(end)[0] == int(near):
            passed += _follow(evaluator, end, near=near)
            end = min(passed, key=evaluator.merit)
    return Descent(begin, end, len({x.tobytes() for x in passed}))


def _follow(
    evaluator: Evaluator,
    begin: Array,
    *,
    free: Array | None = None,
    near: bool = False,
    end: float = _NEAR,
) -> list[Array]:
    """The points by which quadratic programmes lead downhill from a point.

    The last number t of what is moved is minimised above the costs of all scenarios, or to come
    `near` above the violations of all constraints and zero. A scenario in which the goal is
    infinitely good bounds nothing. A point without numbers costs infinitely much, so that no step
    ends there. `free` parameters (K,) move, all by default.

    Raises Unbounded if the goal is infinitely good and all constraints are met.
    """
    move = np.ones(len(begin), bool) if free is None else free
    passed, last = [], [begin]  # the last with numbers

    def full(z: Array) -> Array:
        x = np.array(begin)
        x[move] = z[:-1]
        return x

    def at(z: Array) -> tuple[Array, bool]:
        """Scaled numbers at a point or, if it has none, of the last point that had."""
        x = evaluator(full(z)).x
        passed.append(x)
        if not near and evaluator.merit(x) == (0, -math.inf):
            raise Unbounded(x)
        good = evaluator(x).known and (near or evaluator.scaled(x)[:, 0].max() < math.inf)
        last[0] = x if good else last[0]
        return evaluator.scaled(last[0]), good

    def below(scaled: Array) -> Array:
        return -scaled[:, 1:].ravel() if near else scaled[:, 0]

    def slacks(z: Array) -> Array:
        scaled, _ = at(z)
        above = np.minimum(z[-1] - below(scaled), ENOUGH)
        return above if near else np.append(above, scaled[:, 1:])

    def slopes(z: Array) -> Array:
        at(z)
        by = evaluator.scaled_slopes(last[0])[:, :, move]
        rules = by[:, 1:].reshape(-1, len(z) - 1)
        above = np.insert(rules if near else -by[:, 0], len(z) - 1, 1.0, axis=1)
        return above if near else np.vstack([above, np.insert(rules, len(z) - 1, 0.0, axis=1)])

    scaled, good = at(np.append(begin[move], 0.0))
    if not good:
        return passed
    start = np.append(begin[move], below(scaled).max())
    low, high = np.zeros(len(start)), np.ones(len(start))
    low[-1], high[-1] = 0.0 if near else -np.inf, np.inf
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):  # of steps out of the box
        warnings.simplefilter("ignore", RuntimeWarning)
        minimize(
            lambda z: float(z[-1]) if at(z)[1] else math.inf, start, method="SLSQP",
            jac=lambda z: np.eye(len(z))[-1], bounds=Bounds(low, high),  # pyright: ignore
            constraints=[{"type": "ineq", "fun": slacks, "jac": slopes}],
            options={"maxiter": _STEPS, "ftol": end},
        )  # fmt: skip
    return passed


def _polish(evaluator: Evaluator) -> Array:
    """The best point evaluated, after searches around it find nothing better."""
    best = evaluator.best()
    for _ in range(_ROUNDS):
        level, cost = evaluator.merit(best)
        if level:
            _follow(evaluator, best, near=True, end=_EXACT)
            return evaluator.best()
        _follow(evaluator, best, end=_EXACT)
        best = evaluator.best()
        if multipliers(evaluator, best).residual <= STATIONARY:
            return best
        _contract(evaluator, best)
        best = evaluator.best()
        if evaluator.merit(best)[1] >= cost - 1e-6 * max(1.0, abs(cost)):
            return best
    return best


def _contract(evaluator: Evaluator, begin: Array) -> None:
    """Contract a simplex (Nelder and Mead) about the least cost with penalties on violations."""

    def cost(x: Array) -> float:
        if evaluator.merit(x) == (0, -math.inf):
            raise Unbounded(evaluator(x).x)
        scaled = evaluator.scaled(x)
        missed = max(0.0, -float(scaled[:, 1:].min(initial=0.0)))
        return float(scaled[:, 0].max()) + _PENALTY * missed if evaluator(x).known else math.inf

    size = len(begin)
    steps = np.where(begin < 0.5, _EDGE, -_EDGE) * np.eye(size)
    minimize(
        cost, begin, method="Nelder-Mead", bounds=Bounds(0.0, 1.0),  # pyright: ignore
        options={
            "initial_simplex": np.vstack([begin, begin + steps]), "maxfev": 100 * size,
            "xatol": 1e-4, "fatol": 1e-7,
        },
    )  # fmt: skip


def _whole(evaluator: Evaluator, best: Array) -> tuple[Array, str]:
    """The best point at which whole parameters are whole, next to one at which they are not."""
    ranges = evaluator.problem.ranges
    counted = [k for k, r in enumerate(ranges) if r.whole]
    values = [ranges[k].value(best[k]) for k in counted]
    free = np.array([not r.whole for r in ranges])
    ends = []
    for corner in itertools.product(*(sorted({math.floor(v), math.ceil(v)}) for v in values)):
        x = np.array(best)
        x[counted] = [ranges[k].coordinate(v) for k, v in zip(counted, corner, strict=True)]
        x = evaluator(x).x
        if free.any() and evaluator(x).known:
            _follow(evaluator, x, free=free, end=_EXACT)
        ends += [p.x for p in evaluator.points.values() if np.all(p.x[counted] == x[counted])]
    pairs = zip(counted, values, strict=True)
    note = ", ".join(f"{ranges[k].path} was {value:.6g}" for k, value in pairs)
    return min(ends, key=evaluator.merit), f"whole numbers next to the optimum without them: {note}"


@dataclasses.dataclass(frozen=True)
class Active:
    """A constraint, or the end of a range, that is active at the optimum.

    `multiplier` is the gain of the goal per unit by which it is relaxed, None if it is not known;
    `scenario` is the one in which it is active.
    """

    text: str
    multiplier: float | None
    scenario: dict[str, float]


@dataclasses.dataclass(frozen=True)
class Multipliers:
    """Active constraints, the weights (S,) of the scenarios, and the residual of the slopes.

    The residual is in units of the goal's spread per range; it vanishes at a smooth optimum, and
    multipliers exist only there.
    """

    active: tuple[Active, ...]
    weights: Array
    residual: float


def multipliers(evaluator: Evaluator, x: Array) -> Multipliers:
    """The multipliers of Karush, Kuhn and Tucker at a point x (K,), by non-negative least squares;
    without derivatives the active constraints alone.
    """
    problem, scaled, size = evaluator.problem, evaluator.scaled(x), len(x)
    worst = np.flatnonzero(scaled[:, 0] >= scaled[:, 0].max() - _TOUCHED)
    tight = np.argwhere(scaled[:, 1:].T <= _TOUCHED)  # (constraint, scenario)
    ends = [(k, side) for side in (0, 1) for k in np.flatnonzero(np.abs(x - side) <= _TOUCHED)]
    weights = np.zeros(len(scaled))
    weights[worst] = 1.0 / len(worst)
    by, residual = np.full(len(tight) + len(ends), np.nan), math.nan
    if problem.smooth:
        slopes = evaluator.scaled_slopes(x)
        columns = [*slopes[worst, 0], *(-slopes[s, j + 1] for j, s in tight)]
        columns += [(2 * side - 1) * np.eye(size)[k] for k, side in ends]
        matrix = np.array(columns).T
        shares = np.where(np.arange(len(columns)) < len(worst), _HEAVY, 0.0)
        solution, _ = nnls(np.vstack([matrix, shares]), np.append(np.zeros(size), _HEAVY))
        residual = float(np.linalg.norm(matrix @ solution))
        weights[worst] = solution[: len(worst)]
        by = solution[len(worst) :] if residual <= STATIONARY else by
    texts = [(problem.constraints[j].text, dict(problem.scenarios[s])) for j, s in tight]
    units = [float(evaluator.scales[j + 1]) for j, _ in tight]
    for k, side in ends:
        parameter = problem.ranges[k]
        end, value = ("low", parameter.low) if side == 0 else ("high", parameter.high)
        texts.append((f"{parameter.path} at the {end} end of its range, {value:g}", {}))
        units.append(parameter.slope(x[k]))
    prices = [float(b * evaluator.scales[0] / unit) for b, unit in zip(by, units, strict=True)]
    active = [
        Active(text, price if math.isfinite(price) else None, scenario)
        for (text, scenario), price in zip(texts, prices, strict=True)
    ]
    return Multipliers(tuple(active), weights, residual)


def missing(evaluator: Evaluator) -> str:
    """The most frequent reason of points without numbers."""
    reasons = collections.Counter(
        reason
        for point in evaluator.points.values()
        for row, reason in zip(point.values, point.reasons, strict=True)
        if reason and np.any(np.isnan(row))
    )
    first = reasons.most_common(1)
    why = f": {first[0][0]} ({first[0][1]} times)" if first else ""
    return f"none of {len(evaluator.points)} points of the ranges has all numbers{why}"


def judge(evaluator: Evaluator, best: Array) -> tuple[str, str]:
    """Status of the best point of a search, and its message."""
    level, cost = evaluator.merit(best)
    problem, point = evaluator.problem, evaluator(best)
    place = ", ".join(f"{path} = {value:.6g}" for path, value in problem.values(best).items())
    why = "; ".join(filter(None, point.reasons))
    if level:
        return "infeasible", _missed(evaluator, point, place) if point.known else why
    if cost == -math.inf and problem.goal.engine == EQUILIBRIUM:
        return "unbounded", (
            f"{problem.goal.name} is infinite at {place}, where all constraints are met: the loop "
            "has no such crossover there; bound it by a constraint, or take another goal such as "
            "decay_rate"
        )
    if cost == -math.inf:
        return "unbounded", f"{problem.goal.name} is infinite at {place}: {why}"
    if cost == math.inf:
        return "infeasible", (
            f"no point found that meets the constraints has a finite {problem.goal.name}; with "
            f"{place}: {why or 'infinite'}"
        )
    return "ok", ""


def _missed(evaluator: Evaluator, point: Point, place: str) -> str:
    """The constraints that cannot be met together, and how near the search came."""
    problem, slacks = evaluator.problem, evaluator.scaled(point.x)[:, 1:]
    parts = []
    for j in np.argsort(slacks.min(axis=0)):
        rule, s = problem.constraints[j], int(np.argmin(slacks[:, j]))
        value = float(point.values[s, j + 1])
        if not rule.met(value):
            scenario = "".join(f" at {path} = {v:g}" for path, v in problem.scenarios[s].items())
            why = f" ({point.reasons[s]})" if math.isinf(value) and point.reasons[s] else ""
            parts.append(f"{rule.text} came to {value:.6g}{scenario}{why}")
    return (
        f"no point found meets every constraint; nearest to it, with {place}: "
        f"{'; '.join(parts)}; relax what is missed, or widen the ranges"
    )


def trials(problem: Problem, *, count: int, seed: int) -> SearchResult:
    """Search by trials: all points if there are no more than `count`, else by sampling.

    The sampler is the tree-structured Parzen estimator of Bergstra et al. (2011) with constraints,
    as optuna has it; `seed` is its seed. Raises
    MissingExtra if the sampler is needed and optuna is not installed.
    """
    evaluator, every = Evaluator(problem), _every(problem.ranges, count)
    if every is None:
        _draw(evaluator, count, seed)
        note = f"best of {count} trials, seed {seed}: no proof that nothing is better"
    else:
        for x in counted(every):
            evaluator(x)
        note = f"each of the {len(every)} points was tried"
    points = len(evaluator.points)
    if not any(point.known for point in evaluator.points.values()):
        return SearchResult(None, "unknown", missing(evaluator), (), evaluator, points)
    evaluator.measure_scales([point.x for point in evaluator.points.values()])
    best = evaluator.best()
    status, message = judge(evaluator, best)
    return SearchResult(
        best, status, f"{message} ({note})" if message else note, (), evaluator, points
    )


def _every(ranges: tuple[Range, ...], count: int) -> list[Array] | None:
    """All points of a box of whole numbers; None if they are more than `count`."""
    if not all(r.whole for r in ranges) or math.prod(r.high - r.low + 1 for r in ranges) > count:
        return None
    axes = [[r.coordinate(v) for v in np.arange(r.low, r.high + 1)] for r in ranges]
    return [np.array(x) for x in itertools.product(*axes)]


def _draw(evaluator: Evaluator, count: int, seed: int) -> None:
    """Let optuna choose the points: whole numbers themselves, of the others the coordinates."""
    optuna: Any = extra("optuna", "opt", what="a search without gradients")
    problem, level = evaluator.problem, optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        initial = problem.initial_point()
        if initial is not None:
            pairs = zip(problem.ranges, initial, strict=True)
            study.enqueue_trial(
                {r.path: round(r.value(u)) if r.whole else float(u) for r, u in pairs}
            )
        for _ in counted(range(count)):
            _try(evaluator, study, optuna.trial.TrialState.FAIL)
    finally:
        optuna.logging.set_verbosity(level)


def _try(evaluator: Evaluator, study: Any, failed: Any) -> None:
    """One trial, which fails if its point has no numbers."""
    trial, problem = study.ask(), evaluator.problem
    x = [
        r.coordinate(trial.suggest_int(r.path, int(r.low), int(r.high), log=r.log)) if r.whole
        else trial.suggest_float(r.path, 0.0, 1.0)
        for r in problem.ranges
    ]  # fmt: skip
    point = evaluator(np.array(x))
    if not point.known:
        study.tell(trial, state=failed)
        return
    for j, rule in enumerate(problem.constraints, start=1):
        value = worst(rule.sign, point.values[:, j])
        short = 0.0 if rule.met(value) else -rule.slack(value) / rule.scale
        trial.set_constraint(f"missed {j}", short)
    study.tell(trial, -problem.sign * worst(problem.sign, point.values[:, 0]))
