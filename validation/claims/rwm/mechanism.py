"""Section 3: what RWM does, and what is said of it in general."""

import numpy as np
import sympy as sp

from fluidcc.laws.feedback.receiver_window import ReceiverWindow
from fluidcc.laws.law import Arrival, PathTimes
from fluidcc.laws.queue.blue import BLUE
from fluidcc.scenario.files import load

from ...lab.judging import judge, searched, shown, told
from .common import WINDOWS, missing, queue
from .queues import by_windows, persisting, rest


@judge("RWM-02", definition=True)
def shorter_loop(lab, claim):
    """The age of a signal of the ingress when the source hears it, from the feedback laws: of a
    modified ACK and of a mark, with symbols and in the scenarios without queues.
    """
    way = PathTimes(*sp.symbols("round_trip forward queueing reverse", positive=True))
    ages, numbers = [], []
    for name in ("red_rwm", "red_ecn"):
        flows = load(f"govindaswamy2012/{name}").flows[0]
        access = float(np.asarray(flows.access_delay))
        here = PathTimes(float(np.mean(flows.rtt)), access, 0.0, access)
        ages.append(sp.sympify(flows.feedback.age(way)))
        numbers.append(told(1e3 * flows.feedback.age(here), unit="ms"))
    slope = [sp.diff(age, way.round_trip) for age in ages]
    why = (
        f"a modified ACK of the ingress is {numbers[0]} old at the source, a mark {numbers[1]} and "
        f"the queues behind; a round trip longer by 1 s adds {slope[0]} s to the first and "
        f"{slope[1]} s to the second"
    )
    holds = ages[0] == way.reverse and slope == [0, 1]
    return shown(holds, why, engine="analytic")


@judge("RWM-03", definition=True)
def law_of_red(lab, claim):
    """The laws asked with symbols and numbers: below, between and above the thresholds."""
    law, feedback = load("govindaswamy2012/red_rwm").links[0].queue, ReceiverWindow()
    low, middle, high = (law.signal(v, Arrival(1, 0, v, 1)) for v in (4.0, 10.0, 16.0))
    one = (
        float(feedback.advertised_window(8.0, 1.0)) == 1
        and float(feedback.advertised_window(8.0, 0.0)) == 8
    )
    kept = float(feedback.advertised_window(0.0, 1.0)) == 0
    holds = (
        one and kept and float(low.mark) == 0 and 0 < float(middle.mark) < 1
        and float(middle.drop) == 0 and float(high.drop) == float(high.mark) == 1
    )  # fmt: skip
    permitted = float(feedback.advertised_window(8.0, 1.0))
    why = (
        f"a modified ACK permits {permitted:g} packet of 8, and 0 of 0; "
        f"at averages of 4, 10 and 16 packets {float(low.mark):.3g}, {float(middle.mark):.3g} and "
        f"{float(high.mark):.3g} of the ACKs are modified, and {float(low.drop):.3g}, "
        f"{float(middle.drop):.3g} and {float(high.drop):.3g} of the packets dropped"
    )
    return shown(holds, why, engine="analytic")


@judge("RWM-04", needs=("blue_rwm", "blue_rwm@loss"))
def law_of_blue(lab, claim):
    """Steps of BLUE: down when idle, up by the queue (2.4) or by losses; that a modified ACK itself
    raises P_a, as section 3 has it, leaves open how often and against what.
    """
    blue = BLUE(threshold=35.0, freeze_time=0.01, trigger="loss", random_freeze=True)
    up, still, down = (float(blue.on_tick(0.5, Arrival(1, 0, q, 1))) for q in (35.0, 20.0, 0.0))
    queues = [queue(each, "blue_rwm").mean(axis=1) for each in (lab, lab.under("loss"))]
    return missing(
        "whether P_a rises with every modified ACK (it would then never stop rising while the "
        "link is busy), and the law of the freeze times",
        f"steps are {up:+g} on overflow, {still:+g} between and {down:+g} when idle",
        f"mean queues at 4 to 30 sources are {queues[0][0]:.1f} to {queues[0][-1]:.1f} packets "
        f"where the threshold raises P_a, and {queues[1][0]:.1f} to {queues[1][-1]:.1f} where "
        f"losses do",
        engine="analytic+packets",
    )


@judge("RWM-05", needs=("red_rwm_queue", *(f"red_rwm_queue@{reading}" for reading in WINDOWS)))
def average_about_min(lab, claim):
    """The mean queue over min_th, searched over networks if receivers' windows just fill pipe and
    min_th, and beyond; about is to 20 %.

    The average of RED's linear part is min_th + (p/p_max)(max_th - min_th) for any sender.
    """
    return searched(lab.bound("rwm.average_queue")["bounds"], "packets").noting(
        "the proof and its hypotheses stand in another paper; if receivers' windows just fill pipe "
        "and min_th, RWM has nothing to do",
        by_windows(lab, "red_rwm_queue"),
        persisting(lab, "red_rwm_queue", "average"),
    )


@judge("RWM-06", needs=("scaled",))
def weak_convergence(lab, claim):
    """Sources, rates, thresholds, buffers and averaging time enlarged together."""
    runs = lab.packets("scaled")
    queues = runs.values("links.ingress.queue_mean").mean(axis=1) / runs.x
    cov = runs.values("links.ingress.queue_cov").mean(axis=1)
    model = rest(lab, "scaled")["links"]["ingress"]["queue"]
    listed = ", ".join(f"{q:.3g} ({c:.2g})" for q, c in zip(queues, cov, strict=True))
    return missing(
        "the theorem, which stands in another paper",
        f"with everything enlarged by {', '.join(str(x) for x in runs.x)} the mean queue over that "
        f"factor (coefficient of variation) is {listed} packets, against {model:.3g} at rest in "
        f"the fluid model",
        value=queues.tolist(), unit="packets",
    )  # fmt: skip


@judge("RWM-07", needs=("recommended",))
def recommended(lab, claim):
    """Drops and queues at both ends of the recommended range, for want of a criterion; a search for
    networks in which modified ACKs do not suffice is told.
    """
    searching = searched(lab.bound("rwm.recommended_p_max")["bounds"], "packets")
    runs, lines = lab.packets("recommended"), []
    drops = 100 * runs.values("links.ingress.drop_fraction").mean(axis=1)
    queues = runs.values("links.ingress.queue_mean").mean(axis=1)
    tops = np.array([c["links.ingress.queue.p_max"] for c in runs.experiment.changes])
    for n in (4, 30):
        for top in (0.3, 1.0):
            here = (runs.x == n) & (tops == top)
            ends = (drops[here].min(), drops[here].max(), queues[here].min(), queues[here].max())
            lines.append("{} sources, P_max {}: {:.2g} to {:.2g} %, {:.3g} to {:.3g} packets"
                         .format(n, top, *ends))  # fmt: skip
    return missing(
        "what the recommended P_max is to bring about",
        f"dropped share and mean queue with receivers' windows of 5 to 100 packets: "
        f"{'; '.join(lines)}",
        searching.said,
    )
