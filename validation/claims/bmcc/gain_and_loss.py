"""What BMCC gains and SACK loses beside it, by round trip: section 5.2, figure 11."""

import numpy as np

from ...lab.judging import all_of, judge, near, ordered, shown
from ...lab.samples import interval
from .common import by_bound


@judge("BMCC-35", needs=("gain_short",))
def exponent(lab, claim):
    """Exponents of two SACK flows: of 10 ms and T at the modified router, and in a search."""
    runs = lab.packets("gain_short")
    rates, trips = (
        [runs.values(f"flows.{group}.{metric}") for group in ("strong", "weak")]
        for metric in ("goodput", "rtt_mean")
    )
    z = np.log(rates[0] / rates[1]) / np.log(trips[1] / trips[0])
    worst = int(np.argmax(np.abs(z.mean(axis=1) - 1.5)))
    said = ", ".join(f"{x} ms: {v:.3g}" for x, v in zip(runs.x, z.mean(axis=1), strict=True))
    own = near(claim.value, z[worst], what="10 ms beside T, measured round trips: the worst z")
    return all_of(by_bound(lab, "bmcc.sack_exponent", "packets"), own.noting(f"z by T: {said}"))


_PAIRS = ("gain_baseline", "gain_bmcc", "gain_short")


def _ratios(lab, name, group):
    """Goodputs of a pair of figure 11 over those of two SACK flows, shape (points, seeds)."""
    own, base = (lab.packets(n).values(f"flows.{group}.goodput") for n in (name, "gain_baseline"))
    return own / base


@judge("BMCC-36", needs=_PAIRS)
def gain(lab, claim):
    """Gain of BMCC below that of a SACK flow of 10 ms, for all T."""
    bmcc, short = (_ratios(lab, n, "strong") for n in _PAIRS[1:])
    return ordered(
        bmcc, short, x=lab.packets("gain_short").x, what="gain of BMCC below SACK of 10 ms"
    )


@judge("BMCC-37", needs=_PAIRS)
def loss(lab, claim):
    """How many times more BMCC leaves to SACK than a flow of 10 ms does, geometric mean over T."""
    bmcc, short = (_ratios(lab, n, "weak") for n in _PAIRS[1:])
    factors, x = bmcc / short, lab.packets("gain_short").x
    table = ", ".join(f"{t} ms: {f.mean():.2g}" for t, f in zip(x, factors, strict=True))
    lost = 1 - np.stack([bmcc.mean(axis=1), short.mean(axis=1)], axis=1)
    pairs = ", ".join(f"{a:.2g} and {b:.2g}" for a, b in lost)
    what = "times that SACK keeps more beside BMCC than beside SACK of 10 ms, geometric mean over T"
    found = near(claim.value, np.exp(np.log(factors).mean(axis=0)), of="about", neutral=1.0,
                 what=what)  # fmt: skip
    return found.noting(
        f"times by T: {table}", f"shares that SACK loses beside the one and the other: {pairs}"
    )


def _of_pair(lab, name, groups):
    """Goodputs of both flows, shape (points, seeds), and in words [packets/s]."""
    runs = lab.packets(name)
    both = [runs.values(f"flows.{group}.goodput") for group in groups]
    means = zip(runs.x, *(rates.mean(axis=1) / 8000 for rates in both), strict=True)
    return *both, ", ".join(f"{x} ms: {one:.4g} and {other:.4g}" for x, one, other in means)


@judge("BMCC-38", needs=("small_trips", "small_trips_droptail"))
def small_trips(lab, claim):
    """BMCC above SACK at some small round trip over the modified router, of which the footnote
    speaks; droptail is told beside.
    """
    bmcc, sack, words = _of_pair(lab, "small_trips", ("strong", "weak"))
    *_, beside = _of_pair(lab, "small_trips_droptail", ("bmcc", "sack"))
    mean, half = interval(bmcc - sack)
    said = f"BMCC and SACK over the modified router: {words} packets/s"
    found = shown(bool((mean > half).any()), said, engine="packets", otherwise="not_reproduced")
    return found.noting(f"over droptail, of which the footnote does not speak: {beside} packets/s")
