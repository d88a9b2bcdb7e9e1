"""What Durresi et al. (2001) conclude for buffers, delays and efficiency."""

import dataclasses
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import numpy as np
import sympy as sp

from fluidcc.scenario.network import Network, Start

from ...lab.bound import (
    AbstractBound,
    Definitions,
    Identity,
    Judged,
    Point,
    Range,
    at_least,
    every,
)
from ...lab.packet_runs import packet_means
from .full_use import optimal
from .networks import (
    END,
    FRONT,
    HYPOTHESES,
    QUEUES,
    RATE,
    ROUND_TRIPS,
    TAIL,
    THRESHOLD,
    WHOLE,
    access_at,
    access_ranges,
    connection,
    feedback,
    found_in,
    numbers,
    obstacle,
    rounds,
)
from .slow_start import published, trip

ALONE, TOGETHER, LATER = "one connection", "ten at once", "ten, one every 0.3 s"
FIRST, WHOLE_RUN = "the queue of slow start", "the queue of the whole run"
BEGINNING, SETTLED = "from the first packet", "after slow start"
_APART = 0.3  # s between the starts (scenario 2)
_MANY = 10


class Lost(NamedTuple):
    """Packets that a link drops, and those that it would with one place less."""

    here: float
    shorter: float


def lost(net: Network, until: float) -> Lost:
    """Packets that the link drops until then [packet times]."""
    here, room = losses(net, until), float(net.links[0].buffer)
    if here > 0 or room <= 1:
        return Lost(here, here)
    return Lost(here, losses(with_buffer(net, room - 1), until))


def none_lost(found: Lost) -> Judged:
    """Nothing may be lost; the bound is met if a place less would lose something."""
    met = 0.0 if found.shorter > 0 else -1.0
    return Judged(0.0, found.here, found.here if found.here > 0 else met)


def with_buffer(net: Network, buffer: float) -> Network:
    """The network with another buffer [packet]."""
    return dataclasses.replace(net, links=(dataclasses.replace(net.links[0], buffer=buffer),))


def losses(net: Network, until: float) -> float:
    """Packets that the link drops until then [packet times]."""
    end = max(float(f.start.high) for f in net.flows) + until / float(net.links[0].capacity)
    return float(packet_means(net, until=end)["links"][net.link_names[0]]["drops"])


class BufferClaim(AbstractBound):
    """The buffer that results 1 to 3 together ask for."""

    id: ClassVar[str] = "mark_front.buffer"
    source: ClassVar[str] = "durresi2001, section 4, after result 3"
    claims: ClassVar[tuple[str, ...]] = ("MF-05",)
    statement: ClassVar[str] = (
        "at T = r d - 1 a buffer of 3 r d - 3 packets (tail) or 2 r d - 1 (front) loses nothing"
    )
    hypotheses: ClassVar[tuple[str, ...]] = HYPOTHESES[:2]
    engine: ClassVar[str] = "packets"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {**THRESHOLD, "round_trip": ROUND_TRIPS, "buffer": QUEUES}
    )
    networks: ClassVar[tuple[str, ...]] = (*THRESHOLD, "round_trip", "buffer")
    readings: ClassVar[tuple[Mapping[str, str], ...]] = (
        {"marks": TAIL},
        {"marks": TAIL, "when": "reaches", "round_trip": WHOLE},
        {"marks": TAIL, "when": "reaches", "counts": "waiting", "buffer": "waiting"},
        {"marks": FRONT},
        {"marks": FRONT, "when": "reaches", "round_trip": WHOLE, "buffer": "waiting"},
        {"marks": END, "when": "reaches", "round_trip": WHOLE},
    )
    quick: ClassVar[int] = 60

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """Pipes of some packets to a hundred."""
        small = tuple(2.0 + 0.5 * k for k in range(25))
        return {
            "pipe": Range(2.0, 100.0, 2.0, "log", grid=1.0, small=small),
            **access_ranges(definitions),
        }

    def subject(self, point: Point, definitions: Definitions) -> Network:
        """One connection with that buffer, in whole packets."""
        pipe, access = point["pipe"], access_at(point)
        known = numbers(connection(1.0, pipe, access, definitions))
        length = known.pipe(definitions["round_trip"])
        threshold = float(optimal(length))
        room = math.floor(float(published(definitions["marks"], threshold, length)) + 1e-9)
        waiting = room - 1 if definitions["buffer"] == "system" else room
        return connection(threshold, pipe, access, definitions, buffer=float(max(waiting, 1)))

    def measure(self, subject: Network) -> Lost:
        """Packets lost until slow start is long over."""
        known = numbers(subject)
        return lost(subject, rounds(known.threshold, known.whole))

    def judge(self, subject: Network, measured: Lost, definitions: Definitions) -> Judged:
        """None may be lost."""
        return none_lost(measured)

    def obstacle(self, net: Network) -> str:
        """It needs the very threshold and buffer that it names."""
        return "it speaks of the threshold r d - 1 and the buffer that follows: search it by name"

    def derivation(self) -> tuple[Identity, ...]:
        """Results 1 and 2 at the threshold of result 3."""
        pipe = sp.Symbol("rd", positive=True)
        return (
            Identity("buffer, tail", published(TAIL, optimal(pipe), pipe), 3 * pipe - 3),
            Identity("buffer, front", published(FRONT, optimal(pipe), pipe), 2 * pipe - 1),
        )


