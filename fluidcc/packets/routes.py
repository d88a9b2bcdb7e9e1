"""Entities, wires and ports of a network and the routes through them; and its traffic: sources of
files, cross traffic and voice calls.

Elision: a link that cannot drop, and whose queue nobody reads, needs no events of its own. An
access link becomes the entrance of its wire, the receiver is folded into the departure from the
last port, and flows whose ACKs travel equally long share a wire. The results are the same.

Packets of cross traffic and calls enter one link and are gone at its end. They are marked with
the probability of the link itself, which changes nothing, and dropped if a queue is full.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fluidcc.laws.law import MarkingPoint
from fluidcc.laws.voice import Voice, present_calls
from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.streams import stream_key, uniform
from fluidcc.packets.hooks import law_hooks
from fluidcc.packets.plan import UNBOUNDED, BackgroundPlan, FlowPlan, Plan, SourcePlan
from fluidcc.scenario.network import Link

Fields = dict[str, Any]
"""Values of a record, by field."""


class Routes:
    """Entities by kind and index, wires and ports as fields, and where packets go.

    `table[flow, hop]` is the entity that a packet of the flow comes to next, RECEIVER at the end of
    its path; after it the path of ACKs through links, then the paths of source quenches.
    `link_port(routes, k, j)` adds the port of queue j of link k, all of a fair link but the first
    after those of links; `queues` has the ports of links with several.
    `quenches[flow, hop]` is where in this row the path of a quench begins. `returns` and `tails`
    are, per flow, the wire that leaves the receiver and the delay [s] folded into its entrance.
    """

    def __init__(
        self, plan: Plan, elide: bool, link_port: Callable[["Routes", int, int], int]
    ) -> None:
        self._plan, self._elide = plan, elide
        feedback = [group.flows.feedback for group in plan.groups]
        self._source_quench = [each.quench for each in feedback]
        self._rewrites = [each.marking_point is MarkingPoint.REVERSE for each in feedback]
        self._delays = [float(link.delay) for link in plan.net.links]
        self.kinds: list[tuple[int, int]] = [(r.SENDER, k) for k in range(len(plan.flows))]
        self.sources = [self.add(r.SOURCE, k) for k in range(len(plan.sources))]
        sessions = sum(source.sessions for source in plan.sources)
        self.sessions = [self.add(r.SESSION, k) for k in range(sessions)]
        self.wires: list[Fields] = []
        self.ports: list[Fields] = []
        links = plan.net.links
        self.shared: list[list[int]] = []  # ports of one transmitter
        self._links = [link_port(self, k, 0) for k in range(len(links))]
        self.queues: dict[int, list[int]] = {}
        self._own: dict[tuple[int, int], int] = {}  # entities of queues by link and flow
        self._share_links()
        self._share_fairly(link_port)
        self.voices = {b.link: self._voice_port(b) for b in plan.background if b.has_own_class}
        access = self._access()
        self._ahead = [self.wire(delay) for delay in self._delays]
        self.of_link = [[self.kinds[wire][1]] for wire in self._ahead]  # wires with its delay
        self._made: dict[Any, int] = {}
        self.returns: list[int] = []
        self.tails: list[float] = []
        rows = [self._row(k, flow, access[k]) for k, flow in enumerate(plan.flows)]
        for traffic in plan.background:
            own = self.voices if traffic.has_own_class else self._links
            rows.append(([own[traffic.link], r.LINK_END], {}))
        self.hops = 1 + max(len(row) for row, _ in rows)
        self.table = np.full((len(rows), self.hops), r.RECEIVER, np.int32)
        self.quenches = np.full((len(rows), self.hops), r.RECEIVER, np.int32)
        for k, (row, starts) in enumerate(rows):
            self.table[k, : len(row)] = row
            for hop, start in starts.items():
                self.quenches[k, hop] = start

    def add(self, kind: int, index: int) -> int:
        """Add an entity; its number."""
        self.kinds.append((kind, index))
        return len(self.kinds) - 1

    def wire(self, delay: float, kind: int = r.WIRE, **fields: Any) -> int:
        """Add a wire of `delay` seconds; its entity."""
        self.wires.append({"delay": delay} | fields)
        return self.add(kind, len(self.wires) - 1)

    def link(self, k: int) -> int:
        """The entity of the port of link `k`."""
        return self._links[k]

    def port(self, **fields: Any) -> int:
        """Add a port; its entity."""
        entity = self.add(r.PORT, len(self.ports))
        usual = {"limit": r.NEVER, "unit": 1.0, "capacity": 1.0}
        usual |= dict.fromkeys(("link", "sibling", "coupled", "ahead"), -1) | {"shares": 1}
        self.ports.append(usual | {"entity": entity} | fields)
        return entity

    def _share_links(self) -> None:
        """Let the queues beside others share their transmitters, and hear their marks."""
        for k, link in enumerate(self._plan.net.links):
            if link.beside is None or link.fair:
                continue
            own, other = (self.kinds[self._links[j]][1] for j in (k, link.beside))
            if link.shift is not None:
                self.ports[other]["shift"] = float(link.shift)
            else:
                assert link.weight is not None
                self.ports[own]["weight"] = weight = float(link.weight)
                self.ports[other]["weight"] = 1 - weight
            self.ports[other]["ahead"] = own
            if self.ports[other]["signal"]:
                self.ports[own]["coupled"] = other
            self.shared.append([own, other])

    def _share_fairly(self, link_port: Callable[["Routes", int, int], int]) -> None:
        """Give each flow that crosses a fair link a port of its own, all of one transmitter."""
        net, ports = self._plan.net, self.ports
        fair = [k for k, link in enumerate(net.links) if link.fair]
        for first in (k for k in fair if net.links[k].beside is None):
            together = []
            for k in net.served_with(first):
                crossing = self._plan.crossing(k)
                more = range(1, len(crossing))
                entities = [self._links[k], *(link_port(self, k, j) for j in more)]
                self._own |= {(k, flow): e for flow, e in zip(crossing, entities, strict=False)}
                self.queues[k] = [self.kinds[entity][1] for entity in entities]
                together += self.queues[k]
            for port in together:
                ports[port] |= {
                    "weight": 1.0, "shares": len(together),
                    "capacity": ports[port]["capacity"] / len(together),
                }  # fmt: skip
            if len(together) > 1:
                self.shared.append(together)

    def _queue(self, k: int, flow: int) -> int:
        """The entity of the port at which flow `flow` waits for link `k`."""
        return self._own.get((k, flow), self._links[k])

    def _voice_port(self, traffic: BackgroundPlan) -> int:
        """The port of calls with a queue of their own, beside that of their link; its entity."""
        link, voice = self._plan.net.links[traffic.link], traffic.voice
        assert voice is not None
        share, rate = float(voice.share), float(link.capacity) * float(link.packet_size)
        most = min(float(voice.drain) * share * rate, r.NEVER) // traffic.size
        number = self.kinds[self._links[traffic.link]][1]
        port = self.ports[number]
        port["weight"] = 1 - share
        self.shared.append([len(self.ports), number])
        return self.port(
            rate=rate, capacity=port["capacity"], limit=max(most, 1) * traffic.size, by_bytes=True,
            weight=share, link=traffic.link, random_loss=port["random_loss"],
            loss_key=port["loss_key"] ^ 1,
        )  # fmt: skip

    def _share(self, key: Any, make: Callable[[], int]) -> int:
        """The entity that flows share under elision, by `key`; a new one each time for None."""
        if key is None:
            return make()
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def _access(self) -> list[list[int]]:
        """Entities between each source and its first link."""
        flows = self._plan.flows
        out: list[list[int]] = [[] for _ in flows]
        if not self._elide:
            for k, flow in enumerate(flows):
                if flow.access_rate > 0:
                    out[k].append(self.port(rate=flow.access_rate))
        for k, flow in enumerate(flows):
            if flow.access_delay > 0 or (self._elide and flow.access_rate > 0):
                rate = flow.access_rate if self._elide else 0.0
                out[k].append(self.wire(flow.access_delay, rate=rate))
        return out

    def _row(self, k: int, flow: FlowPlan, access: list[int]) -> tuple[list[int], dict[int, int]]:
        """Row of the table for flow `k`, and where the paths of its quenches begin, by hop."""
        path, hops = list(access), []
        for link in flow.route:
            hops.append(len(path))
            path += [self._queue(link, k), self._ahead[link]]
        folded = self._elide and not self._needs_arrivals(flow)
        if folded:
            path.pop()
        self.tails.append(self._delays[flow.route[-1]] if folded else 0.0)
        path.append(r.RECEIVER)
        if not self._source_quench[flow.group]:
            hops = []
        if flow.back:
            return path, self._back(k, flow, path, hops)
        starts = {}
        for hop, delay in zip(hops, flow.quench_delays, strict=False):
            starts[hop] = len(path)
            path.append(
                self._share(("quench", delay), lambda d=delay: self.wire(d, kind=r.QUENCH_WIRE))
            )
        self.returns.append(self._past_routers(k, flow))
        return path, starts

    def _needs_arrivals(self, flow: FlowPlan) -> bool:
        """Whether arrivals at the receiver are events: of ACKs that wait, or delays that change."""
        last = self._plan.net.links[flow.route[-1]]
        changes = any(change.delay is not None for change in last.schedule)
        return changes or self._plan.groups[flow.group].options.delayed_acks

    def _back(self, k: int, flow: FlowPlan, path: list[int], hops: list[int]) -> dict[int, int]:
        """Extend a row by the paths back through links: of ACKs, and of quenches at each hop."""
        self.returns.append(self.wire(flow.return_delay))
        for j, link in enumerate(flow.back):
            path += [self._queue(link, k), self._to_router(k, flow, j)]
        path.append(self._home(flow.home_delay, r.ACK_WIRE))
        starts = {}
        for j, hop in enumerate(hops):
            starts[hop] = len(path)
            left = flow.back[max(len(flow.back) - j, 0) :]
            if left:
                path.append(self.wire(0.0))
            for link in left:
                path += [self._queue(link, k), self._ahead[link]]
            path.append(self._home(flow.home_delay, r.QUENCH_WIRE))
        return starts

    def _to_router(self, k: int, flow: FlowPlan, j: int) -> int:
        """Wire after link `j` of the path back, with the router at its end if that rewrites ACKs.

        It is the router in whose queue the data of the flow wait, the last of the route first.
        """
        link = flow.back[j]
        if not self._rewrites[flow.group]:
            return self._ahead[link]
        port = self.kinds[self._queue(flow.route[len(flow.route) - 1 - j], k)][1]
        if not self.ports[port]["signal"]:
            return self._ahead[link]
        delay = self._delays[link]

        def make() -> int:  # after the router, the path goes on by the table
            onward = self.wire(0.0)
            self.of_link[link].append(len(self.wires))
            return self.wire(delay, kind=r.ROUTER, port=port, onward=onward)

        return self._share(("router", link, port), make)

    def _home(self, delay: float, kind: int) -> int:
        """Wire from the last link of the path back to the sender."""
        key = ("home", kind, delay) if self._elide else None
        return self._share(key, lambda: self.wire(delay, kind=kind))

    def _past_routers(self, k: int, flow: FlowPlan) -> int:
        """First wire from the receiver to the sender, past the routers that rewrite ACKs."""
        passed = self._rewriters(k, flow)
        key = (flow.return_delay, self.tails[k], passed) if self._elide else None

        def make() -> int:
            distances = [0.0, *(distance for distance, _ in passed), flow.return_delay]
            first = self.wire(distances[1], kind=r.ACK_WIRE)
            for j, (distance, port) in enumerate(passed):
                delay = distances[j + 2] - distance
                first = self.wire(delay, kind=r.ROUTER, port=port, onward=first)
            return first

        return self._share(key, make)

    def _rewriters(self, k: int, flow: FlowPlan) -> tuple[tuple[float, int], ...]:
        """Distances from the sender [s] and ports of the routers that rewrite a flow's ACKs."""
        if not self._rewrites[flow.group]:
            return ()
        indices = [self.kinds[self._queue(link, k)][1] for link in flow.route]
        pairs = zip(flow.quench_delays, indices, strict=True)
        return tuple((delay, port) for delay, port in pairs if self.ports[port]["signal"])


