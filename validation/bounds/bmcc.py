"""What Qazi et al. (2010) state about BMCC: growth by the load, routers, shares, and starving."""

import math
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from fluidcc.laws.feedback.load_factor import LoadFactorFeedback as ToldLoad
from fluidcc.laws.feedback.loss import Loss
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.law import Ack, Arrival
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.queue.load_factor import LoadFactor
from fluidcc.laws.queue.red import RED
from fluidcc.laws.reaction import OncePerRTT, PerMark
from fluidcc.laws.traffic import Bulk
from fluidcc.laws.window.bmcc import BMCC
from fluidcc.laws.window.sack import SACK
from fluidcc.packets.accounts import ratio
from fluidcc.scenario.files import load
from fluidcc.scenario.network import Flows, Link, Network, Start
from fluidcc.scenario.paths import replace
from fluidcc.scenario.tables import tables

from ..lab.bound import (
    ROUNDING,
    Identity,
    Judged,
    Range,
    at_least,
    at_most,
    bound,
    every,
    packet_means,
    within,
)
from ..lab.formulas import zero_drift

_LAW = BMCC()
_LOWEST, _MILD, _PERIOD = float(_LAW.lowest), float(_LAW.mild), float(_LAW.t_p)
_BELOW = math.nextafter(1.0, 0.0)
SAMPLED, CONTINUOUS = "sampled once per t_p", "known at once"
CODED, EVERY = "eta_0 and above", "any load"
_MOMENT = 1e-4  # of t_p
_FIXED = ("one bottleneck, all flows BMCC", "round trips do not change")

# -- growth -----------------------------------------------------------------------------------


def _after(load, elapsed, law=_LAW):
    """The load after senders grew for `elapsed` seconds by what it was, at fixed round trips."""
    return load * (1 + law.on_ack(1.0, Ack(0.0, elapsed, elapsed, load)))


def _one_period():
    low, more, gap, f, b = sp.symbols("a b c f b", positive=True)
    law = BMCC(
        t_p=sp.Symbol("t_p", positive=True), kappa_2=sp.Symbol("k2", positive=True),
        lowest=low, mild=low + more + gap,
    )  # fmt: skip
    one = _after(low + more, law.t_p, law).subs(law.lowest, f - b)
    return (Identity("one period", one, f + law.kappa_2 * (1 - f)),)


@bound(
    "bmcc.increase_map", "qazi2010, eqs 2 and 3",
    "the load comes to 1 - (1 - k2)^k (1 - f0) after k periods", claims=("BMCC-06",),
    hypotheses=_FIXED, axes={"loads": (EVERY, CODED)}, quick=120,
    ranges=lambda definitions: {
        "load": Range(low := _LOWEST if definitions["loads"] == CODED else 0.01, _MILD - 1e-9, low),
        "steps": Range(1.0, 8.0, 1.0, "whole"),
    },
    derivation=_one_period,
)  # fmt: skip
def increase_map(case, measured, definitions):
    """Compare the rules, period by period, with the formula; as far as increase is mild."""
    load = case["load"]
    for _ in range(int(case["steps"])):
        if load >= _MILD:
            return Judged(1.0, load, math.nan)
        load = _after(load, _PERIOD)
    share = (1 - float(_LAW.kappa_2)) ** case["steps"]
    return within(load, 1 - share * (1 - case["load"]), ROUNDING)


def _second_difference():
    """Of the sampled load, in the part of it that is free."""
    f, gain = sp.symbols("f k2", positive=True)

    def step(load):
        return load + gain * (1 - load)  # `bmcc.increase_map`

    second = step(step(f)) - 2 * step(f) + f
    return (Identity("second difference, sampled", second, -(gain**2) * (1 - f)),)


