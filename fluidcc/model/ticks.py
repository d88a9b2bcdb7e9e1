"""Clocks: what laws do at their sampling times, and calls that change a link's rate."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from fluidcc.laws.law import Ack, Arrival
from fluidcc.model.delays import Past, State, round_trip
from fluidcc.model.fluid import NEVER, with_service
from fluidcc.model.rates import FREE, HIGH, WAITING, Modes, heard
from fluidcc.model.senders import known_load
from fluidcc.scenario.network import Network


def distances(y: State, t: Any) -> list[Array]:
    """Time left to each tick [s], flat, in the order of the clocks."""
    return [jnp.ravel(due - t) for due in y.clocks if not isinstance(due, tuple)]


def _split(y: State, hit: Array) -> list[Any]:
    """What was hit, in the shape of each clock; None for links and flows without."""
    parts, at = [], 0
    for due in y.clocks:
        if isinstance(due, tuple):
            parts.append(None)
            continue
        size = due.size
        parts.append(hit[at : at + size].reshape(due.shape))
        at += size
    return parts


def _added(state: Any, change: Any, hit: Array) -> Any:
    return jax.tree.map(lambda a, b: a + jnp.where(hit, b, 0.0), state, change)


def tick(
    net: Network, t: Any, y: State, past: Past, modes: Modes, courses: tuple, hit: Array
) -> tuple[State, Modes]:
    """State and bounds after the ticks marked in `hit`, which has the shape of `distances`.

    `courses` has the steps of the calls' rate per link. Windows held at their cap are free after a
    tick.
    """
    parts = _split(y, hit)
    links, groups = len(net.links), len(net.flows)
    now = with_service(net, y.services)
    clocks, laws, senders = list(y.clocks), list(y.laws), list(y.senders)
    windows, services = list(modes.windows), list(y.services)
    for k, (link, on) in enumerate(zip(now.links, parts[:links], strict=True)):
        if on is not None:
            seen = Arrival(0.0, 0.0, y.queues[k], link.capacity)
            laws[k] = _added(laws[k], link.queue.on_tick(laws[k], seen), on)
            between = getattr(link.queue, str(link.queue.period))
            clocks[k] = clocks[k] + jnp.where(on, between, 0.0)
    for i, (flows, on) in enumerate(zip(net.flows, parts[links : links + groups], strict=True)):
        if on is not None:
            s, signal = y.senders[i], heard(flows, past.heard[i])
            ack = Ack(1.0, 0.0, round_trip(now, flows, y.queues), known_load(flows, s, signal))
            change = flows.window.on_tick(s.law, ack)
            moved = on & (modes.windows[i] != WAITING)
            senders[i] = s._replace(law=_added(s.law, change, moved))
            windows[i] = jnp.where(moved & (windows[i] == HIGH), FREE, windows[i])
            due, between = clocks[links + i], flows.window.period(ack)
            assert between is not None
            clocks[links + i] = due + jnp.where(on, between, 0.0)
    for k, on in enumerate(parts[links + groups :]):
        if on is not None:
            times, rates = courses[k]
            due = clocks[links + groups + k]
            index = jnp.searchsorted(times, jnp.maximum(t, due), side="right")
            services[k] = jnp.where(on, rates[index], services[k])
            later = jnp.append(times, NEVER)[index]
            clocks[links + groups + k] = jnp.where(on, later, due)
    moved = State(tuple(senders), y.queues, tuple(laws), tuple(clocks), tuple(services))
    return moved, modes._replace(windows=tuple(windows))