_SIGNALS = {"moment": r.ENTRY, "choice_waiting": 2, "choice_arms": True}
_DEVIATIONS, _SPARE = 6, 16  # calls above the mean that are provided for at first


class Transfers:
    """Records of the sources of a plan, and of all sessions that they may have at a time.

    `histograms` has one row of transfer times for each group; `times` is when entities first
    act [s].
    """

    def __init__(
        self, plan: Plan, routes: Routes, seed: int, keep: Callable[[np.ndarray], int]
    ) -> None:
        self._plan, self._routes, self._seed, self._keep = plan, routes, seed, keep
        self.sources: list[Fields] = []
        self.sessions: list[Fields] = []
        self.times: dict[int, float] = {}
        self.histograms = np.zeros((len(plan.groups), r.DELAY_SIZE), np.uint32)
        for k, source in enumerate(plan.sources):
            self._source(k, source)

    def _start(self, source: SourcePlan, j: int, purpose: str, index: int) -> float:
        """When flow (`start`) or open source (`source`) number `index` begins [s]; `j` is a place
        among the flows of the source.
        """
        start = self._plan.flows[source.flows[j]].start
        low, high = float(start.low), float(start.high)
        return low + (high - low) * uniform(stream_key(self._seed, purpose, index))

    def _source(self, k: int, source: SourcePlan) -> None:
        law = self._plan.groups[source.group].flows.traffic
        hooks = law_hooks("source", law)
        first = len(self.sessions)
        fields: Fields = hooks.addresses | {
            "block": self._keep(hooks.block),
            "histogram": self._keep(self.histograms[source.group]),
            "open": law.open,
            "waits": 1,
            "group": source.group,
            "free": source.flows[0],
            "free_session": first,
            "request_size": math.ceil(float(law.request())),
            "most": math.ceil(min(law.in_all(), r.UNLIMITED)),
            "key": stream_key(self._seed, "arrivals", k),
            "session_key": stream_key(self._seed, "sessions", k),
        }
        self.sources.append(fields)
        if law.open:
            self.times[self._routes.sources[k]] = self._start(source, 0, "source", k)
        for j in range(source.sessions):
            self._session(k, source, j)
        self.sessions[-1]["next_free"] = -1

    def _session(self, k: int, source: SourcePlan, j: int) -> None:
        """Session number `j` of a source, of a flow of its own unless the source is open."""
        index, flow = len(self.sessions), -1 if self.sources[k]["open"] else source.flows[j]
        entity = self._routes.sessions[index]
        fields: Fields = {"source": k, "entity": entity, "flow": flow, "next_free": index + 1}
        if flow >= 0:
            fields["key"] = stream_key(self._seed, "session", flow)
            pages = float(self._plan.groups[source.group].flows.traffic.pages(0.5))
            fields["pages"] = math.ceil(min(pages, r.UNLIMITED))
            self.times[entity] = self._start(source, j, "start", flow)
        self.sessions.append(fields)

    def assign(self, flows: np.ndarray) -> None:
        """Write into the records of all flows which of them sources use, and for what."""
        for source in self._plan.sources:
            own = list(source.flows)
            flows["next_free"][own] = [*source.flows[1:], -1]
            flows["session"][own] = np.arange(len(own))
        for k, flow in enumerate(self._plan.flows):
            if flow.source >= 0 or flow.data_flow >= 0:
                flows["request_flow"][k], flows["data_flow"][k] = flow.request_flow, flow.data_flow
                flows["send_at"][k] = r.NEVER


