"""Rules for the claims of the RWM paper (Govindaswamy et al., 2012): numerals are its sections.

Readings: `downstream`, `long` and `fast` are other rates and delays, `window5`, `window8` and
`window20` receivers' windows of so many packets (20 is ns-2's default), `loss` is BLUE that steps
up by losses (figure 4), `steps` takes jitter as the mean step from one packet's delay to the
next's, and `relative` takes variation as standard deviation over mean. Figures 6, 11 and 16 are of
a queue at the ingress in a congested state, so `fast`, where four sources do not fill the link, and
`downstream`, where another link is the bottleneck, are none of theirs. A printed change over the
numbers of sources is judged by its mean where its direction is right over the whole range, and else
by its direction.
"""

import dataclasses

import numpy as np
import sympy as sp

import fluidcc as fc
from fluidcc.laws.feedback.receiver_window import ReceiverWindow
from fluidcc.laws.law import Arrival, Trip
from fluidcc.laws.queue.adaptive_red import Adapted
from fluidcc.laws.queue.blue import BLUE
from fluidcc.laws.queue.red import RED
from fluidcc.papers.judging import (
    Judgement,
    alike,
    all_of,
    judge,
    near,
    ordered,
    outside,
    shown,
    told,
)
from fluidcc.papers.ledger import claims
from fluidcc.papers.measures import first_link, link_efficiency
from fluidcc.scenario.files import load

FAMILIES = ("red", "ared", "blue")
ROUTERS = ("ingress", "second", "third", "egress")
TOPOLOGIES = {
    "downstream": "with the third router's link at 1.35 Mbit/s",
    "long": "with links of 50 ms between the routers",
    "fast": "with all links at 10 Mbit/s and receivers' windows of 20 packets",
}
WINDOWS = {"window5": 5, "window8": 8, "window20": 20}
OPEN = (*TOPOLOGIES, *WINDOWS)
CONGESTED = ("long", *WINDOWS)
UNTRIED = "congestion-window validation, which would hold windows back too, cannot be run"


def _said(name):
    """An experiment in words: RED-RWM of red_rwm_queue."""
    return name.removesuffix("_queue").upper().replace("_", "-")


def _name(algorithm):
    """The experiment of an algorithm such as RED-RWM."""
    return algorithm.lower().replace("-", "_")


def _names(family):
    return (f"{family}_rwm", family, f"{family}_ecn")


def _queues(*families):
    return tuple(f"{name}_queue" for family in families for name in _names(family))


def _sweeps(*families):
    return tuple(name for family in families for name in _names(family))


RWM = tuple(f"{family}_rwm" for family in FAMILIES)


# metrics: samples (points, seeds) of an experiment
def _queue(lab, name):
    return lab.packets(name).values("links.ingress.queue_mean")


def _delay(lab, name):
    return 1e3 * lab.packets(name).values("flows.tcp.delay_mean")


def _jitter(lab, name):
    metric = "delay_difference" if lab.reading == "steps" else "delay_jitter"
    return 1e3 * lab.packets(name).values(f"flows.tcp.{metric}")


def _throughput(lab, name):
    return 100 * link_efficiency(lab.packets(name))


def _drops(lab, name, routers=ROUTERS):
    return sum(lab.packets(name).values(f"links.{router}.drops") for router in routers)


METRICS = {  # with the sign of better and the unit
    "queue": (_queue, -1, "packets"), "delay": (_delay, -1, "ms"), "jitter": (_jitter, -1, "ms"),
    "throughput": (_throughput, 1, "%"), "drops": (_drops, -1, "packets"),
}  # fmt: skip


def _x(lab, name):
    return list(lab.packets(name).x)


def _rest(lab, name, persistence=None):
    """Equilibrium at the first point, of the ingress alone: the queues behind it are empty."""
    net = lab.experiment(name).net(0)
    if persistence is not None:
        net = fc.replace(net, {"flows.tcp.window.persistence": float(persistence)})
    return lab.ask(fc.equilibrium, first_link(net))


def _resting(rest, of="queue"):
    """Where the queue rests, in words; of a continuum there is no number."""
    if rest["status"] == "continuum":
        return "anywhere within a range"
    value = told(rest["links"]["ingress"][of], unit="packets")
    return value + {"saturated": " (saturated)"}.get(rest["status"], "")


