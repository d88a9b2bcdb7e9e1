"""Sub- or supercritical: the first Lyapunov coefficient of a Hopf point.

Near a Hopf point motions are x = x0 + z q + conj + quadratic terms, with z' = i w z + c z |z|^2.
The Taylor coefficients of the right-hand side along that motion give c, including delayed arguments
that depend on the state: a smooth motion inserted into field and lags is a smooth function of its
amplitude, whatever the lags depend on. Kuznetsov (2004), 5.4; Hassard, Kazarinoff and Wan (1981).

Self-clocked rates obey difference equations in addition to the differential ones. The reduction is
the same with their characteristic matrix if the difference part alone decays, Hale and Verduyn
Lunel (1993), chapter 9. Each class conserves its window less its flight size, a root at s = 0.
Motions from one equilibrium share conserved values, which fixes the mean of the quadratic terms.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.equilibrium import Equilibrium, OperatingPoint
from fluidcc.analysis.linear import Array, Linear
from fluidcc.analysis.linearize import free_states, linearize
from fluidcc.analysis.local_model import local_state, present_function
from fluidcc.analysis.winding import difference_decays
from fluidcc.arrays import jax, jnp
from fluidcc.executables import compile_once
from fluidcc.model.delays import (
    DelayedInputs,
    ages,
    ages_along,
    breakpoint_distances,
    fifo_delays,
    output_indices,
)
from fluidcc.model.fluid import steady
from fluidcc.ops import Num
from fluidcc.scenario.network import Network

if TYPE_CHECKING:
    from fluidcc.analysis.delay_equation import EquationEquilibrium
    from fluidcc.analysis.scan import AnyEquilibrium

TIMES = 8  # of a period: resolves the third harmonic
_NOTHING = 1e-9  # of the terms that make the coefficient
_SINGULAR = 1e-12
_SMALL_PART = 0.01  # of the equilibrium: amplitudes at which slopes are taken
_TO_KINK = 0.1  # of the way to a kink
_DRIFT = 1e-6  # of the terms that would balance
_NODES = 32  # of a round trip: integrates some periods to rounding
_DRIFTS = (
    "packets in flight of self-clocked flows drift from their windows as they oscillate, so that "
    "no cycle is near: model.delay = 'fifo' conserves them"
)

Component = Callable[[Any, Any], Any]
"""Components of the motion, by index, at times of the same shape."""

Present = Callable[[Component, Any], Any]
"""Right-hand side at a time along a motion: rates of the states, then the outputs."""


@dataclasses.dataclass(frozen=True)
class NormalForm:
    """z' = i w z + coefficient z |z|^2 at a Hopf point, x = x0 + 2 Re(z vector).

    `vector` (n,) over the states has Euclidean norm 1; `coefficient` [1/s per squared unit of the
    states]. `message` is the reason if there is none.
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
        """`supercritical`, `subcritical`, `degenerate` if third order is inconclusive."""
        if self.coefficient is None:
            return None
        if abs(self.coefficient.real) <= _NOTHING * self.scale or not self.scale:
            return "degenerate"
        return "supercritical" if self.coefficient.real < 0 else "subcritical"


def normal_form(equilibrium: AnyEquilibrium, frequency: float) -> NormalForm:
    """The normal form at an equilibrium with roots i w and -i w, w = `frequency` [rad/s]."""
    nothing = functools.partial(NormalForm, frequency, None, np.zeros(0), 0.0)
    if equilibrium.kinked:
        return nothing("at a kink of the marking: no derivatives of third order")
    try:
        if not isinstance(equilibrium, Equilibrium):
            derivatives = functools.partial(_of_equation, equilibrium)
            return reduced(
                equilibrium.linear(), np.tile(equilibrium.flat, 2), frequency, derivatives
            )
        return _of_network(equilibrium, frequency)
    except ArithmeticError as fault:
        return nothing(str(fault))


def reduced(
    system: Linear,
    start: Array,
    frequency: float,
    derivatives: Callable[..., Any],
    kept: Callable[..., Any] | None = None,
) -> NormalForm:
    """The normal form of a model with roots i w and -i w, w = `frequency` [rad/s].

    Motions (states, outputs) are given by equilibrium `start`, frequency, vector, mean, double: x =
    start + size first + size^2 (mean + second), first = 2 Re(vector e^(iwt)), second the same of
    double at 2 w.

    Parameters
    ----------
    system
        The linear system, neutral ones included.
    derivatives
        Taylor coefficients of second and third order by size of the right-hand side along a motion,
        states and outputs, at `TIMES` times that divide a period.
    kept
        If the system has conserved quantities, the coefficients of second order of their means
        along a motion, for its frequency, vector and mean.

    Raises ArithmeticError if there is no normal form, with the reason.
    """
    n = system.size[0]
    u, _, v = np.linalg.svd(system.matrix(1j * frequency))
    right, left = v[-1].conj(), u[:, -1].conj()
    right = right / np.linalg.norm(right[:n])
    zero = np.zeros_like(right)
    second, _ = derivatives(start, frequency, right, np.real(zero), zero)
    among = None if kept is None else functools.partial(kept, start, frequency, right)
    mean = _mean(system, np.real(_harmonic(second, 0)), among)
    double = np.linalg.solve(system.matrix(2j * frequency), _harmonic(second, 2))
    _, third = derivatives(start, frequency, right, mean, double)
    force = _harmonic(third, 1)
    rate = left @ system.matrix_slope(1j * frequency) @ right
    coefficient = complex(left @ force / rate)
    scale = float(np.abs(left) @ np.abs(force) / abs(rate))
    return NormalForm(frequency, coefficient, right[:n], scale)


