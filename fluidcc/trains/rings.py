"""What trains remember: rings of the last steps, and reading them at times between two.

A row holds a count as it is at the end of a step; time is counted in steps, so that row k is the
count at time k. Arrays end with the axis of lanes, the runs that are done together.
"""

from typing import Any

from fluidcc.arrays import jnp, lax

Array = Any


def write(ring: Array, k: Array, row: Array) -> Array:
    """Write the row of step k."""
    return lax.dynamic_update_index_in_dim(ring, row, k % ring.shape[0], 0)


def last(ring: Array, k: Array) -> Array:
    """The row before step k."""
    return lax.dynamic_index_in_dim(ring, (k - 1) % ring.shape[0], 0, keepdims=False)


def _flat(ring: Array, time: Array, flows: int, first: int) -> Array:
    """Place in a flattened ring of the row at whole times, for the first of some flows."""
    rows, lanes = ring.shape[0], ring.shape[-1]
    row = time.astype(jnp.int32) & (rows - 1)  # rows are a power of 2
    return (row * flows + first) * lanes + jnp.arange(lanes, dtype=jnp.int32)[None]


def read(ring: Array, time: Array) -> Array:
    """The row (d, B) at whole times (d, B) of a ring (L, B)."""
    return ring.reshape(-1).at[_flat(ring, time, 1, 0)].get(mode="promise_in_bounds")


def read_flows(ring: Array, time: Array, first: int, count: int) -> Array:
    """The row (n, B) of some flows at whole times (d, B) of a ring (L, N, B)."""
    _, flows, lanes = ring.shape
    at = _flat(ring, time, flows, first) + jnp.arange(count, dtype=jnp.int32)[:, None] * lanes
    return ring.reshape(-1).at[at].get(mode="promise_in_bounds")


def between(ring: Array, time: Array) -> Array:
    """The count (d, B) at any times (d, B)."""
    low = jnp.floor(time)
    a, b = read(ring, low), read(ring, low + 1)
    return a + (time - low) * (b - a)


def whole(count: Array) -> Array:
    """Whole packets: one counts when its middle passes."""
    return jnp.floor(count + 0.5)


def event_row(time: Array) -> Array:
    """The last row whose events, in the middle of its step, have been reached."""
    return jnp.floor(time + 0.5)


def locate(ring: Array, k: Array, count: Array) -> Array:
    """The time (B) at which a ring (L, B) of counts, whose last row is k, reached `count` (B)."""
    rows = ring.shape[0]
    low = (k.astype(float) - rows + 0.0 * count)[None]  # rows are in order of time
    for ahead in (*(rows >> j for j in range(1, rows.bit_length())), 1):
        low = low + jnp.where(read(ring, low + ahead) <= count[None], 1.0 * ahead, 0.0)
    a, b = read(ring, low)[0], read(ring, low + 1)[0]
    step = jnp.where(b > a, b - a, 1.0)
    inside = low[0] + jnp.clip((count - a) / step, 0.0, 1.0)
    return jnp.where(low[0] >= k.astype(float), k.astype(float), inside)