def _persisting(lab, name, of="queue"):
    """The queue of RWM at rest at both ends of persistence, in words."""
    base = lab.under(None)
    ends = [_resting(_rest(base, name, persistence), of) for persistence in (0, 1)]
    return (
        f"with windows of 100 packets the {of} of {_said(name)} at rest in the fluid model is "
        f"{ends[0]} where a modified ACK costs one packet of flight (persistence 0), {ends[1]} "
        f"where it costs all but one "
        f"(persistence 1)"
    )


def _windows(lab, *names):
    """Mean queues at the first point under each size of the receivers' windows, in words."""
    labs = [lab.under(reading) for reading in WINDOWS] + [lab.under(None)]
    listed = [
        f"{_said(name)} " + ", ".join(f"{_queue(each, name)[0].mean():.3g}" for each in labs)
        for name in names
    ]
    sizes = ", ".join(str(size) for size in WINDOWS.values())
    return (
        f"mean queues in packets with receivers' windows, which are not stated, of {sizes} and 100 "
        f"packets: {'; '.join(listed)}; {UNTRIED}"
    )


def _below(lab, of, less, more, *, where=lambda x: x > 0, what=""):
    """Whether a metric of one experiment is below that of another, where a condition holds."""
    own, its = (lab.packets(name).x.tolist() for name in (less, more))
    x = [v for v in own if v in its and where(v)]  # a reading may have fewer points
    metric, unit = next((name, u) for name, (f, _, u) in METRICS.items() if f is of)
    said = f"{what or metric} of {_said(less)} below that of {_said(more)}"
    return ordered(of(lab, less)[[own.index(v) for v in x]],
                   of(lab, more)[[its.index(v) for v in x]], x=x, unit=unit, what=said)  # fmt: skip


def _printed(value, change, order, what):
    """A printed change [%] by its mean over the numbers of sources and its direction at each."""
    part = near(value, change.mean(axis=0), unit="%", neutral=0.0, what=what)
    verdict = part.verdict if order.verdict == "reproduced" else order.verdict
    return dataclasses.replace(part, verdict=verdict, why=f"{part.why}; {order.why}")


def _changes(lab, claim, of, rivals, *, sign=-1, kind="", what=""):
    """The printed change by RWM against rivals."""
    ours, parts = _name(claim.algorithms[0]) + kind, []
    for rival in rivals:
        theirs = _name(rival) + kind
        change = 100 * sign * (of(lab, ours) / of(lab, theirs) - 1)
        order = _below(lab, of, *((ours, theirs) if sign < 0 else (theirs, ours)))
        parts.append(_printed(claim.value, change, order, f"{what} against {rival}"))
    return all_of(*parts)


# 1, 3 and 5: what RWM is
def _improvements(lab):
    """Every metric of each RWM queue against both rivals, judged as an order."""
    found = {}
    for family in FAMILIES:
        ours, *rivals = _names(family)
        for metric, (of, sign, _) in METRICS.items():
            for rival in rivals:
                pair = (of(lab, ours), of(lab, rival))
                less, more = pair if sign < 0 else pair[::-1]
                found[f"{metric} of {_said(ours)} against {_said(rival)}"] = ordered(less, more)
    return found


@judge("RWM-01", needs=_sweeps(*FAMILIES), readings=(*OPEN, "loss", "steps"))
def improves_all(lab, claim):
    """Thirty orders over the whole range of sources; one that is the other way round refutes it."""
    found = _improvements(lab)
    groups = {}
    for name, part in found.items():
        groups.setdefault(part.verdict, []).append(name)
    counts = ", ".join(f"{len(names)} {kind}" for kind, names in groups.items())
    wrong = groups.get("contradicted", [])
    verdict = "contradicted" if wrong else "not_reproduced"
    if len(groups.get("reproduced", [])) == len(found):
        verdict = "reproduced"
    told_wrong = f"; the other way round: {', '.join(wrong[:4])} and others" if wrong else ""
    return Judgement(verdict, f"of {len(found)} orders {counts}{told_wrong}",
                     len(groups.get("reproduced", [])), unit="orders")  # fmt: skip