@bound(
    "bmcc.concave", "qazi2010, section 3.3, after eq. 2",
    "during multiplicative increase the load grows less each time", claims=("BMCC-06",),
    hypotheses=_FIXED, axes={"feedback": (SAMPLED, CONTINUOUS), "loads": (EVERY, CODED)},
    readings=(
        {"feedback": SAMPLED, "loads": EVERY},
        {"feedback": SAMPLED, "loads": CODED},
        {"feedback": CONTINUOUS, "loads": CODED},
    ),
    quick=120,
    ranges=lambda definitions: {
        "load": Range(low := _LOWEST if definitions["loads"] == CODED else 0.01, 0.6, low),
    },
    derivation=_second_difference,
)  # fmt: skip
def concave(case, measured, definitions):
    """The second of two increments over the first."""
    elapsed = _PERIOD * (1.0 if definitions["feedback"] == SAMPLED else _MOMENT)
    loads = [case["load"]]
    for _ in range(2):
        if loads[-1] >= _MILD:
            return Judged(1.0, 0.0, math.nan)
        loads.append(_after(loads[-1], elapsed))
    return at_most((loads[2] - loads[1]) / (loads[1] - loads[0]), 1.0)


_TRIP = Range(0.001, 3.0, 0.1, "log")


@bound(
    "bmcc.same_growth", "qazi2010, eq. 3",
    "in equal times windows grow by equal factors at all round trips", claims=("BMCC-07",),
    hypotheses=("the same load is known to all",), quick=120,
    ranges={"load": Range(0.01, 0.74, 0.15), "short": _TRIP, "long": _TRIP},
)  # fmt: skip
def same_growth(case, measured, definitions):
    """Factors of both senders in one period, an ACK after each hundredth of a round trip."""

    def factor(rtt):
        gap = rtt / 100
        one = 1 + _LAW.on_ack(1.0, Ack(1.0, gap, rtt, case["load"]))
        return float(one) ** (_PERIOD / gap)

    return within(factor(case["short"]) / factor(case["long"]), 1.0, 1e-9)


@bound(
    "bmcc.fastest_growth", "qazi2010, section 4.1.1",
    "over routers that tell no load windows grow threefold in t_p", claims=("BMCC-16",),
    axes={"threefold": ("at most", "to 0.1 %")}, judged=("threefold",), quick=60,
    ranges={"load": Range(0.0, _LOWEST, _LOWEST)},  # none, or any that counts as eta_0
)  # fmt: skip
def fastest_growth(case, measured, definitions):
    """The growth in one period."""
    factor = 1 + _LAW.on_ack(1.0, Ack(1.0, _PERIOD, _PERIOD, case["load"]))
    if definitions["threefold"] == "at most":
        return at_most(factor, 3.0)
    return within(factor, 3.0, 0.003)


def _rate_slope():
    """The rate of each flow grows by 1/t_p^2 per second, whatever its round trip."""
    rtt, time, low, b = sp.symbols("R e a b", positive=True)
    law = BMCC(t_p=sp.Symbol("t_p", positive=True), lowest=low, mild=1 - low - b)
    grown = law.on_ack(1.0, Ack(0, sp.Min(time, rtt), rtt, 1 - low))
    slope = sp.diff(grown.subs(sp.Min(time, rtt), time), time) / rtt
    return (Identity("growth of a rate", slope, 1 / law.t_p**2),)


@bound(
    "bmcc.return_time", "qazi2010, eqs 4 to 6",
    "after a decrease of all, n flows are back after C (1-beta) t_p^2/n",
    hypotheses=(
        "decreases at one instant, once", "round trips do not change", "target utilisation 1",
    ),
    quick=60,
    ranges={
        "n": Range(1.0, 100.0, 1.0, "whole"),
        "rtt": Range(0.01, 1.0, 0.2, "log"),
        "capacity": Range(100.0, 1e5, 1000.0, "log"),
        "load": Range(1.0, 1.5, 1.0),
    },
    derivation=_rate_slope,
)  # fmt: skip
def return_time(case, measured, definitions):
    """Decrease by the rule, and add up what ACKs bring until the load is back."""
    n, rtt, capacity, load = case.values()
    window = capacity * rtt / n
    low = window + float(_LAW.on_tick(window, Ack(1.0, 0.0, rtt, load)))
    each = float(_LAW.on_ack(low, Ack(1.0, rtt / 10, rtt, _BELOW)))
    time = (window - low) / each * rtt / 10
    target = capacity * (1 - float(_LAW.kept(load))) * _PERIOD**2 / n
    return within(time / target, 1.0, ROUNDING)


