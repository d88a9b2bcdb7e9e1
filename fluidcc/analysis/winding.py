"""How many characteristic roots lie right of a vertical line: the argument principle, with proof.

The argument of the characteristic function is followed along the line from the real axis up to a
bound beyond which no root can lie. Every step is so short that a determinant inequality excludes a
root on it and a change of the argument by pi or more, so nothing can hide between the nodes.

If |F(s + d) - F(s)| <= |d| N entrywise for a matrix F, let Y = |F(s)^-1| N, row_i = (Y w)_i/w_i for
any w > 0, r = max row_i and k = sum row_i/r. Then r |d| < 1 implies that F is regular on the way
and |log det F(s)^-1 F(s + d)| <= -k log(1 - r |d|), by the power series of the logarithm and
Collatz's bound of the spectral radius. F is each class's block, and then the Schur complement.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np

from fluidcc.analysis.characteristic import Characteristic
from fluidcc.analysis.linear import Array, Linear

_TURN = 0.9 * np.pi
"""Largest change of the argument that a step may make; below pi it is unique."""

_MOST_ENTRIES = 3e7  # of all matrices together
_PATIENCE = 40  # halvings of a step
_LARGEST_COFACTOR = 6
_LEAST = 1e-9  # of the bound: the first node above the real axis
_FAR = 1e300  # a step without an end


@dataclasses.dataclass(frozen=True)
class Count:
    """Number of roots right of a line, with multiplicity; `number` is None where it is unknown.

    `reason` says why; `nodes` is how often the characteristic function was evaluated and `bound`
    [rad/s] the modulus beyond which no root can lie right of the line.
    """

    number: int | None
    reason: str = ""
    nodes: int = 0
    bound: float = np.nan


def majorant(system: Linear, real: float = 0.0) -> Array | None:
    """Entrywise bound of A + B E (I - D E)^-1 C for Re s >= `real`, which has every root there.

    None if there is none: D E then feeds back on itself (a neutral system).
    """
    select = _selection(system, np.exp(-real * system.lag))
    inverse = _inverse_bound(system, np.abs(system.D) @ select)
    if inverse is None:
        return None
    return np.abs(system.A) + np.abs(system.B) @ select @ inverse @ np.abs(system.C)


def _selection(system: Linear, weight: Array) -> Array:
    """The matrix that takes what is looked up from the wire, with weights (k,)."""
    select = np.zeros((len(system.pick), len(system.C)), weight.dtype)
    select[np.arange(len(system.pick)), system.pick] = weight
    return select


def _inverse_bound(system: Linear, loop: Array) -> Array | None:
    """Entrywise bound of (I - D E)^-1 from `loop`, a bound of D E.

    Either nothing on the wire feeds back on itself and the series ends, or (self-clocked flows of
    one class) the determinant is 1 all the same and the cofactors are bounded one by one.
    """
    m = len(loop)
    if not m:
        return np.eye(0)
    total, power = np.eye(m), np.eye(m)
    for _ in range(m):
        power = power @ loop
        if not power.any():
            return total
        total = total + power
    points = np.array([0.3 + 0.7j, 1.1 - 2.3j, -0.2 + 5.9j, 0.05 + 17.0j]) / system.lag.max()
    for s in points:
        closed = np.eye(m) - system.D @ _selection(system, np.exp(-s * system.lag))
        if abs(np.linalg.det(closed) - 1) > 1e-9:
            return None
    if m > _LARGEST_COFACTOR:
        return None
    entries = np.eye(m) + loop
    out = np.zeros((m, m))
    for i, j in itertools.product(range(m), repeat=2):
        out[j, i] = _permanent(np.delete(np.delete(entries, i, 0), j, 1))
    return out


def _permanent(matrix: Array) -> float:
    every = range(len(matrix))
    orders = itertools.permutations(every)
    return sum(math.prod(matrix[i, j] for i, j in zip(every, o, strict=True)) for o in orders)


def _rates(matrices: Array) -> tuple[Array, Array]:
    """The numbers r and k of the module's head for nonnegative matrices Y (..., g, g)."""
    w = np.ones(matrices.shape[:-1])
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        for _ in range(20):
            moved = np.einsum("...ij,...j->...i", matrices, w)
            largest = np.max(moved / w, axis=-1, keepdims=True, initial=0.0)
            w = w + moved / np.where(largest > 0, largest, 1.0)
            w = np.maximum(w / np.max(w, axis=-1, keepdims=True, initial=0.0), 1e-9)
        rows = np.einsum("...ij,...j->...i", matrices, w) / w
        r = np.max(rows, axis=-1, initial=0.0)
        return r, np.where(r > 0, np.sum(rows, axis=-1) / r, 1.0)