class NoLoss(AbstractBound):
    """A buffer as large as the longest queue with an endless one loses nothing."""

    id: ClassVar[str] = "mark_front.no_loss"
    source: ClassVar[str] = "durresi2001, section 5, metrics"
    claims: ClassVar[tuple[str, ...]] = ("MF-25",)
    statement: ClassVar[str] = "a buffer of the longest queue of slow start loses no packet"
    hypotheses: ClassVar[tuple[str, ...]] = HYPOTHESES[1:2]
    engine: ClassVar[str] = "packets"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {
            "requirement": (FIRST, WHOLE_RUN),
            "connections": (ALONE, TOGETHER, LATER),
            **THRESHOLD,
        }
    )
    networks: ClassVar[tuple[str, ...]] = ("requirement", "connections", *THRESHOLD)
    readings: ClassVar[tuple[Mapping[str, str], ...]] = tuple(
        {"requirement": need, "connections": many, "marks": marks}
        for marks in (TAIL, FRONT)
        for need, many in (
            (FIRST, ALONE), (FIRST, TOGETHER), (FIRST, LATER), (WHOLE_RUN, LATER),
        )
    )  # fmt: skip
    quick: ClassVar[int] = 9

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """Thresholds and pipes up to some hundred packets."""
        return {
            "threshold": Range(1.0, 60.0, 1.0, "whole", small=(2.0, 5.0, 10.0)),
            "pipe": Range(1.0, 60.0, 1.0, grid=1.0, small=(2.0, 5.0, 10.0)),
            **access_ranges(definitions),
        }

    def subject(self, point: Point, definitions: Definitions) -> Network:
        """Connections that share a link whose buffer is the longest queue without losses."""
        net = connection(point["threshold"], point["pipe"], access_at(point), definitions)
        net = _crowd(net, definitions["connections"])
        room = _longest(net, whole=definitions["requirement"] == WHOLE_RUN)
        return with_buffer(net, max(room, 1.0))

    def measure(self, subject: Network) -> Lost:
        """Packets lost in the whole run."""
        return lost(subject, _whole(subject))

    def judge(self, subject: Network, measured: Lost, definitions: Definitions) -> Judged:
        """None may be lost."""
        return none_lost(measured)

    def of_network(self, net: Network) -> Network:
        """The network with the buffer that its slow start needs."""
        endless = with_buffer(net, math.inf)
        return with_buffer(net, _longest(endless, whole=False))

    def obstacle(self, net: Network) -> str:
        """What of sections 4 and 5 a network is not."""
        return obstacle(net, many=True, lossless=False)

    def found_in(self, net: Network) -> Definitions:
        """Slow start, and the words for the nearest number of connections."""
        many = sum(float(np.sum(f.n)) for f in net.flows) > 1
        later = max(float(f.start.high) for f in net.flows) > 0
        words = (LATER if later else TOGETHER) if many else ALONE
        return {**found_in(net), "requirement": FIRST, "connections": words}


def _crowd(net: Network, connections: str) -> Network:
    (flows,) = net.flows
    if connections == ALONE:
        return net
    if connections == TOGETHER:
        return dataclasses.replace(net, flows=(dataclasses.replace(flows, n=np.array([10.0])),))
    starts = [_APART * k for k in range(_MANY)]
    groups = tuple(dataclasses.replace(flows, start=Start(t, t)) for t in starts)
    names = tuple(f"flow{k + 1}" for k in range(_MANY))
    return dataclasses.replace(net, flows=groups, flow_names=names)


def _whole(net: Network) -> float:
    """Packet times of a whole run."""
    known = numbers(net)
    return 3 * rounds(known.threshold, known.whole) + 2000.0


def _longest(net: Network, *, whole: bool) -> float:
    """Longest queue of waiting packets: of the first slow start, or of the whole run."""
    known, rate = numbers(net), float(net.links[0].capacity)
    starts = [float(f.start.high) for f in net.flows]
    long = _whole(net) if whole else rounds(known.threshold, known.whole)
    until = (max(starts) if whole else min(starts)) + long / rate
    return float(packet_means(net, until=until)["links"][net.link_names[0]]["queue_max"])


