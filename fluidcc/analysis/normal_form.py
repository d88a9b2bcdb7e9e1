"""Sub- or supercritical: the first Lyapunov coefficient of a Hopf point.

Near a Hopf point the motion is x = rest + z q + conj + quadratic terms with z' = i w z + c z |z|^2.
The Taylor coefficients of the right-hand side along that motion give c, delayed arguments that move
with the state included: a smooth motion put into field and lags is a smooth function of its
amplitude, whatever the lags depend on. Kuznetsov (2004), 5.4; Hassard, Kazarinoff and Wan (1981).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.delay_equation import EquationRest, flat_field, flat_lags
from fluidcc.analysis.equilibrium import Equilibrium
from fluidcc.analysis.linear import Array, Linear
from fluidcc.analysis.linearize import jacobians, linearize, operating_point, present, still
from fluidcc.analysis.model import AtRest, kinked
from fluidcc.analysis.rest import Rest
from fluidcc.fluid.delays import State, ages, ages_on
from fluidcc.fluid.fifo import fifo_way
from fluidcc.fluid.service import with_mean_calls
from fluidcc.network import Network, numeric
from fluidcc.ops import Num

_TIMES = 8  # of a period: resolves the third harmonic
_NOTHING = 1e-9  # of the terms that make the coefficient
_SINGULAR = 1e-12
_SMALL_PART = 0.01  # of what is at rest: amplitudes at which slopes are taken
_TO_KINK = 0.1  # of the way to a kink

Component = Callable[[Any, Any], Any]
"""Components of the motion, by index, at times of the same shape."""

Present = Callable[[Component, Any], Any]
"""What a model does at a time, from its motion: rates of its states, then its wire."""


@dataclasses.dataclass(frozen=True)
class NormalForm:
    """z' = i w z + coefficient z |z|^2 at a Hopf point, x = rest + 2 Re(z vector).

    `vector` (n,) over the states has Euclidean norm 1; `coefficient` [1/s per squared unit of the
    states]. `message` says why there is none.
    """

    frequency: float
    coefficient: complex | None
    vector: Array
    scale: float
    message: str = ""

    @property
    def lyapunov(self) -> float | None:
        """First Lyapunov coefficient, Re(coefficient)/w: negative where cycles are stable."""
        return None if self.coefficient is None else self.coefficient.real / self.frequency

    @property
    def criticality(self) -> str | None:
        """`supercritical`, `subcritical`, `degenerate` where third order decides nothing."""
        if self.coefficient is None:
            return None
        if abs(self.coefficient.real) <= _NOTHING * self.scale or not self.scale:
            return "degenerate"
        return "supercritical" if self.coefficient.real < 0 else "subcritical"

    def amplitudes(self, growth: float) -> Array:
        """Amplitude of each state on the cycle at a growth rate [1/s] of the equilibrium.

        First order in its root. Raises ValueError where cycles are on the other side.
        """
        if self.coefficient is None or growth * self.coefficient.real > 0:
            raise ValueError("there is no cycle on this side of the Hopf point")
        return 2 * np.abs(self.vector) * math.sqrt(-growth / self.coefficient.real)


def normal_form(rest: AtRest, frequency: float) -> NormalForm:
    """The normal form at an equilibrium with roots i w and -i w, w = `frequency` [rad/s]."""
    nothing = functools.partial(NormalForm, frequency, None, np.zeros(0), 0.0)
    if kinked(rest):
        return nothing("at a kink of the marking: no derivatives of third order")
    if isinstance(rest, EquationRest):
        system, start = rest.linear(), np.tile(rest.flat, 2)
        derivatives = functools.partial(_of_equation, rest)
    else:
        system, start, derivatives = _of_network(rest)
    if system.conserved:
        return nothing("conserved quantities of self-clocked flows make zero roots")
    if np.linalg.cond(system.matrix(0.0)) > 1 / _SINGULAR:
        return nothing("a zero root as well: no normal form of a Hopf point")
    return _reduced(system, start, frequency, derivatives)


def _reduced(
    system: Linear, start: Array, frequency: float, derivatives: Callable[..., Any]
) -> NormalForm:
    n = system.size[0]
    matrix = system.matrix(1j * frequency)
    u, _, v = np.linalg.svd(matrix)
    right, left = v[-1].conj(), u[:, -1].conj()
    right = right / np.linalg.norm(right[:n])
    zero = np.zeros_like(right)
    second, _ = derivatives(start, frequency, right, np.real(zero), zero)
    mean = np.linalg.solve(system.matrix(0.0), _harmonic(second, 0)).real
    double = np.linalg.solve(system.matrix(2j * frequency), _harmonic(second, 2))
    _, third = derivatives(start, frequency, right, mean, double)
    force = _harmonic(third, 1)
    rate = left @ system.matrix_slope(1j * frequency) @ right
    coefficient = complex(left @ force / rate)
    scale = float(np.abs(left) @ np.abs(force) / abs(rate))
    return NormalForm(frequency, coefficient, right[:n], scale)


def _harmonic(values: Array, k: int) -> Array:
    """Fourier coefficient of values (times, ...) over one period."""
    return np.exp(-2j * np.pi * k * np.arange(_TIMES) / _TIMES) @ np.asarray(values) / _TIMES


def _along(function: Present, time: Num, motion: tuple) -> Callable[[Num], Num]:
    """What a model does at a time of its motion, by amplitude."""
    start, frequency, right, mean, double = motion

    def wave(amplitude: Num, angle: Num) -> Num:
        return 2 * (jnp.real(amplitude) * jnp.cos(angle) - jnp.imag(amplitude) * jnp.sin(angle))

    def along(size: Num) -> Num:
        def component(index: Any, t: Num) -> Num:
            first = wave(right[index], frequency * t)
            second = mean[index] + wave(double[index], 2 * frequency * t)
            return start[index] + size * first + size**2 * second

        return function(component, time)

    return along


def _slope(function: Callable[[Num], Num]) -> Callable[[Num], Num]:
    return lambda size: jax.jvp(function, (size,), (jnp.ones(()),))[1]


def _times(frequency: Num) -> Num:
    """Times that divide a period evenly."""
    return 2 * jnp.pi / frequency * (np.arange(_TIMES) / _TIMES)


def _of_equation(rest: EquationRest, *motion: Any) -> Any:
    """Taylor coefficients for a delay equation."""
    field, lags = flat_field(rest.equation, rest.y), flat_lags(rest.equation, rest.y)
    states = np.arange(len(rest.flat))
    wire = states + len(states)  # carries the state itself

    def function(component: Component, t: Num) -> Num:
        y = component(states, t)
        z = jax.vmap(lambda lag: component(wire, t - lag))(lags(y, rest.equation.params))
        return jnp.concatenate([field(y, z, rest.equation.params), y])

    def at(time: Num) -> Any:
        twice = _slope(_slope(_along(function, time, motion)))
        return jax.jvp(twice, (jnp.zeros(()),), (jnp.ones(()),))

    second, third = jax.jit(jax.vmap(at))(_times(motion[1]))
    return second / 2, third / 6


def _of_network(eq: Equilibrium) -> tuple[Linear, Array, Callable[..., Any]]:
    """Linear system, rest of free states and wire, and Taylor coefficients of a network."""
    net = with_mean_calls(numeric(eq.net))
    A, B, _, _, _, frozen = map(np.asarray, jacobians(net, eq.rest, jnp.zeros(())))
    free = np.flatnonzero((frozen == 0) & ~still(A, B))
    point = operating_point(net, eq.rest, jnp.zeros(()))
    flat = np.asarray(ravel_pytree(point.y)[0])
    start = np.concatenate([flat[free], np.asarray(point.wire)])
    nearest = _to_kink(net, point.y)

    def derivatives(start: Array, frequency: float, right: Array, *others: Any) -> Any:
        share = np.abs(right) / np.where(start == 0, np.inf, np.abs(start))
        largest = min(_SMALL_PART / np.max(share), _TO_KINK * nearest / np.max(np.abs(right)))
        sizes = largest * np.arange(-3, 4) / 3
        slopes = _network_slopes(
            net, eq.rest, tuple(free.tolist()), sizes, start, frequency, right, *others
        )
        flat = np.asarray(slopes).reshape(len(sizes), -1)
        fit = np.linalg.solve(np.vander(sizes / largest, increasing=True), flat)
        shape = slopes.shape[1:]
        second, third = fit[1] / (2 * largest), fit[2] / (3 * largest**2)
        return second.reshape(shape), third.reshape(shape)

    return linearize(eq.net, eq), start, derivatives


def _to_kink(net: Network, y: State) -> float:
    """Distance of the links' averages to the next kink of their marking [packet]."""
    distances = [
        abs(float(distance))
        for k, link in enumerate(net.links)
        for distance in link.queue.kinks(y.laws[k], y.queues[k])
    ]
    return min(distances, default=math.inf)


