"""Flows of one kind alone: at 40 ms (VI.B), and at 250 ms (VI.D)."""

from ...lab.judging import SIZE, alike, all_of, judge, near, ordered, shown
from .common import (
    ALL,
    ALL_250,
    BOTH,
    BOTH_250,
    GROUPS,
    LINK,
    OPEN,
    QUENCHED,
    READINGS,
    WORDS,
    at_rest,
    below,
    claimed,
    flows,
    link_at,
    noting_fluid,
    or_order,
    signalled,
)

_MAX_TH = 45.0  # [packet]
_SIZE = 1000.0  # of a packet [B]


def _flows_at(lab, name, metric, x):
    """A metric of the flows at one point, shape (seeds,)."""
    return flows(lab, name, metric)[lab.experiment(name).x.index(x)]


def _queue(rest):
    """Queue at rest [B]."""
    return _SIZE * rest["links"]["bottleneck"]["queue"]


@judge("BECN-18", "BECN-28", "BECN-29", needs=ALL, readings=READINGS)
def loss_alone(lab, claim):
    """Loss at 45 flows; else the order of all three."""

    def lost(one):
        name = f"homogeneous_{GROUPS[one.algorithms[0]]}"
        return 100 * _flows_at(lab, name, "loss_fraction", 45)

    what = f"loss of {claim.algorithms[0]} at 45 flows"
    found = near(claim.value, lost(claim), of="loss", unit="%", what=what)
    found = or_order(found, claim, ("BECN-18", "BECN-28", "BECN-29"), lost)
    fluid = at_rest(lab, f"homogeneous_{GROUPS[claim.algorithms[0]]}", 45, signalled)
    return noting_fluid(found, [fluid], claimed(claim, "loss"), unit="%")


@judge("BECN-19", "BECN-20", "BECN-21", needs=ALL, readings=READINGS)
def queue_alone(lab, claim):
    """Mean queue over time at 45 flows, in bytes; else the order of all three."""

    def queue(one):
        name = f"homogeneous_{GROUPS[one.algorithms[0]]}"
        return link_at(lab, name, "queue_bytes_mean", 45)

    what = f"mean queue of {claim.algorithms[0]} at 45 flows"
    found = near(claim.value, queue(claim), of="queue", unit="B", what=what)
    found = or_order(found, claim, ("BECN-19", "BECN-20", "BECN-21"), queue)
    fluid = at_rest(lab, f"homogeneous_{GROUPS[claim.algorithms[0]]}", 45, _queue)
    return noting_fluid(found, [fluid], claimed(claim, "queue"), unit="B")


@judge("BECN-22", needs=ALL, readings=OPEN)
def queue_order(lab, claim):
    """Mean queues at 45 flows, both steps of the order."""
    tcp, ecn, becn = (link_at(lab, name, "queue_bytes_mean", 45) for name in ALL)
    return all_of(
        ordered(tcp, becn, what="queue, plain TCP below BECN", unit="B"),
        ordered(becn, ecn, what="queue, BECN below ECN", unit="B"),
    )


@judge("BECN-23", needs=("homogeneous_tcp",), readings=READINGS)
def utilization_range(lab, claim):
    """Utilization at every number of flows within the printed range, which is the tolerance: 10 %
    would be more than what is left to 100 %.
    """
    runs = lab.packets("homogeneous_tcp")
    busy = 100 * runs.values(f"{LINK}.utilization").mean(axis=1)
    low, high = claim.value
    outside = ", ".join(str(x) for x in runs.x[(busy < low) | (busy > high)])
    why = f"{busy.min():.5g} to {busy.max():.5g} % against {low} to {high} %" + (
        f", outside at {outside} flows" if outside else ""
    )
    return shown(not outside, why, engine="packets", otherwise="not_reproduced",
                 value=[busy.min(), busy.max()], unit="%")  # fmt: skip


@judge("BECN-24", needs=ALL)
def goodput_alike(lab, claim):
    """Goodput of plain TCP beside that of each other, over all numbers of flows."""
    tcp, ecn, becn = (flows(lab, name, "goodput") for name in ALL)
    x = lab.experiment(ALL[0]).x
    return all_of(
        alike(tcp, ecn, x=x, what="goodput of plain TCP beside ECN"),
        alike(tcp, becn, x=x, what="goodput of plain TCP beside BECN"),
    )


@judge("BECN-25", needs=BOTH, readings=OPEN)
def queue_of_15_flows(lab, claim):
    """Mean queue at 15 flows, and the largest, for the instantaneous one."""
    parts = []
    for metric in ("queue_bytes_mean", "queue_bytes_max"):
        ecn, becn = (link_at(lab, name, metric, 15) for name in BOTH)
        parts.append(ordered(becn, ecn, what=f"{WORDS[metric]}, BECN below ECN", unit="B"))
    fluid = [at_rest(lab, name, 15, _queue) for name in reversed(BOTH)]
    return noting_fluid(all_of(*parts), fluid, below, unit="B")


@judge("BECN-26", needs=BOTH, readings=OPEN)
def no_loss(lab, claim):
    """No loss at 15 flows: below 0.01 %, the last digit that the paper prints."""
    lost = [100 * _flows_at(lab, name, "loss_fraction", 15) for name in BOTH]
    parts = [
        near(0.0, own, absolute=0.01, unit="%", what=f"loss of {label}")
        for own, label in zip(lost, ("ECN", "BECN"), strict=True)
    ]
    return all_of(*parts)


