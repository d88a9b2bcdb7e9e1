"""How a delay equation is stepped, and the inputs and modes that it may have."""

import dataclasses
from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import numpy as np

import fluidcc.ops  # noqa: F401 - switches JAX to double precision


def _positive(name: str, value: Any) -> None:
    """Raise ValueError unless a plain number is positive; traced values pass."""
    if isinstance(value, str) or (isinstance(value, int | float) and not value > 0):
        raise ValueError(f"{name} must be positive, got {value}")


def _floats(value: Any) -> Any:
    """An array of floats that does not start JAX's backend if it is not one of JAX's."""
    return value if isinstance(value, jax.Array) else np.asarray(value, float)


class Uniform(eqx.Module):
    """Classical Runge-Kutta steps of one length, history in a ring: fast, in batches above all.

    Steps do not land on breaking points, so the error falls as the square of the step on smooth
    models, and as its first power where modes switch. Lags must stay above the step.

    Parameters
    ----------
    step
        Length of a step, in the unit of t. Networks have one of their own where it is left out: a
        32nd of the least round trip, but at most 0.9 of the shortest delay, and no longer than
        the averages of queue laws remember; where laws tick, the longest below that which divides
        the times between ticks.
    slots
        Nodes kept in the ring, rounded up to a power of two: at least longest lag / step + 3; more
        than 1024 only as far as the run fills them. By default twice what the lags at t0 need, and
        four times as many until it suffices where the lags are known numbers; 1024 in traced code.
        A run that would not fit in memory is refused before anything is allocated.
    single
        Compute in single precision with compensated sums: some 1e-6 on smooth equations, with half
        the memory. Steps are counted, so lags stay exact in long runs; the field is given t in
        single precision. Not for inputs, modes and networks.
    fused
        Run one kernel, generated from the equation and compiled by Warp (extra ``gpu``): on the
        card where JAX computes on one, each trajectory a thread, else on the processor, where no
        compiler is needed, those of a batch eight abreast. The same steps as without it, to
        rounding. Not in traced code.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.solve_dde(
    ...     lambda t, y, z, p: -z[0], lambda t, p: 1.0, 0.0, 2.0, lags=[lambda t, y, p: 1.0],
    ...     ts=[2.0], mesh=fc.Uniform(0.125),
    ... )
    >>> found.y.round(6).tolist()
    [-0.5]
    """

    step: Any = None
    slots: int | None = eqx.field(default=None, static=True)
    single: bool = eqx.field(default=False, static=True, kw_only=True)
    fused: bool = eqx.field(default=False, static=True, kw_only=True)

    def __check_init__(self) -> None:
        """Raise ValueError for a step or a number of slots that is not positive."""
        _positive("Uniform(step)", 1 if self.step is None else self.step)
        _positive("Uniform(slots)", 1 if self.slots is None else self.slots)


class Located(eqx.Module):
    """Runge-Kutta steps that land on breaking points and on changes of mode: order 4 throughout.

    Parameters
    ----------
    step
        Longest step, in the unit of t; or None, and the step is halved until the error estimated
        from two runs meets `atol + rtol |y|`. If it falls slowly, as at jumps and kinks that
        nothing declares, steps around them are shortened one by one.
    rtol, atol
        Relative and absolute tolerance when no step is given; `atol` is `rtol` by default.
    max_steps
        Most nodes to store. By default enough for a third more steps than the longest step
        needs and a thousand events.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.solve_dde(
    ...     lambda t, y, z, p: -z[0], lambda t, p: 1.0, 0.0, 2.0, lags=[lambda t, y, p: 1.0],
    ...     ts=[2.0], mesh=fc.Located(0.25),
    ... )
    >>> found.y.round(6).tolist()
    [-0.5]
    """

    step: Any = None
    _: dataclasses.KW_ONLY
    rtol: float = 1e-6
    atol: float | None = None
    max_steps: int | None = eqx.field(default=None, static=True)

    def __check_init__(self) -> None:
        """Raise ValueError for a step, tolerance or limit that is not positive."""
        _positive("Located(step)", 1 if self.step is None else self.step)
        _positive("Located(rtol)", self.rtol)
        _positive("Located(atol)", 1 if self.atol is None else self.atol)
        _positive("Located(max_steps)", 1 if self.max_steps is None else self.max_steps)


