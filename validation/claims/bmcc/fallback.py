"""The fallback to the rules of SACK where routers tell nothing: section 5.3."""

import numpy as np

from fluidcc.laws.law import Ack
from fluidcc.laws.window.bmcc import BMCC

from ...lab.formulas import packets_needed
from ...lab.judging import alike, all_of, judge, shown
from .common import CODE, LAW, rates_told, seen, steps


@judge("BMCC-39", needs=("fallback_droptail", "two_droptail", "sack_droptail"))
def falls_back(lab, claim):
    """In the fallback windows grow as TCP's, less than 1.1 per t_p, and goodput is that of SACK."""
    growth, plain = (steps(lab, n)[0] for n in ("fallback_droptail", "two_droptail"))
    like = alike(
        *(
            lab.packets(n).values("flows.bmcc.goodput")
            for n in ("fallback_droptail", "sack_droptail")
        ),
        what="goodput beside that of two SACK flows",
    )
    slow = shown(growth <= 1.1, f"growth per t_p {growth:.3g}", engine="packets", value=growth,
                 otherwise="not_reproduced")  # fmt: skip
    return all_of(slow, like).noting(f"growth per t_p without the fallback {plain:.3g}")


@judge("BMCC-40")
def cut_more(lab, claim):
    """A halving beside the decreases from full load on, and what the law does on the switch."""
    kept = [float(LAW.kept(f)) for f in (1.0, 1.2, 1.5)]
    law = BMCC(fallback=True)
    change = law.on_loss(law.start(100.0), Ack(1.0, 0.0, 0.1, 0.5))
    said = f"a halving keeps 0.5, overload {min(kept):.3g} to {max(kept):.3g}"
    more = shown(min(kept) > 0.5, said, engine="analytic", value=min(kept))
    said = f"the law changes the window by {float(change.window):g} on the loss that switches"
    spared = float(change.window) == 0 and float(change.sack) == 1
    return all_of(more, shown(spared, said, engine="analytic"))


@judge("BMCC-41", needs=("mix_modified_router", "modified_fallback"))
def left_soon(lab, claim):
    """Packets until a lagging estimate passes 1, and goodputs with the fallback beside those
    without: at the modified router every entry is a mistake.
    """
    counts = [float(packets_needed(CODE, f - 1, 1.0, 0.05)) for f in (1.01, 1.05)]
    pairs = [seen(lab, n) for n in ("modified_fallback", "mix_modified_router")]
    both = [np.stack(pair) for pair in pairs]
    like = alike(*both, x=("BMCC", "SACK"), what="goodputs with the fallback and without")
    said = (
        f"at f = 1.01 and 1.05 the estimate is above 1 after {counts[0]:.3g} and {counts[1]:.3g} "
        "packets with 95 %, soon being within one bandwidth-delay product, 225 packets"
    )
    quick = shown(counts[0] < 225, said, engine="analytic", value=counts[0], unit="packets")
    rates = [rates_told(*pair) for pair in pairs]
    return all_of(quick, like).noting(f"{rates[0]} with the fallback, {rates[1]} without")
