"""Section 5: link efficiency, and what longer runs change of it."""

import dataclasses

import numpy as np

from ...bounds.one_connection import FRONT, TAIL, exact
from ...lab.judging import alike, all_of, judge, ordered, searched, shown, told
from ...lab.measures import link_efficiency, pipe_of
from ...lab.samples import interval
from .common import SIDES, better, sides

_CASES = {"two_leo": "two sources, TS = 59 ms", "two_geo_apart": "two sources, TS = 259 ms"}
_BOTH = sides(*_CASES, *(f"long_{name}" for name in _CASES))


def _cases(lab):
    """Words, runs of 10 s and runs of 100 s, for each side of both networks."""
    for name, words in _CASES.items():
        for side in SIDES:
            own = f"{name}_{side}"
            yield f"{words}, mark-{side}", lab.packets(own), lab.packets(f"long_{own}")


def _grows(words, runs, length):
    """Efficiency grows up to rd, is alike from there on, and is almost full there."""
    pipe, seen = pipe_of(runs.experiment.net(0)), link_efficiency(runs)
    low, high = runs.x <= pipe + 1, runs.x >= pipe - 2
    below, above, about = seen[low], seen[high], f"{words}, {length}"
    at_rd = float(above[0].mean())
    return all_of(
        ordered(below[:-1], below[1:], x=runs.x[low][1:],
                what=f"{about}, mean efficiency at a threshold below rd and at the next"),
        alike(above, above[:1], x=runs.x[high], what=f"{about}, efficiency from T = rd on"),
        shown(at_rd >= 0.95, f"{about}, efficiency at T = rd: {told(at_rd)}", engine="packets",
              otherwise="not_reproduced"),
    )  # fmt: skip


@judge("MF-10", needs=_BOTH, readings=("finite", "total"))
def grows_to_the_pipe(lab, claim):
    """Three parts for each side of both networks: efficiency grows from each threshold to the next
    up to rd, is alike from there on, and is almost full there: 95 % or more. Runs of 10 s, as in
    the text, decide; those of 100 s are told.
    """
    parts, longer = [], []
    for words, short, long in _cases(lab):
        parts.append(_grows(words, short, "10 s"))
        longer.append(f"{words} {_grows(words, long, '100 s').verdict.replace('_', ' ')}")
    return all_of(*parts).noting(f"by runs of 100 s, which do not decide: {', '.join(longer)}")


@judge("MF-11", needs=sides(*_CASES), readings=("finite", "total"))
def below_one(lab, claim):
    """Every efficiency is below 1, and that of the smallest threshold below that of rd."""
    parts = []
    for name in sides(*_CASES):
        runs = lab.packets(name)
        case, _, side = name.rpartition("_")
        about = f"{_CASES[case]}, mark-{side}, efficiency"
        seen, pipe = link_efficiency(runs), pipe_of(runs.experiment.net(0))
        at = int(np.argmin(np.abs(runs.x - pipe)))
        what = f"{about} at T = {runs.x[0]} and {runs.x[at]}"
        most = f"{about} at most {told(seen.max())}"
        parts.append(ordered(seen[0], seen[at], what=what))
        parts.append(shown(bool(seen.max() < 1), most, engine="packets"))
    found = lab.bound("mark_front.efficiency")["bounds"]
    first = [e for e in found if e["definitions"]["counted"] == "from the first packet"]
    words = ", ".join({e["definitions"]["counted"]: 1 for e in found if e["verdict"] != "holds"})
    judged = all_of(*parts, searched(first, "packets"))
    if not words:
        return judged
    return judged.noting(f"efficiency of one connection is exactly 1 where it is counted {words}")


def _efficient(lab, name):
    """Link efficiency over the whole axis; the fluid's least thresholds of full use beside it."""
    pipe = pipe_of(lab.experiment(f"{name}_tail").net(0))
    tail, front = (float(exact(marks, pipe, 2.0)) for marks in (TAIL, FRONT))
    return better(lab, name, link_efficiency, "efficiency", more=True).noting(
        f"two flows as fluid are busy from T = {tail:.1f} on (tail), {front:.1f} (front), which "
        f"reacts sooner and so grows less before it halves",
        unit="1",
    )  # fmt: skip


@judge("MF-12", needs=sides("two_leo"), readings=("finite",))
def efficiency_leo(lab, claim):
    """Link efficiency over the whole axis, with buffers of about rd (the text explains the gain by
    packets that are dropped), or endless.
    """
    return _efficient(lab, "two_leo")


@judge("MF-13", needs=sides("two_geo_apart"), readings=("finite", "total"))
def efficiency_geo(lab, claim):
    """As MF-12."""
    return _efficient(lab, "two_geo_apart")


def _signs(tail, front):
    """1 where the front's is significantly more, -1 where less, 0 elsewhere; shape (points,)."""
    mean, half = interval(front - tail)
    return np.where(np.abs(mean) > half, np.sign(mean), 0)


@judge("MF-23", needs=_BOTH, readings=("finite", "total"))
def run_length(lab, claim):
    """Link efficiency of 10 s beside that of 100 s, of which the text speaks there: both numbers,
    and the order of front and tail (the essentials). Numbers that are not alike are not reproduced;
    contradicted is for an order that turns round.
    """
    runs = [(words, *map(link_efficiency, both), both[0].x) for words, *both in _cases(lab)]
    parts = []
    for words, short, long, x in runs:
        part = alike(short, long, x=x, what=f"{words}, efficiency of 10 s against that of 100 s")
        worse = part.verdict == "contradicted"
        parts.append(dataclasses.replace(part, verdict="not_reproduced") if worse else part)
    for (_, *tail, x), (_, *front, _), words in zip(
        runs[::2], runs[1::2], _CASES.values(), strict=True
    ):
        at_10, at_100 = (_signs(t, f) for t, f in zip(tail[:2], front[:2], strict=True))
        kept, turned = ((at_10 * at_100 == sign).sum() for sign in (1, -1))
        why = f"{words}, order of front and tail: significant at {(at_10 != 0).sum()} of {len(x)} "
        why += f"thresholds in 10 s and at {(at_100 != 0).sum()} in 100 s, the same at {kept}, "
        why += f"turned round at {turned}"
        parts.append(shown(bool(turned == 0), why, engine="packets"))
    return all_of(*parts)
