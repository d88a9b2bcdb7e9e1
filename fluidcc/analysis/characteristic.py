"""The characteristic matrices of linear delay systems, evaluated through their arrow structure.

Outputs are substituted into the equations that use them, unless this would couple two classes of
flows directly. Classes then couple through links only, so that with their components first the
matrix is [[P, Q], [R, S]] with P block diagonal: det = det P det T, T = S - R P^-1 Q, at a cost
linear in the number of classes.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fluidcc.analysis.linear import LINK, Array, Linear

_FEW = 4
"""Largest number of classes for which elimination does not pay."""

_MANY_ENTRIES = 9 * 64
"""Of so many matrices that operations on all of them take less time than LAPACK one by one."""

_CANCELLED = 1e-8
"""A determinant over the sum of the moduli of its terms: less costs more than half of the digits of
an inverse."""

_MOST_FILL = 4
"""Products that a substitution may create for each term that it removes."""


class Blocks(NamedTuple):
    """A matrix in arrow form at k points: P (k, c, b, b), Q (k, c, b, g), R (k, c, g, b),
    S (k, g, g), for c classes of b components and g components of links.
    """

    P: Array
    Q: Array
    R: Array
    S: Array


class Factors(NamedTuple):
    """Factors of an arrow matrix: P^-1, P^-1 Q, R P^-1, T^-1, and the logarithms of the factors of
    the determinant, one for each class and last det T: shape (k, c + 1), modulo 2 pi i.
    """

    inverse: Array
    right: Array
    left: Array
    corner: Array
    logs: Array


@dataclasses.dataclass(frozen=True)
class Layout:
    """Position of each component: class (LINK for links) and place within it."""

    classes: int
    width: int
    border: int
    owner: Array
    place: Array

    @property
    def total(self) -> int:
        """Number of stored entries of all blocks."""
        c, b, g = self.classes, self.width, self.border
        return c * b * b + 2 * c * b * g + g * g

    def position(self, row: Array, column: Array) -> Array:
        """Place in storage of entries of the matrix.

        Raises ValueError if an entry joins two different classes.
        """
        c, b, g = self.classes, self.width, self.border
        i, j, a, d = self.owner[row], self.owner[column], self.place[row], self.place[column]
        if np.any((i != LINK) & (j != LINK) & (i != j)):
            raise ValueError("classes of flows must touch each other through links only")
        start_q, start_r, start_s = c * b * b, c * b * b + c * b * g, c * b * b + 2 * c * b * g
        inside = i * b * b + a * b + d
        to_link = start_q + i * b * g + a * g + d
        from_link = start_r + j * g * b + a * b + d
        corner = start_s + a * g + d
        rows_of_class = np.where(j != LINK, inside, to_link)
        return np.where(i != LINK, rows_of_class, np.where(j != LINK, from_link, corner))

    def split(self, flat: Array) -> Blocks:
        """View storage (k, total) as blocks."""
        c, b, g, k = self.classes, self.width, self.border, len(flat)
        to_q, to_r, to_s = c * b * b, c * b * (b + g), c * b * (b + 2 * g)
        return Blocks(
            flat[:, :to_q].reshape(k, c, b, b),
            flat[:, to_q:to_r].reshape(k, c, b, g),
            flat[:, to_r:to_s].reshape(k, c, g, b),
            flat[:, to_s:].reshape(k, g, g),
        )

    def padding(self) -> Array:
        """Places of a unit diagonal that pads each class to the width of the widest."""
        c, b = self.classes, self.width
        full = np.zeros((c, b), bool)
        mine = self.owner != LINK
        full[self.owner[mine], self.place[mine]] = True
        i, a = np.nonzero(~full)
        return i * b * b + a * b + a


def _layout(owner: Array) -> Layout:
    names, counts = np.unique(owner[owner != LINK], return_counts=True)
    number = {int(c): i for i, c in enumerate(names)}
    place = np.zeros(len(owner), int)
    for c in [LINK, *names]:
        members = owner == c
        place[members] = np.arange(np.sum(members))
    classes = np.array([LINK if c == LINK else number[int(c)] for c in owner], int)
    border = int(np.sum(owner == LINK))
    return Layout(len(names), int(counts.max(initial=0)), border, classes, place)


Sum = dict[bytes, tuple[Array, Array]]
"""Lags and values (P,) of a sum of value times e^(-s lag), by lag."""


def _add(total: Sum, lag: Array, value: Array) -> None:
    key = lag.tobytes()
    total[key] = (lag, total[key][1] + value if key in total else value)


def _couplings(system: Linear) -> dict[int, dict[int, Sum]]:
    """Terms of each row of (y, u) by the component they multiply, without s y and u themselves."""
    n, m = system.size
    rows: dict[int, dict[int, Sum]] = {i: {} for i in range(n + m)}
    count, delayed = math.prod(system.A.shape[:-2]), system.B.shape[-1]
    here = np.concatenate([system.A, system.C], axis=-2).reshape(count, n + m, n)
    late = np.concatenate([system.B, system.D], axis=-2).reshape(count, n + m, delayed)
    lags = system.lag.reshape(count, delayed) + 0.0  # no -0, which would be another lag than 0
    now = np.zeros(count)
    for i, j in np.argwhere(np.any(here != 0, axis=0)).tolist():
        _add(rows[i].setdefault(j, {}), now, here[:, i, j])
    for i, k in np.argwhere(np.any(late != 0, axis=0)).tolist():
        _add(rows[i].setdefault(n + int(system.pick[k]), {}), lags[:, k], late[:, i, k])
    return rows


def _substitute(rows: dict[int, dict[int, Sum]], wires: Sequence[int], owner: Array) -> None:
    """Eliminate these components by substitution, except those that depend on themselves, would
    couple classes of flows, or create many products.
    """
    users: dict[int, list[int]] = {w: [] for w in wires}
    for i, row in rows.items():
        for j in row:
            if j in users:
                users[j].append(i)
    for w in wires:
        feel = [i for i in users[w] if i in rows]
        if w in feel:
            continue
        own, outer = rows[w], [rows[i][w] for i in feel]
        classes = [{int(owner[i]) for i in side} - {LINK} for side in (feel, own)]
        terms = [sum(len(s) for s in sums) for sums in (own.values(), outer)]
        fill = terms[0] * terms[1] > _MOST_FILL * sum(terms)
        if fill or (all(classes) and len(set.union(*classes)) > 1):
            continue
        del rows[w]
        for i, sums in zip(feel, outer, strict=True):
            del rows[i][w]
            for j, beyond in own.items():
                if j in users and j not in rows[i]:
                    users[j].append(i)
                into = rows[i].setdefault(j, {})
                for lag, value in sums.values():
                    for further, factor in beyond.values():
                        _add(into, lag + further, value * factor)


class Characteristic:
    """M(s) = [[s I - A, -B E(s)], [-C, I - D E(s)]], E = e^(-s lag) on the wire looked up.

    Its determinant is the characteristic function; its zeros are the roots of the system. The
    outputs numbered in `keep` are not eliminated. With several systems, `which` (k,) is the number
    of the system for each of k points.
    """

    def __init__(self, system: Linear, keep: Sequence[int] = ()):
        self.system = system.pruned()
        n, m = system.size
        self.longest = np.atleast_1d(self.system.lag.max(axis=-1, initial=0.0))
        owner = np.concatenate([system.state_owner, system.output_owner])
        if len(np.unique(owner[owner != LINK])) <= _FEW:
            owner = np.full_like(owner, LINK)
        rows = _couplings(system)
        _substitute(rows, [w for w in range(n, n + m) if w - n not in keep], owner)
        self._number = number = {component: i for i, component in enumerate(rows)}
        self.layout = _layout(owner[list(rows)])
        terms = [
            (number[i], number[j], *term)
            for i, row in rows.items() for j, sums in row.items() for term in sums.values()
        ]  # fmt: skip
        row, column = (np.array([t[k] for t in terms], int) for k in (0, 1))
        places = self.layout.position(row, column)
        order = np.argsort(places, kind="stable")
        self._row, self._column = row[order], column[order]
        self._places, self._starts = np.unique(places[order], return_index=True)
        names = {t[2].tobytes(): t[2] for t in terms}
        slots = {name: i for i, name in enumerate(names)}
        self._slot = np.array([slots[t[2].tobytes()] for t in terms], int)[order]
        blank = np.zeros((len(self.longest), 0))
        self._lags = np.stack([*names.values()], axis=1) if terms else blank
        self._value = np.stack([t[3] for t in terms], axis=1)[:, order] if terms else blank
        self._lag = self._lags[:, self._slot]
        every = np.arange(len(rows))
        diagonal = self.layout.position(every, every)
        self._states = diagonal[:n]
        self._units = np.concatenate([diagonal[n:], self.layout.padding()])

    @property
    def degree(self) -> int:
        """Number of states: the power of s in the determinant's leading term."""
        return self.system.size[0]

    def _late(self, s: Array, which: Any) -> Array:
        """The terms' values times e^(-s lag), at the points s (k,)."""
        return self._value[which] * np.exp(-s[:, None] * self._lags[which])[:, self._slot]

    def _stored(self, states: Any, units: float, weight: Array) -> Blocks:
        """Blocks with these numbers on the diagonal, of states (k, 1) and of all else, and the sums
        of the terms' weights (k, terms) added.
        """
        out = np.zeros((len(weight), self.layout.total), weight.dtype)
        out[:, self._states], out[:, self._units] = states, units
        if len(self._starts):
            out[:, self._places] += np.add.reduceat(weight, self._starts, axis=1)
        return self.layout.split(out)

    def matrix(self, s: Array, which: Any = 0) -> Blocks:
        """M at the points s (k,), real at real ones."""
        return self._stored(s[:, None], 1.0, -self._late(s, which))

    def rate_bound(self, real: Array, which: Any = 0) -> Blocks:
        """Entrywise bound of |dM/ds| on the lines Re s = `real` (k,)."""
        return self._stored(1.0, 0.0, np.abs(self._late(real, which)) * self._lag[which])

    def felt(self, s: Array, which: Any = 0) -> Array:
        """Coupling matrices (k, N, N) of the components, states first, at the points s (k,).

        M is s I minus this for states, I minus this for outputs that are not eliminated. At real
        points it has the moduli, which bound all entries to the right of there.
        """
        late = self._late(s, which)
        late = late if np.iscomplexobj(s) else np.abs(late)
        size = len(self._number)
        out = np.zeros((size * size, len(s)), late.dtype)
        np.add.at(out, self._row * size + self._column, late.T)
        return out.T.reshape(len(s), size, size)

    def factor(self, blocks: Blocks) -> Factors:
        """Factor M by its Schur complement T; singular points give inf or NaN in their row only."""
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            inverse, right, T = _eliminated(blocks)
            return Factors(inverse, right, blocks.R @ inverse, _inverse(T), _logs(blocks.P, T))

    def log_det(self, s: Array, which: Any = 0) -> Array:
        """Logarithm of the characteristic function at s (k,), imaginary part modulo 2 pi."""
        blocks = self.matrix(s, which)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            return _logs(blocks.P, _eliminated(blocks)[2]).sum(axis=1)

    def log_slope(self, s: Array, which: Any = 0, whole: Any = True) -> Array:
        """Derivative of the logarithm of the characteristic function at s (k,).

        If `whole` is false, that of det T: the loop through links without the classes' poles.
        Far from the classes' own roots det T has the same zeros as the characteristic function, and
        many classes do not drag Newton's method towards their roots.
        """
        late = self._late(s, which)
        blocks = self._stored(s[:, None], 1.0, -late)
        rate = self._stored(1.0, 0.0, self._lag[which] * late)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            inverse, right, T = _eliminated(blocks)
            own = np.einsum("kcij,kcji->k", inverse, rate.P)
            inner = _summed(blocks.R, inverse @ (rate.P @ right - rate.Q))
            corner = rate.S + inner - _summed(rate.R, right)
            return np.where(whole, own, 0.0) + np.einsum("kij,kji->k", _inverse(T), corner)

    def response(self, s: Array, out: Sequence[int], into: Sequence[int]) -> Array:
        """Entries (k, out, into) of the inverse of M(s), of kept components of links."""
        n = self.degree
        rows, columns = (self.layout.place[[self._number[n + j] for j in k]] for k in (out, into))
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            return _inverse(_eliminated(self.matrix(s))[2])[:, rows[:, None], columns]


