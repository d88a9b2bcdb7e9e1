"""Sliding equilibria: the jumps at which links stay, each with an unknown Filippov weight.

On a jump a link is for a share of the time on either side of a surface (Filippov, 1988, section 4,
where the share is the weight of the two sides). The share is one unknown more, and that the state
stays on the surface one equation more. A law whose ticks step a memory up on one side and down on
the other needs no share: that memory itself comes to what is needed.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.analysis.linear import Array
from fluidcc.analysis.local_model import NEAR
from fluidcc.analysis.operating_point import OperatingPoint, Regime, between, resolved, steady_state
from fluidcc.analysis.steady_laws import after_arrivals, neighbour, signal_of, tick_change
from fluidcc.laws.law import Signal
from fluidcc.laws.load_code import Exact
from fluidcc.model.delays import State, output_index
from fluidcc.ops import Num
from fluidcc.programs import flatten, map_tree
from fluidcc.scenario.network import Link, Network

SIGNAL, LOAD, TICKS = "signal", "load", "ticks"
"""Kinds of jumps: the signal of a law, what senders do at full load, the steps of a law's ticks."""

_FULL_LOAD = 1.0
_SAME_LOAD = 1e-9
_SAME_TICK = 1e-6  # relative, as in the search for the equilibrium


class NoDerivativeError(Exception):
    """An equilibrium has no derivatives, or none that are known; the text says why."""


class SlidingSurface(NamedTuple):
    """A link on a jump, and which of the law's numbers are zero there: each may be the surface."""

    link: int
    kind: str
    surfaces: tuple[int, ...]

    @property
    def weighs(self) -> bool:
        """Whether a share of the time is unknown."""
        return self.kind != TICKS


def sliding_surfaces(net: Network, op: OperatingPoint) -> tuple[SlidingSurface, ...]:
    """The jumps that hold an equilibrium. Raises NoDerivativeError if a surface is not known."""
    regimes = resolved(net, op)[1]
    kinds = {Regime.JUMP: SIGNAL, Regime.ADAPTED: TICKS, Regime.LOADED: LOAD}
    found = [(k, kinds[regime]) for k, regime in enumerate(regimes) if regime in kinds]
    return tuple(_contact(net, op, k, kind) for k, kind in found)


def _contact(net: Network, op: OperatingPoint, k: int, kind: str) -> SlidingSurface:
    name, link = net.link_names[k], net.links[k]
    if kind == LOAD:
        load = float(op.emitted[k].other)
        if abs(load - _FULL_LOAD) > _SAME_LOAD:
            raise NoDerivativeError(
                f"the senders of links.{name} switch at a load factor of {load:.6g}, whose "
                "derivatives are not known"
            )
        return SlidingSurface(k, kind, (0,))
    if kind == TICKS and np.count_nonzero(stepped(net, op, SlidingSurface(k, kind, ()))) != 1:
        raise NoDerivativeError(f"the ticks of links.{name}.queue step several states there")
    numbers = _numbers(link, kind, op.laws[k], op.queues[k])
    near = tuple(j for j, number in enumerate(numbers) if abs(float(number)) < NEAR)
    if not near or float(op.backlogs[k]) < 0:
        raise NoDerivativeError(f"the breakpoints of links.{name}.queue lack its discontinuity")
    return SlidingSurface(k, kind, near)


def _numbers(link: Link, kind: str, x: Any, queue: Num) -> tuple[Num, ...]:
    """The numbers of a law whose zeros may be the surface."""
    law, seen = link.queue, link.arrival(0.0, 0.0, queue)
    return law.switching_points(x, seen) if kind == TICKS else law.breakpoints(x, seen)


def shares(op: OperatingPoint, held: tuple[SlidingSurface, ...]) -> Num:
    """Shares of the time above the surfaces (S,)."""
    each = [op.emitted[c.link].share for c in held if c.weighs]
    return ops.stack(each) if each else np.zeros(0)


def _weights(held: tuple[SlidingSurface, ...], share: Num, kind: str) -> dict[int, Num]:
    """The shares of the sliding_surfaces of one kind, by link."""
    weighed = [c for c in held if c.weighs]
    return {c.link: share[j] for j, c in enumerate(weighed) if c.kind == kind}


