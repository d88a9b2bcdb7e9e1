"""How a linear system, its characteristic roots and its margins move with parameters."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.equilibrium import Equilibrium
from fluidcc.analysis.linear import Array, Linear
from fluidcc.analysis.linearize import jacobians, still
from fluidcc.analysis.margins import heard_signals
from fluidcc.analysis.operating_point import operating_point, present
from fluidcc.analysis.rest import Rest
from fluidcc.model.delays import ages
from fluidcc.model.fluid import steady
from fluidcc.ops import Num
from fluidcc.scenario.network import Network

_LEVEL = 1e-9  # relative slope below which a curve is level: a grazing crossover, a double root


@dataclasses.dataclass(frozen=True)
class Motion:
    """Derivatives of the matrices and lags of a `Linear` along K directions, leading axis K."""

    A: Array
    B: Array
    C: Array
    D: Array
    lag: Array


@jax.jit
def _motions(net: Network, rest: Rest, side: Num, along: Network, dv: Num, du: Num) -> tuple:
    """Derivatives of A, B, C, D and the lags (K, ...) where numbers, state and wire move."""
    at = operating_point(net, rest, side)
    function, v, index = present(net, at.y, at.modes)
    unflatten = ravel_pytree(at.y)[1]
    n = len(v)

    def matrices(net: Network, v: Num, u: Num) -> tuple:
        by_state, by_past = jax.jacfwd(function, (1, 2))(net, v, u[index])
        lag = ravel_pytree(ages(net, unflatten(v)))[0]
        return by_state[:n], by_past[:n], by_state[n:], by_past[n:], lag

    def one(direction: tuple) -> tuple:
        return jax.jvp(matrices, (net, v, at.wire), direction)[1]

    return jax.lax.map(one, (along, dv, du))


def motion(eq: Equilibrium, along: Network, dv: Array, du: Array, *, side: int = 0) -> Motion:
    """How the linearisation of an equilibrium moves, of which state and wire move by dv and du."""
    net, aside = steady(eq.net), jnp.asarray(float(side))
    A, B, *_, frozen = map(np.asarray, jacobians(net, eq.rest, aside))
    free = (frozen == 0) & ~still(A, B)
    moved = _motions(net, eq.rest, aside, along, jnp.asarray(dv), jnp.asarray(du))
    dA, dB, dC, dD, dlag = map(np.asarray, moved)
    return Motion(dA[:, free][:, :, free], dB[:, free], dC[:, :, free], dD, dlag)


class Matrix:
    """M(s) = [[s I - A, -B E(s)], [-C, I - D E(s)]] of a linear system at one s, and its motion.

    `open_rows` are components of the wire that are left at zero, where a loop is cut.
    """

    def __init__(self, system: Linear, s: complex, open_rows: Array) -> None:
        self.system, self.s, self.rows = system, s, open_rows
        n, m = system.size
        self.n, self.size = n, n + m
        self.late = np.exp(-s * system.lag)
        self.fold = np.zeros((len(system.pick), m))
        self.fold[np.arange(len(system.pick)), system.pick] = 1.0
        self.value = np.eye(self.size, dtype=complex)
        self.value[:n, :n] *= s
        self.value -= self._assembled(system.A, system.B, system.C, system.D, self.late)

    def _assembled(self, A: Array, B: Array, C: Array, D: Array, late: Array) -> Array:
        """[[A, B E], [C, D E]], the last rows zero where the loop is cut."""
        upper = np.hstack([A, (B * late) @ self.fold])
        lower = np.hstack([C, (D * late) @ self.fold])
        lower[self.rows] = 0.0
        return np.vstack([upper, lower])

    def said(self) -> Array:
        """The cut rows [C, D E]."""
        parts = (self.system.C[self.rows], (self.system.D[self.rows] * self.late) @ self.fold)
        return np.hstack(parts)

    def along_s(self) -> tuple[Array, Array]:
        """Derivatives of M and of the cut rows by s."""
        system, late = self.system, -self.system.lag * self.late
        zero_a, zero_c = np.zeros_like(system.A), np.zeros_like(system.C)
        rate = -self._assembled(zero_a, system.B, zero_c, system.D, late)
        rate[: self.n, : self.n] += np.eye(self.n)
        rows = np.hstack([zero_c[self.rows], (system.D[self.rows] * late) @ self.fold])
        return rate, rows

    def along(self, moved: Motion, k: int) -> tuple[Array, Array]:
        """Derivatives of M and of the cut rows along direction k."""
        system = self.system
        late = -self.s * moved.lag[k] * self.late
        zero_a, zero_c = np.zeros_like(system.A), np.zeros_like(system.C)
        rate = self._assembled(moved.A[k], moved.B[k], moved.C[k], moved.D[k], self.late)
        rate = -rate - self._assembled(zero_a, system.B, zero_c, system.D, late)
        cut = moved.D[k][self.rows] * self.late + system.D[self.rows] * late
        return rate, np.hstack([moved.C[k][self.rows], cut @ self.fold])


def root_slopes(system: Linear, root: complex, moved: Motion) -> Array | None:
    """Derivatives (K,) of a simple characteristic root [1/s]; None where it is not simple.

    With null vectors w and v of M at the root, dl/dp = -(w* M_p v)/(w* M_l v).
    """
    matrix = Matrix(system, root, np.zeros(0, int))
    scale = np.abs(matrix.value).max(axis=1, keepdims=True)
    left, _, right = np.linalg.svd(matrix.value / scale)
    w, v = left[:, -1].conj() / scale[:, 0], right[-1].conj()
    rate = matrix.along_s()[0]
    speed = w @ rate @ v
    if abs(speed) <= _LEVEL * (np.abs(w) @ np.abs(rate) @ np.abs(v)):
        return None
    return np.array([-(w @ matrix.along(moved, k)[0] @ v) / speed for k in range(len(moved.lag))])


def log_loop_slopes(
    system: Linear, link: int, frequency: float, moved: Motion
) -> tuple[complex, Array]:
    """Derivatives of log L(i w), the loop cut at a link's signal: by w, and along K directions."""
    rows = np.asarray(heard_signals(system, link))
    matrix = Matrix(system, 1j * frequency, rows)
    units = np.zeros((matrix.size, len(rows)))
    units[matrix.n + rows, np.arange(len(rows))] = 1.0
    forward = np.linalg.solve(matrix.value, units)
    cut = matrix.said()
    backward = np.linalg.solve(matrix.value.T, cut.T).T
    gain = -cut @ forward
    single = len(rows) == 1
    around = np.eye(len(rows)) + (0.0 if single else 1.0) * gain
    loop = gain[0, 0] if single else np.linalg.det(around) - 1

    def slope(rate: Array, rows_rate: Array) -> complex:
        turned = -(rows_rate - backward @ rate) @ forward
        if single:
            return turned[0, 0] / loop
        return np.linalg.det(around) * np.trace(np.linalg.solve(around, turned)) / loop

    by_frequency = 1j * slope(*matrix.along_s())
    return by_frequency, np.array([slope(*matrix.along(moved, k)) for k in range(len(moved.lag))])


