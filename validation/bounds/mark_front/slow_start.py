"""Results 1 and 2 of Durresi et al. (2001): the longest queue of slow start."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import sympy as sp

from fluidcc.laws.law import Trip
from fluidcc.ops import Num
from fluidcc.scenario.network import Network

from ...lab.bound import AbstractBound, Definitions, Identity, Judged, Point, Range, at_most
from ...lab.packet_runs import packet_means
from .networks import (
    ANY,
    END,
    FAST,
    FRONT,
    GROWS,
    HYPOTHESES,
    QUEUES,
    ROUND_TRIPS,
    TAIL,
    THRESHOLD,
    TWO,
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

_SMALL = tuple(float(k) for k in range(1, 10))


def published(marks: str, threshold: Num, pipe: Num) -> Num:
    """Results 1 and 2: the longest queue of slow start [packet]."""
    return 2 * threshold + pipe - 1 if marks == TAIL else threshold + pipe


def trip(rate: Num, round_trip: Num, queue: Num) -> Trip:
    """One packet's way through a queue, for symbols; the link is half way."""
    half = sp.Rational(1, 2) * round_trip
    return Trip(round_trip + queue / rate, half, queue / rate, half)


class Peak(NamedTuple):
    """Longest queues of a run [packet]."""

    system: float
    waiting: float


class SlowStart(AbstractBound):
    """The longest queue of slow start, of whole packets."""

    id: ClassVar[str] = "mark_front.slow_start"
    source: ClassVar[str] = "durresi2001, section 4, results 1 and 2"
    claims: ClassVar[tuple[str, ...]] = ("MF-01", "MF-02")
    statement: ClassVar[str] = (
        "the queue of slow start is at most 2 T + r d - 1 with marks at the tail, T + r d with "
        "marks at the front"
    )
    hypotheses: ClassVar[tuple[str, ...]] = HYPOTHESES
    engine: ClassVar[str] = "packets"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {**THRESHOLD, "queue": QUEUES, "round_trip": ROUND_TRIPS}
    )
    networks: ClassVar[tuple[str, ...]] = tuple(THRESHOLD)
    readings: ClassVar[tuple[Mapping[str, str], ...]] = (
        {"marks": TAIL},
        {"marks": TAIL, "round_trip": WHOLE},
        {"marks": TAIL, "when": "reaches", "counts": "waiting", "queue": "waiting",
         "round_trip": WHOLE},
        {"marks": TAIL, "when": "reaches", "round_trip": WHOLE},
        {"marks": TAIL, "when": "reaches"},
        {"marks": TAIL, "when": "reaches", "round_trip": WHOLE, "access": FAST},
        {"marks": TAIL, "when": "reaches", "round_trip": WHOLE, "access": ANY},
        {"marks": TAIL, "when": "reaches", "round_trip": WHOLE, "sender": TWO},
        {"marks": TAIL, "when": "reaches", "round_trip": WHOLE, "sender": GROWS},
        {"marks": FRONT},
        {"marks": FRONT, "round_trip": WHOLE},
        {"marks": FRONT, "when": "reaches", "round_trip": WHOLE},
        {"marks": FRONT, "when": "reaches", "round_trip": WHOLE, "queue": "waiting"},
        {"marks": FRONT, "when": "reaches", "round_trip": WHOLE, "queue": "waiting",
         "access": FAST},
        {"marks": FRONT, "when": "reaches", "round_trip": WHOLE, "queue": "waiting",
         "access": ANY},
        {"marks": END},
        {"marks": END, "round_trip": WHOLE},
        {"marks": END, "when": "reaches"},
        {"marks": END, "when": "reaches", "round_trip": WHOLE, "queue": "waiting"},
        {"marks": END, "round_trip": WHOLE, "access": ANY},
    )  # fmt: skip
    quick: ClassVar[int] = 112

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """Thresholds and pipes up to some hundred packets."""
        return {
            "threshold": Range(1.0, 120.0, 1.0, "whole", small=_SMALL),
            "pipe": Range(0.5, 80.0, 1.0, "log", grid=1.0, small=(0.5, 1.0, 1.5, 2.0, 3.0, 4.5)),
            **access_ranges(definitions),
        }

    def subject(self, point: Point, definitions: Definitions) -> Network:
        """One connection."""
        return connection(point["threshold"], point["pipe"], access_at(point), definitions)

    def measure(self, subject: Network) -> Peak:
        """The longest queues until slow start is long over."""
        return peak(subject)

    def judge(self, subject: Network, measured: Peak, definitions: Definitions) -> Judged:
        """Compare with results 1 and 2."""
        known = numbers(subject)
        limit = published(
            definitions["marks"], known.threshold, known.pipe(definitions["round_trip"])
        )
        return at_most(getattr(measured, definitions["queue"]), limit)

    def obstacle(self, net: Network) -> str:
        """What of section 4 a network is not."""
        return obstacle(net)

    def found_in(self, net: Network) -> Definitions:
        """Threshold, access link and sender of a network."""
        return found_in(net)

    def derivation(self) -> tuple[Identity, ...]:
        """Fluid: one packet more per ACK, at the link's rate, from the crossing to the reaction."""
        return tuple(_growth(marks) for marks in (TAIL, FRONT))


def _growth(marks: str) -> Identity:
    rate, length, at = sp.symbols("C T Th", positive=True)
    way = trip(rate, length, at)
    heard = feedback(marks).age(way) + way.forward
    correction = 1 if marks == TAIL else 0
    limit = published(marks, at, rate * length) + correction
    return Identity(f"longest queue in the fluid, marks at the {marks}", at + rate * heard, limit)


def peak(net: Network) -> Peak:
    """Longest queues of a network from the start until slow start is long over."""
    known, link = numbers(net), net.links[0]
    start = max(float(flows.start.high) for flows in net.flows)
    until = start + rounds(known.threshold, known.whole) / float(link.capacity)
    seen = packet_means(net, until=until)["links"][net.link_names[0]]
    return Peak(seen["system_max"], seen["queue_max"])