@judge("RWM-02")
def shorter_loop(lab, claim):
    """The age of a signal of the ingress when the source hears it, from the feedback laws: of a
    modified ACK and of a mark, with symbols and in the scenarios without queues.
    """
    way = Trip(*sp.symbols("round_trip forward queueing reverse", positive=True))
    ages, numbers = [], []
    for name in ("red_rwm", "red_ecn"):
        flows = load(f"govindaswamy2012/{name}").flows[0]
        access = float(flows.access_delay)
        here = Trip(float(np.mean(flows.rtt)), access, 0.0, access)
        ages.append(sp.sympify(flows.feedback.age(way)))
        numbers.append(told(1e3 * flows.feedback.age(here), unit="ms"))
    slope = [sp.diff(age, way.round_trip) for age in ages]
    why = (
        f"a modified ACK of the ingress is {numbers[0]} old at the source, a mark {numbers[1]} and "
        f"the queues behind; a round trip longer by 1 s adds {slope[0]} s to the first and "
        f"{slope[1]} s to the second"
    )
    holds = ages[0] == way.reverse and slope == [0, 1]
    return shown(holds, why, engine="analytic")


@judge("RWM-03")
def law_of_red(lab, claim):
    """The laws asked with symbols and numbers: below, between and above the thresholds."""
    law, feedback = load("govindaswamy2012/red_rwm").links[0].queue, ReceiverWindow()
    low, middle, high = (law.signal(v, Arrival(1, 0, v, 1)) for v in (4.0, 10.0, 16.0))
    one = float(feedback.permit(8.0, 1.0)) == 1 and float(feedback.permit(8.0, 0.0)) == 8
    kept = float(feedback.permit(0.0, 1.0)) == 0
    holds = (
        one and kept and float(low.mark) == 0 and 0 < float(middle.mark) < 1
        and float(middle.drop) == 0 and float(high.drop) == float(high.mark) == 1
    )  # fmt: skip
    why = (
        f"a modified ACK permits {float(feedback.permit(8.0, 1.0)):g} packet of 8, and 0 of 0; at "
        f"averages of 4, 10 and 16 packets {float(low.mark):.3g}, {float(middle.mark):.3g} and "
        f"{float(high.mark):.3g} of the ACKs are modified, and {float(low.drop):.3g}, "
        f"{float(middle.drop):.3g} and {float(high.drop):.3g} of the packets dropped"
    )
    return shown(holds, why, engine="analytic")


@judge("RWM-04", needs=("blue_rwm", "blue_rwm@loss"))
def law_of_blue(lab, claim):
    """Steps of BLUE: down when idle, up by the queue (2.4) or by losses; that a modified ACK itself
    raises P_a, as section 3 has it, leaves open how often and against what.
    """
    blue = BLUE(threshold=35.0, freeze_time=0.01, trigger="loss", random_freeze=True)
    up, rest, down = (float(blue.on_tick(0.5, Arrival(1, 0, q, 1))) for q in (35.0, 20.0, 0.0))
    queues = [_queue(each, "blue_rwm").mean(axis=1) for each in (lab, lab.under("loss"))]
    why = (
        f"missing: whether P_a rises with every modified ACK (it would then never stop rising "
        f"while the link is busy), and the law of the freeze times; steps are {up:+g} on overflow, "
        f"{rest:+g} between and {down:+g} when idle; mean queues at 4 to 30 sources are "
        f"{queues[0][0]:.1f} to {queues[0][-1]:.1f} packets where the threshold raises P_a, and "
        f"{queues[1][0]:.1f} to {queues[1][-1]:.1f} where losses do"
    )
    return Judgement("under_specified", why, engine="analytic+packets")


def _searches(lab, name):
    """What the search for counterexamples of a bound came to, in words, by the windows: those
    that just fill pipe and min_th, and those of any size.
    """
    found = {each["definitions"]["windows"]: each for each in lab.bound(name)["bounds"]}
    fitting = next(windows for windows in found if windows != "any")
    return {
        kind: f"{each['worst']['value']:.3g} in {each['searched']} cases"
        for kind, each in (("fitting", found[fitting]), ("any", found["any"]))
    }


@judge("RWM-05", needs=("red_rwm_queue", *(f"red_rwm_queue@{reading}" for reading in WINDOWS)))
def average_about_min(lab, claim):
    """The mean queue over min_th where receivers' windows just fill pipe and min_th, and beyond.

    The average of RED's linear part is min_th + (p/p_max)(max_th - min_th) for any sender.
    """
    worst = _searches(lab, "rwm.average_queue")
    why = (
        f"missing: the proof and its hypotheses, which stand in another paper, and how near is "
        f"'approximately'; where receivers' windows just fill pipe and min_th the mean queue is "
        f"about min_th (at worst {worst['fitting']}, as a multiple of it), but there RWM has "
        f"nothing to do; with larger windows it is not (at worst {worst['any']}); "
        f"{_windows(lab, 'red_rwm_queue')}; {_persisting(lab, 'red_rwm_queue', 'average')}"
    )
    return Judgement("under_specified", why, engine="packets+fluid")