def _mean(system: Linear, force: Array, kept: Callable[..., Any] | None) -> Array:
    """Mean of the quadratic terms under the mean of the force.

    It is free along a family of equilibria for each conserved quantity, whose value then fixes it.
    """
    u, sizes, v = np.linalg.svd(system.matrix(0.0))
    regular = len(sizes) - system.conserved
    if sizes[regular - 1] <= _SINGULAR * sizes[0]:
        raise ArithmeticError("a zero root as well: no normal form of a Hopf point")
    mean = v[:regular].T @ (u.T[:regular] @ force / sizes[:regular])
    if kept is None:
        return mean
    left, family = u.T[regular:], v[regular:].T
    if np.any(np.abs(left @ force) > _DRIFT * (np.abs(left) @ np.abs(force))):
        raise ArithmeticError(_DRIFTS)
    off, slope = kept(mean)
    along = slope @ family
    if np.linalg.cond(along) > 1 / _SINGULAR:
        raise ArithmeticError("a zero root as well: no normal form of a Hopf point")
    return mean - family @ np.linalg.solve(along, off)


def _harmonic(values: Array, k: int) -> Array:
    """Fourier coefficient of values (times, ...) over one period."""
    return np.exp(-2j * np.pi * k * np.arange(TIMES) / TIMES) @ np.asarray(values) / TIMES


def _along(function: Present, time: Num, motion: tuple) -> Callable[[Num], Num]:
    """Right-hand side at a time of a motion, as a function of its amplitude."""
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
    return 2 * jnp.pi / frequency * (np.arange(TIMES) / TIMES)


def _of_equation(equilibrium: EquationEquilibrium, *motion: Any) -> Any:
    """Taylor coefficients for a delay equation."""
    from fluidcc.analysis.delay_equation import flat_field, flat_lags

    field, lags = (
        flat_field(equilibrium.equation, equilibrium.y),
        flat_lags(equilibrium.equation, equilibrium.y),
    )
    states = np.arange(len(equilibrium.flat))
    outputs = states + len(states)  # carries the state itself

    def function(component: Component, t: Num) -> Num:
        y = component(states, t)
        z = jax.vmap(lambda lag: component(outputs, t - lag))(lags(y, equilibrium.equation.params))
        return jnp.concatenate([field(y, z, equilibrium.equation.params), y])

    def at(time: Num) -> Any:
        twice = _slope(_slope(_along(function, time, motion)))
        return jax.jvp(twice, (jnp.zeros(()),), (jnp.ones(()),))

    second, third = jax.jit(jax.vmap(at))(_times(motion[1]))
    return second / 2, third / 6


def _of_network(eq: Equilibrium, frequency: float) -> NormalForm:
    """The normal form of a network in its free states and outputs."""
    net, system = steady(eq.net), linearize(eq.net, eq)
    if system.conserved and not difference_decays(system):
        raise ArithmeticError(
            "self-clocked rates of several classes: their differences from round trip to round "
            "trip do not decay by themselves, and roots crowd at the imaginary axis"
        )
    if system.conserved and net.delay != "fifo" and len(net.links) > 1:
        raise ArithmeticError(_DRIFTS)
    free = tuple(np.flatnonzero(free_states(eq.net, eq)).tolist())
    point = local_state(net, eq.op, jnp.zeros(()))
    flat = np.asarray(ravel_pytree(point.y)[0])
    start = np.concatenate([flat[list(free)], np.asarray(point.outputs)])
    nearest = np.min(np.abs(breakpoint_distances(net, point.y)), initial=np.inf)  # packet

    def derivatives(start: Array, frequency: float, right: Array, *others: Any) -> Any:
        share = np.abs(right) / np.where(start == 0, np.inf, np.abs(start))
        largest = min(_SMALL_PART / np.max(share), _TO_KINK * nearest / np.max(np.abs(right)))
        sizes = largest * np.arange(-3, 4) / 3
        motion = (start, frequency, right, *others)
        slopes = _network_slopes(net, eq.op, free, sizes, motion)
        flat = np.asarray(slopes).reshape(len(sizes), -1)
        fit = np.linalg.solve(np.vander(sizes / largest, increasing=True), flat)
        shape = slopes.shape[1:]
        second, third = fit[1] / (2 * largest), fit[2] / (3 * largest**2)
        return second.reshape(shape), third.reshape(shape)

    def kept(*motion: Any) -> tuple[Array, Array]:
        off, slope = _flights(net, eq.op, free, motion)
        return np.asarray(off), np.asarray(slope)

    return reduced(system, start, frequency, derivatives, kept if system.conserved else None)