# -- shares of flows of different round trips -------------------------------------------------

TICKS, TRIPS = "once per t_p", "once per round trip (eq. 5 by the letter)"
ANY, SHORT = "any", "at most t_p"


def _two_groups(queue, capacity, buffer, trips, window, feedback, sender=()):
    """One flow each of two round trips."""
    groups = tuple(
        Flows(window, n=np.ones(1), rtt=np.array([t]), reaction=OncePerRTT(), feedback=feedback,
              access_delay=t / 4, sender=sender)
        for t in trips
    )  # fmt: skip
    link = Link(queue, capacity=capacity, packet_size=1000.0, buffer=buffer, delay=trips[0] / 8)
    return Network((link,), groups, flow_names=("near", "far"), source="qazi2010")


def _two_bmcc(point, definitions):
    law = BMCC(md="per_tp" if definitions["decreases"] == TICKS else "per_rtt")
    trips, capacity = [point["rtt"], point["rtt"] * point["ratio"]], point["capacity"]
    return _two_groups(LoadFactor(), capacity, float(round(capacity)), trips, law, ToldLoad())


def _trips_to_800ms(definitions):
    """Round trips from 40 ms to 800 ms, or up to t_p, 200 ms."""
    short = definitions["round_trips"] == SHORT
    return {
        "rtt": Range(0.04, 0.1 if short else 0.2, 0.1, "log"),
        "ratio": Range(1.0, 2.0 if short else 4.0, 2.0, "log"),
        "capacity": Range(300.0, 1500.0, 500.0, "log"),
    }


def _goodputs(net):
    """Of the first two groups in the second half of 300 s."""
    flows = packet_means(net, until=300.0, warmup=150.0)["flows"]
    return [flows[name]["goodput"] for name in net.flow_names[:2]]


def _no_two_bmcc(net):
    own = [f for f in net.flows if isinstance(f.window, BMCC) and f.feedback.loads]
    if len(net.flows) != 2 or len(own) != 2 or not isinstance(net.links[0].queue, LoadFactor):
        return "it speaks of two groups of BMCC flows over a BMCC router"
    return ""


def _decreases(net):
    """How often the first group decreases."""
    law: Any = net.flows[0].window
    longest = max(float(np.max(f.rtt)) for f in net.flows)
    return {
        "decreases": TICKS if law.md == "per_tp" else TRIPS,
        "round_trips": SHORT if longest <= float(law.t_p) else ANY,
    }


@bound(
    "bmcc.equal_rates", "qazi2010, eq. 4",
    "flows of different round trips have equal rates (within 10 %)", claims=("BMCC-08",),
    hypotheses=("one BMCC router, two BMCC flows, 300 s",), engine="packets",
    axes={"decreases": (TICKS, TRIPS), "round_trips": (ANY, SHORT)},
    readings=(
        {"decreases": TRIPS}, {"decreases": TICKS}, {"decreases": TICKS, "round_trips": SHORT},
    ),
    quick=12, clear=0.05, ranges=_trips_to_800ms, subject=_two_bmcc, measure=_goodputs,
    obstacle=_no_two_bmcc, found_in=_decreases,
)  # fmt: skip
def equal_rates(net, rates, definitions):
    """The larger rate over the smaller one."""
    return at_most(max(rates) / min(rates), 1.1)


# -- routers ----------------------------------------------------------------------------------


def _sample(queue, capacity, gamma, law=None):
    """The load factor of one period at full load with that queue."""
    law = LoadFactor(gamma=gamma) if law is None else law
    memory = LoadFactor().state_of(capacity * law.t_p, queue, 0)
    return memory.factor + law.on_tick(memory, Arrival(0, 0, queue, capacity)).factor


