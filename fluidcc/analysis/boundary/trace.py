"""Curves of critical roots by pseudo-arclength continuation."""

from __future__ import annotations

import dataclasses

import numpy as np

from fluidcc.analysis.boundary.critical import Critical, Equation, Lost
from fluidcc.analysis.linear import Array

_FIRST, _LONGEST, _SHORTEST = 0.01, 0.04, 1e-7
_BEND = 0.97  # least cosine between neighbouring tangents
_MOST = 2000


@dataclasses.dataclass(frozen=True)
class Traced:
    """A curve of critical roots, in order, and why it ends at either side.

    Ends are `edge` of the range, `regime` (a kink of a marking function, a cap, an equilibrium of
    another status), `zero frequency`, `lost`; both are `closed` where the curve is.
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


def trace(equation: Equation, start: Critical) -> Traced:
    """The whole curve through a critical root."""
    ahead, end = _one_way(equation, start, start.tangent())
    if end == "closed":
        return Traced((start, *ahead), ("closed", "closed"), equation)
    back, other = _one_way(equation, start, -start.tangent())
    return Traced((*reversed(back), start, *ahead), (other, end), equation)


def _one_way(equation: Equation, start: Critical, tangent: Array) -> tuple[list[Critical], str]:
    """The points after a start in one sense, and why they end."""
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
            if lost.why in ("regime", "zero"):
                end, closing = lost.why, True
            step /= 2
            if step < _SHORTEST:
                return found, _END.get(end, "edge" if lost.why == "range" else "lost")
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
            return found, _END[end]
    return found, "lost"


_END = {"regime": "regime", "zero": "zero frequency"}


def _leaves(t: Array, way: Array) -> bool:
    """Whether a point on the edge of the range is left outwards."""
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
        raise Lost("zero")
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
        row = np.zeros(count)
        row[k] = 1.0
        try:
            found = equation.solve(ahead, here.jacobian, row, bound)
        except Lost:
            continue
        if np.linalg.norm(found.x - here.x) < 3 * step:
            return found
    return None
