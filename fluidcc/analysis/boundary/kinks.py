"""Lines on which the regime changes and roots jump across the imaginary axis, followed in steps."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from fluidcc.analysis.boundary.search import Break
from fluidcc.analysis.linear import Array
from fluidcc.analysis.scan import Plane, Spot

_STEP, _SHORTEST = 0.06, 2e-3
_WIDTH = 1e-6  # in the plane: how closely both sides of a kink are known
_MOST = 200
_SAME = 0.03  # in the plane: breaks that lie on a line already followed


@dataclasses.dataclass(frozen=True)
class Kink:
    """Points on a change of regime, each as the spots on its two sides."""

    sides: tuple[tuple[Spot, Spot], ...]
    ends: tuple[str, str]

    @property
    def places(self) -> Array:
        """Points in the plane (k, 2)."""
        return np.array([(a.t + b.t) / 2 for a, b in self.sides])


def jumps(a: Spot, b: Spot) -> bool:
    """Whether one side is stable and the other not."""
    return a.smooth and b.smooth and (a.unstable == 0) != (b.unstable == 0)


def kink_lines(plane: Plane, breaks: tuple[Break, ...]) -> list[Kink]:
    """The lines through all changes of regime at which stability changes."""
    found: list[Kink] = []
    for one in breaks:
        place = (one.before.t + one.after.t) / 2
        if jumps(one.before, one.after) and not any(_near(line, place) for line in found):
            found.append(_followed(plane, one))
    return found


def _near(line: Kink, place: Array) -> bool:
    p = line.places
    if len(p) == 1:
        return bool(np.linalg.norm(p[0] - place) < _SAME)
    a, way = p[:-1], np.diff(p, axis=0)
    share = np.sum((place - a) * way, axis=1) / np.maximum(np.sum(way**2, axis=1), 1e-300)
    nearest = a + np.clip(share, 0.0, 1.0)[:, None] * way
    return bool(np.min(np.linalg.norm(nearest - place, axis=1)) < _SAME)


def _followed(plane: Plane, one: Break) -> Kink:
    across = np.eye(2)[1 - one.axis]
    start = (one.before, one.after)
    ahead, end = _one_way(plane, start, across)
    back, other = _one_way(plane, start, -across)
    return Kink((*reversed(back), start, *ahead), (other, end))


def _one_way(
    plane: Plane, start: tuple[Spot, Spot], way: Array
) -> tuple[list[tuple[Spot, Spot]], str]:
    """Points after a start in one sense while stability changes there, and why they end."""
    found: list[tuple[Spot, Spot]] = []
    here, step, end = _middle(start), _STEP / 4, "lost"
    while len(found) < _MOST and step >= _SHORTEST:
        ahead = here + step * way
        at_edge = bool(np.any(ahead <= 0) or np.any(ahead >= 1))
        if at_edge:
            ahead = _on_edge(here, way)
        pair = _pair(plane, ahead, way, start, step)
        if pair is None or not jumps(*pair):
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
    """Where a way from here leaves the range."""
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(way > 0, (1 - here) / way, np.where(way < 0, -here / way, np.inf))
    return np.clip(here + np.min(reach) * way, 0.0, 1.0)


def _pair(
    plane: Plane, at: Array, way: Array, like: tuple[Spot, Spot], reach: float
) -> tuple[Spot, Spot] | None:
    """Both sides of the change of regime on the line through a point across the way."""
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
