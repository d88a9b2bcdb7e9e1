"""Sources of files and their sessions as records of the engine."""

import math
from collections.abc import Callable

import numpy as np

from fluidcc.packets.compile import SourceHooks, source_hooks
from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.streams import stream_key, uniform
from fluidcc.packets.layout.plan import Plan, SourcePlan
from fluidcc.packets.layout.routes import Fields, Routes


class Transfers:
    """Records of the sources of a plan, and of all sessions that they may have at a time.

    `histograms` has one row of transfer times for each source; `times` is when entities first
    act [s].
    """

    def __init__(
        self, plan: Plan, routes: Routes, seed: int, keep: Callable[[np.ndarray], int]
    ) -> None:
        self._plan, self._routes, self._seed = plan, routes, seed
        self.sources: list[Fields] = []
        self.sessions: list[Fields] = []
        self.times: dict[int, float] = {}
        self.histograms = np.zeros((len(plan.sources), r.HISTOGRAM_SIZE), np.int32)
        for k, source in enumerate(plan.sources):
            self._source(k, source, keep)

    def _start(self, group: int, purpose: str, index: int) -> float:
        """When flow (`start`) or open source (`source`) number `index` begins [s]."""
        low, high = map(float, self._plan.groups[group].flows.start)
        return low + (high - low) * uniform(stream_key(self._seed, purpose, index))

    def _source(self, k: int, source: SourcePlan, keep: Callable[[np.ndarray], int]) -> None:
        law = self._plan.groups[source.group].flows.traffic
        hooks: SourceHooks = source_hooks(law)
        first = len(self.sessions)
        fields = hooks._asdict() | {
            "block": keep(hooks.block),
            "histogram": keep(self.histograms[k]),
            "open": law.open,
            "waits": 1,
            "group": source.group,
            "free": source.flows[0],
            "free_session": first,
            "request": math.ceil(float(law.request())),
            "most": math.ceil(min(law.in_all(), r.ENDLESS)),
            "key": stream_key(self._seed, "arrivals", k),
            "session_key": stream_key(self._seed, "sessions", k),
        }
        self.sources.append(fields)
        if law.open:
            self.times[self._routes.sources[k]] = self._start(source.group, "source", k)
        for j in range(source.sessions):
            self._session(k, source, -1 if law.open else source.flows[j])
        self.sessions[-1]["next_free"] = -1

    def _session(self, k: int, source: SourcePlan, flow: int) -> None:
        index = len(self.sessions)
        entity = self._routes.sessions[index]
        fields: Fields = {"source": k, "entity": entity, "flow": flow, "next_free": index + 1}
        if flow >= 0:
            fields["key"] = stream_key(self._seed, "session", flow)
            pages = float(self._plan.groups[source.group].flows.traffic.pages(0.5))
            fields["pages"] = math.ceil(min(pages, r.ENDLESS))
            self.times[entity] = self._start(source.group, "start", flow)
        self.sessions.append(fields)

    def placed(self, flows: np.ndarray) -> np.ndarray:
        """The records of all flows, with what those that sources use are told."""
        for source in self._plan.sources:
            own = list(source.flows)
            flows["next_free"][own] = [*source.flows[1:], -1]
            flows["session"][own] = np.arange(len(own))
        for k, flow in enumerate(self._plan.flows):
            if flow.source >= 0 or flow.answers >= 0:
                flows["request"][k], flows["answers"][k] = flow.request, flow.answers
                flows["send_at"][k] = r.NEVER
        return flows
