"""Traffic that no signal slows, as records of the engine: Poisson cross traffic and voice calls.

Its packets enter one link and are gone at its end. They are marked as those of the first flows
there are, which changes nothing, and dropped where a queue is full.
"""

import math

import numpy as np

from fluidcc.laws.voice import Voice, present_calls
from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.streams import stream_key, uniform
from fluidcc.packets.layout.plan import UNBOUNDED, BackgroundPlan, Plan
from fluidcc.packets.layout.routes import Fields, Routes

_SIGNALS = {"moment": r.ENTRY, "choice_waiting": 2, "choice_arms": True}
_DEVIATIONS, _SPARE = 6, 16  # calls above the mean that are provided for at first


def _gap(rate: float) -> float:
    return 1 / rate if rate > 0 else r.NEVER


class Background:
    """Records of the traffic beside the flows.

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
        self.classes = np.zeros(sum(b.beside for b in plan.background), r.CLASS_RECORD)
        classes = iter(range(len(self.classes)))
        for traffic in plan.background:
            like = _SIGNALS if traffic.group is None else groups[traffic.group]
            self._flow(traffic, {name: like[name] for name in _SIGNALS})
            if traffic.voice is None:
                self._cross(traffic)
                continue
            self._voice(traffic, traffic.voice)
            if traffic.beside:
                self._beside(next(classes), traffic, traffic.voice)

    def _flow(self, traffic: BackgroundPlan, signals: Fields) -> None:
        """The flow that stands for all packets of some traffic, and its group."""
        link = self._plan.net.links[traffic.link]
        self.groups.append(signals | {"size": traffic.size, "mark_below": r.NEVER})
        self.flows.append(
            {
                "group": len(self._plan.groups) + len(self.groups) - 1,
                "tail_delay": float(link.delay),
            }
        )
        self._number = len(self._plan.flows) + len(self.flows) - 1
        if not traffic.beside:
            self.packets += 64 + int(self._scale * min(float(link.buffer), UNBOUNDED))

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
        places = self._scale * (offered + _DEVIATIONS * math.sqrt(offered) + _SPARE)
        places = int(max(min(places, most), present, 1))
        number, first = len(self.voices), len(self.calls)
        gap = _gap(offered / holding)
        arrivals = self._routes.add(r.CALLS, number)
        self.times[arrivals] = -gap * math.log(1 - uniform(key, 2))
        entities = [self._routes.add(r.CALL, first + k) for k in range(places)]
        self.times |= dict.fromkeys(entities[:present], 0.0)
        calls = np.zeros(places, r.CALL_RECORD)
        calls["voice"], calls["entity"] = number, entities
        calls["talking"][:present] = r.FRESH
        calls["next"] = np.arange(first + 1, first + places + 1)
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
                "flags": r.MARKABLE | (r.BESIDE if traffic.beside else 0),
                "most": int(min(most, 2**31 - 1)),
                "present": present,
                "free": first + present if present < places else -1,
            }
        )

    def _beside(self, k: int, traffic: BackgroundPlan, voice: Voice) -> None:
        """The queue of the calls, served by their weight."""
        link, share = self._plan.net.links[traffic.link], float(voice.share)
        rate = float(link.capacity) * float(link.packet_size)
        limit = min(max(float(voice.drain) * share * rate, traffic.size), r.NEVER)
        row = self.classes[k]
        row["weight"], row["own_weight"], row["limit"] = share, 1 - share, limit
        port = self._routes.ports[traffic.link]
        port["beside"] = self.classes.ctypes.data + k * self.classes.itemsize
        self.packets += 64 + int(min(limit / traffic.size, UNBOUNDED * self._scale))
