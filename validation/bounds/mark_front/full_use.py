"""Result 3 of Durresi et al. (2001): the least threshold that keeps the link busy."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import sympy as sp

from fluidcc.laws.law import Ack
from fluidcc.laws.window.reno import Reno
from fluidcc.ops import Num, sqrt
from fluidcc.scenario.network import Network

from ...lab.bound import (
    AbstractBound,
    Definitions,
    Identity,
    Judged,
    Point,
    Range,
    at_least,
    at_most,
)
from ...lab.packet_runs import packet_means
from .networks import (
    FRONT,
    HYPOTHESES,
    PATH,
    ROUND_TRIPS,
    TAIL,
    THRESHOLD,
    WHOLE,
    access_at,
    access_ranges,
    connection,
    cycle,
    feedback,
    found_in,
    numbers,
    obstacle,
)
from .slow_start import trip

ENOUGH, NEEDED = "T of r d - 1 or more keeps the link busy", "less leaves it idle at times"
_IDLE = 1e-6  # share of the time: packets that just miss each other by rounding


def optimal(pipe: Num) -> Num:
    """Result 3: the least threshold of full use [packet]."""
    return pipe - 1


def exact(marks: str, pipe: Num, count: Num) -> Num:
    """The least threshold of full use in the fluid, `count` flows that halve together [packet].

    W* = (C T + Th)/N grows to W_max with W_max^2 = W*^2 + 2 (C/N) tau, and half of it fills C T.
    """
    if marks == TAIL:
        return -count + sqrt(count**2 + 4 * pipe**2) - pipe
    return sqrt(4 * pipe**2 - 2 * count * pipe) - pipe


class FullUse(AbstractBound):
    """The least threshold of full use in congestion avoidance, of whole packets."""

    id: ClassVar[str] = "mark_front.full_use"
    source: ClassVar[str] = "durresi2001, section 4, result 3"
    claims: ClassVar[tuple[str, ...]] = ("MF-03", "MF-04")
    statement: ClassVar[str] = "T = r d - 1 is the least threshold that keeps the link busy"
    hypotheses: ClassVar[tuple[str, ...]] = (*HYPOTHESES, "congestion avoidance, after slow start")
    engine: ClassVar[str] = "packets"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {"side": (ENOUGH, NEEDED), "round_trip": ROUND_TRIPS, **THRESHOLD}
    )
    networks: ClassVar[tuple[str, ...]] = ("side", "round_trip", *THRESHOLD)
    readings: ClassVar[tuple[Mapping[str, str], ...]] = (
        {"marks": TAIL},
        {"marks": TAIL, "when": "reaches"},
        {"marks": TAIL, "round_trip": WHOLE},
        {"marks": FRONT},
        {"marks": FRONT, "round_trip": WHOLE},
        {"marks": TAIL, "side": NEEDED},
        {"marks": TAIL, "side": NEEDED, "round_trip": WHOLE},
        {"marks": FRONT, "side": NEEDED},
        {"marks": FRONT, "side": NEEDED, "round_trip": WHOLE},
    )
    quick: ClassVar[int] = 40
    clear: ClassVar[float] = 1e-3

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """Pipes up to 40 packets; thresholds above r d - 1, or below."""
        other = {"above": Range(0.0, 10.0, 0.0, grid=1.0)}
        if definitions["side"] == NEEDED:
            other = {"below": Range(0.01, 10.0, 0.01, "log", grid=1.0)}
        return {"pipe": Range(3.0, 40.0, 3.0, grid=1.0), **other, **access_ranges(definitions)}

    def subject(self, point: Point, definitions: Definitions) -> Network:
        """One connection with a threshold on the side to be judged."""
        pipe, access = point["pipe"], access_at(point)
        net = connection(1.0, pipe, access, definitions)
        least = float(optimal(numbers(net).pipe(definitions["round_trip"])))
        threshold = least + point.get("above", 0.0) - point.get("below", 0.0)
        return connection(max(threshold, 0.0), pipe, access, definitions)

    def measure(self, subject: Network) -> float:
        """Share of the time in which the link is busy."""
        return utilization(subject)

    def judge(self, subject: Network, measured: float, definitions: Definitions) -> Judged:
        """Compare with full use."""
        if definitions["side"] == ENOUGH:
            return at_least(measured, 1.0 - _IDLE)
        known = numbers(subject)
        if known.threshold >= optimal(known.pipe(definitions["round_trip"])) - _IDLE:
            return Judged(1.0, measured, float("nan"))
        return at_most(measured, 1.0 - 2 * _IDLE)

    def obstacle(self, net: Network) -> str:
        """What of section 4 a network is not."""
        return obstacle(net)

    def found_in(self, net: Network) -> Definitions:
        """Also the side that its threshold is on; r without the link's transmission."""
        known = numbers(net)
        enough = known.threshold >= optimal(known.path)
        return {**found_in(net), "side": ENOUGH if enough else NEEDED, "round_trip": PATH}

    def derivation(self) -> tuple[Identity, ...]:
        """Fluid, N flows: the queue just does not run empty after a halving at `exact`."""
        pipe, rate, count = sp.symbols("P C N", positive=True)
        return tuple(_emptied(marks, pipe, rate, count) for marks in (TAIL, FRONT))


def _emptied(marks: str, pipe: Num, rate: Num, count: Num) -> Identity:
    """The rules lead from the crossing to a window whose half fills the pipe, P = C T."""
    law, w = Reno(), sp.Symbol("w", positive=True)
    at, way = exact(marks, pipe, count), None
    way = trip(rate, pipe / rate, at)
    told = Ack(1, 0, 1)
    pace = rate / count * law.on_ack(w, told)  # packets per second
    time = sp.integrate(1 / pace, w)
    crossing = (pipe + at) / count
    delay = feedback(marks).age(way) + way.forward
    top = sp.sqrt(crossing**2 + 2 * rate / count * delay)
    passed = time.subs(w, top) - time.subs(w, crossing)
    left = count * (top + sp.nsimplify(law.on_mark(top, told)))
    words = f"least threshold of full use, N flows, marks at the {marks}, by C T = P"
    difference = (passed - delay) ** 2 + (left**2 - pipe**2) ** 2  # both are 0
    return Identity(words, at + difference, at)


def utilization(net: Network) -> float:
    """Share of the time that the link is busy, after four cycles at least."""
    known, rate = numbers(net), float(net.links[0].capacity)
    turn = cycle(known.threshold, known.whole) / rate
    start, rest = max(float(f.start.high) for f in net.flows), 1000.0 / rate
    until, warmup = start + 8 * turn + rest, start + 4 * turn + rest / 2
    seen = packet_means(net, until=until, warmup=warmup)["links"]
    return float(seen[net.link_names[0]]["utilization"])
