"""Arrays of one run: entities, routes, pool and rings, with addresses that only they know."""

import dataclasses
import functools
import weakref
from collections.abc import Iterator

import numpy as np

from fluidcc.laws.law import AbstractQueueLaw, Arrival, MarkingPoint
from fluidcc.memory import Share, TooLittleMemory
from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.calendar import tournament
from fluidcc.packets.engine.streams import block_key, stream_key, uniform
from fluidcc.packets.hooks import law_hooks, numbers_of, part_addresses, window_memory
from fluidcc.packets.initial import Initial, put_acks
from fluidcc.packets.plan import UNBOUNDED, GroupPlan, PacketError, Plan, smallest_window
from fluidcc.packets.routes import Background, Fields, Routes, Timed, Transfers
from fluidcc.programs import leaves
from fluidcc.scenario.network import repeated

_MOST_BYTES = 4e9  # of the pool, rings and scoreboards of a run
_MOST_LISTED = 1 << 17  # transfers of a run, 3 MB
_SHORTEST_TICK = 1e-9  # s, on average
_OF_TRACES = {"traced", "trace_size", "traced_window", "traced_ssthresh"}

TOO_MANY_IN_FLIGHT = (
    "more packets are under way than any estimate allows; give the links a finite buffer or the "
    "window law a max_window"
)


_MOMENTS = {
    MarkingPoint.ENTRY: r.ENTRY,
    MarkingPoint.DEPARTURE: r.DEPARTURE,
    MarkingPoint.TRANSMITTED: r.TRANSMITTED,
    MarkingPoint.REVERSE: r.REVERSE,
}


def averages(law: AbstractQueueLaw) -> bool:
    """Whether a queue law decides by an average of its own that packets move, not time."""
    state, pause = law.start(1.0), Arrival(count=0.0, elapsed=1.0, queue=0.0, capacity=1.0)
    pairs = zip(leaves(state), leaves(law.on_arrival(state, pause)), strict=True)
    after = law.state_of(*(value + change for value, change in pairs))
    return float(law.average(state, 0.0)) == float(law.average(after, 0.0)) != 0.0


def _records(dtype: np.dtype, values: list[Fields]) -> np.ndarray:
    """Records of the given fields; others are 0."""
    array = np.zeros(len(values), dtype)
    for name in {name: None for value in values for name in value}:
        given = [k for k, value in enumerate(values) if name in value]
        array[name][given] = np.array([values[k][name] for k in given], dtype[name])
    return array


_memory = Share()  # of all runs of this process


def _hold(arrays: list[np.ndarray], array: np.ndarray) -> int:
    """Keep an array; its address."""
    arrays.append(array)
    return array.ctypes.data


