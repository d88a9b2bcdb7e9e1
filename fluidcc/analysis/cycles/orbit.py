"""A periodic profile: polynomials on intervals, cut into segments where something switches."""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from fluidcc.analysis.cycles import polynomials as poly
from fluidcc.analysis.cycles.model import Model
from fluidcc.analysis.cycles.polynomials import POINTS, WEIGHTS, Array

GUARD, LAG = "guard", "lag"


class Event(NamedTuple):
    """What ends a segment: a condition that becomes zero, or a lag that reaches an earlier end.

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
    slope times length, at its nodes; wire (L, M, w): what travels, at its nodes.
    modes (S, k): the mode of each segment. events: what ends each segment; none where the cycle is
    smooth. reach (S, lags, 2): first and last segment that each lag reads, counted on from those
    of the present period.
    """

    segment: Array
    left: Array
    width: Array
    ends: Array
    start: Array
    rise: Array
    wire: Array
    modes: Array
    events: tuple[Event, ...] = ()
    reach: Array | None = None

    @property
    def period(self) -> float:
        """Length of the orbit."""
        return float(self.ends[-1])

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Numbers of intervals, segments, states and wires."""
        return len(self.segment), len(self.ends), self.start.shape[1], self.wire.shape[2]

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
        rise = np.einsum("qj,qjn->qn", poly.integrals(theta), self.rise[interval])
        return self.start[interval] + rise

    def rates(self, interval: Array, theta: Array) -> Array:
        """Change of the states per second (Q, n) at points."""
        rise = np.einsum("qj,qjn->qn", poly.values(theta), self.rise[interval])
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
    """Points on an orbit, and what is read there.

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
    """What an orbit reads at some of its points."""
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
        wire = orbit.wire[source][every, :, column]  # (Q P, M)
        z = np.sum(poly.values(where) * wire, axis=1)
        pull = np.sum(poly.slopes(where) * wire, axis=1) / orbit.lengths[source]
    shape = of.shape
    return Points(
        interval, theta, y, lags, lag_slopes, of, wrap, at, z.reshape(shape), pull.reshape(shape)
    )


def nodes_of(orbit: Orbit) -> tuple[Array, Array]:
    """Interval and place of all collocation points, (L M,) each."""
    count = len(orbit.segment)
    return np.repeat(np.arange(count), POINTS), np.tile(poly.NODES, count)
