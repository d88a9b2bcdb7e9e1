"""A periodic orbit of a delay equation: polynomials on intervals, cut into segments where something
switches; and the equation at many points at once, with its derivatives.

A state is given by its value at the start of an interval and by its slopes at the Gauss points;
outputs are given by their values there. The points are inside the interval, so that nothing is ever
evaluated on a corner at one of its ends.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.arrays import jax, jnp
from fluidcc.dde.system import System, no_look
from fluidcc.executables import compile_once

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


@compile_once(static_argnames=("function", "system", "columns"))
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


@compile_once(static_argnames="system")
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


POINTS = 5
_roots, _weights = np.polynomial.legendre.leggauss(POINTS)
NODES: Array = 0.5 * (_roots + 1.0)
WEIGHTS: Array = 0.5 * _weights
_VALUES: Array = np.linalg.inv(np.vander(NODES, increasing=True))  # powers from values at the nodes
_POWERS = np.arange(POINTS)
_FINE = 12  # parts of an interval
_ROUNDING = 1e-12  # of the largest value: an empty queue is 0

GUARD, LAG = "guard", "lag"


def value_weights(theta: Array) -> Array:
    """Weights (..., M) of the values at the nodes in the value at `theta` (...)."""
    return np.asarray(theta)[..., None] ** _POWERS @ _VALUES


def slope_weights(theta: Array) -> Array:
    """Weights (..., M) of the values at the nodes in the derivative by `theta`."""
    powers = np.asarray(theta)[..., None] ** np.maximum(_POWERS - 1, 0) * _POWERS
    return powers @ _VALUES


def integral_weights(theta: Array) -> Array:
    """Weights (..., M) of the values at the nodes in the integral from 0 to `theta`."""
    return np.asarray(theta)[..., None] ** (_POWERS + 1) / (_POWERS + 1) @ _VALUES


_FROM_VALUES: Array = np.linalg.inv(integral_weights(NODES))


def fit(at_start: Array, at_nodes: Array) -> Array:
    """Increments (L, M, n) of the polynomials with given values at the start (L, n) and nodes."""
    return np.einsum("jk,lkn->ljn", _FROM_VALUES, at_nodes - at_start[:, None, :])


def steepness(increments: Array) -> Array:
    """Leading coefficients (L, n) of the states on each interval, a measure of the local error."""
    return np.abs(np.einsum("k,lkn->ln", _VALUES[-1], increments)) / POINTS


class Event(NamedTuple):
    """The end of a segment: a condition becomes zero, or a delayed time passes an earlier end.

    `index` is that of the condition (guards, then kinks) or of the lag; `target` is the number of
    the earlier segment end, `wrap` how many periods before.
    """

    kind: str
    index: int
    target: int = 0
    wrap: int = 0


@dataclasses.dataclass(frozen=True)
class Orbit:
    """One period of L intervals in S segments, from time 0 to the last of `ends` (S,).

    segment (L,): the segment of each interval; left, width (L,): its share of the segment.
    start (L, n), rise (L, M, n): states at the start of each interval, and increments, which are
    slope times length, at its nodes; outputs (L, M, w): their values at its nodes.
    modes (S, k): the mode of each segment. events: those that end each segment; none if the cycle
    is smooth. reach (S, lags, 2): first and last segment that each lag reads, counted on from those
    of the present period.
    """

    segment: Array
    left: Array
    width: Array
    ends: Array
    start: Array
    rise: Array
    outputs: Array
    modes: Array
    events: tuple[Event, ...] = ()
    reach: Array | None = None

    @property
    def period(self) -> float:
        """Length of the orbit."""
        return float(self.ends[-1])

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Numbers of intervals, segments, states and outputs."""
        return len(self.segment), len(self.ends), self.start.shape[1], self.outputs.shape[2]

    @functools.cached_property
    def begins(self) -> Array:
        """Start of each segment, (S,)."""
        return np.concatenate([[0.0], self.ends[:-1]])

    @functools.cached_property
    def times(self) -> Array:
        """Start of each interval, (L,)."""
        span = self.ends - self.begins
        return self.begins[self.segment] + span[self.segment] * self.left

    @functools.cached_property
    def lengths(self) -> Array:
        """Length of each interval, (L,)."""
        return (self.ends - self.begins)[self.segment] * self.width

    @functools.cached_property
    def last(self) -> Array:
        """Last interval of each segment, (S,)."""
        return np.searchsorted(self.segment, np.arange(len(self.ends)), side="right") - 1

    def time(self, interval: Array, theta: Array) -> Array:
        """Time of each point."""
        return self.times[interval] + self.lengths[interval] * theta

    def states(self, interval: Array, theta: Array) -> Array:
        """States (Q, n) at points."""
        rise = np.einsum("qj,qjn->qn", integral_weights(theta), self.rise[interval])
        return self.start[interval] + rise

    def rates(self, interval: Array, theta: Array) -> Array:
        """Change of the states per second (Q, n) at points."""
        rise = np.einsum("qj,qjn->qn", value_weights(theta), self.rise[interval])
        return rise / self.lengths[interval][:, None]

    def after(self) -> Array:
        """States at the end of each interval, (L, n)."""
        return self.start + np.einsum("j,ljn->ln", WEIGHTS, self.rise)

    def place(self, time: Array) -> tuple[Array, Array]:
        """Interval of each time, counted on from those of the present period, and place in it."""
        count = len(self.segment)
        wrap = np.floor(time / self.period)
        within = time - wrap * self.period
        interval = np.clip(np.searchsorted(self.times, within, side="right") - 1, 0, count - 1)
        return interval + count * wrap.astype(int), within

    def at(self, time: Array) -> Array:
        """States (Q, n) at any times, continued periodically."""
        interval, within = self.place(np.asarray(time, float))
        interval = interval % len(self.segment)
        return self.states(interval, (within - self.times[interval]) / self.lengths[interval])


