"""One connection over a link that marks all packets beyond a threshold, and its numbers."""

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
from fluidcc.ops import Num
from fluidcc.scenario.network import Flows, Link, Network

from ...lab.bound import Definitions, Point, Range

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


def link_of(threshold: float, definitions: Definitions, *, buffer: float, pipe: float) -> Link:
    """The link; `pipe` is that of the propagation [packet]."""
    law = Threshold(at=threshold, when=definitions["when"], counts=definitions["counts"])
    return Link(law, capacity=RATE, packet_size=1000.0, delay=pipe / RATE / 4, buffer=buffer)


def connection(
    threshold: float, pipe: float, access: float, definitions: Definitions,
    *, buffer: float = math.inf,
) -> Network:  # fmt: skip
    """One connection; `access` is the rate of its access link in that of the link."""
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
    link = link_of(threshold, definitions, buffer=buffer, pipe=pipe)
    return Network((link,), (flows,), source="durresi2001")


def access_ranges(definitions: Definitions) -> dict[str, Range]:
    """The speed of the access link, unless it is settled [rates of the link]."""
    if definitions["access"] == ENDLESS:
        return {}
    low = 2.0 if definitions["access"] == FAST else 1.05
    small = (2.0, 4.0) if low == 2.0 else (1.05, 1.2, 1.5, 1.9)
    return {"access": Range(low, 2 * low + 1, 2.0 if low == 2.0 else 1.5, "log", small=small)}


def access_at(point: Point) -> float:
    """The speed of the access link at a point of a search."""
    return point.get("access", math.inf)


def numbers(net: Network) -> Numbers:
    """A network in packets."""
    link, flows = net.links[0], net.flows[0]
    rate = float(link.capacity)
    propagation = rate * float(np.max(flows.rtt))
    path = propagation + rate / float(flows.access_capacity)
    return Numbers(float(link.queue.at), propagation, path, path + 1)  # type: ignore[attr-defined]


def found_in(net: Network) -> dict[str, str]:
    """The definitions that a network of one connection settles."""
    from fluidcc.scenario.sender_options import sender_options

    link, flows = net.links[0], net.flows[0]
    law, told = link.queue, flows.feedback
    rules, speed = sender_options(flows.sender), float(flows.access_capacity / link.capacity)
    marks = TAIL if isinstance(told, MarkTail) else END if told.when == "end" else FRONT  # type: ignore[attr-defined]
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


def rounds(threshold: float, pipe: float) -> float:
    """Packet times after which slow start and its longest queue are long over."""
    return (math.log2(threshold + pipe + 2) + 6) * (pipe + threshold + 2) + RATE


def cycle(threshold: float, pipe: float) -> float:
    """Packet times of half a window of growth in congestion avoidance."""
    return (threshold + pipe + 2) ** 2 / 2
