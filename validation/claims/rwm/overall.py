"""Sections 4 and 4.4, abstract and conclusion: the three queues with RWM side by side."""

from ...lab.judging import Judgement, alike, all_of, judge, ordered, shown
from .common import (
    FAMILIES,
    LOSS,
    METRICS,
    OPEN,
    RWM,
    STEPS,
    TOPOLOGIES,
    below,
    delay,
    drops,
    in_words,
    jitter,
    missing,
    schemes,
    sources,
    sweeps,
    throughput,
)


def _improvements(lab):
    """Every metric of each RWM queue against both rivals, judged as an order."""
    found = {}
    for family in FAMILIES:
        ours, *rivals = schemes(family)
        for metric, (of, sign, _) in METRICS.items():
            for rival in rivals:
                pair = (of(lab, ours), of(lab, rival))
                less, more = pair if sign < 0 else pair[::-1]
                what = f"{metric} of {in_words(ours)} against {in_words(rival)}"
                found[what] = ordered(less, more)
    return found


@judge("RWM-01", needs=sweeps(*FAMILIES), readings=OPEN + LOSS + STEPS)
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


@judge("RWM-45", needs=RWM, readings=OPEN + LOSS + STEPS)
def blue_best(lab, claim):
    """Delay, jitter and drops over all numbers of sources."""
    pairs = [(of, rival) for of in (delay, jitter, drops) for rival in ("red_rwm", "ared_rwm")]
    return all_of(*(below(lab, of, "blue_rwm", rival) for of, rival in pairs))


@judge("RWM-46", needs=RWM, readings=OPEN + LOSS)
def blue_catches_up(lab, claim):
    """Throughput below 16 sources; above, 95 % or more of the slowest link counts as high."""
    shares = {}
    for name in RWM:
        many = lab.packets(name).x > claim.value
        shares[name] = float(throughput(lab, name)[many].mean(axis=1).min())
    lowest = min(shares, key=lambda name: shares[name])
    least = shares[lowest]
    said = f"above 16 sources at least {least:.1f} % ({in_words(lowest)})"
    return all_of(
        *(below(lab, throughput, "blue_rwm", rival, where=lambda x: x < claim.value,
                what="below 16 sources, throughput") for rival in ("red_rwm", "ared_rwm")),
        shown(least >= 95, said, engine="packets"),
    )  # fmt: skip


@judge("RWM-47", needs=("red_rwm", "ared_rwm"), readings=OPEN + STEPS)
def slight_difference(lab, claim):
    """All five metrics over all numbers of sources."""
    x = sources(lab, "red_rwm")
    return all_of(*(alike(of(lab, "ared_rwm"), of(lab, "red_rwm"), x=x, what=metric)
                    for metric, (of, _, _) in METRICS.items()))  # fmt: skip


@judge("RWM-48", needs=(*sweeps(*FAMILIES), *(
    f"{name}@{reading}" for name in sweeps(*FAMILIES) for reading in TOPOLOGIES
)))  # fmt: skip
def other_topologies(lab, claim):
    """The orders of RWM-01 under other rates and delays: how many come out the same."""
    base = lab.under(None)  # as the other topologies have it: windows are not validated
    first = {name: part.verdict for name, part in _improvements(base).items()}
    same = []
    for reading, words in TOPOLOGIES.items():
        found = _improvements(lab.under(reading))
        agree = sum(found[name].verdict == first[name] for name in first)
        same.append(f"{agree} {words}")
    return missing(
        "which topologies",
        f"of {len(first)} comparisons of RWM with its rivals, these come out as they do with the "
        f"rates and delays of the scenarios: {', '.join(same)}",
    )
