"""Rules for the claims of the RWM paper (Govindaswamy et al., 2012): numerals are its sections.

Readings: `downstream`, `long` and `fast` are other rates and delays, `loss` is BLUE that steps up
by losses (figure 4), `steps` takes jitter as the mean step from one packet's delay to the next's,
and `relative` takes variation as standard deviation over mean. Figures 6, 11 and 16 are said to be
in a congested state, so `fast`, where four sources do not fill the link, is none of theirs. A
printed change over the numbers of sources is judged by its mean where its direction is right over
the whole range, and else by its direction.
"""

import dataclasses

import numpy as np
import sympy as sp

import fluidcc as fc
from fluidcc.laws.feedback.receiver_window import ReceiverWindow
from fluidcc.laws.law import Arrival
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
from fluidcc.scenario.files import load

FAMILIES = ("red", "ared", "blue")
ROUTERS = ("ingress", "second", "third", "egress")
TOPOLOGIES = ("downstream", "long", "fast")
CONGESTED = ("downstream", "long")


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
    runs = lab.packets(name)
    nets = [runs.experiment.net(k) for k in range(len(runs.x))]
    rates = [[min(float(k.capacity * k.packet_size) for k in net.links) * 8] for net in nets]
    return 100 * runs.x[:, None] * runs.values("flows.tcp.goodput") / rates


def _drops(lab, name, routers=ROUTERS):
    return sum(lab.packets(name).values(f"links.{router}.drops") for router in routers)


METRICS = {  # with the sign of better
    "queue": (_queue, -1), "delay": (_delay, -1), "jitter": (_jitter, -1),
    "throughput": (_throughput, 1), "drops": (_drops, -1),
}  # fmt: skip


def _x(lab, name):
    return list(lab.packets(name).x)


def _rest(lab, name):
    """Equilibrium at the first point, of the ingress alone: the queues behind it are empty."""
    net = lab.experiment(name).net(0)
    flows = tuple(dataclasses.replace(f, route=f.route[:1]) for f in net.flows)
    own = {"links": net.links[:1], "link_names": net.link_names[:1]}
    return lab.ask(fc.equilibrium, dataclasses.replace(net, flows=flows, **own))


def _below(lab, of, less, more, *, where=lambda x: x > 0, unit="", what=""):
    """Whether a metric of one experiment is below that of another, where a condition holds."""
    x = lab.packets(less).x
    chosen = where(x)
    said = f"{what or of.__name__[1:]} of {less} below {more}"
    return ordered(of(lab, less)[chosen], of(lab, more)[chosen], x=list(x[chosen]), unit=unit,
                   what=said)  # fmt: skip


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
        for metric, (of, sign) in METRICS.items():
            for rival in rivals:
                pair = (of(lab, ours), of(lab, rival))
                less, more = pair if sign < 0 else pair[::-1]
                found[f"{metric} of {ours} against {rival}"] = ordered(less, more)
    return found


@judge("RWM-01", needs=_sweeps(*FAMILIES), readings=(*TOPOLOGIES, "loss", "steps"))
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
    """Delay from the choice of the ingress to the sender: of an ACK there, or of a mark that goes
    on to the receiver first.
    """
    access, beyond, queues = sp.symbols("access beyond queues", positive=True)
    rtt = 2 * (access + beyond)
    modified, marked = access, queues + 2 * beyond + access
    flows = load("govindaswamy2012/red_rwm").flows[0]
    mark = float(np.mean(flows.rtt)) - float(flows.access_delay)
    slope = sp.diff((marked - modified).subs(beyond, sp.Symbol("T") / 2 - access), sp.Symbol("T"))
    holds = (
        slope == 1 and not modified.has(beyond) and sp.simplify(rtt - access - marked + queues) == 0
    )
    why = (
        f"{told(1e3 * float(flows.access_delay), unit='ms')} for a modified ACK against "
        f"{told(1e3 * mark, unit='ms')} and the queues for a mark; the advantage grows by "
        f"{slope} s per second of round trip"
    )
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


@judge("RWM-04", needs=("blue_rwm",))
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


