"""Newton's iteration for periodic orbits, and meshes that follow their steepness."""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.sparse as sparse
import scipy.sparse.linalg

from fluidcc.analysis.cycles import polynomials as poly
from fluidcc.analysis.cycles.equations import Equations, equations
from fluidcc.analysis.cycles.model import Model
from fluidcc.analysis.cycles.orbit import Orbit, nodes_of
from fluidcc.analysis.cycles.polynomials import POINTS, Array

_STEPS = 25
_MET = 1e-10  # of the sizes of the unknowns: last step of an iteration
_ROUNDED = 1e-6  # a step as small as this that gets no smaller is rounding
_LONGEST = 0.3  # of the sizes of the unknowns, and of segments: longest step
_EVEN = 0.1  # of the mean steepness that every part of the mesh is taken to have


class LostError(ValueError):
    """Newton's iteration does not lead to a periodic orbit."""


def sizes(orbit: Orbit) -> tuple[Array, Array]:
    """Sizes of the changes of each state (n,) and of each wire (w,)."""
    reached = np.concatenate([orbit.start, orbit.after()])
    low, high = reached.min(0), reached.max(0)
    floor = 1e-9 * (1.0 + np.abs(high))
    return np.maximum(high - low, floor), np.abs(orbit.wire).max((0, 1), initial=0.0) + 1e-9


def moved(orbit: Orbit, step: Array) -> Orbit:
    """The orbit with a step (N,) added to its unknowns."""
    count, segments, n, w = orbit.shape
    blocks = step[: len(step) - segments].reshape(count, -1)
    rise = blocks[:, n : n + POINTS * n].reshape(count, POINTS, n)
    wire = blocks[:, n + POINTS * n :].reshape(count, POINTS, w)
    return dataclasses.replace(
        orbit,
        start=orbit.start + blocks[:, :n],
        rise=orbit.rise + rise,
        wire=orbit.wire + wire,
        ends=orbit.ends + step[len(step) - segments :],
    )


def _relative(orbit: Orbit, step: Array) -> Array:
    """A step in the sizes of its unknowns; that of ends in the length of the shortest segment."""
    count, segments, _, _ = orbit.shape
    state, wire = sizes(orbit)
    block = np.concatenate([state, np.tile(state, POINTS), np.tile(wire, POINTS)])
    shortest = np.min(np.diff(orbit.ends, prepend=0.0))
    size = np.concatenate([np.tile(block, count), np.full(segments, shortest)])
    return step / size


def phase(orbit: Orbit, reference: Orbit) -> tuple[Array, float]:
    """The condition (N,) that a smooth orbit is in step with another, and its residual."""
    count, segments, n, w = orbit.shape
    state, _ = sizes(reference)
    weights = reference.rise.sum(1) / state**2  # (L, n)
    row = np.zeros((count, n + POINTS * (n + w)))
    row[:, :n] = weights
    residual = float(np.sum(weights * (orbit.start - reference.start)))
    return np.concatenate([row.ravel(), np.zeros(segments)]), residual


def system_of(orbit: Orbit, found: Equations, reference: Orbit) -> tuple[sparse.csc_matrix, Array]:
    """Matrix and right-hand side (N + 1,) for a step of the unknowns and of the period."""
    size, segments = len(found.residual), len(orbit.ends)
    total = sum(found.parts[1:], found.parts[0])
    ends, by_period = np.zeros(size), np.zeros(size)
    ends[size - segments :] = 1.0
    for k, part in enumerate(found.parts):
        by_period -= k * (part @ ends)
    residual = found.residual.copy()
    if not orbit.events:
        row, value = phase(orbit, reference)
        residual[-1] = value
        pick = sparse.csc_matrix(([1.0], ([size - 1], [0])), (size, 1))
        total = total + pick @ sparse.csc_matrix(row)
    last = np.zeros(size)
    last[-1] = 1.0
    whole = sparse.bmat([[total, by_period[:, None]], [last[None], [[-1.0]]]], format="csc")
    return sparse.csc_matrix(whole), np.append(residual, 0.0)


def solved(model: Model, orbit: Orbit) -> Orbit:
    """The periodic orbit near another; raises LostError where none is found."""
    reference, before = orbit, np.inf
    for _ in range(_STEPS):
        found = equations(model, orbit)
        matrix, residual = system_of(orbit, found, reference)
        if not np.all(np.isfinite(residual)):
            raise LostError("the equations have no value along the way")
        try:
            step = -scipy.sparse.linalg.splu(matrix).solve(residual)[:-1]
        except RuntimeError:
            raise LostError("the equations of the cycle are singular") from None
        length = float(np.max(np.abs(_relative(orbit, step))))
        if not np.isfinite(length):
            raise LostError("the equations of the cycle are singular")
        orbit = moved(orbit, step * min(1.0, _LONGEST / max(length, 1e-300)))
        if length < _MET or (before < _ROUNDED and length > 0.5 * before):
            return orbit
        before = length
    raise LostError(f"Newton's iteration ends with a step of {before:.1e} of the cycle")


def remeshed(model: Model, orbit: Orbit, count: int) -> Orbit:
    """The orbit on about `count` intervals that are short where it is steep."""
    state, _ = sizes(orbit)
    steep = (poly.steepness(orbit.rise) / state).max(1)
    density = (steep / orbit.lengths**POINTS) ** (1.0 / POINTS)
    load = density * orbit.lengths
    load = load + _EVEN * np.sum(load) * orbit.lengths / orbit.period + 1e-12
    segments = len(orbit.ends)
    parts = [_spread(orbit, load, k, count) for k in range(segments)]
    segment = np.repeat(np.arange(segments), [len(p) - 1 for p in parts])
    left = np.concatenate([p[:-1] for p in parts])
    width = np.concatenate([np.diff(p) for p in parts])
    new = dataclasses.replace(orbit, segment=segment, left=left, width=width)
    return read_off(orbit, new)


def _spread(orbit: Orbit, load: Array, k: int, count: int) -> Array:
    """Shares of segment k at which its new intervals begin and end."""
    own = np.flatnonzero(orbit.segment == k)
    total = np.concatenate([[0.0], np.cumsum(load[own])])
    number = max(1, round(count * total[-1] / np.sum(load)))
    edges = np.append(orbit.left[own], 1.0)
    return np.interp(np.linspace(0.0, total[-1], number + 1), total, edges)


def read_off(old: Orbit, new: Orbit) -> Orbit:
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
    wire = np.einsum("qj,qjw->qw", poly.values(at), old.wire[of]).reshape(count, POINTS, w)
    return dataclasses.replace(new, start=start, rise=poly.fitted(start, nodes), wire=wire)
