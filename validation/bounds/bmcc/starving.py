"""Who starves whom at a BMCC router, Qazi et al. (2010), section 4.2."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fluidcc.laws.feedback.load_factor import LoadFactorFeedback as Told
from fluidcc.laws.feedback.loss import Loss
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.queue.load_factor import LoadFactor
from fluidcc.laws.reaction import OncePerRTT
from fluidcc.laws.traffic import Bulk
from fluidcc.laws.window.bmcc import BMCC
from fluidcc.laws.window.sack import SACK
from fluidcc.packets.accounts.moments import ratio
from fluidcc.scenario.network import Flows, Link, Network, Start
from fluidcc.scenario.paths import replace

from ...lab.bound import AbstractBound, Definitions, Judged, Point, Range, at_most, every
from ...lab.packet_runs import packet_means

DROPS, ECN = "without ECN (figure 7)", "with ECN (figure 8)"
PAPER = "the paper's: 40 ms, a pipe of buffer, 3 and 3 flows; target utilisation 0.95 to 1"
LOWER = "the paper's, target utilisation 0.8 to 1"
ANY = "any numbers, round trips and buffers; target utilisation 0.95 to 1"
ANY_LOWER = "any numbers, round trips and buffers; target utilisation 0.8 to 1"
RATE, FLIGHT = "below a tenth of a SACK flow's rate", "two packets in flight"
_TENTH, _TWO = 0.1, 2.0
_TARGET, _LOWER = 0.95, 0.8  # least target utilisations
_SCENARIOS = {DROPS: "qazi2010/mix_bmcc_router", ECN: "qazi2010/mix_bmcc_router_ecn"}
_GAMMA = "links.bottleneck.queue.gamma"
_FIRST, _LAST = 30.0, 70.0  # s; SACK comes in between 10 and 12 s


class Shares(NamedTuple):
    """Goodput of a BMCC flow over that of a SACK flow, and packets that it has in flight."""

    ratio: float
    flight: float


class Starved(AbstractBound):
    """Whether SACK leaves nothing to BMCC."""

    id: ClassVar[str] = "bmcc.starved_by_sack"
    source: ClassVar[str] = "qazi2010, section 4.2, figures 7 and 8"
    claims: ClassVar[tuple[str, ...]] = ("BMCC-25", "BMCC-26")
    statement: ClassVar[str] = "at a BMCC router SACK flows completely starve BMCC flows"
    hypotheses: ClassVar[tuple[str, ...]] = (
        "means from 30 to 70 s, SACK flows from 10 to 12 s on",
        "the paper's: cross traffic of a tenth of the capacity both ways; else none",
    )
    engine: ClassVar[str] = "packets"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {"network": (PAPER, LOWER, ANY, ANY_LOWER), "sack": (DROPS, ECN), "starved": (RATE, FLIGHT)}
    )
    networks: ClassVar[tuple[str, ...]] = ("network", "sack")
    readings: ClassVar[tuple[Mapping[str, str], ...]] = every(
        {"network": (PAPER, LOWER, ANY), "sack": axes["sack"]}
    )
    quick: ClassVar[int] = 16
    clear: ClassVar[float] = 0.05

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """What the paper leaves open; any flows, and SACK at round trips of its own."""
        least = _LOWER if definitions["network"] in (LOWER, ANY_LOWER) else _TARGET
        gamma = Range(least, 1.0, 1.0, small=(1.0, least))
        if definitions["network"] in (PAPER, LOWER):
            return {"gamma": gamma}
        return {
            "bmcc": Range(1.0, 4.0, 3.0, "whole"),
            "sack": Range(1.0, 4.0, 3.0, "whole"),
            "rtt": Range(0.04, 0.2, 0.04, "log", small=(0.04, 0.1, 0.2)),
            "ratio": Range(0.25, 4.0, 1.0, "log", small=(1.0, 2.0)),
            "share": Range(20.0, 60.0, 37.5, "log"),  # of the pipe, for each flow
            "buffer": Range(0.25, 2.0, 1.0, "log", small=(0.5, 1.0)),  # pipes
            "gamma": gamma._replace(small=()),
        }

    def subject(self, point: Point, definitions: Definitions) -> Network:
        """The scenario of the figure, or two groups alone."""
        marks = definitions["sack"] == ECN
        if definitions["network"] in (PAPER, LOWER):
            return _of_figure(definitions["sack"], point["gamma"])
        rtt = point["rtt"]
        capacity = point["share"] * (point["bmcc"] + point["sack"]) / rtt
        shortest = rtt * min(1.0, point["ratio"])

        def group(law: Any, feedback: Any, name: str, trip: float, start: Start) -> Flows:
            return Flows(
                law, n=np.array([point[name]]), rtt=np.array([trip]), reaction=OncePerRTT(),
                feedback=feedback, access_delay=trip / 4, access_capacity=10 * capacity,
                start=start,
            )  # fmt: skip

        flows = (
            group(BMCC(), Told(), "bmcc", rtt, Start(0.0, 2.0)),
            group(SACK(), MarkTail() if marks else Loss(), "sack", rtt * point["ratio"],
                  Start(10.0, 12.0)),
        )  # fmt: skip
        room = float(max(1, round(point["buffer"] * capacity * rtt)))
        law = LoadFactor(gamma=point["gamma"])
        link = Link(law, capacity=capacity, packet_size=1000.0, buffer=room, delay=shortest / 8)
        return Network((link,), flows, flow_names=("bmcc", "sack"), source="qazi2010")

    def measure(self, subject: Network) -> Shares:
        """Mean goodput of a flow of each group, and the flight that BMCC's makes."""
        flows = packet_means(subject, until=_LAST, warmup=_FIRST)["flows"]
        bmcc, sack = (flows[subject.flow_names[k]] for k in _groups(subject))
        packets = bmcc["goodput"] / (8 * float(subject.links[0].packet_size))
        # without ACKs there is no mean round trip
        flight = packets * bmcc["rtt_mean"] if packets > 0 else 0.0
        return Shares(ratio(bmcc["goodput"], sack["goodput"]), flight)

    def judge(self, subject: Network, measured: Shares, definitions: Definitions) -> Judged:
        """The share, or the flight by Little's law."""
        if definitions["starved"] == RATE:
            return at_most(measured.ratio, _TENTH)
        return at_most(measured.flight, _TWO)

    def obstacle(self, net: Network) -> str:
        """What of section 4.2 a network is not."""
        link, groups = net.links[0], [net.flows[k] for k in _groups(net)]
        if not isinstance(link.queue, LoadFactor) or len(groups) != 2:
            return "it speaks of BMCC flows beside bulk SACK flows over a BMCC router"
        bmcc, sack = groups
        if not isinstance(bmcc.feedback, Told) or not isinstance(sack.feedback, Loss | MarkTail):
            return "it speaks of BMCC that load factors tell, and SACK that drops or marks tell"
        gamma = float(link.queue.gamma)
        if not _LOWER <= gamma <= 1.0:
            return f"it speaks of target utilisations from {_LOWER:g} to 1, not of {gamma:g}"
        if any(f.start.high >= _FIRST for f in groups):
            return f"it speaks of flows of both kinds that have started by {_FIRST:g} s"
        crossed = len(net.flows) > 2 or float(link.cross) > 0 or link.voice is not None
        if crossed and not _is_figure(net, _sack_told(sack), gamma):
            return "it speaks of both kinds alone, or with the paper's cross traffic and values"
        return ""

    def found_in(self, net: Network) -> Definitions:
        """Whether SACK has ECN, and whether all but gamma is the paper's."""
        told = _sack_told(net.flows[_groups(net)[1]])
        gamma = float(net.links[0].queue.gamma)  # type: ignore[attr-defined]
        kinds = (PAPER, LOWER) if _is_figure(net, told, gamma) else (ANY, ANY_LOWER)
        return {"network": kinds[gamma < _TARGET], "sack": told}


def _of_figure(sack: str, gamma: float) -> Network:
    """The scenario of a figure, at a target utilisation."""
    from fluidcc.scenario.files import load

    return replace(load(_SCENARIOS[sack]), {_GAMMA: gamma})


def _is_figure(net: Network, sack: str, gamma: float) -> bool:
    """Whether a network is the scenario of a figure, whatever its title."""
    from fluidcc.scenario.tables import tables

    own, paper = tables(net), tables(_of_figure(sack, gamma))
    return all(own[part] == paper[part] for part in ("links", "flows"))


def _sack_told(sack: Flows) -> str:
    return ECN if isinstance(sack.feedback, MarkTail) else DROPS


def _groups(net: Network) -> list[int]:
    """The first group of BMCC flows and the first of lasting SACK flows, those that there are."""
    lasting = [k for k, f in enumerate(net.flows) if isinstance(f.traffic, Bulk)]
    kinds = (BMCC, SACK)
    found = [[k for k in lasting if isinstance(net.flows[k].window, kind)] for kind in kinds]
    return [group[0] for group in found if group]
