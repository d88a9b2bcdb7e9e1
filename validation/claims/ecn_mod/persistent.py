"""Persistent flows beside voice: section 4.2, and what 4.1 and 6 say of them."""

import numpy as np

import fluidcc as fc

from ...lab.judging import (
    SIZE,
    Judgement,
    alike,
    all_of,
    judge,
    near,
    ordered,
    searched,
    shown,
    told,
)
from ...lab.samples import interval
from .common import MUCH, USED, VARIATION, below, of_flows, of_link

_CLEAR = 0.02
_FIFTH, _FULL = ("newreno", "mod"), ("full_newreno", "full_mod")
_EACH = (*_FIFTH, *_FULL)


def _points(lab, name, low, high):
    """Which points of an experiment over the number of flows lie in a range."""
    x = np.array(lab.experiment(name).x)
    return (x >= low) & (x <= high)


@judge("EMOD-11", needs=("mod", "mod_large"))
def aggressive(lab, claim):
    """c1 = 0.25 against 0.0625 at up to 50 flows: more variation, less use of the link.

    More flows leave windows of few packets, which no increase fits; the fluid's rightmost root at
    10 flows is told beside it.
    """
    few = _points(lab, "mod", 10, 50)
    x = [n for n, take in zip(lab.experiment("mod").x, few, strict=True) if take]
    small, large = (of_link(lab, n, VARIATION)[few] for n in ("mod", "mod_large"))
    cov = ordered(small, large, x=x, what="variation with 0.0625 below that with 0.25")
    low, high = (of_link(lab, n, USED)[few][0] for n in ("mod_large", "mod"))
    used = ordered(low, high, what="use at 10 flows with 0.25 below that with 0.0625")
    roots = [
        lab.ask(fc.stability, lab.experiment(n).net(0))["rightmost"][0]
        for n in ("mod", "mod_large")
    ]
    words = " and ".join(map(told, roots))
    return all_of(cov, used).beside_fluid(
        "reproduced" if roots[0] < roots[1] else "contradicted",
        f"rightmost roots of the fluid at 10 flows {words} 1/s",
    )


@judge("EMOD-16", needs=_FIFTH)
def many(lab, claim):
    """Goodputs at 100 flows and more are alike."""
    keep = _points(lab, "mod", 100, np.inf)
    plain, own = (of_flows(lab, name)[keep] for name in _FIFTH)
    return alike(own, plain, what="ECN-mod over NewReno")


@judge("EMOD-17", needs=_FIFTH, readings=("small",))
def few(lab, claim):
    """At 10 flows ECN-mod's goodput is higher, and clearly so: by 2 % at least."""
    plain, own = (of_flows(lab, name)[0] for name in _FIFTH)
    order = ordered(plain, own, what="NewReno below ECN-mod at 10 flows", unit="bit/s")
    mean, half = (float(v) for v in interval(100 * (own / plain - 1)))
    clear = shown(mean >= 100 * _CLEAR, f"ECN-mod has {told(mean, half, '%')} more",
                  engine="packets", otherwise="ordering_only")  # fmt: skip
    return all_of(order, clear).noting(value=mean, half=half, unit="%")


@judge("EMOD-18", needs=_FIFTH, readings=("small", "abrupt"))
def losses(lab, claim):
    """Losses at 200 flows of either kind; what RED does above max_th is a reading."""
    parts = []
    for name in _FIFTH:
        lost = 100 * of_flows(lab, name, "loss_fraction")[-1]
        what = lab.experiment(name).title
        parts.append(near(claim.value, lost, of="loss", unit="%", what=what))
    return all_of(*parts)


@judge("EMOD-19", needs=_EACH)
def stronger(lab, claim):
    """At 150 flows and more losses with p_max = 1 are below those with 0.2, for both."""
    keep = _points(lab, "mod", 150, np.inf)
    pairs = (("full_mod", "mod"), ("full_newreno", "newreno"))
    parts = []
    for full, fifth in pairs:
        more, less = (of_flows(lab, name, "loss_fraction")[keep] for name in (fifth, full))
        parts.append(ordered(less, more, what=f"losses of {fifth}, p_max = 1 below p_max = 0.2"))
    return all_of(*parts)


@judge("EMOD-20", needs=_FULL)
def full_goodput(lab, claim):
    """NewReno's goodput is below ECN-mod's over all numbers of flows."""
    return below(lab, "full_newreno", "full_mod", "goodput", "NewReno below ECN-mod", "bit/s")


@judge("EMOD-21", needs=_FULL)
def decline(lab, claim):
    """The use of the link at 200 flows is 1 % or more below that at 50 for NewReno, and within 1 %
    of it for ECN-mod.
    """
    x, ends = lab.experiment("full_mod").x, {}
    for name in _FULL:
        used = of_link(lab, name, USED)
        ends[name] = used[x.index(50)], used[-1]
    fall = ordered(ends["full_newreno"][1], ends["full_newreno"][0],
                   size=SIZE, what="NewReno's use at 200 flows below that at 50")  # fmt: skip
    high = alike(ends["full_mod"][1], ends["full_mod"][0], usual=SIZE, most=SIZE,
                 what="ECN-mod's use at 200 flows over that at 50")  # fmt: skip
    rests = dict(zip(x, lab.rests("full_newreno").status, strict=True))
    lost = [n for n, status in rests.items() if status == "none"]
    return all_of(fall, high).noting(f"in the fluid NewReno has no rest at {lost} flows")


