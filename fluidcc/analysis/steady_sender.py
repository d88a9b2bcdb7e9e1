"""Equilibria of senders under given signals.

The drift of the window changes sign there, and everything else that a sender remembers follows from
the window. If a link's load factor settles at a jump of the sender's rule, drifts are mixed.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from fluidcc.analysis.bisection import bisect
from fluidcc.laws.law import Signal
from fluidcc.laws.load_code import Exact
from fluidcc.model.senders import (
    Sender,
    growing_rate,
    sender_change,
    sending_rate,
    start_sender,
    starts_slowly,
)
from fluidcc.ops import Num
from fluidcc.scenario.network import Flows

LARGEST_WINDOW = 1e7  # packets, if the law has no cap
SMALLEST_WINDOW = 1e-6  # packets, if windows fall without end
_SWEEPS = 3  # memories follow each other in a chain


class WeightedSignal(NamedTuple):
    """A signal that flows receive for a share of the time."""

    share: Num
    signal: Signal


def past_slow_start(flows: Flows, window: Num) -> Sender:
    """Senders with a window (m,) [packet], none of them in slow start."""
    s = start_sender(flows, window)
    return s._replace(slow=0.0 * window) if starts_slowly(flows) else s


def _change(
    flows: Flows, s: Sender, cases: list[WeightedSignal], rtt: Num, all_grow: bool
) -> Sender:
    """Mean change of senders per second whose packets are all as old as their rate."""
    parts = []
    for share, signal in cases:
        rate = sending_rate(flows, s, signal, rtt)
        growing = growing_rate(flows, s, signal, rate)
        change = sender_change(
            flows, s, growth=rate if all_grow else growing, acks=rate,
            carried=rate, signal=signal, rtt=rtt, ticks=True,
        )  # fmt: skip
        parts.append(jax.tree.map(lambda c, share=share: share * c, change))
    return jax.tree.map(lambda *c: sum(c), *parts)


def _settle_memories(
    flows: Flows, window: Num, cases: list[WeightedSignal], rtt: Num, all_grow: bool
) -> Sender:
    """Senders with this window (m,) whose other memories are steady: Newton, one by one."""
    s = past_slow_start(flows, window)
    leaves, shape = jax.tree.flatten(s)
    if len(leaves) == 1:
        return s

    def change(values: Num) -> Num:
        new = _change(flows, jax.tree.unflatten(shape, list(values)), cases, rtt, all_grow)
        return jnp.stack(jax.tree.leaves(new))

    def improve(turn: Num, values: Num) -> Num:
        """One of the memories, in turn."""
        one = (jnp.arange(len(leaves)) == turn % len(leaves)).astype(float)[:, None]
        drift, slope = jax.jvp(change, (values,), (one + 0.0 * values,))
        falling = jnp.where(slope < 0, slope, -1.0)
        moved = values - one * jnp.where(slope < 0, drift / falling, 0.0)
        s = jax.tree.unflatten(shape, list(moved))
        s = s._replace(law=flows.window.with_window(s.law, window))
        return jnp.stack(jax.tree.leaves(s))

    turns = _SWEEPS * len(leaves)
    values = jax.lax.fori_loop(0, turns, improve, jnp.stack(leaves))
    return jax.tree.unflatten(shape, list(values))


def steady_sender(
    flows: Flows,
    cases: list[WeightedSignal],
    rtt: Num,
    *,
    all_grow: bool,
    window: Num | None = None,
) -> Sender:
    """Senders at equilibrium under signals `cases` at a round trip (m,) [s].

    With `all_grow`, growth knows no share of clean ACKs (the rates of `mgt`). With a `window` (m,)
    [packet] they have that one, and their other memories are steady.
    """
    if flows.estimator.remembers:  # at equilibrium the estimate is the load, whatever its code
        exact = dataclasses.replace(flows, estimator=Exact())
        s = steady_sender(exact, cases, rtt, all_grow=all_grow, window=window)
        return s._replace(estimate=cases[0].signal.load + 0.0 * rtt)
    if window is not None:
        return _settle_memories(flows, window, cases, rtt, all_grow)
    law = flows.window

    def sender(window: Num, cases: list[WeightedSignal] = cases) -> Sender:
        return _settle_memories(flows, window, cases, rtt, all_grow)

    def growth(log_window: Num, cases: list[WeightedSignal] = cases) -> Num:
        s = sender(jnp.exp(log_window), cases)
        return law.window(_change(flows, s, cases, rtt, all_grow).law)

    known = flows.loss.window(cases[0].signal.drop, rtt)
    if known is not None:
        return sender(jnp.minimum(known, law.max_window))
    most = jnp.where(jnp.isinf(law.max_window), LARGEST_WINDOW, law.max_window)
    low, high = (
        jnp.full(jnp.shape(rtt), end) for end in (math.log(SMALLEST_WINDOW), jnp.log(most))
    )
    below, above = bisect(growth, low, high)
    window = jnp.where(above == high, most, jnp.exp(below))  # it grows up to its cap
    floor = jnp.asarray(law.min_window, float)  # a raised one holds; below 1 only timeouts slow
    window = jnp.where(floor > 1, jnp.maximum(window, floor), window)
    if flows.feedback.loads and law.loads:  # a load alone may drive windows to their floor
        floor = jnp.log(jnp.full(jnp.shape(rtt), law.min_window))
        unmarked = [
            WeightedSignal(c.share, per_flow(c.signal._replace(mark=0.0, drop=0.0), rtt))
            for c in cases
        ]
        falls = growth(floor, unmarked) <= 0
        window = jnp.where(falls, jnp.maximum(window, law.min_window), window)
    return sender(window)


def per_flow(signal: Signal, rtt: Num) -> Signal:
    """A signal in the shape (m,) of the round trips."""
    return Signal(*(jnp.broadcast_to(jnp.asarray(v, float), jnp.shape(rtt)) for v in signal))


def source_rate(flows: Flows, s: Sender, cases: list[WeightedSignal], rtt: Num) -> Num:
    """Mean rate of one source (m,) [packet/s]; sources without a file send nothing."""
    rate: Any = sum(share * sending_rate(flows, s, signal, rtt) for share, signal in cases)
    return s.active * rate if flows.traffic.starts else rate