def sides(link: Link, x: Any, backlog: Num) -> tuple[Signal, Signal]:
    """Signals of a link just below and just above a backlog."""
    low, high = (
        signal_of(link, after_arrivals(link, x, there), there)
        for there in (neighbour(backlog, -1), neighbour(backlog, 1))
    )
    return low, high


def given(net: Network, held: tuple[SlidingSurface, ...], y: State, share: Num) -> tuple:
    """Per link, the Signal that it says between the sides of its jump, or None; () if none is."""
    weights = _weights(held, share, SIGNAL)
    if not weights:
        return ()
    out: list[Signal | None] = [None] * len(net.links)
    for k, weight in weights.items():
        low, high = sides(net.links[k], y.laws[k], y.queues[k])
        out[k] = between(net, k, low, high, np.False_, weight).signal
    return tuple(out)


def weighed(
    net: Network,
    op: OperatingPoint,
    held: tuple[SlidingSurface, ...],
    share: Num,
    values: Num,
    index: Num,
) -> list[tuple[Num, Num]]:
    """Outputs that senders receive in turn from links at full load, with their shares of the time.

    `values` (k,) are looked up at `index` (k,) on the flat wire, of which the load factors change.
    """
    signals = output_index(net).signals
    weights = _weights(held, share, LOAD)
    out = []
    for above in itertools.product((False, True), repeat=len(weights)):
        outputs, weight = values, 1.0
        for (k, part), high in zip(weights.items(), above, strict=True):
            at, emitted = signals[k].load, op.emitted[k]
            load = emitted.other if high else emitted.signal.load
            outputs = ops.where(index == at, load + outputs - ops.constant(outputs), outputs)
            weight = weight * (part if high else 1 - part)
        out.append((weight, outputs))
    return out


def mixed(parts: list[tuple[Num, Num]], function: Callable[[Num], Any]) -> Any:
    """Mean of a function over the outputs that are received in turn."""
    each = [map_tree(lambda v, w=w: w * v, function(outputs)) for w, outputs in parts]
    return map_tree(lambda *v: sum(v), *each)


def surfaces(
    net: Network, held: tuple[SlidingSurface, ...], y: State, loads: tuple[Num, ...]
) -> Num:
    """Functions that vanish on the surfaces (c,), the first that may be one of each contact."""
    each = [
        loads[c.link] - _FULL_LOAD if c.kind == LOAD else
        _numbers(net.links[c.link], c.kind, y.laws[c.link], y.queues[c.link])[c.surfaces[0]]
        for c in held
    ]  # fmt: skip
    return ops.stack(each) if each else np.zeros(0)


def exact(net: Network, held: tuple[SlidingSurface, ...]) -> Network:
    """A network, or its derivative, whose senders know the load factors that links are held at.

    At equilibrium they estimate the load factor itself, whatever its code.
    """
    if not any(c.kind == LOAD for c in held):
        return net
    flows = tuple(dataclasses.replace(f, estimator=Exact()) for f in net.flows)
    return dataclasses.replace(net, flows=flows)


def with_exact_loads(op: OperatingPoint, held: tuple[SlidingSurface, ...]) -> OperatingPoint:
    """An operating point without the estimates of its senders, for the network of `exact`."""
    if not any(c.kind == LOAD for c in held):
        return op
    return op._replace(senders=tuple(s._replace(estimate=()) for s in op.senders))


def stepped(net: Network, op: OperatingPoint, contact: SlidingSurface) -> Array:
    """Mask (n,) of the flat state: the memories that ticks move one way or the other there."""
    k, y = contact.link, steady_state(net, op)
    link, x, backlog = net.links[k], op.laws[k], op.backlogs[k]

    def change(side: int) -> Any:
        there = neighbour(backlog, side)
        return tick_change(link, after_arrivals(link, x, there), there)

    def differs(low: Num, high: Num, value: Num) -> Num:
        return (abs(high - low) > _SAME_TICK * (1 + abs(value))).astype(float)

    none = map_tree(ops.zeros_like, y)
    moved = map_tree(differs, change(-1), change(1), x)
    laws = tuple(moved if j == k else law for j, law in enumerate(none.laws))
    return np.asarray(flatten(none._replace(laws=laws))) > 0
