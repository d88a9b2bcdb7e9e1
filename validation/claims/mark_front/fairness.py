"""Section 5: unfairness between flows, and who is favoured."""

import numpy as np

from ...lab.judging import all_of, judge, ordered, shown
from ...lab.measures import flow_unfairness, goodputs
from .common import better, both, sides


@judge(
    "MF-19", needs=sides("ten_leo", "ten_leo_apart"),
    readings=("apart",),
)  # fmt: skip
def unfairness_leo(lab, claim):
    """Unfairness over the whole axis: round trips the same as the text has them, or different ones
    as the caption has (`apart`).
    """
    name = "ten_leo_apart" if lab.reading == "apart" else "ten_leo"
    return better(lab, name, flow_unfairness, "unfairness")


@judge(
    "MF-20", needs=sides("ten_geo_apart", "ten_geo"),
    readings=("same", "total"),
)  # fmt: skip
def unfairness_geo(lab, claim):
    """Unfairness over the whole axis: different round trips, or the same ones (`same`)."""
    name = "ten_geo" if lab.reading == "same" else "ten_geo_apart"
    return better(lab, name, flow_unfairness, "unfairness")


@judge("MF-21", needs=sides("ten_leo", "ten_geo_apart"), readings=("total",))
def fairness_gain(lab, claim):
    """Unfairness at the tail less that at the front, mean over thresholds of equal shares of rd."""
    gains = []
    for name in ("ten_leo", "ten_geo_apart"):
        tail, front, _ = both(lab, name, flow_unfairness)
        gains.append((tail - front).mean(axis=0))
    return ordered(gains[1], gains[0], what="unfairness taken away, GSO and LEO")


def _ratio(runs):
    """Goodput of the first five flows over that of the last five, shape (points, seeds)."""
    share = np.array(goodputs(runs))
    return share[..., :5].sum(axis=-1) / share[..., 5:].sum(axis=-1)


@judge("MF-22", needs=sides("old", "near"))
def favoured(lab, claim):
    """Goodput of the first five flows (oldest, or nearest) over that of the last five, once all
    have started: above 1 at the tail, and less at the front.
    """
    parts = []
    for name, words in (
        ("old", "of five old flows over five new ones"),
        ("near", "of five near flows over five far ones"),
    ):
        tail, front, x = both(lab, name, _ratio)
        even = f"goodput {words}, of equal shares and mark-tail"
        parts += [
            ordered(np.ones_like(tail), tail, x=x, what=even),
            ordered(front, tail, x=x, what=f"goodput {words}, mark-front and mark-tail"),
        ]
    return all_of(*parts)


@judge("MF-24", needs=("ten_leo_apart_tail",), definition=True)
def index(lab, claim):
    """The definition: our metric is this formula of the acknowledged packets, in every run."""
    runs = lab.packets("ten_leo_apart_tail")
    ours = 1 - runs.values("flows.reno.jain")
    gap = float(np.abs(ours - flow_unfairness(runs)).max())
    why = f"a definition, and that of our metric: they differ by {gap:.1g} at most in all runs"
    return shown(gap < 1e-9, why, engine="packets", value=gap)
