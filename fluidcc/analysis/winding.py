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
from typing import NamedTuple

import numpy as np

from fluidcc.analysis.characteristic import Blocks, Characteristic
from fluidcc.analysis.linear import Array, Linear

_TURN = 0.9 * np.pi
"""Largest change of the argument that a step may make; below pi it is unique."""

_MOST_ENTRIES = 3e7  # of all matrices of a system together
_PATIENCE = 40  # halvings of a step
_COARSE = 8  # halvings until the steps tell how many there will be
_LARGEST_COFACTOR = 6
_LEAST = 1e-9  # of the bound: the first node above the real axis
_FIRST = (1e-2, 1.0, 6)  # of the bound: the next ones
_APART = 2.0  # ratio of heights from which on their geometric mean lies between them
_POWERS = 20  # of matrices, towards their Perron vector
_FAR = 1e300  # a step without an end
_TINY = np.finfo(float).tiny
_ROUNDING = 1e-9
_TRIALS = np.array([0.3 + 0.7j, 1.1 - 2.3j, -0.2 + 5.9j, 0.05 + 17.0j])  # times 1 / longest lag


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


def _loop(characteristic: Characteristic, s: Array, which: Array) -> Array:
    """1 - det(I - D E(s)) (k,): what travels and feeds back on itself without a state between."""
    n = characteristic.degree
    D = characteristic.felt(s, which)[:, n:, n:]
    return 1 - np.linalg.det(np.eye(D.shape[-1]) - D)


def difference_decays(system: Linear) -> bool:
    """Whether u(t) = D u(t - lag) alone decays, for det(I - D E(s)) = 1 - k e^(-s T): |k| < 1.

    Retarded systems have k = 0, a self-clocked class the share of its link that other traffic has.
    False for other determinants. That of several classes at one link is zero at s = 0; almost
    periodic along the imaginary axis, it comes as near to zero there again and again.
    Hale and Verduyn Lunel (1993), 9.6.
    """
    characteristic = Characteristic(system)
    unit = 1 / max(float(characteristic.longest[0]), 1e-300)
    s = unit * np.array([0.0, 0.1, *_TRIALS])
    share, next_to, *_ = loop = _loop(characteristic, s, np.zeros(len(s), int))
    if abs(share) <= _ROUNDING:
        return bool(np.all(np.abs(loop) <= _ROUNDING))
    time = -np.log(next_to / share) / (0.1 * unit)
    misfit = np.abs(loop - share * np.exp(-s * time))
    return bool(abs(share) < 1 - _ROUNDING and np.max(misfit) <= _ROUNDING)


def _majorant(characteristic: Characteristic, which: Array, real: Array) -> Array:
    """Entrywise bound for Re s >= `real` (k,) of A + B E (I - D E)^-1 C, which has all roots there.

    NaN if there is none: D E then feeds back on itself (a neutral system).
    """
    n, felt = characteristic.degree, characteristic.felt(real, which)
    A, B, C, D = felt[:, :n, :n], felt[:, :n, n:], felt[:, n:, :n], felt[:, n:, n:]
    return A + B @ _inverse_bound(characteristic, which, D) @ C


def _inverse_bound(characteristic: Characteristic, which: Array, loop: Array) -> Array:
    """Entrywise bound of (I - D E)^-1 from `loop`, a bound of D E.

    Either nothing on the wire feeds back on itself and the series ends, or (self-clocked flows of
    one class) the determinant is 1 all the same and the cofactors are bounded one by one.
    """
    m = loop.shape[-1]
    total = power = np.broadcast_to(np.eye(m), loop.shape)
    for _ in range(m + 1):
        power = power @ loop
        if not power.any():
            return total
        total = total + power
    points = _TRIALS[:, None] / characteristic.longest[which]
    open_loop = [np.abs(_loop(characteristic, s, which)) <= _ROUNDING for s in points]
    known = np.all(open_loop, axis=0) & (m <= _LARGEST_COFACTOR)
    out = np.full(loop.shape, np.nan)
    if known.any():
        entries = np.eye(m) + loop
        for i, j in itertools.product(range(m), repeat=2):
            cofactor = _permanent(np.delete(np.delete(entries, i, 1), j, 2))
            out[:, j, i] = np.where(known, cofactor, np.nan)
    return out


