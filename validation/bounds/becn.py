"""What Akujobi et al. (2002) state about backward notification."""

from typing import Any

import numpy as np
import sympy as sp

from fluidcc.laws.feedback.backward import Backward
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.law import PathTimes
from fluidcc.laws.queue.red import RED
from fluidcc.laws.reaction import Pause, PerMark, Refractory
from fluidcc.laws.window.becn import BECN
from fluidcc.scenario.network import Flows, Link, Network, Start

from ..lab.bound import Identity, Range, at_least, at_most, bound, packet_means
from ..lab.formulas import zero_drift

HALF, SOONER = "ECN waits more than half a round trip", "quenches are heard before marks"
EARLY, ANYWHERE = "in the first half of the way there", "anywhere"
_REACTIONS: dict[str, Any] = {
    "enhanced": Pause(), "without the pause": Refractory(), "every quench": PerMark()
}  # fmt: skip


def _age_difference():
    """A mark is younger than a quench where the way there is longer than what follows."""
    there, back, queueing = sp.symbols("f b w", positive=True)
    way = PathTimes(there + back + queueing, there, queueing, there)
    gained = MarkTail().age(way) - Backward().age(way)
    return (Identity("age of marks less that of quenches", gained, back + queueing - there),)


@bound(
    "becn.sooner", "akujobi2002, sections II.B and VI.A",
    "BECN notifies faster; ECN waits more than half a round trip", claims=("BECN-08",),
    axes={"router": (ANYWHERE, EARLY), "compared": (HALF, SOONER)}, judged=("compared",), quick=90,
    ranges=lambda definitions: {
        "before": Range(0.01, 0.5 if definitions["router"] == EARLY else 0.99, 0.25),
        "queueing": Range(0.0, 2.0, 0.0),
    },
    derivation=_age_difference,
)  # fmt: skip
def sooner(router, measured, definitions):
    """Ages in round trips of propagation, at a router by its share of the way, and its queueing."""
    before, queueing = router["before"], router["queueing"]
    way = PathTimes(1 + queueing, before, queueing, before)
    mark = MarkTail().age(way)
    if definitions["compared"] == HALF:
        return at_least(mark, way.round_trip / 2)
    return at_most(Backward().age(way), mark)


def _becn_flows(point, definitions):
    flows = Flows(
        BECN(), n=np.array([point["n"]]), rtt=np.array([point["rtt"]]),
        reaction=_REACTIONS[definitions["reaction"]], feedback=Backward(),
        access_delay=point["rtt"] / 8, start=Start(0.0, 5.0),
    )  # fmt: skip
    law = RED(min_th=30.0, max_th=90.0, p_max=point["p_max"], w_q=0.002)
    link = Link(law, capacity=1250.0, delay=point["rtt"] / 8, buffer=180.0)
    return Network((link,), (flows,), source="akujobi2002")


def _reactions_and_trips(net):
    """Reactions of one flow after the first 10 s, and its round trips in the same time."""
    seen = packet_means(net, until=100.0, warmup=10.0)["flows"][net.flow_names[0]]
    return seen["window_reductions"] / float(np.sum(net.flows[0].n)), 90.0 / seen["rtt_mean"]


def _other_flows(net):
    only = len(net.flows) == 1 and isinstance(net.flows[0].window, BECN)
    return "" if only else "it speaks of one group of BECN flows"


def _reaction(net):
    kinds = {"pause": "enhanced", "refractory": "without the pause"}
    return {"reaction": kinds.get(net.flows[0].reaction.name, "every quench")}


def _window_with_pause():
    """The pause changes no window at rest."""
    (paused,) = zero_drift(BECN(), Pause())
    window = sp.sqrt(2 / sp.Symbol("p", positive=True))
    return (Identity("window at rest with the pause", paused, window),)


@bound(
    "becn.reactions", "akujobi2002, sections II.A and IV.B",
    "a sender reacts at most once per round trip", claims=("BECN-06",),
    hypotheses=("BECN flows over RED, 100 s",), engine="packets",
    axes={"reaction": tuple(_REACTIONS)}, quick=24,
    ranges={
        "n": Range(1.0, 45.0, 15.0, "whole"),
        "rtt": Range(0.03, 0.5, 0.088, "log"),
        "p_max": Range(0.05, 1.0, 0.1, "log"),
    },
    subject=_becn_flows, measure=_reactions_and_trips, obstacle=_other_flows, found_in=_reaction,
    derivation=_window_with_pause,
)  # fmt: skip
def reactions(net, measured, definitions):
    """Reactions per round trip."""
    count, trips = measured
    return at_most(count / trips, 1.0)
