"""What a run on any mesh comes to, and what is asked before one."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from fluidcc.dde.batches import side_by_side
from fluidcc.dde.system import Args, System, history_look


class Trajectory(NamedTuple):
    """A solution on flat vectors: y (S, n) and record (S, U) at t (S,), and how it ended.

    `evaluate` gives the states (S, n) at any times (S,), None where they were not kept.
    """

    t: Array
    y: Array
    record: Array
    status: Array
    status_time: Array
    steps: Array
    breaking_points: Array
    evaluate: Callable[[Array], Array] | None


def known(*values: Any) -> bool:
    """Whether all values are numbers now, not tracers."""
    return not any(isinstance(value, Tracer) for value in jax.tree.leaves(values))


def number(value: Any) -> Any:
    """Floats that stay numbers in traced code, where room is chosen, unless they are traced."""
    return value if isinstance(value, jax.Array) else np.asarray(value, float)


def power_of_two(least: float) -> int:
    """The smallest power of two that is at least `least`."""
    return 1 << max(0, int(np.ceil(least)) - 1).bit_length()


def first_lags(system: System, y0: Array, t0: Array, args: Args, batched: bool) -> Array:
    """Lags at t0, shape (M,); (B, M) in a batch."""

    def lags(y0: Array, args: Args) -> Array:
        return system.lags(t0, y0, args, history_look(system, t0, args))

    return side_by_side(lags, batched, y0, args)


def first(y0: Array, args: Args, batched: bool) -> tuple[Array, Args]:
    """State at t0 and parameters of one trajectory."""
    if not batched:
        return y0, args
    # where they are numbers now, without a call of JAX for each
    row = lambda leaf: leaf[0] if isinstance(leaf, Tracer) else np.asarray(leaf)[0]  # noqa: E731
    return row(y0), type(args)(jax.tree.map(row, args[0]), *args[1:])


def in_single_precision(tree: Any) -> Any:
    """A PyTree with its floats in single precision."""

    def converted(leaf: Any) -> Any:
        floats = jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
        return jnp.asarray(leaf, jnp.float32) if floats else leaf

    return jax.tree.map(converted, tree)