class MethodOfSteps(eqx.Module):
    """Adaptive steps of a diffrax solver from breaking point to breaking point.

    An independent check of the other meshes, and the one for equations without delay. It is
    driven from Python: not for jit or vmap, and lags must not vanish.

    Parameters
    ----------
    solver
        An explicit diffrax solver with dense output.
    rtol, atol
        Tolerances of its step-size control.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.solve_dde(
    ...     lambda t, y, z, p: -z[0], lambda t, p: 1.0, 0.0, 2.0, lags=[lambda t, y, p: 1.0],
    ...     ts=[2.0], mesh=fc.MethodOfSteps(),
    ... )
    >>> found.y.round(6).tolist()
    [-0.5]
    """

    solver: diffrax.AbstractAdaptiveSolver = diffrax.Dopri8()
    _: dataclasses.KW_ONLY
    rtol: float = 1e-8
    atol: float = 1e-10

    def __check_init__(self) -> None:
        """Raise ValueError for a tolerance that is not positive."""
        _positive("MethodOfSteps(rtol)", self.rtol)
        _positive("MethodOfSteps(atol)", self.atol)


class Sampled(eqx.Module):
    """Inputs that are held between sample times.

    Parameters
    ----------
    times
        Shape (k,), increasing: where the input changes.
    values
        Shape (k + 1, ...): before the first time, between the times, after the last.

    Examples
    --------
    >>> import fluidcc as fc
    >>> held = fc.Sampled([1.0], [0.0, 2.0])
    >>> found = fc.solve_dde(
    ...     lambda t, y, z, p, u: u(t - 0.5), lambda t, p: 0.0, 0.0, 2.0, lags=[], ts=[1.5, 2.0],
    ...     inputs=held,
    ... )
    >>> found.y.round(6).tolist()
    [0.0, 1.0]
    """

    times: Any = eqx.field(converter=_floats)
    values: Any = eqx.field(converter=_floats)

    def __check_init__(self) -> None:
        """Raise ValueError unless times increase and there is one more value than times."""
        if self.times.ndim != 1 or self.values.shape[:1] != (self.times.size + 1,):
            raise ValueError(
                "Sampled needs times of shape (k,) and k + 1 values, got shapes "
                f"{self.times.shape} and {self.values.shape}"
            )
        if isinstance(self.times, np.ndarray) and not np.all(np.diff(self.times) > 0):
            raise ValueError(f"Sampled needs increasing times, got {self.times}")


@dataclasses.dataclass(frozen=True)
class Modes:
    """Events that change a discrete mode, an integer array that is constant within a step.

    Parameters
    ----------
    start
        start(t, y, z, params) -> mode at t0.
    guards
        guards(t, y, z, params, mode) -> array (m,), positive inside the mode.
    switch
        switch(t, y, z, params, mode, hit) -> (mode, y) when the guards marked in `hit`, an array
        of booleans (m,), have fallen to zero. It may move the state, best onto the boundary.

    Examples
    --------
    >>> import fluidcc as fc
    >>> import jax.numpy as jnp
    >>> fall = fc.Modes(
    ...     start=lambda t, y, z, p: jnp.array(1),
    ...     guards=lambda t, y, z, p, mode: jnp.array([jnp.where(mode == 1, y, 1.0)]),
    ...     switch=lambda t, y, z, p, mode, hit: (jnp.array(0), 0.0 * y),
    ... )
    >>> found = fc.solve_dde(
    ...     lambda t, y, z, p, mode: jnp.where(mode == 1, -1.0, 0.0) + 0.0 * y,
    ...     lambda t, p: 1.5, 0.0, 3.0, lags=[], ts=[1.0, 2.0], modes=fall,
    ... )
    >>> found.y.round(6).tolist()
    [0.5, 0.0]
    """

    start: Callable[..., Any]
    guards: Callable[..., Any]
    switch: Callable[..., tuple[Any, Any]]