@judge("RWM-06", needs=("scaled",))
def weak_convergence(lab, claim):
    """Sources, rates, thresholds, buffers and averaging time enlarged together."""
    runs = lab.packets("scaled")
    queues = runs.values("links.ingress.queue_mean").mean(axis=1) / runs.x
    cov = runs.values("links.ingress.queue_cov").mean(axis=1)
    rest = _rest(lab, "scaled")["links"]["ingress"]["queue"]
    listed = ", ".join(f"{q:.3g} ({c:.2g})" for q, c in zip(queues, cov, strict=True))
    why = (
        f"missing: the theorem, which stands in another paper; with everything enlarged by "
        f"{', '.join(str(x) for x in runs.x)} the mean queue over that factor (coefficient of "
        f"variation) is {listed} packets, against {rest:.3g} at rest in the fluid model"
    )
    return Judgement(
        "under_specified", why, queues.tolist(), unit="packets", engine="packets+fluid"
    )


@judge("RWM-07", needs=("recommended",))
def recommended(lab, claim):
    """Drops and queues at both ends of the recommended range, for want of a criterion."""
    runs, lines = lab.packets("recommended"), []
    drops = 100 * runs.values("links.ingress.drop_fraction").mean(axis=1)
    queues = runs.values("links.ingress.queue_mean").mean(axis=1)
    tops = np.array([c["links.ingress.queue.p_max"] for c in runs.experiment.changes])
    for n in (4, 30):
        for top in (0.3, 1.0):
            here = (runs.x == n) & (tops == top)
            ends = (drops[here].min(), drops[here].max(), queues[here].min(), queues[here].max())
            lines.append("{} sources, P_max {}: {:.2g} to {:.2g} %, {:.3g} to {:.3g} packets"
                         .format(n, top, *ends))  # fmt: skip
    why = (
        f"missing: what the recommended P_max is to bring about; dropped share and mean queue with "
        f"receivers' windows of 5 to 100 packets: {'; '.join(lines)}"
    )
    return Judgement("under_specified", why)


# 2: the laws beneath
@judge("RWM-08")
def red_law(lab, claim):
    """The law of RED with symbols."""
    low, span, top, u = sp.symbols("min_th span p_max u", positive=True)
    law = RED(min_th=low, max_th=low + span, p_max=top)
    average = low + span * u
    said = law.base(average, Arrival(1, 0, average, 1))
    gap = sp.simplify(sp.nsimplify(said) - top * sp.Min(1, u))
    at = RED(min_th=5.0, max_th=15.0, p_max=1 / 3).signal(15.1, Arrival(1, 0, 15.1, 1))
    why = (
        f"p between the thresholds differs by {gap} from P_max (avg - min)/(max - min); "
        f"{float(at.drop):g} above; it is what Floyd and Jacobson call P_b, before their count"
    )
    return shown(gap == 0 and float(at.drop) == 1, why, engine="analytic")


@judge("RWM-09")
def adaptation(lab, claim):
    """Steps of p_max above and below the target, over its whole range."""
    law = load("govindaswamy2012/ared").links[0].queue
    target, worst = float(law.aim()[0]), 0.0
    for p in np.linspace(0.005, 0.6, 120):
        up = min(claim.value["p_max_high"] > p, 1) * min(0.01, p / 4)
        down = (claim.value["p_max_low"] < p) * p * (claim.value["decrease_factor"] - 1)
        for average, step in ((target + 1, up), (target - 1, down), (target, 0.0)):
            worst = max(worst, abs(float(law.step(Adapted(average, p))) - step))
    same = float(law.interval) == claim.value["interval_s"]
    middle = (float(law.min_th) + float(law.max_th)) / 2
    why = (
        f"every {float(law.interval):g} s, target {target:g} packets; the steps differ by "
        f"{worst:.1g} at most over p_max from 0.005 to 0.6; as p_max is compared before its step "
        f"it reaches 0.51"
    )
    return shown(worst < 1e-12 and same and target == middle, why, engine="analytic")


