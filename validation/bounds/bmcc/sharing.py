"""How flows of different round trips share a link, Qazi et al. (2010)."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
import sympy as sp

from fluidcc.laws.feedback.load_factor import LoadFactorFeedback as Told
from fluidcc.laws.feedback.loss import Loss
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.queue.load_factor import LoadFactor
from fluidcc.laws.queue.red import RED
from fluidcc.laws.reaction import OncePerRTT
from fluidcc.laws.window.bmcc import BMCC
from fluidcc.laws.window.sack import SACK
from fluidcc.scenario.network import Flows, Link, Network

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

TICKS, TRIPS = "once per t_p", "once per round trip (eq. 5 by the letter)"
ANY, SHORT = "any", "at most t_p"


class Rates(NamedTuple):
    """Rates of two flows [bit/s]."""

    first: float
    second: float


class EqualRates(AbstractBound):
    """Whether flows of different round trips come to equal rates."""

    id: ClassVar[str] = "bmcc.equal_rates"
    source: ClassVar[str] = "qazi2010, eq. 4"
    claims: ClassVar[tuple[str, ...]] = ("BMCC-08",)
    statement: ClassVar[str] = "flows of different round trips have equal rates (within 10 %)"
    hypotheses: ClassVar[tuple[str, ...]] = ("one BMCC router, two BMCC flows, 300 s",)
    engine: ClassVar[str] = "packets"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {"decreases": (TICKS, TRIPS), "round_trips": (ANY, SHORT)}
    )
    networks: ClassVar[tuple[str, ...]] = ("decreases", "round_trips")
    readings: ClassVar[tuple[Mapping[str, str], ...]] = (
        {"decreases": TRIPS}, {"decreases": TICKS}, {"decreases": TICKS, "round_trips": SHORT},
    )  # fmt: skip
    quick: ClassVar[int] = 12
    clear: ClassVar[float] = 0.05

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """Round trips from 40 ms to 800 ms, or up to t_p, 200 ms."""
        short = definitions["round_trips"] == SHORT
        return {
            "rtt": Range(0.04, 0.1 if short else 0.2, 0.1, "log"),
            "ratio": Range(1.0, 2.0 if short else 4.0, 2.0, "log"),
            "capacity": Range(300.0, 1500.0, 500.0, "log"),
        }

    def subject(self, point: Point, definitions: Definitions) -> Network:
        """Two flows."""
        trips = [point["rtt"], point["rtt"] * point["ratio"]]
        law = BMCC(md="per_tp" if definitions["decreases"] == TICKS else "per_rtt")
        groups = tuple(
            Flows(law, n=np.ones(1), rtt=np.array([t]), reaction=OncePerRTT(), feedback=Told(),
                  access_delay=t / 4)
            for t in trips
        )  # fmt: skip
        capacity = point["capacity"]
        link = Link(
            LoadFactor(), capacity=capacity, packet_size=1000.0, buffer=float(round(capacity)),
            delay=trips[0] / 8,
        )  # fmt: skip
        return Network((link,), groups, flow_names=("near", "far"), source="qazi2010")

    def measure(self, subject: Network) -> Rates:
        """Goodputs in the second half of 300 s."""
        return goodputs(subject, until=300.0, warmup=150.0)

    def judge(self, subject: Network, measured: Rates, definitions: Definitions) -> Judged:
        """The larger rate over the smaller one."""
        return at_most(max(measured) / min(measured), 1.1)

    def obstacle(self, net: Network) -> str:
        """Two groups of BMCC flows over one BMCC router."""
        own = [f for f in net.flows if isinstance(f.window, BMCC) and f.feedback.loads]
        if len(net.flows) != 2 or len(own) != 2 or not isinstance(net.links[0].queue, LoadFactor):
            return "it speaks of two groups of BMCC flows over a BMCC router"
        return ""

    def found_in(self, net: Network) -> Definitions:
        """How often the first group decreases."""
        law: Any = net.flows[0].window
        longest = max(float(np.max(f.rtt)) for f in net.flows)
        return {
            "decreases": TICKS if law.md == "per_tp" else TRIPS,
            "round_trips": SHORT if longest <= float(law.t_p) else ANY,
        }


def goodputs(net: Network, *, until: float, warmup: float) -> Rates:
    """Mean goodput of the flows of the first two groups."""
    flows = packet_means(net, until=until, warmup=warmup)["flows"]
    return Rates(*(flows[name]["goodput"] for name in net.flow_names[:2]))


class Exponent(AbstractBound):
    """How throughput falls with the round trip."""

    id: ClassVar[str] = "bmcc.sack_exponent"
    source: ClassVar[str] = "qazi2010, section 5.2"
    claims: ClassVar[tuple[str, ...]] = ("BMCC-35",)
    statement: ClassVar[str] = "SACK flows get 1/RTT^z with 1 <= z <= 2"
    hypotheses: ClassVar[tuple[str, ...]] = ("two SACK flows share a link, 200 s",)
    engine: ClassVar[str] = "packets"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {"queue": ("droptail", "RED with ECN"), "round_trip": ("measured", "propagation")}
    )
    networks: ClassVar[tuple[str, ...]] = ("queue",)
    readings: ClassVar[tuple[Mapping[str, str], ...]] = every(axes)
    quick: ClassVar[int] = 12
    clear: ClassVar[float] = 0.05

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """Round trips from 20 ms to 400 ms, buffers from half a pipe to two."""
        return {
            "rtt": Range(0.02, 0.1, 0.05, "log"),
            "ratio": Range(1.5, 4.0, 2.0, "log"),
            "capacity": Range(500.0, 2500.0, 1000.0, "log"),
            "buffer": Range(0.5, 2.0, 1.0, "log"),
        }

    def subject(self, point: Point, definitions: Definitions) -> Network:
        """Two flows."""
        trips = [point["rtt"], point["rtt"] * point["ratio"]]
        room = float(round(point["buffer"] * point["capacity"] * trips[1]))
        red = definitions["queue"] != "droptail"
        law = RED(min_th=room / 6, max_th=room / 2, gentle=True) if red else Droptail()
        groups = tuple(
            Flows(SACK(), n=np.ones(1), rtt=np.array([t]), reaction=OncePerRTT(),
                  feedback=MarkTail() if red else Loss(), access_delay=t / 4,
                  sender=(("overhead", 1.0 / point["capacity"]),))
            for t in trips
        )  # fmt: skip
        link = Link(
            law, capacity=point["capacity"], packet_size=1000.0, buffer=room, delay=trips[0] / 8
        )
        return Network((link,), groups, flow_names=("near", "far"), source="qazi2010")

    def measure(self, subject: Network) -> tuple[Rates, Rates]:
        """Goodputs and measured round trips."""
        flows = packet_means(subject, until=200.0, warmup=50.0, seeds=(1, 2))["flows"]
        means = [flows[name] for name in subject.flow_names[:2]]
        rates, trips = ([m[key] for m in means] for key in ("goodput", "rtt_mean"))
        return Rates(*rates), Rates(*trips)

    def judge(
        self, subject: Network, measured: tuple[Rates, Rates], definitions: Definitions
    ) -> Judged:
        """The exponent from the two flows; the nearer end of [1, 2] is the bound."""
        rates, trips = measured
        if definitions["round_trip"] == "propagation":
            trips = Rates(*(float(f.rtt[0]) for f in subject.flows[:2]))
        z = math.log(rates.first / rates.second) / math.log(trips.second / trips.first)
        return at_least(z, 1.0) if z < 1.5 else at_most(z, 2.0)

    def obstacle(self, net: Network) -> str:
        """Two groups of SACK flows."""
        sack = all(isinstance(f.window, SACK) for f in net.flows)
        apart = len(net.flows) == 2 and float(net.flows[0].rtt[0]) != float(net.flows[1].rtt[0])
        return "" if sack and apart else "it speaks of two SACK flows of different round trips"

    def found_in(self, net: Network) -> Definitions:
        """Its queue."""
        red = not isinstance(net.links[0].queue, Droptail)
        return {"queue": "RED with ECN" if red else "droptail"}

    def derivation(self) -> tuple[Identity, ...]:
        """Equal signals give equal windows, so z = 1 in the measured round trip."""
        from fluidcc.laws.reaction import PerMark
        from fluidcc.laws.symbolic import zero_drift

        (window,) = zero_drift(SACK(), PerMark())
        trip = sp.Symbol("R", positive=True)
        z = -sp.diff(sp.log(window / trip), trip) * trip
        return (Identity("z at one marking probability", z, 1),)
