"""`boundary`: where stability changes over two parameters, and how much of that is proven.

Curves of critical roots are cut where they meet, and the unstable roots on both sides are counted.
Lines on which the regime changes and roots jump across the imaginary axis are followed in steps.
A population has no roots to follow: its curves lead through the places on the lines of the grid,
and between them, at which its count changes.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.optimize

from fluidcc.analysis.characteristic import Characteristic
from fluidcc.analysis.critical_curves import Critical, Curve, Grid, Part, grid, lines, search
from fluidcc.analysis.linear import Array
from fluidcc.analysis.population_scan import CountScan
from fluidcc.analysis.roots import nearby_root
from fluidcc.analysis.scan import (
    Plane,
    Spot,
    ends_of,
    family,
    number_of,
    scale_of,
    turns,
    unit_of,
    within_of,
)
from fluidcc.errors import Fault, ScenarioError
from fluidcc.programs import compiling
from fluidcc.progress import part, reporting
from fluidcc.quantities import about, about_parameter
from fluidcc.result import Result, plain
from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import require_once

if TYPE_CHECKING:
    import xarray

    from fluidcc.analysis.scan import Model


@dataclasses.dataclass(frozen=True)
class BoundaryCurve:
    """Roots on the imaginary axis along a curve: both parameters and the frequency [rad/s], (k,).

    `kind` is `hopf`, `fold` (a root at zero, frequency 0), `jump` (roots jump across the axis
    where the marking function has a corner or a bound is reached; the frequency is that of the
    unstable side, NaN where not located) or `status` (beyond it the equilibrium is not smooth or
    there is none; the frequency is NaN). Of the last two `reason` names the change, such as
    ``average queue passes max_th``. `below` and `above` are the numbers of unstable roots on the
    two sides, None where undetermined, `certified` if proven on both at the checked points; `side`
    is that of `above`, such as ``lower flow.n``, empty if it is not known. `ends`
    is why the curve ends: `closed`, `edge` of the range, `non-smooth` (a corner or a bound, or an
    equilibrium of another status), `zero frequency`, `meets` another curve, `same stability` (on
    both sides of a corner, from there on), or `lost` (it could not be followed).
    """

    x: Array
    y: Array
    frequency: Array
    kind: str
    below: int
    above: int | None
    certified: bool
    ends: tuple[str, str]
    reason: str = ""
    side: str = ""

    @property
    def closed(self) -> bool:
        """Whether the curve comes back to its start."""
        return self.ends[0] == "closed"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists."""
        return {**plain(dataclasses.asdict(self)), "closed": self.closed}


