"""Section 2: the laws of RED, adaptive RED and BLUE, and how far ECN is deployed."""

import numpy as np
import sympy as sp

from fluidcc.laws.law import Arrival
from fluidcc.laws.queue.adaptive_red import AdaptiveRED
from fluidcc.laws.queue.red import RED
from fluidcc.scenario.files import load

from ...lab.judging import judge, outside, shown


@judge("RWM-08", definition=True)
def red_law(lab, claim):
    """The law of RED with symbols."""
    low, span, top, u = sp.symbols("min_th span p_max u", positive=True)
    law = RED(min_th=low, max_th=low + span, p_max=top)
    average = low + span * u
    said = law.base(average, Arrival(1, 0, average, 1))
    gap = sp.simplify(sp.nsimplify(said) - top * sp.Min(1, u))
    at = RED(min_th=5.0, max_th=15.0, p_max=1 / 3).signal(15.1, Arrival(1, 0, 15.1, 1))
    why = (
        f"p between the thresholds differs by {gap} from P_max (avg - min)/(max - min); "
        f"{float(at.drop):g} above"
    )
    found = shown(gap == 0 and float(at.drop) == 1, why, engine="analytic")
    return found.noting("this p is what Floyd and Jacobson call P_b, before their count")


@judge("RWM-09", definition=True)
def adaptation(lab, claim):
    """Steps of p_max above and below the target, over its whole range."""
    law = load("govindaswamy2012/ared").links[0].queue
    assert isinstance(law, AdaptiveRED)
    target, worst = float(law.aim()[0]), 0.0
    for p in np.linspace(0.005, 0.6, 120):
        up = min(claim.value["p_max_high"] > p, 1) * min(0.01, p / 4)
        down = (claim.value["p_max_low"] < p) * p * (claim.value["decrease_factor"] - 1)
        for average, step in ((target + 1, up), (target - 1, down), (target, 0.0)):
            worst = max(worst, abs(float(law.step(law.state_of(average, p))) - step))
    same = float(law.interval) == claim.value["interval_s"]
    middle = (float(law.min_th) + float(law.max_th)) / 2
    why = (
        f"every {float(law.interval):g} s, target {target:g} packets; the steps differ by "
        f"{worst:.1g} at most over p_max from 0.005 to 0.6"
    )
    found = shown(worst < 1e-12 and same and target == middle, why, engine="analytic")
    return found.noting("as p_max is compared before its step it reaches 0.51")


@judge("RWM-10", definition=True)
def steps_of_blue(lab, claim):
    """Steps of BLUE in the scenario."""
    law = load("govindaswamy2012/blue").links[0].queue
    at = claim.value["threshold_packets"]
    up, rest, down = (float(law.on_tick(0.5, Arrival(1, 0, q, 1))) for q in (at + 1, at, 0))
    least = float(law.tick_interval()[0])
    holds = np.allclose(
        (up, rest, down, least),
        (claim.value["increase"], 0, -claim.value["decrease"], claim.value["freeze_time_s"]),
    )
    why = (
        f"{up:+g} with more than {at} packets, {rest:+g} with {at}, {down:+g} with none, at least "
        f"{1e3 * least:g} ms apart"
    )
    found = shown(holds, why, engine="analytic")
    return found.noting("the text raises P_a both on loss (figure 4) and above L (2.4)")


@judge("RWM-11")
def deployment(lab, claim):
    """Counts of sites."""
    shares = [100 * 21 / 26447, 100 * 7 / 12364]
    return outside("counts of sites that answered").noting(
        f"the shares are {shares[0]:.3f} % and {shares[1]:.3f} %, which the paper cuts off rather "
        f"than rounds"
    )