@compile_once(static_argnames="free")
def _network_slopes(
    net: Network, equilibrium: OperatingPoint, free: tuple[int, ...], sizes: Num, motion: tuple
) -> Any:
    """Slopes by amplitude (sizes, times, unknowns) for a network whose `free` states move.

    Slopes at several amplitudes replace higher derivatives, which take long to compile.
    """
    moving = _Moving(net, equilibrium, free)
    what, n = moving.what, len(free)

    def function(component: Component, t: Num) -> Num:
        v = moving.state(component, t)
        late = ravel_pytree(moving.late(component, t))[0]
        both = what(net, v, component(n + moving.index, t - late))
        return jnp.concatenate([both[: len(v)][moving.where], both[len(v) :]])

    def at(size: Num, time: Num) -> Num:
        return _slope(_along(function, time, motion))(size)

    over_times = jax.vmap(at, (None, 0))
    return jax.vmap(over_times, (0, None))(sizes, _times(motion[1]))


class _Moving:
    """A network whose `free` states move about its equilibrium."""

    def __init__(self, net: Network, equilibrium: OperatingPoint, free: tuple[int, ...]) -> None:
        point = local_state(net, equilibrium, jnp.zeros(()))
        self.net, self.free, self.where = net, free, np.array(free, int)
        self.what, self.flat, self.index = present_function(net, point.y, point.modes)
        self.tree = ravel_pytree(point.y)[1]
        self.first_queue = sum(np.size(leaf) for leaf in jax.tree.leaves(point.y.senders))

    def state(self, component: Component, t: Num) -> Num:
        """The flat state at a time."""
        return self.flat.at[self.where].set(component(np.arange(len(self.free)), t))

    def late(self, component: Component, t: Num) -> DelayedInputs:
        """Lags of all delayed inputs at a time."""
        net, first, y = self.net, self.first_queue, self.tree(self.state(component, t))
        if net.delay != "fifo":
            return ages(net, y)

        def queue_at(k: int, s: Num, _: int) -> Num:
            if first + k not in self.free:
                return jnp.full_like(s, self.flat[first + k])
            return component(np.full(jnp.shape(s), self.free.index(first + k)), s)

        delays = [fifo_delays(net, f, t, queue_at, _entry_time) for f in net.flows]
        return ages_along(net, delays, y.senders)


@compile_once(static_argnames="free")
def _flights(
    net: Network, equilibrium: OperatingPoint, free: tuple[int, ...], motion: tuple
) -> tuple[Num, Num]:
    """Windows less flights to second order of the amplitude, their means over a period: (classes,)
    for a motion given by start, frequency, vector and mean, and their derivative by that mean.

    If delays follow from present queues, flights are the packets on the way to the queue and in it:
    behind a busy queue one class has a constant number of packets.
    """
    moving, fifo = _Moving(net, equilibrium, free), net.delay == "fifo"
    nodes, weights = (a[None, :] for a in np.polynomial.legendre.leggauss(_NODES))
    own = np.concatenate([np.ravel(p) for p in output_indices(net).acked])

    def function(component: Component, t: Num) -> Num:
        y, late = moving.tree(moving.state(component, t)), moving.late(component, t)
        windows = [f.window.window(s.law) for f, s in zip(net.flows, y.senders, strict=True)]
        ages = late.acked if fifo else [ways[0] for ways in late.arriving]
        nothing = (0.0 * own for own in late.acked)  # age of what arrives from a source at its link
        ages = [n if a is None else a for a, n in zip(ages, nothing, strict=True)]
        trip = jnp.concatenate(ages)[:, None]
        sent = t - trip * (1 + nodes) / 2
        index = np.broadcast_to(len(free) + own[:, None], sent.shape)
        flight = jnp.sum(component(index, sent) * weights * trip / 2, axis=1)
        waiting = 0.0 if fifo else y.queues[0] / jnp.concatenate([f.n for f in net.flows])
        return jnp.concatenate(windows) - flight - waiting

    *others, mean = motion

    def second(mean: Num) -> Num:
        def at(time: Num) -> Num:
            along = _along(function, time, (*others, mean, jnp.zeros_like(others[2])))
            return jax.jvp(_slope(along), (jnp.zeros(()),), (jnp.ones(()),))[1] / 2

        return jnp.mean(jax.vmap(at)(_times(others[1])), axis=0)

    return second(mean), jax.jacfwd(second)(mean)


def _entry_time(leaving: Num, wait_at: Callable[[Num], Num]) -> Num:
    """Time at which packets that leave a queue entered it, to third order in the amplitude.

    Each iteration from the wait at equilibrium gains one order.
    """
    s = leaving - jax.lax.stop_gradient(wait_at(leaving))
    for _ in range(3):
        s = leaving - wait_at(s)
    return s