@judge("RWM-10")
def steps_of_blue(lab, claim):
    """Steps of BLUE in the scenario."""
    law = load("govindaswamy2012/blue").links[0].queue
    at = claim.value["threshold_packets"]
    up, rest, down = (float(law.on_tick(0.5, Arrival(1, 0, q, 1))) for q in (at + 1, at, 0))
    least = float(law.spacing()[0])
    holds = np.allclose(
        (up, rest, down, least),
        (claim.value["increase"], 0, -claim.value["decrease"], claim.value["freeze_time_s"]),
    )
    why = (
        f"{up:+g} with more than {at} packets, {rest:+g} with {at}, {down:+g} with none, at least "
        f"{1e3 * least:g} ms apart; the text raises P_a both on loss (figure 4) and above L (2.4)"
    )
    return shown(holds, why, engine="analytic")


@judge("RWM-11")
def deployment(lab, claim):
    """Counts of sites."""
    shares = [100 * 21 / 26447, 100 * 7 / 12364]
    return outside(
        f"counts of sites that answered; the shares are {shares[0]:.3f} % and {shares[1]:.3f} %, "
        f"which the paper cuts off rather than rounds"
    )


# 4.1 to 4.3: three scenarios, so most rules are asked of each
def _rules(rule, kind, **asked):
    """The same rule for claims of several scenarios, each with its own runs and readings."""

    def one(name, families):
        def copy(lab, claim):
            return rule(lab, claim)

        copy.__doc__ = rule.__doc__
        readings = CONGESTED if kind else OPEN
        readings += ("steps",) if "jitter" in rule.__name__ else ()
        readings += ("loss",) if "blue" in families else ()
        needs = tuple(f"{n}{kind}" for n in _sweeps(*families))
        return judge(name.replace("_", "-"), needs=needs, readings=readings)(copy)

    return [one(name, families.split()) for name, families in asked.items()]


def _smaller_queue(lab, claim):
    """Reduction of the mean queue at four sources."""
    rivals = claim.algorithms[1:]
    part = _changes(lab, claim, _queue, rivals, kind="_queue", what="reduction of the mean queue")
    names = [f"{_name(algorithm)}_queue" for algorithm in claim.algorithms]
    base = lab.under(None)
    at_rest = ", ".join(f"{_said(name)} {_resting(_rest(base, name))}" for name in names[1:])
    fluid = f"{_persisting(lab, names[0])}; {at_rest}"
    why = f"{part.why}; {_windows(lab, *names[:2])}; {fluid}"
    return dataclasses.replace(part, why=why, engine="packets+fluid")


def _same_queue(lab, claim):
    """Mean queues at four sources; runs that are the same to the last digit, where nothing is
    dropped or marked, compare nothing.
    """
    one, other = (_queue(lab, f"{_name(a)}_queue") for a in claim.algorithms)
    part = alike(one, other, what=f"mean queues of {' and '.join(claim.algorithms)}")
    if np.array_equal(one, other):
        why = f"{part.why}, as nothing is dropped or marked: nothing is compared"
        return dataclasses.replace(part, verdict="not_reproduced", why=why)
    return part


def _smaller_delay(lab, claim):
    """Reduction of the mean delay, averaged over the numbers of sources."""
    return _changes(lab, claim, _delay, claim.algorithms[1:], what="reduction of the delay")


def _smaller_jitter(lab, claim):
    """Reduction of the standard deviation of the delay, averaged over the numbers of sources."""
    return _changes(lab, claim, _jitter, claim.algorithms[1:], what="reduction of the jitter")


q12, q23, q33 = _rules(_smaller_queue, "_queue", RWM_12="red", RWM_23="ared", RWM_33="blue")
q13, q24 = _rules(_same_queue, "_queue", RWM_13="red", RWM_24="ared")
d15, d26, d37, d38 = _rules(
    _smaller_delay, "", RWM_15="red", RWM_26="ared", RWM_37="blue", RWM_38="blue"
)
j17, j40, j41 = _rules(_smaller_jitter, "", RWM_17="red", RWM_40="blue", RWM_41="blue")


@judge("RWM-14", "RWM-25", readings=CONGESTED,
       needs=("red_rwm_queue", "ared_rwm_queue", "red_queue", "ared_queue"))  # fmt: skip
def near_min(lab, claim):
    """Mean queue at four sources; nearer to max_th = 15 than to min_th = 5 is the other way round.

    Not under `downstream`, where the ingress is no bottleneck and its queue below both.
    """
    name = f"{_name(claim.algorithms[0])}_queue"
    part = near(claim.value, _queue(lab, name)[0], unit="packets", neutral=10.0, what="mean queue")
    plain = name.replace("_rwm", "")  # the same where RWM does not act
    why = f"{part.why}; {_windows(lab, name, plain)}; {_persisting(lab, name)}"
    return dataclasses.replace(part, why=why, engine="packets+fluid")