def _bound(lab, name, definitions):
    """What the search for counterexamples of a bound found under some definitions."""
    about = {"bound": name, "definitions": definitions}

    def search():
        return fc.check_bound(name, definitions=definitions).to_dict()

    return lab.store.keep("bounds", about, search)["bounds"][0]


def _searched(lab, name, unit=""):
    """A bound under windows of any size, or under `fitting` windows as its reading."""
    fitting = "at most half a packet each beyond pipe and min_th"
    found = _bound(lab, name, {"windows": fitting if lab.reading == "fitting" else "any"})
    value = found["worst"]["value"]
    said = f"windows {found['definitions']['windows']}: {found['verdict']} in a search of "
    said += f"{found['searched']} cases, {value:.3g} against {found['worst']['bound']:.3g} at worst"
    verdict = "reproduced" if found["verdict"] == "holds" else "contradicted"
    return Judgement(verdict, said, value, unit=unit)


@judge("RWM-05", readings=("fitting",))
def average_about_min(lab, claim):
    """The bound `rwm.average_queue` (to 20 %), with the equilibrium of the fluid model beside it.

    The average of RED's linear part is min_th + (p/p_max)(max_th - min_th) for any sender.
    """
    rest = _rest(lab, "red_rwm")
    average = rest["links"]["ingress"]["average"]
    part = _searched(lab, "rwm.average_queue", "min_th")
    fluid = (
        f"; fluid model of four sources: {average:.3g} packets ({rest['status']}), as the average "
        f"is min_th + (p/p_max)(max_th - min_th) and so min_th only where p is far below p_max"
    )
    return dataclasses.replace(part, why=part.why + fluid, engine="packets+fluid")


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


@judge("RWM-07", readings=("fitting",))
def recommended(lab, claim):
    """The bound `rwm.recommended_p_max`: modified ACKs suffice, 0.1 % of packets drop."""
    return _searched(lab, "rwm.recommended_p_max", "share dropped")


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
        readings = CONGESTED if kind else TOPOLOGIES
        readings += ("steps",) if "jitter" in rule.__name__ else ()
        readings += ("loss",) if "blue" in families else ()
        needs = tuple(f"{n}{kind}" for n in _sweeps(*families))
        return judge(name.replace("_", "-"), needs=needs, readings=readings)(copy)

    return [one(name, families.split()) for name, families in asked.items()]


def _smaller_queue(lab, claim):
    """Reduction of the mean queue at four sources."""
    rivals = claim.algorithms[1:]
    part = _changes(lab, claim, _queue, rivals, kind="_queue", what="reduction of the mean queue")
    if lab.reading == "downstream":  # where the fluid model of the ingress alone says nothing
        return part
    told_fluid = []
    for algorithm in claim.algorithms:
        rest = _rest(lab, f"{_name(algorithm)}_queue")
        queue = rest["links"]["ingress"]["queue"]
        told_fluid.append(f"{algorithm} {queue:.3g} ({rest['status']})")
    why = f"{part.why}; packets at rest in the fluid model: {', '.join(told_fluid)}"
    return dataclasses.replace(part, why=why, engine="packets+fluid")


def _same_queue(lab, claim):
    """Mean queues at four sources."""
    one, other = (_queue(lab, f"{_name(a)}_queue") for a in claim.algorithms)
    return alike(one, other, what=f"mean queues of {' and '.join(claim.algorithms)}")


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


@judge("RWM-14", "RWM-25", needs=("red_rwm_queue", "ared_rwm_queue"), readings=("long",))
def near_min(lab, claim):
    """Mean queue at four sources; nearer to max_th = 15 than to min_th = 5 is the other way round.

    Not under `downstream`, where the ingress is no bottleneck and its queue below both.
    """
    name = f"{_name(claim.algorithms[0])}_queue"
    rest = _rest(lab, name)
    part = near(claim.value, _queue(lab, name)[0], unit="packets", neutral=10.0, what="mean queue")
    fluid = rest["links"]["ingress"]["queue"]
    why = f"{part.why}; {told(fluid, unit='packets')} in the fluid model ({rest['status']})"
    return dataclasses.replace(part, why=why, engine="packets+fluid")