@dataclasses.dataclass(frozen=True, repr=False)
class Boundary(Result):
    """Curves over two parameters on which stability changes.

    `secondary` are curves on which more roots cross while others are unstable. `grid` (k,) of each
    parameter and `unstable` (k, k) are the counts that the curves were checked with, NaN where
    there is no smooth equilibrium. `status` is `ok`, or `incomplete` if counts and curves do not
    agree everywhere, or a curve was lost; `message` has the place and a remedy. `certified`:
    every count was proven, and the curves account for all of them. The curves of a population are
    not certified, and it has no `secondary` ones.

    `paths`, `units` and `ranges` are those of the two parameters, `curves` the boundary, and `net`
    is the network or delay equation.

    Examples
    --------
    >>> import fluidcc as fc
    >>> scalar = fc.DelayEquation(
    ...     lambda t, y, z, p: -p["a"] * y - p["b"] * z[0], [lambda t, y, p: 1.0],
    ...     {"a": 0.5, "b": 1.0}, 0.0,
    ... )
    >>> found = fc.boundary(scalar, "a", "b", (0.1, 1.0), (0.5, 3.0), points=5)
    >>> found.certified, len(found.curves), found.paths
    (True, 1, ('a', 'b'))
    """

    _view = "equilibria.BoundaryView"

    paths: tuple[str, str]
    units: tuple[str, str]
    ranges: tuple[tuple[float, float], tuple[float, float]]
    curves: tuple[BoundaryCurve, ...]
    secondary: tuple[BoundaryCurve, ...]
    grid: tuple[Array, Array]
    unstable: Array
    status: str
    message: str
    certified: bool
    net: Model

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, None for unknown values."""
        return {
            "curves": [curve.to_dict() for curve in self.curves],
            "secondary": [curve.to_dict() for curve in self.secondary],
            "status": self.status, "message": self.message, "certified": self.certified,
            "grid": {"x": plain(self.grid[0]), "y": plain(self.grid[1]),
                     "unstable": plain(self.unstable)},
        }  # fmt: skip

    def to_xarray(self) -> xarray.Dataset:
        """All points of the curves in one row with the number of their curve, and the grid."""
        import xarray as xr

        x, y = self.paths
        number = [np.full(len(c.x), k) for k, c in enumerate(self.curves)]

        def each(name: str) -> list[Array]:
            return [np.full(len(c.x), getattr(c, name)) for c in self.curves]

        above = [np.full(len(c.x), -1 if c.above is None else c.above) for c in self.curves]
        columns = {
            "curve": (np.zeros(0, int), number, about("curve")),
            x: (np.zeros(0), [c.x for c in self.curves], about_parameter(x, self.units[0])),
            y: (np.zeros(0), [c.y for c in self.curves], about_parameter(y, self.units[1])),
            "frequency": (np.zeros(0), [c.frequency for c in self.curves], about("frequency")),
            "kind": (np.zeros(0, "U6"), each("kind"), about("kind")),
            "reason": (np.zeros(0, "U1"), each("reason"), about("reason")),
            "below": (np.zeros(0, int), each("below"), about("below")),
            "above": (np.zeros(0, int), above, about("above")),
            "side": (np.zeros(0, "U1"), each("side"), about("side")),
        }
        variables: dict[str, Any] = {
            name: ("vertex", np.concatenate([none, *each]), attributes)
            for name, (none, each, attributes) in columns.items()
        }
        attrs = {"status": self.status, "message": self.message, "certified": int(self.certified)}
        return xr.Dataset(variables, attrs=attrs)


Range = Sequence[float | str]


_GRID = 0.3  # finished share when the counts on the grid are known


@reporting
@compiling()
def boundary(
    net: Model, x: str, y: str, x_range: Range | None = None, y_range: Range | None = None,
    *, points: int = 9, progress: Callable[[float], object] | None = None,
) -> Boundary:  # fmt: skip
    """Every curve over two parameters on which the stability of the equilibrium changes.

    Parameters
    ----------
    net
        A network or a delay equation; its values of the two parameters do not matter.
    x, y
        Paths of the parameters, such as ``link.queue.w_q``.
    x_range, y_range
        Low and high end of each; text is read with its unit. Searched logarithmically over more
        than one decade. Default: from a tenth of the model's value to ten times it, within the
        bounds of the parameter.
    points
        Lines each way of the grid on which the number of unstable roots is certified.
    progress
        Called with the finished share, in [0, 1], from time to time.

    Returns
    -------
    Boundary
        `curves`, each with `x` and `y` (k,) in the units of the parameters, `frequency` (k,)
        [rad/s], and its kind; `grid` and `unstable` (k, k), the counts it was checked with.

    Raises
    ------
    ScenarioError
        For a path that does not exist or has no number, for ends out of range, and for one
        parameter twice.

    Examples
    --------
    >>> import fluidcc as fc
    >>> scalar = fc.DelayEquation(
    ...     lambda t, y, z, p: -p["a"] * y - p["b"] * z[0], [lambda t, y, p: 1.0],
    ...     {"a": 0.5, "b": 1.0}, 0.0,
    ... )
    >>> found = fc.boundary(scalar, "a", "b", (0.1, 1.0), (0.5, 3.0), points=5)
    >>> found.status, found.curves[0].kind
    ('ok', 'hopf')
    """
    ranges = [_range(net, path, given) for path, given in ((x, x_range), (y, y_range))]
    require_once(net, (x, y), "boundary")
    scales = scale_of(*ranges[0]), scale_of(*ranges[1])
    plane = Plane(family(net, [x, y], "boundary"), scales, (x, y))
    at = lines(points)
    columns = plane.columns(np.stack([at, at], axis=1))
    units = (unit_of(net, x), unit_of(net, y))
    result: Any = functools.partial(Boundary, (x, y), units, (ranges[0], ranges[1]), net=net)
    if isinstance(net, Network) and net.closure == "population":
        return _of_population(plane, at, columns, result)
    with part(0.0, _GRID):
        cells = grid(plane, points)
    with part(_GRID, 1.0):
        found, unexplained = search(plane, cells)
    cut = [piece for curve in found for piece in pieces(plane, curve, found)]
    curves = [c for c in cut if c.below == 0] + _regime_lines(plane, cells.breaks)
    further = [c for c in cut if c.below]
    faults = _faults(len(unexplained), [*curves, *further])
    counts = [float(s.unstable) if s.smooth else np.nan for s in cells.all_nodes()]
    message = "; ".join([*faults, *_undetermined(cells)])
    certified = not faults and cells.certified and all(c.certified for c in (*curves, *further))
    return result(
        tuple(curves), tuple(further), columns, np.array(counts).reshape(points, points),
        "incomplete" if faults else "ok", message, certified,
    )  # fmt: skip


def _of_population(
    plane: Plane, at: Array, columns: tuple[Array, Array], result: Callable[..., Boundary]
) -> Boundary:
    """The boundary of a population: where the count on a grid with lines `at` (k,) changes, its
    loop is critical.
    """
    scan, curves = CountScan(plane, _CLOSE), []
    for line in scan.boundary(at):
        places = np.array([change.place for change in line])
        frequency = np.array([change.frequency for change in line])
        ends: Any = ("closed", "closed")
        if line[0] is not line[-1]:
            edges = np.any((places == 0) | (places == 1), axis=1)
            ends = tuple("edge" if edges[k] else "non-smooth" for k in (0, -1))
        above = max(max(change.below, change.above) for change in line)
        x, y = plane.columns(places)
        curves.append(BoundaryCurve(x, y, frequency, "hopf", 0, above, False, ends))
    nodes = [scan.at(np.array(t)) for t in itertools.product(at, at)]
    counts = np.array([np.nan if n.unstable is None else float(n.unstable) for n in nodes])
    unknown = [n for n in nodes if n.unstable is None]
    rest = [n.message for n in unknown if n.status in ("regular", "empty")]
    named = [n.status for n in unknown if n.status not in ("regular", "empty")]
    notes = _missing(collections.Counter(named), len(nodes))
    if rest:
        notes.append(
            f"undetermined at {len(rest)} of {len(nodes)} grid points, at first: {rest[0]}"
        )
    if scan.lost:
        notes.insert(0, f"on {scan.lost} sides of the grid no curve is between unlike counts")
    status, message = "incomplete" if scan.lost else "ok", "; ".join(notes)
    counts = counts.reshape((len(at), len(at)))
    return result(tuple(curves), (), columns, counts, status, message, certified=False)


def _range(net: Model, path: str, given: Range | None) -> tuple[float, float]:
    given = _around(net, path) if given is None else given
    try:
        low, high = given
    except (TypeError, ValueError):
        raise ScenarioError(
            [Fault("boundary", path, "a range (low, high)", f"{given!r}")]
        ) from None
    return ends_of(net, path, low, high, "boundary")


def _around(net: Model, path: str) -> tuple[float, float]:
    """A range about the model's own value."""
    value, within = number_of(net, path), within_of(net, path)
    low, high = sorted((value / 10, value * 10)) if value else (-1.0, 1.0)
    if within is not None:
        least, most = within.ends
        high = high if high in within else least + 0.999 * (most - least)
        low = low if low in within else (least + 1e-6 * (high - least))
    return low, high