# 4.1: RED
@judge("RWM-16", needs=_sweeps("red"), readings=OPEN)
def red_before_ecn(lab, claim):
    """Delay of RED below that of RED-ECN, and relatively more so with the fewest sources."""
    gaps = 1 - _delay(lab, "red") / _delay(lab, "red_ecn")
    few = ordered(
        100 * gaps[-1], 100 * gaps[0], unit="%",
        what="RED's lead over RED-ECN at 30 sources below that at 4",
    )  # fmt: skip
    parts = {"shorter delay": _below(lab, _delay, "red", "red_ecn"), "more so at few sources": few}
    told_parts = [
        dataclasses.replace(part, why=f"'{name}' {part.verdict.replace('_', ' ')}: {part.why}")
        for name, part in parts.items()
    ]
    return all_of(*told_parts)


@judge("RWM-18", needs=_sweeps("red"), readings=OPEN)
def equal_when_light(lab, claim):
    """Throughput at the fewest sources, to 1 %: all are close to the link's rate, so that 5 % could
    not fail.
    """
    ours = _throughput(lab, "red_rwm")[0]
    parts = []
    for rival in ("red", "red_ecn"):
        what = f"throughput of RED-RWM and {_said(rival)} at 4 sources"
        parts.append(alike(ours, _throughput(lab, rival)[0], usual=0.01, most=0.01, what=what))
    return all_of(*parts)


@judge("RWM-19", needs=("red", "red_ecn"), readings=OPEN)
def tapers(lab, claim):
    """Throughput at the most sources: below that at the fewest, and 93 % to one point of percent,
    as a tenth of it would let everything through.
    """
    parts = []
    for name in ("red", "red_ecn"):
        share = _throughput(lab, name)
        what = f"throughput of {_said(name)} at 30 sources"
        parts.append(near(claim.value, share[-1], unit="%", tolerance=0.0, absolute=1.0, what=what))
        parts.append(ordered(share[-1], share[0], unit="%", what=f"{what} below that at 4"))
    return all_of(*parts)


@judge("RWM-20", needs=_sweeps("red"), readings=OPEN)
def most_throughput(lab, claim):
    """Throughput over all numbers of sources."""
    return all_of(*(_below(lab, _throughput, rival, "red_rwm")
                    for rival in ("red", "red_ecn")))  # fmt: skip


@judge("RWM-21", needs=_sweeps("red"), readings=OPEN)
def fewest_drops(lab, claim):
    """Drops over all numbers of sources; RED-ECN at the fewest and the most."""
    ecn = _drops(lab, "red_ecn")
    return all_of(
        _below(lab, _drops, "red_rwm", "red"),
        _below(lab, _drops, "red_rwm", "red_ecn"),
        alike(ecn[0], _drops(lab, "red_rwm")[0], what="drops of RED-ECN and RED-RWM, 4 sources"),
        alike(ecn[-1], _drops(lab, "red")[-1], what="drops of RED-ECN and RED, 30 sources"),
    )


@judge("RWM-22", needs=("red_rwm",), readings=OPEN)
def where_dropped(lab, claim):
    """Drops of RED-RWM at the ingress against those behind it."""
    ingress, behind = (_drops(lab, "red_rwm", r) for r in (ROUTERS[:1], ROUTERS[1:]))
    return ordered(
        ingress,
        behind,
        x=_x(lab, "red_rwm"),
        unit="packets",
        what="drops at the ingress below those behind",
    )


# 4.2: adaptive RED
@judge("RWM-27", needs=_sweeps("ared"), readings=OPEN)
def ared_before_ecn(lab, claim):
    """Delay over all numbers of sources."""
    return _below(lab, _delay, "ared", "ared_ecn")


@judge("RWM-28", needs=_sweeps("ared"), readings=(*OPEN, "steps"))
def more_than_all(lab, claim):
    """No reduction exceeds 100 %, so 133 % is read as what the others have beyond ARED-RWM."""
    parts = []
    for rival in claim.algorithms[1:]:
        beyond = 100 * (_jitter(lab, _name(rival)) / _jitter(lab, "ared_rwm") - 1)
        order = _below(lab, _jitter, "ared_rwm", _name(rival))
        parts.append(
            _printed(claim.value, beyond, order, f"jitter of {rival} beyond that of ARED-RWM")
        )
    return all_of(*parts)


