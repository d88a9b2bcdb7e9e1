"""What the rules for the RWM paper (Govindaswamy et al., 2012) share; numerals are its sections.

Readings are those of ``validation/readings.toml``. Figures 6, 11 and 16 are of a queue at the
ingress in a congested state, so `fast`, where four sources do not fill the link, and `downstream`,
where another link is the bottleneck, are none of theirs. A printed change over the numbers of
sources is judged by its mean if its direction is right over the whole range, and else by its
direction.
"""

import numpy as np

from ...lab.judging import SIZE, Judgement, alike, all_of, near, ordered, outside, told
from ...lab.measures import link_efficiency

FAMILIES = ("red", "ared", "blue")
ROUTERS = ("ingress", "second", "third", "egress")
RWM = tuple(f"{family}_rwm" for family in FAMILIES)
TOPOLOGIES = {
    "downstream": "with the third router's link at 1.35 Mbit/s",
    "long": "with links of 50 ms between the routers",
    "fast": "with all links at 10 Mbit/s and receivers' windows of 20 packets",
}
WINDOWS = {"window5": 5, "window8": 8, "window20": 20}

OPEN, CONGESTED = (*TOPOLOGIES, *WINDOWS), ("long", *WINDOWS)
LOSS, STEPS = ("loss",), ("steps",)


def in_words(name):
    """An experiment in words: RED-RWM of red_rwm_queue."""
    return name.removesuffix("_queue").upper().replace("_", "-")


def experiment(algorithm):
    """The experiment of an algorithm such as RED-RWM."""
    return algorithm.lower().replace("-", "_")


def schemes(family):
    """The experiments of a family: with RWM, with early drops, with ECN."""
    return (f"{family}_rwm", family, f"{family}_ecn")


def sweeps(*families):
    """The experiments of families over the numbers of sources."""
    return tuple(name for family in families for name in schemes(family))


def queue_runs(*families):
    """The experiments of families at four sources."""
    return tuple(f"{name}_queue" for name in sweeps(*families))


def sources(lab, name):
    """The numbers of sources of an experiment."""
    return list(lab.packets(name).x)


def queue(lab, name):
    """Mean queue at the ingress [packets], shape (points, seeds) as all metrics."""
    return lab.packets(name).values("links.ingress.queue_mean")


def delay(lab, name):
    """Mean delay of packets [ms]."""
    return 1e3 * lab.packets(name).values("flows.tcp.delay_mean")


def jitter(lab, name):
    """Standard deviation of the delay [ms], or its mean step from one packet to the next."""
    metric = "ipdv_mean" if lab.reading == "steps" else "delay_jitter"
    return 1e3 * lab.packets(name).values(f"flows.tcp.{metric}")


def throughput(lab, name):
    """Share of the slowest link [%]."""
    return 100 * link_efficiency(lab.packets(name))


def drops(lab, name, routers=ROUTERS):
    """Packets dropped at routers."""
    runs = lab.packets(name)
    return np.sum([runs.values(f"links.{router}.drops") for router in routers], axis=0)


METRICS = {  # with the sign of better and the unit
    "queue": (queue, -1, "packets"), "delay": (delay, -1, "ms"), "jitter": (jitter, -1, "ms"),
    "throughput": (throughput, 1, "%"), "drops": (drops, -1, "packets"),
}  # fmt: skip


def below(lab, of, less, more, *, where=lambda x: x > 0, what=""):
    """Whether a metric of one experiment is below that of another, where a condition holds."""
    own, its = (lab.packets(name).x.tolist() for name in (less, more))
    x = [v for v in own if v in its and where(v)]  # a reading may have fewer points
    metric, unit = next((name, u) for name, (f, _, u) in METRICS.items() if f is of)
    what = f"{what or metric} of {in_words(less)} below that of {in_words(more)}"
    return ordered(of(lab, less)[[own.index(v) for v in x]],
                   of(lab, more)[[its.index(v) for v in x]], x=x, unit=unit, what=what)  # fmt: skip


def printed(value, change, order, what):
    """A printed change [%]: judged by its mean over the numbers of sources where its direction is
    right at them; else by the direction, and the mean is told.
    """
    mean = near(value, change.mean(axis=0), of="effect", unit="%", neutral=0.0, what=what)
    if order.verdict == "reproduced":
        return all_of(mean, order)
    return order.noting(mean.said, value=mean.value, half=mean.half, unit=mean.unit)


def changes(lab, claim, of, rivals, *, sign=-1, kind="", what=""):
    """The printed change by RWM against rivals."""
    ours, parts = experiment(claim.algorithms[0]) + kind, []
    for rival in rivals:
        theirs = experiment(rival) + kind
        change = 100 * sign * (of(lab, ours) / of(lab, theirs) - 1)
        order = below(lab, of, *((ours, theirs) if sign < 0 else (theirs, ours)))
        parts.append(printed(claim.value, change, order, f"{what} against {rival}"))
    return all_of(*parts)


def idle(lab, family):
    """A judgement that decides nothing if RWM does not act at four sources, as the queue is within
    1 % of that without it; None if it acts.
    """
    name = f"{family}_rwm_queue"
    own, plain = queue(lab, name), queue(lab, f"{family}_queue")
    if alike(own, plain, usual=SIZE, most=SIZE).verdict != "reproduced":
        return None
    means = f"{told(own.mean())} and {told(plain.mean())} packets"
    return outside(f"RWM does not act: mean queues with it and without are {means}")


def missing(what, *remarks, **numbers):
    """A claim that says too little to be judged: what it lacks, and what our runs give."""
    return Judgement("under_specified", f"missing: {what}", remarks=remarks, **numbers)
