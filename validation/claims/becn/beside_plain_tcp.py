"""BECN or ECN flows that share the bottleneck with as many of plain TCP (VI.A)."""

from ...lab.judging import judge, near, ordered
from .common import (
    GROUPS,
    OPEN,
    READINGS,
    at_rest,
    below,
    claimed,
    noting_fluid,
    or_order,
    signalled,
)

_CROWDED = ("crowded_becn", "crowded_ecn")
_TIMEOUTS = (
    "as each of plain TCP's windows with a loss there ends in a timeout of 1 s with probability "
    "3/W, more often than in the runs"
)
_MARKS = "as its senders, which do not stand still after a reaction, need more signals"


def _gain(lab, name, x):
    """Gain in goodput over plain TCP [%], by packets and by the fluid model."""
    group, runs = name.rpartition("_")[2], lab.packets(name)
    own, plain = (runs.at(x, f"flows.{g}.goodput") for g in (group, "tcp"))

    def of(rest):
        flows, signal = rest["flows"], rest["links"]["bottleneck"]["mark_probability"]
        through = flows["tcp"]["rate"][0] * (1 - signal)
        return 100 * (flows[group]["rate"][0] / through - 1)

    return 100 * (own / plain - 1), at_rest(lab, name, x, of)


def _gain_at_40(lab, claim, name):
    gain, fluid = _gain(lab, name, 40)
    what = f"gain of {claim.algorithms[0]} at 40 flows"
    found = near(claim.value, gain, of="effect", unit="%", neutral=0.0, what=what)
    return noting_fluid(found, [fluid], claimed(claim, "effect"), unit="%", because=_TIMEOUTS)


@judge("BECN-11", needs=_CROWDED[:1], readings=READINGS)
def becn_over_plain(lab, claim):
    """The gain of BECN at 40 flows."""
    return _gain_at_40(lab, claim, "crowded_becn")


@judge("BECN-12", needs=_CROWDED[1:], readings=READINGS)
def ecn_over_plain(lab, claim):
    """The gain of ECN at 40 flows."""
    return _gain_at_40(lab, claim, "crowded_ecn")


@judge("BECN-13", "BECN-14", "BECN-15", needs=_CROWDED, readings=READINGS)
def loss_beside_plain(lab, claim):
    """Loss of one half of 40 flows, 20 seeds; else the order of all three."""

    def lost(one):
        group = GROUPS[one.algorithms[0]]
        name = "crowded_ecn" if group == "ecn" else "crowded_becn"
        return 100 * lab.packets(name).at(40, f"flows.{group}.loss_fraction")

    what = f"loss of {claim.algorithms[0]} at 40 flows"
    found = near(claim.value, lost(claim), of="loss", unit="%", what=what)
    found = or_order(found, claim, ("BECN-13", "BECN-14", "BECN-15"), lost)
    if claim.id != "BECN-14":
        return found
    fluid = at_rest(lab, "crowded_becn", 40, signalled)
    return noting_fluid(found, [fluid], claimed(claim, "loss"), unit="%", because=_MARKS)


def _gains_in_order(lab, x, less, more):
    (low, fluid), (high, other) = _gain(lab, less, x), _gain(lab, more, x)
    labels = (name.rpartition("_")[2].upper() for name in (less, more))
    what = f"gain at {x} flows, {' below '.join(labels)}"
    found = ordered(low, high, what=what, unit="%")
    return noting_fluid(found, [fluid, other], below, unit="%", because=_TIMEOUTS)


@judge("BECN-16", needs=_CROWDED, readings=OPEN)
def gain_order(lab, claim):
    """Gains at 40 flows."""
    return _gains_in_order(lab, 40, *reversed(_CROWDED))


@judge("BECN-17", needs=("competing_becn", "competing_ecn"), readings=OPEN)
def gain_order_few(lab, claim):
    """Gains at 8 flows, the other way round."""
    return _gains_in_order(lab, 8, "competing_becn", "competing_ecn")
