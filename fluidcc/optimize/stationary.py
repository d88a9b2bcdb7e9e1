"""Which constraints hold an optimum, with what force, and whether it is stationary."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.optimize import nnls

from fluidcc.analysis.linear import Array
from fluidcc.optimize.scaled import Scaled

_TOUCHED = 1e-4  # slack, or difference of costs, up to which a row is active: starts end within it
_HEAVY = 1e3  # weight of the sum of the scenarios' shares, which is to be 1; slopes are of order 1
STATIONARY = 1e-3
"""Residual up to which a point is taken for stationary: by a step across a whole range the goal
would gain a thousandth of its spread."""


@dataclasses.dataclass(frozen=True)
class Active:
    """A constraint or the end of a range that holds the optimum.

    `multiplier` is by how much the goal gains per unit by which it is relaxed, None where it is not
    known; `scenario` is that in which it holds.
    """

    text: str
    multiplier: float | None
    scenario: dict[str, float]


@dataclasses.dataclass(frozen=True)
class Forces:
    """Active constraints, the weights (S,) of the scenarios, and what is left of the slope.

    The residual is in units of the goal's spread per range; it vanishes at a smooth optimum. There
    are no multipliers where it does not.
    """

    active: tuple[Active, ...]
    weights: Array
    residual: float


def forces(scaled: Scaled, shares: Array, *, smooth: bool = True) -> Forces:
    """The multipliers of Karush, Kuhn and Tucker at a point, by least squares without signs wrong.

    Parameters
    ----------
    scaled
        The problem.
    shares
        The point, shares (K,) of the ranges.
    smooth
        Whether there are derivatives; the active constraints alone without them.
    """
    problem, rows = scaled.problem, scaled.rows(shares, slopes=smooth)
    scenarios, size = problem.scenarios, scaled.size
    worst = np.flatnonzero(rows.costs >= rows.cost - _TOUCHED)
    tight = np.flatnonzero(rows.slacks <= _TOUCHED)
    low = np.flatnonzero(shares <= _TOUCHED)
    high = np.flatnonzero(shares >= 1 - _TOUCHED)
    weights = np.zeros(len(scenarios))
    found, residual = np.full(len(tight) + len(low) + len(high), np.nan), np.nan
    if smooth:
        ends = [*np.eye(size)[low], *-np.eye(size)[high]]
        columns = [*rows.cost_slopes[worst], *-rows.slack_slopes[tight], *(-e for e in ends)]
        matrix = np.array(columns).T
        share = np.concatenate([np.ones(len(worst)), np.zeros(len(columns) - len(worst))])
        by, _ = nnls(np.vstack([matrix, _HEAVY * share]), np.append(np.zeros(size), _HEAVY))
        residual = float(np.linalg.norm(matrix @ by))
        weights[worst] = by[: len(worst)]
        if residual <= STATIONARY:
            found = by[len(worst) :]
    else:
        weights[worst] = 1.0 / len(worst)
    goal = scaled.scales[0]
    active = []
    for row, force in zip(tight, found, strict=False):
        j, s = divmod(int(row), len(scenarios))
        multiplier = force * goal / scaled.scales[j + 1]
        active.append(Active(problem.constraints[j].text, _told(multiplier), dict(scenarios[s])))
    sides = [(k, "low") for k in low] + [(k, "high") for k in high]
    for (k, side), force in zip(sides, found[len(tight) :], strict=True):
        where = problem.ranges[k]
        end = where.low if side == "low" else where.high
        text = f"{where.path} at the {side} end of its range, {end:g}"
        active.append(Active(text, _told(force * goal / where.slope(float(shares[k]))), {}))
    return Forces(tuple(active), weights, residual)


def _told(multiplier: float) -> float | None:
    return float(multiplier) if np.isfinite(multiplier) else None