def _standing_load():
    """The sample at full load, and the queue at which it is u."""
    queue, capacity, gamma = sp.symbols("q C gamma", positive=True)
    period, weight, u = sp.symbols("t_p k1 u", positive=True)
    sample = _sample(queue, capacity, gamma, LoadFactor(t_p=period, kappa_1=weight, gamma=gamma))
    factor = (1 + weight * queue / (capacity * period)) / gamma
    needed = sp.solve(sp.Eq(sample, u), queue)[0]
    return (
        Identity("load factor at full load", sample, factor),
        Identity("queue of the load u", needed, (gamma * u - 1) * capacity * period / weight),
    )


@bound(
    "bmcc.standing_queue", "qazi2010, eq. 1 and section 4.2",
    "at full load any standing queue keeps the load factor above 1", claims=("BMCC-25",),
    hypotheses=("target utilisation at most 1",), quick=60,
    ranges={
        "queue": Range(0.01, 1e4, 1.0, "log"),
        "capacity": Range(100.0, 1e5, 1000.0, "log"),
        "gamma": Range(0.5, 1.0, 1.0),
    },
    derivation=_standing_load,
)  # fmt: skip
def standing_queue(case, measured, definitions):
    """The next sample."""
    return at_least(float(_sample(**case)), 1.0)


@bound(
    "bmcc.only_bmcc_backs_off", "qazi2010, section 4.2.2",
    "from 100 % to 120 % BMCC senders back off, SACK is not marked", claims=("BMCC-27",),
    quick=60, ranges={"load": Range(1.0, math.nextafter(1.2, 0.0), 1.0)},
)  # fmt: skip
def only_bmcc_backs_off(case, measured, definitions):
    """Marks, and windows that do not fall: none."""
    memory = LoadFactor().state_of(0.0, 0.0, case["load"])
    marked = float(LoadFactor().signal(memory, Arrival(1.0, 0.0, 0.0, 1.0)).mark)
    stays = float(_LAW.on_tick(10.0, Ack(1.0, 0.0, 0.1, case["load"]))) >= 0
    return at_most(marked + stays, 0.0)


# -- who starves whom at a BMCC router (section 4.2) ------------------------------------------

DROPS, ECN = "without ECN (figure 7)", "with ECN (figure 8)"
PAPER = "the paper's: 40 ms, a pipe of buffer, 3 and 3 flows; target utilisation 0.95 to 1"
LOWER = "the paper's, target utilisation 0.8 to 1"
ANY_SET = "any numbers, round trips and buffers; target utilisation 0.95 to 1"
ANY_LOWER = "any numbers, round trips and buffers; target utilisation 0.8 to 1"
RATE, FLIGHT = "below a tenth of a SACK flow's rate", "two packets in flight"
_TENTH, _TWO = 0.1, 2.0
_TARGET, _LOWER = 0.95, 0.8  # least target utilisations
_SCENARIOS = {DROPS: "qazi2010/mix_bmcc_router", ECN: "qazi2010/mix_bmcc_router_ecn"}
_FIRST, _LAST = 30.0, 70.0  # s; SACK comes in between 10 and 12 s


class Shares(NamedTuple):
    """Goodput of a BMCC flow over that of a SACK flow, and packets that it has in flight."""

    ratio: float
    flight: float


def _left_open(definitions):
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