@judge("BECN-27", needs=BOTH, readings=OPEN)
def utilization_of_15_flows(lab, claim):
    """Utilization at 15 flows, ECN below BECN."""
    ecn, becn = (100 * link_at(lab, name, "utilization", 15) for name in BOTH)
    return ordered(ecn, becn, what="utilization at 15 flows, ECN below BECN", unit="%")


@judge(
    "BECN-36",
    "BECN-37",
    needs=(*BOTH_250, "queue_ecn_250ms", "queue_becn_250ms"),
    readings=(*OPEN, "average"),
)
def below_max_th(lab, claim):
    """Loss at 45 flows and 250 ms, within 0.01 % where none is claimed, else the order of both; and
    whether the largest queue of each run is below max_th, or above it. The reading "average" takes
    RED's average of the queue for the queue.
    """

    def lost(one):
        name = f"homogeneous_{GROUPS[one.algorithms[0]]}_250ms"
        return 100 * _flows_at(lab, name, "loss_fraction", 45)

    group = GROUPS[claim.algorithms[0]]
    if lab.reading == "average":
        runs = lab.packets(f"queue_{group}_250ms")
        time, average = runs.series(0, "link_average", "bottleneck")
        longest = average[time >= runs.experiment.warmup].max()[None]
        what = "largest average of the first seed"
    else:
        longest = link_at(lab, f"homogeneous_{group}_250ms", "queue_max", 45)
        what = "longest queue of a run"
    over = longest >= _MAX_TH
    miss, wrong = (over.any(), over.all()) if group == "becn" else (not over.all(), not over.any())
    ends = " to ".join(dict.fromkeys(f"{end:.3g}" for end in (longest.min(), longest.max())))
    found = near(claim.value, lost(claim), of="loss", unit="%", absolute=0.01,
                 what=f"loss of {claim.algorithms[0]}")  # fmt: skip
    return all_of(
        or_order(found, claim, ("BECN-36", "BECN-37"), lost),
        shown(not miss, f"{what} {ends} packets, where max_th is {_MAX_TH:.0f}", engine="packets",
              otherwise="contradicted" if wrong else "not_reproduced",
              value=float(longest.mean()), unit="packet"),
    )  # fmt: skip


@judge("BECN-38", needs=BOTH_250, readings=OPEN)
def utilization_of_becn(lab, claim):
    """Utilization at 45 flows and 250 ms, ECN below BECN."""
    return _utilizations(lab, claim, *BOTH_250)


@judge("BECN-41", needs=ALL_250[:2], readings=OPEN)
def utilization_of_newreno(lab, claim):
    """Utilization at 45 flows and 250 ms, ECN below plain TCP."""
    return _utilizations(lab, claim, *reversed(ALL_250[:2]))


def _utilizations(lab, claim, less, more):
    low, high = (100 * link_at(lab, name, "utilization", 45) for name in (less, more))
    what = f"utilization, {claim.algorithms[1]} below {claim.algorithms[0]}"
    return ordered(low, high, what=what, unit="%")


@judge("BECN-39", needs=BOTH_250, readings=READINGS)
def gain_of_becn_250(lab, claim):
    """Gain of BECN in goodput at 45 flows and 250 ms, seed by seed."""
    return _gain_250(lab, claim, *BOTH_250)


@judge("BECN-43", needs=ALL_250[:2], readings=READINGS)
def gain_of_newreno_250(lab, claim):
    """Gain of plain TCP in goodput at 45 flows and 250 ms, seed by seed."""
    return _gain_250(lab, claim, *reversed(ALL_250[:2]))


def _gain_250(lab, claim, less, more):
    ecn, own = (_flows_at(lab, name, "goodput", 45) for name in (less, more))
    what = f"gain of {claim.algorithms[0]} over ECN at 45 flows"
    gain = 100 * (own / ecn - 1)
    return near(claim.value, gain, of="effect", unit="%", neutral=0.0, what=what)


@judge("BECN-40", needs=ALL_250[:2], readings=OPEN)
def newreno_queue(lab, claim):
    """Mean and largest queue at 45 flows and 250 ms; the largest stands for the instantaneous."""
    parts = []
    for metric in ("queue_bytes_mean", "queue_bytes_max"):
        tcp, ecn = (link_at(lab, name, metric, 45) for name in ALL_250[:2])
        parts.append(ordered(tcp, ecn, what=f"{WORDS[metric]}, plain TCP below ECN", unit="B"))
    return all_of(*parts)


@judge("BECN-42", needs=ALL_250[:1], readings=READINGS)
def newreno_loss(lab, claim):
    """Loss of plain TCP at 45 flows and 250 ms."""
    lost = 100 * _flows_at(lab, "homogeneous_tcp_250ms", "loss_fraction", 45)
    found = near(claim.value, lost, of="loss", unit="%", what="loss of plain TCP at 45 flows")
    fluid = at_rest(lab, "homogeneous_tcp_250ms", 45, signalled)
    return noting_fluid(found, [fluid], claimed(claim, "loss"), unit="%")


@judge("BECN-50", needs=QUENCHED)
def larger_product(lab, claim):
    """Utilization, mean queue and marks at 250 ms below those at 40 ms, over all points."""
    near_by, far = (lab.packets(name) for name in QUENCHED)
    return all_of(*(
        ordered(far.values(f"{LINK}.{metric}"), near_by.values(f"{LINK}.{metric}"), x=far.x,
                what=f"{WORDS[metric]}, 250 ms below 40 ms", unit=unit, size=SIZE)
        for metric, unit in (("utilization", ""), ("queue_mean", "packet"), ("mark_fraction", ""))
    ))  # fmt: skip
