"""From one start downhill, by two methods of SciPy with our derivatives.

The trust-region interior point method comes near an optimum from anywhere, and stays inside of what
the barriers allow; sequential quadratic programming then ends on the active constraints themselves.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any

import numpy as np
from scipy.optimize import BFGS, Bounds, NonlinearConstraint, minimize

from fluidcc.analysis.linear import Array
from fluidcc.optimize.scaled import ENOUGH, Rows, Scaled

# Costs and slacks are of order one over a box of width one, so that these hold for all problems.
_MOST = 40  # iterations of a start: what is not near an optimum by then is left to other starts
_STILL, _FLAT = 1e-4, 1e-4  # radius of trust and slope at which a start ends, for `finish` to end
_FEW, _EXACT = 30, 1e-12  # iterations that make an end exact, and change of cost at which it is
_INSIDE = 1e-6  # a start at the very end of a range would have an infinite barrier
_RADIUS = 0.1  # of trust at first: a tenth of each range, as the sample has points so far apart
_BARRIER = 0.01  # at first, and its tolerance: starts are good points, to be kept near their bounds
_ABOVE = 0.1  # of t over what it bounds, at the start: inside the barrier of t


class Unbounded(Exception):
    """The goal is infinite at a point where all constraints are met."""

    def __init__(self, shares: Array) -> None:
        super().__init__()
        self.shares = shares


@dataclasses.dataclass(frozen=True)
class Descent:
    """Where a start ended, and after how many points."""

    begin: Array
    end: Array
    points: int


class _View:
    """What the solver sees: x has the `free` shares, and where `lifted` a last number t.

    Lifted, t is minimised above the costs of all scenarios; to come `near`, above the violations of
    all constraints. A scenario in which the goal is infinitely good bounds nothing. A point without
    numbers costs infinitely much, so that no step goes there; the slopes told of it are those of
    the last one with numbers.
    """

    def __init__(self, scaled: Scaled, base: Array, free: Array, *, near: bool) -> None:
        self.scaled, self.base, self.free, self.near = scaled, base, free, near
        self.lifted = near or len(scaled.problem.scenarios) > 1
        self._last: Rows | None = None

    def shares(self, x: Array) -> Array:
        """All shares, those that are not free as they were given."""
        out = np.array(self.base)
        out[self.free] = np.clip(x[: np.count_nonzero(self.free)], 0.0, 1.0)
        return out

    def start(self, shares: Array) -> Array | None:
        """The first x at free shares; None where the point has no numbers."""
        rows, good = self.rows(shares)
        if not good:
            return None
        top = rows.violation if self.near else rows.cost
        return np.append(shares, top + _ABOVE) if self.lifted else shares

    def bounds(self, size: int) -> Bounds:
        """The box of the shares; t is free."""
        low: Any = np.zeros(size)
        high: Any = np.ones(size)
        if self.lifted:
            low[-1], high[-1] = -np.inf, np.inf
        return Bounds(low, high, keep_feasible=True)

    def rows(self, x: Array) -> tuple[Rows, bool]:
        """Rows at a point or, where it has none, of the last point that had."""
        shares = self.shares(x)
        rows = self.scaled.rows(shares)
        if rows.met and not self.near and rows.cost == -math.inf:
            raise Unbounded(np.array(shares))
        good = rows.known and (self.near or math.isfinite(rows.cost))
        if good:
            self._last = rows
        return (rows, True) if good or self._last is None else (self._last, False)

    def cost(self, x: Array) -> float:
        rows, good = self.rows(x)
        return math.inf if not good else float(x[-1]) if self.lifted else rows.cost

    def slope(self, x: Array) -> Array:
        rows, _ = self.rows(x)
        return np.eye(len(x))[-1] if self.lifted else rows.cost_slopes[0, self.free]

    def slacks(self, x: Array) -> Array:
        rows, _ = self.rows(x)
        if self.near:
            return rows.slacks + x[-1]
        if not self.lifted:
            return rows.slacks
        return np.concatenate([np.minimum(x[-1] - rows.costs, ENOUGH), rows.slacks])

    def slack_slopes(self, x: Array) -> Array:
        rows, _ = self.rows(x)
        by_slack = rows.slack_slopes[:, self.free]
        if not self.lifted:
            return by_slack
        if self.near:
            return np.hstack([by_slack, np.ones((len(by_slack), 1))])
        above = np.hstack([-rows.cost_slopes[:, self.free], np.ones((len(rows.costs), 1))])
        above[x[-1] - rows.costs > ENOUGH] = 0.0
        return np.vstack([above, np.hstack([by_slack, np.zeros((len(by_slack), 1))])])


def descend(
    scaled: Scaled, begin: Array, *, free: Array | None = None, near: bool = False
) -> Descent:
    """Minimise the worst cost from a start, or with `near` the worst violation.

    Parameters
    ----------
    scaled
        The problem.
    begin
        The start, shares (K,) of the ranges.
    free
        Which parameters (K,) may move; all by default.
    near
        Whether to come near the constraints, whatever the cost.

    Raises
    ------
    Unbounded
        Where the goal is infinitely good and all constraints are met.
    """
    count = len(scaled.look.seen)
    free = np.ones(scaled.size, bool) if free is None else free
    view = _View(scaled, begin, free, near=near)
    start = view.start(np.clip(begin[free], _INSIDE, 1 - _INSIDE))
    if start is None:
        return Descent(begin, begin, len(scaled.look.seen) - count)
    rules: list[Any] = []
    if view.slacks(start).size:
        by: Any = view.slack_slopes
        rules = [NonlinearConstraint(view.slacks, 0, np.inf, jac=by, hess=BFGS())]
    with warnings.catch_warnings():  # of steps without a change of slope
        warnings.simplefilter("ignore", UserWarning)
        found: Any = minimize(
            view.cost, start, jac=view.slope, hess=BFGS(), method="trust-constr",
            bounds=view.bounds(len(start)), constraints=rules,
            options={
                "maxiter": _MOST, "xtol": _STILL, "gtol": _FLAT, "initial_tr_radius": _RADIUS,
                "initial_barrier_parameter": _BARRIER, "initial_barrier_tolerance": _BARRIER,
            },
        )  # fmt: skip
    return Descent(begin, view.shares(found.x), len(scaled.look.seen) - count)


def finish(scaled: Scaled, begin: Array, *, free: Array | None = None, near: bool = False) -> None:
    """Look at the points that lead from near an optimum onto it.

    Parameters and what it raises are those of `descend`.
    """
    free = np.ones(scaled.size, bool) if free is None else free
    view = _View(scaled, begin, free, near=near)
    start = view.start(begin[free])
    if start is None:
        return
    rules: list[Any] = []
    if view.slacks(start).size:
        rules = [{"type": "ineq", "fun": view.slacks, "jac": view.slack_slopes}]
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):  # of steps out of the box
        warnings.simplefilter("ignore", RuntimeWarning)
        minimize(
            view.cost, start, jac=view.slope, method="SLSQP", bounds=view.bounds(len(start)),
            constraints=rules, options={"maxiter": _FEW, "ftol": _EXACT},
        )  # fmt: skip
