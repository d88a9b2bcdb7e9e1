"""Counts of unstable roots on a grid, and what curves must cross on its lines to explain them."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from fluidcc.analysis.boundary.critical import Critical, Lost
from fluidcc.analysis.boundary.plane import Plane, Spot
from fluidcc.analysis.boundary.trace import Traced
from fluidcc.analysis.linear import Array
from fluidcc.analysis.scan import Place

_ASIDE = 0.05  # of a cell
_CLEAR = 1e-5  # of a line between nodes: from a change of regime
_CLOSE = 0.15  # of a part: how near its ends a crossing is solved for


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a grid line within one regime: both ends, parameter `axis` varies."""

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
class Break:
    """A change of regime on a grid line: the spots just before and after it."""

    before: Spot
    after: Spot
    axis: int


@dataclasses.dataclass(frozen=True)
class Grid:
    """Spots at the nodes (k, k), parts of all lines between them, and changes of regime."""

    nodes: tuple[tuple[Spot, ...], ...]
    parts: tuple[Part, ...]
    breaks: tuple[Break, ...]

    @property
    def certified(self) -> bool:
        """Whether every count was proven."""
        spots = [s for p in self.parts for s in (p.first, p.last)]
        return all(s.counted.number is not None for s in spots)

    def all_nodes(self) -> list[Spot]:
        """The spots at the nodes."""
        return list(itertools.chain.from_iterable(self.nodes))


def lines(points: int) -> Array:
    """Where the lines are: nearly even, but not on round values, where roots may be critical."""
    inner = np.arange(1, points - 1)
    aside = _ASIDE * np.sin(2.4 * inner)
    return np.array([0.0, *((inner + aside) / (points - 1)), 1.0])


def grid(plane: Plane, points: int) -> Grid:
    """The grid with `points` lines each way."""
    t = lines(points)
    nodes = [[plane.spot(np.array([x, y])) for y in t] for x in t]
    parts: list[Part] = []
    breaks: list[Break] = []
    for i, j in itertools.product(range(points), range(points)):
        for axis, (k, m) in enumerate(((i + 1, j), (i, j + 1))):
            if k < points and m < points:
                pieces = _split(plane, nodes[i][j], nodes[k][m], axis)
                parts += [Part(a, b, axis) for a, b in pieces if a.smooth and _apart(a, b)]
                pairs = [(b, c) for (_, b), (c, _) in itertools.pairwise(pieces)]
                breaks += [Break(b, c, axis) for b, c in pairs]
    return Grid(tuple(map(tuple, nodes)), tuple(parts), tuple(breaks))


def _apart(a: Spot, b: Spot) -> bool:
    return float(np.linalg.norm(b.t - a.t)) > 1e-9


def _split(plane: Plane, a: Spot, b: Spot, axis: int) -> list[tuple[Spot, Spot]]:
    """The way from a to b cut where the regime changes."""
    if a.regime == b.regime:
        return [(a, b)]
    scan = plane.along(a.t, b.t)
    out, start = [], a
    for before, after in scan.breaks(scan.place(0.0), scan.place(1.0)):
        ends = [_clear(plane, a, b, before, -_CLEAR), _clear(plane, a, b, after, _CLEAR)]
        out.append((start, ends[0]))
        start = ends[1]
    return [*out, (start, b)]


def _clear(plane: Plane, a: Spot, b: Spot, place: Place, step: float) -> Spot:
    """A place beside a change of regime, moved so far that derivatives are those of one side."""
    moved = plane.spot(a.t + (place.t + step) * (b.t - a.t)) if 0 < place.t + step < 1 else None
    if moved is not None and moved.regime == place.regime:
        return moved
    return Spot((1 - place.t) * a.t + place.t * b.t, place.rest)


def explained(part: Part, curves: list[Traced]) -> int:
    """The change that the curves found make along a part of a line."""
    return sum(change for curve in curves for change in _changes(part, curve))


def _changes(part: Part, curve: Traced) -> list[int]:
    """What a curve changes at each of its crossings of a part."""
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
            exact = on_line(curve, a, b, share, other, part.at)
            if exact is not None:
                place, slope = float(exact.t[part.axis]), exact.growth[part.axis]
        if low <= place < high or (place == high == 1.0):
            out.append(curve.weight * int(np.sign(slope)))
    return out


def on_line(
    curve: Traced, a: Critical, b: Critical, share: float, axis: int, value: float
) -> Critical | None:
    """Where a curve between two of its points has parameter `axis` at `value`, solved for."""
    x = (1 - share) * a.x + share * b.x
    x[len(x) - 2 + axis] = value
    row = np.zeros(len(x))
    row[len(x) - 2 + axis] = 1.0
    try:
        return curve.equation.solve(x, a.jacobian, row, value)
    except Lost:
        return None
