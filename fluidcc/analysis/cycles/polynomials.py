"""Polynomials on one interval of a cycle: slopes at Gauss points, and their integrals.

A state is known by its value at the start of the interval and by its slopes at the Gauss points;
what travels is known by its values there. The points are inside the interval, so that nothing is
ever evaluated on a corner at one of its ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

POINTS = 5
_roots, _weights = np.polynomial.legendre.leggauss(POINTS)
NODES: Array = 0.5 * (_roots + 1.0)
WEIGHTS: Array = 0.5 * _weights
_VALUES: Array = np.linalg.inv(np.vander(NODES, increasing=True))  # powers from values at the nodes
_POWERS = np.arange(POINTS)


def values(theta: Array) -> Array:
    """Weights (..., M) of the values at the nodes in the value at `theta` (...)."""
    return np.asarray(theta)[..., None] ** _POWERS @ _VALUES


def slopes(theta: Array) -> Array:
    """Weights (..., M) of the values at the nodes in the derivative by `theta`."""
    powers = np.asarray(theta)[..., None] ** np.maximum(_POWERS - 1, 0) * _POWERS
    return powers @ _VALUES


def integrals(theta: Array) -> Array:
    """Weights (..., M) of the values at the nodes in the integral from 0 to `theta`."""
    return np.asarray(theta)[..., None] ** (_POWERS + 1) / (_POWERS + 1) @ _VALUES


TO_NODES: Array = integrals(NODES)
_FROM_VALUES: Array = np.linalg.inv(TO_NODES)


def fitted(at_start: Array, at_nodes: Array) -> Array:
    """Increments (L, M, n) of the polynomials with given values at the start (L, n) and nodes."""
    return np.einsum("jk,lkn->ljn", _FROM_VALUES, at_nodes - at_start[:, None, :])


def steepness(increments: Array) -> Array:
    """Leading coefficients (L, n) of the states on each interval: what a finer mesh would see."""
    return np.abs(np.einsum("k,lkn->ln", _VALUES[-1], increments)) / POINTS
