"""Section 5: the largest queue, and what finite buffers drop."""

import dataclasses

import numpy as np

from ...lab.judging import all_of, judge, ordered, shown
from .common import better, both, drops, largest, sides


@judge("MF-07", needs=sides("ten_leo"))
def buffer_leo(lab, claim):
    """Largest queue over the whole axis."""
    return better(lab, "ten_leo", largest, "largest queue", "packets")


@judge("MF-08", needs=sides("ten_geo"), readings=("total",))
def buffer_geo(lab, claim):
    """Largest queue over the whole axis."""
    return better(lab, "ten_geo", largest, "largest queue", "packets")


@judge("MF-09", needs=sides("ten_geo_apart"), readings=("total",))
def buffer_geo_apart(lab, claim):
    """Largest queue over the whole axis."""
    return better(lab, "ten_geo_apart", largest, "largest queue", "packets")


def _fewer(lab, name, *, far=False):
    """Fewer drops at every threshold; far fewer: half as many or less over all of them."""
    tail, front, _ = both(lab, name, drops)
    fewer = better(lab, name, drops, "drops", "packets")
    share = front.sum() / max(tail.sum(), 1.0)
    whole = f"over all thresholds the front's drops are {100 * share:.3g} % of the tail's"
    if not far:
        return fewer.noting(whole)
    far_fewer = dataclasses.replace(
        fewer, verdict="ordering_only" if share > 0.5 else "reproduced",
        said=f"{whole}, where half or less is far fewer",
    )  # fmt: skip
    return all_of(fewer, far_fewer)


@judge("MF-14", needs=sides("drops_ten_leo"), readings=("double",))
def drops_ten_leo(lab, claim):
    """Far fewer drops; buffers of about rd, or of 2 rd."""
    return _fewer(lab, "drops_ten_leo", far=True)


@judge("MF-15", needs=sides("drops_two_leo"), readings=("double",))
def drops_two_leo(lab, claim):
    """Far fewer drops; buffers of about rd, or of 2 rd."""
    return _fewer(lab, "drops_two_leo", far=True)


@judge("MF-16", needs=sides("drops_ten_geo"), readings=("double", "total"))
def drops_ten_geo(lab, claim):
    """Fewer drops; buffers of about rd, or of 2 rd."""
    return _fewer(lab, "drops_ten_geo")


@judge("MF-17", needs=sides("drops_two_geo"), readings=("double", "total"))
def drops_two_geo(lab, claim):
    """Fewer drops; buffers of about rd, or of 2 rd."""
    return _fewer(lab, "drops_two_geo")


def _saved(lab, name):
    """Share of the tail's drops that the front saves, over all thresholds, shape (seeds,)."""
    tail, front, _ = both(lab, name, drops)
    return 1 - front.sum(axis=0) / np.maximum(tail.sum(axis=0), 1.0)


@judge(
    "MF-18", needs=sides("drops_ten_geo", "drops_two_geo", "drops_ten_geo_apart"),
    readings=("double", "total"),
)  # fmt: skip
def drops_apart(lab, claim):
    """Fewer drops, and a larger share saved than in figures 7a and 7b."""
    best = _saved(lab, "drops_ten_geo_apart")
    return all_of(
        _fewer(lab, "drops_ten_geo_apart"),
        *(
            ordered(_saved(lab, name), best, what=f"share of drops saved, {words} and different")
            for name, words in (("drops_ten_geo", "overlapping"), ("drops_two_geo", "two"))
        ),
    )


@judge("MF-25")
def no_loss(lab, claim):
    """Buffers of the largest queue of slow start, searched for counterexamples over thresholds,
    pipes and ways to start; the claim is a general statement, and the simulations beside it have
    two or ten connections, so that one counterexample with several contradicts it. A buffer of the
    largest queue of the whole run loses nothing by construction, and decides nothing.
    """
    found = lab.bound("mark_front.no_loss")["bounds"]
    first = [e for e in found if "slow start" in e["definitions"]["requirement"]]
    kept, spilt, lost = [], [], []
    for e in first:
        words = f"{e['definitions']['connections']} with mark-{e['definitions']['marks']}"
        if e["verdict"] == "holds":
            kept.append(words)
            continue
        lost.append(e["largest_excess"])
        case = e["worst"]["scenario"]
        (link,), (flows, *_) = case["links"].values(), case["flows"].values()
        words += f" ({e['worst']['value']:g} packets at T = {link['queue']['at']:g} and "
        words += f"rd = {link['capacity'] * flows['rtt']:g}, at most {e['largest_excess']:g})"
        spilt.append(words)
    buffer, common = "a buffer of the largest queue of", {"engine": "packets", "unit": "packets"}
    parts = []
    if kept:
        why = f"{buffer} the first slow start loses nothing for {', '.join(kept)}"
        parts.append(shown(True, why, value=0.0, **common))
    if lost:
        why = f"{buffer} the first slow start loses packets for {', '.join(spilt)}"
        parts.append(shown(False, why, value=max(lost), **common))
    return all_of(*parts).noting(f"{buffer} the whole run loses none by construction")
