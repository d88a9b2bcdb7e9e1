"""Roots on the imaginary axis as the zeros of a smooth function of frequency and two parameters.

Where the characteristic matrix M(i w) is nearly singular, bordering it by approximate null vectors
gives a scalar that vanishes exactly where M is singular and is smooth around there; its derivatives
follow from the solutions of the bordered systems (Govaerts, 2000, 3.2).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable

import numpy as np

from fluidcc.analysis.boundary.plane import Plane, Spot
from fluidcc.analysis.linear import Array

_STEP = 1e-6  # of the range: differences along the parameters
_FREQUENCY = 0.25  # weight of an angle of frequency times lag beside parameters in [0, 1]
_ITERATIONS = 12
_DONE = 1e-11
_NEARLY = 1e-8  # good enough where rounding stops the iteration


class Lost(Exception):
    """There is no critical root to be had: `why` is `regime`, `range` or `search`."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclasses.dataclass(frozen=True)
class Critical:
    """A root i w on the axis. `x` are its coordinates: weighted frequency (unless it is a zero
    root) and place in the plane; `jacobian` that of the equations by them, `growth` (2,) the
    gradient of the root's real part in the plane, `right` and `left` the null vectors.
    """

    x: Array
    frequency: float
    spot: Spot
    jacobian: Array
    growth: Array
    right: Array
    left: Array

    @property
    def t(self) -> Array:
        """Place in the plane."""
        return self.x[-2:]

    def tangent(self, like: Array | None = None) -> Array:
        """Unit vector along the curve, in the sense of `like`."""
        way = np.linalg.svd(self.jacobian)[2][-1]
        return -way if like is not None and way @ like < 0 else way


@dataclasses.dataclass(frozen=True)
class _Value:
    residual: Array
    spot: Spot
    frequency: float
    right: Array
    left: Array
    rate: complex


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
        """Border the matrix with these null vectors from now on."""
        self._right = right.conj() / np.linalg.norm(right)
        self._left = left.conj() / np.linalg.norm(left)

    def _value(self, x: Array) -> _Value:
        frequency = 0.0 if self.zero else float(x[0]) / self.unit
        spot = self._spot(x[-2:])
        matrix = spot.linear.matrix(1j * frequency)
        n = len(matrix)
        if n != len(self._left):
            raise Lost("regime")
        whole = np.zeros((n + 1, n + 1), complex)
        whole[:n, :n], whole[:n, n], whole[n, :n] = matrix, self._left, self._right
        unit = np.zeros(n + 1)
        unit[n] = 1.0
        try:
            right, left = np.linalg.solve(whole, unit), np.linalg.solve(whole.T, unit)
        except np.linalg.LinAlgError:
            raise Lost("search") from None
        g = right[n]
        rate = -left[:n] @ spot.linear.matrix_slope(1j * frequency) @ right[:n]
        residual = np.array([g.real] if self.zero else [g.real, g.imag / frequency])
        return _Value(residual, spot, frequency, right[:n], left[:n], complex(rate))

    def _spot(self, t: Array) -> Spot:
        if not (np.all(t >= 0) and np.all(t <= 1)):
            raise Lost("range")
        spot = self.plane.spot(t)
        if not spot.smooth or spot.regime != self.regime:
            raise Lost("regime")
        return spot

    def _known(self, x: Array, value: _Value) -> Critical:
        """The critical root with its derivatives."""
        here = value.spot.linear.matrix(1j * value.frequency)
        slopes = np.empty(2, complex)
        for k in range(2):
            moved, step = self._beside(value.spot.t, k)
            change = (moved.linear.matrix(1j * value.frequency) - here) / step
            slopes[k] = -value.left @ change @ value.right
        if self.zero:
            jacobian = np.real(slopes)[None]
        else:
            by_frequency = 1j * value.rate / self.unit
            every = np.array([by_frequency, *slopes])
            jacobian = np.stack([np.real(every), np.imag(every) / value.frequency])
        growth = np.real(-slopes / value.rate)
        return Critical(
            x, value.frequency, value.spot, jacobian, growth, value.right, value.left
        )  # fmt: skip

    def _beside(self, t: Array, k: int) -> tuple[Spot, float]:
        """A spot a little further along parameter k, or a little before, within the regime."""
        for step in (-_STEP, _STEP) if t[k] > 0.5 else (_STEP, -_STEP):
            there = t.copy()
            there[k] += step
            try:
                return self._spot(there), step
            except Lost:
                continue
        raise Lost("regime")

    def solve(self, x: Array, jacobian: Array, row: Array, target: float) -> Critical:
        """The critical root with row . x = target near x, by Broyden's method.

        `jacobian` is that of a point nearby. Raises Lost where there is none.
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
            x = _kept_inside(x + step)
            if not self.zero and x[0] <= 0:
                raise Lost("zero")
            value = self._value(x)
            new = np.append(value.residual, row @ x - target)
            if size <= _DONE or (size <= _NEARLY and size > 0.3 * last):
                break
            slope = slope + np.outer(new - residual - slope @ step, step) / (step @ step)
            residual = new
        else:
            if size > _NEARLY:
                raise Lost("search")
        found = self._known(x, value)
        self._borrow(found.right, found.left)
        return found

    def start(self, frequency: float, t: Array, row: Array) -> Critical:
        """The critical root near a first approximation, on the line through it across `row`."""
        x = self.coordinates(frequency, t)
        value = self._value(x)
        near = self._known(x, value)
        return self.solve(x, near.jacobian, row, float(row @ x))


def _kept_inside(x: Array) -> Array:
    """Coordinates with what rounding took off the edge of the range put back onto it."""
    t = x[-2:]
    edge = np.where(t < 0.5, 0.0, 1.0)
    return np.concatenate([x[:-2], np.where(np.abs(t - edge) < 1e-13, edge, t)])


def _null_vectors(matrix: Array) -> tuple[Array, Array]:
    """Right and left vectors that a nearly singular matrix takes to almost nothing."""
    u, _, v = np.linalg.svd(matrix)
    return v[-1].conj(), u[:, -1].conj()
