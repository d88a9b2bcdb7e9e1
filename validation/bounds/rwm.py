"""What Govindaswamy et al. (2012) state about receiver-window modification."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import numpy as np
import sympy as sp

from fluidcc.laws.feedback.receiver_window import ReceiverWindow
from fluidcc.laws.law import Arrival
from fluidcc.laws.queue.red import RED
from fluidcc.laws.reaction import OncePerRTT
from fluidcc.laws.window.reno import Reno
from fluidcc.scenario.network import Flows, Link, Network, Start

from ..lab.bound import (
    AbstractBound,
    Definitions,
    Identity,
    Judged,
    Point,
    Range,
    at_most,
    every,
    within,
)
from ..lab.packet_runs import packet_means

ANY, FITTING = "any", "at most half a packet each beyond pipe and min_th"
_CAPACITY, _MIN, _MAX = 187.5, 5.0, 15.0  # packet/s, packets: section 4.1
_ABOUT = 0.2  # of min_th
_FEW = 0.001  # of the packets


class Seen(NamedTuple):
    """What a run shows: mean queue [packet], and the share of packets dropped."""

    queue: float
    dropped: float


class _OverRED(AbstractBound):
    """Reno flows over a RED queue that modifies ACKs."""

    engine: ClassVar[str] = "packets"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType({"windows": (ANY, FITTING)})
    networks: ClassVar[tuple[str, ...]] = ("windows",)
    readings: ClassVar[tuple[Mapping[str, str], ...]] = every(axes)
    quick: ClassVar[int] = 30
    clear: ClassVar[float] = 0.005

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """2 to 30 sources; the recommended p_max."""
        p_max = Range(0.3, 1.0, 1.0)
        if definitions["windows"] == ANY:
            rtt, cap = Range(0.02, 0.3, 0.068, "log"), Range(2.0, 100.0, 100.0, "log")
            return {"n": Range(2.0, 30.0, 4.0, "whole"), "cap": cap, "rtt": rtt, "p_max": p_max}
        cap, spare = Range(3.0, 20.0, 5.0, "whole"), Range(0.0, 0.5, 0.0)
        return {"n": Range(4.0, 30.0, 4.0, "whole"), "cap": cap, "spare": spare, "p_max": p_max}

    def subject(self, point: Point, definitions: Definitions) -> Network:
        """Flows over one queue, with windows that the receiver limits."""
        n, cap = point["n"], float(round(point["cap"]))
        beyond = _MIN + 1 + n * point.get("spare", 0.0)  # one packet in service
        rtt = point.get("rtt", (n * cap - beyond) / _CAPACITY)
        flows = Flows(
            Reno(max_window=cap), n=np.array([n]), rtt=np.array([rtt]),
            reaction=OncePerRTT(), feedback=ReceiverWindow(), access_delay=rtt / 4,
            start=Start(0.0, 1.0),
        )  # fmt: skip
        law = RED(min_th=_MIN, max_th=_MAX, p_max=point["p_max"], w_q=0.002)
        link = Link(law, capacity=_CAPACITY, packet_size=1000.0, delay=rtt / 8, buffer=35.0)
        return Network((link,), (flows,), source="govindaswamy2012")

    def measure(self, subject: Network) -> Seen:
        """Means over 150 s, less the first 30."""
        means = packet_means(subject, until=150.0, warmup=30.0)
        link = means["links"][subject.link_names[0]]
        return Seen(link["queue_mean"], link["drop_fraction"])

    def obstacle(self, net: Network) -> str:
        """It speaks of RED that modifies ACKs at the first link."""
        red = isinstance(net.links[0].queue, RED)
        told = all(isinstance(f.feedback, ReceiverWindow) for f in net.flows)
        return "" if red and told else "it speaks of RED that modifies ACKs"

    def found_in(self, net: Network) -> Definitions:
        """Whether windows fit pipe and min_th."""
        link = net.links[0]
        room, most = float(link.queue.min_th), 0.0  # type: ignore[attr-defined]
        for f in net.flows:
            count = float(np.sum(f.n))
            room += float(link.capacity) * float(np.mean(f.rtt)) + count / 2
            most += count * float(f.window.max_window)
        return {"windows": FITTING if most <= room else ANY}


class AboutMinTh(_OverRED):
    """Whether the average queue stays about min_th."""

    id: ClassVar[str] = "rwm.average_queue"
    source: ClassVar[str] = "govindaswamy2012, section 3"
    claims: ClassVar[tuple[str, ...]] = ("RWM-05",)
    statement: ClassVar[str] = "the average queue is approximately min_th (to 20 %)"
    hypotheses: ClassVar[tuple[str, ...]] = ("p_max from 0.3 to 1", "RED with 5 and 15 packets")

    def judge(self, subject: Network, measured: Seen, definitions: Definitions) -> Judged:
        """The mean of what waits, over min_th."""
        least = float(subject.links[0].queue.min_th)  # type: ignore[attr-defined]
        return within(measured.queue / least, 1.0, _ABOUT)

    def derivation(self) -> tuple[Identity, ...]:
        """The average at which RED says p, in its linear part."""
        least, span, top, u = sp.symbols("min_th span p_max u", positive=True)
        law = RED(min_th=least, max_th=least + span, p_max=top)
        average = least + span * u  # above min_th
        said = law.base(average, Arrival(1, 0, average, 1))
        return (Identity("p at min_th + u (max_th - min_th)", said, top * sp.Min(1, u)),)


class EnoughPMax(_OverRED):
    """Whether modified ACKs alone hold the queue at the recommended p_max."""

    id: ClassVar[str] = "rwm.recommended_p_max"
    source: ClassVar[str] = "govindaswamy2012, section 3"
    claims: ClassVar[tuple[str, ...]] = ("RWM-07",)
    statement: ClassVar[str] = "with p_max from 0.3 to 1 modified ACKs suffice: 0.1 % are dropped"
    hypotheses: ClassVar[tuple[str, ...]] = ("RED with 5 and 15 packets",)

    def judge(self, subject: Network, measured: Seen, definitions: Definitions) -> Judged:
        """Share of the packets dropped."""
        return at_most(measured.dropped, _FEW)
