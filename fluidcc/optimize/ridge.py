"""Downhill where slopes jump: where two roots or crossovers tie, and at kinks of the marking.

At a kink the slope of one point misleads. The shortest vector in the convex hull of the slopes
around it points down all of them, or vanishes at an optimum. Source: Burke, Lewis and Overton
(2005), A robust gradient sampling algorithm for nonsmooth, nonconvex optimization.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import nnls

from fluidcc.analysis.linear import Array
from fluidcc.optimize.points import halton
from fluidcc.optimize.scaled import Scaled

RADII = (3e-2, 3e-3, 3e-4)
"""Distances of the points whose slopes are taken, in shares of the ranges."""

_TURNS = 8  # steps at each radius, of four radii at most: farther than the next larger radius
_CUTS = 6  # lengths of a step, each a third of the last: from four radii to a sixtieth of one
_PENALTY = 10.0  # cost of a violation of 1: above the multipliers of most constraints, in scales
_FLAT = 1e-3  # of the largest slope: the hull of the slopes is taken to have 0 inside
_HEAVY = 1e3  # weight of the sum of shares, which is to be 1, beside slopes of at most 1


def down_a_ridge(scaled: Scaled, begin: Array) -> None:
    """Look at points that lead down from one, shares (K,), as long as there is a way."""
    best = np.array(begin)
    for radius in RADII:
        for _ in range(_TURNS):
            moved = _step(scaled, best, radius)
            if moved is None:
                break
            best = moved


def _step(scaled: Scaled, best: Array, radius: float) -> Array | None:
    """A better point along the common way down of the slopes within a radius."""
    around = best + radius * (2 * halton(len(best), 2 * len(best)) - 1)
    points = [best, *np.clip(around, 0.0, 1.0)]
    slopes = [s for s in (_slope(scaled, p) for p in points) if s is not None]
    if not slopes:
        return None
    matrix = np.array(slopes).T
    size = float(np.max(np.linalg.norm(matrix, axis=0)))
    weights = nnls(
        np.vstack([matrix / (size or 1.0), np.full(len(slopes), _HEAVY)]),
        np.append(np.zeros(len(best)), _HEAVY),
    )[0]
    down = -matrix @ weights
    length = float(np.linalg.norm(down))
    if length <= _FLAT * size:
        return None
    now, reach = _cost(scaled, best), 4 * radius / length
    for _ in range(_CUTS):
        aside = np.clip(best + reach * down, 0.0, 1.0)
        if _cost(scaled, aside) < now - 1e-6 * max(1.0, abs(now)):
            return aside
        reach /= 3
    return None


def _cost(scaled: Scaled, shares: Array) -> float:
    """Cost with what violations cost; infinite where there are no numbers."""
    rows = scaled.rows(shares, slopes=False)
    if not rows.known:
        return math.inf
    return rows.cost + _PENALTY * max(0.0, rows.violation)


def _slope(scaled: Scaled, shares: Array) -> Array | None:
    """The slope of that."""
    rows = scaled.rows(shares)
    if not rows.known or not math.isfinite(rows.cost):
        return None
    slope = np.array(rows.cost_slopes[int(np.argmax(rows.costs))])
    if rows.violation > 0:
        slope -= _PENALTY * rows.slack_slopes[int(np.argmin(rows.slacks))]
    return slope
