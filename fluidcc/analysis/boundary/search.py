"""Every boundary of stability over two parameters.

Counts of unstable roots on a grid say what curves must be crossed on its lines; a curve is traced
from each crossing that those found do not explain, until all are. Islands smaller than a cell are
looked for where the growth rate has an extremum among the nodes.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np
import scipy.optimize

from fluidcc.analysis.boundary.critical import Equation, Lost
from fluidcc.analysis.boundary.grid import Grid, Part, explained, on_line
from fluidcc.analysis.boundary.plane import Plane, Spot
from fluidcc.analysis.boundary.trace import Traced, trace
from fluidcc.analysis.crossings import cell
from fluidcc.analysis.linear import Array
from fluidcc.analysis.scan import Scan

_SAME = 1e-6  # in the plane: critical roots of one curve
_NEAR = 0.02  # in the plane: how far off a chord may be
_MOST_CURVES = 200
_CLIMB = 40  # evaluations spent on one possible island
_PROMISING = 1.0  # of the change to the next nodes: how near zero an extremum is looked at closely


@dataclasses.dataclass
class Found:
    """Curves of critical roots, and the parts of grid lines whose counts they do not explain."""

    curves: list[Traced]
    unexplained: list[Part]


def search(plane: Plane, grid: Grid) -> Found:
    """All curves that the counts on a grid and its extrema lead to."""
    curves: list[Traced] = []
    for part in grid.parts:  # along the edge in any case: tips of curves may enter between nodes
        if part.at in (0.0, 1.0) or explained(part, curves) != part.change:
            curves += _from_part(plane, part, curves)
    for a, b in _islands(plane, grid):
        curves += _from_part(plane, Part(a, b, 0), curves)
    left = [part for part in grid.parts if explained(part, curves) != part.change]
    for part in left:  # a second look: two crossings may hide where one was expected
        curves += _from_part(plane, part, curves)
    return Found(curves, [p for p in left if explained(p, curves) != p.change])


def _from_part(plane: Plane, part: Part, known: list[Traced]) -> list[Traced]:
    """New curves through the critical roots between two spots of one regime."""
    a, b = part.first.t, part.last.t
    scan, out = plane.along(a, b), []
    for frequency, share in _crossings(scan):
        if len(known) + len(out) >= _MOST_CURVES:
            break
        t = (1 - share) * a + share * b
        if any(_passes(curve, frequency, t) for curve in [*known, *out]):
            continue
        try:
            equation = Equation(plane, plane.spot(t), frequency)
            across = np.array([-(b - a)[1], (b - a)[0]]) / np.linalg.norm(b - a)
            row = across if equation.zero else np.concatenate([[0.0], across])
            start = equation.start(frequency, t, row)
        except Lost:
            continue
        out.append(trace(equation, start))
    return out


def _crossings(scan: Scan) -> list[tuple[float, float]]:
    """Frequency and place, from 0 to 1, of the critical roots along a line."""
    ends = scan.place(0.0), scan.place(1.0)
    if not (ends[0].smooth and ends[1].smooth):
        return []
    found, _ = cell(scan, scan.sample(ends[0], 1.0), scan.sample(ends[1], 0.0))
    return [(c.frequency or 0.0, c.value) for c in found]


def _passes(curve: Traced, frequency: float, t: Array) -> bool:
    """Whether a critical root lies on a curve."""
    equation = curve.equation
    if equation.zero != (frequency == 0.0):
        return False
    x = equation.coordinates(frequency, t)
    places = np.array([p.x for p in curve.points])
    distance = np.linalg.norm(places - x, axis=1)
    if distance.min() < _SAME:
        return True
    for i in range(len(places) - 1):
        way = places[i + 1] - places[i]
        share = float(np.clip((x - places[i]) @ way / (way @ way), 0.0, 1.0))
        if np.linalg.norm(places[i] + share * way - x) < _NEAR:
            axis = int(np.argmax(np.abs(way[-2:])))
            exact = on_line(
                curve, curve.points[i], curve.points[i + 1], share, axis, float(t[axis])
            )
            if exact is not None and np.linalg.norm(exact.x - x) < _SAME:
                return True
    return False


def _growth(spot: Spot) -> float:
    """Real part of the rightmost root [1/s]."""
    return float(spot.roots[0].real) if len(spot.roots) else -np.inf


def _islands(plane: Plane, grid: Grid) -> Iterator[tuple[Spot, Spot]]:
    """Pairs of spots with another verdict, found by climbing from extrema among the nodes."""
    k = len(grid.nodes)
    for i, j in itertools.product(range(k), range(k)):
        here = grid.nodes[i][j]
        if not here.smooth:
            continue
        steps = itertools.product((-1, 0, 1), repeat=2)
        beside = [grid.nodes[i + a][j + b] for a, b in steps if 0 <= i + a < k and 0 <= j + b < k]
        same = [s for s in beside if s is not here and s.smooth and s.regime == here.regime]
        sign = -1.0 if here.unstable else 1.0
        if len(same) < 2 or any((s.unstable == 0) != (here.unstable == 0) for s in same):
            continue
        value, around = sign * _growth(here), [sign * _growth(s) for s in same]
        if value < max(around) or -value > _PROMISING * (value - min(around)):
            continue
        top = _climbed(plane, here, sign, 1.0 / (k - 1))
        if top is not None:
            yield here, top


def _climbed(plane: Plane, here: Spot, sign: float, reach: float) -> Spot | None:
    """A spot of another verdict within reach of a node, if there is one."""
    best: list[Spot] = []

    def depth(t: Array) -> float:
        spot = plane.spot(np.clip(t, 0.0, 1.0))
        if not spot.smooth or spot.regime != here.regime:
            return 1e9
        value = sign * _growth(spot)
        if value > 0:
            best.append(spot)
            raise StopIteration
        return -value

    low, high = np.maximum(here.t - reach, 0.0), np.minimum(here.t + reach, 1.0)
    inward = np.where(here.t < 0.5, 1.0, -1.0) * 0.4 * reach
    simplex = here.t + np.array([[0.0, 0.0], [inward[0], 0.0], [0.0, inward[1]]])
    try:
        scipy.optimize.minimize(
            depth, here.t, method="Nelder-Mead", bounds=list(zip(low, high, strict=True)),
            options={"maxfev": _CLIMB, "initial_simplex": simplex, "xatol": 1e-4, "fatol": 0.0},
        )  # fmt: skip
    except StopIteration:
        return best[0]
    return None