@dataclasses.dataclass(frozen=True)
class CrossoverSlopes:
    """Derivatives (K,) at a crossover: of its frequency [rad/s], and of log |L| (at a phase
    crossover) or of the phase [rad] (at a gain crossover) there.
    """

    frequency: Array
    level: Array


def gain_crossover_slopes(
    system: Linear, link: int, frequency: float, moved: Motion
) -> CrossoverSlopes | None:
    """How a gain crossover moves; None where |L| only touches 1."""
    by_w, by_p = log_loop_slopes(system, link, frequency, moved)
    if abs(by_w.real) <= _LEVEL * max(abs(by_w), 1 / frequency):
        return None
    turning = -np.real(by_p) / by_w.real
    return CrossoverSlopes(turning, np.imag(by_p) + by_w.imag * turning)


def phase_crossover_slopes(
    system: Linear, link: int, frequency: float, moved: Motion
) -> CrossoverSlopes | None:
    """How a phase crossover moves; None where L only touches the negative axis."""
    by_w, by_p = log_loop_slopes(system, link, frequency, moved)
    if abs(by_w.imag) <= _LEVEL * max(abs(by_w), 1 / frequency):
        return None
    turning = -np.imag(by_p) / by_w.imag
    return CrossoverSlopes(turning, np.real(by_p) + by_w.real * turning)
