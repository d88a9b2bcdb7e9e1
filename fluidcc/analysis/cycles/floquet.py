"""Floquet multipliers: what a period makes of perturbations of an orbit and of its past."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

from fluidcc.analysis.cycles.equations import Equations
from fluidcc.analysis.cycles.orbit import Orbit
from fluidcc.analysis.cycles.polynomials import Array

_DENSE = 800  # numbers that are remembered, up to which all multipliers are found
_WANTED = 12
_KEPT = 1e-6  # smaller multipliers are rounding: the perturbation is forgotten


def multipliers(orbit: Orbit, found: Equations) -> Array:
    """Floquet multipliers, largest first; those of nothing but rounding are left out.

    Perturbations of this period follow from those of the earlier ones that are still read: the
    eigenvalues of that map. In an orbit with events the ends of its segments are perturbed too.
    """
    size = len(found.residual) - (0 if orbit.events else len(orbit.ends))
    parts = [part[:size, :size] for part in found.parts]
    lu = scipy.sparse.linalg.splu(parts[0].tocsc())
    earlier = parts[1:]
    read = np.unique(np.concatenate([np.unique(part.nonzero()[1]) for part in earlier]))
    if len(read) * len(earlier) > _DENSE:
        every = _leading(lu, earlier, read)
    else:
        maps = [-lu.solve(part[:, read].toarray())[read] for part in earlier]
        count = len(read)
        whole = np.eye(count * len(maps), k=-count)
        whole[:count] = np.hstack(maps)
        every = np.asarray(scipy.linalg.eigvals(whole))
    every = every[np.abs(every) > _KEPT]
    return every[np.argsort(-np.abs(every))]


def _leading(lu: Any, earlier: list[Any], read: Array) -> Array:
    """The largest multipliers by Arnoldi's method, where there are many unknowns."""
    count, parts = len(read), [part[:, read] for part in earlier]

    def period(past: Array) -> Array:
        pieces = past.reshape(len(parts), count)
        heard: Any = sum(part @ piece for part, piece in zip(parts, pieces, strict=True))
        now = -lu.solve(heard)
        return np.concatenate([now[read], past[:-count]])

    size = count * len(parts)
    kind: Any = scipy.sparse.linalg.LinearOperator
    operator = kind((size, size), matvec=period, dtype=float)
    start = np.cos(np.arange(size))  # any vector, the same each time
    found: Any = scipy.sparse.linalg.eigs(
        operator, _WANTED, v0=start, ncv=4 * _WANTED, return_eigenvectors=False
    )
    return np.asarray(found)


def of_sequences(found: Array, noise: float) -> tuple[Array, Array]:
    """Leading eigenvalues (K,) of a linear map, largest first, and the residuals (K,) of their unit
    vectors, from what the map makes of D vectors in J steps, (D, J, S).

    The method of Rayleigh and Ritz on the Krylov space of all vectors but the last ones, in the
    part of it whose singular values are above `noise` times the largest.
    """
    count = found.shape[-1]
    before, after = (part.reshape(-1, count).T for part in (found[:, :-1], found[:, 1:]))
    basis, sizes, rest = np.linalg.svd(before, full_matrices=False)
    rank = int(np.sum(sizes > noise * sizes[0]))
    basis, mapped = basis[:, :rank], after @ rest[:rank].T / sizes[:rank]
    values, vectors = np.linalg.eig(basis.T @ mapped)
    residuals = np.linalg.norm(mapped @ vectors - basis @ vectors * values, axis=0)
    order = np.argsort(-np.abs(values))
    return values[order], residuals[order]
