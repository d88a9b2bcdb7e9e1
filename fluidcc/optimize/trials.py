"""The best point of a box without gradients: every whole number, or optuna's sampler."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from fluidcc.analysis.linear import Array
from fluidcc.extras import extra
from fluidcc.optimize.problem import Evaluator, Problem, Range, worst
from fluidcc.optimize.search import Found, Progress, judge, missing


def trials(problem: Problem, *, count: int, seed: int, progress: Progress | None = None) -> Found:
    """Search by trials: all points where there are no more than `count`, else by sampling.

    The sampler is the tree-structured Parzen estimator of Bergstra et al. (2011) with constraints,
    as optuna has it; `seed` is its seed. `progress` is called with the finished share. Raises
    MissingExtra where the sampler is needed and optuna is not installed.
    """
    show = progress or (lambda _: None)
    look, every = Evaluator(problem), _every(problem.ranges, count)
    if every is None:
        _sample(look, count, seed, show)
        note = f"best of {count} trials, seed {seed}: no proof that nothing is better"
    else:
        for k, x in enumerate(every):
            look(x)
            show((k + 1) / len(every))
        note = f"each of the {len(every)} points was tried"
    points = len(look.points)
    if not any(point.known for point in look.points.values()):
        return Found(None, "unknown", missing(look), (), look, points)
    look.measure_scales([point.x for point in look.points.values()])
    best = look.best()
    status, message = judge(look, best)
    return Found(best, status, f"{message} ({note})" if message else note, (), look, points)


def _every(ranges: tuple[Range, ...], count: int) -> list[Array] | None:
    """All points of a box of whole numbers; None where they are more than `count`, or endless."""
    if not all(r.whole for r in ranges) or math.prod(r.high - r.low + 1 for r in ranges) > count:
        return None
    axes = [[r.coordinate(v) for v in np.arange(r.low, r.high + 1)] for r in ranges]
    return [np.array(x) for x in itertools.product(*axes)]


def _sample(look: Evaluator, count: int, seed: int, show: Progress) -> None:
    """Let optuna choose the points: whole numbers themselves, of the others the coordinates."""
    optuna: Any = extra("optuna", "opt", what="a search without gradients")
    problem, level = look.problem, optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        own = problem.own()
        if own is not None:
            pairs = zip(problem.ranges, own, strict=True)
            study.enqueue_trial(
                {r.path: round(r.value(u)) if r.whole else float(u) for r, u in pairs}
            )
        for k in range(count):
            _try(look, study, optuna.trial.TrialState.FAIL)
            show((k + 1) / count)
    finally:
        optuna.logging.set_verbosity(level)


def _try(look: Evaluator, study: Any, failed: Any) -> None:
    """One trial: where a point has no numbers it counts as failed."""
    trial, problem = study.ask(), look.problem
    x = [
        r.coordinate(trial.suggest_int(r.path, int(r.low), int(r.high), log=r.log)) if r.whole
        else trial.suggest_float(r.path, 0.0, 1.0)
        for r in problem.ranges
    ]  # fmt: skip
    point = look(np.array(x))
    if not point.known:
        study.tell(trial, state=failed)
        return
    for j, rule in enumerate(problem.constraints, start=1):
        value = worst(rule.sign, point.values[:, j])
        short = 0.0 if rule.met(value) else -rule.slack(value) / rule.scale
        trial.set_constraint(f"missed {j}", short)
    study.tell(trial, -problem.sign * worst(problem.sign, point.values[:, 0]))
