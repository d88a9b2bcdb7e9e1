"""Section 4.3: BLUE."""

import numpy as np

from ...lab.judging import SIZE, all_of, judge, ordered, shown
from ...lab.ledger import claims
from .common import (
    CONGESTED,
    FAMILIES,
    LOSS,
    OPEN,
    STEPS,
    below,
    changes,
    delay,
    drops,
    idle,
    in_words,
    jitter,
    queue,
    queue_runs,
    schemes,
    sources,
    sweeps,
    throughput,
)


@judge("RWM-34", needs=queue_runs("blue"), readings=CONGESTED + LOSS)
def largest_with_ecn(lab, claim):
    """Mean queues at four sources."""
    if (nothing := idle(lab, "blue")) is not None:
        return nothing
    rivals = ("blue_queue", "blue_rwm_queue")
    return all_of(*(below(lab, queue, r, "blue_ecn_queue") for r in rivals))


def _variation(lab, name):
    metric = "queue_cov" if lab.reading == "relative" else "queue_var"
    found = lab.packets(f"{name}_queue").values(f"links.ingress.{metric}")
    return found if lab.reading == "relative" else np.sqrt(found)


@judge(
    "RWM-35",
    needs=("red_queue", "ared_queue", "blue_queue"),
    readings=("relative", *CONGESTED, *LOSS),
)
def most_variation(lab, claim):
    """Standard deviations of the queue at four sources."""
    parts = []
    for rival in ("red", "ared"):
        what = f"variation of the queue of {in_words(rival)} below that of BLUE"
        parts.append(ordered(_variation(lab, rival), _variation(lab, "blue"), what=what))
    return all_of(*parts)


@judge("RWM-36", needs=queue_runs(*FAMILIES), readings=CONGESTED + LOSS)
def least_gain(lab, claim):
    """Reductions of the mean queue over the plain queue; the paper's own numbers before ours."""
    told_red, told_blue = (claims("rwm")[name].value for name in ("RWM-12", "RWM-33"))
    own = shown(
        min(told_blue) <= told_red, engine="analytic",
        why=f"the paper has {told_red} % for RED and {told_blue[0]} to {told_blue[1]} % for BLUE",
    )  # fmt: skip
    gain = {
        f: 100 * (1 - queue(lab, f"{f}_rwm_queue") / queue(lab, f"{f}_queue")) for f in FAMILIES
    }
    parts = [
        ordered(gain["blue"], gain[f], unit="%", what=f"gain of BLUE below that of {in_words(f)}")
        for f in ("red", "ared")
    ]
    return all_of(own, *parts)


@judge("RWM-39", needs=("blue", "blue_ecn"), readings=OPEN + LOSS)
def crossing(lab, claim):
    """Delay below 16 sources and above."""
    return all_of(
        below(lab, delay, "blue_ecn", "blue", where=lambda x: x < claim.value,
              what="below 16 sources, delay"),
        below(lab, delay, "blue", "blue_ecn", where=lambda x: x > claim.value,
              what="above 16 sources, delay"),
    )  # fmt: skip


@judge("RWM-42", needs=sweeps("blue"), readings=OPEN + LOSS + STEPS)
def grows(lab, claim):
    """Jitter from each number of sources to the next, for all three."""
    parts = []
    for name in schemes("blue"):
        found, x = jitter(lab, name), sources(lab, name)
        what = f"jitter of {in_words(name)} below that with more sources"
        parts.append(ordered(found[:-1], found[1:], x=x[:-1], unit="ms", size=SIZE, what=what))
    return all_of(*parts)


@judge("RWM-43", needs=sweeps("blue"), readings=OPEN + LOSS)
def more_throughput(lab, claim):
    """Gain in throughput, averaged over the numbers of sources; that at 4 below the average."""
    rivals = claim.algorithms[1:]
    parts = [changes(lab, claim, throughput, rivals, sign=1, what="gain in throughput")]
    for rival in ("blue", "blue_ecn"):
        gain = 100 * (throughput(lab, "blue_rwm") / throughput(lab, rival) - 1)
        what = f"gain over {in_words(rival)} at 4 sources below the mean over all"
        parts.append(ordered(gain[0], gain.mean(axis=0), unit="%", what=what))
    return all_of(*parts)


@judge("RWM-44", needs=sweeps("blue"), readings=OPEN + LOSS)
def blue_drops_most(lab, claim):
    """Drops and throughput over all numbers of sources; the gap in drops at both ends."""
    own = drops(lab, "blue")
    gap = (own - drops(lab, "blue_ecn")) / np.maximum(own, 1)
    return all_of(
        below(lab, drops, "blue_ecn", "blue"),
        below(lab, drops, "blue_rwm", "blue"),
        below(lab, throughput, "blue", "blue_ecn"),
        ordered(
            100 * gap[-1],
            100 * gap[0],
            unit="%",
            what="share by which BLUE-ECN drops less at 30 sources below that at 4",
        ),
    )
