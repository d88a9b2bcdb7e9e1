"""Web transfers beside long-lived flows of the same kind: at 40 ms (VI.C), and at 250 ms (VI.D)."""

import numpy as np

from ...lab.judging import all_of, judge, near, ordered, told
from .common import GROUPS, OPEN, READINGS, WEB, WEB_250, link_at, or_order, transfers


def _lower(one, other):
    """By how much `one` is below `other`, seed by seed [%]."""
    return 100 * (1 - one / other)


@judge("BECN-30", needs=WEB)
def both_lose(lab, claim):
    """Web packets are lost at every point, and more beside 35 flows than beside 5."""
    parts = []
    for name, label in zip(WEB, ("ECN", "BECN"), strict=True):
        lost = 100 * transfers(lab, name, "loss_fraction")
        parts += [
            ordered(np.zeros_like(lost), lost, unit="%", what=f"web loss of {label} above 0",
                    x=lab.experiment(name).x),
            ordered(lost[0], lost[-1], unit="%", what=f"{label}, beside 5 below beside 35"),
        ]  # fmt: skip
    return all_of(*parts)


@judge("BECN-31", needs=WEB, readings=OPEN)
def web_queue(lab, claim):
    """Mean queue beside 15 flows; how far it varies is told beside."""
    return _web_queue(lab, WEB, 15)


@judge("BECN-44", needs=WEB_250, readings=OPEN)
def web_queue_250(lab, claim):
    """Mean queue at 250 ms beside 25 flows; how far it varies is told beside."""
    return _web_queue(lab, WEB_250, 25)


def _web_queue(lab, names, x):
    ecn, becn = (link_at(lab, name, "queue_bytes_mean", x) for name in names)
    found = ordered(becn, ecn, what=f"queue beside {x} flows, BECN below ECN", unit="B")
    spread, busy = (
        [link_at(lab, name, metric, x).mean() for name in reversed(names)]
        for metric in ("queue_bytes_var", "utilization")
    )
    return found.noting(
        f"standard deviation {told(spread[0] ** 0.5, unit='B')} with BECN and "
        f"{told(spread[1] ** 0.5, unit='B')} with ECN, utilization {told(busy[0])} and "
        f"{told(busy[1])}"
    )


@judge("BECN-32", needs=("objects_ecn", "objects_becn"))
def long_objects(lab, claim):
    """Objects of one size at the same load: the reduction of their delay is more for the longest
    than for the shortest, and there significant.
    """
    ecn, becn = (transfers(lab, n, "fct_mean") for n in ("objects_ecn", "objects_becn"))
    gain = _lower(becn, ecn)
    x = lab.experiment("objects_ecn").x
    each = ", ".join(f"{g:.2g} % at {size}" for g, size in zip(gain.mean(axis=1), x, strict=True))
    return all_of(
        ordered(gain[0], gain[-1], unit="%",
                what=f"reduction at {x[0]} packets below that at {x[-1]}"),
        ordered(np.zeros_like(gain[-1]), gain[-1], unit="%", what=f"reduction at {x[-1]} above 0"),
    ).noting(f"all reductions: {each} packets")  # fmt: skip


@judge("BECN-33", "BECN-34", needs=WEB, readings=READINGS)
def web_losses(lab, claim):
    """Loss of web packets beside 35 flows; else the order of both."""

    def lost(one):
        name = f"web_{GROUPS[one.algorithms[0]]}"
        return 100 * lab.packets(name).at(35, "flows.web.loss_fraction")

    what = f"web loss of {claim.algorithms[0]} beside 35 flows"
    found = near(claim.value, lost(claim), of="loss", unit="%", what=what)
    return or_order(found, claim, ("BECN-33", "BECN-34"), lost)


@judge("BECN-35", needs=WEB, readings=READINGS)
def web_delay(lab, claim):
    """Reduction of the mean object delay beside 10 flows, seed by seed."""
    return _web_reduction(lab, claim, WEB, 10, "fct_mean", "object delay")


@judge("BECN-46", needs=WEB_250, readings=READINGS)
def web_delay_250(lab, claim):
    """Reduction of the mean object delay at 250 ms beside 25 flows, seed by seed."""
    return _web_reduction(lab, claim, WEB_250, 25, "fct_mean", "object delay")


@judge("BECN-45", needs=WEB_250, readings=READINGS)
def web_loss_250(lab, claim):
    """Reduction of the loss of web packets beside 25 flows at 250 ms, seed by seed."""
    return _web_reduction(lab, claim, WEB_250, 25, "loss_fraction", "web loss")


def _web_reduction(lab, claim, names, x, metric, words):
    ecn, becn = (lab.packets(name).at(x, f"flows.web.{metric}") for name in names)
    what = f"reduction of the {words} beside {x} flows"
    less = _lower(becn, ecn)
    return near(claim.value, less, of="effect", unit="%", neutral=0.0, what=what)
