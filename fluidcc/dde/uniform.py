"""Steps of one length with the history in a ring: compiled once, fast in batches.

Trajectories of a batch are stepped side by side. What happens within a step is written for one of
them and mapped over all, with the ring as it stands; its one write comes after all reads, so that
it stays in place.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from fluidcc.dde import hermite
from fluidcc.dde.ring import Ring, written
from fluidcc.dde.steps import Lane, Problem
from fluidcc.dde.system import Args, System
from fluidcc.dde.trajectory import first


class Saved(NamedTuple):
    """What a run on a uniform mesh leaves: values at the saved times, and how it ended."""

    y: Array
    slope: Array
    record: Array
    status: Array
    status_time: Array
    steps: Array


class _Carry(NamedTuple):
    n: Array  # number of the latest node
    lane: Lane  # in a batch with a leading axis (B,)
    table: Array  # of the ring


def integrate(
    system: System,
    y0: Array,
    t0: Array,
    t1: Array,
    step: Array,
    ts: Array,
    args: Args,
    slots: int,
    batched: bool = False,
) -> Saved:
    """Integrate from t0 to t1 and save at the increasing times `ts`, shape (S,).

    Classical Runge-Kutta method, first same as last; cubic Hermite interpolation of the history.
    `slots` is the static length of the ring, a power of two. In a batch y0 and the leaves of
    `args[0]` have a leading axis, and so has all that is saved.
    """
    lanes = y0.shape[0] if batched else 1
    one_y0, one_args = first(y0, args, batched)
    width = system.record_size(one_y0, t0, one_args)

    def problem(args: Args) -> Problem:
        return Problem(system, t0, step, args, width, y0.dtype)

    def each(function: Callable[..., Any], table: Array, *values: Any) -> Any:
        """`function(problem, ring, *values)` for every trajectory."""

        def own(lane: Any, first: Any, *values: Any) -> Any:
            here = problem(type(args)(first, *args[1:]))
            return function(here, Ring(table, lane, lanes), *values)

        if not batched:
            return own(0, args[0], *values)
        return jax.vmap(own)(jnp.arange(lanes, dtype=jnp.int32), args[0], *values)

    def entered(table: Array, n: Array, row: Array) -> Array:
        return written(table, n, row if batched else row[None])

    def advance(carry: _Carry) -> _Carry:
        n = carry.n
        move = lambda problem, ring, at: problem.advance(ring, n, at)  # noqa: E731
        lane, row = each(move, carry.table, carry.lane)
        return _Carry(n + 1, lane, entered(carry.table, n + 1, row))

    def run(carry: _Carry, until: Array) -> _Carry:
        target = problem(args).node_at(until)
        return lax.while_loop(lambda c: c.n < target, advance, carry)

    def save(carry: _Carry, t: Array) -> tuple[_Carry, tuple[Array, Array, Array]]:
        carry = run(carry, t)
        n = carry.n
        see = lambda problem, ring, at: problem.saved(ring, n, t, at)  # noqa: E731
        return carry, each(see, carry.table, carry.lane)

    n, table = jnp.zeros((), jnp.int32), jnp.zeros((slots * lanes, 2 * width), y0.dtype)
    lane, row = each(lambda problem, ring, y0: problem.start(ring, y0), table, y0)
    carry, saved = lax.scan(save, _Carry(n, lane, entered(table, n, row)), ts)
    if batched:
        saved = jax.tree.map(lambda v: jnp.moveaxis(v, 1, 0), saved)
    carry = run(carry, t1)
    judge = lambda problem, ring, at: problem.cause(ring, carry.n, at)  # noqa: E731
    status = each(judge, carry.table, carry.lane)
    y, slope, record = saved
    steps = jnp.broadcast_to(carry.n, status.shape)
    return Saved(y, slope, record, status, carry.lane.status_time, steps)


def evaluate(saved: tuple[Array, Array, Array], t: Array) -> Array:
    """State at times t (S,), from the times, states and slopes of all nodes: (S, n)."""
    nodes, y, slope = saved
    newer = jnp.clip(jnp.searchsorted(nodes, t), 1, nodes.size - 1)
    length = nodes[newer] - nodes[newer - 1]
    theta = ((t - nodes[newer - 1]) / length)[:, None]
    length = length[:, None]
    return hermite.interpolate(
        theta, y[newer - 1], length * slope[newer - 1], y[newer], length * slope[newer]
    )
