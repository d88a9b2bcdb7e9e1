"""The curves of a boundary, with the counts of unstable roots on both sides.

Curves of critical roots are cut where they meet. Lines on which the regime changes and roots jump
across the imaginary axis are followed in steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import scipy.optimize

from fluidcc.analysis.boundary.critical import Critical, Curve
from fluidcc.analysis.boundary.result import BoundaryCurve
from fluidcc.analysis.boundary.search import Part
from fluidcc.analysis.characteristic import Characteristic
from fluidcc.analysis.linear import Array
from fluidcc.analysis.roots import nearby_root
from fluidcc.analysis.scan import Plane, Spot

_ASIDE = (3e-3, 3e-4, 3e-5)  # in the plane: where sides are counted
_CHECKS = (0.5, 0.15, 0.85)  # of a piece: where its sides are counted
_SHORT = 1e-9
_STEP, _SHORTEST = 0.06, 2e-3  # along a change of regime
_WIDTH = 1e-6  # in the plane: how closely both sides of a change of regime are known
_MOST = 200
_ON_LINE = 0.03  # in the plane: changes of regime that lie on a line already followed


def pieces(plane: Plane, curve: Curve, others: list[Curve]) -> list[BoundaryCurve]:
    """A curve cut where other roots become critical, each piece with its counts."""
    places = sorted(_meetings(curve, others))
    if not places:
        return [_count_sides(plane, curve, curve.points, curve.ends)]
    last = float(len(curve.points) - 1)
    cuts = [0.0, *places, last]
    out = []
    for a, b in itertools.pairwise(cuts):
        if b - a < _SHORT:
            continue
        inner = curve.points[int(np.floor(a)) + 1 : int(np.ceil(b))]
        first, end = between(curve, a), between(curve, b)
        points = tuple(p for p in (first, *inner, end) if p is not None)
        ends = curve.ends[0] if a == 0.0 else "meets", curve.ends[1] if b == last else "meets"
        out.append((points, ends))
    if curve.closed and len(out) > 1:  # no cut where the curve was begun
        points, ends = out.pop()
        out[0] = ((*points[:-1], *out[0][0]), ("meets", out[0][1][1]))
    return [_count_sides(plane, curve, points, ends) for points, ends in out if len(points) > 1]


def between(
    curve: Curve, place: float, points: tuple[Critical, ...] | None = None
) -> Critical | None:
    """The critical root at a place, point number plus share, along a curve or part of one."""
    points = points or curve.points
    i = min(int(place), len(points) - 2)
    a, b, share = points[i], points[i + 1], place - i
    if share in (0.0, 1.0):
        return b if share else a
    return curve.solve(a, b, share)


def _meetings(curve: Curve, others: list[Curve]) -> list[float]:
    """Places at which another root becomes critical."""
    found = []
    for other in others:
        for place, frequency in _find_meets(curve, other):
            found.append(_refine(curve, place, _real_part(frequency)))
    if curve.equation.zero:  # if a second root reaches zero, the first one changes direction
        slope = [1 / p.growth[int(np.argmax(np.abs(p.growth)))] for p in curve.points]
        for i in range(len(slope) - 1):
            a, b = curve.points[i], curve.points[i + 1]
            if a.growth @ b.growth < 0:
                axis = int(np.argmax(np.abs(a.growth)))
                found.append(_refine(curve, i + 0.5, lambda p, k=axis: 1 / float(p.growth[k])))
    return found


def _find_meets(curve: Curve, other: Curve) -> list[tuple[float, float]]:
    """Crossings of a curve with another in the plane, and the other's frequency there."""
    out = []
    p, q = curve.places, other.places
    for i in range(len(p) - 1):
        low, high = np.minimum(p[i], p[i + 1]), np.maximum(p[i], p[i + 1])
        near = np.all((np.maximum(q[:-1], q[1:]) >= low) & (np.minimum(q[:-1], q[1:]) <= high), 1)
        for j in np.flatnonzero(near):
            if curve is other and abs(i - j) < 2:
                continue
            shares = _intersection(p[i], p[i + 1], q[j], q[j + 1])
            if shares is not None:
                a, b = other.points[j].frequency, other.points[j + 1].frequency
                out.append((i + shares[0], (1 - shares[1]) * a + shares[1] * b))
    return out


