"""Random draws, then steps from the worst of them, then the smallest case that is still wrong."""

import itertools
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .bound import ROUNDING, Bound, Definitions, Judged, Point, Range

_NEAR_SIMPLE = 3  # every third draw
_CUBE = 3.0
_FIRST_STEP, _LAST_STEP = 0.3, 0.01  # shares of a range
_SHRINKS = 60  # cases tried on the way to the smallest, at most
_DIGITS = (1, 2, 3)


class Case(NamedTuple):
    """One judged subject."""

    point: Point
    subject: Any
    judged: Judged


class Attack(NamedTuple):
    """What the search under one set of definitions found."""

    definitions: Definitions
    searched: int  # cases that the bound was judged by, under these definitions
    largest: Case | None  # by how much the bound is missed; the nearest to it where it is not
    smallest: Case | None  # network that violates the bound


class _Judge:
    """Judges points under one network definition, each network run once."""

    def __init__(self, bound: Bound, definitions: Definitions) -> None:
        self._bound, self._definitions = bound, definitions
        self._known: dict[tuple, tuple[Any, Any] | None] = {}
        self._judged: set[tuple[tuple, tuple]] = set()

    def count(self, definitions: Definitions) -> int:
        """Points judged under definitions; those without a meaning do not count."""
        reading = tuple(definitions.items())
        return sum(of == reading for of, _ in self._judged)

    def __call__(self, point: Point, definitions: Definitions) -> Case | None:
        """The case at a point; None where it has no meaning, or cannot be run."""
        key = tuple(point.items())
        if key not in self._known:
            self._known[key] = self._run(point)
        known = self._known[key]
        if known is None:
            return None
        subject, measured = known
        judged = self._bound.judge(subject, measured, definitions)
        if math.isnan(judged.excess):
            return None
        self._judged.add((tuple(definitions.items()), key))
        return Case(dict(point), subject, judged)

    def _run(self, point: Point) -> tuple[Any, Any] | None:
        try:
            subject = self._bound.subject(point, self._definitions)
            return subject, self._bound.measure(subject)
        except ValueError:  # what a network or a run refuses
            return None


def attack(
    bound: Bound, readings: Iterable[Definitions], *, budget: int, seed: int
) -> list[Attack]:
    """Search a bound under each reading; readings of the same networks share their runs.

    `budget` is the number of networks drawn and stepped to for each kind of network; those on the
    way to the smallest counterexample come on top.
    """
    groups: dict[tuple, list[Definitions]] = {}
    for reading in readings:
        full = bound.defined(reading)
        groups.setdefault(tuple(full[name] for name in bound.networks), []).append(full)
    out = []
    for group in groups.values():
        rng = np.random.default_rng([seed, zlib.crc32(bound.id.encode())])
        out += _attack(bound, group, budget, rng)
    return out


