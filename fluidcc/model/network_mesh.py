"""Uniform steps for a network, from its delays and the memory of its queue laws."""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.arrays import jax
from fluidcc.dde.integrate import power_of_two
from fluidcc.dde.uniform import Uniform
from fluidcc.laws.law import Ack
from fluidcc.model.delays import PathDelays, ages_along, explicit_delays, looking_back
from fluidcc.model.fluid import as_fluid
from fluidcc.model.rates import start_sender
from fluidcc.ops import Num
from fluidcc.programs import flatten, leaves, map_tree
from fluidcc.scenario.network import Flows, Link, Network

_STEPS_PER_DELAY = 32  # of the shortest round trip; see the orders measured in the tests
_STEPS_PER_MEMORY = 256  # at most, in the place of one step that suits the delays
_MOVED = 1e-3  # added to a queue law's memory, to see how fast a packet makes it forget
_PER_OCTAVE = 4  # lengths of steps that networks side by side share


class Reach(NamedTuple):
    """How far a network looks back [s]: the shortest delay but 0, the least round trip without
    queues, and the longest with full ones; and the shortest memory of a queue law.
    """

    shortest: Num
    trip: Num
    full: Num
    memory: Num


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


def periods(net: Network) -> list[float]:
    """Times between the ticks of a network's laws [s] that do not depend on its state."""
    found = (link.queue.period() for link in net.links)
    times = [float(between) for between in found if between is not None]
    for flows in net.flows:
        long, short = (flows.window.period(Ack(1.0, 0.0, rtt)) for rtt in (2.0, 1.0))
        if long is not None and short is not None and float(long) == float(short):
            times.append(float(long))
    return sorted(set(times))


def _aligned(step: float, ticks: list[float]) -> float:
    """A step of at most `step` that divides the times between ticks, if some shorter one does."""
    if not ticks:
        return step
    least = math.ceil(ticks[0] / step - 1e-9)
    for parts in range(least, 4 * least + 1):
        shares = [tick * parts / ticks[0] for tick in ticks]
        if all(abs(share - round(share)) < 1e-9 * share for share in shares):
            return ticks[0] / parts
    return ticks[0] / least


def _longest(limits: Reach) -> float:
    """The longest step: a share of the delays, and at most the shortest memory, as the Runge-Kutta
    method is stable up to 2.78 times that. Far shorter memories are ignored: the run would not end.
    """
    delays = min(float(limits.trip) / _STEPS_PER_DELAY, 0.9 * float(limits.shortest))
    memory = float(limits.memory)
    return min(delays, memory) if memory * _STEPS_PER_MEMORY > delays else delays


def _slots(limits: Reach, step: float) -> int | None:
    """Nodes that reach as far back as the network looks; None if no buffer limits that."""
    full = float(limits.full)
    return None if math.isinf(full) else math.ceil(full / step) + 4


def uniform_mesh(net: Network, mesh: Uniform | None = None) -> Uniform:
    """Uniform steps for a network: `mesh` if it has a step, else a small share of the round trips,
    below the shortest delay.

    Ticks of the laws fall on its nodes if one step can divide all their periods.
    """
    mesh = Uniform() if mesh is None else mesh
    if mesh.step is not None:
        return mesh
    net = as_fluid(net)
    limits = reach(net)
    step = _aligned(_longest(limits), periods(net))
    return dataclasses.replace(mesh, step=step, slots=mesh.slots or _slots(limits, step))


def shared_meshes(nets: Sequence[Network], stacked: Network, mesh: Uniform) -> list[Uniform]:
    """A mesh for each of many networks, of one structure and `stacked`: many share one.

    Each step is that of the network alone, rounded down to one of four in an octave, and does not
    depend on the other networks. It is not rounded if ticks fall on nodes, or if the flows are
    self-clocked, so that jumps come back after a round trip.
    """
    limits = jax.tree.map(np.asarray, _reaches(stacked))
    out = []
    for k, net in enumerate(nets):
        network_limits, step = Reach(*(value[k] for value in limits)), mesh.step
        if step is None:
            ticks = periods(net)
            step = _aligned(_longest(network_limits), ticks)
            if not ticks and net.rates != "self_clocked":
                step = 2.0 ** (math.floor(_PER_OCTAVE * math.log2(step)) / _PER_OCTAVE)
        slots = mesh.slots or _slots(network_limits, float(step))
        slots = None if slots is None else power_of_two(slots)
        out.append(dataclasses.replace(mesh, step=float(step), slots=slots))
    return out
