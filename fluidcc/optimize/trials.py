"""The best point of a box without gradients: every whole number, or optuna's sampler."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from fluidcc.analysis.linear import Array
from fluidcc.extras import extra
from fluidcc.optimize.problem import Evaluator, Problem, worst
from fluidcc.optimize.scaled import Scaled
from fluidcc.optimize.search import Found, Progress, judged, present, reason

_CONSTRAINT = "missed"


def trials(problem: Problem, *, count: int, seed: int, progress: Progress | None = None) -> Found:
    """Search by trials: all points where there are no more than `count`, else by sampling.

    The sampler is the tree-structured Parzen estimator of Bergstra et al. (2011) with constraints,
    as optuna has it.

    Parameters
    ----------
    problem
        What is wanted.
    count, seed
        Number of trials, and seed of the sampler.
    progress
        Called with the finished share.

    Raises
    ------
    MissingExtra
        Where the sampler is needed and optuna is not installed.
    """
    look = Evaluator(problem)
    every = _every(problem, count)
    if every is not None:
        for k, point in enumerate(every):
            look(point)
            if progress is not None:
                progress((k + 1) / len(every))
        told = f"each of the {len(every)} points was tried"
    else:
        _sampled(problem, look, count=count, seed=seed, progress=progress)
        told = f"best of {count} trials, seed {seed}: no proof that nothing is better"
    points = [point for point, _ in look.seen.values()]
    if not any(look(point).known for point in points):
        return Found(None, "unknown", reason(look), (), None, len(points))
    scaled = Scaled(look, points)
    best = min(points, key=scaled.merit)
    status, message = judged(scaled, best)
    told = f"{message} ({told})" if message else told
    return Found(best, status, told, (), scaled, len(points))


def _every(problem: Problem, count: int) -> list[Array] | None:
    """All points of a box of whole numbers; None where they are more than `count`, or endless."""
    if not all(r.whole for r in problem.ranges):
        return None
    if math.prod(r.high - r.low + 1 for r in problem.ranges) > count:
        return None
    axes = [np.arange(r.low, r.high + 1) for r in problem.ranges]
    shares = [[r.share(float(v)) for v in a] for r, a in zip(problem.ranges, axes, strict=True)]
    return [np.array(point) for point in itertools.product(*shares)]


def _sampled(
    problem: Problem, look: Evaluator, *, count: int, seed: int, progress: Progress | None
) -> None:
    """Let optuna choose the points."""
    optuna: Any = extra("optuna", "opt", what="a search without gradients")
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        own = present(problem)
        if own is not None:
            study.enqueue_trial(dict(_named(problem, own)))
        for k in range(count):
            _try(problem, look, study, optuna.trial.TrialState.FAIL)
            if progress is not None:
                progress((k + 1) / count)
    finally:
        optuna.logging.set_verbosity(level)


def _named(problem: Problem, shares: Array) -> Iterable[tuple[str, float]]:
    """What the sampler chooses, by path: whole numbers themselves, of the others the shares."""
    for r, share in zip(problem.ranges, shares, strict=True):
        yield r.path, round(r.value(float(share))) if r.whole else float(share)


def _try(problem: Problem, look: Evaluator, study: Any, failed: Any) -> None:
    """One trial: where a point has no numbers it counts as failed."""
    trial = study.ask()
    shares = []
    for r in problem.ranges:
        if r.whole:
            shares.append(r.share(trial.suggest_int(r.path, int(r.low), int(r.high), log=r.log)))
        else:
            shares.append(trial.suggest_float(r.path, 0.0, 1.0))
    seen = look(np.array(shares))
    if not seen.known:
        study.tell(trial, state=failed)
        return
    for j, each in enumerate(problem.constraints, start=1):
        value = worst(each.sign, seen.values[:, j])
        missing = 0.0 if each.met(value) else -each.slack(value) / each.scale
        trial.set_constraint(f"{_CONSTRAINT} {j}", missing)
    study.tell(trial, -problem.sign * worst(problem.sign, seen.values[:, 0]))
