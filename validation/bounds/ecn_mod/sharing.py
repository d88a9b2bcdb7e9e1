"""ECN-mod beside TCP and under many marks, Misra and Ott (2003)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
import sympy as sp

from fluidcc.laws.law import AbstractWindowLaw
from fluidcc.laws.marking import EqualWindow
from fluidcc.laws.queue.red import RED
from fluidcc.laws.reaction import OncePerRTT, PerMark
from fluidcc.laws.symbolic import parameter_symbols, zero_drift
from fluidcc.laws.window.ecn_mod import ECNMod
from fluidcc.laws.window.newreno import NewReno
from fluidcc.scenario.network import Flows, Link, Network, Start

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
    within,
)
from ...lab.packet_runs import packet_means
from .marks import Marked, member
from .senders import means, resting

MARK, TRIP = "a halving per mark", "one halving per round trip"
REST, ACKS, TIME = "zero drift", "over ACKs", "over time"
_CAPACITY = 1250.0  # packet/s


class Windows(NamedTuple):
    """Windows of ECN-mod and of two TCPs, by how they are averaged [packet]."""

    mod: Mapping[str, float]
    per_mark: Mapping[str, float]
    per_trip: Mapping[str, float]


class EqualWindows(AbstractBound):
    """Whether eq. 7 makes windows equal."""

    id: ClassVar[str] = "ecn_mod.equal_windows"
    source: ClassVar[str] = "misra2003, eq. 7"
    claims: ClassVar[tuple[str, ...]] = ("EMOD-07",)
    statement: ClassVar[str] = "under eq. 7 ECN-mod and TCP have the same average window (to 5 %)"
    hypotheses: ClassVar[tuple[str, ...]] = ("c2 = 1/8", "independent marks")
    engine: ClassVar[str] = "rules"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {"tcp": (MARK, TRIP), "average": (REST, ACKS, TIME)}
    )
    readings: ClassVar[tuple[Mapping[str, str], ...]] = every(axes)
    quick: ClassVar[int] = 6
    clear: ClassVar[float] = 0.01

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """Members of the figures; marks that leave windows above a few packets."""
        return {
            "c1": Range(0.0625, 0.25, 0.0625, "log"),
            "p": Range(0.02, 0.2, 0.05, "log", small=(0.02, 0.1)),
        }

    def subject(self, point: Point, definitions: Definitions) -> Marked:
        """A member, and the probability of TCP's marks."""
        return Marked(**point)

    def measure(self, subject: Marked) -> Windows:
        """All three windows."""
        law = member(subject.c1)
        mapped = float(EqualWindow().probability(subject.p, law))
        tcp: AbstractWindowLaw = NewReno()
        pairs = ((law, PerMark(), mapped), (tcp, PerMark(), subject.p),
                 (tcp, OncePerRTT(growth="clean"), subject.p))  # fmt: skip
        out = []
        for one, reaction, p in pairs:
            mean = means(one, reaction, p)
            rest = resting(one, reaction, p)
            out.append({REST: rest, ACKS: mean.acks, TIME: mean.time})
        return Windows(*out)

    def judge(self, subject: Marked, measured: Windows, definitions: Definitions) -> Judged:
        """ECN-mod's window over TCP's."""
        average = definitions["average"]
        tcp = measured.per_mark if definitions["tcp"] == MARK else measured.per_trip
        return within(measured.mod[average] / tcp[average], 1.0, 0.05)

    def derivation(self) -> tuple[Identity, ...]:
        """At the mapped probability the drift vanishes at TCP's window; p = 1/(1 + s)."""
        law, p, s = ECNMod(), sp.Symbol("p", positive=True), sp.Symbol("s", positive=True)
        mapped = EqualWindow().probability(1 / (1 + s), ECNMod(**parameter_symbols(law)))
        (tcp,) = zero_drift(NewReno(), PerMark())
        (own,) = zero_drift(law, PerMark())
        words = "ECN-mod's window at eq. 7, by the odds (1 - p)/p = s"
        return (Identity(words, own.subs(p, mapped), tcp.subs(p, 1 / (1 + s))),)