@judge("RWM-29", needs=_sweeps("ared"), readings=OPEN)
def falls_and_rises(lab, claim):
    """Throughput at both ends above that where it is lowest between them, for all three."""
    parts = []
    for name in _names("ared"):
        share = _throughput(lab, name)
        lowest = 1 + int(np.argmin(share[1:-1].mean(axis=1)))
        what = f"throughput of {_said(name)} at {_x(lab, name)[lowest]} sources below that at"
        parts.append(ordered(share[lowest], share[0], unit="%", what=f"{what} 4"))
        parts.append(ordered(share[lowest], share[-1], unit="%", what=f"{what} 30"))
    return all_of(*parts)


@judge("RWM-30", needs=_sweeps("ared"), readings=OPEN)
def best_of_ared(lab, claim):
    """Throughput over all numbers of sources: ARED-RWM above both, ARED-ECN below ARED."""
    pairs = (("ared", "ared_rwm"), ("ared_ecn", "ared_rwm"), ("ared_ecn", "ared"))
    return all_of(*(_below(lab, _throughput, *pair) for pair in pairs))


@judge("RWM-31", needs=_sweeps("ared"), readings=OPEN)
def most_drops(lab, claim):
    """Drops at 16 sources and more."""
    rivals = ("ared", "ared_rwm")
    return all_of(*(_below(lab, _drops, r, "ared_ecn", where=lambda x: x >= 16) for r in rivals))


@judge("RWM-32", needs=_sweeps("red", "ared"), readings=OPEN)
def slight_reduction(lab, claim):
    """Queues with ECN at the ingress alone below those without, over all numbers of sources."""
    pairs = (("red_ecn", "red"), ("ared_ecn", "ared"))
    return all_of(*(_below(lab, _queue, *pair) for pair in pairs))


# 4.3: BLUE
@judge("RWM-34", needs=_queues("blue"), readings=(*CONGESTED, "loss"))
def largest_with_ecn(lab, claim):
    """Mean queues at four sources."""
    rivals = ("blue_queue", "blue_rwm_queue")
    return all_of(*(_below(lab, _queue, r, "blue_ecn_queue") for r in rivals))


def _variation(lab, name):
    metric = "queue_cov" if lab.reading == "relative" else "queue_var"
    found = lab.packets(f"{name}_queue").values(f"links.ingress.{metric}")
    return found if lab.reading == "relative" else np.sqrt(found)


@judge("RWM-35", needs=("red_queue", "ared_queue", "blue_queue"),
       readings=("relative", *CONGESTED, "loss"))  # fmt: skip
def most_variation(lab, claim):
    """Standard deviations of the queue at four sources."""
    parts = []
    for rival in ("red", "ared"):
        what = f"variation of the queue of {_said(rival)} below that of BLUE"
        parts.append(ordered(_variation(lab, rival), _variation(lab, "blue"), what=what))
    return all_of(*parts)


@judge("RWM-36", needs=_queues(*FAMILIES), readings=(*CONGESTED, "loss"))
def least_gain(lab, claim):
    """Reductions of the mean queue over the plain queue; the paper's own numbers before ours."""
    told_red, told_blue = (claims("rwm")[name].value for name in ("RWM-12", "RWM-33"))
    own = shown(
        min(told_blue) <= told_red, engine="analytic",
        why=f"the paper has {told_red} % for RED and {told_blue[0]} to {told_blue[1]} % for BLUE",
    )  # fmt: skip
    gain = {
        f: 100 * (1 - _queue(lab, f"{f}_rwm_queue") / _queue(lab, f"{f}_queue")) for f in FAMILIES
    }
    parts = [ordered(gain["blue"], gain[f], unit="%", what=f"gain of BLUE below that of {_said(f)}")
             for f in ("red", "ared")]  # fmt: skip
    return all_of(own, *parts)


@judge("RWM-39", needs=("blue", "blue_ecn"), readings=(*OPEN, "loss"))
def crossing(lab, claim):
    """Delay below 16 sources and above."""
    return all_of(
        _below(lab, _delay, "blue_ecn", "blue", where=lambda x: x < claim.value,
               what="below 16 sources, delay"),
        _below(lab, _delay, "blue", "blue_ecn", where=lambda x: x > claim.value,
               what="above 16 sources, delay"),
    )  # fmt: skip


