"""Equilibria of senders under given signals.

The drift of the window changes sign there, and everything else that a sender remembers follows from
the window. If a link's load factor settles at a jump of the sender's rule, drifts are mixed.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.analysis.bisection import bisect
from fluidcc.laws.law import Signal
from fluidcc.laws.load_code import Exact
from fluidcc.model.rates import (
    Sender,
    growing_rate,
    sender_change,
    sending_rate,
    start_sender,
    starts_slowly,
)
from fluidcc.ops import Num
from fluidcc.programs import at_each, leaves, map_tree, repeat, unflatten
from fluidcc.scenario.network import Flows

LARGEST_WINDOW = 1e7  # packets, if the law has no cap
SMALLEST_WINDOW = 1e-6  # packets, if windows fall without end
_TURNS = 12
_STILL = 4e-15  # step of a memory that counts as none
_ASIDE = 1e-4  # to the side of a memory, for the slope of its drift, which most often is linear


class WeightedSignal(NamedTuple):
    """A signal that flows receive for a share of the time."""

    share: Num
    signal: Signal


def past_slow_start(flows: Flows, window: Num) -> Sender:
    """Senders with a window (m,) [packet], none of them in slow start."""
    s = start_sender(flows, window)
    return s._replace(slow=0.0 * window) if starts_slowly(flows) else s


def _change(
    flows: Flows, s: Sender, cases: list[WeightedSignal], rtt: Num, growth_on_all_acks: bool
) -> Sender:
    """Mean change of senders per second whose packets are all as old as their rate."""
    parts = []
    for share, signal in cases:
        rate = sending_rate(flows, s, signal, rtt)
        growing = growing_rate(flows, s, signal, rate)
        change = sender_change(
            flows, s, growth=rate if growth_on_all_acks else growing, acks=rate,
            carried=rate, signal=signal, rtt=rtt, ticks=True,
        )  # fmt: skip
        parts.append(map_tree(lambda c, share=share: share * c, change))
    return map_tree(lambda *c: sum(c), *parts)


def _memories(flows: Flows, s: Sender) -> np.ndarray:
    """Indices of the numbers of senders that `with_window` leaves alone."""
    other = s._replace(law=flows.window.with_window(s.law, flows.window.window(s.law) + 1.0))
    return np.flatnonzero([a is b for a, b in zip(leaves(s), leaves(other), strict=True)])


def _settle(
    flows: Flows, window: Num, cases: list[WeightedSignal], rtt: Num, growth_on_all_acks: bool
) -> tuple[Sender, Sender]:
    """Senders with this window (m,) whose other memories are steady, and their change per second.

    Steps of Newton's method for all memories at once, each by its own slope, as a difference: most
    drift linearly towards their value, and follow each other in a chain at the most.
    """
    s = past_slow_start(flows, window)
    own = _memories(flows, s)
    none = 0.0 * (window + cases[0].signal.mark)
    ones = np.ndim(none) * (1,)
    bumps = _ASIDE * np.eye(len(leaves(s)))[own]  # one aside of each memory
    bumps = np.concatenate([0.0 * bumps[:1], bumps]).reshape((1 + len(own), -1, *ones))
    moves = np.isin(np.arange(len(leaves(s))), own).reshape((-1, *ones))

    def change(values: Num) -> Num:
        new = _change(flows, unflatten(s, list(values)), cases, rtt, growth_on_all_acks)
        return ops.stack([none + 0.0 * values[0] + v for v in leaves(new)])

    def step(carry: tuple) -> tuple:
        turn, _, values, _ = carry
        aside = bumps * (1.0 + abs(values[None]))
        found = at_each(change, values[None] + aside)
        rises = ops.where(aside != 0, found - found[:1], 0.0)
        slopes = rises.sum(axis=0) / aside.sum(axis=0)
        drift, falls = found[0], moves & (slopes < 0)
        move = ops.where(falls, drift / ops.where(falls, slopes, -1.0), 0.0)
        still = ops.everywhere(abs(move) <= _STILL * (1.0 + abs(values)))
        return turn + 1, still, ops.where(still, values, values - move), drift

    def unsettled(carry: tuple) -> Num:
        return (carry[0] < _TURNS) & ~carry[1]

    first = ops.stack([none + v for v in leaves(s)])
    found = repeat(unsettled, step, (0, np.False_, first, 0.0 * first))
    settled, drift = (unflatten(s, list(values)) for values in found[2:])
    return settled, drift


@np.errstate(all="ignore")
def steady_sender(
    flows: Flows,
    cases: list[WeightedSignal],
    rtt: Num,
    *,
    growth_on_all_acks: bool,
    window: Num | None = None,
) -> Sender:
    """Senders at equilibrium under signals `cases` at a round trip (m,) [s].

    With `growth_on_all_acks` windows grow on marked ACKs too (the rates of `mgt`). With a `window`
    (m,) [packet] they have that one, and their other memories are steady.
    """
    if flows.estimator.remembers:  # at equilibrium the estimate is the load, whatever its code
        exact = dataclasses.replace(flows, estimator=Exact())
        s = steady_sender(exact, cases, rtt, growth_on_all_acks=growth_on_all_acks, window=window)
        return s._replace(estimate=cases[0].signal.load + 0.0 * rtt)
    law = flows.window

    def sender(window: Num) -> Sender:
        s = past_slow_start(flows, window)
        if not len(_memories(flows, s)):
            return s
        return _settle(flows, window, cases, rtt, growth_on_all_acks)[0]

    def growth(log_window: Num, cases: list[WeightedSignal] = cases) -> Num:
        window = ops.exp(log_window)
        s = past_slow_start(flows, window)
        if len(_memories(flows, s)):
            change = _settle(flows, window, cases, rtt, growth_on_all_acks)[1]
        else:
            change = _change(flows, s, cases, rtt, growth_on_all_acks)
        return law.window(change.law)

    if window is not None:
        return sender(window)
    known = flows.loss.window(cases[0].signal.drop, rtt)
    if known is not None:
        return sender(ops.minimum(known, law.max_window))
    none = 0.0 * cases[0].signal.mark
    most = ops.where(law.max_window == math.inf, LARGEST_WINDOW, law.max_window)
    low, high = (end + none for end in (math.log(SMALLEST_WINDOW), ops.log(most)))
    below, above = bisect(growth, low, high)
    window = ops.where(above == high, most, ops.exp(below))  # it grows up to its cap
    floor = law.min_window  # above 1 it is enforced; below, only timeouts slow a sender
    window = ops.where(floor > 1, ops.maximum(window, floor), window)
    if flows.feedback.loads and law.loads:  # a load alone may drive windows to their floor
        floor = ops.log(law.min_window + none)
        unmarked = [
            WeightedSignal(c.share, per_flow(c.signal._replace(mark=0.0, drop=0.0), rtt))
            for c in cases
        ]
        falls = growth(floor, unmarked) <= 0
        window = ops.where(falls, ops.maximum(window, law.min_window), window)
    return sender(window)


def per_flow(signal: Signal, rtt: Num) -> Signal:
    """A signal in the shape of the round trips (m,), or with several numbers of each (n, m)."""
    shape = np.broadcast_shapes(np.shape(rtt), *map(np.shape, signal))
    return Signal(*(ops.broadcast_to(v, shape) for v in signal))


def source_rate(flows: Flows, s: Sender, cases: list[WeightedSignal], rtt: Num) -> Num:
    """Mean rate of one source (m,) [packet/s]; sources without a file send nothing."""
    rate: Any = sum(share * sending_rate(flows, s, signal, rtt) for share, signal in cases)
    return s.active * rate if flows.traffic.starts else rate
