"""A delay equation for an integrator: functions on flat arrays."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from jax import Array

import fluidcc.ops  # noqa: F401 - switches JAX to double precision
from fluidcc.arrays import jax, jnp

Shapes = tuple[Any, tuple[tuple[tuple[int, ...], Any], ...]]
"""Structure of a PyTree, and shape and type of each of its leaves: hashable."""
Args = Any
"""PyTree of traced parameters that is handed to every function of a system."""


class Events(NamedTuple):
    """Changes of a discrete mode, which is an integer array of shape (k,), constant in a step.

    initial(t, y, z, args) -> mode at t0.
    guards(t, y, z, args, mode) -> (m,) positive inside the mode.
    switch(t, y, z, args, mode, hit) -> (mode, y) after the guards marked in `hit` (m,) reached 0.
    """

    initial: Callable[..., Array]
    guards: Callable[..., Array]
    switch: Callable[..., tuple[Array, Array]]


@dataclasses.dataclass(frozen=True)
class System:
    """A delay equation y'(t) = slope(t, y, z), z[p] = u(t - lag)[column], with y of shape (n,).

    The record u, of shape (U,), is what delayed terms read: the state itself, or the value of
    `record`. A system is compared by the identity of its functions: build it once and pass changing
    numbers through `args`, so that nothing is compiled twice.

    slope(t, y, z, args, mode) -> (n,) dy/dt, with z of shape (P,).
    lags(t, y, args, look) -> (M,) in the unit of t; look(time, column, lag) is the record where
        that lag reads it, at a time near its argument.
    columns: for each lag the columns of the record that are read at that lag; z lists them in turn.
    history(times, columns, args) -> (P,) record before t0: column `columns[p]` at time `times[p]`.
    record(t, y, z, args, mode) -> (U,) or None.
    limit(y, mode, args) -> (n,) projection of stages and steps on uniform meshes, or None.
    events: changes of mode, or None.
    kinks(t, y, z, args, mode) -> (k,) switching functions: their changes of sign are kinks or jumps
        of the record; or None.
    held: columns of the record with zero-order hold, which change by jumps alone: not interpolated.
    leading: lags whose values other lags depend on, each with those others.
    structure: a tree without numbers that determines all of this (`identify`), so that compiled
        code can be kept for later processes; None if there is none, as after `replace`.
    """

    slope: Callable[..., Array]
    lags: Callable[..., Array]
    columns: tuple[tuple[int, ...], ...]
    history: Callable[..., Array]
    record: Callable[..., Array] | None = None
    limit: Callable[..., Array] | None = None
    events: Events | None = None
    kinks: Callable[..., Array] | None = None
    held: tuple[int, ...] = ()
    leading: tuple[tuple[int, tuple[int, ...]], ...] = ()
    structure: Any = dataclasses.field(default=None, compare=False, init=False)

    def identify(self, structure: Any) -> "System":
        """The same system, known by a tree without numbers that determines all of it."""
        object.__setattr__(self, "structure", structure)
        return self

    @property
    def lag_of(self) -> tuple[int, ...]:
        """The lag that belongs to each of the P values in z."""
        return tuple(i for i, read in enumerate(self.columns) for _ in read)

    @property
    def column_of(self) -> tuple[int, ...]:
        """The column of the record that belongs to each of the P values in z."""
        return tuple(column for read in self.columns for column in read)

    def record_size(self, y0: Array, t0: Array, args: Args) -> int:
        """Number U of columns of the record: n, or the size of `record`."""
        return y0.size if self.record is None else _recorded(self, shapes_of((y0, t0, args)))

    def kept_size(self, y0: Array, t0: Array, args: Args) -> int:
        """Number V of columns that meshes with dense output keep: the record, and the state."""
        return y0.size + (0 if self.record is None else self.record_size(y0, t0, args))

    def reads_rows(self, width: int) -> bool:
        """Whether every lag reads the whole record of `width` columns, in order."""
        return all(read == tuple(range(width)) for read in self.columns)


@functools.lru_cache(maxsize=256)
def _recorded(system: System, shapes: Shapes) -> int:
    """Size of a record, by a slow trace, hence cached."""

    def probe(y0: Array, t0: Array, args: Args) -> Array:
        z, mode = jnp.zeros((len(system.lag_of),), y0.dtype), jnp.zeros((0,), jnp.int32)
        if system.events is not None:
            mode = system.events.initial(t0, y0, z, args)
        assert system.record is not None
        return system.record(t0, y0, z, args, mode)

    return jax.eval_shape(probe, *structs_of(shapes)).shape[0]


def history_look(system: System, t0: Array, args: Args) -> Callable[[Array, Any, Any], Array]:
    """A `look` that reads the history alone: for lags at t0."""

    def look(time: Array, column: Any, lag: Any) -> Array:
        del lag
        time = jnp.minimum(time, t0)
        return system.history(time[None], jnp.asarray(column, jnp.int32)[None], args)[0]

    return look


def no_look(time: Any, column: Any, lag: Any) -> Array:
    """A `look` for lags that depend on time and state alone; raises ValueError for others."""
    raise ValueError(
        "lags: expected lags by time and state alone, got some that depend on the past; "
        "the meshes Uniform and Located have those"
    )


def shapes_of(tree: Any) -> Shapes:
    """Structure, shapes and types of a PyTree of arrays."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)


def structs_of(shapes: Shapes) -> Any:
    """A PyTree of these shapes and types that JAX can trace with."""
    structure, leaves = shapes
    return jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(*leaf) for leaf in leaves])


@functools.lru_cache(maxsize=256)
def unraveler(shapes: Shapes) -> Callable[[Array], Any]:
    """Function from a flat array to the PyTree of these shapes, in the type of the array.

    It is the same function for the same shapes.
    """
    structure, leaves = shapes
    ends = list(itertools.accumulate(size_of(shape) for shape, _ in leaves))

    def unravel(flat: Array) -> Any:
        parts = [
            flat[end - size_of(shape) : end].reshape(shape)
            for (shape, _), end in zip(leaves, ends, strict=True)
        ]
        return jax.tree.unflatten(structure, parts)

    return unravel


def size_of(shape: tuple[int, ...]) -> int:
    """Number of entries of an array of this shape."""
    return math.prod(shape)
