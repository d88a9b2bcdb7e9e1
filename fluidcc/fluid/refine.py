"""Halve the step of a located mesh until the estimated error meets a tolerance."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from fluidcc.fluid import located
from fluidcc.fluid.status import Status


class Refined(NamedTuple):
    """A run whose step is halved until the difference to the run before is small."""

    run: located.Run
    values: Array  # at the probes
    step: Array  # of the next run
    factor: Array  # by which the step of the last run was shorter than that of the one before
    met: Array


def refine(
    integrate: Callable[[Array], located.Run],
    probe: Callable[[located.Run], Array],
    step: Array,
    rtol: Array,
    atol: Array,
) -> located.Run:
    """Run with shorter and shorter steps until the estimated error at the probes is met."""

    def again(state: Refined) -> Refined:
        run = integrate(state.step)
        values = probe(run)
        change = lax.stop_gradient(jnp.abs(values - state.values))
        share = change / (atol + rtol * jnp.abs(lax.stop_gradient(values)))
        error = jnp.max(share) / (state.factor**4 - 1.0)  # the method is of order 4
        met = error <= 1.0
        halvings = jnp.ceil(0.25 * jnp.log2(jnp.where(jnp.isfinite(error), error, 16.0)))
        factor = 2.0 ** jnp.clip(halvings, 1.0, 3.0)
        return Refined(run, values, state.step / factor, factor, met)

    shapes = jax.eval_shape(integrate, step)
    blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    values = jnp.full_like(probe(blank), jnp.inf)
    two = jnp.full_like(step, 2.0)
    state = Refined(blank, values, step, two, jnp.zeros((), bool))
    ok = lambda state: ~state.met & (state.run.status == Status.ok)  # noqa: E731
    state = lax.while_loop(ok, again, state)
    short = ~state.met & (state.run.status == Status.step_limit)
    status = jnp.where(short, jnp.int32(Status.tolerance_not_met), state.run.status)
    return state.run._replace(status=status)