def _summed(left: Array, right: Array) -> Array:
    """Sum of the products of the classes' matrices (k, c, ., .)."""
    return np.einsum("kcij,kcjl->kil", left, right)


def _eliminated(blocks: Blocks) -> tuple[Array, Array, Array]:
    """P^-1, P^-1 Q and the Schur complement T."""
    if not blocks.P.size:
        return blocks.P, blocks.Q, blocks.S
    inverse = _inverse(blocks.P)
    right = inverse @ blocks.Q
    return inverse, right, blocks.S - _summed(blocks.R, right)


def _inverse(matrices: Array) -> Array:
    """Inverse of each matrix of a stack, infinite if singular."""
    if matrices.shape[-1] == 1:
        return np.where(matrices == 0, np.inf, 1 / matrices)
    if matrices.shape[-1] == 3 and matrices.size > _MANY_ENTRIES:
        return _by_cofactors(matrices)
    return _by_lapack(matrices)


def _by_lapack(matrices: Array) -> Array:
    try:
        return np.linalg.inv(matrices)
    except np.linalg.LinAlgError:
        singular = (np.linalg.det(matrices) == 0)[..., None, None]
        safe = np.where(singular, np.eye(matrices.shape[-1]), matrices)
        return np.where(singular, np.inf, np.linalg.inv(safe))


