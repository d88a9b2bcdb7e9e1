"""What Govindaswamy et al. (2012) state about receiver-window modification."""

from typing import Any

import numpy as np
import sympy as sp

from fluidcc.laws.feedback.receiver_window import ReceiverWindow
from fluidcc.laws.law import Arrival
from fluidcc.laws.queue.red import RED
from fluidcc.laws.reaction import OncePerRTT
from fluidcc.laws.window.reno import Reno
from fluidcc.scenario.network import Flows, Link, Network, Start

from ..lab.bound import Identity, Range, at_most, bound, packet_means, within

ANY, FITTING = "any", "at most half a packet each beyond pipe and min_th"
_CAPACITY, _MIN, _MAX = 187.5, 5.0, 15.0  # packet/s, packets: section 4.1
_ABOUT = 0.2  # of min_th
_FEW = 0.001  # of the packets


def _sources(definitions):
    """2 to 30 sources; the recommended p_max."""
    p_max = Range(0.3, 1.0, 1.0)
    if definitions["windows"] == ANY:
        rtt, cap = Range(0.02, 0.3, 0.068, "log"), Range(2.0, 100.0, 100.0, "log")
        return {"n": Range(2.0, 30.0, 4.0, "whole"), "cap": cap, "rtt": rtt, "p_max": p_max}
    cap, spare = Range(3.0, 20.0, 5.0, "whole"), Range(0.0, 0.5, 0.0)
    return {"n": Range(4.0, 30.0, 4.0, "whole"), "cap": cap, "spare": spare, "p_max": p_max}


def _over_red(point, definitions):
    """Reno flows over RED that modifies ACKs, with windows that the receiver limits."""
    n, cap = point["n"], float(round(point["cap"]))
    beyond = _MIN + 1 + n * point.get("spare", 0.0)  # one packet in service
    rtt = point.get("rtt", (n * cap - beyond) / _CAPACITY)
    flows = Flows(
        Reno(max_window=cap), n=np.array([n]), rtt=np.array([rtt]), reaction=OncePerRTT(),
        feedback=ReceiverWindow(), access_delay=rtt / 4, start=Start(0.0, 1.0),
    )  # fmt: skip
    law = RED(min_th=_MIN, max_th=_MAX, p_max=point["p_max"], w_q=0.002)
    link = Link(law, capacity=_CAPACITY, packet_size=1000.0, delay=rtt / 8, buffer=35.0)
    return Network((link,), (flows,), source="govindaswamy2012")


def _link_means(net):
    return packet_means(net, until=150.0, warmup=30.0)["links"][net.link_names[0]]


def _unmodified(net):
    red = isinstance(net.links[0].queue, RED)
    modified = all(isinstance(f.feedback, ReceiverWindow) for f in net.flows)
    return "" if red and modified else "it speaks of RED that modifies ACKs"


def _windows(net):
    """Whether windows fit pipe and min_th."""
    link = net.links[0]
    space, most = float(link.queue.min_th), 0.0
    for f in net.flows:
        count = float(np.sum(f.n))
        space += float(link.capacity) * float(np.mean(f.rtt)) + count / 2
        most += count * float(f.window.max_window)
    return {"windows": FITTING if most <= space else ANY}


_COMMON: dict[str, Any] = {
    "engine": "packets", "axes": {"windows": (ANY, FITTING)}, "quick": 30, "clear": 0.005,
    "ranges": _sources, "subject": _over_red, "measure": _link_means, "obstacle": _unmodified,
    "found_in": _windows,
}  # fmt: skip


def _linear_part():
    """The average at which RED says p, in its linear part."""
    least, span, top, u = sp.symbols("min_th span p_max u", positive=True)
    law = RED(min_th=least, max_th=least + span, p_max=top)
    average = least + span * u  # above min_th
    said = law.base(average, Arrival(1, 0, average, 1))
    return (Identity("p at min_th + u (max_th - min_th)", said, top * sp.Min(1, u)),)


@bound(
    "rwm.average_queue", "govindaswamy2012, section 3",
    "the average queue is approximately min_th (to 20 %)", claims=("RWM-05",),
    hypotheses=("p_max from 0.3 to 1", "RED with 5 and 15 packets"), derivation=_linear_part,
    **_COMMON,
)  # fmt: skip
def average_queue(net, link, definitions):
    """The mean of what waits, over min_th."""
    return within(link["queue_mean"] / float(net.links[0].queue.min_th), 1.0, _ABOUT)


@bound(
    "rwm.recommended_p_max", "govindaswamy2012, section 3",
    "with p_max from 0.3 to 1 modified ACKs suffice: 0.1 % are dropped", claims=("RWM-07",),
    hypotheses=("RED with 5 and 15 packets",), **_COMMON,
)  # fmt: skip
def recommended_p_max(net, link, definitions):
    """Share of the packets dropped."""
    return at_most(link["drop_fraction"], _FEW)
