"""What the abstract and the conclusion say of BECN, ECN and plain TCP."""

import numpy as np

from ...lab.judging import alike, all_of, judge, ordered, shown
from .common import ALL_250, BOTH, BOTH_250, WEB, WEB_250, flows, transfers


@judge("BECN-01", needs=(*WEB, *WEB_250))
def slight_improvement(lab, claim):
    """Objects arrive sooner with BECN over all points of both delays; slight is below 10 %."""
    ecn, becn = (
        np.concatenate([transfers(lab, name, "fct_mean") for name in names])
        for names in zip(WEB, WEB_250, strict=True)
    )
    gain = 100 * (1 - becn.mean() / ecn.mean())
    x = [f"{n} at {delay} ms" for delay in (40, 250) for n in lab.experiment(WEB[0]).x]
    return all_of(
        ordered(becn, ecn, x=x, unit="s", what="object delay, BECN below ECN"),
        shown(gain < 10, f"{gain:.2g} % sooner in the mean", engine="packets",
              otherwise="not_reproduced"),
    )  # fmt: skip


@judge("BECN-02", needs=(*BOTH, *BOTH_250))
def no_worse(lab, claim):
    """No point of either delay where the goodput of BECN is more than 5 % below that of ECN."""
    ecn, becn = (
        np.concatenate([flows(lab, name, "goodput").mean(axis=1) for name in names])
        for names in zip(BOTH, BOTH_250, strict=True)
    )
    ratio = becn / ecn
    ends = f"{ratio.min():.3f} to {ratio.max():.3f}"
    why = f"goodput of BECN over that of ECN: {ends} over all points"
    return shown(bool((ratio >= 0.95).all()), why, engine="packets", value=float(ratio.min()))


@judge("BECN-03", needs=(*BOTH_250, *WEB_250))
def large_paths(lab, claim):
    """Goodput, losses of both kinds of traffic, and delay of objects at 250 ms, over all points."""
    return all_of(*_better_at_250(lab))


@judge("BECN-04", needs=ALL_250[:2])
def newreno_beats_ecn(lab, claim):
    """Goodput at 250 ms over all numbers of flows."""
    tcp, ecn = (flows(lab, name, "goodput") for name in ALL_250[:2])
    x = lab.experiment(ALL_250[0]).x
    return ordered(ecn, tcp, x=x, what="goodput, ECN below plain TCP", unit="bit/s")


@judge("BECN-51", needs=(*BOTH, *WEB, *BOTH_250, *WEB_250))
def conclusion(lab, claim):
    """Alike or better at 40 ms: goodput and object delay alike, and losses of both kinds of traffic
    below those with ECN; better at 250 ms.
    """
    ecn, becn = (flows(lab, name, "goodput") for name in BOTH)
    slow, fast = (transfers(lab, name, "fct_mean") for name in WEB)
    return all_of(
        alike(becn, ecn, x=lab.experiment(BOTH[0]).x, what="goodput at 40 ms beside ECN"),
        alike(fast, slow, x=lab.experiment(WEB[0]).x, what="object delay at 40 ms beside ECN"),
        *_losses_below(lab, BOTH, WEB, "40 ms"),
        *_better_at_250(lab),
    )


def _better_at_250(lab):
    x, web = lab.experiment(BOTH_250[0]).x, lab.experiment(WEB_250[0]).x
    slow, fast = (transfers(lab, name, "fct_mean") for name in WEB_250)
    ecn, becn = (flows(lab, name, "goodput") for name in BOTH_250)
    return (
        ordered(ecn, becn, x=x, what="goodput at 250 ms, ECN below BECN", unit="bit/s"),
        *_losses_below(lab, BOTH_250, WEB_250, "250 ms"),
        ordered(fast, slow, x=web, unit="s", what="object delay at 250 ms, BECN below ECN"),
    )


def _losses_below(lab, bulk, web, where):
    """Losses of both kinds of traffic, BECN below ECN, over the points where either loses any."""
    parts = []
    for kind, names, metric in (("loss", bulk, flows), ("web loss", web, transfers)):
        ecn, becn = (100 * metric(lab, name, "loss_fraction") for name in names)
        some = (ecn + becn).max(axis=1) > 0
        x = lab.packets(names[0]).x[some]
        what = f"{kind} at {where}, BECN below ECN"
        parts.append(ordered(becn[some], ecn[some], x=x, what=what, unit="%"))
    return parts
