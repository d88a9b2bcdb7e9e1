"""BMCC flows over droptail and RED, alone and beside SACK: sections 4.1.1 to 4.1.3."""

import numpy as np
import sympy as sp

from fluidcc.laws.law import Ack

from ...lab.formulas import share_above
from ...lab.judging import all_of, judge, near, ordered, searched, shown
from ...lab.samples import interval
from .common import CODE, LAW, much, starved, steps


@judge("BMCC-15", definition=True)
def first_estimate(lab, claim):
    """The load that a sender which knows none grows by."""
    grown = [float(LAW.on_ack(1.0, Ack(1.0, 0.2, 0.2, f))) for f in (0.0, claim.value)]
    why = f"no load known: growth by {1 + grown[0]:.4g} per t_p, at 15 % by {1 + grown[1]:.4g}"
    return shown(grown[0] == grown[1], why, engine="analytic", value=float(LAW.lowest))


@judge("BMCC-16", needs=("two_droptail", "two_droptail_300ms"), readings=("pipe",))
def droptail_cycle(lab, claim):
    """Growth per t_p, searched over round trips and loads, and from samples of windows, with the
    share kept by decreases.
    """
    parts, values = [searched(lab.bound("bmcc.fastest_growth")["bounds"], "rules")], []
    for name, trip in (("two_droptail", "40 ms"), ("two_droptail_300ms", "300 ms")):
        growth, kept = steps(lab, name)
        parts += [
            near(claim.value[0], [growth], of="factor", what=f"{trip}: growth per t_p"),
            near(claim.value[1], [kept], of="factor", what=f"{trip}: share kept at a drop"),
        ]
        values += [growth, kept]
    found, most = all_of(*parts), lab.experiment("two_droptail_300ms").net(0).flows[0].window
    words = (
        f"300 ms with a largest window of {float(most.max_window):g} packets, which the paper does "
        "not state"
    )
    return found.noting(words, value=values, half=None)


@judge("BMCC-17")
def no_convergence(lab, claim):
    """Common increases and decreases of two windows, with symbols."""
    one, other, up, down = sp.symbols("w1 w2 a b", positive=True)
    fixed = sp.simplify(up * down * one / (up * down * other) - one / other) == 0
    why = "a common factor up or down leaves the ratio of two windows as it is"
    return shown(fixed, why, engine="analytic")


@judge("BMCC-18", needs=("two_droptail",))
def no_change(lab, claim):
    """Unmarked packets at the first estimate, and no marks over droptail."""
    hashes = np.linspace(0, 0.999, 200)
    moved = max(abs(float(CODE.decode(0.15, h, 0.0))) for h in hashes)
    later = min(float(CODE.decode(1.2, h, 0.0)) for h in hashes)
    marks = lab.packets("two_droptail").values("links.bottleneck.marks").sum()
    still = shown(moved == 0, f"unmarked packets move an estimate of 15 % by {moved:g}",
                  engine="analytic", value=moved)  # fmt: skip
    none = shown(marks == 0, f"droptail marks none ({marks:g} marks)", engine="packets")
    return all_of(still, none).noting(
        f"an estimate of 120 % unmarked packets would lower by up to {-later:.3g}"
    )


@judge("BMCC-19", needs=("two_red", "two_red_300ms"))
def red_cycle(lab, claim):
    """Growth per t_p and share kept over RED; the estimate decays if a flow gets more packets
    between two back-offs than bring an estimate of 120 % below 20 % with a chance of 95 %.
    """
    enough = float(np.log(0.05) / np.log(share_above(CODE, 0.2, 0.15, 1.0)))
    parts, values = [], []
    for name, trip in (("two_red", "40 ms"), ("two_red_300ms", "300 ms")):
        growth, kept = steps(lab, name)
        runs = lab.packets(name)
        span = runs.experiment.until - runs.experiment.warmup
        rates, counts = (
            runs.values(f"flows.bmcc.{m}")[0] for m in ("goodput", "window_reductions")
        )
        count = float(counts.mean() / np.sum(runs.experiment.net(0).flows[0].n))  # of one flow
        between = float(rates.mean() / 8000 * span) / count
        said = (
            f"{trip}: {between:.3g} packets between back-offs, {enough:.3g} needed for the decay "
            "to 15 %"
        )
        parts += [
            near(3.0, [growth], of="factor", what=f"{trip}: growth per t_p"),
            near(claim.value, [kept], of="factor", what=f"{trip}: share kept at a mark"),
            shown(between >= enough, said, engine="packets+analytic", otherwise="not_reproduced"),
        ]
        values += [growth, kept]
    return all_of(*parts).noting(value=values, half=None, unit=claim.unit)


_REDS, _DROPS = ("two_red", "two_red_300ms"), ("two_droptail", "two_droptail_300ms")


def _both(lab, red, droptail, metric):
    """A metric of two BMCC flows over RED and over droptail at 40 and 300 ms."""
    return [
        np.stack([lab.packets(n).values(f"flows.bmcc.{metric}")[0] for n in names])
        for names in (red, droptail)
    ]


@judge("BMCC-20", needs=(*_REDS, *_DROPS), readings=("pipe",))
def lower_windows(lab, claim):
    """Mean windows over RED and droptail at 40 and 300 ms."""
    red, drop = _both(lab, _REDS, _DROPS, "window_mean")
    return ordered(red, drop, x=("40 ms", "300 ms"), unit="packets",
                   what="mean windows, RED below droptail")  # fmt: skip


@judge("BMCC-21", needs=(*_REDS, *_DROPS))
def not_faster(lab, claim):
    """A round trip with larger windows over droptail, but no larger goodput."""
    windows, rates = (_both(lab, _REDS, _DROPS, m) for m in ("window_mean", "goodput"))
    gaps = [interval(pair[1] - pair[0]) for pair in (windows, rates)]
    found = (gaps[0][0] > gaps[0][1]) & (gaps[1][0] < gaps[1][1])
    why = "; ".join(
        f"{t}: windows {windows[0][k].mean():.4g} over RED, {windows[1][k].mean():.4g} over "
        f"droptail, goodputs {rates[0][k].mean() / 8000:.4g}, {rates[1][k].mean() / 8000:.4g} "
        "packets/s"
        for k, t in enumerate(("40 ms", "300 ms"))
    )
    return shown(bool(found.any()), why, engine="packets", otherwise="not_reproduced")


@judge("BMCC-22", needs=("mix_droptail",))
def larger_share(lab, claim):
    """Windows and goodputs at 40 ms."""
    return all_of(much(lab, "mix_droptail"), much(lab, "mix_droptail", "window_mean"))


@judge("BMCC-23", needs=("mix_droptail_300ms",), readings=("pipe", "wide"))
def sack_starved(lab, claim):
    """Goodputs at 300 ms, by how large a window of BMCC may grow."""
    return starved(lab, "mix_droptail_300ms")


@judge("BMCC-24", needs=("mix_red", "mix_red_300ms"), readings=("pipe",))
def sack_over_red(lab, claim):
    """Windows at 40 ms, goodputs at 300 ms."""
    small = much(lab, "mix_red", "window_mean")
    return all_of(small, starved(lab, "mix_red_300ms"))
