"""Runs that begin at an equilibrium of the fluid model: with its windows, the memories of its laws,
and an ACK clock that fills the links and their queues within a round trip.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.streams import stream_key, uniform
from fluidcc.packets.hooks import numbers_of
from fluidcc.packets.plan import PacketError, Plan
from fluidcc.programs import leaves
from fluidcc.scenario.network import Network

if TYPE_CHECKING:
    from fluidcc.packets.build import Simulation


class Initial(NamedTuple):
    """Numbers of an equilibrium; those of flows are by their numbers, NaN if they begin as always,
    as files do.
    """

    queue_laws: tuple[tuple[float, ...], ...]  # state of each
    windows: np.ndarray  # packet
    rtts: np.ndarray  # s
    marks: np.ndarray  # probability that an acknowledgement brings one
    memories: dict[int, np.ndarray]  # by group: of each flow's window law, without the window


def find_initial(plan: Plan, find: Callable[[Network], Any]) -> Initial:
    """Numbers of the equilibrium that `find` gives for the network of a plan.

    Raises PacketError if there is none, or no run can begin there.
    """
    net, point = plan.net, find(plan.net)
    if not hasattr(point, "op"):
        given = type(point).__name__
        raise PacketError(f"initial: expected fluidcc.equilibrium, got a function with a {given}")
    windows, rtts, marks = np.full((3, len(plan.flows)), np.nan)
    memories = {}
    for k, (name, flows) in enumerate(zip(net.flow_names, net.flows, strict=True)):
        if flows.feedback.loads:
            raise PacketError(
                f"initial: flows.{name} know load factors by their packets alone, and cannot "
                "begin at an equilibrium"
            )
        if flows.traffic.starts:
            continue
        found = point.flows[name]
        if not np.all(np.isfinite(found.window)):
            raise PacketError(f"initial: no equilibrium to begin at: {point.message}")
        own = np.concatenate(plan.members(k))
        each = np.shape(found.window)
        counts = np.broadcast_to(np.asarray(flows.n, float), each).astype(int)
        windows[own] = np.repeat(np.maximum(found.window, 1.0), counts)
        rtts[own] = np.repeat(found.rtt, counts)
        marks[own] = np.repeat(np.broadcast_to(point.received(k).mark, each), counts)
        memories[k] = np.repeat(
            _memory(plan.groups[k].flows.window, point.op.senders[k].law, each), counts, axis=0
        )
    states = []
    for link, law, found in zip(net.links, point.op.laws, point.links.values(), strict=True):
        begun = numbers_of(link.queue.in_packets(float(link.buffer)).start(float(found.average)))
        state = numbers_of(law)
        states.append(state if len(state) == len(begun) else begun)
    return Initial(tuple(states), windows, rtts, marks, memories)


def _memory(law: Any, state: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Memory of a window law, without the window, by class (m, states)."""
    found = [np.asarray(leaf, float) for leaf in leaves(state)]
    begun = numbers_of(law.start(1.0))[1:]
    if len(found) == 1 + len(begun) and all(np.shape(leaf) == shape for leaf in found):
        return np.stack(found, axis=-1)[:, 1:]
    return np.tile(np.array(begun, float), (*shape, 1))  # of a population


def put_acks(simulation: "Simulation", initial: Initial, times: np.ndarray) -> int:
    """Put a window of ACKs for each flow on the last wire to its sender, evenly over the shortest
    round trip without queues of those that share a wire, before which no other ACK can arrive. If
    receivers echo marks, they bring those of the equilibrium: else windows grow for a round trip.

    Returns how many packets are taken; writes into `times` when the wires first deliver one [s].
    """
    flows, plans = simulation.flows, simulation.plan.flows
    own = np.flatnonzero(np.isfinite(initial.windows))
    streams = stream_key(simulation.seed, "start", own.astype(np.uint64))
    phases = uniform(streams)
    wires = np.array([simulation.home(int(k)) for k in own], int)
    shortest: dict[Any, float] = {}  # of all that may share a wire, with elision or without
    keys = [(bool(p.back), p.home_delay if p.back else p.return_delay) for p in plans]
    for k in own:
        shortest[keys[k]] = min(shortest.get(keys[k], np.inf), plans[k].rtt)
    taken = 0
    for entity in np.unique(wires):
        sharing = own[wires == entity]
        counts = initial.windows[sharing].astype(int)
        flows["next_sequence"][sharing], flows["highest_sent"][sharing] = counts, counts - 1
        simulation.receivers["expected"][sharing] = counts
        flows["sent"][sharing] = flows["received"][sharing] = counts
        flow = np.repeat(sharing, counts)
        sequence = np.concatenate([np.arange(count) for count in counts])
        when = (sequence + np.repeat(phases[wires == entity], counts)) * shortest[keys[sharing[0]]]
        when /= np.repeat(counts, counts)
        draws = uniform(np.repeat(streams[wires == entity], counts), sequence.astype(np.uint64) + 2)
        echo = simulation.groups["ecn_echo"][flows["group"][flow]] == 1
        flags = r.ACK | r.ECE * (echo & (draws < initial.marks[flow]))
        order = np.argsort(when, kind="stable")
        flow, sequence, when = flow[order], sequence[order], when[order]
        wire = simulation.wires[simulation.entities["index"][entity]]
        rows = simulation.packets[taken : taken + len(when)]
        rows["arrives"], rows["since"] = when, when - wire["delay"]
        rows["flow"], rows["sequence"], rows["identity"] = flow, sequence, sequence
        rows["sent"], rows["delay"] = when - initial.rtts[flow], initial.rtts[flow] - wire["delay"]
        rows["flags"] = flags[order]
        rows["size"] = simulation.groups["ack_size"][flows["group"][flow]]
        wire["head"], wire["tail"], wire["count"] = taken, taken + len(when) - 1, len(when)
        times[entity] = when[0]
        taken += len(when)
        rows["next"][-1] = -1
    return taken
