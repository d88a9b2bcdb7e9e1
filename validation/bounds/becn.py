"""What Akujobi et al. (2002) state about backward notification."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
import sympy as sp

from fluidcc.laws.feedback.backward import Backward
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.law import Trip
from fluidcc.laws.queue.red import RED
from fluidcc.laws.reaction import Pause, PerMark, Refractory
from fluidcc.laws.symbolic import zero_drift
from fluidcc.laws.window.becn import BECN
from fluidcc.scenario.network import Flows, Link, Network, Start

from ..lab.bound import (
    AbstractBound,
    Definitions,
    Identity,
    Judged,
    Point,
    Range,
    at_least,
    at_most,
    every,
)
from ..lab.packet_runs import packet_means

_BECN: Any = BECN
HALF, SOONER = "ECN waits more than half a round trip", "quenches are heard before marks"
EARLY, ANYWHERE = "in the first half of the way there", "anywhere"


class Place(NamedTuple):
    """A router: shares of the propagation there and back, and the queueing in it."""

    before: float
    queueing: float


class Sooner(AbstractBound):
    """Ages of quenches and marks."""

    id: ClassVar[str] = "becn.sooner"
    source: ClassVar[str] = "akujobi2002, sections II.B and VI.A"
    claims: ClassVar[tuple[str, ...]] = ("BECN-08",)
    statement: ClassVar[str] = "BECN notifies faster; ECN waits more than half a round trip"
    engine: ClassVar[str] = "rules"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {"router": (ANYWHERE, EARLY), "compared": (HALF, SOONER)}
    )
    networks: ClassVar[tuple[str, ...]] = ("router",)
    readings: ClassVar[tuple[Mapping[str, str], ...]] = every(axes)
    quick: ClassVar[int] = 90

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """Routers on the way there, in shares of the propagation both ways."""
        most = 0.5 if definitions["router"] == EARLY else 0.99
        return {"before": Range(0.01, most, 0.25), "queueing": Range(0.0, 2.0, 0.0)}

    def subject(self, point: Point, definitions: Definitions) -> Place:
        """A router."""
        return Place(**point)

    def judge(self, subject: Place, measured: None, definitions: Definitions) -> Judged:
        """Ages in round trips of propagation."""
        way = Trip(1 + subject.queueing, subject.before, subject.queueing, subject.before)
        mark = MarkTail().age(way)
        if definitions["compared"] == HALF:
            return at_least(mark, way.round_trip / 2)
        return at_most(Backward().age(way), mark)

    def derivation(self) -> tuple[Identity, ...]:
        """A mark is younger than a quench where the way there is longer than what follows."""
        there, back, queueing = sp.symbols("f b w", positive=True)
        way = Trip(there + back + queueing, there, queueing, there)
        gained = MarkTail().age(way) - Backward().age(way)
        return (Identity("age of marks less that of quenches", gained, back + queueing - there),)


class Counted(NamedTuple):
    """Reactions of one flow, and its round trips in the same time."""

    reactions: float
    trips: float


class Reactions(AbstractBound):
    """How often a BECN sender reacts."""

    id: ClassVar[str] = "becn.reactions"
    source: ClassVar[str] = "akujobi2002, sections II.A and IV.B"
    claims: ClassVar[tuple[str, ...]] = ("BECN-06",)
    statement: ClassVar[str] = "a sender reacts at most once per round trip"
    hypotheses: ClassVar[tuple[str, ...]] = ("BECN flows over RED, 100 s",)
    engine: ClassVar[str] = "packets"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {"reaction": ("enhanced", "without the pause", "every quench")}
    )
    networks: ClassVar[tuple[str, ...]] = ("reaction",)
    readings: ClassVar[tuple[Mapping[str, str], ...]] = every(axes)
    quick: ClassVar[int] = 24

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """Up to 45 flows."""
        return {
            "n": Range(1.0, 45.0, 15.0, "whole"),
            "rtt": Range(0.03, 0.5, 0.088, "log"),
            "p_max": Range(0.05, 1.0, 0.1, "log"),
        }

    def subject(self, point: Point, definitions: Definitions) -> Network:
        """BECN flows over one queue."""
        kinds: dict[str, Any] = {
            "enhanced": Pause(), "without the pause": Refractory(), "every quench": PerMark()
        }  # fmt: skip
        flows = Flows(
            _BECN(), n=np.array([point["n"]]), rtt=np.array([point["rtt"]]),
            reaction=kinds[definitions["reaction"]], feedback=Backward(),
            access_delay=point["rtt"] / 8, start=Start(0.0, 5.0),
        )  # fmt: skip
        law = RED(min_th=30.0, max_th=90.0, p_max=point["p_max"], w_q=0.002)
        link = Link(law, capacity=1250.0, delay=point["rtt"] / 8, buffer=180.0)
        return Network((link,), (flows,), source="akujobi2002")

    def measure(self, subject: Network) -> Counted:
        """Reactions and round trips after the first 10 s."""
        flows = packet_means(subject, until=100.0, warmup=10.0)["flows"]
        seen = flows[subject.flow_names[0]]
        count = float(np.sum(subject.flows[0].n))
        return Counted(seen["reactions"] / count, 90.0 / seen["rtt_mean"])

    def judge(self, subject: Network, measured: Counted, definitions: Definitions) -> Judged:
        """Reactions per round trip."""
        return at_most(measured.reactions / measured.trips, 1.0)

    def obstacle(self, net: Network) -> str:
        """It speaks of one group of BECN flows."""
        only = len(net.flows) == 1 and isinstance(net.flows[0].window, BECN)
        return "" if only else "it speaks of one group of BECN flows"

    def found_in(self, net: Network) -> Definitions:
        """Its reaction."""
        kinds = {"pause": "enhanced", "refractory": "without the pause"}
        return {"reaction": kinds.get(net.flows[0].reaction.name, "every quench")}

    def derivation(self) -> tuple[Identity, ...]:
        """The pause changes no window at rest."""
        p = sp.Symbol("p", positive=True)
        (paused,) = zero_drift(_BECN(), Pause())
        return (Identity("window at rest with the pause", paused, sp.sqrt(2 / p)),)
