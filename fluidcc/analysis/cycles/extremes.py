"""Least and greatest values over an orbit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fluidcc.analysis.cycles.orbit import Orbit
from fluidcc.analysis.cycles.polynomials import Array

_FINE = 12  # parts of an interval
_ROUNDING = 1e-12  # of the largest value: an empty queue is 0


def extremes(orbit: Orbit, values: Callable[[Array], Array]) -> Array:
    """Least and greatest (R, 2) of functions of the states.

    They are told from even points of every interval, and from the tops of the parabolas through
    three of these.
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