def _faults(unexplained: int, curves: list[BoundaryCurve]) -> list[str]:
    """Messages on unfinished parts of the search, with advice."""
    out = []
    if unexplained:
        out.append(
            f"on {unexplained} parts of the grid the numbers of unstable roots differ without a "
            "curve between: take more points, or a smaller range"
        )
    lost = [c for c in curves if "lost" in c.ends]
    if lost:
        last = lost[0]
        x, y = (last.x[-1], last.y[-1]) if last.ends[1] == "lost" else (last.x[0], last.y[0])
        out.append(
            f"{len(lost)} curves could not be followed further, the first at "
            f"({x:.6g}, {y:.6g}): take a smaller range about it"
        )
    return out


def _undetermined(cells: Grid) -> list[str]:
    """The share of the grid without a verdict, by status."""
    nodes = cells.all_nodes()
    missing = collections.Counter(
        s.equilibrium.status if s.equilibrium.status not in ("regular", "empty") else "switching"
        for s in nodes
        if not s.smooth
    )
    return _missing(missing, len(nodes))


def _missing(statuses: Mapping[str, int], count: int) -> list[str]:
    return [
        f"undetermined at {n} of {count} grid points: status of the equilibrium {status}"
        for status, n in statuses.items()
    ]


_ASIDE = (3e-3, 3e-4, 3e-5)  # in the plane: where sides are counted
_CHECKS = (0.5, 0.15, 0.85)  # of a piece: where its sides are counted
_SHORT = 1e-9
_STEP, _SHORTEST = 0.06, 2e-3  # along a change of regime
_WIDTH = 1e-6  # in the plane: how closely both sides of a change of regime are known
_MOST = 200
_CLOSE = 1e-5  # in the plane: to the boundary of a population
_NEAR = 1e-4  # in the plane: to where a curve of critical roots meets a change of regime
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
    middle = points[len(points) // 2]
    return BoundaryCurve(
        *plane.columns(places), frequency, kind, below, above, certified, ends,
        side=plane.side(middle.growth),
    )  # fmt: skip


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


def _turns(a: Spot, b: Spot) -> bool:
    """Whether one side is stable and the other is not, or whether just one has a linearisation."""
    return turns(a.unstable, b.unstable) if a.smooth and b.smooth else a.smooth != b.smooth


def _regime_lines(plane: Plane, breaks: list[Part]) -> list[BoundaryCurve]:
    """The lines through all changes of regime at which roots jump across the imaginary axis, or
    beyond which there is no smooth equilibrium.
    """
    lines: list[Array] = []
    curves = []
    for one in breaks:
        start, across = (one.first, one.last), np.eye(2)[1 - one.axis]
        if not _turns(*start) or any(_near(line, _middle(start)) for line in lines):
            continue
        ahead, end = _one_way(plane, start, across)
        back, other = _one_way(plane, start, -across)
        sides = [*reversed(back), start, *ahead]
        lines.append(_middles(sides))
        curves += _regime_curves(plane, sides, (other, end))
    return curves


def _regime_curves(
    plane: Plane, sides: list[tuple[Spot, Spot]], ends: tuple[str, str]
) -> list[BoundaryCurve]:
    """A line along a change of regime; the end of smooth equilibria is cut where the number of
    unstable roots beside it changes.
    """
    change = sides[len(sides) // 2][0].change_to(sides[len(sides) // 2][1])
    if all(s.smooth for s in sides[0]):
        worse = [a if a.unstable else b for a, b in sides]
        right = [s.roots[np.real(s.roots) > 0][:1] for s in worse]
        frequency = np.array([abs(r[0].imag) if len(r) else np.nan for r in right])
        count, proven = worse[len(worse) // 2].unstable, all(s.certified for p in sides for s in p)
        a, b = sides[len(sides) // 2]
        columns = plane.columns(_middles(sides))
        side = plane.side(b.t - a.t if b.unstable else a.t - b.t)
        return [BoundaryCurve(*columns, frequency, "jump", 0, count, proven, ends, change, side)]
    out, run = [], sides[:1]
    for before, after in itertools.pairwise(sides):
        if _smooth(before).unstable != _smooth(after).unstable:
            last, first = _where_count_changes(plane, before, after)
            out.append([*run, last])
            run = [first]
        run.append(after)
    ends_of_runs = itertools.pairwise([ends[0], *["meets"] * len(out), ends[1]])
    curves = []
    for pairs, own in zip([*out, run], ends_of_runs, strict=True):
        columns = plane.columns(_middles(pairs))
        proven = all(_smooth(pair).certified for pair in pairs)
        a, b = pairs[len(pairs) // 2]
        side, count = plane.side(b.t - a.t if a.smooth else a.t - b.t), _smooth(pairs[-1]).unstable
        nothing = np.full(len(pairs), np.nan)
        curves.append(
            BoundaryCurve(*columns, nothing, "status", count, None, proven, own, change, side)
        )
    return curves


def _smooth(pair: tuple[Spot, Spot]) -> Spot:
    """That of the two sides which has a linearisation."""
    return pair[0] if pair[0].smooth else pair[1]


def _where_count_changes(
    plane: Plane, before: tuple[Spot, Spot], after: tuple[Spot, Spot]
) -> tuple[tuple[Spot, Spot], tuple[Spot, Spot]]:
    """Two neighbours of a line, moved together to where the number of unstable roots changes."""
    while (reach := float(np.linalg.norm(_middle(after) - _middle(before)))) > _NEAR:
        here, way = (_middle(before) + _middle(after)) / 2, _middle(after) - _middle(before)
        pair = _pair(plane, here, way / reach, before, reach)
        if pair is None:
            break
        same = _smooth(pair).unstable == _smooth(before).unstable
        before, after = (pair, after) if same else (before, pair)
    return before, after


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
        if pair is None or not _turns(*pair):
            end = "lost" if pair is None else "same stability"
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


def _middles(pairs: Sequence[tuple[Spot, Spot]]) -> Array:
    return np.array([_middle(pair) for pair in pairs])


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
    for sign, wide in itertools.product((1.0, -1.0), (1.0, 4.0)):
        aside = sign * wide * reach * across
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
