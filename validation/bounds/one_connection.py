"""Connections over a link that marks all packets beyond a threshold: their numbers, and what
section 4 of Durresi et al. (2001) says of them in formulas.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from fluidcc.laws.feedback.mark_front import MarkFront
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.law import AbstractFeedback
from fluidcc.laws.queue.threshold import Threshold
from fluidcc.laws.reaction import OncePerRTT
from fluidcc.laws.traffic import Bulk
from fluidcc.laws.window.polynomial import AbstractTCP
from fluidcc.laws.window.reno import Reno
from fluidcc.ops import Num, sqrt
from fluidcc.scenario.network import Flows, FlowsInitial, Link, Network
from fluidcc.scenario.sender import sender_options

from ..lab.bound import Definitions, Point, Range, packet_means

RATE = 100.0  # packet/s; nothing but the senders' timers depends on it
TAIL, FRONT, END = "tail", "front", "front, as the transmission ends"
ANY, FAST, ENDLESS = "faster than the link", "twice as fast or more", "infinitely fast"
ONE, TWO, GROWS = "one packet first", "two packets first", "grows on marked ACKs"
PATH, PROPAGATION, WHOLE = "without the link's transmission", "propagation", "all transmissions"

HYPOTHESES = (
    "one connection and no other traffic",
    "one ACK per packet, and no queue of ACKs",
    "the receiver's window never binds, and no packet is lost",
    "packets of one size, one link at which they queue",
)

THRESHOLD: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "marks": (TAIL, FRONT, END),
        "when": ("exceeds", "reaches"),
        "counts": ("system", "waiting"),
        "access": (ENDLESS, FAST, ANY),
        "sender": (ONE, TWO, GROWS),
    }
)
"""Where marks are set, which queue is compared how, the access link, the sender."""

ROUND_TRIPS = (PATH, PROPAGATION, WHOLE)
QUEUES = ("system", "waiting")

# -- results 1 to 3 ---------------------------------------------------------------------------


def published(marks: str, threshold: Num, pipe: Num) -> Num:
    """Results 1 and 2: the longest queue of slow start [packet]."""
    return 2 * threshold + pipe - 1 if marks == TAIL else threshold + pipe


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


# -- networks ---------------------------------------------------------------------------------


class Numbers(NamedTuple):
    """A network in packets: threshold T, and r d by what r contains."""

    threshold: Num
    propagation: Num
    path: Num
    whole: Num

    def pipe(self, round_trip: str) -> Num:
        """Packets that a link sends in one fixed round trip."""
        return {PROPAGATION: self.propagation, PATH: self.path, WHOLE: self.whole}[round_trip]


def feedback(marks: str) -> AbstractFeedback:
    """The feedback law that sets marks there."""
    if marks == TAIL:
        return MarkTail()
    return MarkFront(when="end" if marks == END else "start")  # type: ignore[call-arg]


def connection(
    threshold: float, pipe: float, access: float, definitions: Definitions,
    *, buffer: float = math.inf,
) -> Network:  # fmt: skip
    """One connection over a pipe of propagation [packet]; `access` is the rate of its access link
    in that of the link.
    """
    sender = definitions["sender"]
    flows = Flows(
        Reno(), n=np.ones(1), rtt=np.array([pipe / RATE]), reaction=OncePerRTT(),
        feedback=feedback(definitions["marks"]), access_delay=pipe / RATE / 4,
        access_capacity=access * RATE,
        sender=(
            ("syn", False),
            ("initial_window", 2.0 if sender == TWO else 1.0),
            ("grow_on_echo", sender == GROWS),
        ),
    )  # fmt: skip
    law = Threshold(at=threshold, when=definitions["when"], counts=definitions["counts"])
    link = Link(law, capacity=RATE, packet_size=1000.0, delay=pipe / RATE / 4, buffer=buffer)
    return Network((link,), (flows,), source="durresi2001")


def fluid(marks: str, threshold: float, pipe: float, count: float = 1.0) -> Network:
    """`count` connections as self-clocked fluid, in slow start."""
    flows = Flows(
        Reno(), n=np.array([count]), rtt=np.array([pipe / RATE]), reaction=OncePerRTT(),
        feedback=feedback(marks), initial=FlowsInitial(window=1.0, slow_start=True),
    )  # fmt: skip
    link = Link(Threshold(at=threshold), capacity=RATE, packet_size=1000.0)
    return Network((link,), (flows,), rates="self_clocked", delay="fifo", source="durresi2001")


def access_ranges(definitions: Definitions) -> dict[str, Range]:
    """The speed of the access link, unless it is settled [rates of the link]."""
    if definitions["access"] == ENDLESS:
        return {}
    low = 2.0 if definitions["access"] == FAST else 1.05
    small = (2.0, 4.0) if low == 2.0 else (1.05, 1.2, 1.5, 1.9)
    return {"access": Range(low, 2 * low + 1, 2.0 if low == 2.0 else 1.5, "log", small=small)}


def connection_at(point: Point, definitions: Definitions) -> Network:
    """One connection at a point of a search."""
    access = point.get("access", math.inf)
    return connection(point.get("threshold", 1.0), point["pipe"], access, definitions)


def numbers(net: Network) -> Numbers:
    """A network in packets."""
    link, flows = net.links[0], net.flows[0]
    rate = float(link.capacity)
    propagation = rate * float(np.max(flows.rtt))
    path = propagation + rate / float(flows.access_capacity)
    return Numbers(float(link.queue.at), propagation, path, path + 1)  # type: ignore[attr-defined]


def found_in(net: Network) -> dict[str, str]:
    """The definitions that a network of one connection settles."""
    link, flows = net.links[0], net.flows[0]
    law, signal = link.queue, flows.feedback
    rules, speed = sender_options(flows.sender), float(flows.access_capacity / link.capacity)
    marks = TAIL if isinstance(signal, MarkTail) else END if signal.when == "end" else FRONT  # type: ignore[attr-defined]
    access = ENDLESS if math.isinf(speed) else FAST if speed >= 2 else ANY
    sender = GROWS if rules.grow_on_echo else ONE if rules.initial_window < 2 else TWO
    return {
        "marks": marks, "when": law.when, "counts": law.counts, "access": access, "sender": sender,  # type: ignore[attr-defined]
    }  # fmt: skip


def obstacle(net: Network, *, many: bool = False, lossless: bool = True) -> str:
    """Why section 4 says nothing about a network; empty where it does.

    `many` connections may be, and losses too unless `lossless`.
    """
    if len(net.links) != 1:
        return "it speaks of one link, with the others as part of the round trip"
    (link,) = net.links
    if not isinstance(link.queue, Threshold) or float(link.queue.width) > 0:
        return f"it speaks of marks above a threshold, not of {link.queue.name}"
    if float(link.cross) > 0 or link.voice is not None:
        return "it speaks of a link without other traffic"
    if lossless and math.isfinite(float(link.buffer)):
        return "it speaks of a link without losses: the buffer must be infinite"
    count = sum(float(np.sum(flows.n)) for flows in net.flows)
    if count != 1 and not many:
        return f"it speaks of one connection, not of {count:g}"
    for flows in net.flows:
        if not isinstance(flows.feedback, MarkTail | MarkFront):
            return f"it speaks of marks on ACKs, not of {flows.feedback.name}"
        if not isinstance(flows.window, AbstractTCP):
            return f"it speaks of TCP, not of {flows.window.name}"
        if math.isfinite(float(flows.window.max_window)):
            return "it speaks of windows that the receiver does not limit"
        if not isinstance(flows.traffic, Bulk) or flows.reverse_route:
            return "it speaks of senders that always have data, and ACKs that do not queue"
    return ""


# -- packet runs ------------------------------------------------------------------------------


class Peak(NamedTuple):
    """Longest queues of a run [packet]."""

    system: float
    waiting: float


def rounds(net: Network) -> float:
    """Packet times after which slow start and its longest queue are long over."""
    at, pipe = numbers(net).threshold, numbers(net).whole
    return (math.log2(at + pipe + 2) + 6) * (pipe + at + 2) + RATE


def latest(net: Network) -> float:
    """When the last flows have started [s]."""
    return max(float(flows.start.high) for flows in net.flows)


def peak(net: Network) -> Peak:
    """Longest queues of a network from the start until slow start is long over."""
    until = latest(net) + rounds(net) / float(net.links[0].capacity)
    seen = packet_means(net, until=until)["links"][net.link_names[0]]
    return Peak(seen["number_in_system_max"], seen["queue_max"])


def utilization(net: Network) -> float:
    """Share of the time that the link is busy, after four cycles of congestion avoidance, each of
    half a window of growth, at least.
    """
    known, rate = numbers(net), float(net.links[0].capacity)
    turn = (known.threshold + known.whole + 2) ** 2 / 2 / rate
    start, rest = latest(net), 1000.0 / rate
    until, warmup = start + 8 * turn + rest, start + 4 * turn + rest / 2
    seen = packet_means(net, until=until, warmup=warmup)["links"]
    return float(seen[net.link_names[0]]["utilization"])