class Simulation:
    """Owner of the arrays of one run; the run must hold on to it while the engine works.

    `pool` is the least number of packets that it has room for. `close()`, after which it must not
    run, leaves its memory to others; so does its end.
    """

    def __init__(
        self, plan: Plan, seed: int, elide: bool, scale: int = 1, initial: Initial | None = None,
        pool: int = 0,
    ) -> None:  # fmt: skip
        self.plan, self.seed, self.elide, self.scale = plan, seed, elide, scale
        self._initial = initial
        self._keep: list[np.ndarray] = []
        self._array = functools.partial(_hold, self._keep)  # a bound method would be a cycle
        self.queue_laws: list[AbstractQueueLaw] = []  # that packets meet, link by link; if a link
        # has several queues, that of the first
        self.law_states: list[np.ndarray] = []  # of these
        self.delays = np.zeros((len(plan.net.links), r.DELAY_SIZE), np.uint32)  # in queues
        self.rtts = np.zeros((len(plan.groups), r.DELAY_SIZE), np.uint32)
        self._routes = Routes(plan, elide, self._link_port)
        groups = [self._group(i, g) for i, g in enumerate(plan.groups)]
        for g in initial.memories if initial else ():
            groups[g]["syn"] = False  # they are connected
        for group, histogram in zip(groups, self.rtts, strict=True):
            group["rtts"] = self._array(histogram)
        self._transfers = Transfers(plan, self._routes, seed, self._array)
        flows = self._flows()
        self._transfers.assign(flows)
        self._background = Background(plan, self._routes, groups, seed, scale)
        self._timed = Timed(plan, self._routes, self._array)
        self.groups = _records(r.GROUP_RECORD, groups + self._background.groups)
        self.flows = np.concatenate([flows, _records(r.FLOW_RECORD, self._background.flows)])
        self.ports = _records(r.PORT_RECORD, self._routes.ports)  # those of links first
        self.transmitters = self._transmitters()
        kinds = self._routes.kinds
        self.voice_ports = {k: kinds[entity][1] for k, entity in self._routes.voices.items()}
        self.arrivals = np.zeros((len(plan.net.links), len(self.groups)), np.int64)
        self.histograms = self._transfers.histograms
        sizes = self._sizes(scale, pool)
        try:
            self.state = self._simulation(*sizes)
        except MemoryError:
            self.close()  # others wait, and the error's traceback keeps this
            raise
        self._keep.append(self.state)

    def of_links(self, values: np.ndarray, *, mean: bool = False) -> np.ndarray:
        """Values of the links from those of ports: over several queues of a link the sum, or the
        mean.
        """
        found = np.array(values[: len(self.plan.net.links)], float)
        for k, own in self._routes.queues.items():
            found[k] = values[own].mean() if mean else values[own].sum()
        return found

    def queues(self, link: int) -> list[int]:
        """Numbers of the ports of a link, one for each of its queues."""
        return self._routes.queues.get(link, [link])

    @property
    def address(self) -> int:
        """Address of the record of all parts; valid as long as this object lives."""
        return self.state.ctypes.data

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return sum(array.nbytes for array in self._keep)

    def _moving(self) -> Iterator[np.ndarray]:
        """All numbers of the run but addresses, the parameters of laws, and those of a trace."""
        for array in (*self._keep, self.transmitters):
            if fields := array.dtype.names:
                own = r.ADDRESSES[array.dtype] | _OF_TRACES
                yield from (array[name] for name in fields if name not in own)
            else:
                yield array

    def dump(self) -> bytes:
        """The state of the run."""
        return b"".join(part.tobytes() for part in self._moving())

    def restore(self, state: bytes) -> None:
        """Take over a state that `dump` gave for a run of the same network, seed and sizes.

        Raises PacketError if it has another size.
        """
        if len(state) != (size := sum(part.nbytes for part in self._moving())):
            raise PacketError(f"initial: expected states of {size} B, got {len(state)} B")
        place = 0
        for part in self._moving():
            part[...] = np.frombuffer(state, part.dtype, part.size, place).reshape(part.shape)
            place += part.nbytes
        started = self.flows["started"] == 1  # a trace begins with their next change
        for name in ("window", "ssthresh"):
            self.flows[f"traced_{name}"][started] = self.flows[name][started]

    def _transmitters(self) -> np.ndarray:
        """Records of the transmitters of several ports, which get their addresses."""
        out = np.zeros(len(self._routes.shared), r.TRANSMITTER_RECORD)
        for number, chain in enumerate(self._routes.shared):
            out["first"][number] = chain[0]
            self.ports["transmitter"][chain] = out[number:].ctypes.data
            self.ports["sibling"][chain] = [*chain[1:], -1]
        return out

    def home(self, flow: int) -> int:
        """The entity of the last wire to the sender of a flow."""
        entity = self._routes.returns[flow]
        if self.plan.flows[flow].back:
            row = self._routes.table[flow]
            entity = next(int(e) for e in row if e >= 0 and self._kind(e) == r.ACK_WIRE)
        while self._kind(entity) == r.ROUTER:
            entity = self._routes.wires[self.entities["index"][entity]]["onward"]
        return entity

    def _kind(self, entity: int) -> int:
        return int(self.entities["kind"][entity])

    def forget_transfers(self) -> None:
        """Begin the list of transfers anew."""
        self.state["ended_count"], self.state["ended_step"], self._ended[:] = 0, 1, 0

    def transfers(self) -> tuple[np.ndarray, int]:
        """The list of transfers in order of their ends, and that it has every so many."""
        count, step = int(self.state["ended_count"][0]), int(self.state["ended_step"][0])
        return self._ended[: -(-count // step)].copy(), step

    def _link_port(self, routes: Routes, k: int, j: int) -> int:
        """The port of queue `j` of link `k`, with its timer; its entity."""
        link = self.plan.net.links[k]
        unit, capacity = float(link.packet_size), float(link.capacity)
        law = link.queue.in_packets(float(link.buffer))
        state = numbers_of(law.start(float(link.initial.average)))
        if self._initial is not None:
            state = self._initial.queue_laws[k]
        hooks = law_hooks("queue", law, state=state)
        hooks.block[r.Q_BUFFER] = float(link.buffer)
        hooks.block[r.Q_KEY] = block_key(self.seed, "queue_rules", k + (j << 32))
        ticks = hooks.addresses["tick"] != 0
        by_bytes = law.by_bytes
        shortest, longest = map(float, law.tick_interval()) if ticks else (0.0, 0.0)
        if ticks and (shortest + longest) / 2 < _SHORTEST_TICK:
            raise PacketError(
                f"links.{self.plan.net.link_names[k]}.queue: expected at least {_SHORTEST_TICK:g} "
                f"s between ticks, got {(shortest + longest) / 2:g}"
            )
        if j == 0:
            self.queue_laws.append(law)
            self.law_states.append(hooks.block[r.Q_STATE : r.Q_STATE + len(law.states)])
        limit = min(float(link.buffer) * (unit if by_bytes else 1.0), r.NEVER)
        port = len(routes.ports)
        timer = routes.add(r.QUEUE_TIMER, port) if ticks else 0
        late = any(group.marking_point is MarkingPoint.TRANSMITTED for group in self.plan.groups)
        return routes.port(
            rate=capacity * unit,
            capacity=capacity,
            unit=unit,
            limit=limit,
            by_bytes=by_bytes,
            counts_system=law.counts_service,
            **hooks.addresses,
            block=self._array(hooks.block),
            delays=self._array(self.delays[k]),
            averages=averages(law),
            period=shortest,
            spread=longest - shortest,
            timer=timer,
            waits=law.waits,
            written=bool(law.written),
            reads=bool(law.reads),
            link=k,
            marks_transmitted=late,
            key=stream_key(self.seed, "queue", k + (j << 32)),
            random_loss=link.random_loss or 0.0,
            loss_key=stream_key(self.seed, "loss", k + (j << 32)),
        )

    # senders

    def _group(self, i: int, group: GroupPlan) -> Fields:
        flows, options = group.flows, group.options
        law = flows.window
        memory = window_memory(law)
        hooks = {
            "law": law_hooks("window", law, state=memory),
            "reaction": law_hooks("reaction", flows.reaction),
            "marking": law_hooks("marking", flows.marking, law),
            "advertise": law_hooks("advertise", flows.feedback),
            "decode": law_hooks("estimator", flows.estimator),
        }
        hooks["law"].block[r.W_KEY] = block_key(self.seed, "window_rules", i)
        fields = dataclasses.asdict(options)
        fields = {name: fields[name] for name in r.GROUP_RECORD.names or () if name in fields}
        for kind, own in hooks.items():
            fields |= own.addresses | {f"{kind}_block": self._array(own.block)}
        recovery = law.recovery if options.recovery == "law" else options.recovery
        numbers = r.NUMBERS if flows.feedback.written else 0
        return fields | {
            "memory": self._array(np.array([*memory, *[0.0] * numbers], dtype=np.float64)),
            "states": len(memory),
            "written": numbers,
            "receiver_window": min(group.max_window, 1e9),
            "rate_based": law.rate_based,
            "measures": bool(law.measured),
            "samples_rate": not {"acked", "rate", "lost"}.isdisjoint(law.reads),
            "memory_time": min(law.memory, r.NEVER),
            "floor": smallest_window(flows),
            "size": group.size,
            "newreno": recovery == "newreno",
            "sack": recovery == "sack",
            "recovery_burst": options.recovery_burst if recovery == "newreno" else 0,
            "ecn_echo": group.ecn_echo,
            "ecn_capable": group.ecn_capable,
            "source_quench": flows.feedback.quench,
            "moment": _MOMENTS[group.marking_point],
            "echo_until_cwr": repeated(flows, options.echo),
            "loads": flows.feedback.loads,
            "marks_tell_load": law.marks_tell_load and flows.estimator.remembers,
        }

    def _flows(self) -> np.ndarray:
        """Records of the flows, as they are before anything has been sent."""
        flows = self.plan.flows
        out = np.zeros(len(flows), r.FLOW_RECORD)
        out["group"] = [flow.group for flow in flows]
        out["rtt"] = out["propagation"] = [flow.rtt for flow in flows]
        out["least_rtt"] = out["least_before"] = r.NEVER
        out["forward"] = [flow.forward for flow in flows]
        out["tail_delay"], out["return_wire"] = self._routes.tails, self._routes.returns
        out["reacted_at"], out["deadline"], out["tick_at"] = -r.NEVER, r.NEVER, r.NEVER
        numbers = ("request_flow", "data_flow", "session", "highest_sent", "acked")
        for name in (*numbers, "timed_sequence"):
            out[name] = -1
        out["backoff"], out["limit"] = 1, r.UNLIMITED
        for g in range(len(self.plan.groups)):
            self._begin(g, out, np.flatnonzero(out["group"] == g))
        # numbers of the flows of open sources do not change if others are added
        slots = np.array([flow.slot for flow in flows])
        for kind, index in ("", np.arange(len(flows))), ("slot_", slots):
            own = np.flatnonzero((slots >= 0) == bool(kind))
            keys = {
                purpose: stream_key(self.seed, f"{kind}{purpose}", index[own].astype(np.uint64))
                for purpose in ("boot", "send", "hash")
            }
            out["clock_phase"][own] *= uniform(keys["boot"])
            out["key"][own], out["hash_key"][own] = keys["send"], keys["hash"]
        return out

    def _begin(self, g: int, out: np.ndarray, own: np.ndarray) -> None:
        """Initial records of the flows of a group, of numbers `own`."""
        group, options = self.plan.groups[g], self.plan.groups[g].options
        memory = np.array(window_memory(group.flows.window), dtype=np.float64)
        memory = np.tile(memory, (len(own), 1))
        if self._initial is not None and g in self._initial.memories:
            memory = self._initial.memories[g].copy()
        if group.flows.feedback.written:
            memory = np.pad(memory, ((0, 0), (0, r.NUMBERS)))
        starts = np.array([self.plan.flows[k].start[:2] for k in own], float).reshape(-1, 2)
        low, high = starts.T
        draw = uniform(stream_key(self.seed, "start", own.astype(np.uint64)))
        begin: Fields = {
            "window": 1.0 if options.syn else options.initial_window,
            "initial_window": options.initial_window,
            "advertised": min(group.largest_flight, 1e9),
            "memory": self._array(memory) + memory.strides[0] * np.arange(len(own)),
            "ssthresh": float(int(min(options.initial_ssthresh, group.max_window, 1e9))),
            "send_at": low + (high - low) * draw,  # the start, until it has happened
            "rto": options.initial_rto,
            "rttvar": int(4 * options.initial_rto / options.tick) << 2,
            "clock_phase": options.tick,  # times a number of its own
            "ecn_on": not options.syn and group.ecn_echo,
        }
        if self._initial is not None and g in self._initial.memories:
            windows = self._initial.windows[own]
            begin |= {
                "window": windows,
                "initial_window": windows,
                "ssthresh": np.maximum(np.floor(windows), 2.0),
                "send_at": 0.0,
                "rtt": self._initial.rtts[own],
                "ecn_on": group.ecn_echo,
            }
        for name, value in begin.items():
            out[name][own] = value

    # pool and calendar

    def _sizes(self, scale: int, least: int) -> tuple[int, int]:
        """Packets in the pool, `least` or more, and slots of a reassembly ring, a power of two.

        Raises PacketError if they would take too much memory.
        """
        links = self.plan.net.links
        longest = max(flow.rtt for flow in self.plan.flows)
        path = sum(min(float(k.buffer), UNBOUNDED) + float(k.capacity) * longest for k in links)
        windows = [self.plan.groups[f.group].largest_flight for f in self.plan.flows]
        opened = [s for s in self.plan.sources if self.plan.groups[s.group].flows.traffic.open]
        slots = sum(len(source.flows) for source in opened)  # most of them unused
        pool = min(sum(windows), 2 * path * scale) + 64 * len(windows) - 60 * slots
        pool += self._background.packets
        if self._initial is not None:
            pool += np.nansum(self._initial.windows)
        pool = max(pool, least)
        ring = 2 ** np.ceil(np.log2(min(max(windows), 2 * path * scale) + 64))
        sack = sum(int(self.groups[f.group]["sack"]) for f in self.plan.flows)
        blocks = (sack > 0) * r.BLOCKS * r.BLOCK_RECORD.itemsize
        numbers = 8 * r.ROOM * self._numbered()
        needed = pool * (r.PACKET_RECORD.itemsize + blocks + numbers)
        needed += ring * (len(windows) + sack * r.INDEX_RECORD.itemsize)
        if not needed <= _MOST_BYTES:
            raise PacketError(
                f"packets in flight would take {needed:.2g} bytes: {TOO_MANY_IN_FLIGHT}"
            )
        try:
            _memory.take(needed, f"seed {self.seed}: packets in flight", TOO_MANY_IN_FLIGHT)
        except TooLittleMemory as error:
            raise PacketError(str(error)) from None
        self.close = weakref.finalize(self, _memory.give, needed)
        return int(pool), int(ring)

    def _numbered(self) -> bool:
        """Whether packets have room for the numbers that links write."""
        return bool(self.ports["written"].any() or self.groups["written"].any())

    def _simulation(self, pool: int, ring: int) -> np.ndarray:
        """The record that holds the addresses and numbers of all others."""
        routes, background, flows = self._routes, self._background, len(self.plan.flows)
        count = len(routes.kinds)
        times = np.full(count, r.NEVER)
        times[:flows] = self.flows["send_at"][:flows]
        for entity, time in (background.times | self._transfers.times | self._timed.times).items():
            times[entity] = time
        for port in self.ports[self.ports["tick"] != 0]:
            times[port["timer"]] = port["period"] + port["spread"] / 2
        self.entities = np.zeros(count, r.ENTITY_RECORD)
        self.entities["kind"], self.entities["index"] = np.array(routes.kinds).T
        self.packets = np.zeros(pool, r.PACKET_RECORD)
        self.packets["next"] = np.arange(1, pool + 1, dtype=np.int32)
        self.packets["next"][-1] = -1
        self.wires = _records(r.WIRE_RECORD, routes.wires)
        self.receivers = np.zeros(flows, r.RECEIVER_RECORD)
        for flow, entity in self._timed.ack_timers.items():
            self.receivers["ack_timer"][flow] = entity
        self.voices = _records(r.VOICE_RECORD, background.voices)
        self.sources = _records(r.SOURCE_RECORD, self._transfers.sources)
        self.sessions = _records(r.SESSION_RECORD, self._transfers.sessions)
        taken = 0 if self._initial is None else put_acks(self, self._initial, times)
        entries, winners = tournament(times)
        self._ended = np.zeros(_MOST_LISTED if self.plan.sources else 0, r.TRANSFER_RECORD)
        sack = [k for k, f in enumerate(self.plan.flows) if self.groups[f.group]["sack"]]
        for k in sack:
            self.flows[k]["scoreboard"] = self._array(np.zeros(ring, r.INDEX_RECORD))
        blocks = r.BLOCKS if sack else 0
        arrays = {
            "packets": self.packets,
            "samples": np.zeros(pool * self.groups["samples_rate"].any(), r.SAMPLE_RECORD),
            "entities": self.entities,
            "entries": entries,
            "winners": winners,
            "wires": self.wires,
            "ports": self.ports,
            "groups": self.groups,
            "flows": self.flows,
            "initial_flows": self.flows.copy(),
            "receivers": self.receivers,
            "routes": routes.table,
            "quenches": routes.quenches,
            "ring": np.zeros(flows * ring, np.uint8),
            "numbers": np.zeros(self._numbered() * pool * r.ROOM),
            "ack_blocks": np.zeros(blocks * pool, r.BLOCK_RECORD),
            "receiver_blocks": np.zeros(blocks * flows, r.BLOCK_RECORD),
            "crosses": _records(r.CROSS_RECORD, background.crosses),
            "voices": self.voices,
            "calls": background.calls,
            "sources": self.sources,
            "sessions": self.sessions,
            "schedules": _records(r.SCHEDULE_RECORD, self._timed.schedules),
            "ended": self._ended,
        }
        if len(self.groups) > 1:  # else they are those of the links
            arrays["arrivals"] = self.arrivals
        numbers = {
            "leaves": len(entries),
            "flow_count": flows,
            "voice_count": len(self.voices),
            "port_count": len(self.ports),
            "ring_mask": ring - 1,
            "hops": routes.hops,
            "finished_flow": -1,
            "free": taken,
            "ended_size": len(self._ended),
            "ended_step": 1,
            "group_count": len(self.groups),
        }
        numbers |= {name: self._array(array) for name, array in arrays.items()}
        numbers |= part_addresses(self.entities["kind"].tolist(), self.groups, self.ports)
        return _records(r.SIMULATION_RECORD, [numbers])
