"""The number of unstable roots as a theorem: the argument principle in ball arithmetic.

The matrices and lags of the linear system are taken as the numbers they are in double precision;
every operation on them has a proven enclosure. All roots with nonnegative real part lie in a
rectangle. Its border is cut into pieces, on each of which the enclosure of the characteristic
function excludes zero: its argument then changes by less than half a turn, so that the values at
the ends of a piece determine the change. Values on the real axis are real, so the upper half of the
border is enough. Source: Johansson (2017), Arb: efficient arbitrary-precision midpoint-radius
interval arithmetic.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidcc.analysis.linear import LINK, Array, Linear
from fluidcc.errors import extra

_BITS = 128
_DEEPEST = 60  # halvings of a side of the rectangle
_MOST = 60_000  # pieces


@dataclasses.dataclass(frozen=True)
class Certificate:
    """Proven number of roots with positive real part; None if the proof fails, see `reason`.

    `pieces` is the number of pieces of the border, `bound` [rad/s] the proven bound of the modulus
    of roots with nonnegative real part.
    """

    unstable: int | None
    reason: str = ""
    pieces: int = 0
    bound: float = np.nan


class _Refused(ArithmeticError):
    """The proof failed; the message has the reason."""


class _Balls:
    """A system's characteristic function in balls, each row of a state divided by s + shift.

    Classes of flows are coupled through links only, and are eliminated one by one.
    """

    def __init__(self, system: Linear, flint: Any, shift: Any) -> None:
        self.flint, self.shift, self.states = flint, shift, len(system.A)
        present = np.vstack([system.A, system.C])
        late = np.vstack([system.B, system.D])
        self._lags = sorted(set(map(float, system.lag)))
        place = [self._lags.index(float(lag)) for lag in system.lag]
        acb = flint.acb
        self._entries: dict[tuple[int, int], list[tuple[int, Any]]] = {}
        for i, j in np.argwhere(present):
            self._entry(i, j).append((-1, -acb(float(present[i, j]))))
        for i, k in np.argwhere(late):
            column = self.states + int(system.pick[k])
            self._entry(i, column).append((place[k], -acb(float(late[i, k]))))
        owner = np.concatenate([system.state_owner, system.output_owner])
        self._links = np.flatnonzero(owner == LINK)
        self._classes = [np.flatnonzero(owner == c) for c in np.unique(owner[owner != LINK])]

    def _entry(self, i: int, j: int) -> list[tuple[int, Any]]:
        return self._entries.setdefault((int(i), int(j)), [])

    def _block(self, rows: Array, columns: Array, s: Any, late: list[Any], weight: Any) -> Any:
        """Rows and columns of the scaled characteristic matrix."""
        acb, out = self.flint.acb, []
        for i in rows:
            row = []
            for j in columns:
                value = acb(0)
                if i == j:
                    value += s if i < self.states else 1
                for lag, number in self._entries.get((int(i), int(j)), ()):
                    value += number if lag < 0 else number * late[lag]
                row.append(value * weight if i < self.states else value)
            out.append(row)
        return self.flint.acb_mat(out)

    def value(self, s: Any) -> Any:
        """The function det M(s)/(s + shift)^n of a ball s; right of the axis its zeros are roots.

        Not finite if a class cannot be eliminated on the whole ball.
        """
        late = [(-s * self.flint.arb(lag)).exp() for lag in self._lags]
        weight, links = 1 / (s + self.shift), self._links
        corner, product = self._block(links, links, s, late, weight), self.flint.acb(1)
        for own in self._classes:
            inside = self._block(own, own, s, late, weight)
            product *= inside.det()
            try:
                reached = inside.solve(self._block(own, links, s, late, weight))
            except ZeroDivisionError:
                return self.flint.acb("nan")
            corner -= self._block(links, own, s, late, weight) * reached
        return product * corner.det()


def _upper(flint: Any, system: Linear) -> Any:
    """A ball matrix that bounds |s| Y of roots s y = (A + B E (I - D E)^-1 C) y, Re s >= 0.

    Raises _Refused if outputs depend on themselves without a state between.
    """
    arb_mat = flint.arb_mat
    _, m = system.size

    def exact(matrix: Array) -> Any:
        return arb_mat([[float(abs(v)) for v in row] for row in matrix])

    look = np.zeros((len(system.pick), m))
    look[np.arange(len(system.pick)), system.pick] = 1.0
    into = [[float(v) for v in row] for row in look]
    loop = exact(system.D) * arb_mat(into) if m else None
    total = arb_mat([[float(i == j) for j in range(m)] for i in range(m)])
    power = total
    for _ in range(m):
        power = power * loop
        if all(bool(entry == 0) for entry in power.entries()):
            break
        total = total + power
    else:
        if m:
            raise _Refused("what is sent feeds back on itself without a state between")
    bound = exact(system.A)
    if m:
        bound = bound + exact(system.B) * arb_mat(into) * total * exact(system.C)
    return bound


def _bound(flint: Any, system: Linear) -> Any:
    """A ball at least as large as the modulus of every root with nonnegative real part."""
    matrix = _upper(flint, system)
    n = matrix.nrows()
    near = np.array([[float(matrix[i, j].upper()) for j in range(n)] for i in range(n)])
    weights = np.ones(n)
    for _ in range(50):  # towards the Perron vector; any positive weights give a bound
        weights = near @ weights + 1e-12 * weights.max()
        weights /= weights.max()
    scale = [flint.arb(float(max(w, 1e-200))) for w in weights]
    sums = (sum((matrix[i, j] * scale[j] for j in range(n)), flint.arb(0)) for i in range(n))
    rows = [row / scale[i] for i, row in enumerate(sums)]
    return max((row.upper() for row in rows), key=float)


def _pieces(balls: _Balls, start: Any, end: Any, spent: list[int]) -> Iterator[tuple[Any, Any]]:
    """Neighbouring points of a side from start to end, with zero excluded between them.

    Raises _Refused if zero cannot be excluded.
    """
    acb, arb = balls.flint.acb, balls.flint.arb
    waiting = [(start, end, _DEEPEST)]
    while waiting:
        a, b, depth = waiting.pop()
        spent[0] += 1
        whole = acb(arb.union(a.real, b.real), arb.union(a.imag, b.imag))
        value = balls.value(whole)
        if value.is_finite() and not value.contains(acb(0)):
            yield a, b
            continue
        if depth == 0 or spent[0] > _MOST:
            at = complex(float(a.real.mid()), float(a.imag.mid()))
            raise _Refused(f"a root is too near the imaginary axis, or on it, at about {at:.6g}")
        middle = acb(((a.real + b.real) / 2).mid(), ((a.imag + b.imag) / 2).mid())
        waiting += [(middle, b, depth - 1), (a, middle, depth - 1)]


def _half_turns(balls: _Balls, corners: list[Any], spent: list[int]) -> Any:
    """Change of the argument along the sides between corners, as a ball in half turns."""
    arb = balls.flint.arb
    total = arb(0)
    for start, end in itertools.pairwise(corners):
        last, before = start, balls.value(start)
        for a, b in _pieces(balls, start, end, spent):
            if a is not last:
                before = balls.value(a)
            after = balls.value(b)
            total += (after / before).arg()
            last, before = b, after
    return total / arb.pi()


def certify(system: Linear) -> Certificate:
    """Prove how many roots of a linear delay system have a positive real part.

    Parameters
    ----------
    system
        The system; its entries and lags count as exact.

    Raises
    ------
    MissingExtra
        If python-flint is not installed.
    """
    flint = extra("flint", "certify", what="a certificate in ball arithmetic")
    if system.conserved:
        return Certificate(None, "conserved quantities keep roots at zero")
    system = system.pruned()
    if not len(system.A):
        return Certificate(None, "the system has no state")
    precision, spent = flint.ctx.prec, [0]
    flint.ctx.prec = _BITS
    try:
        bound = _bound(flint, system)
        side = flint.arb(float(bound.upper())) * flint.arb(1.01) + flint.arb(1e-9)
        side = side.mid()
        balls, acb = _Balls(system, flint, side), flint.acb
        corners = [acb(side, 0), acb(side, side), acb(0, side), acb(0, 0)]
        number = _half_turns(balls, corners, spent).unique_fmpz()
    except _Refused as fault:
        return Certificate(None, str(fault), spent[0])
    finally:
        flint.ctx.prec = precision
    if number is None:
        return Certificate(None, "the argument is not known to a whole turn", spent[0])
    return Certificate(int(number), "", spent[0], float(side))
