"""Derivatives of a linear system, its characteristic roots and its margins by parameters."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.equilibrium import Equilibrium
from fluidcc.analysis.linear import Array, Linear
from fluidcc.analysis.linearize import jacobians, still
from fluidcc.analysis.local_model import local_state, present_function
from fluidcc.analysis.margins import received_signals
from fluidcc.analysis.operating_point import OperatingPoint
from fluidcc.arrays import jax, jnp
from fluidcc.model.delays import ages
from fluidcc.model.fluid import steady
from fluidcc.ops import Num
from fluidcc.scenario.network import Network

_LEVEL = 1e-9  # relative slope below which a curve is level: a grazing crossover, a double root


@jax.jit
def _slopes(net: Network, op: OperatingPoint, along: Network, dv: Num, du: Num) -> tuple[Any, ...]:
    """Derivatives of A, B, C, D and the lags (K, ...) as parameters, state and outputs move."""
    at = local_state(net, op, jnp.zeros(()))
    function, v, index = present_function(net, at.y, at.modes)
    unflatten = ravel_pytree(at.y)[1]
    n = len(v)

    def matrices(net: Network, v: Num, u: Num) -> tuple[Num, ...]:
        by_state, by_past = jax.jacfwd(function, (1, 2))(net, v, u[index])
        lag = ravel_pytree(ages(net, unflatten(v)))[0]
        return by_state[:n], by_past[:n], by_state[n:], by_past[n:], lag

    def one(direction: tuple) -> tuple[Num, ...]:
        return jax.jvp(matrices, (net, v, at.outputs), direction)[1]

    return jax.lax.map(one, (along, dv, du))


def slopes_of_linear(
    eq: Equilibrium, system: Linear, along: Network, dv: Array, du: Array
) -> list[Linear]:
    """Derivatives along K directions of the linear system at an equilibrium, whose state and
    outputs move by dv and du (K, ...): systems with derivatives in place of matrices and lags.
    """
    net = steady(eq.net)
    A, B, *_, frozen = map(np.asarray, jacobians(net, eq.op, jnp.zeros(())))
    free = (frozen == 0) & ~still(A, B)
    found = map(np.asarray, _slopes(net, eq.op, along, jnp.asarray(dv), jnp.asarray(du)))
    return [
        dataclasses.replace(system, A=a[free][:, free], B=b[free], C=c[:, free], D=d, lag=lag)
        for a, b, c, d, lag in zip(*found, strict=True)
    ]


def _matrix_along(system: Linear, moved: Linear, s: complex) -> Array:
    """Derivative of the characteristic matrix as matrices and lags move."""
    looked_up, late = np.eye(system.size[1])[system.pick], np.exp(-s * system.lag)
    now, change = (
        late[:, None] * looked_up,
        (-s * moved.lag * late)[:, None] * looked_up,
    )
    return -np.block([
        [moved.A, moved.B @ now + system.B @ change],
        [moved.C, moved.D @ now + system.D @ change],
    ])  # fmt: skip


def root_slopes(system: Linear, root: complex, along: list[Linear]) -> Array | None:
    """Derivatives (K,) of a simple characteristic root [1/s]; None if it is not simple.

    With null vectors w and v of M at the root, w* M(s) v vanishes to first order with det M, so
    ds/dp = -(w* M_p v)/(w* M_s v) (Lancaster, 1964).
    """
    matrix = system.matrix(root)
    scale = np.abs(matrix).max(axis=1, keepdims=True)
    left, _, right = np.linalg.svd(matrix / scale)
    w, v = left[:, -1].conj() / scale[:, 0], right[-1].conj()
    rate = system.matrix_slope(root)
    if abs(w @ rate @ v) <= _LEVEL * (np.abs(w) @ np.abs(rate) @ np.abs(v)):
        return None
    return np.array([-(w @ _matrix_along(system, d, root) @ v) for d in along]) / (w @ rate @ v)


def crossover_slopes(
    system: Linear, link: int, frequency: float, along: list[Linear], *, gain: bool
) -> tuple[Array, Array] | None:
    """Derivatives (K,) of the frequency of a crossover [rad/s], and there of the phase [rad] (of a
    `gain` crossover) or of log |L| (of a phase crossover); None if the loop only touches it.
    """
    s = 1j * frequency
    changes = [1j * system.matrix_slope(s), *(_matrix_along(system, d, s) for d in along)]
    by_frequency, *by_path = _log_loop_slopes(system, link, s, np.array(changes))
    held, seen = (np.real, np.imag) if gain else (np.imag, np.real)
    if abs(held(by_frequency)) <= _LEVEL * max(abs(by_frequency), 1 / frequency):
        return None
    moves = -held(by_path) / held(by_frequency)
    return moves, seen(by_path) + seen(by_frequency) * moves


def _log_loop_slopes(system: Linear, link: int, s: complex, changes: Array) -> Array:
    """Derivatives (K,) of log L, the loop cut at a link's signal, as M(s) changes (K, N, N).

    1 + L is the determinant of I + R, with R (r, r) the return at the cut rows per unit input.
    """
    rows = len(system.A) + np.array(received_signals(system, link))
    matrix = system.matrix(s)
    enters = np.eye(len(matrix))[:, rows]
    cut, opened = matrix[rows] - enters.T, matrix.copy()
    opened[rows] = enters.T
    inside = np.linalg.solve(opened, enters)
    around = np.linalg.solve(opened.T, cut.T).T
    fixed = changes.copy()
    fixed[:, rows] = 0.0
    returned, moved = cut @ inside, (changes[:, rows] - around @ fixed) @ inside
    if len(rows) == 1:
        return moved[:, 0, 0] / returned[0, 0]
    closed = np.eye(len(rows)) + returned
    whole = np.linalg.det(closed)
    return whole * np.trace(np.linalg.solve(closed, moved), axis1=1, axis2=2) / (whole - 1)
