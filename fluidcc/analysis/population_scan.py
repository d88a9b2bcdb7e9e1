"""Where the stability of a population changes over parameters: its loop has no roots to follow, but
a count of unstable ones, and where that changes, the loop is critical.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from fluidcc.analysis.linear import Array
from fluidcc.analysis.scan import Plane, equilibrium_of, turns
from fluidcc.analysis.stability import Stability, judge
from fluidcc.progress import counted

_AHEAD = 0.5  # of a segment: to both sides of it, where the curve is sought between its ends


class Change(NamedTuple):
    """A change of the count: its place (d,), the frequency [rad/s] at which the loop is critical,
    and the numbers of unstable roots before and after it on the way on which it was found.
    """

    place: Array
    frequency: float
    below: int
    above: int


class CountScan:
    """The counts of a family of populations over one or two parameters, each in [0, 1].

    Where they change is known to `close`. `lost` counts sides of cells of `boundary` between stable
    and unstable on which the change is not known.
    """

    def __init__(self, plane: Plane, close: float) -> None:
        self.plane, self.close, self.lost = plane, close, 0
        self._known: dict[tuple[float, ...], Stability] = {}

    def at(self, place: Array) -> Stability:
        """Stability at a place (d,)."""
        key = tuple(map(float, place))
        if key not in self._known:
            member = self.plane.family(*self.plane.values(np.array(key)))
            self._known[key] = judge(equilibrium_of(member), roots=0)
        return self._known[key]

    def changes(self, a: Array, b: Array) -> Iterator[Change]:
        """Changes of the count on the straight way from a to b, if it is known at both."""
        from scipy.optimize import brentq  # others do not wait for it

        below, above = self.at(a).unstable, self.at(b).unstable
        if below is None or above is None or below == above:
            return
        length, share = float(np.linalg.norm(b - a)), math.nan

        def excess(t: float) -> float:
            """Logarithm of the loop's gain where it is real and negative, nearest to critical."""
            found = self.at(a + t * (b - a)).gain_margin
            if found is None:
                raise ArithmeticError("the loop is nowhere real and negative")
            return -math.log(found)

        if length < 2 * self.close:
            share = 0.5
        elif abs(above - below) <= 2:
            aside = self.close / length
            with contextlib.suppress(ArithmeticError, ValueError):  # other turns are nearer
                root = float(brentq(excess, 0.0, 1.0, xtol=aside / 10))  # type: ignore[arg-type]
                ends = max(root - aside, 0.0), min(root + aside, 1.0)
                sides = tuple(self.at(a + t * (b - a)).unstable for t in ends)
                share = root if sides == (below, above) else math.nan
        if math.isnan(share):
            yield from self.changes(a, (a + b) / 2)
            yield from self.changes((a + b) / 2, b)
        else:
            place = a + share * (b - a)
            yield Change(place, float(self.at(place).phase_crossover or math.nan), below, above)

    def _turns(self, a: Array, b: Array) -> list[Change]:
        """Those of the changes at which stability changes."""
        return [change for change in self.changes(a, b) if turns(change.below, change.above)]

    def boundary(self, at: Array) -> list[list[Change]]:
        """Curves between stable and unstable, through the cells of a grid with lines `at` (k,)."""
        sides: dict[tuple[int, int, int], list[Change]] = {}  # of the cells, by corner and axis
        for i, j in counted([*itertools.product(range(len(at)), repeat=2)]):
            for axis, (k, m) in enumerate([(i + 1, j), (i, j + 1)]):
                if max(k, m) < len(at):
                    ends = np.array([at[i], at[j]]), np.array([at[k], at[m]])
                    sides[i, j, axis] = self._turns(*ends)
                    below, above = (self.at(end).unstable for end in ends)
                    known = below is not None and above is not None
                    self.lost += known and turns(below, above) and not sides[i, j, axis]
        segments = []
        for i, j in itertools.product(range(len(at) - 1), repeat=2):
            around = (
                sides[i, j, 0],
                sides[i + 1, j, 1],
                sides[i, j + 1, 0][::-1],
                sides[i, j, 1][::-1],
            )
            met = list(itertools.chain(*around))
            if len(met) == 4:  # the middle is on one side: cut off the corners of the other
                middle = self.at(np.array([at[i] + at[i + 1], at[j] + at[j + 1]]) / 2).unstable
                corner = self.at(np.array([at[i], at[j]])).unstable
                met = met[-1:] + met[:-1] if turns(middle, corner) else met
            segments += list(zip(met[::2], met[1::2], strict=False))
        return [self._denser(line) for line in _chained(segments)]

    def _denser(self, line: Sequence[Change]) -> list[Change]:
        """A curve with one point more between each two."""
        out = [line[0]]
        for one, two in itertools.pairwise(line):
            way, middle = two.place - one.place, (one.place + two.place) / 2
            across = _AHEAD * np.array([-way[1], way[0]])
            ends = (np.clip(middle + side * across, 0.0, 1.0) for side in (-1, 1))
            between = self._turns(*ends)
            out += [*(between if len(between) == 1 else []), two]
        return out


def _chained(segments: list[tuple[Change, Change]]) -> list[list[Change]]:
    """Lines through segments that share an end."""
    lines: list[list[Change]] = []
    for segment in segments:
        new = list(segment)
        for line in list(lines):
            for turned in (False, True):
                part = line[::-1] if turned else line
                if part[-1] is new[0]:
                    new = [*part, *new[1:]]
                elif part[0] is new[-1]:
                    new = [*new, *part[1:]]
                else:
                    continue
                lines = [other for other in lines if other is not line]
                break
        lines.append(new)
    return lines
