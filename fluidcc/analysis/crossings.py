"""Every change of stability along one parameter.

The number of unstable roots is certified on a grid; between its points the roots near the imaginary
axis are followed with their velocities, so that two crossings in one cell do not hide each other,
and every crossing is solved for. Stability is not monotone: nothing here assumes one crossing.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.bisection import bisect
from fluidcc.analysis.characteristic import Characteristic
from fluidcc.analysis.linear import Array
from fluidcc.analysis.normal_form import normal_form
from fluidcc.analysis.population_scan import CountScan
from fluidcc.analysis.roots import nearby_root
from fluidcc.analysis.scan import (
    Place,
    Plane,
    Sample,
    Scale,
    Scan,
    count_together,
    ends_of,
    equilibrium_of,
    family,
    scale_of,
    turns,
    unit_of,
)
from fluidcc.programs import compiling
from fluidcc.progress import counted, part, report, reporting
from fluidcc.quantities import about, about_parameter
from fluidcc.result import Result, plain

if TYPE_CHECKING:
    import xarray

    from fluidcc.analysis.scan import Model

_DEEPEST = 9  # halvings of a cell while its roots cannot be matched
_DOUBT = 0.1  # of a root's way: largest misfit between its velocities and its ends
_CLOSE = 1e-7  # of the range: to a crossing of a population
_EDGE = 1e-4  # of the range: to where a population has no equilibrium
_PLACED, _SAMPLED, _FOLLOWED = 0.3, 0.6, 0.9  # finished shares after steps of the search
_GRAZE = 0.1  # of a root's way: how near the axis a turning point is looked at closely


@dataclasses.dataclass(frozen=True)
class Crossing:
    """Roots on the imaginary axis: value of the parameter, frequency [rad/s], what the equilibrium
    becomes with growing parameter, and the number of unstable roots below and above the value.

    `lyapunov` is the first Lyapunov coefficient (negative where a stable cycle grows out of it) and
    `criticality` what follows: `supercritical`, `subcritical` or `degenerate`; None where there is
    no Hopf point with derivatives. `jump`: roots jump across the axis at a corner of the marking
    function, or where a bound is reached, instead of crossing it, and `reason` says which; the
    frequency is then that of the rightmost root on the unstable side, None where that root was not
    located.
    """

    value: float
    frequency: float | None
    becomes: str
    below: int
    above: int
    jump: bool = False
    lyapunov: float | None = None
    criticality: str | None = None
    reason: str = ""

    @property
    def period(self) -> float | None:
        """Period of the oscillation there [s]; None without a frequency."""
        return 2 * math.pi / self.frequency if self.frequency else None

    @property
    def kind(self) -> str:
        """Its kind in words: Hopf point, fold, or what is passed where roots jump."""
        if self.jump:
            return self.reason or "change of regime"
        names = ("Hopf" if self.frequency else "fold", self.criticality)
        return ", ".join(filter(None, names))


@dataclasses.dataclass(frozen=True)
class Gap:
    """A part of the range without a smooth equilibrium, hence undetermined, and its status."""

    low: float
    high: float
    status: str

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}: {self.status}"


@dataclasses.dataclass(frozen=True, repr=False)
class Crossings(Result):
    """Changes of stability along one parameter, in order.

    `secondary` are crossings of more roots while others are unstable; `without_equilibrium` the
    ranges without a smooth equilibrium; `stable_at_low` is None if the range begins with one.
    `certified`: every count was proven, and the crossings account for all of them.

    `path` and `unit` of the parameter, `low` and `high` the range, `crossings` the changes; `net`
    is the network or delay equation.

    Examples
    --------
    >>> import fluidcc as fc
    >>> delayed = fc.DelayEquation(
    ...     lambda t, y, z, p: -p["r"] * z[0] * (1 + y), [lambda t, y, p: 1.0], {"r": 1.0}, 0.0
    ... )
    >>> edge = fc.crossings(delayed, "r", 1.0, 2.0).crossings[0]
    >>> round(edge.value, 6), edge.becomes, edge.criticality
    (1.570796, 'unstable', 'supercritical')
    """

    _view = "equilibria.CrossingsView"

    path: str
    unit: str
    low: float
    high: float
    crossings: tuple[Crossing, ...]
    secondary: tuple[Crossing, ...]
    without_equilibrium: tuple[Gap, ...]
    stable_at_low: bool | None
    certified: bool
    net: Model

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, None for unknown values."""
        names = ("value", "frequency", "becomes", "jump", "reason", "lyapunov", "criticality")
        found = [{name: getattr(c, name) for name in names} for c in self.crossings]
        gaps = [dataclasses.asdict(gap) for gap in self.without_equilibrium]
        return plain({
            "crossings": found, "stable_at_low": self.stable_at_low,
            "certified": self.certified, "without_equilibrium": gaps,
        })  # fmt: skip

    def to_xarray(self) -> xarray.Dataset:
        """The crossings as labelled arrays with units, in the columns of their table and in
        `lyapunov`.
        """
        import xarray as xr

        def column(name: str, kind: type) -> np.ndarray:
            return np.array([getattr(c, name) for c in self.crossings], kind)

        values = column("value", float)
        data: dict[str, Any] = {
            self.path: ("crossing", values, about_parameter(self.path, self.unit))
        }
        for name in ("frequency", "period", "becomes", "kind", "lyapunov"):
            kind = object if name in ("becomes", "kind") else float
            data[name] = ("crossing", column(name, kind), about(name))
        outside = {
            "stable_at_low": {True: "yes", False: "no", None: "undetermined"}[self.stable_at_low],
            "without_equilibrium": "; ".join(map(str, self.without_equilibrium)),
        }
        data |= {name: ((), text, about(name)) for name, text in outside.items()}
        attrs = {"path": self.path, "low": self.low, "high": self.high, **outside}
        return xr.Dataset(data, attrs=attrs)


