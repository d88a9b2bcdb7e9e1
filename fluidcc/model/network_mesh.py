"""Uniform steps for a network, from its delays and the memory of its queue laws."""

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc import ops
from fluidcc.arrays import jax
from fluidcc.dde.uniform import Uniform
from fluidcc.laws.law import Ack
from fluidcc.model.delays import PathDelays, ages_along, explicit_delays, looking_back
from fluidcc.model.fluid import as_fluid
from fluidcc.model.rates import start_sender
from fluidcc.ops import Num
from fluidcc.programs import flatten, leaves, map_tree
from fluidcc.scenario.network import Flows, Link, Network

Floats = NDArray[np.float64]

_STEPS_PER_DELAY = 32  # of the shortest round trip; see the orders measured in the tests
_STEPS_PER_MEMORY = 256  # at most, in the place of one step that suits the delays
_MOVED = 1e-3  # added to a queue law's memory, to see how fast a packet makes it forget
_PER_OCTAVE = 4  # lengths of steps that networks side by side share


class Reach(NamedTuple):
    """How far a network looks back [s]: the shortest delay but 0, the least round trip without
    queues, and the longest with full ones; the shortest memory of a queue law; and the times
    between the ticks of laws (T,), infinite if they depend on the state.
    """

    shortest: Num
    trip: Num
    full: Num
    memory: Num
    ticks: Num


def reach(net: Network) -> Reach:
    """How far a network of the fluid model looks back."""
    empty = tuple(0.0 for _ in net.links)
    delays = [explicit_delays(net, flows, empty) for flows in net.flows]
    ages = flatten(ages_along(net, delays)._replace(paces=()))
    waits = [
        sum(net.links[k].buffer / least_rate(net.links[k]) for k in flows.route)
        for flows in net.flows
    ]
    backs = [_lookback(flows, path) for flows, path in zip(net.flows, delays, strict=True)]
    ways = zip(net.flows, waits, backs, strict=True)
    longest = [ops.greatest(f.rtt) + wait + ops.greatest(back) for f, wait, back in ways]
    return Reach(
        ops.least(ops.where(ages > 0, ages, math.inf)),
        ops.least(ops.stack([ops.least(flows.rtt) for flows in net.flows])),
        ops.greatest(ops.stack(longest)),
        ops.least(ops.stack([_memory(link) for link in net.links])),
        _ticks(net),
    )


def _lookback(flows: Flows, delays: PathDelays) -> Num:
    """How long before an acknowledged packet the smallest windows look back [s]."""
    least = start_sender(flows, flows.window.min_window + 0.0 * flows.rtt)
    return looking_back(flows, least, delays).lookback


def _memory(link: Link) -> Num:
    """How long the averages of a queue law remember arrivals at the link's rate [s]: the time of a
    packet over the share that it makes them forget; for ever if there are none.
    """
    time = 1.0 / link.capacity
    packet = link.arrival(1.0, time, 0.0)
    still = link.queue.start(0.0)
    moved = map_tree(lambda v: v + _MOVED, still)
    changes = (leaves(link.queue.move_memory(x, packet)) for x in (still, moved))
    shares = [abs(b - a) / _MOVED for a, b in zip(*changes, strict=True)]
    most = functools.reduce(ops.maximum, shares, 0.0)
    return time / ops.maximum(most, 1e-300)


_reaches = jax.jit(jax.vmap(reach))


def least_rate(link: Link) -> Num:
    """The least rate at which a link serves its flows [packet/s]."""
    return link.capacity if link.voice is None else link.voice.left(link.capacity, math.inf)


def _ticks(net: Network) -> Num:
    """Times between the ticks of laws (T,) [s], infinite if they depend on the state."""
    found = [between for link in net.links if (between := link.queue.period()) is not None]
    for flows in net.flows:
        long, short = (flows.window.period(Ack(1.0, 0.0, rtt)) for rtt in (2.0, 1.0))
        if long is not None and short is not None:
            found.append(ops.where(abs(long - short) > 0, math.inf, long))
    return ops.stack([1.0 * between for between in found]) if found else np.zeros(0)


def periods(net: Network) -> list[float]:
    """Times between the ticks of a network's laws [s] that do not depend on its state."""
    return np.unique([t for t in np.asarray(_ticks(net)) if t < math.inf]).tolist()


