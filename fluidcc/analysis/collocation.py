"""First approximations to characteristic roots: Chebyshev collocation of the wire's history.

Breda, Maset and Vermiglio (2005): the generator of the solution operator, discretised; here the
history is that of the wire, which the present state and the history determine at lag 0.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

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
    """Weights (len(at), len(x)) which interpolate values at Chebyshev points x."""
    weight = (-1.0) ** np.arange(len(x))
    weight[[0, -1]] /= 2
    gap = at[:, None] - x[None]
    hit = np.abs(gap) < 1e-14
    ratio = weight / np.where(hit, 1.0, gap)
    ratio = np.where(hit.any(axis=1, keepdims=True), hit.astype(float), ratio)
    return ratio / ratio.sum(axis=1, keepdims=True)


def approximate_roots(system: Linear, order: int) -> Array:
    """Eigenvalues of the generator with `order` + 1 nodes of the history [1/s]."""
    system = system.pruned()
    n, m = system.size
    longest = float(system.lag.max(initial=0.0)) or 1.0
    x, D = differentiation(order)
    nodes = interpolation(x, 1 - 2 * system.lag / longest)
    look = np.zeros((len(system.pick), order + 1, m))
    look[np.arange(len(system.pick)), :, system.pick] = nodes
    now, then = look[:, 0], look[:, 1:].reshape(len(system.pick), order * m)
    loop = np.eye(m) - system.D @ now  # (I - D now) u(0) = C y + D then
    present = scipy.linalg.solve(loop, np.hstack([system.C, system.D @ then]))
    top = np.hstack([system.A, system.B @ then]) + system.B @ now @ present
    slope = D[1:] * (2 / longest)
    past = np.kron(slope[:, :1], np.eye(m)) @ present
    past[:, n:] += np.kron(slope[:, 1:], np.eye(m))
    return np.linalg.eigvals(np.vstack([top, past]))