# 4.1: RED
@judge("RWM-16", needs=_sweeps("red"), readings=TOPOLOGIES)
def red_before_ecn(lab, claim):
    """Delay of RED below that of RED-ECN, and relatively more so with the fewest sources."""
    gaps = 1 - _delay(lab, "red") / _delay(lab, "red_ecn")
    few = ordered(
        100 * gaps[-1], 100 * gaps[0], unit="%", what="RED's lead at most and fewest sources"
    )
    return all_of(_below(lab, _delay, "red", "red_ecn", unit="ms"), few)


@judge("RWM-18", needs=_sweeps("red"), readings=TOPOLOGIES)
def equal_when_light(lab, claim):
    """Throughput at the fewest sources."""
    ours = _throughput(lab, "red_rwm")[0]
    rivals = ("red", "red_ecn")
    return all_of(*(alike(ours, _throughput(lab, r)[0], what=f"red_rwm and {r}, 4 sources")
                    for r in rivals))  # fmt: skip


@judge("RWM-19", needs=("red", "red_ecn"), readings=TOPOLOGIES)
def tapers(lab, claim):
    """Throughput at the most sources: below that at the fewest, and 93 % to one point of percent,
    as a tenth of it would let everything through.
    """
    parts = []
    for name in ("red", "red_ecn"):
        share = _throughput(lab, name)
        what = f"throughput of {name} at 30 sources"
        parts.append(near(claim.value, share[-1], unit="%", tolerance=0.0, absolute=1.0, what=what))
        parts.append(ordered(share[-1], share[0], unit="%", what=f"{what} below that at 4"))
    return all_of(*parts)


@judge("RWM-20", needs=_sweeps("red"), readings=TOPOLOGIES)
def most_throughput(lab, claim):
    """Throughput over all numbers of sources."""
    return all_of(*(_below(lab, _throughput, rival, "red_rwm", unit="%")
                    for rival in ("red", "red_ecn")))  # fmt: skip


@judge("RWM-21", needs=_sweeps("red"), readings=TOPOLOGIES)
def fewest_drops(lab, claim):
    """Drops over all numbers of sources; RED-ECN at the fewest and the most."""
    ecn = _drops(lab, "red_ecn")
    return all_of(
        _below(lab, _drops, "red_rwm", "red"),
        _below(lab, _drops, "red_rwm", "red_ecn"),
        alike(ecn[0], _drops(lab, "red_rwm")[0], what="red_ecn and red_rwm, 4 sources"),
        alike(ecn[-1], _drops(lab, "red")[-1], what="red_ecn and red, 30 sources"),
    )


@judge("RWM-22", needs=("red_rwm",), readings=TOPOLOGIES)
def where_dropped(lab, claim):
    """Drops of RED-RWM at the ingress against those behind it."""
    ingress, behind = (_drops(lab, "red_rwm", r) for r in (ROUTERS[:1], ROUTERS[1:]))
    return ordered(
        ingress, behind, x=_x(lab, "red_rwm"), what="drops at the ingress below those behind"
    )


# 4.2: adaptive RED
@judge("RWM-27", needs=_sweeps("ared"), readings=TOPOLOGIES)
def ared_before_ecn(lab, claim):
    """Delay over all numbers of sources."""
    return _below(lab, _delay, "ared", "ared_ecn", unit="ms")


@judge("RWM-28", needs=_sweeps("ared"), readings=(*TOPOLOGIES, "steps"))
def more_than_all(lab, claim):
    """No reduction exceeds 100 %, so 133 % is read as what the others have beyond ARED-RWM."""
    parts = []
    for rival in claim.algorithms[1:]:
        beyond = 100 * (_jitter(lab, _name(rival)) / _jitter(lab, "ared_rwm") - 1)
        order = _below(lab, _jitter, "ared_rwm", _name(rival))
        parts.append(_printed(claim.value, beyond, order, f"jitter of {rival} beyond ours"))
    return all_of(*parts)