def _gap(rate: float) -> float:
    return 1 / rate if rate > 0 else r.NEVER


class Background:
    """Records of the traffic without congestion control.

    `groups` and `flows` follow those of the senders. `times` says when entities first act [s], and
    `packets` how many of its packets may be under way, as an estimate.
    """

    def __init__(
        self, plan: Plan, routes: Routes, groups: list[Fields], seed: int, scale: int
    ) -> None:
        self._plan, self._routes, self._seed, self._scale = plan, routes, seed, scale
        self.groups: list[Fields] = []
        self.flows: list[Fields] = []
        self.crosses: list[Fields] = []
        self.voices: list[Fields] = []
        self.calls = np.zeros(0, r.CALL_RECORD)
        self.times: dict[int, float] = {}
        self.packets = 0
        for traffic in plan.background:
            like = _SIGNALS if traffic.group is None else groups[traffic.group]
            self._flow(traffic, {name: like[name] for name in _SIGNALS})
            if traffic.voice is None:
                self._cross(traffic)
                continue
            self._voice(traffic, traffic.voice)

    def _flow(self, traffic: BackgroundPlan, signals: Fields) -> None:
        """The flow that stands for all packets of some traffic, and its group."""
        link = self._plan.net.links[traffic.link]
        self.groups.append(signals | {"size": traffic.size, "mark_below": r.NEVER})
        group = len(self._plan.groups) + len(self.groups) - 1
        self.flows.append({"group": group, "tail_delay": float(link.delay)})
        self._number = len(self._plan.flows) + len(self.flows) - 1
        room = float(link.buffer)
        if traffic.has_own_class:
            port = self._routes.kinds[self._routes.voices[traffic.link]][1]
            room = self._routes.ports[port]["limit"] / traffic.size
        self.packets += 64 + int(self._scale * min(room, UNBOUNDED))

    def _cross(self, traffic: BackgroundPlan) -> None:
        link = self._plan.net.links[traffic.link]
        key, gap = stream_key(self._seed, "cross", traffic.link), _gap(float(link.cross))
        entity = self._routes.add(r.CROSS, len(self.crosses))
        self.times[entity] = -gap * math.log(1 - uniform(key))
        self.crosses.append(
            {
                "gap": gap,
                "key": key,
                "draws": 1,
                "flow": self._number,
                "size": traffic.size,
                "exponential": link.cross_sizes == "exponential",
            }
        )

    def _voice(self, traffic: BackgroundPlan, voice: Voice) -> None:
        """The calls of a link: those present at 0 begin there, others after exponential gaps."""
        offered, holding = float(voice.offered()), float(voice.holding)
        active, talk, most = float(voice.active), float(voice.talk), float(voice.most)
        key = stream_key(self._seed, "calls", traffic.link)
        present = present_calls(uniform(key, 1), offered, most)
        records = self._scale * (offered + _DEVIATIONS * math.sqrt(offered) + _SPARE)
        records = int(max(min(records, most), present, 1))
        number, first = len(self.voices), len(self.calls)
        gap = _gap(offered / holding)
        arrivals = self._routes.add(r.CALLS, number)
        self.times[arrivals] = -gap * math.log(1 - uniform(key, 2))
        entities = [self._routes.add(r.CALL, first + k) for k in range(records)]
        self.times |= dict.fromkeys(entities[:present], 0.0)
        calls = np.zeros(records, r.CALL_RECORD)
        calls["voice"], calls["entity"] = number, entities
        calls["talking"][:present] = r.NOT_BEGUN
        calls["next"] = np.arange(first + 1, first + records + 1)
        calls["next"][-1] = -1
        self.calls = np.concatenate([self.calls, calls])
        self.voices.append(
            {
                "gap": gap,
                "holding": holding,
                "talk": talk if active < 1 else r.NEVER,
                "pause": float(voice.silence()),
                "active": active,
                "frame": float(voice.frame),
                "draws": 2,
                "key": key,
                "call_key": stream_key(self._seed, "call", traffic.link),
                "flow": self._number,
                "size": traffic.size,
                "flags": r.ECT,
                "most": int(min(most, 2**31 - 1)),
                "present": present,
                "free": first + present if present < records else -1,
            }
        )


