"""The equations of an orbit and their derivatives, apart for each period that they reach back to.

A state that returns multiplied by a number mu after each period was 1/mu of it one period ago. So
the derivatives by this period and by each earlier one are kept apart: their sum belongs to Newton's
iteration, and their pencil has the Floquet multipliers as its eigenvalues. The ends of segments are
unknowns like the states, so that what an event does to a perturbation follows by itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse

from fluidcc.analysis.cycles import polynomials as poly
from fluidcc.analysis.cycles.model import Model
from fluidcc.analysis.cycles.orbit import GUARD, Orbit, Points, nodes_of, points_at
from fluidcc.analysis.cycles.polynomials import POINTS, WEIGHTS, Array


class Equations(NamedTuple):
    """Residual (N,), its derivatives by the unknowns of this and earlier periods, and the states
    that nothing moves (n,).

    Unknowns, and equations likewise: per interval start (n), rise (M, n), wire (M, w); then the
    ends of the segments (S,), which a smooth orbit has no equations for.
    """

    residual: Array
    parts: list[sparse.csc_matrix]
    inert: Array


class _Entries:
    """Entries of the derivatives as they come."""

    def __init__(self, orbit: Orbit) -> None:
        count, self.segments, self.n, self.w = orbit.shape
        self.orbit, self.block = orbit, self.n + POINTS * (self.n + self.w)
        self.first_end = count * self.block
        self.size = self.first_end + self.segments
        self.kept: list[list[Array]] = []

    def start(self, interval: Array) -> Array:
        """Indices (..., n) of the starts of intervals."""
        return (interval * self.block)[..., None] + np.arange(self.n)

    def rise(self, interval: Array) -> Array:
        """Indices (..., M, n) of the increments."""
        inside = self.n + np.arange(POINTS * self.n).reshape(POINTS, self.n)
        return (interval * self.block)[..., None, None] + inside

    def wire(self, interval: Array) -> Array:
        """Indices (..., M, w) of what travels."""
        inside = self.n * (POINTS + 1) + np.arange(POINTS * self.w).reshape(POINTS, self.w)
        return (interval * self.block)[..., None, None] + inside

    def add(self, rows: Array, columns: Array, value: Any, wrap: Array | int = 0) -> None:
        """Add entries, whose indices and values are spread over each other's shapes."""
        full = np.broadcast_arrays(rows, columns, value, wrap)
        keep = full[2] != 0
        self.kept.append([v[keep] for v in full])

    def add_time(
        self, rows: Array, interval: Array, theta: Array, value: Array, wrap: Array | int = 0
    ) -> None:
        """Add `value` times the derivative of the time of points by the ends of segments."""
        orbit = self.orbit
        k = orbit.segment[interval]
        share = orbit.left[interval] + orbit.width[interval] * theta
        self.add(rows, self.first_end + k, value * share, wrap)
        before, earlier = (k - 1) % self.segments, wrap + (k == 0)
        self.add(rows, self.first_end + before, value * (1.0 - share), earlier)

    def add_function(self, model: Model, points: Points, rows: Array, by_y: Array, by_z: Array):
        """Add derivatives of functions (Q, r) of y and z at points, whose rows are (Q, r)."""
        lag_of = model.lag_of
        moved = by_z * points.pull[:, None, :]
        own = by_y - np.einsum("qrp,qpn->qrn", moved, points.lag_slopes[:, lag_of])
        interval, theta = points.interval, points.theta
        self.add(rows[:, :, None], self.start(interval)[:, None, :], own)
        weights = poly.integrals(theta)
        self.add(
            rows[:, :, None, None],
            self.rise(interval)[:, None],
            own[:, :, None, :] * weights[:, None, :, None],
        )
        self.add_time(rows, interval[:, None], theta[:, None], np.sum(moved, axis=2))
        each = rows[:, :, None]
        of, wrap, at = (v[:, None, :] for v in (points.of, points.wrap, points.at))
        self.add_time(each, of, at, -moved, wrap)
        place = model.place_of
        if model.direct:
            self.add(each, self.start(points.of)[:, None, np.arange(len(place)), place], by_z, wrap)
            columns = self.rise(points.of)[:, np.arange(len(place)), :, place]  # (P, Q, M)
            weights = poly.integrals(points.at)
        else:
            columns = self.wire(points.of)[:, np.arange(len(place)), :, place]
            weights = poly.values(points.at)
        columns = np.moveaxis(columns, 0, 1)[:, None]  # (Q, 1, P, M)
        self.add(each[..., None], columns, by_z[..., None] * weights[:, None], wrap[..., None])

    def matrices(self) -> list[sparse.csc_matrix]:
        """One matrix for this period and for each earlier one."""
        rows, columns, value, wrap = (np.concatenate(v) for v in zip(*self.kept, strict=True))
        shape = (self.size, self.size)
        return [
            sparse.csc_matrix((value[wrap == k], (rows[wrap == k], columns[wrap == k])), shape)
            for k in range(int(wrap.max()) + 1)
        ]


