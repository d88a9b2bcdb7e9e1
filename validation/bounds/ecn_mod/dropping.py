"""How many packets of TCP may be dropped, Misra and Ott (2003), section 1."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import numpy as np
import sympy as sp

from fluidcc.laws.feedback.loss import Loss
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.reaction import OncePerRTT, PerMark
from fluidcc.laws.symbolic import zero_drift
from fluidcc.laws.traffic import Bulk
from fluidcc.laws.window.newreno import NewReno
from fluidcc.laws.window.polynomial import AbstractTCP
from fluidcc.packets.accounts.moments import ratio
from fluidcc.scenario.network import Flows, Network, Start

from ...lab.bound import (
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
from ...lab.packet_runs import packet_means
from .sharing import steep

BELOW, ABOVE = "none up to 10 %", "some from 15 % on"
TIMEOUTS = "half of timer expiries and fast recoveries together are expiries"
IDLE = "utilisation 0.05 below that of the same flows told by marks"
UNEQUAL = "Jain's index of the goodputs below 0.9"
_FEW, _MANY = 0.10, 0.15  # of the packets
_LIMITS: Mapping[str, float] = {TIMEOUTS: 0.5, IDLE: 0.05, UNEQUAL: 0.1}
_WARMUP, _UNTIL = 30.0, 100.0  # s
_RECOVERS = 4  # least window with three duplicates of an ACK behind a loss


class Harm(NamedTuple):
    """Share of packets dropped, and what may follow.

    `timeouts` are expiries of the retransmission timer, repeated ones too, over expiries and fast
    recoveries; `idle` is by how much marks in place of drops use the link better; `unequal` is
    1 less Jain's index.
    """

    dropped: float
    timeouts: float
    idle: float
    unequal: float


class Dropping(AbstractBound):
    """Whether 10 to 15 % is where drops begin to do harm.

    Below 10 % Jain's index falls under 0.9 in few runs: in those in which timers that back off
    silence several flows. A quick search rarely meets one; one with a budget of 300 does.
    """

    id: ClassVar[str] = "ecn_mod.drops_do_harm"
    source: ClassVar[str] = "misra2003, section 1"
    claims: ClassVar[tuple[str, ...]] = ("EMOD-01",)
    statement: ClassVar[str] = "drops must be kept to 10 to 15 %: no harm below, harm above"
    hypotheses: ClassVar[tuple[str, ...]] = (
        "NewReno flows over gentle RED with p_max = 1, which drops",
        "a buffer of 150 packets, one run of 100 s",
        "expiries count each time, also those of a timer that backs off",
    )
    engine: ClassVar[str] = "packets"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {"side": (BELOW, ABOVE), "harm": (TIMEOUTS, IDLE, UNEQUAL)}
    )
    networks: ClassVar[tuple[str, ...]] = ("side",)
    readings: ClassVar[tuple[Mapping[str, str], ...]] = every(axes)
    quick: ClassVar[int] = 24
    clear: ClassVar[float] = 0.01

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """5 to 400 flows: of few, few packets are dropped, of many, many.

        The small values reach either limit at each of the round trips: that is where a side is
        hardest to keep.
        """
        few = definitions["side"] == BELOW
        low, high, simple = (5.0, 100.0, 10.0) if few else (40.0, 400.0, 100.0)
        edge = (30.0, 45.0, 90.0) if few else (60.0, 90.0, 150.0)
        return {
            "n": Range(low, high, simple, "whole", small=edge),
            "rtt": Range(0.05, 0.2, 0.1, "log", small=(0.05, 0.1, 0.2)),
        }

    def subject(self, point: Point, definitions: Definitions) -> Network:
        """TCP flows over one queue."""
        flows = Flows(
            NewReno(), n=np.array([point["n"]]), rtt=np.array([point["rtt"]]),
            reaction=OncePerRTT(), feedback=Loss(), access_delay=point["rtt"] / 4,
            start=Start(0.0, 5.0),
        )  # fmt: skip
        return steep("tcp", flows)

    def measure(self, subject: Network) -> Harm:
        """What is dropped, and what follows; a second run has marks in place of drops."""
        told = dataclasses.replace(subject.flows[0], feedback=MarkTail())
        pair = (subject, dataclasses.replace(subject, flows=(told,)))
        means, marked = (packet_means(net, until=_UNTIL, warmup=_WARMUP) for net in pair)
        name = subject.link_names[0]
        link, flows = means["links"][name], means["flows"][subject.flow_names[0]]
        timeouts = ratio(flows["timeouts"], flows["timeouts"] + flows["recoveries"])
        idle = marked["links"][name]["utilization"] - link["utilization"]
        return Harm(link["drop_fraction"], timeouts, idle, 1 - flows["jain"])

    def judge(self, subject: Network, measured: Harm, definitions: Definitions) -> Judged:
        """The harm, on the side of 10 to 15 % that is asked for."""
        kind = definitions["harm"]
        harms: dict[str, float] = dict(zip((TIMEOUTS, IDLE, UNEQUAL), measured[1:], strict=True))
        seen = harms[kind]
        if definitions["side"] == BELOW:
            inside, judged = 0 < measured.dropped <= _FEW, at_most(seen, _LIMITS[kind])
        else:
            inside, judged = measured.dropped >= _MANY, at_least(seen, _LIMITS[kind])
        return judged if inside else judged._replace(excess=float("nan"))

    def obstacle(self, net: Network) -> str:
        """It speaks of lasting TCP flows alone on one link that drops, and that they fill."""
        flows, link = net.flows[0], net.links[0]
        tcp = isinstance(flows.window, AbstractTCP) and isinstance(flows.feedback, Loss)
        crossed = float(link.cross) > 0 or link.voice is not None
        if len(net.links) > 1 or len(net.flows) > 1 or crossed or not tcp:
            return "it speaks of TCP flows alone on one link that drops"
        if not isinstance(flows.traffic, Bulk) or flows.start.high >= _WARMUP:
            return f"it speaks of bulk flows that have started by {_WARMUP:g} s"
        if _limited(net):
            return "it speaks of windows that drops limit, not the receiver's max_window"
        return ""

    def silent(self, measured: Harm) -> str:
        """Without drops, and between its limits."""
        if not measured.dropped > 0:
            return "it speaks of packets that are dropped, and none is"
        between = _FEW < measured.dropped < _MANY
        words = f"it says nothing of drops between its limits, {measured.dropped:.1%}"
        return words if between else ""

    def settled(self, measured: Harm) -> Definitions:
        """On which side its drops are."""
        return {"side": BELOW if measured.dropped <= _FEW else ABOVE}

    def derivation(self) -> tuple[Identity, ...]:
        """Three duplicates of an ACK, which replace a timeout, need a window of four packets."""
        (window,) = zero_drift(NewReno(), PerMark())
        p = sp.Symbol("p", positive=True)
        at = sp.Rational(1, 9)
        words = "TCP's window at one loss in nine packets"
        return (Identity(words, window.subs(p, at), _RECOVERS),)


def _limited(net: Network) -> bool:
    """Whether largest windows are too small to fill pipe and buffer, or for a fast recovery."""
    flows, link = net.flows[0], net.links[0]
    count, largest = float(np.sum(flows.n)), float(flows.window.max_window)
    pipe = float(link.capacity) * float(np.average(flows.rtt, weights=flows.n))
    return largest < _RECOVERS or count * largest < pipe + float(link.buffer)
