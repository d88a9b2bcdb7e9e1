"""Every boundary of stability over two parameters.

Counts of unstable roots on a grid imply crossings on its lines; a curve is traced from each
crossing that known curves do not explain, until all are explained. Islands smaller than a cell are
looked for where the growth rate has an extremum among the nodes.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np
import scipy.optimize

from fluidcc.analysis.boundary.critical import Curve, Equation, Lost, trace
from fluidcc.analysis.crossings import cell
from fluidcc.analysis.linear import Array
from fluidcc.analysis.scan import Place, Plane, Scan, Spot

_ASIDE = 0.05  # of a cell
_CLEAR = 1e-5  # of a line between nodes: from a change of regime
_CLOSE = 0.15  # of a part: how near its ends a crossing is solved for
_SHORT = 1e-9  # in the plane: shorter parts are dropped
_SAME = 1e-6  # in the plane: critical roots of one curve
_NEAR = 0.02  # in the plane: how far off a chord may be
_MOST_CURVES = 200
_CLIMB = 40  # evaluations spent on one possible island
_PROMISING = 1.0  # of the change to the next nodes: how near zero an extremum is looked at closely


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a grid line: both ends, parameter `axis` varies."""

    first: Spot
    last: Spot
    axis: int

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends along the axis."""
        return float(self.first.t[self.axis]), float(self.last.t[self.axis])

    @property
    def at(self) -> float:
        """The other parameter."""
        return float(self.first.t[1 - self.axis])

    @property
    def change(self) -> int:
        """Change in the number of unstable roots from the first end to the last."""
        return self.last.unstable - self.first.unstable


@dataclasses.dataclass(frozen=True)
class Grid:
    """Spots at the nodes (k, k), parts of all lines between them within one regime, and those
    across a change of regime.
    """

    nodes: list[list[Spot]]
    parts: list[Part]
    breaks: list[Part]

    @property
    def certified(self) -> bool:
        """Whether every count was proven."""
        return all(s.certified for p in self.parts for s in (p.first, p.last))

    def all_nodes(self) -> list[Spot]:
        """The spots at the nodes."""
        return list(itertools.chain.from_iterable(self.nodes))


def lines(points: int) -> Array:
    """Grid lines: nearly even, but not on round values, at which roots may be critical."""
    inner = np.arange(1, points - 1)
    aside = _ASIDE * np.sin(2.4 * inner)
    return np.array([0.0, *((inner + aside) / (points - 1)), 1.0])


def grid(plane: Plane, points: int) -> Grid:
    """The grid with `points` lines each way."""
    t = lines(points)
    nodes = [[plane.spot(np.array([x, y])) for y in t] for x in t]
    parts: list[Part] = []
    breaks: list[Part] = []
    for i, j in itertools.product(range(points), range(points)):
        for axis, (k, m) in enumerate(((i + 1, j), (i, j + 1))):
            if k < points and m < points:
                pieces = _split(plane, nodes[i][j], nodes[k][m], axis)
                long = [p for p in pieces if np.linalg.norm(p[1].t - p[0].t) > _SHORT]
                parts += [Part(a, b, axis) for a, b in long if a.smooth]
                pairs = [(b, c) for (_, b), (c, _) in itertools.pairwise(pieces)]
                breaks += [Part(b, c, axis) for b, c in pairs]
    return Grid(nodes, parts, breaks)


def _split(plane: Plane, a: Spot, b: Spot, axis: int) -> list[tuple[Spot, Spot]]:
    """The line from a to b, cut where the regime changes."""
    if a.regime == b.regime:
        return [(a, b)]
    out, start = [], a
    for before, after in Scan(plane, a.t, b.t).breaks(Place(0.0, a), Place(1.0, b)):
        out.append((start, _clear(plane, a, b, before, -_CLEAR)))
        start = _clear(plane, a, b, after, _CLEAR)
    return [*out, (start, b)]


def _clear(plane: Plane, a: Spot, b: Spot, place: Place, step: float) -> Spot:
    """A place next to a change of regime, moved far enough for derivatives of one side only."""
    share = place.t + step
    moved = plane.spot(a.t + share * (b.t - a.t)) if 0 < share < 1 else place.spot
    return moved if moved.regime == place.spot.regime else place.spot


def explained(part: Part, curves: list[Curve]) -> int:
    """The change that the curves found make along a part of a line."""
    return sum(change for curve in curves for change in _changes(part, curve))


def _changes(part: Part, curve: Curve) -> list[int]:
    """Change of the count at each crossing of a curve with a part."""
    places, other = curve.places, 1 - part.axis
    if len(places) < 2 or curve.equation.regime != part.first.regime:
        return []
    beyond = places[:, other] > part.at if part.at == 0.0 else places[:, other] >= part.at
    out = []
    low, high = part.ends
    near = _CLOSE * (high - low)
    for i in np.flatnonzero(beyond[1:] != beyond[:-1]):
        a, b = curve.points[i], curve.points[i + 1]
        share = (part.at - a.t[other]) / (b.t[other] - a.t[other])
        place = float((1 - share) * a.t[part.axis] + share * b.t[part.axis])
        if place < low - near or place > high + near:
            continue
        slope = (1 - share) * a.growth[part.axis] + share * b.growth[part.axis]
        if min(abs(place - low), abs(place - high)) < near:
            exact = curve.solve(a, b, share, other, part.at)
            if exact is not None:
                place, slope = float(exact.t[part.axis]), exact.growth[part.axis]
        if low <= place < high or (place == high == 1.0):
            out.append(curve.weight * int(np.sign(slope)))
    return out


def search(plane: Plane, grid: Grid) -> tuple[list[Curve], list[Part]]:
    """All curves that the counts on a grid and its extrema lead to, and the parts of grid lines
    whose counts they do not explain.
    """
    curves: list[Curve] = []
    for part in grid.parts:  # along the edge in any case: tips of curves may enter between nodes
        if part.at in (0.0, 1.0) or explained(part, curves) != part.change:
            curves += _from_part(plane, part, curves)
    for a, b in _islands(plane, grid):
        curves += _from_part(plane, Part(a, b, 0), curves)
    left = [part for part in grid.parts if explained(part, curves) != part.change]
    for part in left:  # a second look: two crossings may hide where one was expected
        curves += _from_part(plane, part, curves)
    return curves, [p for p in left if explained(p, curves) != p.change]


def _from_part(plane: Plane, part: Part, known: list[Curve]) -> list[Curve]:
    """New curves through the critical roots between two spots of one regime."""
    if not (part.first.smooth and part.last.smooth):
        return []
    a, b, out = part.first.t, part.last.t, []
    scan = Scan(plane, a, b)
    ends = scan.sample(Place(0.0, part.first), 1.0), scan.sample(Place(1.0, part.last), 0.0)
    across = np.array([-(b - a)[1], (b - a)[0]]) / np.linalg.norm(b - a)
    for found in cell(scan, *ends)[0]:
        if len(known) + len(out) >= _MOST_CURVES:
            break
        frequency, t = found.frequency or 0.0, (1 - found.value) * a + found.value * b
        if any(_passes(curve, frequency, t) for curve in [*known, *out]):
            continue
        try:
            equation = Equation(plane, plane.spot(t), frequency)
            row = across if equation.zero else np.concatenate([[0.0], across])
            out.append(trace(equation, equation.start(frequency, t, row)))
        except Lost:
            continue
    return out


def _passes(curve: Curve, frequency: float, t: Array) -> bool:
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
            a, b = curve.points[i], curve.points[i + 1]
            exact = curve.solve(a, b, share, axis, float(t[axis]))
            if exact is not None and np.linalg.norm(exact.x - x) < _SAME:
                return True
    return False


def _growth(spot: Spot) -> float:
    """Real part of the rightmost root [1/s]."""
    return float(spot.roots[0].real) if len(spot.roots) else -np.inf


def _islands(plane: Plane, grid: Grid) -> Iterator[tuple[Spot, Spot]]:
    """Pairs of spots with different verdicts, found by climbing from extrema among the nodes."""
    k = len(grid.nodes)
    for i, j in itertools.product(range(k), range(k)):
        here = grid.nodes[i][j]
        if not here.smooth:
            continue
        steps = itertools.product((-1, 0, 1), repeat=2)
        neighbours = [
            grid.nodes[i + a][j + b] for a, b in steps if 0 <= i + a < k and 0 <= j + b < k
        ]
        same = [s for s in neighbours if s is not here and s.smooth and s.regime == here.regime]
        sign = -1.0 if here.unstable else 1.0
        if len(same) < 2 or any((s.unstable == 0) != (here.unstable == 0) for s in same):
            continue
        value, around = sign * _growth(here), [sign * _growth(s) for s in same]
        if value < max(around) or -value > _PROMISING * (value - min(around)):
            continue
        top = _climb(plane, here, sign, 1.0 / (k - 1))
        if top is not None:
            yield here, top


def _climb(plane: Plane, here: Spot, sign: float, reach: float) -> Spot | None:
    """A spot with another verdict within reach of a node, or None."""
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
