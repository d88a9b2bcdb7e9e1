"""BMCC beside SACK over a router that tells its load, and over either kind: sections 4.2 and 6."""

import numpy as np

from fluidcc.papers.judging import all_of, judge

from .common import by_bound, much, rest, starved


def _bmcc_starved(lab, name):
    """BMCC starved at the paper's router, with the fluid and other target utilisations beside."""
    runs = lab.packets(name)
    ratios = runs.values("flows.bmcc.goodput") / runs.values("flows.sack.goodput")
    table = ", ".join(f"{x:g}: {r.mean():.2g}" for x, r in zip(runs.x, ratios, strict=True))
    at_rest = rest(lab, name)
    fluid = [np.mean(at_rest["flows"][group]["rate"]) for group in ("bmcc", "sack")]
    return starved(lab, name, victim="bmcc").noting(
        f"goodput of BMCC over SACK's by target utilisation: {table}",
        f"fluid at rest: BMCC {fluid[0]:.3g}, SACK {fluid[1]:.4g} packets/s ({at_rest['status']})",
        engine="packets+fluid",
    )


@judge("BMCC-25", needs=("starving",))
def starving(lab, claim):
    """Goodputs over a BMCC router, and whether any standing queue tells overload."""
    return all_of(_bmcc_starved(lab, "starving"), by_bound(lab, "bmcc.standing_queue", "analytic"))


@judge("BMCC-26", needs=("starving_ecn",))
def starving_ecn(lab, claim):
    """Goodputs over a BMCC router, SACK with ECN."""
    return _bmcc_starved(lab, "starving_ecn")


@judge("BMCC-27")
def only_bmcc(lab, claim):
    """Marks and decreases from 100 to 120 %, by the rules."""
    return by_bound(lab, "bmcc.only_bmcc_backs_off", "analytic")


@judge("BMCC-42", needs=("mix_droptail", "mix_red", "starving", "starving_ecn"))
def both_ways(lab, claim):
    """SACK low over other routers, BMCC starved over its own."""
    low = [much(lab, name) for name in ("mix_droptail", "mix_red")]
    return all_of(*low, *(starved(lab, n, victim="bmcc") for n in ("starving", "starving_ecn")))
