"""First approximations to characteristic roots: Chebyshev collocation of the outputs' history.

Breda, Maset and Vermiglio (2005): the generator of the solution operator, discretised; here the
history is that of the outputs, which at lag 0 follow from the present state and the history.
"""

from __future__ import annotations

import numpy as np

from fluidcc.analysis.linear import Array, Linear


def differentiation(order: int) -> tuple[Array, Array]:
    """Chebyshev points on [-1, 1] from 1 down to -1, and the matrix that differentiates there."""
    x = np.cos(np.pi * np.arange(order + 1) / order)
    weight = np.ones(order + 1)
    weight[[0, -1]] = 2.0
    weight *= (-1.0) ** np.arange(order + 1)
    gap = x[:, None] - x[None] + np.eye(order + 1)
    D = np.outer(weight, 1 / weight) / gap
    return x, D - np.diag(D.sum(axis=1))


def interpolation(x: Array, at: Array) -> Array:
    """Weights (..., k, len(x)) that interpolate from Chebyshev points x to places `at` (..., k)."""
    weight = (-1.0) ** np.arange(len(x))
    weight[[0, -1]] /= 2
    gap = at[..., None] - x
    hit = np.abs(gap) < 1e-14
    ratio = weight / np.where(hit, 1.0, gap)
    ratio = np.where(hit.any(axis=-1, keepdims=True), hit.astype(float), ratio)
    return ratio / ratio.sum(axis=-1, keepdims=True)


def approximate_roots(system: Linear, order: int) -> Array:
    """Eigenvalues of the generator with `order` + 1 nodes of the history [1/s]."""
    s = system.pruned()
    return np.linalg.eigvals(generator(s.A, s.B, s.C, s.D, s.pick, s.lag, order))


def generator(A: Array, B: Array, C: Array, D: Array, pick: Array, lag: Array, order: int) -> Array:
    """The generator with `order` + 1 nodes of the history, of one system or of many.

    The arrays are those of `Linear`, all but `pick` with the same first axes.
    """
    n, m, k = A.shape[-1], C.shape[-2], len(pick)
    many = A.shape[:-2]
    longest = lag.max(axis=-1, initial=0.0)
    longest = np.where(longest > 0, longest, 1.0)
    x, slopes = differentiation(order)
    nodes = interpolation(x, 1 - 2 * lag / longest[..., None])
    look = np.zeros((*many, k, order + 1, m))
    look[..., np.arange(k), :, pick] = np.moveaxis(nodes, -2, 0)
    now, then = look[..., 0, :], look[..., 1:, :].reshape(*many, k, order * m)
    loop = np.eye(m) - D @ now  # (I - D now) u(0) = C y + D then
    present = np.linalg.solve(loop, np.concatenate([C, D @ then], axis=-1))
    top = np.concatenate([A, B @ then], axis=-1) + B @ now @ present
    scale = (2 / longest)[..., None, None]
    past = scale * (np.kron(slopes[1:, :1], np.eye(m)) @ present)
    past[..., n:] += scale * np.kron(slopes[1:, 1:], np.eye(m))
    return np.concatenate([top, past], axis=-2)