def _attack(
    bound: Bound, group: Sequence[Definitions], budget: int, rng: np.random.Generator
) -> list[Attack]:
    ranges, judge = bound.ranges(group[0]), _Judge(bound, group[0])
    points = _small(ranges, max(1, budget // 2), rng)
    points += [_drawn(ranges, k, rng) for k in range(max(1, budget // 4))]
    steps = max(1, budget // 4 // len(group))
    found = []
    for definitions in group:
        cases = [case for p in points if (case := judge(p, definitions)) is not None]
        if not cases:
            found.append((definitions, None, None))
            continue
        starts = {id(case): case for case in (_worst(cases), _worst(cases, relative=True))}
        share = max(1, steps // len(starts))
        ends = [_climb(judge, definitions, ranges, c, share, rng) for c in starts.values()]
        worst = _worst(ends)
        wrong = [c for c in [*cases, *ends] if c.judged.excess > ROUNDING]
        small = None
        if wrong:
            clear = min(bound.clear, _worst(wrong).judged.excess)
            plain = [c for c in wrong if c.judged.excess >= clear]
            least = min(plain, key=lambda c: _distance(c.point, ranges))
            small = _shrink(judge, definitions, ranges, least, clear)
        found.append((definitions, worst, small))
    return [Attack(d, judge.count(d), worst, small) for d, worst, small in found]


def _worst(cases: Sequence[Case], *, relative: bool = False) -> Case:
    """The case with the largest excess, or the largest in proportion to its bound."""

    def excess(case: Case) -> float:
        return case.judged.excess / (1 + abs(case.judged.bound) if relative else 1.0)

    return max(cases, key=excess)


def _placed(value: float, axis: Range) -> float:
    """A value moved into its range, and to a whole number where it is one."""
    inside = min(max(value, axis.low), axis.high)
    return float(round(inside)) if axis.kind == "whole" else float(inside)


def _at(share: float, axis: Range) -> float:
    """The value at a share of the way through a range."""
    if axis.kind == "log":
        return axis.low * (axis.high / axis.low) ** share
    return axis.low + share * (axis.high - axis.low)


def _share(value: float, axis: Range) -> float:
    if axis.high == axis.low:
        return 0.0
    if axis.kind == "log":
        return math.log(value / axis.low) / math.log(axis.high / axis.low)
    return (value - axis.low) / (axis.high - axis.low)


def _small(
    ranges: Mapping[str, Range], most: int, rng: np.random.Generator
) -> list[dict[str, float]]:
    """The simplest point, and combinations of small values: all of them, or some."""
    simplest = {name: axis.simple for name, axis in ranges.items()}
    some = itertools.product(*(axis.small or (axis.simple,) for axis in ranges.values()))
    points = [dict(zip(ranges, values, strict=True)) for values in some]
    if len(points) > most:
        points = [points[k] for k in sorted(rng.permutation(len(points))[:most])]
    return [simplest, *(point for point in points if point != simplest)]


def _drawn(ranges: Mapping[str, Range], k: int, rng: np.random.Generator) -> dict[str, float]:
    """One random point; every third one near the simple end, every other one on the grids."""
    out = {}
    for name, axis in ranges.items():
        share = float(rng.uniform())
        if k % _NEAR_SIMPLE == 0:
            simple = _share(axis.simple, axis)
            share = simple + (share - simple) * float(rng.uniform()) ** _CUBE
        value = _at(share, axis)
        if axis.grid > 0 and k % 2 == 0:
            value = axis.grid * math.ceil(value / axis.grid)
        out[name] = _placed(value, axis)
    return out


def _climb(
    judge: _Judge, definitions: Definitions, ranges: Mapping[str, Range], start: Case, steps: int,
    rng: np.random.Generator,
) -> Case:  # fmt: skip
    """The worst case that random steps of falling length lead to."""
    best = start
    for k in range(steps):
        length = _FIRST_STEP * (_LAST_STEP / _FIRST_STEP) ** (k / max(1, steps - 1))
        moved = dict(best.point)
        for name, axis in ranges.items():
            if rng.uniform() < 0.5:
                share = _share(moved[name], axis) + length * float(rng.normal())
                moved[name] = _placed(_at(min(max(share, 0.0), 1.0), axis), axis)
        case = judge(moved, definitions)
        if case is not None and case.judged.excess > best.judged.excess:
            best = case
    return best


def _distance(point: Point, ranges: Mapping[str, Range]) -> float:
    """How far a point is from the simplest one."""
    return sum(abs(_share(point[n], r) - _share(r.simple, r)) for n, r in ranges.items())


def _simpler(value: float, axis: Range) -> list[float]:
    """Values closer to the simple one, the simplest first, and ones with fewer digits."""
    steps = [axis.simple + share * (value - axis.simple) for share in (0.0, 0.25, 0.5, 0.75)]
    if axis.kind == "whole":
        steps.append(value - math.copysign(1.0, value - axis.simple))
    else:
        steps += [float(f"{value:.{digits}g}") for digits in _DIGITS]
    return [placed for step in steps if (placed := _placed(step, axis)) != value]


def _shrink(
    judge: _Judge, definitions: Definitions, ranges: Mapping[str, Range], case: Case, clear: float
) -> Case:
    """The smallest case near this one with an excess of `clear`: one parameter at a time."""
    tries, moved = 0, True
    while moved and tries < _SHRINKS:
        moved = False
        for name, axis in ranges.items():
            for value in _simpler(case.point[name], axis):
                point = {**case.point, name: value}
                longer = _distance(point, ranges) > _distance(case.point, ranges)
                shorter = len(repr(value)) < len(repr(case.point[name]))
                if tries >= _SHRINKS or (longer and not shorter):
                    continue
                tries += 1
                other = judge(point, definitions)
                if other is not None and other.judged.excess >= clear:
                    case, moved = other, True
                    break
    return case