def _mixed(point, definitions):
    """The scenario of the figure, or two groups alone."""
    if definitions["network"] in (PAPER, LOWER):
        return _of_figure(definitions["sack"], point["gamma"])
    rtt = point["rtt"]
    capacity = point["share"] * (point["bmcc"] + point["sack"]) / rtt
    signal = MarkTail() if definitions["sack"] == ECN else Loss()

    def group(law, feedback, name, trip, start):
        return Flows(
            law, n=np.array([point[name]]), rtt=np.array([trip]), reaction=OncePerRTT(),
            feedback=feedback, access_delay=trip / 4, access_capacity=10 * capacity, start=start,
        )  # fmt: skip

    flows = (
        group(BMCC(), ToldLoad(), "bmcc", rtt, Start(0.0, 2.0)),
        group(SACK(), signal, "sack", rtt * point["ratio"], Start(10.0, 12.0)),
    )
    link = Link(
        LoadFactor(gamma=point["gamma"]), capacity=capacity, packet_size=1000.0,
        buffer=float(max(1, round(point["buffer"] * capacity * rtt))),
        delay=rtt * min(1.0, point["ratio"]) / 8,
    )  # fmt: skip
    return Network((link,), flows, flow_names=("bmcc", "sack"), source="qazi2010")


def _shares(net):
    """Mean goodput of a flow of each group, and the flight that BMCC's makes by Little's law."""
    flows = packet_means(net, until=_LAST, warmup=_FIRST)["flows"]
    bmcc, sack = (flows[net.flow_names[k]] for k in _both_kinds(net))
    packets = bmcc["goodput"] / (8 * float(net.links[0].packet_size))
    # without ACKs there is no mean round trip
    flight = packets * bmcc["rtt_mean"] if packets > 0 else 0.0
    return Shares(ratio(bmcc["goodput"], sack["goodput"]), flight)


def _not_mixed(net):
    """Why section 4.2 says nothing about a network."""
    link, groups = net.links[0], [net.flows[k] for k in _both_kinds(net)]
    if not isinstance(link.queue, LoadFactor) or len(groups) != 2:
        return "it speaks of BMCC flows beside bulk SACK flows over a BMCC router"
    bmcc, sack = groups
    if not isinstance(bmcc.feedback, ToldLoad) or not isinstance(sack.feedback, Loss | MarkTail):
        return "it speaks of BMCC that load factors tell, and SACK that drops or marks tell"
    gamma = float(link.queue.gamma)
    if not _LOWER <= gamma <= 1.0:
        return f"it speaks of target utilisations from {_LOWER:g} to 1, not of {gamma:g}"
    if any(f.start.high >= _FIRST for f in groups):
        return f"it speaks of flows of both kinds that have started by {_FIRST:g} s"
    crossed = len(net.flows) > 2 or float(link.cross) > 0 or link.voice is not None
    if crossed and not _is_figure(net, _signal_of(sack), gamma):
        return "it speaks of both kinds alone, or with the paper's cross traffic and values"
    return ""


def _mixture(net):
    """Whether SACK has ECN, and whether all but gamma is the paper's."""
    sack = _signal_of(net.flows[_both_kinds(net)[1]])
    gamma = float(net.links[0].queue.gamma)
    kinds = (PAPER, LOWER) if _is_figure(net, sack, gamma) else (ANY_SET, ANY_LOWER)
    return {"network": kinds[gamma < _TARGET], "sack": sack}


def _of_figure(sack, gamma):
    """The scenario of a figure, at a target utilisation."""
    return replace(load(_SCENARIOS[sack]), {"links.bottleneck.queue.gamma": gamma})


def _is_figure(net, sack, gamma):
    """Whether a network is the scenario of a figure, whatever its title."""
    own, paper = tables(net), tables(_of_figure(sack, gamma))
    return all(own[part] == paper[part] for part in ("links", "flows"))


def _signal_of(sack):
    return ECN if isinstance(sack.feedback, MarkTail) else DROPS


def _both_kinds(net):
    """The first group of BMCC flows and the first of lasting SACK flows, those that there are."""
    lasting = [k for k, f in enumerate(net.flows) if isinstance(f.traffic, Bulk)]
    found = [[k for k in lasting if isinstance(net.flows[k].window, law)] for law in (BMCC, SACK)]
    return [group[0] for group in found if group]


