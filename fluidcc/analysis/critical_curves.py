"""Curves of roots on the imaginary axis over two parameters: traced by pseudo-arclength, and
searched for until none is missing.

Critical roots are zeros of a smooth function of frequency and both parameters: where the
characteristic matrix M(i w) is nearly singular, bordering it by approximate null vectors gives a
scalar that vanishes exactly where M is singular and is smooth around there; its derivatives follow
from the solutions of the bordered systems (Govaerts, 2000, 3.2).

Counts of unstable roots on a grid imply crossings on its lines; a curve is traced from each
crossing that known curves do not explain, until all are explained. Islands smaller than a cell are
looked for where the growth rate has an extremum among the nodes.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Hashable, Iterator

import numpy as np
import scipy.optimize

from fluidcc.analysis.crossings import cell
from fluidcc.analysis.linear import Array
from fluidcc.analysis.scan import Place, Plane, Scan, Spot, turns
from fluidcc.progress import counted

_STEP = 1e-6  # of the range: differences along the parameters
_FREQUENCY = 0.25  # weight of the angle frequency times lag against parameters in [0, 1]
_ITERATIONS = 12
_DONE = 1e-11
_NEARLY = 1e-8  # good enough where rounding stops the iteration
_FIRST, _LONGEST, _SHORTEST = 0.01, 0.04, 1e-7  # steps along a curve
_BEND = 0.97  # least cosine between neighbouring tangents
_MOST = 2000  # points of a curve
_ZERO = "zero frequency"


class Lost(Exception):
    """No critical root is found: `why` is `non-smooth`, `range`, `zero frequency` or `search`."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclasses.dataclass(frozen=True)
class Critical:
    """A root i w on the axis, or a point near one.

    `x` are its coordinates: weighted frequency (unless it is a zero root) and place in the plane;
    `residual` vanishes at a root, `rate` and `slopes` (2,) the derivatives of the bordered
    determinant by s and in the plane, `right` and `left` the null vectors.
    """

    x: Array
    frequency: float
    spot: Spot
    residual: Array
    right: Array
    left: Array
    rate: complex
    slopes: Array

    @property
    def t(self) -> Array:
        """Place in the plane."""
        return self.x[-2:]

    @property
    def jacobian(self) -> Array:
        """Derivatives of the residual by the coordinates."""
        if not self.frequency:
            return np.real(self.slopes)[None]
        every = np.array([1j * self.rate * self.frequency / self.x[0], *self.slopes])
        return np.stack([np.real(every), np.imag(every) / self.frequency])

    @property
    def growth(self) -> Array:
        """Gradient of the root's real part in the plane (2,)."""
        return np.real(-self.slopes / self.rate)

    def tangent(self, like: Array | None = None) -> Array:
        """Unit vector along the curve, in the sense of `like`."""
        way = np.linalg.svd(self.jacobian)[2][-1]
        return -way if like is not None and way @ like < 0 else way