def _step(matrices: Array) -> Array:
    """Length of a step on which log det changes by half a turn's bound at most."""
    r, k = _rates(matrices)
    with np.errstate(invalid="ignore", divide="ignore"):
        step = -np.expm1(-_TURN / 2 / k) / r
    return np.where(np.isnan(step), 0.0, step)


def _reach(characteristic: Characteristic, s: Array, real: float) -> tuple[Array, Array]:
    """Logarithms of the determinant's factors at s (k,), and the steps allowed there [rad/s]."""
    parts = characteristic.factor(characteristic.matrix(s))
    inverse, right, left, corner = (np.abs(p) for p in parts[:4])
    P, Q, R, S = (b[0] for b in characteristic.rate_bound(real))
    own = inverse @ P
    reach = np.min(_step(own), axis=1, initial=_FAR)
    each = reach[:, None, None, None]
    with np.errstate(invalid="ignore", over="ignore"):
        growth = np.linalg.inv(np.eye(own.shape[-1]) - each * own)
        reached = growth @ (right + each * (inverse @ Q))  # bounds P^-1 Q along the step
        change = S + np.sum(R @ reached + left @ Q + left @ P @ reached, axis=1)
        return parts.logs, np.minimum(reach, _step(corner @ change))


def frequency_bound(characteristic: Characteristic, real: float = 0.0) -> float | None:
    """Modulus beyond which no root lies right of Re s = `real` [rad/s]; None if there is no bound.

    From there on det(I - X/s), X as in `majorant`, turns by less than a quarter.
    """
    bound = majorant(characteristic.system, real)
    if bound is None:
        return None
    return 1 / float(_step(bound)) if len(bound) else 0.0


def count_roots(characteristic: Characteristic, real: float = 0.0, *, nodes: int = 50_000) -> Count:
    """Number of roots with real part above `real` [1/s], from up to `nodes` evaluations.

    Roots at s = 0 that the system declares as conserved quantities are left out of the count.
    """
    system = characteristic.system
    n, zeros = characteristic.degree, system.conserved
    top = frequency_bound(characteristic, real)
    if top is None:
        return Count(None, "the system is neutral: its roots have no bound")
    if top == 0.0:
        return Count(n if real < 0 else 0, bound=0.0)  # all roots are zero
    low = top * _LEAST if zeros and real == 0.0 else 0.0  # all roots within are the conserved ones
    try:
        turn, first, last, used = _follow(characteristic, real, low, top, nodes)
    except ArithmeticError as fault:
        return Count(None, str(fault), bound=top)
    up = np.angle(complex(real, top))
    beyond = n * (np.pi / 2 - up) - _wrapped(last.imag - n * up)
    if low:  # the function without its zeros at s = 0 is real there
        before = _wrapped(2 * first.imag - zeros * np.pi) / 2
        number = (n - zeros) / 2 - (before + turn + beyond) / np.pi
    else:
        number = n / 2 - (turn + beyond) / np.pi - (zeros if real < 0.0 else 0)
    if abs(number - round(number)) > 1e-3:
        return Count(None, "the argument did not close to whole turns", used, top)
    return Count(round(number), nodes=used, bound=top)


def _wrapped(angle: float) -> float:
    return float(np.angle(np.exp(1j * angle)))


def _follow(
    characteristic: Characteristic, real: float, low: float, top: float, nodes: int
) -> tuple[float, complex, complex, int]:
    """Change of the argument from real + i low to real + i top, both ends' logarithms, nodes used.

    Raises ArithmeticError where a root is too near the line.
    """
    start = top * _LEAST
    most = min(nodes, _MOST_ENTRIES / max(1, characteristic.layout.total))
    height = np.concatenate([[low] if low < start else [], np.geomspace(start, top, 64)])
    logs, reach = _reach(characteristic, real + 1j * height, real)
    for _ in range(_PATIENCE):
        gap, allowed = np.diff(height), reach[:-1] + reach[1:]
        wide = np.flatnonzero(gap > allowed)
        if not wide.size:
            turns = np.angle(np.exp(1j * np.diff(np.imag(logs), axis=0)))
            return float(turns.sum()), logs[0].sum(), logs[-1].sum(), len(height)
        if len(height) + np.sum(gap[wide] / np.maximum(allowed[wide], 1e-16 * top)) > most:
            break
        middle = (height[wide] + height[wide + 1]) / 2
        new_logs, new_reach = _reach(characteristic, real + 1j * middle, real)
        height = np.insert(height, wide + 1, middle)
        logs = np.insert(logs, wide + 1, new_logs, axis=0)
        reach = np.insert(reach, wide + 1, new_reach)
    near = height[wide[0]]
    raise ArithmeticError(
        f"not counted beyond {near:.6g} rad/s: a root too near the line, or too long a way to "
        f"{top:.6g} rad/s, which roots could reach"
    )
