"""The characteristic matrix of a linear delay system, evaluated through its arrow structure.

Classes of flows touch each other through links only, so that with the classes' components first
the matrix is [[P, Q], [R, S]] with P block diagonal: det = det P det T, T = S - R P^-1 Q, at a cost
linear in the number of classes.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from fluidcc.analysis.linear import LINK, Array, Linear

_FEW = 4
"""Up to so many classes elimination does not pay."""


class Blocks(NamedTuple):
    """A matrix in arrow form at k points: P (k, c, b, b), Q (k, c, b, g), R (k, c, g, b),
    S (k, g, g), for c classes of b components and g components of links.
    """

    P: Array
    Q: Array
    R: Array
    S: Array


class Factors(NamedTuple):
    """An arrow matrix taken apart: P^-1, P^-1 Q, R P^-1, T^-1, and the logarithms of the factors of
    the determinant, one for each class and last det T: shape (k, c + 1), modulo 2 pi i.
    """

    inverse: Array
    right: Array
    left: Array
    corner: Array
    logs: Array


@dataclasses.dataclass(frozen=True)
class Layout:
    """Where each component of (y, u) sits: class (LINK for links) and place within it."""

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
        cuts = np.cumsum([c * b * b, c * b * g, c * g * b])
        p, q, r, s = np.split(flat, cuts, axis=1)
        return Blocks(
            p.reshape(k, c, b, b),
            q.reshape(k, c, b, g),
            r.reshape(k, c, g, b),
            s.reshape(k, g, g),
        )


def _layout(owner: Array) -> Layout:
    names, counts = np.unique(owner[owner != LINK], return_counts=True)
    if len(names) <= _FEW:
        owner = np.full_like(owner, LINK)
        names, counts = names[:0], counts[:0]
    number = {int(c): i for i, c in enumerate(names)}
    place = np.zeros(len(owner), int)
    for c in [LINK, *names]:
        members = owner == c
        place[members] = np.arange(np.sum(members))
    classes = np.array([LINK if c == LINK else number[int(c)] for c in owner], int)
    border = int(np.sum(owner == LINK))
    return Layout(len(names), int(counts.max(initial=0)), border, classes, place)


class Characteristic:
    """M(s) = [[s I - A, -B E(s)], [-C, I - D E(s)]], E = e^(-s lag) on the wire looked up.

    Its determinant is the characteristic function; its zeros are the roots of the system.
    """

    def __init__(self, system: Linear):
        self.system = system = system.pruned()
        n, m = system.size
        self.layout = _layout(np.concatenate([system.state_owner, system.wire_owner]))
        here, late = np.vstack([system.A, system.C]), np.vstack([system.B, system.D])
        every = np.arange(n + m)
        ones = self.layout.position(every, every)
        self._constant = np.zeros(self.layout.total)
        self._slope = np.zeros(self.layout.total)
        self._slope[ones[:n]] = 1.0
        self._constant[ones[n:]] = 1.0
        self._pad()
        row, column = np.nonzero(here)
        np.add.at(self._constant, self.layout.position(row, column), -here[row, column])
        row, look = np.nonzero(late)
        where = self.layout.position(row, n + system.pick[look])
        self._value, self._lag = -late[row, look], system.lag[look]
        ends = (where, np.arange(len(where)))
        self._place = sp.csr_matrix(
            (np.ones(len(where)), ends), shape=(self.layout.total, len(where))
        )

    def _pad(self) -> None:
        """Give classes with fewer components than the widest a unit diagonal in what is left."""
        c, b = self.layout.classes, self.layout.width
        full = np.zeros((c, b), bool)
        mine = self.layout.owner != LINK
        full[self.layout.owner[mine], self.layout.place[mine]] = True
        i, a = np.nonzero(~full)
        self._constant[i * b * b + a * b + a] = 1.0

    @property
    def degree(self) -> int:
        """Number of states: the power of s in the determinant's leading term."""
        return self.system.size[0]

    def _terms(self, weight: Array) -> Array:
        return (self._place @ weight.T).T

    def matrix(self, s: Array) -> Blocks:
        """M at the points s (k,)."""
        s = np.asarray(s, complex)
        delayed = self._terms(self._value * np.exp(-s[:, None] * self._lag))
        return self.layout.split(self._constant + s[:, None] * self._slope + delayed)

    def derivative(self, s: Array) -> Blocks:
        """dM/ds at the points s (k,)."""
        s = np.asarray(s, complex)
        delayed = self._terms(-self._value * self._lag * np.exp(-s[:, None] * self._lag))
        return self.layout.split(self._slope + delayed)

    def rate_bound(self, real: float) -> Blocks:
        """Entrywise bound of |dM/ds| on the line Re s = `real`."""
        weight = np.abs(self._value) * self._lag * np.exp(-real * self._lag)
        return self.layout.split(self._slope + self._terms(weight[None]))

    def factor(self, blocks: Blocks) -> Factors:
        """Take M apart; singular points give infinities or NaN in their own row only."""
        P, Q, R, S = blocks
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            inverse = _inverse(P)
            right, left = inverse @ Q, R @ inverse
            T = S - np.sum(R @ right, axis=1)
            corner = _inverse(T)
        logs = np.concatenate([_log_det(P), _log_det(T)[:, None]], axis=1)
        return Factors(inverse, right, left, corner, logs)

    def log_det(self, s: Array) -> Array:
        """Logarithm of the characteristic function at s (k,), imaginary part modulo 2 pi."""
        return self.factor(self.matrix(s)).logs.sum(axis=1)

    def log_slope(self, s: Array) -> Array:
        """Derivative of the logarithm of the characteristic function at s (k,)."""
        return np.sum(self._slopes(s), axis=0)

    def loop_slope(self, s: Array) -> Array:
        """Derivative of log det T at s (k,): the loop through the links without the classes' poles.

        Far from the classes' own roots det T has the same zeros as the characteristic function, and
        many classes do not drag Newton's method towards their roots.
        """
        return self._slopes(s)[1]

    def _slopes(self, s: Array) -> tuple[Array, Array]:
        """Derivatives of log det P and of log det T at s (k,)."""
        parts, rate = self.factor(self.matrix(s)), self.derivative(s)
        with np.errstate(invalid="ignore", over="ignore"):
            own = np.einsum("kcij,kcji->k", parts.inverse, rate.P)
            inner = parts.left @ rate.P @ parts.right
            corner = rate.S + np.sum(inner - rate.R @ parts.right - parts.left @ rate.Q, axis=1)
            return own, np.einsum("kij,kji->k", parts.corner, corner)

    def response(self, s: Array, unit: int) -> Array:
        """Solution x (k, unknowns) of M(s) x = e for the unit vector of a component of links."""
        parts = self.factor(self.matrix(s))
        border = parts.corner[:, :, self.layout.place[unit]]
        inner = -np.einsum("kcij,kj->kci", parts.right, border)
        own = self.layout.owner == LINK
        out = np.empty((len(border), len(own)), complex)
        out[:, own] = border[:, self.layout.place[own]]
        out[:, ~own] = inner[:, self.layout.owner[~own], self.layout.place[~own]]
        return out


def _log_det(matrices: Array) -> Array:
    sign, size = np.linalg.slogdet(matrices)
    return size + 1j * np.angle(sign)


def _inverse(matrices: Array) -> Array:
    """Inverse of each matrix of a stack; infinite where one is singular."""
    singular = np.linalg.slogdet(matrices)[0][..., None, None] == 0
    safe = np.where(singular, np.eye(matrices.shape[-1]), matrices)
    return np.where(singular, np.inf, np.linalg.inv(safe))
