"""Memories that only fall or only rise: they hold an extreme of the past and have no equilibrium.

The least round trip ever seen, for example, depends on the whole past and not on the present. Rules
are evaluated in plain numbers, over a grid of memories and events.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from fluidcc.laws.law import AbstractWindowLaw, Ack, Arrival
from fluidcc.programs import leaves, unflatten
from fluidcc.scenario.network import Network

_TRIALS = 300  # of each rule
_MEMORIES = (0.0, 1e-3, 0.03, 0.5, 1.0, 10.0, 1e3, 1e6)
_WINDOW, _CAPACITY = 10.0, 1e3  # packet, packet/s
_COUNTS = [(1.0, 0.0), (0.0, 0.01), (1.0, 0.01)]  # packets, s
_ACKS = [
    Ack(count, elapsed, rtt, load, marked)
    for (count, elapsed), rtt, load, marked in itertools.product(
        _COUNTS, (1e-3, 0.1, 2.0), (0.0, 0.9, 1.5), (0.0, 1.0)
    )
]
_ARRIVALS = [
    Arrival(count, elapsed, queue, _CAPACITY)
    for (count, elapsed), queue in itertools.product(_COUNTS, (0.0, 1.0, 30.0, 1e4))
]


def extremes(net: Network) -> list[str]:
    """Messages on memories of a network that hold extremes, one line each."""
    senders = [
        (f"flows.{n}.window", f.window) for n, f in zip(net.flow_names, net.flows, strict=True)
    ]
    routers = [
        (f"links.{n}.queue", k.queue) for n, k in zip(net.link_names, net.links, strict=True)
    ]
    return [
        f"{where} remembers the {kind} that it ever saw ({symbol}), which the present does not "
        "determine: the equilibrium is unknown; use trajectories or packet runs"
        for where, law in [*senders, *routers]
        for symbol, kind in _default_extremes(law)
    ]


def _default_extremes(law: Any) -> list[tuple[str, str]]:
    """Result of `_find_extremes` for the default parameters of a law, its own if it has none."""
    usual = {
        f.name: f.default
        for f in dataclasses.fields(law)
        if f.default is not dataclasses.MISSING and not f.metadata.get("static")
    }
    return _find_extremes(dataclasses.replace(law, **usual))


@functools.lru_cache(256)
def _find_extremes(law: Any) -> list[tuple[str, str]]:
    """Symbols of the memories of a law that hold an extreme, and whether the least or largest."""
    if isinstance(law, AbstractWindowLaw):
        start, events = law.start(_WINDOW), _ACKS
        functions = [law.on_ack, law.observe, law.on_mark, law.on_loss, law.on_tick]
        other = law.with_window(start, -1.0)
        own = [a == b for a, b in zip(*map(leaves, (start, other)), strict=True)]
    else:
        start, events, functions = law.start(0.0), _ARRIVALS, [law.on_arrival, law.on_tick]
        own = [True] * len(leaves(start))
    if not any(own):
        return []
    changes = _changes(start, functions, events)
    falls, rises = np.any(changes < 0, axis=0), np.any(changes > 0, axis=0)
    return [
        (symbol, "least" if fall else "largest")
        for symbol, fall, rise, memory in zip(law.symbols, falls, rises, own, strict=False)
        if memory and fall != rise
    ]


def _changes(start: Any, rules: list[Callable], events: list) -> np.ndarray:
    """Changes (., memories) by the rules, from many memories and at many events."""
    first = leaves(start)
    draw, out = np.random.default_rng(0), [[0.0] * len(first)]
    for rule, _ in itertools.product(rules, range(_TRIALS)):
        values = [float(v) for v in draw.choice(_MEMORIES, len(first))]
        event = events[draw.integers(len(events))]
        try:
            change = rule(unflatten(start, values), event)
            out.append([float(v) for v in leaves(change)])
        except (ArithmeticError, ValueError):  # memories that this rule never meets
            continue
    return np.asarray(out)