@judge("RWM-29", needs=_sweeps("ared"), readings=TOPOLOGIES)
def falls_and_rises(lab, claim):
    """Throughput at both ends above that where it is lowest between them, for all three."""
    parts = []
    for name in _names("ared"):
        share = _throughput(lab, name)
        lowest = 1 + int(np.argmin(share[1:-1].mean(axis=1)))
        what = f"{name} at {_x(lab, name)[lowest]} sources below that at"
        parts.append(ordered(share[lowest], share[0], unit="%", what=f"{what} 4"))
        parts.append(ordered(share[lowest], share[-1], unit="%", what=f"{what} 30"))
    return all_of(*parts)


@judge("RWM-30", needs=_sweeps("ared"), readings=TOPOLOGIES)
def best_of_ared(lab, claim):
    """Throughput over all numbers of sources: ARED-RWM above both, ARED-ECN below ARED."""
    pairs = (("ared", "ared_rwm"), ("ared_ecn", "ared_rwm"), ("ared_ecn", "ared"))
    return all_of(*(_below(lab, _throughput, *pair, unit="%") for pair in pairs))


@judge("RWM-31", needs=_sweeps("ared"), readings=TOPOLOGIES)
def most_drops(lab, claim):
    """Drops at 16 sources and more."""
    rivals = ("ared", "ared_rwm")
    return all_of(*(_below(lab, _drops, r, "ared_ecn", where=lambda x: x >= 16) for r in rivals))


@judge("RWM-32", needs=_sweeps("red", "ared"), readings=TOPOLOGIES)
def slight_reduction(lab, claim):
    """Queues with ECN at the ingress alone below those without, over all numbers of sources."""
    pairs = (("red_ecn", "red"), ("ared_ecn", "ared"))
    return all_of(*(_below(lab, _queue, *pair, unit="packets") for pair in pairs))


# 4.3: BLUE
@judge("RWM-34", needs=_queues("blue"), readings=(*CONGESTED, "loss"))
def largest_with_ecn(lab, claim):
    """Mean queues at four sources."""
    rivals = ("blue_queue", "blue_rwm_queue")
    return all_of(*(_below(lab, _queue, r, "blue_ecn_queue", unit="packets") for r in rivals))


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
        what = f"variation of the queue of {rival} below that of blue"
        parts.append(ordered(_variation(lab, rival), _variation(lab, "blue"), what=what))
    return all_of(*parts)


@judge("RWM-36", needs=_queues(*FAMILIES), readings=(*CONGESTED, "loss"))
def least_gain(lab, claim):
    """Reductions of the mean queue over the plain queue; the paper's own numbers before ours."""
    told_red, told_blue = (claims("rwm")[name].value for name in ("RWM-12", "RWM-33"))
    own = shown(
        max(told_blue) < told_red, engine="analytic",
        why=f"the paper has {told_red} % for RED and {told_blue[0]} to {told_blue[1]} % for BLUE",
    )  # fmt: skip
    gain = {
        f: 100 * (1 - _queue(lab, f"{f}_rwm_queue") / _queue(lab, f"{f}_queue")) for f in FAMILIES
    }
    parts = [ordered(gain["blue"], gain[f], unit="%", what=f"gain of blue below that of {f}")
             for f in ("red", "ared")]  # fmt: skip
    return all_of(own, *parts)


@judge("RWM-39", needs=("blue", "blue_ecn"), readings=(*TOPOLOGIES, "loss"))
def crossing(lab, claim):
    """Delay below 16 sources and above."""
    return all_of(
        _below(lab, _delay, "blue_ecn", "blue", where=lambda x: x < claim.value, unit="ms",
               what="below 16 sources, delay"),
        _below(lab, _delay, "blue", "blue_ecn", where=lambda x: x > claim.value, unit="ms",
               what="above 16 sources, delay"),
    )  # fmt: skip


