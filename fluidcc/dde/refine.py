"""Refine a located mesh until the estimated error meets a tolerance.

Its step is halved. If the error falls more slowly than that of a smooth equation, there are jumps
or kinks that nothing declares: then each step also has an error of its own to meet, so that those
around them become as short as they must be.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from fluidcc.dde import located
from fluidcc.dde.status import Status

_FEW = 16.0**-3.5
"""Of the tolerance: the error has fallen with a step's three times if it does so at all."""


class Refined(NamedTuple):
    """A run whose step is halved until the difference to the run before is small."""

    run: located.Run
    values: Array  # at the probes
    step: Array  # of the next run
    factor: Array  # by which the step of the last run was shorter than that of the one before
    share: Array  # of the tolerance, for each single step of the next run; infinite at first
    error: Array  # estimated, in units of the tolerance
    first: Array  # probe at which the tolerance is not met
    met: Array
    stuck: Array  # whether shorter steps are of no use


def refine(
    integrate: Callable[[Array, Array], located.Run],
    probes: Array,
    size: int,
    step: Array,
    rtol: Array,
    atol: Array,
) -> located.Run:
    """Run with shorter and shorter steps until the estimated error is met at the probes, times at
    which states of this `size` are compared.
    """

    def again(state: Refined) -> Refined:
        run = integrate(state.step, state.share)
        values = located.states(run, probes, size)
        change = lax.stop_gradient(jnp.abs(values - state.values))
        change = change / (atol + rtol * jnp.abs(lax.stop_gradient(values)))
        errors = jnp.max(change, axis=1) / (state.factor**4 - 1.0)  # the method is of order 4
        error, local, ok = jnp.max(errors), jnp.isfinite(state.share), run.status == Status.ok
        # what a step may err is of order 3, but of order 2 at kinks and 1 at jumps
        smooth = run.excess <= jnp.maximum(1.0, state.run.excess / state.factor**2.5)
        # and what the run before was estimated to err is about what it has erred
        smooth &= error * (state.factor**4 - 1.0) <= 2.0 * state.error
        early = ~jnp.isfinite(state.error) & (error > 1.0)  # the first steps are long
        slow = ~local & ~(ok & (smooth | early))
        met = ok & (error <= 1.0) & ~slow
        halvings = jnp.ceil(0.25 * jnp.log2(jnp.where(jnp.isfinite(error), error, 16.0)))
        factor = 2.0 ** jnp.where(local | slow, 1.0, jnp.clip(halvings, 1.0, 3.0))
        each = jnp.where(slow, 1.0, state.share / factor**4)
        first = jnp.min(jnp.where(errors <= 1.0, jnp.inf, probes))
        stuck = (state.share < _FEW) & (error > 0.5 * state.error)
        return Refined(run, values, state.step / factor, factor, each, error, first, met, stuck)

    infinite = jnp.full_like(step, jnp.inf)
    shapes = jax.eval_shape(integrate, step, infinite)
    blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    blank = blank._replace(excess=infinite)
    values, two, no = jnp.full((probes.size, size), jnp.inf), 2.0 + 0.0 * step, jnp.zeros((), bool)
    state = Refined(blank, values, step, two, infinite, infinite, infinite, no, no)

    def unfinished(state: Refined) -> Array:
        status = state.run.status
        long = (status == Status.nonfinite) | (status == Status.lag_below_step)
        long &= state.share == 1.0  # the run had steps of one length
        return ~state.met & ~state.stuck & ((status == Status.ok) | long)

    state = lax.while_loop(unfinished, again, state)
    run = state.run
    short = ~state.met & ((run.status == Status.step_limit) | (run.status == Status.ok))
    status = jnp.where(short, jnp.int32(Status.tolerance_not_met), run.status)
    good = jnp.max(jnp.where(probes < state.first, probes, -jnp.inf))
    time = jnp.where(short & (state.first < run.status_time), good, run.status_time)
    return run._replace(status=status, status_time=time)