@reporting
@compiling()
def crossings(
    net: Model,
    path: str,
    low: float | str,
    high: float | str,
    *,
    points: int = 33,
    criticality: bool = True,
    progress: Callable[[float], object] | None = None,
) -> Crossings:
    """Every change of stability along one parameter of a network, or of a delay equation.

    Parameters
    ----------
    net
        The model; its value of the parameter does not matter.
    path
        Path of the parameter, such as ``link.queue.w_q``.
    low, high
        The range; text is read with its unit. It is scanned logarithmically if it spans more than
        one decade.
    points
        Values at which the number of unstable roots is certified before anything is refined.
    criticality
        Whether to distinguish subcritical from supercritical Hopf points.
    progress
        Called with the finished share, in [0, 1], from time to time.

    Returns
    -------
    Crossings
        `crossings`, each with the `value` of the parameter, the `frequency` [rad/s], and the
        unstable roots `below` and `above` it.

    Raises
    ------
    ScenarioError
        For a path that does not exist or has no number, and for ends out of range.

    Examples
    --------
    >>> import fluidcc as fc
    >>> fc.crossings(fc.load("hollot2001/slow"), "link.queue.w_q", 1e-5, 1e-3)
    At link.queue.w_q = 1e-05: stable; all changes of stability up to 0.001 are listed (certified)
    Changes of stability
    link.queue.w_q   frequency [rad/s]  period [s]  becomes   kind
    0.0001048512513          1.3415397      4.6836  unstable  Hopf, supercritical
    """
    ends = ends_of(net, path, low, high, "crossings")
    plane = Plane(family(net, [path], "crossings"), (scale_of(*ends),), (path,))
    if getattr(net, "closure", "") == "population":
        return _of_population(net, plane, path, ends, points)
    scan, scale = Scan(plane, np.zeros(1), np.ones(1)), plane.scales[0]
    with part(0.0, _PLACED):
        places = [scan.place(t) for t in counted(np.linspace(0.0, 1.0, points).tolist())]
        pieces = _pieces(scan, places)
    with part(_PLACED, _SAMPLED):
        sampled = [(piece, _samples(scan, piece)) for piece in counted(pieces)]
    found: list[Crossing] = []
    sound = True
    for k, (piece, samples) in enumerate(sampled):
        if k and sampled[k - 1][1] and samples:
            beside = sampled[k - 1]
            reason = beside[0][-1].spot.change_to(piece[0].spot)
            found += _jump(scale, piece[0].t, beside[1][-1], samples[0], reason)
        for a, b in itertools.pairwise(samples):
            inside, followed = cell(scan, a, b)
            found += [dataclasses.replace(c, value=scale.value(c.value)) for c in inside]
            sound &= followed and a.certified and b.certified
            report(_SAMPLED + (_FOLLOWED - _SAMPLED) * b.t)
    first = sampled[0][1]
    changes = tuple(c for c in found if turns(c.below, c.above))
    further = tuple(c for c in found if c not in changes)
    if criticality:
        changes = tuple(_with_criticality(c, plane.family) for c in changes)
    return Crossings(
        path, unit_of(net, path), *ends, changes,
        further, _gaps(scale, [(_status(p), p[0].t, p[-1].t) for p in pieces]),
        first[0].unstable == 0 if first else None, sound, net,
    )  # fmt: skip