@bound(
    "bmcc.starved_by_sack", "qazi2010, section 4.2, figures 7 and 8",
    "at a BMCC router SACK flows completely starve BMCC flows", claims=("BMCC-25", "BMCC-26"),
    hypotheses=(
        "means from 30 to 70 s, SACK flows from 10 to 12 s on",
        "the paper's: cross traffic of a tenth of the capacity both ways; else none",
    ),
    engine="packets",
    axes={"network": (PAPER, LOWER, ANY_SET, ANY_LOWER), "sack": (DROPS, ECN),
          "starved": (RATE, FLIGHT)},
    judged=("starved",),
    readings=every({"network": (PAPER, LOWER, ANY_SET), "sack": (DROPS, ECN)}),
    quick=16, clear=0.05, ranges=_left_open, subject=_mixed, measure=_shares, obstacle=_not_mixed,
    found_in=_mixture,
)  # fmt: skip
def starved_by_sack(net, shares, definitions):
    """The share, or the flight."""
    if definitions["starved"] == RATE:
        return at_most(shares.ratio, _TENTH)
    return at_most(shares.flight, _TWO)


# -- SACK alone -------------------------------------------------------------------------------


def _two_sack(point, definitions):
    trips = [point["rtt"], point["rtt"] * point["ratio"]]
    buffer = float(round(point["buffer"] * point["capacity"] * trips[1]))
    red = definitions["queue"] != "droptail"
    law = RED(min_th=buffer / 6, max_th=buffer / 2, gentle=True) if red else Droptail()
    sender = (("overhead", 1.0 / point["capacity"]),)
    feedback = MarkTail() if red else Loss()
    return _two_groups(law, point["capacity"], buffer, trips, SACK(), feedback, sender)


def _rates_and_trips(net):
    flows = packet_means(net, until=200.0, warmup=50.0, seeds=(1, 2))["flows"]
    means = [flows[name] for name in net.flow_names[:2]]
    return [[m[key] for m in means] for key in ("goodput", "rtt_mean")]


def _no_two_sack(net):
    sack = all(isinstance(f.window, SACK) for f in net.flows)
    apart = len(net.flows) == 2 and float(net.flows[0].rtt[0]) != float(net.flows[1].rtt[0])
    return "" if sack and apart else "it speaks of two SACK flows of different round trips"


def _queue_kind(net):
    red = not isinstance(net.links[0].queue, Droptail)
    return {"queue": "RED with ECN" if red else "droptail"}


def _at_one_probability():
    """Equal signals give equal windows, so z = 1 in the measured round trip."""
    (window,) = zero_drift(SACK(), PerMark())
    trip = sp.Symbol("R", positive=True)
    z = -sp.diff(sp.log(window / trip), trip) * trip
    return (Identity("z at one marking probability", z, 1),)


@bound(
    "bmcc.sack_exponent", "qazi2010, section 5.2", "SACK flows get 1/RTT^z with 1 <= z <= 2",
    claims=("BMCC-35",), hypotheses=("two SACK flows share a link, 200 s",), engine="packets",
    axes={"queue": ("droptail", "RED with ECN"), "round_trip": ("measured", "propagation")},
    judged=("round_trip",), quick=12, clear=0.05,
    ranges={
        "rtt": Range(0.02, 0.1, 0.05, "log"),
        "ratio": Range(1.5, 4.0, 2.0, "log"),
        "capacity": Range(500.0, 2500.0, 1000.0, "log"),
        "buffer": Range(0.5, 2.0, 1.0, "log"),
    },
    subject=_two_sack, measure=_rates_and_trips, obstacle=_no_two_sack, found_in=_queue_kind,
    derivation=_at_one_probability,
)  # fmt: skip
def sack_exponent(net, measured, definitions):
    """The exponent from the two flows; the nearer end of [1, 2] is the bound."""
    rates, trips = measured
    if definitions["round_trip"] == "propagation":
        trips = [float(f.rtt[0]) for f in net.flows[:2]]
    z = math.log(rates[0] / rates[1]) / math.log(trips[1] / trips[0])
    return at_least(z, 1.0) if z < 1.5 else at_most(z, 2.0)
