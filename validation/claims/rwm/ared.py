"""Section 4.2: adaptive RED, and ECN at the ingress alone."""

import numpy as np

from ...lab.judging import SIZE, all_of, judge, ordered
from .common import (
    OPEN,
    STEPS,
    below,
    delay,
    drops,
    experiment,
    in_words,
    jitter,
    printed,
    queue,
    schemes,
    sources,
    sweeps,
    throughput,
)


@judge("RWM-27", needs=sweeps("ared"), readings=OPEN)
def ared_before_ecn(lab, claim):
    """Delay over all numbers of sources."""
    return below(lab, delay, "ared", "ared_ecn")


@judge("RWM-28", needs=sweeps("ared"), readings=OPEN + STEPS)
def more_than_all(lab, claim):
    """No reduction exceeds 100 %, so 133 % is read as what the others have beyond ARED-RWM."""
    parts = []
    for rival in claim.algorithms[1:]:
        beyond = 100 * (jitter(lab, experiment(rival)) / jitter(lab, "ared_rwm") - 1)
        order = below(lab, jitter, "ared_rwm", experiment(rival))
        what = f"jitter of {rival} beyond that of ARED-RWM"
        parts.append(printed(claim.value, beyond, order, what))
    return all_of(*parts)


@judge("RWM-29", needs=sweeps("ared"), readings=OPEN)
def falls_and_rises(lab, claim):
    """Throughput at both ends above that where it is lowest between them, for all three."""
    parts = []
    for name in schemes("ared"):
        share = throughput(lab, name)
        lowest = 1 + int(np.argmin(share[1:-1].mean(axis=1)))
        at = sources(lab, name)[lowest]
        what = f"throughput of {in_words(name)} at {at} sources below that at"
        for end, many in ((0, 4), (-1, 30)):
            words = f"{what} {many}"
            parts.append(ordered(share[lowest], share[end], unit="%", size=SIZE, what=words))
    return all_of(*parts)


@judge("RWM-30", needs=sweeps("ared"), readings=OPEN)
def best_of_ared(lab, claim):
    """Throughput over all numbers of sources: ARED-RWM above both, ARED-ECN below ARED."""
    pairs = (("ared", "ared_rwm"), ("ared_ecn", "ared_rwm"), ("ared_ecn", "ared"))
    return all_of(*(below(lab, throughput, *pair) for pair in pairs))


@judge("RWM-31", needs=sweeps("ared"), readings=OPEN)
def most_drops(lab, claim):
    """Drops at 16 sources and more."""
    rivals = ("ared", "ared_rwm")
    return all_of(*(below(lab, drops, r, "ared_ecn", where=lambda x: x >= 16) for r in rivals))


@judge("RWM-32", needs=sweeps("red", "ared"), readings=OPEN)
def slight_reduction(lab, claim):
    """Queues with ECN at the ingress alone below those without, over all numbers of sources."""
    pairs = (("red_ecn", "red"), ("ared_ecn", "ared"))
    return all_of(*(below(lab, queue, *pair) for pair in pairs))
