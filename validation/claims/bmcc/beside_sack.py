"""BMCC beside SACK over a router that tells its load, and over either kind: sections 4.2 and 6."""

import numpy as np

from ...bounds.bmcc import DROPS, ECN, PAPER
from ...lab.judging import all_of, judge, searched
from .common import by_bound, much, rest, starved


def _bmcc_starved(lab, name):
    """BMCC starved at the paper's router, with the fluid and other target utilisations beside."""
    runs = lab.packets(name)
    ratios = runs.values("flows.bmcc.goodput") / runs.values("flows.sack.goodput")
    table = ", ".join(f"{x:g}: {r.mean():.2g}" for x, r in zip(runs.x, ratios, strict=True))
    at_rest = rest(lab, name)
    fluid = [np.mean(at_rest["flows"][group]["rate"]) for group in ("bmcc", "sack")]
    alone = "reproduced" if fluid[0] <= 0.1 * fluid[1] else "not_reproduced"
    return starved(lab, name, victim="bmcc").beside_fluid(
        alone,
        f"goodput of BMCC over SACK's by target utilisation: {table}",
        f"fluid at rest: BMCC {fluid[0]:.3g}, SACK {fluid[1]:.4g} packets/s ({at_rest['status']})",
    )


def _searched(lab, sack):
    """What the search says of the paper's network at target utilisations of 0.95 to 1; what it says
    of others is told.
    """
    found = [
        b for b in lab.bound("bmcc.starved_by_sack")["bounds"] if b["definitions"]["sack"] == sack
    ]
    own = [b for b in found if b["definitions"]["network"] == PAPER]
    others = [searched([b], "packets").said for b in found if b not in own]
    return searched(own, "packets").noting(*others)


@judge("BMCC-25", needs=("starving",))
def starving(lab, claim):
    """Goodputs over a BMCC router, and whether any standing queue tells overload; starving is also
    searched for networks without it.
    """
    queue = by_bound(lab, "bmcc.standing_queue", "analytic")
    return all_of(_bmcc_starved(lab, "starving"), queue, _searched(lab, DROPS))


@judge("BMCC-26", needs=("starving_ecn",))
def starving_ecn(lab, claim):
    """Goodputs over a BMCC router, SACK with ECN, in its network and searched over others."""
    return all_of(_bmcc_starved(lab, "starving_ecn"), _searched(lab, ECN))


@judge("BMCC-27")
def only_bmcc(lab, claim):
    """Marks and decreases from 100 to 120 %, by the rules."""
    return by_bound(lab, "bmcc.only_bmcc_backs_off", "analytic")


@judge("BMCC-42", needs=("mix_droptail", "mix_red", "starving", "starving_ecn"))
def both_ways(lab, claim):
    """SACK low over other routers, BMCC starved over its own."""
    low = [much(lab, name) for name in ("mix_droptail", "mix_red")]
    return all_of(*low, *(starved(lab, n, victim="bmcc") for n in ("starving", "starving_ecn")))
