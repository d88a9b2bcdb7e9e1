"""How a limit cycle moves with parameters: the implicit function theorem for its collocation.

The equations of an orbit, with the ends of its segments and its period among the unknowns, have a
Jacobian J; a direction of parameters moves the unknowns by -J^-1 times the derivative of the
equations in that direction, the orbit held. An event in the way moves with the ends.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
import scipy.sparse.linalg

from fluidcc.analysis.cycles import polynomials as poly
from fluidcc.analysis.cycles.equations import condition_size, equations
from fluidcc.analysis.cycles.extremes import sampled
from fluidcc.analysis.cycles.model import Model, beside, chunked, conditions, present
from fluidcc.analysis.cycles.newton import system_of
from fluidcc.analysis.cycles.orbit import GUARD, Orbit, Points, nodes_of, points_at
from fluidcc.analysis.cycles.polynomials import POINTS
from fluidcc.analysis.cycles.result import Cycle
from fluidcc.analysis.cycles.subjects import labels, reported
from fluidcc.analysis.cycles.verb import cycle
from fluidcc.analysis.delay_equation import DelayEquation, equation_at_rest
from fluidcc.analysis.gradients.directions import directions
from fluidcc.analysis.gradients.result import Gradient
from fluidcc.analysis.linear import Array
from fluidcc.analysis.model import unit_of
from fluidcc.dde.system import System, no_look
from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import full_path

_SMALL = 1e-6  # of the states: step of a difference of values that are linear in them


def orbit_slopes(model: Model, orbit: Orbit, along: Sequence[Any]) -> Array:
    """Derivatives (K, N + 1) of an orbit's unknowns and of its period.

    `along` has, for each direction, the derivative of the model's `args`.
    """
    found = equations(model, orbit)
    matrix, _ = system_of(orbit, found, orbit)
    right = np.array([np.append(_pushed(model, orbit, each), 0.0) for each in along])
    return -scipy.sparse.linalg.splu(matrix).solve(right.T).T


def _pushed(model: Model, orbit: Orbit, along: Any) -> Array:
    """Derivative (N,) of the equations along a direction of the model's numbers, orbit held."""
    count, segments, n, w = orbit.shape
    interval, theta = nodes_of(orbit)
    points = points_at(model, orbit, interval, theta)
    mode = orbit.modes[orbit.segment[interval]]
    pushed, _ = _along(model, points, mode, along, at_ends=False)
    length = orbit.lengths[interval][:, None]
    blocks = np.zeros((count, n + len(theta) // count * (n + w)))
    rises, wires = (-length * pushed[:, :n]).reshape(count, -1), pushed[:, n:].reshape(count, -1)
    blocks[:, n : n + rises.shape[1]] = rises
    blocks[:, n + rises.shape[1] :] = -wires
    ends = np.zeros(segments)
    if orbit.events:
        ends = _ends_pushed(model, orbit, along)
    return np.concatenate([blocks.ravel(), ends])


def _ends_pushed(model: Model, orbit: Orbit, along: Any) -> Array:
    """Derivative (S,) of the conditions that end segments, scaled as they are."""
    segments = len(orbit.ends)
    points = points_at(model, orbit, orbit.last, np.ones(segments))
    _, by_y, by_z = model.conditions(points.y, points.z, orbit.modes)
    pushed, lags = _along(model, points, orbit.modes, along, at_ends=True)
    out = np.zeros(segments)
    for k, event in enumerate(orbit.events):
        if event.kind == GUARD:
            size = condition_size(by_y[k, event.index], by_z[k, event.index])
            out[k] = pushed[k, event.index] / size
        else:
            out[k] = -lags[k, event.index]
    return out


def _along(
    model: Model, points: Points, mode: Array, along: Any, *, at_ends: bool
) -> tuple[Array, Array]:
    """Derivatives of the present, or of the conditions, and of the lags, at points held."""
    columns = () if model.direct else model.columns
    function = functools.partial(_derivatives, model.system, columns, at_ends)
    late = chunked(functools.partial(_lags, model.system), (model.args, along), points.y)[0]
    dz = -points.pull * late[:, model.lag_of]
    y = points.y + beside(points.y) if at_ends else points.y
    value = chunked(function, (model.args, along), y, points.z, dz, mode)[0]
    return value, late


@functools.partial(jax.jit, static_argnums=0)
def _lags(system: System, numbers: tuple[Any, Any], y: Any) -> tuple[Any]:
    def one(y: Any) -> Any:
        def lags(args: Any) -> Any:
            return system.lags(jnp.zeros(()), y, args, no_look)

        return jax.jvp(lags, numbers[:1], numbers[1:])[1]

    return (jax.vmap(one)(y),)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _derivatives(
    system: System, columns: tuple[int, ...], at_ends: bool, numbers: tuple[Any, Any],
    y: Any, z: Any, dz: Any, mode: Any,
) -> tuple[Any]:  # fmt: skip
    def one(y: Any, z: Any, dz: Any, mode: Any) -> Any:
        def value(args: Any, z: Any) -> Any:
            if at_ends:
                return conditions(system, args, y, z, mode)
            return present(system, columns, args, y, z, mode)

        return jax.jvp(value, (numbers[0], z), (numbers[1], dz))[1]

    return (jax.vmap(one)(y, z, dz, mode),)


def cycle_gradients(
    net: Network | DelayEquation, names: Sequence[str], over: Sequence[str]
) -> tuple[Gradient, ...]:
    """Gradients of ``cycle.period`` and of extremes, such as ``cycle.links.NAME.queue.max``.

    Extremes are those of `Cycle`: queue and average of links, window of groups (the first round
    trip), and ``cycle.states.K.max`` of a delay equation.
    """
    found = cycle(net)
    paths, places = tuple(dict.fromkeys(over)), [_place(net, name) for name in names]
    values = [_value(found, place) for place in places]
    status, message = "ok", ""
    slopes = np.full((len(names), len(paths)), np.nan)
    if found.model is None or found.orbit is None:
        status = found.status
        message = found.message or "only cycles by collocation have derivatives"
    else:
        along = _directions(net, found.model, paths)
        moves = orbit_slopes(found.model, found.orbit, along)
        told = reported(net)
        slopes = np.array([_slopes(found.orbit, told, place, moves) for place in places])
    units = {path: unit_of(net, path) for path in paths}
    return tuple(
        Gradient(
            name, value, dict(zip(paths, map(float, row), strict=True)), status, message,
            "s" if place is None else ("packet" if isinstance(net, Network) else "1"), units, {},
        )
        for name, value, row, place in zip(names, values, slopes, places, strict=True)
    )  # fmt: skip


def _place(net: Network | DelayEquation, name: str) -> tuple[int, bool] | None:
    """Number of the value and whether its largest is meant; None for the period."""
    known: dict[str, tuple[int, bool] | None] = {"cycle.period": None}
    if isinstance(net, DelayEquation):
        each = [f"states.{k}" for k in range(equation_at_rest(net).flat.size)]
    else:
        each = [f"{kind}.{owner}.{key}" for kind, owner, key, k in labels(net) if k == 0]
        numbers = [j for j, (*_, k) in enumerate(labels(net)) if k == 0]
    for j, own in enumerate(each):
        at = j if isinstance(net, DelayEquation) else numbers[j]
        known |= {f"cycle.{own}.min": (at, False), f"cycle.{own}.max": (at, True)}
    full = name
    if isinstance(net, Network):
        full = f"cycle.{full_path(net, name.removeprefix('cycle.'))}"
    if full not in known:
        close = nearest(full, list(known), least=0.0)
        raise ScenarioError([Fault("gradient", name, "a quantity of a cycle", "no such", close)])
    return known[full]


def _value(found: Cycle, place: tuple[int, bool] | None) -> float:
    """The number itself; NaN where there is no cycle."""
    if found.period is None:
        return math.nan
    if place is None:
        return found.period
    ranges = [v.queue for v in found.links.values()] + [v.average for v in found.links.values()]
    ranges += [pair for group in found.flows.values() for pair in group.window]
    return float((*ranges, *found.states)[place[0]][place[1]])


def _directions(net: Network | DelayEquation, model: Model, paths: Sequence[str]) -> list[Any]:
    """Derivatives of the model's numbers by each parameter."""

    def moved_by(path: str) -> Any:
        if isinstance(net, DelayEquation):
            zero = jax.tree.map(jnp.zeros_like, model.args)
            net.number_at(path)  # raises where there is none
            own = jax.tree_util.tree_map_with_path(
                lambda keys, leaf: leaf + float(_key(keys) == path), zero.params["own"]
            )
            return zero._replace(params={**zero.params, "own": own})
        (direction,) = directions(net, [path])
        return model.args.along(direction)

    return [moved_by(path) for path in paths]


def _key(keys: Any) -> str:
    """The path of a leaf of nested parameters."""
    return ".".join(str(key.key) for key in keys)


def _slopes(
    orbit: Orbit, values: Callable[[Array], Array], place: tuple[int, bool] | None, moves: Array
) -> Array:
    """Derivatives (K,) of the period or of an extreme; that of time vanishes where it is taken."""
    if place is None:
        return moves[:, -1]
    number, greatest = place
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
    dy = blocks[:, :n] + np.einsum("j,kjn->kn", poly.integrals(np.array([x]))[0], rise)
    y = orbit.states(interval, np.array([x]))
    small = _SMALL * (1.0 + np.abs(y).max()) / (np.abs(dy).max(1, keepdims=True) + 1e-300)
    up, down = values(y + small * dy)[:, number], values(y - small * dy)[:, number]
    return (up - down) / (2 * small[:, 0])