@judge("EMOD-22", needs=_FULL, readings=("small",))
def marks(lab, claim):
    """The largest share of marks against 85 %, with 99 % of what voice leaves used there; and
    whether marks do no harm, searched over shares of marks.
    """
    shares = 100 * of_flows(lab, "full_mod", "mark_fraction")
    k = int(np.argmax(shares.mean(axis=1)))
    x = lab.experiment("full_mod").x
    rest = 100 * lab.rests("full_mod").values("flows.mod.mark_probability")[k]
    size = near(claim.value, shares[k], of="share", unit="%", what=f"marks at {x[k]} flows")
    harm = searched(lab.bound("ecn_mod.marks_do_no_harm")["bounds"], "packets")
    used = of_link(lab, "full_mod", USED)[k]
    kept = shown(used.mean() > 0.99, f"use there {told(used.mean())}", engine="packets")
    windows = of_flows(lab, "full_mod", "window_mean").mean(axis=1)
    ones = [n for n, window in zip(x, windows, strict=True) if window < 1.1]  # one packet, to 10 %
    above = searched(lab.bound("ecn_mod.window_above_one")["bounds"], "analytic")
    words = ["section 1 has 80 to 90 %", f"the fluid marks {told(rest)} % there", above.said]
    if ones:
        words.append(
            f"windows stand at one packet from {ones[0]} flows on, so marks lose their effect"
        )
    found = all_of(size, kept, harm).noting(value=size.value, half=size.half, unit="%")
    alone = near(claim.value, [rest], of="share", engine="fluid").verdict
    return found.beside_fluid(alone, *words)


@judge("EMOD-23", needs=_FULL)
def variation(lab, claim):
    """Variation is lower at all flows, and the gap wider at 100 flows and more than below 100."""
    plain, own = of_link(lab, "full_newreno", VARIATION), of_link(lab, "full_mod", VARIATION)
    x = lab.experiment("full_mod").x
    many = _points(lab, "full_mod", 100, np.inf)
    gap = plain - own
    wider = ordered(gap[~many].mean(axis=0), gap[many].mean(axis=0), what="gap at few below many")
    return all_of(ordered(own, plain, x=x, what="variation of ECN-mod below NewReno's"), wider)


@judge("EMOD-24", needs=("full_mod",))
def uniform(lab, claim):
    """ECN-mod uses 99 % of what voice leaves at all flows, and loses 0.1 % of them at most."""
    used = of_link(lab, "full_mod", USED)
    lost = 100 * of_flows(lab, "full_mod", "loss_fraction")
    k = int(np.argmax(lost.mean(axis=1)))
    least = float(used.mean(axis=1).min())
    high = shown(least > 0.99, f"use {told(least)} at least", engine="packets",
                 otherwise="not_reproduced", value=least, unit="1")  # fmt: skip
    return all_of(high, near(0.0, lost[k], absolute=0.1, unit="%", what="largest losses"))


@judge("EMOD-33", needs=("mod", "mod_large", "full_mod", "full_mod_large", "fifo_mod",
                         "fifo_mod_large"))  # fmt: skip
def too_large(lab, claim):
    """The largest loss of use with c1 = 0.25 for 0.0625 anywhere is 5 % at least."""
    pairs = (("mod_large", "mod"), ("full_mod_large", "full_mod"), ("fifo_mod_large", "fifo_mod"))
    lost, where = [], []
    for large, own in pairs:
        gap = 100 * (1 - of_link(lab, large, USED) / of_link(lab, own, USED))
        k = int(np.argmax(gap.mean(axis=1)))
        lost.append(gap[k])
        where.append(f"{large} at {lab.experiment(large).x[k]}")
    k = int(np.argmax([v.mean() for v in lost]))
    mean, half = (float(v) for v in interval(lost[k]))
    why = f"{where[k]} calls or flows uses {told(mean, half, '%')} less than with 0.0625"
    if mean <= half:
        return Judgement("not_reproduced", why, mean, half, "%")
    verdict = "reproduced" if mean >= 100 * MUCH else "ordering_only"
    return Judgement(verdict, why, mean, half, "%")


@judge("EMOD-34", needs=_EACH)
def sensitivity(lab, claim):
    """Spread of the use of the link over the flows, and its step from p_max = 0.2 to 1."""
    used = {name: of_link(lab, name, USED) for name in _EACH}
    spread = {name: np.ptp(used[name], axis=0) for name in _FULL}
    step = {n: np.abs(used[n] - used[f"full_{n}"]).mean(axis=0) for n in _FIFTH}
    return all_of(
        ordered(spread["full_mod"], spread["full_newreno"],
                what="spread over the flows of ECN-mod below NewReno's, p_max = 1"),
        ordered(step["mod"], step["newreno"],
                what="step from p_max = 0.2 to 1 of ECN-mod below NewReno's"),
    )  # fmt: skip