def _intersection(a: Array, b: Array, c: Array, d: Array) -> tuple[float, float] | None:
    matrix = np.stack([b - a, c - d], axis=1)
    if abs(np.linalg.det(matrix)) < 1e-14:
        return None
    x, y = np.linalg.solve(matrix, c - a)
    return (float(x), float(y)) if 0 <= x < 1 and 0 <= y < 1 else None


def _real_part(frequency: float) -> Callable[[Critical], float]:
    """Real part of the root near i times a frequency."""

    def function(point: Critical) -> float:
        root = nearby_root(Characteristic(point.spot.linear), complex(0.0, frequency))
        return root.real

    return function


def _refine(curve: Curve, place: float, function: Callable[[Critical], float]) -> float:
    """The zero of a function along a curve near a place; the place itself if none is nearby."""

    def value(at: float) -> float:
        point = between(curve, at)
        if point is None:
            raise ArithmeticError
        return function(point)

    last = len(curve.points) - 1
    for width in (0.05, 0.5, 1.0):
        low, high = max(place - width, 0.0), min(place + width, float(last))
        try:
            if value(low) * value(high) < 0:
                found: float = scipy.optimize.brentq(value, low, high, xtol=1e-10)  # type: ignore[assignment]
                return float(found)
        except ArithmeticError:
            continue
    return place


def _count_sides(
    plane: Plane, curve: Curve, points: tuple[Critical, ...], ends: tuple[str, str]
) -> BoundaryCurve:
    """Count both sides of a piece."""
    weight, seen = curve.weight, []
    places = np.array([p.t for p in points])
    along = np.cumsum([0.0, *np.linalg.norm(np.diff(places, axis=0), axis=1)])
    for share in _CHECKS:
        place = float(np.interp(share * along[-1], along, np.arange(len(points))))
        point = between(curve, place, points)
        if point is None:
            continue
        sides = _sides(plane, point, curve, seen[0][:2] if seen else None)
        if sides is not None:
            seen.append((sides[0].unstable, sides[1].unstable, all(s.certified for s in sides)))
    below, above, certified = seen[0] if seen else (0, weight, False)
    certified &= all(s == (below, above, True) for s in seen) and above == below + weight
    kind, frequency = "fold" if weight == 1 else "hopf", np.array([p.frequency for p in points])
    return BoundaryCurve(*plane.columns(places), frequency, kind, below, above, certified, ends)


def _sides(
    plane: Plane, point: Critical, curve: Curve, expected: tuple[int, int] | None
) -> tuple[Spot, Spot] | None:
    """Spots on the less and the more unstable side of a curve, near enough to differ by it only."""
    way = point.growth / np.linalg.norm(point.growth)
    for distance in _ASIDE:
        ts = point.t - distance * way, point.t + distance * way
        if any(np.any(t < 0) or np.any(t > 1) for t in ts):
            continue
        below, above = plane.spot(ts[0]), plane.spot(ts[1])
        if any(not s.smooth or s.regime != curve.equation.regime for s in (below, above)):
            continue
        counts = (below.unstable, above.unstable)
        alone = counts[1] == counts[0] + curve.weight and expected in (None, counts)
        if alone or distance == _ASIDE[-1]:
            return below, above
    return None


def _jumps(a: Spot, b: Spot) -> bool:
    """Whether one side is stable and the other not."""
    return a.smooth and b.smooth and (a.unstable == 0) != (b.unstable == 0)