@functools.partial(jax.jit, static_argnums=2)
def _network_slopes(
    net: Network, rest: Rest, free: tuple[int, ...], sizes: Num, *motion: Any
) -> Any:
    """Slopes by amplitude (sizes, times, unknowns) for a network whose `free` states move.

    Slopes at several amplitudes take the place of higher derivatives, which take long to compile.
    """
    point = operating_point(net, rest, jnp.zeros(()))
    what, flat, index = present(net, point.y, point.modes)
    tree, where, n = ravel_pytree(point.y)[1], np.array(free, int), len(free)
    first = sum(np.size(leaf) for leaf in jax.tree.leaves(point.y.senders))

    def function(component: Component, t: Num) -> Num:
        v = flat.at[where].set(component(np.arange(n), t))

        def queue_at(k: int, s: Num) -> Num:
            if first + k not in free:
                return jnp.full_like(s, flat[first + k])
            return component(np.full(jnp.shape(s), free.index(first + k)), s)

        if net.delay == "fifo":
            late = ages_on(net, [fifo_way(net, f, t, queue_at, _entry_time) for f in net.flows])
        else:
            late = ages(net, tree(v))
        both = what(net, v, component(n + index, t - ravel_pytree(late)[0]))
        return jnp.concatenate([both[: flat.size][where], both[flat.size :]])

    def at(size: Num, time: Num) -> Num:
        return _slope(_along(function, time, motion))(size)

    over_times = jax.vmap(at, (None, 0))
    return jax.vmap(over_times, (0, None))(sizes, _times(motion[1]))


def _entry_time(leaving: Num, wait_at: Callable[[Num], Num]) -> Num:
    """Time at which packets that leave a queue entered it, to third order in the amplitude.

    Each turn of the iteration from the wait at rest is right to one order more.
    """
    s = leaving - jax.lax.stop_gradient(wait_at(leaving))
    for _ in range(3):
        s = leaving - wait_at(s)
    return s