def _of_population(
    net: Model, plane: Plane, path: str, ends: tuple[float, float], points: int
) -> Crossings:
    """Crossings of a population: where the count changes, its loop is critical."""
    scan, scale = CountScan(plane, _CLOSE), plane.scales[0]
    places = [np.array([t]) for t in np.linspace(0.0, 1.0, points)]
    found = []
    for a, b in itertools.pairwise(places):
        report(float(a[0]))
        for place, frequency, below, above in scan.changes(a, b):
            becomes = "unstable" if above > below else "stable"
            value = scale.value(float(place[0]))
            found.append(Crossing(value, frequency, becomes, below, above))

    def status(t: float) -> str:
        """The status of the equilibrium, empty where stability is known."""
        found = scan.at(np.array([t]))
        return "" if found.margins else found.status

    def changes_of_status(a: float, b: float) -> list[float]:
        if status(a) == status(b):
            return []
        if b - a < _EDGE:
            return [a, b]
        middle = (a + b) / 2
        return changes_of_status(a, middle) + changes_of_status(middle, b)

    known = [float(t[0]) for t in places]
    edges = (changes_of_status(a, b) for a, b in itertools.pairwise(known))
    every = sorted({*known, *itertools.chain(*edges)})
    gaps = _gaps(scale, ((status(t), t, t) for t in every))
    changes = tuple(c for c in found if turns(c.below, c.above))
    return Crossings(
        path, unit_of(net, path), *ends, changes,
        tuple(c for c in found if c not in changes), gaps,
        scan.at(places[0]).stable, certified=False, net=net,
    )  # fmt: skip


def _with_criticality(crossing: Crossing, family: Callable[[float], Model]) -> Crossing:
    """The crossing with its first Lyapunov coefficient, where it is a Hopf point."""
    if crossing.jump or not crossing.frequency:
        return crossing
    form = normal_form(equilibrium_of(family(crossing.value)), crossing.frequency)
    return dataclasses.replace(crossing, lyapunov=form.lyapunov, criticality=form.criticality)


def _pieces(scan: Scan, places: list[Place]) -> list[list[Place]]:
    """The places, split where the regime changes, with places on both sides of every change."""
    pieces = [[places[0]]]
    for a, b in itertools.pairwise(places):
        for before, after in scan.breaks(a, b):
            pieces[-1].append(before)
            pieces.append([after])
        pieces[-1].append(b)
    return pieces


def _samples(scan: Scan, piece: list[Place]) -> list[Sample]:
    """Roots at the places of a piece; none if it is not smooth or has no extent."""
    middle = (piece[0].t + piece[-1].t) / 2
    distinct = [p for p, q in itertools.pairwise(piece) if q.t > p.t] + [piece[-1]]
    if not piece[0].spot.smooth or len(distinct) < 2:
        return []
    count_together([p.spot for p in distinct])
    towards = [middle if p.t != middle else piece[-1].t for p in distinct]
    return [scan.sample(p, t) for p, t in zip(distinct, towards, strict=True)]


def _status(piece: list[Place]) -> str:
    """The status of the equilibrium, empty where there is a linearisation."""
    return "" if piece[0].spot.smooth else piece[0].spot.equilibrium.status


def _gaps(scale: Scale, pieces: Iterable[tuple[str, float, float]]) -> tuple[Gap, ...]:
    """The parts without stability, of pieces with their status (empty: has stability) and their
    ends as shares; neighbours of one status are joined.
    """
    joined = ((status, [*group]) for status, group in itertools.groupby(pieces, lambda p: p[0]))
    return tuple(
        Gap(scale.value(parts[0][1]), scale.value(parts[-1][2]), status)
        for status, parts in joined if status
    )  # fmt: skip


def _jump(scale: Scale, t: float, before: Sample, after: Sample, reason: str) -> list[Crossing]:
    """A change in the number of unstable roots at a change of regime, for which is a reason."""
    below, above = before.unstable, after.unstable
    if below == above:
        return []
    worse = before if below > above else after
    located = worse.roots[np.real(worse.roots) > 0]
    rightmost = np.argmax(np.real(located)) if len(located) else None
    frequency = None if rightmost is None else float(abs(located[rightmost].imag))
    becomes = "stable" if above < below else "unstable"
    value = scale.value(t)
    return [Crossing(value, frequency, becomes, below, above, jump=True, reason=reason)]


def cell(scan: Scan, a: Sample, b: Sample, depth: int = _DEEPEST) -> tuple[list[Crossing], bool]:
    """The crossings between two samples of one regime, at shares of the line, and whether they
    account for the counts.

    Cells are split until every root near the axis is followed from one end to the other.
    """
    pairs = _match_roots(a, b)
    turning = None if pairs is None else _turning_point(a, b, pairs)
    brackets = [] if pairs is None else [(i, j) for i, j in pairs if _changes_side(a, b, i, j)]
    change = sum(_weight(a, i) * (1 if b.roots[j].real > 0 else -1) for i, j in brackets)
    followed = pairs is not None and change == b.unstable - a.unstable
    divisible = depth > 0 and b.t - a.t > 1e-12
    if not divisible or (followed and turning is None):
        try:
            found = sorted(_solve_crossing(scan, a, b, i, j) for i, j in brackets)
        except ArithmeticError:  # two real roots meet on the way
            found, followed = [], False
    if divisible and (not followed or turning is not None):
        middle = turning if turning is not None else (a.t + b.t) / 2
        new = scan.sample(scan.place(middle), b.t)
        left, right = cell(scan, a, new, depth - 1), cell(scan, new, b, depth - 1)
        return left[0] + right[0], left[1] and right[1]
    out, below = [], a.unstable
    for t, frequency, step in found:
        becomes = "unstable" if step > 0 else "stable"
        out.append(Crossing(t, frequency, becomes, below, below + step))
        below += step
    return out, followed