def _permanent(matrices: Array) -> Array:
    every, total = range(matrices.shape[-1]), np.zeros(len(matrices))
    for order in itertools.permutations(every):
        total = total + math.prod(matrices[:, i, j] for i, j in zip(every, order, strict=True))
    return total


def _rates(matrices: Array) -> tuple[Array, Array]:
    """The numbers r and k of the module's head for nonnegative matrices Y (g, g, ...)."""
    w = np.ones(matrices.shape[1:])
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        for _ in range(_POWERS if len(w) > 1 else 0):
            moved = np.add.reduce(matrices * w, axis=1)
            w = w + moved / np.maximum(np.maximum.reduce(moved / w), _TINY)
        rows = np.einsum("ij...,j...->i...", matrices, w) / w
        r = np.max(rows, axis=0, initial=0.0)
        return r, np.where(r > 0, np.sum(rows, axis=0) / r, 1.0)


def _step(matrices: Array) -> Array:
    """Length of a step on which log det changes by half a turn's bound at most.

    Of nonnegative matrices Y (..., g, g) as in the module's head.
    """
    r, k = _rates(np.ascontiguousarray(np.moveaxis(matrices, (-2, -1), (0, 1))))
    with np.errstate(invalid="ignore", divide="ignore"):
        step = -np.expm1(-_TURN / 2 / k) / r
    return np.where(np.isnan(step), 0.0, step)


def _reach(
    characteristic: Characteristic, s: Array, which: Array, rate: Blocks
) -> tuple[Array, Array]:
    """Logarithms of the determinant's factors at s (k,), and the steps allowed there [rad/s]."""
    parts = characteristic.factor(characteristic.matrix(s, which))
    inverse, right, left, corner = (np.abs(p) for p in parts[:4])
    P, Q, R, S = rate
    own = inverse @ P
    reach = np.min(_step(own), axis=1, initial=_FAR)
    each = reach[:, None, None, None]
    with np.errstate(invalid="ignore", over="ignore"):
        growth = np.linalg.inv(np.eye(own.shape[-1]) - each * own)
        reached = growth @ (right + each * (inverse @ Q))  # bounds P^-1 Q along the step
        change = S + np.sum(R @ reached + left @ Q + left @ P @ reached, axis=1)
        return parts.logs, np.minimum(reach, _step(corner @ change))


def frequency_bounds(characteristic: Characteristic, which: Array, real: Array) -> Array:
    """Moduli beyond which no root lies right of the lines Re s = `real` (k,) [rad/s]; NaN if there
    is no bound.

    From there on det(I - X/s), X as in `_majorant`, turns by less than a quarter.
    """
    bound = _majorant(characteristic, which, real)
    with np.errstate(divide="ignore"):
        return np.where(np.isnan(bound).any(axis=(1, 2)), np.nan, 1 / _step(bound))


@dataclasses.dataclass(frozen=True)
class Counts:
    """Counts of roots right of many lines (k,), as arrays.

    `number` is -1 where it is unknown; `near` are heights at which a root is too near the line, or
    too far to go on, NaN without one [rad/s]; `nodes` and `bound` are those of `Count`.
    """

    number: Array
    near: Array
    nodes: Array
    bound: Array

    def at(self, k: int) -> Count:
        """The count of line k."""
        number, near, nodes, bound = (
            v[k].item() for v in (self.number, self.near, self.nodes, self.bound)
        )
        if number >= 0:
            return Count(number, "", nodes, bound)
        reason = "the argument did not close to whole turns"
        if np.isnan(bound):
            reason = "the system is neutral: its roots have no bound"
        elif np.isfinite(near):
            reason = (
                f"not counted beyond {near:.6g} rad/s: a root too near the line, or too "
                f"long a way to {bound:.6g} rad/s, which roots could reach"
            )
        return Count(None, reason, nodes, bound)


def count_roots(characteristic: Characteristic, real: float = 0.0, *, nodes: int = 50_000) -> Count:
    """Number of roots with real part above `real` [1/s], from up to `nodes` evaluations.

    Roots at s = 0 that the system declares as conserved quantities are left out of the count.
    """
    return counts(characteristic, np.zeros(1, int), np.array([real]), nodes=nodes).at(0)