@judge("RWM-42", needs=_sweeps("blue"), readings=(*OPEN, "loss", "steps"))
def grows(lab, claim):
    """Jitter from each number of sources to the next, for all three."""
    parts = []
    for name in _names("blue"):
        jitter = _jitter(lab, name)
        what = f"jitter of {_said(name)} below that with more sources"
        parts.append(ordered(jitter[:-1], jitter[1:], x=_x(lab, name)[:-1], unit="ms", what=what))
    return all_of(*parts)


@judge("RWM-43", needs=_sweeps("blue"), readings=(*OPEN, "loss"))
def more_throughput(lab, claim):
    """Gain in throughput, averaged over the numbers of sources; that at 4 below the average."""
    parts = [
        _changes(lab, claim, _throughput, claim.algorithms[1:], sign=1, what="gain in throughput")
    ]
    for rival in ("blue", "blue_ecn"):
        gain = 100 * (_throughput(lab, "blue_rwm") / _throughput(lab, rival) - 1)
        what = f"gain over {_said(rival)} at 4 sources below the mean over all"
        parts.append(ordered(gain[0], gain.mean(axis=0), unit="%", what=what))
    return all_of(*parts)


@judge("RWM-44", needs=_sweeps("blue"), readings=(*OPEN, "loss"))
def blue_drops_most(lab, claim):
    """Drops and throughput over all numbers of sources; the gap in drops at both ends."""
    drops = _drops(lab, "blue")
    gap = (drops - _drops(lab, "blue_ecn")) / np.maximum(drops, 1)
    return all_of(
        _below(lab, _drops, "blue_ecn", "blue"),
        _below(lab, _drops, "blue_rwm", "blue"),
        _below(lab, _throughput, "blue", "blue_ecn"),
        ordered(
            100 * gap[-1],
            100 * gap[0],
            unit="%",
            what="share by which BLUE-ECN drops less at 30 sources below that at 4",
        ),
    )


# 4.4: the three with RWM
@judge("RWM-45", needs=RWM, readings=(*OPEN, "loss", "steps"))
def blue_best(lab, claim):
    """Delay, jitter and drops over all numbers of sources."""
    pairs = [(of, rival) for of in (_delay, _jitter, _drops) for rival in ("red_rwm", "ared_rwm")]
    return all_of(*(_below(lab, of, "blue_rwm", rival) for of, rival in pairs))


@judge("RWM-46", needs=RWM, readings=(*OPEN, "loss"))
def blue_catches_up(lab, claim):
    """Throughput below 16 sources; above, 95 % or more of the slowest link counts as high."""
    shares = {}
    for name in RWM:
        many = lab.packets(name).x > claim.value
        shares[name] = float(_throughput(lab, name)[many].mean(axis=1).min())
    lowest = min(shares, key=shares.get)
    least = shares[lowest]
    said = f"above 16 sources at least {least:.1f} % ({_said(lowest)})"
    return all_of(
        *(_below(lab, _throughput, "blue_rwm", rival, where=lambda x: x < claim.value,
                 what="below 16 sources, throughput") for rival in ("red_rwm", "ared_rwm")),
        shown(least >= 95, said, engine="packets"),
    )  # fmt: skip


@judge("RWM-47", needs=("red_rwm", "ared_rwm"), readings=(*OPEN, "steps"))
def slight_difference(lab, claim):
    """All five metrics over all numbers of sources."""
    x = _x(lab, "red_rwm")
    return all_of(*(alike(of(lab, "ared_rwm"), of(lab, "red_rwm"), x=x, what=metric)
                    for metric, (of, _, _) in METRICS.items()))  # fmt: skip


@judge("RWM-48", needs=(*_sweeps(*FAMILIES), *(
    f"{name}@{reading}" for name in _sweeps(*FAMILIES) for reading in TOPOLOGIES
)))  # fmt: skip
def other_topologies(lab, claim):
    """The orders of RWM-01 under other rates and delays: how many come out the same."""
    first = {name: part.verdict for name, part in _improvements(lab).items()}
    same = []
    for reading, words in TOPOLOGIES.items():
        found = _improvements(lab.under(reading))
        agree = sum(found[name].verdict == first[name] for name in first)
        same.append(f"{agree} {words}")
    why = (
        f"missing: which topologies; of {len(first)} comparisons of RWM with its rivals, these "
        f"come out as they do with the rates and delays of the scenarios: {', '.join(same)}"
    )
    return Judgement("under_specified", why)
