"""Which derivatives jump at breaking points: of what lags read, and what follows from it."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from fluidcc.dde import track as tr
from fluidcc.dde.system import Args, System
from fluidcc.dde.track import Track

LAST_ORDER = 4
"""Jumps in this derivative and higher ones are below what a method of order 4 can see."""


def lowest(system: System, track: Track, following: Array) -> Array:
    """Lowest derivative that jumps at breaking points (M,) in what each lag reads, (M,)."""
    orders = tr.break_orders(track, following)
    reads = np.zeros(orders.shape, bool)
    for lag, columns in enumerate(system.columns):
        reads[lag, list(columns)] = True
    return jnp.min(jnp.where(reads, orders, LAST_ORDER), axis=1, initial=LAST_ORDER)


def integrations(system: System, at: tuple[Array, Array, Array, Args, Array]) -> Array:
    """How many times what is read at each lag is integrated on its way to each column of the
    record, at (t, y, z, args, mode), (U, M): so many derivatives more are continuous there.

    From where derivatives are zero in this mode; what has no way counts `LAST_ORDER`.
    """
    mode, record, size = at[-1], system.record, len(system.columns)
    t, y, z, args = jax.tree.map(lax.stop_gradient, at[:-1])
    n = y.size
    if record is None:
        return jnp.ones((n, size), jnp.int32)

    def both(v: Array) -> Array:
        parts = (t, v[:n], v[n:], args, mode)
        return jnp.concatenate([system.slope(*parts), record(*parts)])

    felt = jax.jacfwd(both)(jnp.concatenate([y, z])) != 0.0
    by_state, by_lag = felt[:, :n], jnp.zeros((felt.shape[0], size), bool)
    by_lag = by_lag.at[:, np.array(system.lag_of, int)].max(felt[:, n:])
    if system.leading:
        leads = np.zeros((size, size), bool)
        for lag, others in system.leading:
            leads[list(others), lag] = True
        by_lag = by_lag | _joined(by_lag, jnp.asarray(leads))
    else:  # lags by the state: it moves at once all that is read
        by_state = by_state | jnp.any(by_lag, axis=1, keepdims=True)
    found, reach = jnp.where(by_lag[n:], 0, LAST_ORDER), by_lag[:n]
    for times in range(1, LAST_ORDER):
        via = _joined(by_state, reach)
        found, reach = jnp.where(via[n:], jnp.minimum(found, times), found), via[:n]
    return found


def _joined(first: Array, second: Array) -> Array:
    """Where a way leads through both of two relations."""
    return first.astype(jnp.float32) @ second.astype(jnp.float32) > 0