@judge("RWM-42", needs=_sweeps("blue"), readings=(*TOPOLOGIES, "loss", "steps"))
def grows(lab, claim):
    """Jitter from each number of sources to the next, for all three."""
    parts = []
    for name in _names("blue"):
        jitter = _jitter(lab, name)
        what = f"jitter of {name} below that with more sources"
        parts.append(ordered(jitter[:-1], jitter[1:], x=_x(lab, name)[:-1], unit="ms", what=what))
    return all_of(*parts)


@judge("RWM-43", needs=_sweeps("blue"), readings=(*TOPOLOGIES, "loss"))
def more_throughput(lab, claim):
    """Gain in throughput, averaged over the numbers of sources; that at 4 below the average."""
    parts = [
        _changes(lab, claim, _throughput, claim.algorithms[1:], sign=1, what="gain in throughput")
    ]
    for rival in ("blue", "blue_ecn"):
        gain = 100 * (_throughput(lab, "blue_rwm") / _throughput(lab, rival) - 1)
        what = f"gain over {rival} at 4 below the mean"
        parts.append(ordered(gain[0], gain.mean(axis=0), unit="%", what=what))
    return all_of(*parts)


@judge("RWM-44", needs=_sweeps("blue"), readings=(*TOPOLOGIES, "loss"))
def blue_drops_most(lab, claim):
    """Drops and throughput over all numbers of sources; the gap in drops at both ends."""
    drops = _drops(lab, "blue")
    gap = (drops - _drops(lab, "blue_ecn")) / np.maximum(drops, 1)
    return all_of(
        _below(lab, _drops, "blue_ecn", "blue"),
        _below(lab, _drops, "blue_rwm", "blue"),
        _below(lab, _throughput, "blue", "blue_ecn", unit="%"),
        ordered(
            100 * gap[-1], 100 * gap[0], unit="%", what="fewer drops of blue_ecn at 30 and at 4"
        ),
    )


# 4.4: the three with RWM
@judge("RWM-45", needs=RWM, readings=(*TOPOLOGIES, "loss", "steps"))
def blue_best(lab, claim):
    """Delay, jitter and drops over all numbers of sources."""
    pairs = [(of, rival) for of in (_delay, _jitter, _drops) for rival in ("red_rwm", "ared_rwm")]
    return all_of(*(_below(lab, of, "blue_rwm", rival) for of, rival in pairs))


@judge("RWM-46", needs=RWM, readings=(*TOPOLOGIES, "loss"))
def blue_catches_up(lab, claim):
    """Throughput below 16 sources; above, 95 % or more of the slowest link counts as high."""
    x = lab.packets("blue_rwm").x
    shares = {name: _throughput(lab, name)[x > claim.value].mean(axis=1) for name in RWM}
    lowest = min(shares, key=lambda name: shares[name].min())
    least = float(shares[lowest].min())
    return all_of(
        *(_below(lab, _throughput, "blue_rwm", rival, where=lambda x: x < claim.value, unit="%",
                 what="below 16 sources, throughput") for rival in ("red_rwm", "ared_rwm")),
        shown(least >= 95, f"above 16 sources at least {least:.1f} % ({lowest})", engine="packets"),
    )  # fmt: skip


@judge("RWM-47", needs=("red_rwm", "ared_rwm"), readings=(*TOPOLOGIES, "steps"))
def slight_difference(lab, claim):
    """All five metrics over all numbers of sources."""
    x = _x(lab, "red_rwm")
    return all_of(*(alike(of(lab, "ared_rwm"), of(lab, "red_rwm"), x=x, what=metric)
                    for metric, (of, _) in METRICS.items()))  # fmt: skip


@judge("RWM-48", needs=_sweeps(*FAMILIES))
def other_topologies(lab, claim):
    """The orders of RWM-01 under other rates and delays: how many come out the same."""
    first = {name: part.verdict for name, part in _improvements(lab).items()}
    same = []
    for reading in TOPOLOGIES:
        found = _improvements(lab.under(reading))
        agree = sum(found[name].verdict == first[name] for name in first)
        same.append(f"{agree} under {reading}")
    why = (
        f"missing: which topologies; of {len(first)} orders of RWM against its rivals as many come "
        f"out as in the files: {', '.join(same)}"
    )
    return Judgement("under_specified", why)
