"""A delay equation at many points at once, with its derivatives."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.arrays import jax, jnp
from fluidcc.dde.system import System, no_look

Array = NDArray[Any]

_CHUNK = 128  # points per call of what is compiled
_ASIDE = 1e-9  # of the states: distance at which a bound counts as touched


@dataclasses.dataclass(frozen=True)
class Model:
    """A system with its parameters, as the computation of cycles needs it.

    Only the `columns` of the record with delayed reads matter; without a record the states
    themselves are read (`direct`), and `columns` are all of them. `lag_of` and `place_of` (P,) are
    the lag and the place among `columns` of each number read.
    """

    system: System
    args: Any
    size: int

    @property
    def direct(self) -> bool:
        """Whether delayed values are states, not a separate record."""
        return self.system.record is None

    @functools.cached_property
    def columns(self) -> tuple[int, ...]:
        """Columns of the record that are read."""
        return tuple(range(self.size) if self.direct else sorted(set(self.system.column_of)))

    @functools.cached_property
    def lag_of(self) -> Array:
        """Lag of each number read, (P,)."""
        return np.array(self.system.lag_of, int)

    @functools.cached_property
    def place_of(self) -> Array:
        """Place among `columns` of each number read, (P,)."""
        return np.array([self.columns.index(c) for c in self.system.column_of], int)

    @property
    def wires(self) -> int:
        """Number of columns of the record, which are unknowns besides the states."""
        return 0 if self.direct else len(self.columns)

    @property
    def switches(self) -> bool:
        """Whether anything can switch."""
        return self.system.events is not None or self.system.kinks is not None

    def lags(self, y: Array) -> tuple[Array, Array]:
        """Lags (Q, M) at states (Q, n), and their derivatives (Q, M, n)."""
        return self._evaluated(_lags, y, y[:, :0], y[:, :0])[:2]

    def present(self, y: Array, z: Array, mode: Array) -> tuple[Array, Array, Array]:
        """Slopes and the record's columns (Q, n + w), and derivatives by y and z."""
        return self._evaluated(_present, y, z, mode)

    def conditions(self, y: Array, z: Array, mode: Array) -> tuple[Array, Array, Array]:
        """Guards and then kinks (Q, g), and derivatives by y and z.

        They are taken just next to the states: on a bound itself they have no derivatives.
        """
        aside = _aside(y)
        value, by_y, by_z = self._evaluated(_conditions, y + aside, z, mode)
        return value - np.einsum("qgn,qn->qg", by_y, aside), by_y, by_z

    def modes(self, y: Array, z: Array) -> Array:
        """Modes (Q, k) that follow from the states themselves; 0 is the mode between the bounds."""
        return in_chunks(functools.partial(_modes, self.system), self.args, y, z)[0]

    def sides(self, y: Array, z: Array, mode: Array) -> Array:
        """Signs (Q, j) of the kinks, which are the last of the conditions."""
        if self.system.kinks is None:
            return np.zeros((len(y), 0))
        at = (jnp.zeros(()), y[0], z[0], self.args, mode[0])
        number = jax.eval_shape(self.system.kinks, *at).shape[0]
        values = self.conditions(y, z, mode)[0]
        return np.sign(values[:, values.shape[1] - number :])

    def _evaluated(self, function: Any, y: Array, z: Array, mode: Array) -> Any:
        columns = () if self.direct else self.columns
        evaluate = functools.partial(_with_jacobians, function, self.system, columns)
        return in_chunks(evaluate, self.args, y, z, mode)


def _aside(y: Any) -> Any:
    """Distance from states at which a bound counts as touched."""
    return _ASIDE * (1.0 + abs(y))


def in_chunks(function: Any, args: Any, *arrays: Array) -> Any:
    """A batched function applied to any number of points, in pieces of one length."""
    count = len(arrays[0])
    fill = -count % _CHUNK
    padded = [np.concatenate([a, np.repeat(a[-1:], fill, axis=0)]) for a in arrays]
    parts = [
        function(args, *(a[k : k + _CHUNK] for a in padded)) for k in range(0, count + fill, _CHUNK)
    ]
    return tuple(np.concatenate([np.asarray(p) for p in part])[:count]
                 for part in zip(*parts, strict=True))  # fmt: skip


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _with_jacobians(
    function: Any, system: System, columns: tuple[int, ...], args: Any, y: Any, z: Any, mode: Any
) -> Any:
    """A function of single points at many of them, and its derivatives by y and z."""

    def one(y: Any, z: Any, mode: Any) -> Any:
        def twice(y: Any, z: Any) -> tuple[Any, Any]:
            value = function(system, columns, args, y, z, mode)
            return value, value

        slopes, value = jax.jacfwd(twice, (0, 1), has_aux=True)(y, z)
        return value, *slopes

    return jax.vmap(one)(y, z, mode)


def _lags(system: System, columns: tuple[int, ...], args: Any, y: Any, z: Any, mode: Any) -> Any:
    del columns, z, mode
    return system.lags(jnp.zeros(()), y, args, no_look)


def _present(system: System, columns: tuple[int, ...], args: Any, y: Any, z: Any, mode: Any) -> Any:
    now = jnp.zeros(())
    slope = system.slope(now, y, z, args, mode)
    if system.record is None:
        return slope
    return jnp.concatenate([slope, system.record(now, y, z, args, mode)[jnp.array(columns)]])


def _conditions(
    system: System, columns: tuple[int, ...], args: Any, y: Any, z: Any, mode: Any
) -> Any:
    del columns
    guards = [] if system.events is None else [system.events.guards]
    kinks = [] if system.kinks is None else [system.kinks]
    parts = [function(jnp.zeros(()), y, z, args, mode) for function in (*guards, *kinks)]
    return jnp.concatenate([*parts, jnp.zeros(0)])


@functools.partial(jax.jit, static_argnums=0)
def _modes(system: System, args: Any, y: Any, z: Any) -> tuple[Any]:
    now, none = jnp.zeros(()), jnp.zeros(0, jnp.int32)

    def one(y: Any, z: Any) -> Any:
        if system.events is None:
            return none
        initial, limit = system.events.initial, system.limit
        if limit is None:
            return initial(now, y, z, args).astype(jnp.int32)
        # states at a bound may be off it by rounding
        low, high = (
            initial(now, limit(y + side * _aside(y), none, args), z, args).astype(jnp.int32)
            for side in (-1.0, 1.0)
        )
        return jnp.where(low == high, low, low + high)

    return (jax.vmap(one)(y, z),)