def counts(
    characteristic: Characteristic, which: Array, real: Array, *, nodes: int = 50_000
) -> Counts:
    """`count_roots` of systems `which` (k,) right of lines `real` (k,), all at once."""
    n, zeros = characteristic.degree, characteristic.system.conserved
    top = frequency_bounds(characteristic, which, real)
    found = np.where(np.isnan(top), -1, np.where(real < 0, n, 0))  # if all roots are zero
    out = Counts(found, np.full(len(top), np.nan), np.zeros(len(top), int), top)
    at = np.flatnonzero(top > 0)
    walk = _follow(characteristic, which[at], real[at], top[at], nodes)
    up = np.arctan2(top[at], real[at])
    beyond = n * (np.pi / 2 - up) - _wrapped(walk.last - n * up)
    # without its zeros at s = 0 the function is real there
    around = _wrapped(2 * walk.first - zeros * np.pi) / 2 + zeros * np.pi / 2
    around = np.where(walk.low > 0, around, np.where(real[at] < 0, zeros * np.pi, 0.0))
    number = n / 2 - (around + walk.turn + beyond) / np.pi
    known = ~np.isfinite(walk.near) & (abs(number - np.round(number)) <= 1e-3)
    out.number[at] = np.where(known, np.round(number), -1)
    out.near[at], out.nodes[at] = walk.near, walk.nodes
    return out


def _wrapped(angle: Array) -> Array:
    return np.angle(np.exp(1j * angle))


class _Walk(NamedTuple):
    """Ways up lines (k,): heights where they begin, changes of the argument, its values at both
    ends, nodes used, and heights at which a root is too near the line, NaN without one.
    """

    low: Array
    turn: Array
    first: Array
    last: Array
    nodes: Array
    near: Array


def _follow(
    characteristic: Characteristic, which: Array, real: Array, top: Array, nodes: int
) -> _Walk:
    """Follow the argument up to real + i top (k,)."""
    count = len(top)
    most = min(nodes, _MOST_ENTRIES / max(1, characteristic.layout.total))
    axis = (real == 0.0) & (characteristic.system.conserved > 0)
    low = np.where(axis, top * _LEAST, 0.0)  # all roots within are the conserved ones

    rate = characteristic.rate_bound(real, which)

    def reach(line: Array, height: Array) -> tuple[Array, Array]:
        bound = Blocks(*(b[line] for b in rate))
        return _reach(characteristic, real[line] + 1j * height, which[line], bound)

    first = np.array([0.0, _LEAST, *np.geomspace(*_FIRST)])
    line, place = np.nonzero(~axis[:, None] | (first > 0))
    height = top[line] * first[place]
    logs, steps = reach(line, height)
    near = np.full(count, np.nan)
    for halvings in range(_PATIENCE + 1):
        gap, allowed = np.diff(height), steps[:-1] + steps[1:]
        wide = np.flatnonzero((np.diff(line) == 0) & (gap > allowed) & np.isnan(near)[line[1:]])
        if not wide.size:
            break
        at = line[wide]
        needed = gap[wide] / np.maximum(allowed[wide], 1e-16 * top[at])
        needed = np.bincount(line, minlength=count) + np.bincount(at, needed, count)
        stuck = (needed[at] > most) & (halvings >= _COARSE) | (halvings == _PATIENCE)
        lines, begin = np.unique(at[stuck], return_index=True)
        near[lines] = height[wide[stuck][begin]]
        wide, at = wide[~stuck], at[~stuck]
        below, above = height[wide] + steps[wide], height[wide + 1] - steps[wide + 1]
        middle = np.where(below * _APART < above, np.sqrt(below * above), (below + above) / 2)
        middle = np.where(below > 0, middle, above / 2)  # of what neither end reaches
        new_logs, new_steps = reach(at, middle)
        height, line = np.insert(height, wide + 1, middle), np.insert(line, wide + 1, at)
        logs = np.insert(logs, wide + 1, new_logs, axis=0)
        steps = np.insert(steps, wide + 1, new_steps)
    turns = _wrapped(np.diff(np.imag(logs), axis=0)).sum(axis=1) * (np.diff(line) == 0)
    turn = np.bincount(line[1:], turns, count)
    begin = np.searchsorted(line, np.arange(count + 1))
    argument = np.imag(logs).sum(axis=1)
    return _Walk(low, turn, argument[begin[:-1]], argument[begin[1:] - 1], np.diff(begin), near)