def _aligned(steps: Floats, ticks: Floats) -> Floats:
    """Steps (P,) of at most `steps` that divide the times between ticks (P, T), if some shorter
    ones do.
    """
    if not ticks.size:
        return steps
    shortest = np.min(ticks, axis=1)
    least = np.ceil(np.where(np.isinf(shortest), 1.0, shortest) / steps - 1e-9)
    shares = ticks / np.where(np.isinf(shortest), 1.0, shortest)[:, None]
    kinds, kind = np.unique(np.column_stack([least, shares]), axis=0, return_inverse=True)
    parts = np.array([_parts(int(row[0]), row[1:][np.isfinite(row[1:])]) for row in kinds])
    return np.where(np.isinf(shortest), steps, shortest / parts[kind.ravel()])


def _parts(least: int, shares: Floats) -> int:
    """Steps in the shortest time between ticks, at least so many: as few as divide the others too,
    which are these multiples of it, if less than four times as many do.
    """
    for parts in range(least, 4 * least + 1):
        if np.all(np.abs(shares * parts - np.round(shares * parts)) < 1e-9 * shares * parts):
            return parts
    return least


def _longest(limits: Reach) -> Floats:
    """The longest steps (P,): a share of the delays, and at most the shortest memory, as the
    Runge-Kutta method is stable up to 2.78 times that. Far shorter memories are ignored: the run
    would not end.
    """
    delays = np.minimum(limits.trip / _STEPS_PER_DELAY, 0.9 * limits.shortest)
    counts = limits.memory * _STEPS_PER_MEMORY > delays
    return np.where(counts, np.minimum(delays, limits.memory), delays)


def _meshes(limits: Reach, mesh: Uniform, *, shared: bool, rounded: bool) -> list[Any]:
    """Different meshes for networks that look so far back, numbers (P,), and the indices of those
    of each, see `shared_meshes`.
    """
    steps = np.full(np.shape(limits.trip), mesh.step or 0.0)
    if mesh.step is None:
        steps = _aligned(_longest(limits), limits.ticks)
        if rounded:
            free = ~np.any(np.isfinite(limits.ticks), axis=1)
            octaves = np.floor(_PER_OCTAVE * np.log2(steps)) / _PER_OCTAVE
            steps = np.where(free, 2.0**octaves, steps)
    # nodes that reach as far back as the network looks; as many as needed if no buffer limits that
    slots = (
        np.ceil(limits.full / steps) + 4 if mesh.slots is None else np.full_like(steps, mesh.slots)
    )
    if shared:
        slots = 2.0 ** np.ceil(np.log2(slots))
    kinds, kind, counts = np.unique(
        np.column_stack([steps, slots]), axis=0, return_inverse=True, return_counts=True
    )
    order = np.argsort(kind.ravel(), kind="stable")
    return [
        (dataclasses.replace(mesh, step=step, slots=None if math.isinf(most) else int(most)), own)
        for (step, most), own in zip(
            kinds.tolist(), np.split(order, np.cumsum(counts)[:-1]), strict=True
        )
    ]


def uniform_mesh(net: Network, mesh: Uniform | None = None) -> Uniform:
    """Uniform steps for a network: `mesh` if it has a step, else a small share of the round trips,
    below the shortest delay.

    Ticks of the laws fall on its nodes if one step can divide all their periods.
    """
    mesh = Uniform() if mesh is None else mesh
    if mesh.step is not None:
        return mesh
    limits = map_tree(lambda v: np.asarray(v, float)[None], reach(as_fluid(net)))
    return _meshes(limits, mesh, shared=False, rounded=False)[0][0]


def shared_meshes(stacked: Network, mesh: Uniform) -> list[tuple[Uniform, NDArray[np.int64]]]:
    """Meshes for many networks of one structure, `stacked`, and the indices of those of each.

    Each step is that of the network alone, rounded down to one of four in an octave, and does not
    depend on the other networks. It is not rounded if ticks fall on nodes, or if the flows are
    self-clocked, so that jumps come back after a round trip.
    """
    limits = jax.tree.map(np.asarray, _reaches(stacked))
    return _meshes(limits, mesh, shared=True, rounded=stacked.rates != "self_clocked")
