"""Networks and delay equations as models of cycles, and what is reported of their states."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.cycles.model import Model, chunked
from fluidcc.analysis.cycles.orbit import GUARD, Orbit
from fluidcc.analysis.cycles.perturbed import Moves
from fluidcc.analysis.cycles.polynomials import Array
from fluidcc.analysis.delay_equation import DelayEquation, equation_at_rest
from fluidcc.dde import equation as general
from fluidcc.dde.system import shapes_of, unraveler
from fluidcc.laws.law import Ack
from fluidcc.model.fluid import as_fluid, with_mean_calls
from fluidcc.model.layout import initial_state
from fluidcc.model.network_system import network_system
from fluidcc.model.rates import FREE, HIGH, LOW
from fluidcc.scenario.network import Flows, Network, Start, numeric

FEW_CLASSES = 4
"""Distinct round trips of what is followed exactly, as for trajectories: every distinct delay
multiplies the breaking points."""
_PUSHED = 0.1  # of the state and of 1: how far an equation's run starts from its equilibrium


class NotHereError(ValueError):
    """A model whose cycle has to be taken from a simulation; the message says why."""


def steady(net: Network) -> Network:
    """The network long after its start: flows have all begun, and calls are at their mean."""
    flows = tuple(dataclasses.replace(f, start=Start()) for f in as_fluid(net).flows)
    return with_mean_calls(dataclasses.replace(as_fluid(net), flows=flows))


def alike_joined(net: Network) -> tuple[Network, tuple[int, ...]]:
    """The network with groups that differ in their numbers of flows alone made one, and the group
    that each group has become part of.
    """
    kept: list[Flows] = []
    place = []
    for flows in net.flows:
        k = next((k for k, own in enumerate(kept) if _alike(own, flows)), len(kept))
        if k == len(kept):
            kept.append(flows)
        else:
            kept[k] = dataclasses.replace(kept[k], n=kept[k].n + flows.n)
        place.append(k)
    names = tuple(net.flow_names[place.index(k)] for k in range(len(kept)))
    return dataclasses.replace(net, flows=tuple(kept), flow_names=names), tuple(place)


def _alike(one: Flows, other: Flows) -> bool:
    """Whether groups have the same laws, ways and numbers but for how many flows they are."""
    return eqx.tree_equal(one, dataclasses.replace(other, n=one.n)) is True


def network_model(net: Network) -> tuple[Model, Array]:
    """The model of a network and its state at the start.

    Raises NotHereError for what repeats only in the mean, or is not followed exactly.
    """
    net = steady(net)
    ticks = jax.tree.leaves(initial_state(numeric(net)).clocks)
    if ticks:
        raise NotHereError("laws that act at ticks of their own repeat only in the mean")
    if any(link.queue.limits for link in net.links):
        raise NotHereError("the memory of a queue law has limits that no events are located at")
    if net.delay == "fifo":
        raise NotHereError("the delay of model.delay = 'fifo' follows from the past itself")
    if net.rates == "self_clocked":
        raise NotHereError("self-clocked flows keep what is in flight, so cycles are not alone")
    if sum(np.size(f.rtt) for f in net.flows) > FEW_CLASSES:
        raise NotHereError(f"there are more than {FEW_CLASSES} distinct round trips")
    system, y0, args = network_system(net)
    return Model(system, args, len(y0)), np.asarray(y0)


def network_moves(net: Network) -> Moves:
    """How the state of a network is moved for its multipliers.

    Ticks of fixed periods keep their distances for ever: they are moved as one, which moves time.
    Other ticks and all else move by themselves.
    """
    nothing = jax.tree.map(jnp.zeros_like, initial_state(numeric(net)))
    kept = [link.queue.period is not None for link in net.links]
    trips = (1.0, 2.0)
    for flows in net.flows:
        short, long = (flows.window.period(Ack(1.0, 0.0, trip)) for trip in trips)
        kept.append(short is not None and bool(short == long))

    def marked(which: list[bool]) -> Array:
        clocks = zip(nothing.clocks, which, strict=True)
        ticks = tuple(jax.tree.map(lambda v, on=on: v + float(on), clock) for clock, on in clocks)
        return np.asarray(ravel_pytree(nothing._replace(clocks=ticks))[0]) > 0

    clock, fixed = marked([True] * len(kept)), marked(kept)
    along = np.eye(len(clock))[~fixed]
    return Moves(clock, np.vstack([along, fixed]) if np.any(fixed) else along)


@functools.lru_cache(maxsize=64)
def _equation_system(field: Any, lags: tuple[Any, ...], shapes: Any, structure: Any) -> Any:
    """The system of equations of one form, whose constant history is among its parameters."""
    tree = unraveler(shapes)
    y = tree(jnp.zeros(sum(int(np.prod(shape)) for shape, _ in shapes[1])))
    params = jax.tree.unflatten(structure, [jnp.zeros(())] * structure.num_leaves)
    wrapped = tuple((lambda t, y, p, lag=lag: lag(t, y, p["own"])) for lag in lags)
    arguments = general.Arguments({"own": params, "before": y}, None)
    return general.build(
        lambda t, y, z, p: field(t, y, z, p["own"]), lambda t, p: p["before"], wrapped,
        None, y, jnp.zeros(()), arguments,
    )  # fmt: skip


def equation_model(equation: DelayEquation) -> tuple[Model, Array]:
    """The model of a delay equation, and a state beside its equilibrium to start from."""
    rest = equation_at_rest(equation)
    y = rest.flat + _PUSHED * (1.0 + np.abs(rest.flat))
    start = general.as_state(rest.y)
    params = jax.tree.map(lambda v: jnp.asarray(v, float), dict(equation.params))
    shapes = shapes_of(start)
    system = _equation_system(equation.field, equation.lags, shapes, jax.tree.structure(params))
    before = unraveler(shapes)(jnp.asarray(y))
    args = general.Arguments({"own": params, "before": before}, None)
    return Model(system, args, len(y)), y


@jax.jit
def _observed(net: Network, y: Any) -> Any:
    """Queues, average queues and windows, flat, (Q, links + links + classes)."""
    unflatten = ravel_pytree(initial_state(net))[1]

    def one(flat: Any) -> Any:
        state = unflatten(flat)
        queues = [jnp.clip(q, 0.0, k.buffer) for k, q in zip(net.links, state.queues, strict=True)]
        averages = [
            k.queue.average(x, q) for k, x, q in zip(net.links, state.laws, queues, strict=True)
        ]
        windows = [
            jnp.clip(f.window.window(s.law), f.window.min_window, f.window.max_window)
            for f, s in zip(net.flows, state.senders, strict=True)
        ]
        parts = (*queues, *averages, *windows)
        return jnp.concatenate([jnp.ravel(jnp.asarray(v, float)) for v in parts])

    return (jax.vmap(one)(y),)


def reported(net: Network | DelayEquation) -> Callable[[Array], Array]:
    """What is told of states, from (Q, n) to (Q, R): queues, averages and windows of a network."""
    if isinstance(net, DelayEquation):
        return lambda y: y
    numbers = numeric(steady(net))
    return lambda y: chunked(_observed, numbers, y)[0]


def labels(net: Network) -> list[tuple[str, str, str, int]]:
    """Kind, name, quantity and number in its group of each value `reported` of a network."""
    net = as_fluid(net)
    out = [("links", name, "queue", 0) for name in net.link_names]
    out += [("links", name, "average", 0) for name in net.link_names]
    for name, flows in zip(net.flow_names, net.flows, strict=True):
        out += [("flows", name, "window", k) for k in range(np.size(flows.rtt))]
    return out


def told(net: Network, orbit: Orbit) -> list[str]:
    """What switches in an orbit of a network."""
    net, out = steady(net), []
    links = len(net.links)
    for k, name in enumerate(net.link_names):
        words = {LOW: "runs empty", HIGH: "is full"}
        out += [f"links.{name} {words[m]}" for m in (LOW, HIGH) if np.any(orbit.modes[:, k] == m)]
    at = links
    for name, flows in zip(net.flow_names, net.flows, strict=True):
        own = orbit.modes[:, at : at + np.size(flows.rtt)]
        at += np.size(flows.rtt)
        if np.any(own != FREE):
            out.append(f"windows of flows.{name} rest at a bound")
    guards = 2 * orbit.modes.shape[1]
    if any(e.kind == GUARD and e.index >= guards for e in orbit.events):
        out.append("queues pass corners of their signal")
    return out
