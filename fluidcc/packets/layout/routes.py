"""Entities, wires and ports of a network, and the routes through them.

Elision: a link that cannot drop, and whose queue nobody reads, needs no events of its own. An
access link becomes the entrance of its wire, the receiver is folded into the departure from the
last port, and flows whose ACKs travel equally long share a wire. The results are the same.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from fluidcc.laws.law import MarkingPoint
from fluidcc.packets.engine import records as r
from fluidcc.packets.layout.plan import FlowPlan, Plan

Fields = dict[str, Any]
"""Values of a record, by field."""


class Routes:
    """Entities by kind and index, wires and ports as fields, and where packets go.

    `table[flow, hop]` is the entity that a packet of the flow comes to next, RECEIVER at the end of
    its path; after it the path of ACKs through links, then the paths of source quenches.
    `quenches[flow, hop]` is where in this row the path of a quench begins. `returns` and `tails`
    are, per flow, the wire that leaves the receiver and the delay [s] folded into its entrance.
    """

    def __init__(self, plan: Plan, elide: bool, link_port: Callable[["Routes", int], int]) -> None:
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
        self._links = [link_port(self, k) for k in range(len(links))]
        access = self._access()
        self._ahead = [self.wire(delay) for delay in self._delays]
        self._shared: dict[Any, int] = {}
        self.returns: list[int] = []
        self.tails: list[float] = []
        rows = [self._row(k, flow, access[k]) for k, flow in enumerate(plan.flows)]
        rows += [([self._links[traffic.link], r.LINK_END], {}) for traffic in plan.background]
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

    def port(self, **fields: Any) -> int:
        """Add a port; its entity."""
        self.ports.append({"limit": r.NEVER, "unit": 1.0, "capacity": 1.0, "link": -1} | fields)
        return self.add(r.PORT, len(self.ports) - 1)

    def _share(self, key: Any, make: Callable[[], int]) -> int:
        """The entity that flows share under elision, by `key`; a new one each time for None."""
        if key is None:
            return make()
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

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
            path += [self._links[link], self._ahead[link]]
        if self._elide:
            path.pop()
        self.tails.append(self._delays[flow.route[-1]] if self._elide else 0.0)
        path.append(r.RECEIVER)
        if not self._source_quench[flow.group]:
            hops = []
        if flow.back:
            return path, self._back(flow, path, hops)
        starts = {}
        for hop, delay in zip(hops, flow.quench_delays, strict=False):
            starts[hop] = len(path)
            path.append(
                self._share(("quench", delay), lambda d=delay: self.wire(d, kind=r.QUENCH_WIRE))
            )
        self.returns.append(self._past_routers(k, flow))
        return path, starts

    def _back(self, flow: FlowPlan, path: list[int], hops: list[int]) -> dict[int, int]:
        """Extend a row by the paths back through links: of ACKs, and of quenches at each hop."""
        self.returns.append(self.wire(flow.return_delay))
        for j, link in enumerate(flow.back):
            path += [self._links[link], self._to_router(flow, j)]
        path.append(self._home(flow.home_delay, r.ACK_WIRE))
        starts = {}
        for j, hop in enumerate(hops):
            starts[hop] = len(path)
            left = flow.back[max(len(flow.back) - j, 0) :]
            if left:
                path.append(self.wire(0.0))
            for link in left:
                path += [self._links[link], self._ahead[link]]
            path.append(self._home(flow.home_delay, r.QUENCH_WIRE))
        return starts

    def _to_router(self, flow: FlowPlan, j: int) -> int:
        """Wire after link `j` of the path back, with the router at its end if that rewrites ACKs.

        It is the router in whose queue the data of the flow wait, the last of the route first.
        """
        link = flow.back[j]
        if not self._rewrites[flow.group]:
            return self._ahead[link]
        port = self.kinds[self._links[flow.route[len(flow.route) - 1 - j]]][1]
        if not self.ports[port]["signal"]:
            return self._ahead[link]
        delay = self._delays[link]

        def make() -> int:  # after the router, the path goes on by the table
            return self.wire(delay, kind=r.ROUTER, port=port, onward=self.wire(0.0))

        return self._share(("router", link, port), make)

    def _home(self, delay: float, kind: int) -> int:
        """Wire from the last link of the path back to the sender."""
        key = ("home", kind, delay) if self._elide else None
        return self._share(key, lambda: self.wire(delay, kind=kind))

    def _past_routers(self, k: int, flow: FlowPlan) -> int:
        """First wire from the receiver to the sender, past the routers that rewrite ACKs."""
        passed = self._rewriters(flow)
        key = (flow.return_delay, self.tails[k], passed) if self._elide else None

        def make() -> int:
            distances = [0.0, *(distance for distance, _ in passed), flow.return_delay]
            first = self.wire(distances[1], kind=r.ACK_WIRE)
            for j, (distance, port) in enumerate(passed):
                delay = distances[j + 2] - distance
                first = self.wire(delay, kind=r.ROUTER, port=port, onward=first)
            return first

        return self._share(key, make)

    def _rewriters(self, flow: FlowPlan) -> tuple[tuple[float, int], ...]:
        """Distances from the sender [s] and ports of the routers that rewrite a flow's ACKs."""
        if not self._rewrites[flow.group]:
            return ()
        indices = [self.kinds[self._links[link]][1] for link in flow.route]
        pairs = zip(flow.quench_delays, indices, strict=True)
        return tuple((delay, port) for delay, port in pairs if self.ports[port]["signal"])
