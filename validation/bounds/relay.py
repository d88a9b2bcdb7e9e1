"""Closed forms of the cycles under step marking against the laws' own cycle."""

import math
from typing import NamedTuple

import numpy as np
import sympy as sp

from fluidcc.laws.feedback.mark_front import MarkFront
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.law import Ack
from fluidcc.laws.queue.threshold import Threshold
from fluidcc.laws.reaction import OncePerRTT, PerMark
from fluidcc.laws.window.ecn_mod import ECNMod
from fluidcc.laws.window.reno import Reno
from fluidcc.ops import Num, exp, log, sqrt
from fluidcc.scenario.network import Flows, Link, Network

from ..lab.bound import Identity, Range, bound, within
from ..relay_cycle import relay_cycle
from .one_connection import FRONT, RATE, TAIL, feedback

LINEAR, TCP, ONCE = "ECN-mod", "TCP, a halving per mark", "TCP, one halving"
_AGREE = 1e-8
_LAWS = {LINEAR: (ECNMod(), PerMark()), TCP: (Reno(), PerMark()), ONCE: (Reno(), OncePerRTT())}


class Cycle(NamedTuple):
    """Largest and least window [packet], period [s]."""

    top: Num
    low: Num
    period: Num


def _closed(law, crossing, delay, pace, c1, c2):
    """The cycle of a law whose windows cross the step at `crossing`; `pace` is C/N.

    c1 and c2 are those of ECN-mod.
    """
    if law == LINEAR:
        top, low = crossing + pace * c1 * delay, crossing * exp(-pace * c2 * delay)
        falling, rising = log(top / crossing) / (pace * c2), (crossing - low) / (pace * c1)
        return Cycle(top, low, 2 * delay + falling + rising)
    top = sqrt(crossing**2 + 2 * pace * delay)
    if law == ONCE:
        return Cycle(top, top / 2, (top**2 - (top / 2) ** 2) / (2 * pace))
    low = crossing * exp(-pace * delay / 2)
    falling, rising = 2 / pace * log(top / crossing), (crossing**2 - low**2) / (2 * pace)
    return Cycle(top, low, 2 * delay + falling + rising)


def _law_of(flows):
    """The closed form for these flows; empty where there is none."""
    for words, (law, reaction) in _LAWS.items():
        if type(flows.window) is type(law) and type(flows.reaction) is type(reaction):
            return words
    return ""


def _over_step(point, definitions):
    law, reaction = _LAWS[definitions["law"]]
    pipe = point["count"] * point["each"]
    flows = Flows(law, n=np.array([point["count"]]), rtt=np.array([pipe / RATE]),
                  reaction=reaction, feedback=feedback(definitions["marks"]))  # fmt: skip
    link = Link(Threshold(at=point["share"] * pipe), capacity=RATE)
    return Network((link,), (flows,), rates="self_clocked", delay="fifo", source="durresi2001")


def _cycle_of_laws(net):
    """The cycle by the laws' own rates."""
    found = relay_cycle(net, one_reaction=isinstance(net.flows[0].reaction, OncePerRTT))
    if found.queue[0] <= 0:
        return Cycle(math.nan, math.nan, math.nan)
    return Cycle(found.window[1], found.window[0], found.period)


def _other_networks(net):
    if (len(net.links), len(net.flows)) != (1, 1) or net.rates != "self_clocked":
        return "it speaks of one link and one class of self-clocked flows"
    (link,), (flows,) = net.links, net.flows
    if not isinstance(link.queue, Threshold) or float(link.queue.width) > 0:
        return "it speaks of marks above a queue"
    if not isinstance(flows.feedback, MarkTail | MarkFront) or flows.access_delay:
        return "it speaks of marks on ACKs, and of sources at their link"
    return "" if _law_of(flows) else "it speaks of ECN-mod and TCP"


def _law_and_marks(net):
    marks = TAIL if isinstance(net.flows[0].feedback, MarkTail) else FRONT
    return {"law": _law_of(net.flows[0]), "marks": marks}


def _delays_to_ends():
    """The rules take one delay from the crossing to either end."""
    crossing, delay, pace, w = sp.symbols("W tau k w", positive=True)
    c1, c2 = sp.symbols("c_1 c_2", positive=True)
    out = []
    for words, law in ((LINEAR, ECNMod(c1=c1, c2=c2)), (TCP, Reno())):
        ends = _closed(words, crossing, delay, pace, c1, c2)
        up = sp.integrate(1 / (pace * law.on_ack(w, Ack(1, 0, 1))), (w, crossing, ends.top))
        down = sp.integrate(1 / (pace * sp.nsimplify(law.on_mark(w, Ack(1, 0, 1)))), w)
        fallen = down.subs(w, ends.low) - down.subs(w, crossing)
        out.append(Identity(f"{words}: time up from the step", up, delay))
        out.append(Identity(f"{words}: time down from it", sp.expand_log(fallen), delay))
    return tuple(out)


@bound(
    "relay.step_marking", "durresi2001, section 4; misra2003, eq. 3",
    "windows and period of the cycle are those of the closed forms",
    hypotheses=("one class, self-clocked fluid, sources at their link",
                "the queue never runs empty"),
    engine="fluid", axes={"law": (LINEAR, TCP, ONCE), "marks": (TAIL, FRONT)},
    readings=(
        {"law": LINEAR, "marks": TAIL}, {"law": TCP, "marks": FRONT}, {"law": ONCE, "marks": TAIL},
    ),
    quick=9, reached=_AGREE,
    ranges={  # flows, the pipe of one of them, and thresholds as shares of the pipe
        "count": Range(5.0, 100.0, 10.0, "whole"),
        "each": Range(0.5, 2.0, 1.0),
        "share": Range(1.0, 4.0, 2.0),
    },
    subject=_over_step, measure=_cycle_of_laws, obstacle=_other_networks, found_in=_law_and_marks,
    derivation=_delays_to_ends,
)  # fmt: skip
def step_marking(net, cycle, definitions):
    """The largest relative difference."""
    link, flows = net.links[0], net.flows[0]
    rate, at, count = float(link.capacity), float(link.queue.at), float(flows.n[0])
    trip = float(flows.rtt[0])
    delay = trip + (at / rate if definitions["marks"] == TAIL else 0.0)
    mod = flows.window if definitions["law"] == LINEAR else ECNMod()
    target = _closed(
        definitions["law"], (rate * trip + at) / count, delay, rate / count, float(mod.c1),
        float(mod.c2),
    )  # fmt: skip
    apart = [abs(a / b - 1) for a, b in zip(cycle, target, strict=True)]
    return within(max(apart) if not math.isnan(sum(apart)) else math.nan, 0.0, _AGREE)