def equations(model: Model, orbit: Orbit) -> Equations:
    """The equations of an orbit at its present numbers."""
    entries = _Entries(orbit)
    count, _, n, w = orbit.shape
    residual = np.zeros(entries.size)
    interval, theta = nodes_of(orbit)
    points = points_at(model, orbit, interval, theta)
    mode = orbit.modes[orbit.segment[interval]]
    value, by_y, by_z = model.present(points.y, points.z, mode)
    slope, told = value[:, :n], value[:, n:]
    still = (slope == 0).all(0) & (by_y[:, :n] == 0).all((0, 2)) & (by_z[:, :n] == 0).all((0, 2))

    length = orbit.lengths[interval][:, None]
    rows = entries.rise(np.arange(count)).reshape(-1, n)
    residual[rows] = orbit.rise.reshape(-1, n) - length * slope
    entries.add(rows, rows, np.ones_like(slope))
    scaled = -length[:, :, None]
    entries.add_function(model, points, rows, scaled * by_y[:, :n], scaled * by_z[:, :n])
    one = np.ones(len(interval))[:, None]
    entries.add_time(rows, interval[:, None], one, -slope)
    entries.add_time(rows, interval[:, None], 0.0 * one, slope)

    if w:
        rows = entries.wire(np.arange(count)).reshape(-1, w)
        residual[rows] = orbit.wire.reshape(-1, w) - told
        entries.add(rows, rows, np.ones_like(told))
        entries.add_function(model, points, rows, -by_y[:, n:], -by_z[:, n:])

    _continuity(entries, orbit, residual, still)
    if orbit.events:
        _ends(entries, model, orbit, residual)
    return Equations(residual, entries.matrices(), still)


def _continuity(entries: _Entries, orbit: Orbit, residual: Array, still: Array) -> None:
    """Each interval starts where the one before has ended; what nothing moves stays as it is."""
    count = len(orbit.segment)
    every = np.arange(count)
    before, wrap = (every - 1) % count, (every == 0).astype(int)
    rows = entries.start(every)
    moves = np.where((every == 0)[:, None], ~still, True)
    residual[rows] = np.where(moves, orbit.start - orbit.after()[before], 0.0)
    entries.add(rows, rows, np.ones(rows.shape))
    entries.add(rows, entries.start(before), -1.0 * moves, wrap[:, None])
    entries.add(
        rows[:, None],
        entries.rise(before),
        -WEIGHTS[None, :, None] * moves[:, None],
        wrap[:, None, None],
    )


def condition_size(by_y: Array, by_z: Array) -> float:
    """Size of a condition's derivatives, by which it is divided."""
    return float(np.max(np.abs(by_y)) + np.max(np.abs(by_z), initial=0.0))


def _ends(entries: _Entries, model: Model, orbit: Orbit, residual: Array) -> None:
    """What ends each segment happens at its end."""
    points = points_at(model, orbit, orbit.last, np.ones(len(orbit.ends)))
    value, by_y, by_z = model.conditions(points.y, points.z, orbit.modes)
    for k, event in enumerate(orbit.events):
        row = np.array([[entries.first_end + k]])
        here = Points(*(v[k : k + 1] for v in points))
        if event.kind == GUARD:
            pick = (slice(k, k + 1), slice(event.index, event.index + 1))
            size = condition_size(by_y[pick], by_z[pick])
            residual[row[0, 0]] = value[k, event.index] / size
            entries.add_function(model, here, row, by_y[pick] / size, by_z[pick] / size)
            continue
        lag, slope = points.lags[k, event.index], points.lag_slopes[k : k + 1, event.index]
        reached = orbit.ends[event.target] - event.wrap * orbit.period
        residual[row[0, 0]] = orbit.ends[k] - lag - reached
        nothing = np.zeros((1, 1, len(model.lag_of)))
        entries.add_function(model, here, row, -slope[:, None], nothing)
        entries.add(row, row, np.ones((1, 1)))
        entries.add(row, np.array([[entries.first_end + event.target]]), -1.0, event.wrap)
