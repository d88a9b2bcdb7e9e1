"""The whole past of one trajectory on an irregular mesh: one cubic per step, with breaking points.

A step is an interval that owns both its ends: the values and slopes just after its start and just
before its end. A jump or a kink at a node is then no special case. What is read at a lag stays
between the two breaking points around its argument until the mesh has landed on the next one, so
that the side is chosen by the direction of approach and never by comparing times.
"""

from typing import NamedTuple

from jax import Array, lax
from jax.custom_batching import custom_vmap

from fluidcc.arrays import jax, jnp
from fluidcc.dde import hermite


class Track(NamedTuple):
    """Intervals 0..N-1, the latest of them provisional, and the breaking points that are read.

    steps: (N, 2 + 4 V): start of the interval (infinite where there is none yet), its length, then
        value and slope * length just after its start, and the same just before its end.
    breaks: (N, 2 + U): time of a breaking point that makes new ones, the number of the interval
        that starts there, and per column of the record the derivative that jumps there (0 for the
        value itself); in order of time.
    known: () how many breaking points there are.
    """

    steps: Array
    breaks: Array
    known: Array


def empty(capacity: int, width: int, t0: Array, orders: Array) -> Track:
    """A track without intervals whose only breaking point is t0, with these orders (U,)."""
    steps = jnp.zeros((capacity, 2 + 4 * width), t0.dtype)
    steps = steps.at[:, 0].set(jnp.inf).at[:, 1].set(1.0)
    breaks = jnp.zeros((capacity, 2 + orders.size), t0.dtype).at[:, 0].set(jnp.inf)
    first = jnp.concatenate([jnp.stack([t0, jnp.zeros_like(t0)]), orders.astype(t0.dtype)])
    return Track(steps.at[0, 0].set(t0), breaks.at[0].set(first), jnp.int32(1))


def width(track: Track) -> int:
    """Number of columns V that are remembered."""
    return track.steps.shape[1] // 4


def at(array: Array, *index: Array) -> Array:
    """Entries of an array at indices known to be inside it."""
    return array.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)


def search(track: Track, time: Array) -> Array:
    """Index of the last interval that starts at or before each time; 0 if none does.

    The capacity of the track is a power of two.
    """
    index = jnp.zeros(time.shape, jnp.int32)
    stride = track.steps.shape[0] // 2
    while stride:
        ahead = index + stride
        index = jnp.where(at(track.steps, ahead, jnp.int32(0)) <= time, ahead, index)
        stride //= 2
    return index


def walk(track: Track, index: Array, time: Array, low: Array, high: Array) -> Array:
    """Interval of each time (M,) within [low, high], found step by step from a near one."""
    index = jnp.clip(index, low, high)
    start = lambda i: at(track.steps, i, jnp.int32(0))  # noqa: E731
    back = lambda i: (i > low) & (start(i) > time)  # noqa: E731
    on = lambda i: (i < high) & (start(i + 1) <= time)  # noqa: E731
    index = lax.while_loop(lambda i: jnp.any(back(i)), lambda i: i - back(i).astype(i.dtype), index)
    return lax.while_loop(lambda i: jnp.any(on(i)), lambda i: i + on(i).astype(i.dtype), index)


def break_time(track: Track, index: Array) -> Array:
    """Time of a breaking point, infinite where there is none yet."""
    return jnp.where(index < track.known, at(track.breaks, index, jnp.int32(0)), jnp.inf)


def break_node(track: Track, index: Array) -> Array:
    """Number of the interval that starts at a breaking point."""
    return at(track.breaks, index, jnp.int32(1)).astype(jnp.int32)


def break_orders(track: Track, index: Array) -> Array:
    """Derivative that jumps at breaking points (M,), per column of the record: (M, U)."""
    return at(track.breaks, index)[..., 2:].astype(jnp.int32)


def read_rows(track: Track, index: Array, time: Array) -> Array:
    """All columns at each time (M,), from the intervals given: (M, V)."""
    row, v = at(track.steps, index), width(track)
    theta = (time - row[..., 0]) / row[..., 1]
    parts = [row[..., 2 + i * v : 2 + (i + 1) * v] for i in range(4)]
    return hermite.extended(theta[..., None], *parts)


def read_columns(track: Track, index: Array, time: Array, column: Array) -> Array:
    """One column at each time (P,), from the intervals given: (P,)."""
    theta = (time - at(track.steps, index, jnp.int32(0))) / at(track.steps, index, jnp.int32(1))
    v = width(track)
    parts = [at(track.steps, index, 2 + i * v + column) for i in range(4)]
    return hermite.extended(theta, *parts)


@jax.custom_jvp
def put(array: Array, rows: Array, first: Array) -> Array:
    """The array with rows from `first` on replaced; in place where it is the carry of a loop."""
    return _put(array, rows, first)


@put.defjvp
def _put_along(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    return put(*primals), put(*tangents[:2], primals[2])


@custom_vmap
def _put(array: Array, rows: Array, first: Array) -> Array:
    place = (first, *(jnp.zeros_like(first) for _ in array.shape[1:]))
    return lax.dynamic_update_slice(array, rows, place)


@_put.def_vmap
def _put_each(
    size: int, batched: list[bool], array: Array, rows: Array, first: Array
) -> tuple[Array, bool]:
    """Many at once: in place at one `first`, where the general rule would copy whole arrays."""
    arrays, sets = (
        value if yes else jnp.broadcast_to(value, (size, *value.shape))
        for value, yes in zip((array, rows), batched, strict=False)
    )
    if batched[2]:
        return jax.vmap(lambda a, r, i: a.at[i + jnp.arange(len(r))].set(r))(
            arrays, sets, first
        ), True
    zero = jnp.zeros_like(first)
    return lax.dynamic_update_slice(
        arrays, sets, (zero, first, *(zero for _ in arrays.shape[2:]))
    ), True


def line(start: Array, here: Array, h: Array) -> Array:
    """An interval that goes on straight from what is remembered at its start."""
    half = here.size // 2
    value, rise = here[:half], h * here[half:]
    return jnp.concatenate([jnp.stack([start, h]), value, rise, value + rise, rise])


def begun(t: Array, here: Array, h: Array) -> Array:
    """The interval that begins at t, and the one after it, which has not begun."""
    return jnp.stack([line(start, here, h) for start in (t, jnp.full_like(t, jnp.inf))])


def write(track: Track, node: Array, steps: Array) -> Track:
    """Put the intervals `node` and `node + 1`, rows of shape (2, 2 + 4 V)."""
    return track._replace(steps=put(track.steps, steps, node))


def add_break(track: Track, new: Array, time: Array, node: Array, orders: Array) -> Track:
    """Append a breaking point with orders (U,) if `new`."""
    head = jnp.stack([time, node.astype(time.dtype)])
    row = jnp.concatenate([head, orders.astype(time.dtype)])
    return track._replace(
        breaks=put(track.breaks, row[None], track.known),
        known=track.known + new.astype(jnp.int32),
    )
