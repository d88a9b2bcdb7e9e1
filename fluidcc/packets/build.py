"""Arrays of one run: entities, routes, pool and rings, with addresses that only they know.

Elision: a link that cannot drop and of which nothing is asked needs no events of its own. An
access link becomes the entrance of its wire, the receiver is folded into the departure from the
last port, and flows whose ACKs travel equally long share a wire. The results are the same.
"""

from typing import Any

import numpy as np

from fluidcc.laws.law import AbstractQueueLaw, Moment
from fluidcc.packets import records as r
from fluidcc.packets.compile import (
    marking_hook,
    permit_hook,
    queue_hooks,
    reaction_hooks,
    window_hooks,
)
from fluidcc.packets.plan import FlowPlan, GroupPlan, Plan
from fluidcc.packets.streams import stream_key, uniform

_UNBOUNDED = 1000  # packets assumed at first for a buffer without limit


_MOMENTS = {Moment.ENTRY: r.ENTRY, Moment.DEPARTURE: r.DEPARTURE, Moment.REVERSE: r.REVERSE}


def _averages(law: AbstractQueueLaw) -> bool:
    """Whether a queue law decides by an average of its own."""
    return float(law.average(law.start(1.0), 0.0)) != 0.0


class Simulation:
    """Owner of the arrays of one run; the run must hold on to it while the engine works."""

    def __init__(self, plan: Plan, seed: int, elide: bool, scale: int = 1) -> None:
        self.plan, self.seed, self.elide = plan, seed, elide
        self._keep: list[np.ndarray] = []
        self._kinds: list[tuple[int, int]] = [(r.SENDER, k) for k in range(len(plan.flows))]
        self._wires: list[dict[str, Any]] = []
        self._ports: list[dict[str, Any]] = []
        self._memories: list[tuple[float, ...]] = []  # of the groups' window laws
        self._route()
        self.groups = self._records(r.GROUP_RECORD, [self._group(g) for g in plan.groups])
        self.flows = self._records(r.FLOW_RECORD, [self._flow(k) for k in range(len(plan.flows))])
        self.ports = self._records(r.PORT_RECORD, self._ports)
        self.state = self._simulation(scale)
        self._keep.append(self.state)

    @property
    def address(self) -> int:
        """Where the engine finds everything; valid as long as this object lives."""
        return self.state.ctypes.data

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return sum(array.nbytes for array in self._keep)

    def _array(self, array: np.ndarray) -> int:
        self._keep.append(array)
        return array.ctypes.data

    def _records(self, dtype: np.dtype, values: list[dict[str, Any]]) -> np.ndarray:
        array = np.zeros(len(values), dtype)
        for k, value in enumerate(values):
            for name, number in value.items():
                array[k][name] = number
        self._keep.append(array)
        return array

    # entities and routes

    def _add(self, kind: int, index: int) -> int:
        self._kinds.append((kind, index))
        return len(self._kinds) - 1

    def _wire(self, delay: float, kind: int = r.WIRE, **fields: Any) -> int:
        self._wires.append({"delay": delay} | fields)
        return self._add(kind, len(self._wires) - 1)

    def _port(self, **fields: Any) -> int:
        base = {"limit": r.NEVER, "unit": 1.0, "capacity": 1.0}
        self._ports.append(base | fields)
        return self._add(r.PORT, len(self._ports) - 1)

    def _route(self) -> None:
        """Entities by kind, in an order that elision does not change."""
        flows, links = self.plan.flows, self.plan.net.links
        shared = self.elide
        ports = [self._link_port(k) for k in range(len(links))]
        self.link_ports = list(range(len(links)))
        access: list[list[int]] = [[] for _ in flows]
        if not shared:
            for k, flow in enumerate(flows):
                if flow.access_rate > 0:
                    access[k].append(self._port(rate=flow.access_rate))
        for k, flow in enumerate(flows):
            if flow.access_delay > 0 or (shared and flow.access_rate > 0):
                rate = flow.access_rate if shared else 0.0
                access[k].append(self._wire(flow.access_delay, rate=rate))
        wires = [self._wire(float(link.delay)) for link in links]
        self._hops = 2 + max(len(f.route) * 2 + len(a) for f, a in zip(flows, access, strict=True))
        routes = np.full((len(flows), self._hops), -1, np.int32)
        quenches = np.full((len(flows), self._hops), -1, np.int32)
        returns: dict[Any, int] = {}
        backs: dict[float, int] = {}
        self._return_wires, self._tails = [], []
        for k, flow in enumerate(flows):
            way = list(access[k])
            for link, delay in zip(flow.route, flow.quench_delays, strict=True):
                if self.plan.groups[flow.group].flows.feedback.quench:
                    if delay not in backs:
                        backs[delay] = self._wire(delay, kind=r.QUENCH)
                    quenches[k, len(way)] = backs[delay]
                way += [ports[link], wires[link]]
            tail = float(links[flow.route[-1]].delay) if shared else 0.0
            way = way[:-1] if shared else way
            routes[k, : len(way)] = way
            passed = self._passed(flow, ports)
            key = (flow.return_delay, tail, passed) if shared else k
            if key not in returns:
                returns[key] = self._way_back(flow.return_delay, passed)
            self._return_wires.append(returns[key])
            self._tails.append(tail)
        self._routes, self._quenches = routes, quenches

    def _passed(self, flow: FlowPlan, ports: list[int]) -> tuple[tuple[float, int], ...]:
        """Distances from the sender [s] and ports of the routers that judge a flow's ACKs."""
        if self.plan.groups[flow.group].moment is not Moment.REVERSE:
            return ()
        indices = [self._kinds[ports[link]][1] for link in flow.route]
        ways = zip(flow.quench_delays, indices, strict=True)
        return tuple((delay, port) for delay, port in ways if self._ports[port]["say"])

    def _way_back(self, delay: float, passed: tuple[tuple[float, int], ...]) -> int:
        """Wires from the receiver to the sender past these routers; the first one."""
        distances = [0.0, *(distance for distance, _ in passed), delay]
        first = self._wire(distances[1], kind=r.RETURN)
        for k, (distance, port) in enumerate(passed):
            way = distances[k + 2] - distance
            first = self._wire(way, kind=r.ROUTER, port=port, onward=first)
        return first

    def _link_port(self, k: int) -> int:
        link = self.plan.net.links[k]
        unit, capacity = float(link.packet_size), float(link.capacity)
        hooks = queue_hooks(link.queue, float(link.initial.average))
        by_bytes = bool(getattr(link.queue, "bytes", False))
        shortest, longest = map(float, link.queue.spacing()) if hooks.tick else (0.0, 0.0)
        limit = min(float(link.buffer) * (unit if by_bytes else 1.0), r.NEVER)
        port = len(self._ports)
        timer = self._add(r.TIMER, port) if hooks.tick else 0
        return self._port(
            rate=capacity * unit,
            capacity=capacity,
            unit=unit,
            limit=limit,
            by_bytes=by_bytes,
            counts_system=getattr(link.queue, "counts", "waiting") == "system",
            update=hooks.update,
            arrive=hooks.arrive,
            say=hooks.say,
            tick=hooks.tick,
            block=self._array(hooks.block),
            averages=_averages(link.queue),
            period=shortest,
            spread=longest - shortest,
            timer=timer,
            waits=link.queue.waits,
            key=stream_key(self.seed, "queue", k),
        )

    # senders

    def _group(self, group: GroupPlan) -> dict[str, Any]:
        law, options = group.flows.window, group.options
        window, reaction = window_hooks(law), reaction_hooks(group.flows.reaction)
        self._memories.append(window.memory)
        marking, marking_block = marking_hook(group.flows.marking, law)
        permit, permit_block = permit_hook(group.flows.feedback)
        by_law = reaction.per_window and not window.counts_marks
        sticky = options.echo == "sticky" or (options.echo == "law" and by_law)
        recovery = law.recovery if options.recovery == "law" else options.recovery
        same = ("tick", "min_rto", "max_rto", "overhead", "mark_below", "syn_size", "syn",
                "dup_acks", "limited_transmit", "one_fast_retransmit", "integer_windows",
                "partial_deflation", "partial_timer_once", "grow_on_echo", "choice_waiting",
                "choice_arms")  # fmt: skip
        return {name: getattr(options, name) for name in same} | {
            "receiver_window": min(group.max_window, 1e9),
            # a law that reacts to every mark has no slow start to lift a window below its floor
            "floor": float(law.min_window) if reaction.each_mark or law.min_window > 1 else 0.0,
            "size": group.size,
            "newreno": recovery == "newreno",
            "echoes": group.echoes,
            "markable": group.markable,
            "quenched": group.flows.feedback.quench,
            "moment": _MOMENTS[group.moment],
            "each_mark": reaction.each_mark,
            "sticky": sticky,
            "on_ack": window.on_ack,
            "on_mark": window.on_mark,
            "on_loss": window.on_loss,
            "observe": window.observe,
            "states": len(window.memory),
            "law_block": self._array(window.block),
            "ready": reaction.ready,
            "growing": reaction.growing,
            "reaction_block": self._array(reaction.block),
            "marking": marking,
            "marking_block": self._array(marking_block),
            "permit": permit,
            "permit_block": self._array(permit_block),
        }

    def _flow(self, k: int) -> dict[str, Any]:
        flow = self.plan.flows[k]
        options = self.plan.groups[flow.group].options
        window = self.plan.groups[flow.group].max_window
        memory = np.array(self._memories[flow.group], dtype=np.float64)
        ssthresh = min(options.initial_ssthresh, window, 1e9)
        start = self.plan.groups[flow.group].flows.start
        low, high = float(start.low), float(start.high)
        draw = uniform(stream_key(self.seed, "start", k))
        return {
            "group": flow.group,
            "window": 1.0 if options.syn else options.initial_window,
            "initial_window": options.initial_window,
            "permitted": min(window, 1e9),
            "memory": self._array(memory),
            "threshold": float(int(ssthresh)),
            "deadline": r.NEVER,
            "send_at": low + (high - low) * draw,  # the start, until it has happened
            "rto": options.initial_rto,
            "deviation": int(4 * options.initial_rto / options.tick) << 2,
            "boot": uniform(stream_key(self.seed, "boot", k)) * options.tick,
            "reacted_at": -r.NEVER,
            "rtt": flow.rtt,
            "return_delay": flow.return_delay,
            "tail_delay": self._tails[k],
            "return_wire": self._return_wires[k],
            "key": stream_key(self.seed, "send", k),
            "highest_sent": -1,
            "acked": -1,
            "timed_sequence": -1,
            "backoff": 1,
            "capable": not options.syn and self.plan.groups[flow.group].echoes,
        }

    # pool and calendar

    def _sizes(self, scale: int) -> tuple[int, int]:
        """Packets in the pool, and slots of a reassembly ring (a power of two)."""
        links = self.plan.net.links
        longest = max(flow.rtt for flow in self.plan.flows)
        path = sum(min(float(k.buffer), _UNBOUNDED) + float(k.capacity) * longest for k in links)
        windows = [self.plan.groups[f.group].max_window for f in self.plan.flows]
        pool = min(sum(windows), 2 * path * scale) + 64 * len(windows)
        ring = min(max(windows), 2 * path * scale) + 64
        return int(pool), 1 << int(np.ceil(np.log2(ring)))

    def _simulation(self, scale: int) -> np.ndarray:
        count, (pool, ring) = len(self._kinds), self._sizes(scale)
        times = np.full(count, r.NEVER)
        times[: len(self.flows)] = self.flows["send_at"]
        for port in self.ports[self.ports["tick"] != 0]:
            times[port["timer"]] = port["period"] + port["spread"] / 2
        order = np.lexsort((np.arange(count), times))  # sorted, so it is a heap
        heap = np.zeros(count, r.NODE_RECORD)
        heap["time"], heap["entity"] = times[order], order
        self.entities = np.zeros(count, r.ENTITY_RECORD)
        self.entities["kind"], self.entities["index"] = np.array(self._kinds).T
        self.entities["slot"][order] = np.arange(count)
        self.packets = np.zeros(pool, r.PACKET_RECORD)
        self.packets["next"] = np.append(np.arange(1, pool), -1)
        self.wires = self._records(r.WIRE_RECORD, self._wires)
        self.receivers = np.zeros(len(self.flows), r.RECEIVER_RECORD)
        state = np.zeros(1, r.SIMULATION_RECORD)
        values = {
            "packets": self._array(self.packets),
            "entities": self._array(self.entities),
            "heap": self._array(heap),
            "wires": self.wires.ctypes.data,
            "ports": self.ports.ctypes.data,
            "groups": self.groups.ctypes.data,
            "flows": self.flows.ctypes.data,
            "receivers": self._array(self.receivers),
            "routes": self._array(self._routes),
            "quenches": self._array(self._quenches),
            "ring": self._array(np.zeros(len(self.flows) * ring, np.uint8)),
            "entity_count": count,
            "flow_count": len(self.flows),
            "port_count": len(self.ports),
            "ring_mask": ring - 1,
            "hops": self._hops,
        }
        for name, value in values.items():
            state[0][name] = value
        return state
