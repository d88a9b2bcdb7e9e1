"""The moving model at an equilibrium: its state, the bounds that hold, and its outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.operating_point import OperatingPoint, Regime, steady_state
from fluidcc.analysis.steady_queue import after_arrivals
from fluidcc.model.delays import DelayedInputs, State, make_outputs, output_indices
from fluidcc.model.rates import FREE, HIGH, LOW, Modes, flux
from fluidcc.ops import Num
from fluidcc.scenario.network import Flows, Network

Received = Callable[[Num], list[tuple[Num, Num]]]

NEAR = 1e-7  # packets: distance at which a kink counts as reached
_ASIDE = 1e-6  # packets: step to either side of a kink
_FALLING = 1e-6  # packets per packet sent; a window at its floor that falls faster is held there


def constant_inputs(net: Network, u: Num) -> DelayedInputs:
    """Delayed inputs if the outputs have always been u."""
    return jax.tree.map(lambda index: u[index], output_indices(net))


def steady_outputs(net: Network, op: OperatingPoint) -> Num:
    """Flat outputs of senders and links at an equilibrium."""
    paces = tuple(jnp.ones(()) for _ in net.links)
    return ravel_pytree(make_outputs(net, op.rates, op.signals, paces))[0]


def _modes(net: Network, op: OperatingPoint, y: State, emitted: tuple, received: Received) -> Modes:
    """Which bounds hold: empty and full queues, windows that would pass their bounds."""
    queues = tuple(
        jnp.where(code == Regime.FULL, HIGH, jnp.where(backlog < 0, LOW, FREE))
        for code, backlog in zip(op.codes, op.backlogs, strict=True)
    )
    free = tuple(jnp.zeros(jnp.shape(w), int) for w in op.windows)
    modes = Modes(queues, free, emitted)
    u = steady_outputs(net, op)
    turns = [
        jax.tree.map(
            lambda c, w=weight: w * c,
            flux(net, y, constant_inputs(net, outputs), modes, ticks=True).window_raw,
        )
        for weight, outputs in received(u)
    ]
    raw = jax.tree.map(lambda *c: sum(c), *turns)

    def mode(flows: Flows, window: Num, change: Num, rate: Num) -> Num:
        capped = (change > 0) & (window >= flows.window.max_window)
        starved = (change < -_FALLING * rate) & (window == flows.window.min_window)
        return jnp.where(capped, HIGH, jnp.where(starved, LOW, FREE))

    parts = zip(net.flows, op.windows, raw, op.rates, strict=True)
    return Modes(queues, tuple(mode(*part) for part in parts), emitted)


def _frozen(net: Network, y: State, modes: Modes) -> Num:
    """Ones where a component of the flattened state is held by a bound."""
    still = jax.tree.map(jnp.zeros_like, y)
    senders = tuple(
        s._replace(law=f.window.with_window(s.law, (m != FREE).astype(float)))
        for f, s, m in zip(net.flows, still.senders, modes.windows, strict=True)
    )
    queues = tuple((m != FREE).astype(float) for m in modes.queues)
    return ravel_pytree(State(senders, queues, still.laws))[0]


def _aside(net: Network, op: OperatingPoint, y: State, side: Num) -> State:
    """The state with busy queues and their averages a little longer or shorter."""
    queues, laws = [], []
    for link, backlog, x in zip(net.links, op.backlogs, y.laws, strict=True):
        there = jnp.where(backlog < 0, backlog, backlog + _ASIDE * side)
        beside = after_arrivals(link, x, there)
        queues.append(jnp.maximum(there, 0.0))
        laws.append(jax.tree.map(lambda a, b: jnp.where(side == 0, a, b), x, beside))
    return y._replace(queues=tuple(queues), laws=tuple(laws))


def present_function(
    net: Network, y: State, modes: Modes
) -> tuple[Callable[[Network, Num, Num], Num], Num, Num]:
    """Flat (drift, outputs) of a network as a function of its parameters, its flat state (n,) and
    its delayed inputs (k,); with that state, and the index of each input among the outputs (k,).
    """
    v, unflatten = ravel_pytree(y)
    indices, shape = jax.tree.flatten(output_indices(net))
    sizes = np.cumsum([np.size(i) for i in indices])[:-1]

    def function(net: Network, v: Num, z: Num) -> Num:
        parts = [p.reshape(np.shape(i)) for p, i in zip(jnp.split(z, sizes), indices, strict=True)]
        now = flux(net, unflatten(v), jax.tree.unflatten(shape, parts), modes, ticks=True)
        return jnp.concatenate([ravel_pytree(now.drift)[0], ravel_pytree(now.outputs)[0]])

    return function, v, np.concatenate([np.ravel(i) for i in indices])


class LocalState(NamedTuple):
    """State, modes and flat outputs at an equilibrium, and ones for states that a bound holds."""

    y: State
    modes: Modes
    outputs: Num
    frozen: Num


def _alone(outputs: Num) -> list[tuple[Num, Num]]:
    return [(jnp.ones(()), outputs)]


def local_state(
    net: Network, op: OperatingPoint, side: Num, emitted: tuple = (), received: Received = _alone
) -> LocalState:
    """The model at an equilibrium, or a little to one side of it.

    `emitted` has, per link, the Signal at which it is held on a jump of its law, or None;
    `received` gives the outputs that senders receive in turn, with their shares of the time.
    """
    y = steady_state(net, op)
    modes = _modes(net, op, y, emitted, received)
    outputs = steady_outputs(net, op)
    y = _aside(net, op, y, side)
    return LocalState(y, modes, outputs, _frozen(net, y, modes))