class Timed:
    """Entities that act at times of their own: ends of flows, timers of delayed ACKs by flow, and
    changes of links. `times` says when they first act [s]; timers do not by themselves.
    """

    def __init__(self, plan: Plan, routes: Routes, keep: Callable[[np.ndarray], int]) -> None:
        self.times: dict[int, float] = {}
        self.ack_timers: dict[int, int] = {}
        self.schedules: list[Fields] = []
        for k, flow in enumerate(plan.flows):
            if flow.stop < math.inf:
                self.times[routes.add(r.STOP, k)] = flow.stop
            if plan.groups[flow.group].options.delayed_acks:
                self.ack_timers[k] = routes.add(r.ACK_TIMER, k)
        for k, link in enumerate(plan.net.links):
            if not link.schedule:
                continue
            changes = _changes(link)
            wires = np.array([(wire,) for wire in routes.of_link[k]], r.INDEX_RECORD)
            self.times[routes.add(r.CHANGES, len(self.schedules))] = link.schedule[0].at
            self.schedules.append(
                {
                    "changes": keep(changes),
                    "wires": keep(wires),
                    "wire_count": len(wires),
                    "count": len(changes),
                    "entity": routes.link(k),
                }
            )


def _changes(link: Link) -> np.ndarray:
    """Records of the changes of a link."""
    changes = np.full(len(link.schedule), r.NEVER, r.CHANGE_RECORD)
    for row, change in zip(changes, link.schedule, strict=True):
        row["time"] = change.at
        if change.capacity is not None:
            row["capacity"] = change.capacity
            row["rate"] = change.capacity * float(link.packet_size)
        if change.delay is not None:
            row["delay"] = change.delay
    return changes
