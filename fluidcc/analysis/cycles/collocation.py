"""Collocation: the equations of a periodic orbit, Newton's iteration for them, and their meshes.

A perturbation with Floquet multiplier mu was 1/mu times its present value one period ago. So the
derivatives by this period and by each earlier one are stored separately: Newton's iteration uses
their sum, and the eigenvalues of their pencil are the Floquet multipliers. The ends of segments are
unknowns like the states, so that the effect of an event on a perturbation needs no jump formula.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
import scipy.sparse.linalg

from fluidcc.analysis.cycles.orbit import (
    GUARD,
    POINTS,
    WEIGHTS,
    Array,
    Model,
    Orbit,
    Points,
    fit,
    integral_weights,
    nodes_of,
    points_at,
    steepness,
    value_weights,
)

_STEPS = 25
_MET = 1e-10  # of the sizes of the unknowns: last step of an iteration
_ROUNDED = 1e-6  # steps below this that stop shrinking are rounding errors
_LONGEST = 0.3  # of the sizes of the unknowns, and of segments: longest step
_EVEN = 0.1  # of the mean steepness: added everywhere, so that no interval gets too long


class Equations(NamedTuple):
    """Residual (N,), and its derivatives by the unknowns of this and earlier periods.

    Unknowns, and equations likewise: per interval start (n), rise (M, n), wire (M, w); then the
    ends of the segments (S,), for which a smooth orbit has no equations.
    """

    residual: Array
    parts: list[sparse.csc_matrix]


class _Entries:
    """Collected entries of the derivative matrices."""

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

    def outputs(self, interval: Array) -> Array:
        """Indices (..., M, w) of the outputs."""
        inside = self.n * (POINTS + 1) + np.arange(POINTS * self.w).reshape(POINTS, self.w)
        return (interval * self.block)[..., None, None] + inside

    def add(self, rows: Array, columns: Array, value: Any, wrap: Array | int = 0) -> None:
        """Add entries, with indices and values broadcast against each other."""
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
        weights = integral_weights(theta)
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
            weights = integral_weights(points.at)
        else:
            columns = self.outputs(points.of)[:, np.arange(len(place)), :, place]
            weights = value_weights(points.at)
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
    slope, outputs = value[:, :n], value[:, n:]
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
        rows = entries.outputs(np.arange(count)).reshape(-1, w)
        residual[rows] = orbit.outputs.reshape(-1, w) - outputs
        entries.add(rows, rows, np.ones_like(outputs))
        entries.add_function(model, points, rows, -by_y[:, n:], -by_z[:, n:])

    _continuity(entries, orbit, residual, still)
    if orbit.events:
        _ends(entries, model, orbit, residual)
    return Equations(residual, entries.matrices())


def _continuity(entries: _Entries, orbit: Orbit, residual: Array, still: Array) -> None:
    """Each interval starts at the end of the one before; constant states keep their value."""
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


def _ends(entries: _Entries, model: Model, orbit: Orbit, residual: Array) -> None:
    """The condition of the event that ends each segment holds at its end."""
    points = points_at(model, orbit, orbit.last, np.ones(len(orbit.ends)))
    value, by_y, by_z = model.conditions(points.y, points.z, orbit.modes)
    for k, event in enumerate(orbit.events):
        row = np.array([[entries.first_end + k]])
        here = Points(*(v[k : k + 1] for v in points))
        if event.kind == GUARD:
            pick = (slice(k, k + 1), slice(event.index, event.index + 1))
            size = np.max(np.abs(by_y[pick])) + np.max(np.abs(by_z[pick]), initial=0.0)
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


class OrbitLostError(ValueError):
    """Collocation found no periodic orbit; the message has the reason."""


def _sizes(orbit: Orbit) -> tuple[Array, Array]:
    """Sizes of the changes of each state (n,) and of each wire (w,)."""
    reached = np.concatenate([orbit.start, orbit.after()])
    low, high = reached.min(0), reached.max(0)
    floor = 1e-9 * (1.0 + np.abs(high))
    return np.maximum(high - low, floor), np.abs(orbit.outputs).max((0, 1), initial=0.0) + 1e-9


def move(orbit: Orbit, step: Array) -> Orbit:
    """The orbit with a step (N,) added to its unknowns."""
    count, segments, n, w = orbit.shape
    blocks = step[: len(step) - segments].reshape(count, -1)
    rise = blocks[:, n : n + POINTS * n].reshape(count, POINTS, n)
    outputs = blocks[:, n + POINTS * n :].reshape(count, POINTS, w)
    return dataclasses.replace(
        orbit,
        start=orbit.start + blocks[:, :n],
        rise=orbit.rise + rise,
        outputs=orbit.outputs + outputs,
        ends=orbit.ends + step[len(step) - segments :],
    )


def _relative(orbit: Orbit, step: Array) -> Array:
    """A step relative to the sizes of its unknowns; for ends, to the shortest segment."""
    count, segments, _, _ = orbit.shape
    state, outputs = _sizes(orbit)
    block = np.concatenate([state, np.tile(state, POINTS), np.tile(outputs, POINTS)])
    shortest = np.min(np.diff(orbit.ends, prepend=0.0))
    size = np.concatenate([np.tile(block, count), np.full(segments, shortest)])
    return step / size


def _phase_condition(orbit: Orbit, reference: Orbit) -> tuple[Array, float]:
    """Phase condition of a smooth orbit against a reference: row (N,) and residual."""
    count, segments, n, w = orbit.shape
    state, _ = _sizes(reference)
    weights = reference.rise.sum(1) / state**2  # (L, n)
    row = np.zeros((count, n + POINTS * (n + w)))
    row[:, :n] = weights
    residual = float(np.sum(weights * (orbit.start - reference.start)))
    return np.concatenate([row.ravel(), np.zeros(segments)]), residual


def newton_system(
    orbit: Orbit, found: Equations, reference: Orbit
) -> tuple[sparse.csc_matrix, Array]:
    """Matrix and right-hand side (N + 1,) for a step of the unknowns and of the period."""
    size, segments = len(found.residual), len(orbit.ends)
    total = sum(found.parts[1:], found.parts[0])
    ends, by_period = np.zeros(size), np.zeros(size)
    ends[size - segments :] = 1.0
    for k, part in enumerate(found.parts):
        by_period -= k * (part @ ends)
    residual = found.residual.copy()
    if not orbit.events:
        row, value = _phase_condition(orbit, reference)
        residual[-1] = value
        pick = sparse.csc_matrix(([1.0], ([size - 1], [0])), (size, 1))
        total = total + pick @ sparse.csc_matrix(row)
    last = np.zeros(size)
    last[-1] = 1.0
    whole = sparse.bmat([[total, by_period[:, None]], [last[None], [[-1.0]]]], format="csc")
    return sparse.csc_matrix(whole), np.append(residual, 0.0)


def solve_linear(matrix: Any, residual: Array, what: str) -> Array:
    """The Newton step (N,); raises OrbitLostError if the matrix is singular."""
    try:
        step = -scipy.sparse.linalg.splu(matrix).solve(residual)
    except RuntimeError:
        step = np.full(1, np.nan)
    if not np.all(np.isfinite(step)):
        raise OrbitLostError(f"the equations of the {what} are singular")
    return step


def solve(model: Model, orbit: Orbit) -> Orbit:
    """The periodic orbit near another; raises OrbitLostError if none is found."""
    reference, before = orbit, np.inf
    for _ in range(_STEPS):
        matrix, residual = newton_system(orbit, equations(model, orbit), reference)
        if not np.all(np.isfinite(residual)):
            raise OrbitLostError("the equations have no value along the way")
        step = solve_linear(matrix, residual, "cycle")[:-1]
        length = float(np.max(np.abs(_relative(orbit, step))))
        orbit = move(orbit, step * min(1.0, _LONGEST / max(length, 1e-300)))
        if length < _MET or (before < _ROUNDED and length > 0.5 * before):
            return orbit
        before = length
    raise OrbitLostError(f"Newton's iteration ends with a step of {before:.1e} of the cycle")


def parameter_slope(models: Callable[[float], Model], orbit: Orbit, step: float) -> Array:
    """Derivative (N + 1,) of the equations by a parameter, the orbit held; `models` has the model
    at each distance from the parameter's own value, and `step` is that of a central difference.
    """
    ahead, behind = (equations(models(way), orbit).residual for way in (step, -step))
    return np.append((ahead - behind) / (2.0 * step), 0.0)


def remesh(orbit: Orbit, count: int) -> Orbit:
    """The orbit on about `count` intervals that are short where it is steep."""
    state, _ = _sizes(orbit)
    steep = (steepness(orbit.rise) / state).max(1)
    density = (steep / orbit.lengths**POINTS) ** (1.0 / POINTS)
    load = density * orbit.lengths
    load = load + _EVEN * np.sum(load) * orbit.lengths / orbit.period + 1e-12
    segments = len(orbit.ends)
    parts = [_spread(orbit, load, k, count) for k in range(segments)]
    segment = np.repeat(np.arange(segments), [len(p) - 1 for p in parts])
    left = np.concatenate([p[:-1] for p in parts])
    width = np.concatenate([np.diff(p) for p in parts])
    new = dataclasses.replace(orbit, segment=segment, left=left, width=width)
    return interpolate(orbit, new)


def _spread(orbit: Orbit, load: Array, k: int, count: int) -> Array:
    """Shares of segment k at which its new intervals begin and end."""
    own = np.flatnonzero(orbit.segment == k)
    total = np.concatenate([[0.0], np.cumsum(load[own])])
    number = max(1, round(count * total[-1] / np.sum(load)))
    edges = np.append(orbit.left[own], 1.0)
    return np.interp(np.linspace(0.0, total[-1], number + 1), total, edges)


def interpolate(old: Orbit, new: Orbit) -> Orbit:
    """The values of an orbit on the mesh of another with the same segments."""
    count, (_, _, n, w) = len(new.segment), old.shape
    interval, theta = nodes_of(new)

    def within(interval: Array, theta: Array) -> tuple[Array, Array]:
        share = new.left[interval] + new.width[interval] * theta
        key = old.segment + np.minimum(old.left, 1.0 - 1e-15)
        of = np.searchsorted(key, new.segment[interval] + np.clip(share, 0, 1 - 1e-12), "right") - 1
        return of, (share - old.left[of]) / old.width[of]

    of, at = within(interval, theta)
    begin, there = within(np.arange(count), np.zeros(count))
    start = old.states(begin, there)
    nodes = old.states(of, at).reshape(count, POINTS, n)
    outputs = np.einsum("qj,qjw->qw", value_weights(at), old.outputs[of]).reshape(count, POINTS, w)
    return dataclasses.replace(new, start=start, rise=fit(start, nodes), outputs=outputs)
