"""How many packets of TCP may be dropped, Misra and Ott (2003), section 1."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import numpy as np
import sympy as sp

from fluidcc.bounds.bound import (
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
from fluidcc.bounds.ecn_mod.sharing import steep
from fluidcc.bounds.packet_runs import packet_means
from fluidcc.laws.feedback.loss import Loss
from fluidcc.laws.reaction import OncePerRTT, PerMark
from fluidcc.laws.window.newreno import NewReno
from fluidcc.laws.window.polynomial import AbstractTCP
from fluidcc.network import Flows, Network, Start
from fluidcc.symbolic import zero_drift

BELOW, ABOVE = "none up to 10 %", "some from 15 % on"
TIMEOUTS = "half of the recoveries are timeouts"
IDLE = "utilisation below 0.95"
UNEQUAL = "Jain's index of the goodputs below 0.9"
_FEW, _MANY = 0.10, 0.15  # of the packets
_LIMITS: Mapping[str, float] = {TIMEOUTS: 0.5, IDLE: 0.05, UNEQUAL: 0.1}


class Harm(NamedTuple):
    """Share of packets dropped; of recoveries that are timeouts; idle time; 1 - Jain's index."""

    dropped: float
    timeouts: float
    idle: float
    unequal: float


class Dropping(AbstractBound):
    """Whether 10 to 15 % is where drops begin to do harm."""

    id: ClassVar[str] = "ecn_mod.drops_do_harm"
    source: ClassVar[str] = "misra2003, section 1"
    claims: ClassVar[tuple[str, ...]] = ("EMOD-01",)
    statement: ClassVar[str] = "drops must be kept to 10 to 15 %: no harm below, harm above"
    hypotheses: ClassVar[tuple[str, ...]] = (
        "NewReno flows over gentle RED with p_max = 1, which drops",
        "a buffer of 150 packets, 100 s",
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
        """5 to 400 flows: of few, few packets are dropped, of many, many."""
        few = definitions["side"] == BELOW
        low, high, simple = (5.0, 100.0, 10.0) if few else (40.0, 400.0, 100.0)
        return {
            "n": Range(low, high, simple, "whole"),
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
        """What is dropped, and what follows."""
        means = packet_means(subject, until=100.0, warmup=30.0)
        link = means["links"][subject.link_names[0]]
        flows = means["flows"][subject.flow_names[0]]
        turns = flows["timeouts"] + flows["recoveries"]
        timeouts = flows["timeouts"] / turns if turns else 0.0
        return Harm(link["drop_fraction"], timeouts, 1 - link["utilization"], 1 - flows["jain"])

    def judge(self, subject: Network, measured: Harm, definitions: Definitions) -> Judged:
        """The harm, on the side of 10 to 15 % that is asked for."""
        kind = definitions["harm"]
        harms: dict[str, float] = dict(zip((TIMEOUTS, IDLE, UNEQUAL), measured[1:], strict=True))
        seen = harms[kind]
        if definitions["side"] == BELOW:
            inside, judged = measured.dropped <= _FEW, at_most(seen, _LIMITS[kind])
        else:
            inside, judged = measured.dropped >= _MANY, at_least(seen, _LIMITS[kind])
        return judged if inside else judged._replace(excess=float("nan"))

    def obstacle(self, net: Network) -> str:
        """It speaks of TCP flows alone on one link that drops."""
        flows = net.flows[0]
        tcp = isinstance(flows.window, AbstractTCP) and isinstance(flows.feedback, Loss)
        if len(net.links) > 1 or len(net.flows) > 1 or not tcp:
            return "it speaks of TCP flows alone on one link that drops"
        dropped = self.measure(net).dropped
        between = _FEW < dropped < _MANY
        return f"it says nothing of drops between its limits, {dropped:.1%}" if between else ""

    def found_in(self, net: Network) -> Definitions:
        """On which side its drops are."""
        return {"side": BELOW if self.measure(net).dropped <= _FEW else ABOVE}

    def derivation(self) -> tuple[Identity, ...]:
        """Three duplicates of an ACK, which replace a timeout, need a window of four packets."""
        (window,) = zero_drift(NewReno(), PerMark())
        p = sp.Symbol("p", positive=True)
        at = sp.Rational(1, 9)
        return (Identity("TCP's window at one loss in nine packets", window.subs(p, at), 4),)