class Points(NamedTuple):
    """Points on an orbit, and the delayed values read there.

    interval, theta (Q,); y (Q, n); lags (Q, M) and their derivatives by y (Q, M, n). Each number
    read is in interval `of` (Q, P) of the period `wrap` (Q, P) ago, at the place `at` (Q, P) of it;
    z is its value and `pull` its slope there, per second.
    """

    interval: Array
    theta: Array
    y: Array
    lags: Array
    lag_slopes: Array
    of: Array
    wrap: Array
    at: Array
    z: Array
    pull: Array


def points_at(model: Model, orbit: Orbit, interval: Array, theta: Array) -> Points:
    """Delayed values read by an orbit at some of its points."""
    y = orbit.states(interval, theta)
    lags, lag_slopes = model.lags(y)
    late = orbit.time(interval, theta)[:, None] - lags  # (Q, M)
    count, segments = len(orbit.segment), len(orbit.ends)
    place, _ = orbit.place(late)
    if orbit.reach is not None:
        first: Array = np.searchsorted(orbit.segment, np.arange(segments))
        low, high = np.moveaxis(orbit.reach[orbit.segment[interval]], -1, 0)
        least = first[low % segments] + count * (low // segments)
        most = orbit.last[high % segments] + count * (high // segments)
        place = np.clip(place, least, most)
    of, wrap = place % count, -(place // count)
    at = (late + wrap * orbit.period - orbit.times[of]) / orbit.lengths[of]
    of, wrap, at = (v[:, model.lag_of] for v in (of, wrap, at))
    source: Array = of.ravel()
    where: Array = at.ravel()
    column = np.tile(model.place_of, len(y))
    every: Array = np.arange(len(column))
    if model.direct:
        z = orbit.states(source, where)[every, column]
        pull = orbit.rates(source, where)[every, column]
    else:
        outputs = orbit.outputs[source][every, :, column]  # (Q P, M)
        z = np.sum(value_weights(where) * outputs, axis=1)
        pull = np.sum(slope_weights(where) * outputs, axis=1) / orbit.lengths[source]
    shape = of.shape
    return Points(
        interval, theta, y, lags, lag_slopes, of, wrap, at, z.reshape(shape), pull.reshape(shape)
    )


def nodes_of(orbit: Orbit) -> tuple[Array, Array]:
    """Interval and place of all collocation points, (L M,) each."""
    count = len(orbit.segment)
    return np.repeat(np.arange(count), POINTS), np.tile(NODES, count)


def extremes(orbit: Orbit, values: Callable[[Array], Array]) -> Array:
    """Least and greatest (R, 2) of functions of the states.

    Looked for at even points of every interval, and at the tops of the parabolas through three of
    these.
    """
    _, found = sampled(orbit, values)
    number = found.shape[-1]
    low, high = _tops(-found), _tops(found)
    tops = values(orbit.states(*(np.concatenate(v) for v in zip(low, high, strict=True))))
    own = np.arange(number)
    least = np.minimum(found.min((0, 1)), tops[own, own])
    greatest = np.maximum(found.max((0, 1)), tops[number + own, own])
    ends = np.stack([least, greatest], axis=-1)
    rounded = np.abs(ends) < _ROUNDING * np.abs(ends).max(1, keepdims=True)
    return np.where(rounded, 0.0, ends)


def sampled(orbit: Orbit, values: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Even places (F,) in every interval, and functions of the states there, (L, F, R)."""
    theta = np.linspace(0.0, 1.0, _FINE + 1)
    count = len(orbit.segment)
    every = np.repeat(np.arange(count), len(theta))
    found = values(orbit.states(every, np.tile(theta, count)))
    return theta, found.reshape(count, len(theta), -1)


def _tops(found: Array) -> tuple[Array, Array]:
    """Interval and place (R,) of the highest parabola through three points (L, F, R)."""
    before, here, after = found[:, :-2], found[:, 1:-1], found[:, 2:]
    bend = 2.0 * here - before - after
    rise = np.where(bend > 0, (after - before) / np.where(bend > 0, 2.0 * bend, 1.0), 0.0)
    inside = np.abs(rise) <= 1.0  # in steps from the point in the middle
    height = np.where(inside, here + 0.25 * (after - before) * rise, -np.inf)
    best = np.argmax(height.reshape(-1, height.shape[-1]), axis=0)
    interval, place = np.divmod(best, height.shape[1])
    shift = rise.reshape(-1, rise.shape[-1])[best, np.arange(len(best))]
    return interval, np.clip((place + 1 + shift) / (found.shape[1] - 1), 0.0, 1.0)
