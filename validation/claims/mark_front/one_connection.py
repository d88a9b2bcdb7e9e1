"""Section 4: queue, threshold and buffer of one connection."""

import numpy as np

from ...bounds.mark_front import ENOUGH, NEEDED
from ...bounds.one_connection import (
    END,
    ENDLESS,
    FAST,
    FRONT,
    ONE,
    PATH,
    TAIL,
    WHOLE,
    exact,
    optimal,
)
from ...lab.judging import all_of, judge, near, searched, shown, told
from ...lab.measures import pipe_of
from .common import LINK, SIDES, largest, sides

FULL = 1 - 1e-6  # share of the time: packets that just miss each other by rounding

_PLAIN = {"when": "exceeds", "counts": "system", "queue": "system", "round_trip": PATH}
_LOOSE = {"when": "reaches", "round_trip": WHOLE, "counts": "system"}
_WORDS = {
    "whole": {**_PLAIN, "round_trip": WHOLE},
    "reached": {**_LOOSE, "queue": "system"},
    "waiting": {**_LOOSE, "queue": "waiting"},
    "access": {**_LOOSE, "access": FAST},
    "end": {**_LOOSE, "queue": "waiting", "marks": END},
}


def _slow_start(lab, side, fluid):
    """The bound on the queue of slow start under the words of one reading."""
    found = lab.bound("mark_front.slow_start")["bounds"]
    chosen = _WORDS.get(lab.reading, _PLAIN)
    wanted = {"marks": side, "access": ENDLESS, "sender": ONE, **chosen}
    own = [e for e in found if all(e["definitions"][k] == v for k, v in wanted.items())]
    longest = found[0]["derivation"][fluid].partition(": ")[2]
    longest = longest.replace("C*T", "rd").replace("Th", "T").replace("*", "")
    return searched(own, "packets", "packets").noting(f"the fluid's longest queue is {longest}")


@judge("MF-01", readings=("whole", "reached", "access"))
def slow_start_tail(lab, claim):
    """The bound on the queue of slow start, searched for counterexamples over thresholds and pipes.
    Readings: what section 4 leaves open, where marks begin, what r contains, the access link.
    """
    return _slow_start(lab, TAIL, 0)


@judge("MF-02", readings=("whole", "reached", "waiting", "access", "end"))
def slow_start_front(lab, claim):
    """As MF-01; also whether the packet in service counts, and when a packet leaves the queue."""
    return _slow_start(lab, FRONT, 1)


def _full_use(lab):
    """The search for thresholds from rd - 1 on that leave the link idle, and for smaller ones that
    keep it busy, by whether r has the transmission.
    """
    found = lab.bound("mark_front.full_use")["bounds"]
    sides = [[e for e in found if e["definitions"]["side"] == side] for side in (ENOUGH, NEEDED)]
    return [searched(entries, "packets") for entries in sides]


@judge("MF-03", needs=sides("one"))
def optimal_threshold(lab, claim):
    """Whether rd - 1 keeps the link busy and nothing less does, searched over pipes; the least
    threshold from which it is busy in the paper's network is told, by packets and by the fluid.
    """
    words = []
    for side, marks in zip(SIDES, (TAIL, FRONT), strict=True):
        runs = lab.packets(f"one_{side}")
        pipe = pipe_of(runs.experiment.net(0))
        idle = runs.x[runs.values(f"{LINK}.utilization")[:, 0] < FULL]
        least = float(runs.x[runs.x > idle.max()].min())
        words.append(
            f"least threshold of full use, mark-{side}: {least:g} of those run, in the fluid "
            f"{told(exact(marks, pipe, 1.0))}, against {told(optimal(pipe))} packets"
        )
    return all_of(*_full_use(lab)).noting(*words)


@judge("MF-04", needs=sides("one"))
def beside_the_optimum(lab, claim):
    """Both halves, searched over pipes; in the paper's network the use of the link below 0.9 (rd -
    1), and the queue above 1.1 (rd - 1), which grows with the threshold.
    """
    parts = []
    for side in SIDES:
        runs = lab.packets(f"one_{side}")
        best = float(optimal(pipe_of(runs.experiment.net(0))))
        used, queue = (runs.values(f"{LINK}.{m}")[:, 0] for m in ("utilization", "queue_mean"))
        low, high = runs.x < 0.9 * best, runs.x > 1.1 * best
        right = (used[low] < FULL).all() and (np.diff(queue[high]) > 0).all()
        why = (
            f"mark-{side}: busy {told(100 * used[low].min())} to {told(100 * used[low].max())} % "
            f"of the time below, at least {100 * used[high].min():.5g} % above, where the mean "
            f"queue grows from {told(queue[high].min())} to {told(queue[high].max())} packets"
        )
        parts.append(shown(bool(right), why, engine="packets"))
    return all_of(*_full_use(lab), *parts)


@judge("MF-05", needs=sides("start"))
def buffers(lab, claim):
    """Largest queue of slow start at the threshold rd - 1, over rd; mean over pipes. The claim says
    about: what buffers of exactly that lose in the search is told.
    """
    parts = []
    for side, theirs in zip(SIDES, (3.0, 2.0), strict=True):
        runs = lab.packets(f"start_{side}")
        ratio = largest(runs)[:, 0] / runs.x
        what = f"largest queue over rd, mark-{side} ({told(ratio.min())} to {told(ratio.max())})"
        parts.append(near(theirs, ratio.mean(), of="about", what=what))
    found = lab.bound("mark_front.buffer")["bounds"]
    lost = max(e["largest_excess"] for e in found if e["verdict"] == "violated")
    exactly = f"{found[0]['derivation'][0]}, {found[0]['derivation'][1]}"
    return all_of(*parts).noting(
        f"with buffers of exactly that ({exactly}) up to {lost:g} packets are lost in slow start",
        unit="1",
    )