class Equation:
    """The condition for a root on the axis within one regime; `zero` is for roots at s = 0."""

    def __init__(self, plane: Plane, start: Spot, frequency: float) -> None:
        self.plane, self.zero = plane, frequency == 0.0
        self.regime: Hashable = start.regime
        longest = float(start.linear.lag.max(initial=0.0))
        self.unit = _FREQUENCY * (longest or 1.0)
        self._borrow(*_null_vectors(start.linear.matrix(1j * frequency)))

    def coordinates(self, frequency: float, t: Array) -> Array:
        """Coordinates of a root i w at t."""
        return np.asarray([*t] if self.zero else [self.unit * frequency, *t], float)

    def _borrow(self, right: Array, left: Array) -> None:
        """Use these null vectors as borders of the matrix from now on."""
        self._right = right.conj() / np.linalg.norm(right)
        self._left = left.conj() / np.linalg.norm(left)

    def _value(self, x: Array) -> Critical:
        """The point at x, without its slopes in the plane."""
        frequency = 0.0 if self.zero else float(x[0]) / self.unit
        spot = self._spot(x[-2:])
        matrix = spot.linear.matrix(1j * frequency)
        n = len(matrix)
        if n != len(self._left):
            raise Lost("non-smooth")
        whole = np.zeros((n + 1, n + 1), complex)
        whole[:n, :n], whole[:n, n], whole[n, :n] = matrix, self._left, self._right
        unit = np.zeros(n + 1)
        unit[n] = 1.0
        try:
            right, left = np.linalg.solve(whole, unit), np.linalg.solve(whole.T, unit)
        except np.linalg.LinAlgError:
            raise Lost("search") from None
        g, right, left = right[n], right[:n], left[:n]
        rate = complex(-left @ spot.linear.matrix_slope(1j * frequency) @ right)
        residual = np.array([g.real] if self.zero else [g.real, g.imag / frequency])
        return Critical(x, frequency, spot, residual, right, left, rate, np.zeros(2))

    def _spot(self, t: Array) -> Spot:
        if not (np.all(t >= 0) and np.all(t <= 1)):
            raise Lost("range")
        spot = self.plane.spot(t)
        if not spot.smooth or spot.regime != self.regime:
            raise Lost("non-smooth")
        return spot

    def _with_slopes(self, point: Critical) -> Critical:
        s, slopes = 1j * point.frequency, np.empty(2, complex)
        here = point.spot.linear.matrix(s)
        for k in range(2):
            moved, step = self._neighbour(point.spot.t, k)
            slopes[k] = -point.left @ ((moved.linear.matrix(s) - here) / step) @ point.right
        return dataclasses.replace(point, slopes=slopes)

    def _neighbour(self, t: Array, k: int) -> tuple[Spot, float]:
        """A spot a little further along parameter k, or a little before, within the regime."""
        for step in (-_STEP, _STEP) if t[k] > 0.5 else (_STEP, -_STEP):
            there = t.copy()
            there[k] += step
            try:
                return self._spot(there), step
            except Lost:
                continue
        raise Lost("non-smooth")

    def solve(self, x: Array, jacobian: Array, row: Array, target: float) -> Critical:
        """The critical root with row . x = target near x, by Broyden's method.

        `jacobian` is that of a point nearby. Raises Lost if there is none.
        """
        slope = np.vstack([jacobian, row])
        value = self._value(x)
        residual = np.append(value.residual, row @ x - target)
        size = np.inf
        for _ in range(_ITERATIONS):
            try:
                step = np.linalg.solve(slope, -residual)
            except np.linalg.LinAlgError:
                raise Lost("search") from None
            last, size = size, float(np.linalg.norm(step))
            if not size < 0.5 or (size > 2 * last and size > _NEARLY):
                raise Lost("search")
            x = _snap_to_edge(x + step)
            if not self.zero and x[0] <= 0:
                raise Lost(_ZERO)
            value = self._value(x)
            new = np.append(value.residual, row @ x - target)
            if size <= _DONE or (size <= _NEARLY and size > 0.3 * last):
                break
            slope = slope + np.outer(new - residual - slope @ step, step) / (step @ step)
            residual = new
        else:
            if size > _NEARLY:
                raise Lost("search")
        found = self._with_slopes(value)
        self._borrow(found.right, found.left)
        return found

    def start(self, frequency: float, t: Array, row: Array) -> Critical:
        """The critical root near a first approximation, on the line through it across `row`."""
        x = self.coordinates(frequency, t)
        near = self._with_slopes(self._value(x))
        return self.solve(x, near.jacobian, row, float(row @ x))


def _snap_to_edge(x: Array) -> Array:
    """Coordinates, moved back onto the edge of the range where rounding took them off it."""
    t = x[-2:]
    edge = np.where(t < 0.5, 0.0, 1.0)
    return np.concatenate([x[:-2], np.where(np.abs(t - edge) < 1e-13, edge, t)])


def _null_vectors(matrix: Array) -> tuple[Array, Array]:
    """Approximate right and left null vectors of a nearly singular matrix."""
    u, _, v = np.linalg.svd(matrix)
    return v[-1].conj(), u[:, -1].conj()


@dataclasses.dataclass(frozen=True)
class Curve:
    """A curve of critical roots, in order, and why it ends at either side.

    Ends are `edge` of the range, `non-smooth` (a corner of a marking function, a cap, an
    equilibrium of another status), `zero frequency`, `lost`; both are `closed` if the curve is.
    """

    points: tuple[Critical, ...]
    ends: tuple[str, str]
    equation: Equation

    @property
    def closed(self) -> bool:
        """Whether the curve comes back to its start."""
        return self.ends[0] == "closed"

    @property
    def places(self) -> Array:
        """Points in the plane (k, 2), the first again at the end of a closed curve."""
        return np.array([p.t for p in self.points])

    @property
    def weight(self) -> int:
        """By how much the number of unstable roots changes across the curve."""
        return 1 if self.equation.zero else 2

    def solve(
        self, a: Critical, b: Critical, share: float, axis: int | None = None, value: float = 0.0
    ) -> Critical | None:
        """The critical root a share of the way from a to b: on the line across their chord, or
        where parameter `axis` has a value.
        """
        x = (1 - share) * a.x + share * b.x
        if axis is None:
            row = (b.x - a.x) / np.linalg.norm(b.x - a.x)
            value = float(row @ x)
        else:
            x[axis - 2] = value
            row = np.eye(len(x))[axis - 2]
        try:
            return self.equation.solve(x, a.jacobian, row, value)
        except Lost:
            return None


