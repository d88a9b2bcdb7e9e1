"""Sections 4.1 to 4.3: what is claimed alike of RED, of adaptive RED and of BLUE."""

import numpy as np

from ...lab.judging import alike, all_of, judge, near, outside
from .common import (
    CONGESTED,
    LOSS,
    OPEN,
    STEPS,
    changes,
    delay,
    experiment,
    idle,
    in_words,
    jitter,
    queue,
    sweeps,
)
from .queues import by_windows, persisting, rest, resting


def _rules(rule, kind, **asked):
    """The same rule for claims of several scenarios, each with its own runs and readings."""

    def one(name, families):
        def copy(lab, claim):
            return rule(lab, claim)

        copy.__doc__ = rule.__doc__
        steps = STEPS if "jitter" in rule.__name__ else ()
        loss = LOSS if "blue" in families else ()
        readings = (CONGESTED if kind else OPEN) + steps + loss
        needs = tuple(f"{n}{kind}" for n in sweeps(*families))
        return judge(name.replace("_", "-"), needs=needs, readings=readings)(copy)

    return [one(name, families.split()) for name, families in asked.items()]


def _smaller_queue(lab, claim):
    """Reduction of the mean queue at four sources."""
    if (nothing := idle(lab, experiment(claim.algorithms[0]).removesuffix("_rwm"))) is not None:
        return nothing
    rivals = claim.algorithms[1:]
    found = changes(lab, claim, queue, rivals, kind="_queue", what="reduction of the mean queue")
    ours, *others = (f"{experiment(algorithm)}_queue" for algorithm in claim.algorithms)
    base = lab.under(None)
    own, *rests = (rest(base, name) for name in (ours, *others))
    words = [f"that of {in_words(n)} {resting(r)}" for n, r in zip(others, rests, strict=True)]
    fluid = ", ".join([persisting(lab, ours), *words])
    return found.beside_fluid(_smaller(claim, own, rests), by_windows(lab, ours, others[0]), fluid)


def _smaller(claim, own, rests):
    """The verdict of the fluid model alone on a reduction of the queue at rest."""
    if "continuum" in (own["status"], *(r["status"] for r in rests)):
        return "not_applicable"
    low, *high = (r["links"]["ingress"]["queue"] for r in (own, *rests))
    parts = (
        near(claim.value, [100 * (1 - low / h)], of="effect", neutral=0.0, engine="fluid")
        for h in high
    )
    return all_of(*parts).verdict


def _same_queue(lab, claim):
    """Mean queues at four sources; runs that are the same to the last digit, where nothing is
    dropped or marked, compare nothing.
    """
    one, other = (queue(lab, f"{experiment(a)}_queue") for a in claim.algorithms)
    found = alike(one, other, what=f"mean queues of {' and '.join(claim.algorithms)}")
    if np.array_equal(one, other):
        return outside(f"{found.said}, as nothing is dropped or marked: nothing is compared")
    return found


def _smaller_delay(lab, claim):
    """Reduction of the mean delay, averaged over the numbers of sources."""
    return changes(lab, claim, delay, claim.algorithms[1:], what="reduction of the delay")


def _smaller_jitter(lab, claim):
    """Reduction of the standard deviation of the delay, averaged over the numbers of sources."""
    return changes(lab, claim, jitter, claim.algorithms[1:], what="reduction of the jitter")


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
    family = experiment(claim.algorithms[0]).removesuffix("_rwm")
    if (nothing := idle(lab, family)) is not None:
        return nothing
    name, plain = f"{family}_rwm_queue", f"{family}_queue"
    asked = {"of": "queue", "unit": "packets", "neutral": 10.0}
    at_rest = rest(lab.under(None), name)["links"]["ingress"]["queue"]
    alone = near(claim.value, [at_rest], engine="fluid", **asked).verdict
    what = f"mean queue of {in_words(name)}"
    return near(claim.value, queue(lab, name)[0], what=what, **asked).beside_fluid(
        alone, by_windows(lab, name, plain), persisting(lab, name)
    )
