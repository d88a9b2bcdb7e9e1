"""The first cycle beside a Hopf point."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import scipy.sparse as sparse
import scipy.sparse.linalg
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.cycles.equations import equations
from fluidcc.analysis.cycles.model import Model
from fluidcc.analysis.cycles.newton import LostError, moved
from fluidcc.analysis.cycles.orbit import Orbit
from fluidcc.analysis.cycles.polynomials import POINTS, Array
from fluidcc.analysis.cycles.subjects import steady
from fluidcc.analysis.delay_equation import DelayEquation, equation_at_rest
from fluidcc.analysis.equilibrium import equilibrium
from fluidcc.analysis.rest import state_at_rest
from fluidcc.scenario.network import Network, numeric

_PASSES = 8  # what travels at rest depends on itself through few links
_SHIFT = 1e-9
_ITERATIONS = 6


def state_of_rest(net: Network | DelayEquation) -> Array:
    """The state at the equilibrium of a model, flat (n,); raises LostError where there is none."""
    if isinstance(net, DelayEquation):
        rest = equation_at_rest(net)
        if not rest.smooth:
            raise LostError(rest.message)
        return rest.flat
    found = equilibrium(net)
    if not found.smooth:
        raise LostError(f"no smooth equilibrium: {found.message}")
    return np.asarray(ravel_pytree(state_at_rest(numeric(steady(net)), found.rest))[0])


def resting(model: Model, y: Array, period: float, count: int) -> Orbit:
    """An equilibrium as an orbit of a given period."""
    wire = np.zeros(len(model.columns))
    if model.wires:
        for _ in range(_PASSES):
            z = wire[model.place_of][None]
            mode = model.modes(y[None], z)
            wire = model.present(y[None], z, mode)[0][0, len(y) :]
    z = (y if model.direct else wire)[model.place_of][None]
    share = np.full(count, 1.0 / count)
    return Orbit(
        segment=np.zeros(count, int),
        left=np.arange(count) / count,
        width=share,
        ends=np.array([period]),
        start=np.tile(y, (count, 1)),
        rise=np.zeros((count, POINTS, len(y))),
        wire=np.tile(wire, (count, POINTS, 1)) if model.wires else np.zeros((count, POINTS, 0)),
        modes=model.modes(y[None], z),
    )


def direction(model: Model, rest: Orbit) -> Array:
    """A step (N,) along the cycles that leave a Hopf point: greatest change of a state 1."""
    found = equations(model, rest)
    total = sum(found.parts[1:], found.parts[0])[:-1, :-1]
    shifted = total + _SHIFT * sparse.eye(total.shape[0])
    lu = scipy.sparse.linalg.splu(shifted.tocsc())
    times = rest.times / rest.period
    block = (total.shape[0]) // len(times)
    step = np.repeat(np.cos(2.0 * math.pi * times), block)
    for _ in range(_ITERATIONS):
        step = lu.solve(step)
        step /= np.max(np.abs(step))
    if np.max(np.abs(total @ step)) > 1e-4:
        raise LostError("no cycles leave from here: the equilibrium has no roots on the axis")
    full = np.append(step, 0.0)
    start = moved(dataclasses.replace(rest, start=0.0 * rest.start), full).start
    return full / np.max(np.abs(start) / (np.abs(rest.start) + _floor(rest)))


def _floor(rest: Orbit) -> float:
    """What counts as the size of a state that rests at 0."""
    return 1.0 if np.all(rest.start == 0) else 1e-3 * float(np.max(np.abs(rest.start)))