def trace(equation: Equation, start: Critical) -> Curve:
    """The whole curve through a critical root."""
    ahead, end = _one_way(equation, start, start.tangent())
    if end == "closed":
        return Curve((start, *ahead), ("closed", "closed"), equation)
    back, other = _one_way(equation, start, -start.tangent())
    return Curve((*reversed(back), start, *ahead), (other, end), equation)


def _one_way(equation: Equation, start: Critical, tangent: Array) -> tuple[list[Critical], str]:
    """The points after a start in one direction, and why they end."""
    found: list[Critical] = []
    if _leaves(start.t, tangent[-2:]):
        return found, "edge"
    here, step, closing, end = start, _FIRST, False, ""
    while len(found) < _MOST:
        if len(found) > 2 and _closes(start, here, tangent, step):
            return [*found, start], "closed"
        try:
            new = _next(equation, here, tangent, step)
        except Lost as lost:
            at_edge = _at_edge(equation, here, tangent, step) if lost.why == "range" else None
            if at_edge is not None:
                return [*found, at_edge], "edge"
            if lost.why in ("non-smooth", _ZERO):
                end, closing = lost.why, True
            step /= 2
            if step < _SHORTEST:
                return found, end or ("edge" if lost.why == "range" else "lost")
            continue
        way = new.tangent(tangent)
        bend = float(way @ tangent)
        if bend < _BEND and step > 1e3 * _SHORTEST:
            step /= 2
            continue
        found.append(new)
        here, tangent = new, way
        step = step / 2 if closing else min(_LONGEST, step * (1.6 if bend > 0.99 else 1.0))
        if closing and step < _SHORTEST:
            return found, end
    return found, "lost"


def _leaves(t: Array, way: Array) -> bool:
    """Whether a direction points out of the range from a point on its edge."""
    return bool(np.any(((t == 0) & (way < 0)) | ((t == 1) & (way > 0))))


def _closes(start: Critical, here: Critical, tangent: Array, step: float) -> bool:
    """Whether the start of the curve lies a step ahead."""
    first = start.x - here.x
    size = float(np.linalg.norm(first))
    if size > 1.5 * step:
        return False
    straight = size == 0 or first @ tangent > 0.9 * size
    return bool(straight and abs(start.tangent() @ tangent) > 0.9)


def _next(equation: Equation, here: Critical, tangent: Array, step: float) -> Critical:
    ahead = here.x + step * tangent
    if np.any(ahead[-2:] < 0) or np.any(ahead[-2:] > 1):
        raise Lost("range")
    if not equation.zero and ahead[0] <= 0:
        raise Lost(_ZERO)
    new = equation.solve(ahead, here.jacobian, tangent, float(tangent @ ahead))
    if np.linalg.norm(new.x - ahead) > 0.5 * step:
        raise Lost("search")
    return new


def _at_edge(equation: Equation, here: Critical, tangent: Array, step: float) -> Critical | None:
    """The point where the curve meets the edge of the range that lies ahead."""
    count = len(tangent)
    ways = []
    for k in (count - 2, count - 1):
        if tangent[k]:
            bound = 1.0 if tangent[k] > 0 else 0.0
            ways.append(((bound - here.x[k]) / tangent[k], k, bound))
    for distance, k, bound in sorted(ways):
        if distance > 2 * step:
            continue
        ahead = here.x + distance * tangent
        ahead[-2:] = np.clip(ahead[-2:], 0.0, 1.0)
        ahead[k] = bound
        try:
            found = equation.solve(ahead, here.jacobian, np.eye(count)[k], bound)
        except Lost:
            continue
        if np.linalg.norm(found.x - here.x) < 3 * step:
            return found
    return None


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
    nodes = [[plane.spot(np.array([x, y])) for y in t] for x in counted(t.tolist())]
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
    # along the edge in any case: tips of curves may enter between nodes
    for part in counted(grid.parts):
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
        if len(same) < 2 or any(turns(s.unstable, here.unstable) for s in same):
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
