"""Derivatives of a limit cycle by parameters: the implicit function theorem for its collocation.

The equations of an orbit, with the ends of its segments and its period among the unknowns, have a
Jacobian J; a parameter moves the unknowns by -J^-1 times the derivative of the equations by it, the
orbit held. Times of events are among the unknowns, as ends of segments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.optimize

from fluidcc.analysis.cycles.collocation import (
    equations,
    newton_system,
    parameter_slope,
    solve_linear,
)
from fluidcc.analysis.cycles.orbit import POINTS, Array, Model, Orbit, integral_weights, sampled
from fluidcc.analysis.cycles.result import Cycle, Label
from fluidcc.analysis.cycles.verb import Subject, cycle, subject_of
from fluidcc.analysis.delay_equation import DelayEquation
from fluidcc.analysis.measures import Gradient, listed
from fluidcc.analysis.scan import number_of, unit_of
from fluidcc.arrays import jax
from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.progress import counted, part
from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import full_path, replace

_SMALL = 1e-6  # of the states: step of a difference of values that are linear in them
_STEP = 1e-5  # of a parameter: step of the difference of the equations

_replaced = jax.jit(replace)
"""A network with other parameter values, which may leave their ranges a little."""

_FOUND = 0.7  # finished share when the cycle is known

_Place = tuple[Label, bool] | None
"""A reported value and whether its maximum is meant; None for the period."""


def cycle_gradients(
    net: Network | DelayEquation, names: Sequence[str], over: Sequence[str]
) -> tuple[Gradient, ...]:
    """Gradients of ``cycle.period`` and of extremes, such as ``cycle.links.NAME.queue_max``.

    Extremes are those of `Cycle`: queue and average of links, window of groups (the first round
    trip), and ``cycle.states.K.max`` of a delay equation.
    """
    subject = subject_of(net)
    paths, places = tuple(dict.fromkeys(over)), [_place(net, subject, name) for name in names]
    with part(0.0, _FOUND, verb=True):
        found = cycle(net)
    values = [_value(found, place) for place in places]
    status, message = "ok", ""
    slopes = np.full((len(names), len(paths)), np.nan)
    if found.orbit is None:
        status = found.status
        message = found.message or "only cycles by collocation have derivatives"
    else:
        with part(_FOUND, 1.0):
            moves = _moves(net, subject, found.orbit, paths)
        slopes = np.array([_slopes(found.orbit, subject, place, moves) for place in places])
    units = {path: unit_of(net, path) for path in paths}
    return tuple(
        Gradient(
            name, value, dict(zip(paths, map(float, row), strict=True)), status, message,
            "s" if place is None else place[0].unit, units, {},
        )
        for name, value, row, place in zip(names, values, slopes, places, strict=True)
    )  # fmt: skip


def _place(net: Network | DelayEquation, subject: Subject, name: str) -> _Place:
    """The value that a name means."""
    known: dict[str, _Place] = {"cycle.period": None}
    for label in subject.labels:
        if label.number == 0:
            joint = "." if label.kind == "states" else "_"
            known |= {f"cycle.{label.path}{joint}min": (label, False)}
            known |= {f"cycle.{label.path}{joint}max": (label, True)}
    own = name.removeprefix("cycle.")
    full = f"cycle.{full_path(net, own) if isinstance(net, Network) else own}"
    if full not in known:
        close = nearest(full, list(known), least=0.0)
        expected = f"a quantity of a cycle{listed(known)}"
        raise ScenarioError([Fault("gradient", name, expected, "an unknown name", close)])
    return known[full]


def _value(found: Cycle, place: _Place) -> float:
    """The value itself; NaN if there is no cycle."""
    if found.period is None:
        return math.nan
    return found.period if place is None else found.extremes(place[0])[place[1]]


def _moves(
    net: Network | DelayEquation, subject: Subject, orbit: Orbit, paths: Sequence[str]
) -> Array:
    """Derivatives (K, N + 1) of an orbit's unknowns and of its period by parameters."""
    model = subject.model
    matrix, _ = newton_system(orbit, equations(model, orbit), orbit)

    def move(path: str) -> Array:
        value = number_of(net, path)

        def model_at(way: float) -> Model:
            change = {path: value + way}
            near = net.replace(change) if isinstance(net, DelayEquation) else _replaced(net, change)
            return subject_of(near).model

        step = _STEP * (abs(value) or 1.0)
        return solve_linear(matrix, parameter_slope(model_at, orbit, step), "cycle")

    return np.array([move(path) for path in counted(paths)])


def _slopes(orbit: Orbit, subject: Subject, place: _Place, moves: Array) -> Array:
    """Derivatives (K,) of the period or of an extreme; at an extreme that by time vanishes."""
    if place is None:
        return moves[:, -1]
    number, greatest = subject.labels.index(place[0]), place[1]
    values = subject.observe
    sign = 1.0 if greatest else -1.0
    count, segments, n, _ = orbit.shape
    theta, seen = sampled(orbit, values)
    best, at = divmod(int(np.argmax(sign * seen[..., number])), len(theta))
    interval = np.array([best])

    def height(x: float) -> float:
        return -sign * float(values(orbit.states(interval, np.array([x])))[0, number])

    low, high = theta[max(at - 1, 0)], theta[min(at + 1, len(theta) - 1)]
    top: Any = scipy.optimize.minimize_scalar(
        height, bounds=(low, high), method="bounded", options={"xatol": 1e-9}
    )
    x = float(top.x) if top.fun < height(theta[at]) else float(theta[at])
    blocks = moves[:, : moves.shape[1] - 1 - segments].reshape(len(moves), count, -1)[:, best]
    rise = blocks[:, n : n + POINTS * n].reshape(-1, POINTS, n)
    dy = blocks[:, :n] + np.einsum("j,kjn->kn", integral_weights(np.array([x]))[0], rise)
    y = orbit.states(interval, np.array([x]))
    small = _SMALL * (1.0 + np.abs(y).max()) / (np.abs(dy).max(1, keepdims=True) + 1e-300)
    up, down = values(y + small * dy)[:, number], values(y - small * dy)[:, number]
    return (up - down) / (2 * small[:, 0])
