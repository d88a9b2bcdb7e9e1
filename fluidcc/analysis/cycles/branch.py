"""Cycles along one parameter, from the Hopf points where they are born."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sparse
import scipy.sparse.linalg

from fluidcc.analysis.cycles.equations import equations
from fluidcc.analysis.cycles.hopf import direction, resting
from fluidcc.analysis.cycles.model import Model
from fluidcc.analysis.cycles.newton import LostError, moved, read_off, remeshed, system_of
from fluidcc.analysis.cycles.orbit import Orbit
from fluidcc.analysis.cycles.polynomials import Array

COUNT = 36
_BORN = 0.02  # of the states at rest: amplitude of the first cycle
_STEPS = 15
_MET = 1e-9
_DIFFERENCE = 1e-6  # of the range: step for derivatives along the parameter
_MOST = 80  # points of a branch
_LARGEST, _NEAREST, _SMALLEST = 0.2, 2e-3, 1e-4  # of the states and the range: steps
_EASY = 4  # iterations

Models = Callable[[float], Model]


@dataclasses.dataclass(frozen=True)
class Place:
    """A cycle on a branch, at a value of the parameter as a share of its range."""

    share: float
    orbit: Orbit


class Branch:
    """Smooth cycles of a family of models, by pseudo-arclength continuation."""

    def __init__(self, models: Models) -> None:
        self._models, self._iterations = models, 0

    def born(self, y: Array, share: float, period: float) -> tuple[Place, Place]:
        """The Hopf point and a small cycle beside it."""
        model = self._models(share)
        rest = resting(model, y, period, COUNT)
        way = direction(model, rest)
        guess = Place(share, moved(rest, _BORN * way))
        row = way / (way @ way)
        first = self._solved(guess, guess, (row, 0.0))
        return Place(share, rest), first

    def next(self, before: Place, now: Place, length: float) -> tuple[Place, int]:
        """A cycle at some arclength from `now`, away from `before`, and the iterations it took."""
        new = remeshed(self._models(now.share), now.orbit, COUNT)
        here, there = Place(now.share, new), Place(before.share, read_off(before.orbit, new))
        weights = _weights(here.orbit)
        way = _unknowns(here.orbit) - _unknowns(there.orbit)
        turn = here.share - there.share
        size = float(np.sqrt(np.sum(weights * way**2) + turn**2))
        way, turn = way * (length / size), turn * (length / size)
        guess = Place(here.share + turn, moved(here.orbit, way))
        row = (weights * way / length, turn / length)
        return self._solved(guess, here, row), self._iterations

    def _solved(self, guess: Place, reference: Place, row: tuple[Array, float]) -> Place:
        """The cycle near a guess for which the step along `row` stays as it is."""
        share, orbit, before = guess.share, guess.orbit, np.inf
        ahead, behind = (
            equations(self._models(share + s * _DIFFERENCE), orbit).residual for s in (1, -1)
        )
        column = np.append((ahead - behind) / (2.0 * _DIFFERENCE), 0.0)
        extra = np.append(row[0], 0.0)
        for k in range(_STEPS):
            self._iterations = k + 1
            found = equations(self._models(share), orbit)
            matrix, residual = system_of(orbit, found, reference.orbit)
            whole = sparse.bmat(
                [[matrix, column[:, None]], [extra[None], [[row[1]]]]], format="csc"
            )
            try:
                step = -scipy.sparse.linalg.splu(whole).solve(np.append(residual, 0.0))
            except RuntimeError:
                raise LostError("the equations of the branch are singular") from None
            if not np.all(np.isfinite(step)):
                raise LostError("the equations of the branch are singular")
            orbit, share = moved(orbit, step[:-2]), share + float(step[-1])
            length = float(np.sqrt(np.sum(_weights(orbit) * step[:-2] ** 2) + step[-1] ** 2))
            if length < _MET:
                return Place(share, orbit)
            if length > 4.0 * max(before, 1e-6) or not orbit.period > 0:
                break
            before = length
        raise LostError("the branch is lost: no cycle is found a step further")

    def followed(
        self, y: Array, share: float, period: float, sound: Callable[[Place], bool]
    ) -> Any:
        """Cycles from a Hopf point on, one by one, and at last why they end."""
        before, now = self.born(y, share, period)
        if not sound(now):
            return "the smallest cycle meets a corner or a bound"
        yield now
        way = _unknowns(now.orbit) - _unknowns(before.orbit)
        length = min(_LARGEST, float(np.sqrt(np.sum(_weights(now.orbit) * way**2))))
        for _ in range(_MOST):
            try:
                following, iterations = self.next(before, now, length)
            except LostError as why:
                length /= 2
                if length < _SMALLEST:
                    return str(why)
                continue
            if not sound(following):
                length /= 2
                if length < _NEAREST:
                    return "the cycle meets a corner or a bound"
                continue
            before, now = now, following
            if not 0.0 <= now.share <= 1.0:
                return ""
            yield now
            length = min(_LARGEST, length * 1.5) if iterations <= _EASY else length
        return f"the branch has more than {_MOST} points"


def _unknowns(orbit: Orbit) -> Array:
    """All unknowns, flat (N,)."""
    count = len(orbit.segment)
    parts = [orbit.start, orbit.rise.reshape(count, -1), orbit.wire.reshape(count, -1)]
    return np.append(np.concatenate(parts, axis=1).ravel(), orbit.ends)


def _weights(orbit: Orbit) -> Array:
    """Weights (N,) of the squares of a step: those of the starts, in the size of the states."""
    count, segments, n, _ = orbit.shape
    block = (len(_unknowns(orbit)) - segments) // count
    size = np.abs(orbit.start).max(0)
    size = np.where(size > 0, size, 1.0)
    out = np.zeros((count, block))
    out[:, :n] = 1.0 / (n * count * size**2)
    return np.append(out.ravel(), np.full(segments, 1.0 / orbit.period**2))