@np.errstate(all="ignore")
def _by_cofactors(matrices: Array) -> Array:
    """Inverse of each 3 x 3 matrix, by a few operations on all of them; by LAPACK, which factors
    one by one, if the terms of a determinant nearly cancel, which costs digits.
    """
    entries = np.moveaxis(matrices, (-2, -1), (0, 1))

    def cofactor(i: int, j: int) -> Array:
        (a, b), (c, d) = (((k + 1) % 3, (k + 2) % 3) for k in (i, j))
        return entries[a, c] * entries[b, d] - entries[a, d] * entries[b, c]

    out = np.empty_like(matrices)
    for i, j in itertools.product(range(3), repeat=2):
        out[..., j, i] = cofactor(i, j)
    det: Any = sum(entries[0, j] * out[..., j, 0] for j in range(3))
    size = abs(np.real(entries)) + abs(np.imag(entries))
    terms = sum(
        size[0, j] * (size[1, j - 2] * size[2, j - 1] + size[1, j - 1] * size[2, j - 2])
        for j in range(3)
    )
    sound = abs(det) > _CANCELLED * terms
    out *= (1 / det)[..., None, None]
    if not np.all(sound):
        out[~sound] = _by_lapack(matrices[~sound])
    return out


def _logs(P: Array, T: Array) -> Array:
    """Logarithms of the determinants of each class's block and of T (k, c + 1)."""
    return np.concatenate([_log_det(P), _log_det(T)[:, None]], axis=1)


def _log_det(matrices: Array) -> Array:
    """Logarithm of each determinant, imaginary part modulo 2 pi."""
    if matrices.shape[-1] == 1:
        return np.log(matrices[..., 0, 0] + 0j)
    sign, size = np.linalg.slogdet(matrices)
    return size + 1j * np.angle(sign)