class EqualGoodput(AbstractBound):
    """Whether eq. 7 makes goodputs equal in packets."""

    id: ClassVar[str] = "ecn_mod.equal_goodput"
    source: ClassVar[str] = "misra2003, eq. 7 and section 5"
    claims: ClassVar[tuple[str, ...]] = ("EMOD-29",)
    statement: ClassVar[str] = "under eq. 7 ECN-mod and TCP flows get the same goodput (to 10 %)"
    hypotheses: ClassVar[tuple[str, ...]] = ("equal round trips", "one RED queue", "200 s")
    engine: ClassVar[str] = "packets"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType({"tcp": (MARK, TRIP)})
    networks: ClassVar[tuple[str, ...]] = ("tcp",)
    readings: ClassVar[tuple[Mapping[str, str], ...]] = ({"tcp": TRIP}, {"tcp": MARK})
    quick: ClassVar[int] = 15
    clear: ClassVar[float] = 0.05

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """Five to twenty flows of each kind."""
        return {
            "n": Range(5.0, 20.0, 10.0, "whole"),
            "rtt": Range(0.04, 0.25, 0.1, "log"),
            "c1": Range(0.0625, 0.25, 0.0625, "log"),
        }

    def subject(self, point: Point, definitions: Definitions) -> Network:
        """Both kinds over one queue."""
        count, rtt = np.array([point["n"]]), np.array([point["rtt"]])
        reaction = PerMark() if definitions["tcp"] == MARK else OncePerRTT()
        common: dict[str, Any] = {
            "n": count, "rtt": rtt, "access_delay": point["rtt"] / 4, "start": Start(0.0, 5.0)
        }  # fmt: skip
        mod = Flows(member(point["c1"]), reaction=PerMark(), marking=EqualWindow(), **common)
        tcp = Flows(NewReno(), reaction=reaction, **common)
        law = RED(min_th=20.0, max_th=60.0, p_max=0.2, gentle=True)
        link = Link(law, capacity=_CAPACITY, delay=point["rtt"] / 8, buffer=120.0)
        return Network((link,), (mod, tcp), flow_names=("mod", "newreno"), source="misra2003")

    def measure(self, subject: Network) -> tuple[float, ...]:
        """Mean goodput of a flow of each kind."""
        flows = packet_means(subject, until=200.0, warmup=50.0)["flows"]
        return tuple(flows[name]["goodput"] for name in _two(subject))

    def judge(
        self, subject: Network, measured: tuple[float, ...], definitions: Definitions
    ) -> Judged:
        """TCP's goodput over ECN-mod's."""
        return within(measured[1] / measured[0], 1.0, 0.1)

    def obstacle(self, net: Network) -> str:
        """It speaks of both kinds, under eq. 7 and with the same round trips."""
        kinds = [isinstance(f.window, ECNMod) for f in net.flows]
        if len(kinds) != 2 or sum(kinds) != 1:
            return "it speaks of ECN-mod flows beside TCP flows"
        mod = net.flows[kinds.index(True)]
        same = np.array_equal(net.flows[0].rtt, net.flows[1].rtt)
        mapped = isinstance(mod.marking, EqualWindow)
        return "" if same and mapped else "it speaks of equal round trips, and marks by eq. 7"

    def found_in(self, net: Network) -> Definitions:
        """How TCP reacts."""
        tcp = net.flows[net.flow_names.index(_two(net)[1])]
        return {"tcp": MARK if isinstance(tcp.reaction, PerMark) else TRIP}


def _two(net: Network) -> tuple[str, str]:
    """Names of the ECN-mod flows and of the others."""
    k = next(k for k, f in enumerate(net.flows) if isinstance(f.window, ECNMod))
    return net.flow_names[k], net.flow_names[1 - k]


def steep(name: str, flows: Flows) -> Network:
    """One group over gentle RED that marks or drops every packet where it has to."""
    law = RED(min_th=25.0, max_th=75.0, p_max=1.0, gentle=True)
    link = Link(law, capacity=_CAPACITY, delay=float(flows.rtt[0]) / 8, buffer=150.0)
    return Network((link,), (flows,), flow_names=(name,), source="misra2003")


class FullMarking(AbstractBound):
    """Whether any share of marks does no harm."""

    id: ClassVar[str] = "ecn_mod.marks_do_no_harm"
    source: ClassVar[str] = "misra2003, section 1"
    claims: ClassVar[tuple[str, ...]] = ("EMOD-01", "EMOD-22")
    statement: ClassVar[str] = "up to 100 % of the packets may be marked without harm"
    hypotheses: ClassVar[tuple[str, ...]] = (
        "ECN-mod flows over gentle RED with p_max = 1", "a buffer of 150 packets, 100 s",
    )  # fmt: skip
    engine: ClassVar[str] = "packets"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {"harm": ("utilisation below 0.95", "more than 0.1 % lost")}
    )
    readings: ClassVar[tuple[Mapping[str, str], ...]] = every(axes)
    quick: ClassVar[int] = 12
    clear: ClassVar[float] = 0.001

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """Up to 400 flows."""
        return {
            "n": Range(5.0, 400.0, 50.0, "whole"),
            "rtt": Range(0.05, 0.2, 0.1, "log"),
        }

    def subject(self, point: Point, definitions: Definitions) -> Network:
        """ECN-mod flows over one queue."""
        flows = Flows(
            member(0.0625), n=np.array([point["n"]]), rtt=np.array([point["rtt"]]),
            marking=EqualWindow(), access_delay=point["rtt"] / 4, start=Start(0.0, 5.0),
        )  # fmt: skip
        return steep("mod", flows)

    def measure(self, subject: Network) -> tuple[float, float]:
        """Use of the link, and the share of packets lost."""
        means = packet_means(subject, until=100.0, warmup=30.0)
        link = means["links"][subject.link_names[0]]
        return link["utilization"], link["drop_fraction"]

    def judge(
        self, subject: Network, measured: tuple[float, float], definitions: Definitions
    ) -> Judged:
        """Use or losses."""
        if definitions["harm"] == "more than 0.1 % lost":
            return at_most(measured[1], 0.001)
        return at_least(measured[0], 0.95)

    def obstacle(self, net: Network) -> str:
        """It speaks of ECN-mod flows alone on one link."""
        alone = len(net.links) == 1 and all(isinstance(f.window, ECNMod) for f in net.flows)
        return "" if alone else "it speaks of ECN-mod flows alone on one link"