def kink_lines(plane: Plane, breaks: list[Part]) -> list[BoundaryCurve]:
    """The lines through all changes of regime at which roots jump across the imaginary axis."""
    lines: list[Array] = []
    curves = []
    for one in breaks:
        start, across = (one.first, one.last), np.eye(2)[1 - one.axis]
        if not _jumps(*start) or any(_near(line, _middle(start)) for line in lines):
            continue
        ahead, end = _one_way(plane, start, across)
        back, other = _one_way(plane, start, -across)
        sides = [*reversed(back), start, *ahead]
        lines.append(np.array([_middle(pair) for pair in sides]))
        worse = [a if a.unstable else b for a, b in sides]
        right = [s.roots[np.real(s.roots) > 0][:1] for s in worse]
        frequency = np.array([abs(r[0].imag) if len(r) else np.nan for r in right])
        count = worse[len(worse) // 2].unstable
        proven = all(s.certified for pair in sides for s in pair)
        x, y = plane.columns(lines[-1])
        curves.append(BoundaryCurve(x, y, frequency, "jump", 0, count, proven, (other, end)))
    return curves


def _near(p: Array, place: Array) -> bool:
    """Whether a place lies on a line through points (k, 2)."""
    if len(p) == 1:
        return bool(np.linalg.norm(p[0] - place) < _ON_LINE)
    a, way = p[:-1], np.diff(p, axis=0)
    share = np.sum((place - a) * way, axis=1) / np.maximum(np.sum(way**2, axis=1), 1e-300)
    nearest = a + np.clip(share, 0.0, 1.0)[:, None] * way
    return bool(np.min(np.linalg.norm(nearest - place, axis=1)) < _ON_LINE)


def _one_way(
    plane: Plane, start: tuple[Spot, Spot], way: Array
) -> tuple[list[tuple[Spot, Spot]], str]:
    """Points after a start in one direction while stability changes there, and why they end."""
    found: list[tuple[Spot, Spot]] = []
    here, step, end = _middle(start), _STEP / 4, "lost"
    while len(found) < _MOST and step >= _SHORTEST:
        ahead = here + step * way
        at_edge = bool(np.any(ahead <= 0) or np.any(ahead >= 1))
        if at_edge:
            ahead = _on_edge(here, way)
        pair = _pair(plane, ahead, way, start, step)
        if pair is None or not _jumps(*pair):
            end = "lost" if pair is None else "one verdict"
            step /= 2
            continue
        new = _middle(pair)
        found.append(pair)
        if at_edge:
            return found, "edge"
        way = (new - here) / np.linalg.norm(new - here)
        here, step = new, min(2 * step, _STEP)
    return found, end


def _middle(pair: tuple[Spot, Spot]) -> Array:
    return (pair[0].t + pair[1].t) / 2


def _on_edge(here: Array, way: Array) -> Array:
    """The point at which the ray from here leaves the range."""
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(way > 0, (1 - here) / way, np.where(way < 0, -here / way, np.inf))
    return np.clip(here + np.min(reach) * way, 0.0, 1.0)


def _pair(
    plane: Plane, at: Array, way: Array, like: tuple[Spot, Spot], reach: float
) -> tuple[Spot, Spot] | None:
    """Both sides of the change of regime on the line through a point normal to `way`."""
    across = np.array([-way[1], way[0]])
    if np.any(at == 0) or np.any(at == 1):  # along the edge
        across = np.where((at == 0) | (at == 1), 0.0, np.sign(across) + (across == 0))
    first, last = like[0].regime, like[1].regime
    for sign, part in itertools.product((1.0, -1.0), (1.0, 4.0)):
        aside = sign * part * reach * across
        low, high = np.clip(at - aside, 0.0, 1.0), np.clip(at + aside, 0.0, 1.0)
        if plane.spot(low).regime != first or plane.spot(high).regime != last:
            continue
        while np.linalg.norm(high - low) > _WIDTH:
            middle = (low + high) / 2
            regime = plane.spot(middle).regime
            if regime not in (first, last):
                return None
            low, high = (middle, high) if regime == first else (low, middle)
        a, b = plane.spot(low - (high - low)), plane.spot(high + (high - low))
        return (a, b) if (a.regime, b.regime) == (first, last) else None
    return None
