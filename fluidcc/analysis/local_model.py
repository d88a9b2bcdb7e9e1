"""The moving model at an equilibrium: its state, the bounds that hold, and its outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.analysis.operating_point import OperatingPoint, Regime, steady_state
from fluidcc.analysis.steady_laws import after_arrivals
from fluidcc.model.delays import DelayedInputs, State, make_outputs, output_indices
from fluidcc.model.rates import FREE, HIGH, LOW, Modes, flux
from fluidcc.ops import Num
from fluidcc.programs import flatten, leaves, map_tree, ravel, write_out
from fluidcc.scenario.network import Flows, Network

Received = Callable[[Num], list[tuple[Num, Num]]]

NEAR = 1e-7  # packets: distance at which a kink counts as reached
_ASIDE = 1e-6  # packets: step to either side of a kink
_FALLING = 1e-6  # packets per packet sent; a window at its floor that falls faster is held there


def _flux(net: Network, modes: Modes, y: State, past: DelayedInputs) -> tuple:
    return tuple(flux(net, y, past, modes, ticks=True))


def present(net: Network, modes: Modes, y: State, past: DelayedInputs) -> list[Num]:
    """The numbers of the `flux` within bounds, ticks included, in order."""
    return [*write_out(_flux, (net, modes), (y, past))(*leaves((y, past)))]


def constant_inputs(net: Network, u: Num) -> DelayedInputs:
    """Delayed inputs if the outputs have always been u."""
    return map_tree(lambda index: u[..., index], output_indices(net))


def steady_outputs(net: Network, op: OperatingPoint) -> Num:
    """Flat outputs of senders and links at an equilibrium."""
    paces = tuple(1.0 for _ in net.links)
    return flatten(make_outputs(net, op.rates, op.signals, paces))


def _modes(net: Network, op: OperatingPoint, y: State, emitted: tuple, received: Received) -> Modes:
    """Which bounds hold: empty and full queues, windows that would pass their bounds."""
    queues = tuple(
        ops.where(code == Regime.FULL, HIGH, ops.where(backlog < 0, LOW, FREE))
        for code, backlog in zip(op.codes, op.backlogs, strict=True)
    )
    free = tuple(np.zeros(np.shape(w), int) for w in op.windows)
    modes = Modes(queues, free, emitted)
    u = steady_outputs(net, op)
    turns = [
        (weight, present(net, modes, y, constant_inputs(net, outputs)))
        for weight, outputs in received(u)
    ]
    raw = [sum(weight * now[k] for weight, now in turns) for k in range(-len(net.flows), 0)]

    def mode(flows: Flows, window: Num, change: Num, rate: Num) -> Num:
        capped = (change > 0) & (window >= flows.window.max_window)
        starved = (change < -_FALLING * rate) & (window == flows.window.min_window)
        return ops.where(capped, HIGH, ops.where(starved, LOW, FREE))

    parts = zip(net.flows, op.windows, raw, op.rates, strict=True)
    return Modes(queues, tuple(mode(*part) for part in parts), emitted)


def _frozen(net: Network, y: State, modes: Modes) -> Num:
    """Ones where a component of the flattened state is held by a bound."""
    still = map_tree(ops.zeros_like, y)
    senders = tuple(
        s._replace(law=f.window.with_window(s.law, (m != FREE).astype(float)))
        for f, s, m in zip(net.flows, still.senders, modes.windows, strict=True)
    )
    queues = tuple((m != FREE).astype(float) for m in modes.queues)
    return flatten(State(senders, queues, still.laws))


def _aside(net: Network, op: OperatingPoint, y: State, side: Num) -> State:
    """The state with busy queues and their averages a little longer or shorter."""
    queues, laws = [], []
    for link, backlog, x in zip(net.links, op.backlogs, y.laws, strict=True):
        there = ops.where(backlog < 0, backlog, backlog + _ASIDE * side)
        beside = after_arrivals(link, x, there)
        queues.append(ops.maximum(there, 0.0))
        laws.append(map_tree(lambda a, b: ops.where(side == 0, a, b), x, beside))
    return y._replace(queues=tuple(queues), laws=tuple(laws))


def present_function(
    net: Network, y: State, modes: Modes
) -> tuple[Callable[[Network, Num, Num], Num], Num, Num]:
    """Flat (drift, outputs) of a network as a function of its parameters, its flat state (n,) and
    its delayed inputs (k,); with that state, and the index of each input among the outputs (k,).
    """
    v, restore = ravel(y)
    index, as_inputs = ravel(output_indices(net))

    def function(net: Network, v: Num, z: Num) -> Num:
        now = flux(net, restore(v), as_inputs(z), modes, ticks=True)
        return ops.concatenate([flatten(now.drift), flatten(now.outputs)])

    return function, v, index


class LocalState(NamedTuple):
    """State, modes and flat outputs at an equilibrium, and ones for states that a bound holds."""

    y: State
    modes: Modes
    outputs: Num
    frozen: Num


def _alone(outputs: Num) -> list[tuple[Num, Num]]:
    return [(1.0, outputs)]


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
