"""How a linear system, its characteristic roots and its margins move with parameters."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.equilibrium import Equilibrium
from fluidcc.analysis.gradients.implicit import carry, expand, motion_of
from fluidcc.analysis.linear import Array, Linear, full_matrix
from fluidcc.analysis.linearize import jacobians, still
from fluidcc.analysis.margins import heard_signals
from fluidcc.analysis.operating_point import operating_point, present
from fluidcc.analysis.rest import Rest
from fluidcc.model.delays import ages
from fluidcc.model.fluid import steady
from fluidcc.ops import Num
from fluidcc.scenario.network import Network

_LEVEL = 1e-9  # relative slope below which a curve is level: a grazing crossover, a double root


class Matrices(NamedTuple):
    """A, B, C, D and the lags of a `Linear`, or their derivatives along K directions (K, ...)."""

    A: Any
    B: Any
    C: Any
    D: Any
    lag: Any

    @classmethod
    def of(cls, system: Linear) -> Matrices:
        """Those of a linear system."""
        return cls(system.A, system.B, system.C, system.D, system.lag)

    def matrix(self, pick: Num, s: Num) -> Num:
        """The characteristic matrix at s."""
        return full_matrix(*self, pick=pick, s=s, xp=jnp)


@jax.jit
def _slopes(net: Network, rest: Rest, along: Network, dv: Num, du: Num) -> Matrices:
    """Derivatives of the matrices (K, ...) as numbers, state and wire move."""
    at = operating_point(net, rest, jnp.zeros(()))
    function, v, index = present(net, at.y, at.modes)
    unflatten = ravel_pytree(at.y)[1]
    n = len(v)

    def matrices(net: Network, v: Num, u: Num) -> Matrices:
        by_state, by_past = jax.jacfwd(function, (1, 2))(net, v, u[index])
        lag = ravel_pytree(ages(net, unflatten(v)))[0]
        return Matrices(by_state[:n], by_past[:n], by_state[n:], by_past[n:], lag)

    def one(direction: tuple) -> Matrices:
        return jax.jvp(matrices, (net, v, at.wire), direction)[1]

    return jax.lax.map(one, (along, dv, du))


def matrix_slopes(eq: Equilibrium, along: Network, dv: Array, du: Array) -> Matrices:
    """How the linearisation of an equilibrium moves, of which state and wire move by dv and du."""
    net = steady(eq.net)
    A, B, *_, frozen = map(np.asarray, jacobians(net, eq.rest, jnp.zeros(())))
    free = (frozen == 0) & ~still(A, B)
    found = _slopes(net, eq.rest, along, jnp.asarray(dv), jnp.asarray(du))
    dA, dB, dC, dD, lag = map(np.asarray, found)
    return Matrices(dA[:, free][:, :, free], dB[:, free], dC[:, :, free], dD, lag)


@jax.jit
def _root(x: Num, at: Matrices, along: Matrices, pick: Num, left: Num, right: Num) -> Any:
    def residual(x: Num, at: Matrices) -> Num:
        value = left @ at.matrix(pick, jax.lax.complex(*x)) @ right
        return jnp.stack([value.real, value.imag])

    return expand(residual, x, at, along)


def root_slopes(system: Linear, root: complex, along: Matrices) -> Array | None:
    """Derivatives (K,) of a simple characteristic root [1/s]; None where it is not simple.

    With null vectors w and v of M at the root, w* M(s) v vanishes with M's determinant.
    """
    matrix = system.matrix(root)
    scale = np.abs(matrix).max(axis=1, keepdims=True)
    left, _, right = np.linalg.svd(matrix / scale)
    w, v = left[:, -1].conj() / scale[:, 0], right[-1].conj()
    rate = system.matrix_slope(root)
    if abs(w @ rate @ v) <= _LEVEL * (np.abs(w) @ np.abs(rate) @ np.abs(v)):
        return None
    x = jnp.array([root.real, root.imag])
    _, by_x, directed = _root(x, Matrices.of(system), along, system.pick, w, v)
    return motion_of(np.asarray(by_x), np.asarray(directed)) @ np.array([1, 1j])


@functools.partial(jax.jit, static_argnames="rows")
def _crossover(x: Num, at: Matrices, along: Matrices, pick: Num, rows: tuple[int, ...]) -> Any:
    """Log |L(i w)| and the phase of L, the loop cut at these rows of the wire."""

    def log_loop(x: Num, at: Matrices) -> Num:
        closed = at.matrix(pick, jax.lax.complex(0.0 * x[0], x[0]))
        cut = len(at.A) + np.array(rows)
        unit = jnp.eye(len(closed), dtype=complex)[cut]
        returned = (closed[cut] - unit) @ jnp.linalg.solve(closed.at[cut].set(unit), unit.T)
        several = len(rows) > 1
        around = jnp.linalg.det(jnp.eye(len(rows), dtype=complex) + returned) if several else 1.0
        log = jnp.log(around - 1 if several else returned[0, 0])
        return jnp.stack([log.real, log.imag])

    return expand(log_loop, x, at, along)


def crossover_slopes(
    system: Linear, link: int, frequency: float, along: Matrices, *, gain: bool
) -> tuple[Array, Array] | None:
    """Derivatives (K,) of the frequency of a crossover [rad/s], and there of the phase [rad] (of a
    `gain` crossover) or of log |L| (of a phase crossover); None where the loop only touches it.
    """
    rows = tuple(heard_signals(system, link))
    x = jnp.array([frequency])
    found = _crossover(x, Matrices.of(system), along, system.pick, rows)
    _, by_x, directed = map(np.asarray, found)
    held, seen = (0, 1) if gain else (1, 0)
    if abs(by_x[held, 0]) <= _LEVEL * max(float(np.linalg.norm(by_x)), 1 / frequency):
        return None
    moves = motion_of(by_x[[held]], directed[:, [held]])
    return moves[:, 0], carry(by_x[seen], directed[:, seen], moves)