def _weight(sample: Sample, i: int) -> int:
    return 2 if sample.roots[i].imag > 0 else 1


def _changes_side(a: Sample, b: Sample, i: int, j: int) -> bool:
    return (a.roots[i].real > 0) != (b.roots[j].real > 0)


def _near_axis(sample: Sample, width: float) -> Array:
    """Indices of the roots that could reach the imaginary axis within `width` of the parameter."""
    speed = np.where(np.isfinite(sample.velocity), np.abs(sample.velocity), np.inf)
    return np.flatnonzero(np.abs(np.real(sample.roots)) <= 1.5 * speed * width)


def _match_roots(a: Sample, b: Sample) -> list[tuple[int, int]] | None:
    """Pairs of indices of the roots near the axis in both samples; None if in doubt."""
    width = b.t - a.t
    pairs = {}
    for i in _near_axis(a, width):
        pairs[int(i)] = _partner(complex(a.roots[i]), complex(a.velocity[i]) * width, b, -width)
    for j in _near_axis(b, width):
        i = _partner(complex(b.roots[j]), -complex(b.velocity[j]) * width, a, width)
        if i is None or pairs.setdefault(i, int(j)) != j:
            return None
    if None in pairs.values() or len(set(pairs.values())) < len(pairs):
        return None
    return [(i, j) for i, j in pairs.items() if j is not None]


def _partner(root: complex, way: complex, other: Sample, back: float) -> int | None:
    """Index of the root of the other sample that a root becomes; None if in doubt."""
    if not len(other.roots) or not np.isfinite(way):
        return None
    ways = -other.velocity * back
    misfit = np.abs(other.roots - root - (way + ways) / 2)
    misfit = np.where(np.isfinite(misfit), misfit, np.inf)
    best = int(np.argmin(misfit))
    limit = _DOUBT * max(abs(way), abs(ways[best])) + 1e-9 * abs(root)
    return best if misfit[best] <= limit else None


def _turning_point(a: Sample, b: Sample, pairs: list[tuple[int, int]]) -> float | None:
    """Parameter between the samples at which a real part has an extremum near or past the axis."""
    width = b.t - a.t
    for i, j in pairs:
        y0, y1 = a.roots[i].real, b.roots[j].real
        m0, m1 = a.velocity[i].real * width, b.velocity[j].real * width
        cubic = _cubic(y0, y1, m0, m1)
        for x in np.roots(np.polyder(cubic)):
            if abs(x.imag) > 0 or not 0.02 < x.real < 0.98:
                continue
            y = float(np.polyval(cubic, x.real))
            opposite = (y > 0) != (y0 > 0) or (y > 0) != (y1 > 0)
            if opposite or abs(y) <= _GRAZE * (abs(m0) + abs(m1)):
                return a.t + float(x.real) * width
    return None


def _solve_crossing(scan: Scan, a: Sample, b: Sample, i: int, j: int) -> tuple[float, float, int]:
    """Crossing of the axis by a followed root: t, frequency [rad/s], and change in the count."""
    width = b.t - a.t
    way = _cubic(a.roots[i], b.roots[j], a.velocity[i] * width, b.velocity[j] * width)
    last = [a.roots[i]]

    def real_part(t: float) -> float:
        guess = complex(np.polyval(way, (t - a.t) / width))
        last[0] = nearby_root(Characteristic(scan.place(t).spot.linear), guess)
        if not np.isfinite(last[0]):
            raise ArithmeticError("a root was lost")
        return last[0].real

    falls = 1.0 if a.roots[i].real > 0 else -1.0
    t = bisect(lambda t: falls * real_part(t), a.t, b.t)[0]
    real_part(t)
    step = _weight(a, i) * (1 if b.roots[j].real > 0 else -1)
    return float(t), float(abs(last[0].imag)), step


def _cubic(y0: complex, y1: complex, m0: complex, m1: complex) -> Array:
    """Coefficients of the cubic through values at 0 and 1 with slopes there."""
    return np.array([2 * y0 - 2 * y1 + m0 + m1, -3 * y0 + 3 * y1 - 2 * m0 - m1, m0, y0])
