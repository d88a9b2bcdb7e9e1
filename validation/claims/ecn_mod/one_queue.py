"""Flows and voice in one queue: section 5, and what the abstract says of fairness."""

import numpy as np

from ...lab.judging import Judgement, all_of, judge, near, ordered, searched, shown, told
from ...lab.samples import interval
from .common import LINK, MUCH, VARIATION, below, of_link

_FIFO = ("fifo_newreno", "fifo_mod")


@judge("EMOD-26", needs=_FIFO)
def fifo_goodput(lab, claim):
    """NewReno's goodput is below ECN-mod's at all loads; the fluid fills the link with both."""
    return below(lab, "fifo_newreno", "fifo_mod", "goodput", "NewReno below ECN-mod", "bit/s")


@judge("EMOD-27", needs=("fifo_newreno", "fifo_mod_large"), readings=("small", "instant"))
def fifo_aggressive(lab, claim):
    """Goodput of ECN-mod with c1 = 0.25 is below NewReno's at all loads."""
    return below(
        lab, "fifo_mod_large", "fifo_newreno", "goodput", "c1 = 0.25 below NewReno", "bit/s"
    )


@judge("EMOD-28", needs=(*_FIFO, "fifo_mod_large", "voice_alone"))
def voice(lab, claim):
    """At any load and by any of the three laws voice loses at most 1 % more packets than alone.

    Its throughput is what is not lost, and 1 % is what "essentially" means in all rules here: a
    curve of the throughput would not show less.
    """
    path = LINK + "voice_loss_fraction"
    alone = 100 * of_link(lab, "voice_alone", path)
    x, laws = lab.experiment("voice_alone").x, (*_FIFO, "fifo_mod_large")
    more = np.stack([100 * of_link(lab, name, path) - alone for name in laws])
    law, k = np.unravel_index(int(np.argmax(more.mean(axis=2))), more.shape[:2])
    what = f"voice lost beside {lab.experiment(laws[law]).title}, more than alone, at {x[k]} calls"
    return near(0.0, more[law, k], absolute=1.0, unit="%", what=what)


@judge("EMOD-29", needs=("mixed",), readings=("every_mark", "instant", "small"))
def share(lab, claim):
    """How much less NewReno gets, in the mean over the loads, which are not printed."""
    runs = lab.packets("mixed")
    less = 100 * (1 - runs.values("flows.newreno.goodput") / runs.values("flows.mod.goodput"))
    rests = [lab.rests("mixed").values(f"flows.{g}.rate") for g in ("newreno", "mod")]
    ends = less.mean(axis=1)
    what = f"less than ECN-mod in the mean over the loads ({told(ends[0])} to {told(ends[-1])} %)"
    found = near(claim.value, less.mean(axis=0), unit="%", neutral=0.0, what=what)
    fluid = 100 * float(np.mean(1 - rests[0] / rests[1]))
    alone = near(claim.value, [fluid], neutral=0.0, engine="fluid").verdict
    equal = searched(lab.bound("ecn_mod.equal_goodput")["bounds"], "packets")
    return found.beside_fluid(alone, f"in the fluid {told(fluid)} %", f"eq. 7: {equal.said}")


@judge("EMOD-30", needs=("mixed", "pair"))
def better_off(lab, claim):
    """At some load NewReno's goodput is significantly higher beside ECN-mod than beside NewReno."""
    beside, alone = (lab.packets(n).values("flows.newreno.goodput") for n in ("mixed", "pair"))
    gain = 100 * (beside / alone - 1)
    mean, half = interval(gain)
    k = int(np.argmax(mean - half))
    x = lab.experiment("mixed").x
    higher = [n for n, up in zip(x, mean > half, strict=True) if up]
    lower = [n for n, down in zip(x, mean < -half, strict=True) if down]
    why = f"{told(mean[k], half[k])} % at {x[k]} calls; higher at {higher}, lower at {lower}"
    verdict = "contradicted" if len(lower) == len(x) else "not_reproduced"
    return Judgement("reproduced" if higher else verdict, why, float(mean[k]), float(half[k]), "%")


@judge("EMOD-31", needs=_FIFO)
def jitter(lab, claim):
    """The queue's variation and the standard deviation of voice's delay are lower with ECN-mod."""
    return all_of(
        below(lab, "fifo_mod", "fifo_newreno", VARIATION, "variation of ECN-mod below NewReno's"),
        below(lab, "fifo_mod", "fifo_newreno", LINK + "voice_delay_jitter",
               "deviation of voice's delay with ECN-mod below that with NewReno", "s"),
    )  # fmt: skip


@judge("EMOD-32", needs=("blind",))
def unaware(lab, claim):
    """TCP without ECN gets less than ECN-mod at all loads, and never less than a tenth of it."""
    runs = lab.packets("blind")
    plain, own = (runs.values(f"flows.{g}.goodput") for g in ("newreno", "mod"))
    worst = float((plain / own).min())
    fed = shown(worst > 0.1, f"at least {told(worst)} of ECN-mod's in any run", engine="packets")
    return all_of(
        ordered(plain, own, x=runs.x, what="without ECN below ECN-mod", unit="bit/s"), fed
    )


@judge("EMOD-35", needs=("mixed", "pair", "blind", "blind_pair"))
def fairness(lab, claim):
    """TCP's goodput beside ECN-mod is at most 5 % below that beside NewReno at any load.

    For NewReno with ECN and for TCP without; a gain is no penalty. ECN-mod gets more than either.
    """
    parts = []
    for beside, alone, words in (("mixed", "pair", "NewReno's"), ("blind", "blind_pair", "TCP's")):
        runs, other = lab.packets(beside), lab.packets(alone)
        own, rivals = (runs.values(f"flows.{g}.goodput") for g in ("newreno", "mod"))
        before = other.values("flows.newreno.goodput").mean(axis=1)
        change = own.mean(axis=1) / before - 1
        k = int(np.argmin(change))
        fine = change >= -MUCH
        verdict = "reproduced" if fine.all() else "not_reproduced" if fine.any() else "contradicted"
        why = f"{words} goodput beside ECN-mod over that beside NewReno: {100 * change[k]:+.1f} %"
        parts.append(
            Judgement(verdict, f"{why} at the worst, {runs.x[k]} calls", float(change[k]), unit="1")
        )
        parts.append(
            ordered(own.mean(axis=0), rivals.mean(axis=0), unit="bit/s",
                    what=f"{words} below ECN-mod's in the mean over the loads")
        )  # fmt: skip
    return all_of(*parts)
