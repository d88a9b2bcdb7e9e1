"""What rules for the claims of the BECN paper share (Akujobi et al., 2002): numerals are its
sections.

"High congestion" is read as the most flows of an experiment, "very low" as the fewest. Loss and
delay are those of V.D. Readings are those of ``validation/readings.toml``.

Two rules beside the general ones. A printed number that ours misses is `ordering_only` if its order
to each other number printed for the same point is ours too, significantly; one that ours meets is
`not_reproduced` if its order to any of them is reversed. The fluid model counts as an engine only
if its rest is stable and gives what is claimed, as packets do.
"""

import dataclasses

import numpy as np

import fluidcc as fc

from ...lab.judging import near, ordered, told
from ...lab.ledger import claims

LINK = "links.bottleneck"
OPEN = ("small_packets", "later_rules")  # readings where timeouts play no part
READINGS = (*OPEN, "short_timeout")

BOTH = ("homogeneous_ecn", "homogeneous_becn")
ALL = ("homogeneous_tcp", *BOTH)
BOTH_250, ALL_250 = (tuple(f"{name}_250ms" for name in names) for names in (BOTH, ALL))
QUENCHED = ("homogeneous_becn", "homogeneous_becn_250ms")
WEB = ("web_ecn", "web_becn")
WEB_250 = ("web_ecn_250ms", "web_becn_250ms")

GROUPS = {"plain TCP": "tcp", "TCP": "tcp", "NewReno": "tcp", "ECN": "ecn", "BECN": "becn"}
WORDS = {
    "queue_mean": "mean queue",
    "queue_bytes_mean": "mean queue",
    "queue_bytes_max": "longest queue",
    "drop_fraction": "loss",
    "mark_fraction": "share of marked packets",
    "utilization": "utilization",
}


def flows(lab, name, metric):
    """A metric of flows of one kind, shape (points, seeds)."""
    group = name.removesuffix("_250ms").rpartition("_")[2]
    return lab.packets(name).values(f"flows.{group}.{metric}")


def transfers(lab, name, metric):
    """A metric of the web transfers, shape (points, seeds)."""
    return lab.packets(name).values(f"flows.web.{metric}")


def link_at(lab, name, metric, x):
    """A metric of the bottleneck at one point, shape (seeds,)."""
    return lab.packets(name).at(x, f"{LINK}.{metric}")


def at_rest(lab, name, x, of):
    """What the fluid model says at one point: `of` its rest, NaN where it has no smooth one, and
    whether that is stable.
    """
    experiment = lab.experiment(name)
    net = experiment.net(experiment.x.index(x))
    rest = lab.ask(fc.equilibrium, net)
    if rest["status"] != "regular":
        return np.nan, False
    return of(rest), lab.ask(fc.stability, net)["stable"]


def signalled(rest):
    """Packets marked or dropped at rest [%]."""
    return 100 * rest["links"]["bottleneck"]["mark_probability"]


def noting_fluid(found, fluid, holds, *, unit, because=""):
    """A judgement that notes what the fluid model says: `fluid` as from `at_rest`, one or more;
    `holds` tells whether values are as claimed.
    """
    values, stable = zip(*fluid, strict=True)
    said, engine = " and ".join(told(value, unit=unit) for value in values), found.engine
    if np.isnan(values).any():
        remark = "the fluid model has no smooth rest there"
    elif not all(stable):
        remark = f"the fluid model at rest, {said}, is unstable there"
    elif holds(*values):
        remark = f"the fluid model at rest: {said}"
        engine = f"{engine}+fluid" if found.verdict == "reproduced" else engine
    else:
        remark = f"the fluid model disagrees, {said}, {because}".removesuffix(", ")
    return found.noting(remark, engine=engine)


def claimed(claim, of):
    """Whether a number of the fluid model is the claim's, by the tolerance of its quantity."""
    return lambda value: near(claim.value, [value], of=of, engine="fluid").verdict == "reproduced"


def below(low, high):
    """Whether numbers of the fluid model are in the order that is claimed."""
    return low < high


def or_order(found, claim, ids, of):
    """A number and its order to the others of `ids`, printed for the same point; `of` is what we
    have for a claim, shape (seeds,).
    """
    others = [claims("becn")[name] for name in ids if name != claim.id]
    steps = {}
    for other in others:
        pair = (claim, other) if claim.value < other.value else (other, claim)
        words = f"{other.value:g} of {other.algorithms[0]}"
        steps[words] = ordered(*(of(one) for one in pair)).verdict
    turned = [words for words, step in steps.items() if step == "contradicted"]
    if found.verdict == "reproduced" and turned:
        said = f"{found.said}: the order beside {' and '.join(turned)} is reversed"
        return dataclasses.replace(found, verdict="not_reproduced", said=said)
    if found.verdict == "not_reproduced" and set(steps.values()) == {"reproduced"}:
        said = f"{found.said}: the order beside {' and '.join(steps)} alone is right"
        return dataclasses.replace(found, verdict="ordering_only", said=said)
    return found
