"""Curves of critical roots cut where they meet, with the counts of unstable roots on both sides."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np
import scipy.optimize

from fluidcc.analysis.boundary.critical import Critical, Curve
from fluidcc.analysis.characteristic import Characteristic
from fluidcc.analysis.linear import Array
from fluidcc.analysis.roots import nearby_root
from fluidcc.analysis.scan import Plane, Spot

_ASIDE = (3e-3, 3e-4, 3e-5)  # in the plane: where sides are counted
_CHECKS = (0.5, 0.15, 0.85)  # of a piece: where its sides are counted
_SHORT = 1e-9


@dataclasses.dataclass(frozen=True)
class Piece:
    """Critical roots of one curve between two meetings, and the counts on both sides."""

    points: tuple[Critical, ...]
    zero: bool
    below: int
    above: int
    certified: bool
    ends: tuple[str, str]


def pieces(plane: Plane, curve: Curve, others: list[Curve]) -> list[Piece]:
    """A curve cut where other roots become critical, each piece with its counts."""
    places = sorted(_meetings(curve, others))
    if not places:
        return [_judged(plane, curve, curve.points, curve.ends)]
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
    return [_judged(plane, curve, points, ends) for points, ends in out if len(points) > 1]


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
        for place, frequency in _crossed(curve, other):
            found.append(_settled(curve, place, _real_part(frequency)))
    if curve.equation.zero:  # a second root at zero makes the first turn round
        slope = [1 / p.growth[int(np.argmax(np.abs(p.growth)))] for p in curve.points]
        for i in range(len(slope) - 1):
            a, b = curve.points[i], curve.points[i + 1]
            if a.growth @ b.growth < 0:
                axis = int(np.argmax(np.abs(a.growth)))
                found.append(_settled(curve, i + 0.5, lambda p, k=axis: 1 / float(p.growth[k])))
    return found


def _crossed(curve: Curve, other: Curve) -> list[tuple[float, float]]:
    """Where a curve crosses another in the plane, and the other's frequency there."""
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


def _settled(curve: Curve, place: float, function: Callable[[Critical], float]) -> float:
    """The zero of a function along a curve near a place; the place where it has none nearby."""

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


def _judged(
    plane: Plane, curve: Curve, points: tuple[Critical, ...], ends: tuple[str, str]
) -> Piece:
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
            seen.append((sides[0].unstable, sides[1].unstable,
                         all(s.counted.number is not None for s in sides)))  # fmt: skip
    if not seen:
        return Piece(points, curve.equation.zero, 0, weight, False, ends)
    below, above, proven = seen[0]
    agree = all(s[:2] == (below, above) and s[2] for s in seen) and above == below + weight
    return Piece(points, curve.equation.zero, below, above, proven and agree, ends)


def _sides(
    plane: Plane, point: Critical, curve: Curve, expected: tuple[int, int] | None
) -> tuple[Spot, Spot] | None:
    """Spots on the less and the more unstable side of a curve, as near as they must be."""
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