class Efficiency(AbstractBound):
    """Link efficiency is always smaller than 1."""

    id: ClassVar[str] = "mark_front.efficiency"
    source: ClassVar[str] = "durresi2001, section 5, metrics"
    claims: ClassVar[tuple[str, ...]] = ("MF-11",)
    statement: ClassVar[str] = "acknowledged packets stay below what the link could send"
    hypotheses: ClassVar[tuple[str, ...]] = ()
    engine: ClassVar[str] = "packets"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {"counted": (BEGINNING, SETTLED), **THRESHOLD}
    )
    networks: ClassVar[tuple[str, ...]] = tuple(THRESHOLD)
    readings: ClassVar[tuple[Mapping[str, str], ...]] = tuple(
        {"counted": counted, "marks": marks}
        for marks in (TAIL, FRONT)
        for counted in (BEGINNING, SETTLED)
    )
    quick: ClassVar[int] = 20

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """Thresholds and pipes up to some hundred packets."""
        return {
            "threshold": Range(1.0, 120.0, 1.0, "whole"),
            "pipe": Range(0.5, 60.0, 1.0, grid=1.0),
            **access_ranges(definitions),
        }

    def subject(self, point: Point, definitions: Definitions) -> Network:
        """One connection."""
        return connection(point["threshold"], point["pipe"], access_at(point), definitions)

    def measure(self, subject: Network) -> tuple[float, float]:
        """Both efficiencies."""
        link, known = subject.links[0], numbers(subject)
        rate = float(link.capacity)
        start = max(float(f.start.high) for f in subject.flows)
        warmup = start + rounds(known.threshold, known.whole) / rate
        out = []
        for begin in (0.0, warmup):
            until = warmup + 1900.0 / rate  # 10 s of the paper's link
            flows = packet_means(subject, until=until, warmup=begin)["flows"]
            bits = sum(sum(group["goodput_flows"]) for group in flows.values())
            out.append(bits / (8.0 * float(link.packet_size) * rate))
        return out[0], out[1]

    def judge(
        self, subject: Network, measured: tuple[float, float], definitions: Definitions
    ) -> Judged:
        """Compare with 1, which must not be reached."""
        value = measured[0 if definitions["counted"] == BEGINNING else 1]
        return Judged(1.0, value, value - 1.0 + 2e-9)

    def obstacle(self, net: Network) -> str:
        """What of sections 4 and 5 a network is not."""
        return obstacle(net, many=True, lossless=False)

    def found_in(self, net: Network) -> Definitions:
        """Threshold, access link and sender of a network."""
        return found_in(net)


class Way(NamedTuple):
    """A link and the way to it: r d [packet], and the share of it before the queue."""

    pipe: float
    before: float


class Sooner(AbstractBound):
    """How much sooner the front's marks are heard."""

    id: ClassVar[str] = "mark_front.delay"
    source: ClassVar[str] = "durresi2001, section 4, after result 3"
    claims: ClassVar[tuple[str, ...]] = ("MF-06",)
    statement: ClassVar[str] = (
        "at T = r d - 1 marks at the front are heard one fixed round trip sooner"
    )
    engine: ClassVar[str] = "rules"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {"sooner": ("by r", "by r less one packet time")}
    )
    readings: ClassVar[tuple[Mapping[str, str], ...]] = every(axes)
    quick: ClassVar[int] = 60

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """Any way."""
        return {
            "pipe": Range(2.0, 1000.0, 2.0, "log", grid=1.0),
            "before": Range(0.0, 0.5, 0.25),
        }

    def subject(self, point: Point, definitions: Definitions) -> Way:
        """A link and the way to it."""
        return Way(point["pipe"], point["before"])

    def judge(self, subject: Way, measured: None, definitions: Definitions) -> Judged:
        """Seconds between the two at a link of RATE, by the laws' ages."""
        round_trip = subject.pipe / RATE
        queued = float(optimal(subject.pipe)) / RATE
        way = trip(RATE, round_trip, float(optimal(subject.pipe)))
        way = way._replace(
            round_trip=round_trip + queued, forward=subject.before * round_trip,
            reverse=(1 - subject.before) * round_trip,
        )  # fmt: skip
        saved = float(feedback(TAIL).age(way) - feedback(FRONT).age(way))
        less = 0.0 if definitions["sooner"] == "by r" else 1 / RATE
        return at_least(saved, round_trip - less)

    def derivation(self) -> tuple[Identity, ...]:
        """The difference of the ages at that queue."""
        rate, length = sp.symbols("C T", positive=True)
        way = trip(rate, length, optimal(rate * length))
        saved = feedback(TAIL).age(way) - feedback(FRONT).age(way)
        return (Identity("time saved at r d = C T", saved, length - 1 / rate),)
