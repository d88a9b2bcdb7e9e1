"""Section 4: queue, threshold and buffer of one connection."""

import numpy as np

from fluidcc.bounds.mark_front.full_use import exact, optimal
from fluidcc.bounds.mark_front.networks import END, ENDLESS, FAST, FRONT, ONE, PATH, TAIL, WHOLE
from fluidcc.papers.judging import all_of, judge, near, shown, told
from fluidcc.papers.measures import pipe_of

from .common import LINK, SIDES, exceeded, largest, sides

FULL = 1 - 1e-6  # share of the time: packets that just miss each other by rounding

_PLAIN = {"when": "exceeds", "counts": "system", "queue": "system", "round_trip": PATH}
_LOOSE = {"when": "reaches", "round_trip": WHOLE, "counts": "system"}
_WORDS = {
    None: ("marks beyond T, r without the transmission", _PLAIN),
    "reached": ("marks from T on, r with all transmissions", {**_LOOSE, "queue": "system"}),
    "waiting": (
        "marks from T on, r with all transmissions, waiting packets alone",
        {**_LOOSE, "queue": "waiting"},
    ),
    "access": (
        "marks from T on, r with all transmissions, an access link of twice the rate or more",
        {**_LOOSE, "access": FAST},
    ),
    "end": (
        "marks as a transmission ends, from T on, r with all transmissions, the packet in service "
        "not counted", {**_LOOSE, "queue": "waiting", "marks": END},
    ),
}  # fmt: skip


def _meaning(*readings):
    return {reading: _WORDS[reading][0] for reading in readings}


def _slow_start(lab, side, fluid):
    """The bound on the queue of slow start under the words of one reading."""
    found = lab.bound("mark_front.slow_start")["bounds"]
    words, chosen = _WORDS[lab.reading]
    wanted = {"marks": side, "access": ENDLESS, "sender": ONE, **chosen}
    (own,) = (e for e in found if all(e["definitions"][k] == v for k, v in wanted.items()))
    judged = exceeded([own], f"packets beyond the printed limit ({words})")
    if lab.reading:
        plain = next(e for e in found if e["definitions"]["marks"] == side)["largest_excess"]
        judged = judged.noting(
            f"by the plain words ({_WORDS[None][0]}) exceeded by up to {plain:g} packets"
        )
    longest = found[0]["derivation"][fluid].partition(": ")[2]
    longest = longest.replace("C*T", "rd").replace("Th", "T").replace("*", "")
    return judged.noting(
        f"the fluid's longest queue is {longest}", engine="packets+analytic", unit="packets"
    )


@judge("MF-01", readings=_meaning("reached", "access"))
def slow_start_tail(lab, claim):
    """The bound on the queue of slow start, searched for counterexamples over thresholds and pipes.
    Readings: what section 4 leaves open, where marks begin, what r contains, the access link.
    """
    return _slow_start(lab, TAIL, 0)


@judge("MF-02", readings=_meaning("reached", "waiting", "access", "end"))
def slow_start_front(lab, claim):
    """As MF-01; also whether the packet in service counts, and when a packet leaves the queue."""
    return _slow_start(lab, FRONT, 1)


@judge("MF-03", needs=sides("one"))
def optimal_threshold(lab, claim):
    """The least threshold from which the link is always busy, packets and fluid, within 10 %."""
    parts = []
    for side, marks in zip(SIDES, (TAIL, FRONT), strict=True):
        runs = lab.packets(f"one_{side}")
        pipe = pipe_of(runs.experiment.net(0))
        theirs = float(optimal(pipe))
        idle = runs.x[runs.values(f"{LINK}.utilization")[:, 0] < FULL]
        least = float(runs.x[runs.x > idle.max()].min())
        what = f"least threshold of full use, mark-{side}"
        parts += [
            near(theirs, least, unit="packets", what=what),
            near(theirs, float(exact(marks, pipe, 1.0)), unit="packets", what=what + ", fluid",
                 engine="analytic"),
        ]  # fmt: skip
    return all_of(*parts)


@judge("MF-04", needs=sides("one"))
def beside_the_optimum(lab, claim):
    """Below 0.9 (rd - 1) the link idles; above 1.1 (rd - 1) it never does, and the queue grows."""
    parts = []
    for side in SIDES:
        runs = lab.packets(f"one_{side}")
        best = float(optimal(pipe_of(runs.experiment.net(0))))
        used, queue = (runs.values(f"{LINK}.{m}")[:, 0] for m in ("utilization", "queue_mean"))
        low, high = runs.x < 0.9 * best, runs.x > 1.1 * best
        right = (used[low] < FULL).all() and (used[high] >= FULL).all()
        right = right and (np.diff(queue[high]) > 0).all()
        why = (
            f"mark-{side}: busy {told(100 * used[low].min())} to {told(100 * used[low].max())} % "
            f"of the time below, at least {100 * used[high].min():.5g} % above, where the mean "
            f"queue grows from {told(queue[high].min())} to {told(queue[high].max())} packets"
        )
        parts.append(shown(bool(right), why, engine="packets"))
    search = [
        e for e in lab.bound("mark_front.full_use")["bounds"] if "less" in e["definitions"]["side"]
    ]
    return all_of(*parts, exceeded(search, "share of time busy at less than rd - 1"))


@judge("MF-05", needs=sides("start"))
def buffers(lab, claim):
    """Largest queue of slow start at the threshold rd - 1, over rd; mean over pipes."""
    parts = []
    for side, theirs in zip(SIDES, (3.0, 2.0), strict=True):
        runs = lab.packets(f"start_{side}")
        ratio = largest(runs)[:, 0] / runs.x
        what = f"largest queue over rd, mark-{side} ({told(ratio.min())} to {told(ratio.max())})"
        parts.append(near(theirs, ratio.mean(), what=what))
    found = lab.bound("mark_front.buffer")["bounds"]
    lost = max(e["largest_excess"] for e in found if e["verdict"] == "violated")
    exactly = f"{found[0]['derivation'][0]}, {found[0]['derivation'][1]}"
    return all_of(*parts).noting(
        f"with buffers of exactly that ({exactly}) up to {lost:g} packets are lost in slow start",
        unit="1", engine="packets+analytic",
    )  # fmt: skip
