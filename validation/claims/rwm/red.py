"""Section 4.1: RED."""

from ...lab.judging import SIZE, alike, all_of, judge, near, ordered
from .common import OPEN, ROUTERS, below, delay, drops, in_words, sources, sweeps, throughput


@judge("RWM-16", needs=sweeps("red"), readings=OPEN)
def red_before_ecn(lab, claim):
    """Delay of RED below that of RED-ECN, and relatively more so with the fewest sources."""
    gaps = 1 - delay(lab, "red") / delay(lab, "red_ecn")
    few = ordered(
        100 * gaps[-1], 100 * gaps[0], unit="%",
        what="RED's lead over RED-ECN at 30 sources below that at 4",
    )  # fmt: skip
    return all_of(below(lab, delay, "red", "red_ecn"), few)


@judge("RWM-18", needs=sweeps("red"), readings=OPEN)
def equal_when_light(lab, claim):
    """Throughput at the fewest sources, to 1 %: all are close to the link's rate, so that 5 % could
    not fail.
    """
    ours = throughput(lab, "red_rwm")[0]
    parts = []
    for rival in ("red", "red_ecn"):
        what = f"throughput of RED-RWM and {in_words(rival)} at 4 sources"
        parts.append(alike(ours, throughput(lab, rival)[0], usual=0.01, most=0.01, what=what))
    return all_of(*parts)


@judge("RWM-19", needs=("red", "red_ecn"), readings=OPEN)
def tapers(lab, claim):
    """Throughput at the most sources: below that at the fewest, and 93 % to one point of percent,
    as a tenth of it would let everything through.
    """
    parts = []
    for name in ("red", "red_ecn"):
        share = throughput(lab, name)
        what = f"throughput of {in_words(name)} at 30 sources"
        parts.append(near(claim.value, share[-1], unit="%", absolute=1.0, what=what))
        what += " below that at 4"
        parts.append(ordered(share[-1], share[0], unit="%", size=SIZE, what=what))
    return all_of(*parts)


@judge("RWM-20", needs=sweeps("red"), readings=OPEN)
def most_throughput(lab, claim):
    """Throughput over all numbers of sources."""
    return all_of(*(below(lab, throughput, rival, "red_rwm") for rival in ("red", "red_ecn")))


@judge("RWM-21", needs=sweeps("red"), readings=OPEN)
def fewest_drops(lab, claim):
    """Drops over all numbers of sources; RED-ECN at the fewest and the most."""
    ecn = drops(lab, "red_ecn")
    return all_of(
        below(lab, drops, "red_rwm", "red"),
        below(lab, drops, "red_rwm", "red_ecn"),
        alike(ecn[0], drops(lab, "red_rwm")[0], what="drops of RED-ECN and RED-RWM, 4 sources"),
        alike(ecn[-1], drops(lab, "red")[-1], what="drops of RED-ECN and RED, 30 sources"),
    )


@judge("RWM-22", needs=("red_rwm",), readings=OPEN)
def where_dropped(lab, claim):
    """Drops of RED-RWM at the ingress against those behind it."""
    ingress, behind = (drops(lab, "red_rwm", r) for r in (ROUTERS[:1], ROUTERS[1:]))
    return ordered(
        ingress,
        behind,
        x=sources(lab, "red_rwm"),
        unit="packets",
        what="drops at the ingress below those behind",
    )
