"""Rules for the claims of the mark-front paper (Durresi et al., 2001)."""

import dataclasses
import math

import numpy as np

import fluidcc as fc
from fluidcc.bounds.mark_front.full_use import exact, optimal
from fluidcc.bounds.mark_front.networks import FRONT, TAIL
from fluidcc.papers.judging import Judgement, alike, all_of, judge, near, ordered, shown, told

SIDES = ("tail", "front")
LINK = "links.bottleneck"
FULL = 1 - 1e-6  # share of the time: packets that just miss each other by rounding
EARTH, SECOND_ORDER = 6.378137e6, 3.986004418e14  # radius [m], gravitational constant [m^3/s^2]
DAY, LIGHT = 86164.1, 299792458.0  # sidereal [s], [m/s]


def _sides(*names):
    """The experiments of both sides."""
    return tuple(f"{name}_{side}" for name in names for side in SIDES)


def _goodput(runs):
    """Goodput of each flow [bit/s], shape (points, seeds, flows)."""
    groups = runs.experiment.net(0).flow_names
    found = [np.array(runs.each(f"flows.{group}.goodput_flows")) for group in groups]
    return np.concatenate(found, axis=-1)


def _pipe(net):
    """The paper's rd [packet], of the flow with the shortest round trip."""
    return float(net.links[0].capacity) * float(np.min(net.flows[0].rtt))


def _largest(runs):
    return runs.values(f"{LINK}.queue_max")


def _drops(runs):
    return runs.values(f"{LINK}.drops")


def _efficiency(runs):
    link = runs.experiment.net(0).links[0]
    return _goodput(runs).sum(axis=-1) / (8 * float(link.packet_size * link.capacity))


def _unfairness(runs):
    shares = _goodput(runs)
    return 1 - shares.sum(axis=-1) ** 2 / (shares.shape[-1] * (shares**2).sum(axis=-1))


def _both(lab, name, value):
    """Samples at the tail and at the front, and the thresholds."""
    runs = [lab.packets(f"{name}_{side}") for side in SIDES]
    return value(runs[0]), value(runs[1]), runs[0].x


def _better(lab, name, value, what, unit="", *, more=False):
    """The front has less, or more, at every threshold."""
    tail, front, x = _both(lab, name, value)
    if more:
        return ordered(tail, front, x=x, what=f"{what}, tail and front", unit=unit)
    return ordered(front, tail, x=x, what=f"{what}, front and tail", unit=unit)


def _bound(lab, name):
    """What a search says of a published bound: one entry for each reading of its words."""
    about = {"bound": name}
    return lab.store.keep("bounds", about, lambda: fc.check_bound(name).to_dict())["bounds"]


def _searched(entries, what):
    """A bound holds if it does under one reading of words that the paper leaves open."""
    sound = [e for e in entries if e["verdict"] == "holds"]
    wrong = [e for e in entries if e["verdict"] == "violated"]
    text = f"{what}: holds under {len(sound)} of {len(entries)} readings of its words"
    if sound:
        words = ", ".join(f"{k}: {v}" for k, v in sound[0]["definitions"].items())
        text += f", such as {words} ({'met' if sound[0]['tight'] else 'not met'})"
    if wrong:
        worst = wrong[0]["worst"]
        words = ", ".join(f"{k}: {v}" for k, v in wrong[0]["definitions"].items())
        text += f"; smallest counterexample under {words}: {worst['value']:.6g} against "
        text += f"{worst['bound']:.6g}"
    return shown(bool(sound), text, engine="packets")


@judge("MF-01", "MF-02")
def slow_start(lab, claim):
    """The bound on the queue of slow start, searched for counterexamples over thresholds and pipes;
    readings: which queue is compared and bounded, what r contains, how fast the access link is.
    """
    found = _bound(lab, "mark_front.slow_start")
    side = "front" if "mark-front" in claim.algorithms else "tail"
    own = [e for e in found if e["definitions"]["marks"].startswith(side)]
    judged = _searched(own, f"largest queue in slow start, mark-{side}")
    fluid = found[0]["derivation"][0 if side == "tail" else 1]
    return dataclasses.replace(
        judged, why=f"{judged.why}; {fluid}", engine="packets+analytic", unit="packets"
    )


@judge("MF-03", needs=_sides("one"))
def optimal_threshold(lab, claim):
    """The least threshold from which the link is always busy, packets and fluid, within 10 %."""
    parts = []
    for side, marks in zip(SIDES, (TAIL, FRONT), strict=True):
        runs = lab.packets(f"one_{side}")
        pipe = _pipe(runs.experiment.net(0))
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


@judge("MF-04", needs=_sides("one"))
def beside_the_optimum(lab, claim):
    """Below 0.9 (rd - 1) the link idles; above 1.1 (rd - 1) it never does, and the queue grows."""
    parts = []
    for side in SIDES:
        runs = lab.packets(f"one_{side}")
        best = float(optimal(_pipe(runs.experiment.net(0))))
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
    search = [e for e in _bound(lab, "mark_front.full_use") if "less" in e["definitions"]["side"]]
    return all_of(*parts, _searched(search, "less than rd - 1 leaves the link idle"))


@judge("MF-05", needs=_sides("start"))
def buffers(lab, claim):
    """Largest queue of slow start at the threshold rd - 1, over rd; mean over pipes."""
    parts = []
    for side, theirs in zip(SIDES, (3.0, 2.0), strict=True):
        runs = lab.packets(f"start_{side}")
        ratio = _largest(runs)[:, 0] / runs.x
        what = f"largest queue over rd, mark-{side} ({told(ratio.min())} to {told(ratio.max())})"
        parts.append(near(theirs, ratio.mean(), what=what))
    found = _bound(lab, "mark_front.buffer")
    lost = max(e["largest_excess"] for e in found if e["verdict"] == "violated")
    exactly = f"{found[0]['derivation'][0]}, {found[0]['derivation'][1]}"
    judged = all_of(*parts)
    why = f"{judged.why}; exactly ({exactly}) up to {lost:g} packets are lost in slow start"
    return dataclasses.replace(judged, why=why, unit="1", engine="packets+analytic")


@judge("MF-06", needs=("two_leo_tail", "two_geo_apart_tail"))
def sooner(lab, claim):
    """By the laws' ages of marks at the queue rd - 1: a round trip less one packet time."""
    steps = _bound(lab, "mark_front.delay")[0]["derivation"]
    parts = []
    for name in ("two_leo_tail", "two_geo_apart_tail"):
        pipe = _pipe(lab.experiment(name).net(0))
        what = f"time saved over r at rd = {pipe:g}"
        parts.append(near(1.0, float(optimal(pipe)) / pipe, what=what, engine="analytic"))
    judged = all_of(*parts)
    return dataclasses.replace(judged, why=f"{judged.why}; {steps[0]}", unit="RTT")


@judge("MF-07", needs=_sides("ten_leo"), readings=("long",))
def buffer_leo(lab, claim):
    """Largest queue over the whole axis."""
    return _better(lab, "ten_leo", _largest, "largest queue", "packets")


@judge("MF-08", needs=_sides("ten_geo"), readings=("total", "long"))
def buffer_geo(lab, claim):
    """Largest queue over the whole axis."""
    return _better(lab, "ten_geo", _largest, "largest queue", "packets")


@judge("MF-09", needs=_sides("ten_geo_apart"), readings=("total", "long"))
def buffer_geo_apart(lab, claim):
    """Largest queue over the whole axis."""
    return _better(lab, "ten_geo_apart", _largest, "largest queue", "packets")


@judge("MF-10", needs=_sides("two_leo", "two_geo_apart"), readings=("long", "total", "both"))
def grows_to_the_pipe(lab, claim):
    """Three parts for each side of both networks: efficiency grows from each threshold to the next
    up to rd, is alike from there on, and is almost full there: 95 % or more.
    """
    parts = []
    for name in _sides("two_leo", "two_geo_apart"):
        runs = lab.packets(name)
        pipe, seen = _pipe(runs.experiment.net(0)), _efficiency(runs)
        low, high = runs.x <= pipe + 1, runs.x >= pipe - 2
        below, above = seen[low], seen[high]
        parts += [
            ordered(below[:-1], below[1:], x=runs.x[low][1:], what=f"{name}, one T and the next"),
            alike(above, above[:1], x=runs.x[high], what=f"{name}, T from rd on"),
            shown(above[0].mean() >= 0.95, f"{name}: {told(above[0].mean())} at T = rd",
                  engine="packets", otherwise="not_reproduced"),
        ]  # fmt: skip
    return all_of(*parts)


@judge("MF-11", needs=_sides("two_leo", "two_geo_apart"))
def below_one(lab, claim):
    """Every efficiency is below 1, and that of the smallest threshold below that of rd."""
    parts = []
    for name in _sides("two_leo", "two_geo_apart"):
        runs = lab.packets(name)
        seen, pipe = _efficiency(runs), _pipe(runs.experiment.net(0))
        at = int(np.argmin(np.abs(runs.x - pipe)))
        parts.append(ordered(seen[0], seen[at], what=f"{name}, T = {runs.x[0]} and {runs.x[at]}"))
        parts.append(shown(bool(seen.max() < 1), f"at most {told(seen.max())}", engine="packets"))
    found = _bound(lab, "mark_front.efficiency")
    words = ", ".join({e["definitions"]["counted"]: 1 for e in found if e["verdict"] != "holds"})
    judged = all_of(*parts, _searched(found[:1], "one connection, always below 1"))
    more = f"; it is exactly 1 where it is counted {words}" if words else ""
    return dataclasses.replace(judged, why=judged.why + more)


def _efficient(lab, name):
    """Link efficiency over the whole axis; the fluid's least thresholds of full use beside it."""
    own = f"drops_{name}" if lab.reading == "finite" else name
    judged = _better(lab, own, _efficiency, "efficiency", more=True)
    pipe = _pipe(lab.experiment(f"{own}_tail").net(0))
    tail, front = (float(exact(marks, pipe, 2.0)) for marks in (TAIL, FRONT))
    why = f"{judged.why}; two flows as fluid are busy from T = {tail:.1f} on (tail), {front:.1f} "
    why += "(front), which reacts sooner and so grows less before it halves"
    return dataclasses.replace(judged, why=why, engine="packets+analytic", unit="1")


@judge("MF-12", needs=_sides("two_leo", "drops_two_leo"), readings=("finite", "long"))
def efficiency_leo(lab, claim):
    """Link efficiency over the whole axis, buffers endless, or of about rd (`finite`): the text
    explains the gain by packets that are dropped.
    """
    return _efficient(lab, "two_leo")


@judge(
    "MF-13", needs=_sides("two_geo_apart", "drops_two_geo_apart"),
    readings=("finite", "total", "long"),
)  # fmt: skip
def efficiency_geo(lab, claim):
    """As MF-12."""
    return _efficient(lab, "two_geo_apart")


def _fewer(lab, name, *, far=False):
    """Fewer drops at every threshold; far fewer: half as many or less over all of them."""
    tail, front, _ = _both(lab, name, _drops)
    judged = _better(lab, name, _drops, "drops", "packets")
    share = front.sum() / max(tail.sum(), 1.0)
    why = f"{judged.why}; over all thresholds {100 * share:.3g} % of the tail's"
    short = far and judged.verdict == "reproduced" and share > 0.5
    return dataclasses.replace(
        judged, why=why, verdict="ordering_only" if short else judged.verdict
    )


@judge("MF-14", needs=_sides("drops_ten_leo"), readings=("double", "long"))
def drops_ten_leo(lab, claim):
    """Far fewer drops; buffers of about rd, or of 2 rd."""
    return _fewer(lab, "drops_ten_leo", far=True)


@judge("MF-15", needs=_sides("drops_two_leo"), readings=("double", "long"))
def drops_two_leo(lab, claim):
    """Far fewer drops; buffers of about rd, or of 2 rd."""
    return _fewer(lab, "drops_two_leo", far=True)


@judge("MF-16", needs=_sides("drops_ten_geo"), readings=("double", "total", "long"))
def drops_ten_geo(lab, claim):
    """Fewer drops; buffers of about rd, or of 2 rd."""
    return _fewer(lab, "drops_ten_geo")


@judge("MF-17", needs=_sides("drops_two_geo"), readings=("double", "total", "long"))
def drops_two_geo(lab, claim):
    """Fewer drops; buffers of about rd, or of 2 rd."""
    return _fewer(lab, "drops_two_geo")


def _saved(lab, name):
    """Share of the tail's drops that the front saves, over all thresholds, shape (seeds,)."""
    tail, front, _ = _both(lab, name, _drops)
    return 1 - front.sum(axis=0) / np.maximum(tail.sum(axis=0), 1.0)


@judge(
    "MF-18", needs=_sides("drops_ten_geo", "drops_two_geo", "drops_ten_geo_apart"),
    readings=("double", "total", "long"),
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


@judge("MF-19", needs=_sides("ten_leo", "ten_leo_apart"), readings=("apart", "long"))
def unfairness_leo(lab, claim):
    """Unfairness over the whole axis: round trips the same as the text has them, or different ones
    as the caption has (`apart`).
    """
    name = "ten_leo_apart" if lab.reading == "apart" else "ten_leo"
    return _better(lab, name, _unfairness, "unfairness")


@judge("MF-20", needs=_sides("ten_geo_apart", "ten_geo"), readings=("same", "total", "long"))
def unfairness_geo(lab, claim):
    """Unfairness over the whole axis: different round trips, or the same ones (`same`)."""
    name = "ten_geo" if lab.reading == "same" else "ten_geo_apart"
    return _better(lab, name, _unfairness, "unfairness")


@judge("MF-21", needs=_sides("ten_leo", "ten_geo_apart"), readings=("total", "long", "both"))
def fairness_gain(lab, claim):
    """Unfairness at the tail less that at the front, mean over thresholds of equal shares of rd."""
    gains = []
    for name in ("ten_leo", "ten_geo_apart"):
        tail, front, _ = _both(lab, name, _unfairness)
        gains.append((tail - front).mean(axis=0))
    return ordered(gains[1], gains[0], what="unfairness taken away, GSO and LEO")


@judge("MF-22", needs=_sides("old", "near"), readings=("long",))
def favoured(lab, claim):
    """Goodput of the first five flows (oldest, or nearest) over that of the last five, once all
    have started: above 1 at the tail, and less at the front.
    """
    parts = []
    for name, words in (("old", "old over new"), ("near", "near over far")):
        ratios, x = [], None
        for side in SIDES:
            runs = lab.packets(f"{name}_{side}")
            share, x = _goodput(runs), runs.x
            ratios.append(share[..., :5].sum(axis=-1) / share[..., 5:].sum(axis=-1))
        tail, front = ratios
        parts += [
            ordered(np.ones_like(tail), tail, x=x, what=f"goodput {words}, equal and tail"),
            ordered(front, tail, x=x, what=f"goodput {words}, front and tail"),
        ]
    return all_of(*parts)


@judge("MF-23", needs=_sides("two_leo", "two_geo_apart"), readings=("total",))
def run_length(lab, claim):
    """Link efficiency of 10 s beside that of 100 s, of which the text speaks there."""
    longer = lab.under("both" if lab.reading == "total" else "long")
    parts = []
    for name in _sides("two_leo", "two_geo_apart"):
        short, long = lab.packets(name), longer.packets(name)
        what = f"efficiency of 10 s and of 100 s, {name}"
        parts.append(alike(_efficiency(short), _efficiency(long), x=short.x, what=what))
    return all_of(*parts)


@judge("MF-24", needs=("ten_leo_apart_tail",))
def index(lab, claim):
    """The definition: our metric is this formula of the acknowledged packets, in every run."""
    runs = lab.packets("ten_leo_apart_tail")
    ours = 1 - runs.values("flows.reno.jain")
    gap = float(np.abs(ours - _unfairness(runs)).max())
    why = f"a definition, and that of our metric: they differ by {gap:.1g} at most in all runs"
    return shown(gap < 1e-9, why, engine="packets", value=gap)


@judge("MF-25")
def no_loss(lab, claim):
    """Buffers of the longest queue without losses, searched for counterexamples over thresholds,
    pipes and ways to start. The words say the queue of slow start, and that it is measured as that
    of the entire simulation: the second decides, and the first is told.
    """
    found = _bound(lab, "mark_front.no_loss")
    first = [e for e in found if "slow start" in e["definitions"]["requirement"]]
    whole = [e for e in found if e not in first]
    sound = all(e["verdict"] == "holds" for e in whole)
    why = f"of the whole run, as the paper measures it: {_told_losses(whole)}; "
    return shown(sound, f"{why}of slow start: {_told_losses(first)}", engine="packets")


def _told_losses(entries):
    """Verdicts on buffers by connections and marks."""
    return ", ".join(
        f"{e['definitions']['connections']}, {e['definitions']['marks']}: {e['verdict']}"
        + (f" (up to {e['largest_excess']:g} lost)" if e["verdict"] == "violated" else "")
        for e in entries
    )


@judge("MF-26")
def geostationary(lab, claim):
    """Twice up and twice down at the speed of light, from the nearest place to the farthest; within
    10 % of the range.
    """
    orbit = (SECOND_ORDER * (DAY / (2 * math.pi)) ** 2) ** (1 / 3)
    ways = orbit - EARTH, math.sqrt(orbit**2 - EARTH**2)
    low, high = (4000 * way / LIGHT for way in ways)
    why = (
        f"{low:.0f} ms to {high:.0f} ms of propagation from below the satellite to the horizon, "
        f"against {claim.value:g} ms"
    )
    right = 0.9 * low <= claim.value <= 1.1 * high
    return shown(right, why, engine="analytic", value=[low, high], unit="ms")


_ALL = {
    "3": ("ten_leo", _largest, False),
    "4a": ("ten_geo", _largest, False),
    "4b": ("ten_geo_apart", _largest, False),
    "5a": ("two_leo", _efficiency, True),
    "5b": ("two_geo_apart", _efficiency, True),
    "6a": ("drops_ten_leo", _drops, False),
    "6b": ("drops_two_leo", _drops, False),
    "7a": ("drops_ten_geo", _drops, False),
    "7b": ("drops_two_geo", _drops, False),
    "7c": ("drops_ten_geo_apart", _drops, False),
    "8a": ("ten_leo", _unfairness, False),
    "8b": ("ten_geo_apart", _unfairness, False),
}


@judge(
    "MF-27", needs=_sides(*dict.fromkeys(name for name, _, _ in _ALL.values())),
    readings=("total", "long", "double"),
)  # fmt: skip
def everywhere(lab, claim):
    """The order of every panel, by the rule for orders; the claim needs all twelve, where one
    reading serves them all.
    """
    found = {
        panel: _better(lab, name, value, panel, more=more).verdict
        for panel, (name, value, more) in _ALL.items()
    }
    count = sum(v == "reproduced" for v in found.values())
    rest = ", ".join(f"{panel} ({v})" for panel, v in found.items() if v != "reproduced")
    why = f"the order holds in {count} of {len(found)} panels; not in {rest or 'none'}"
    if count == len(found):
        return Judgement("reproduced", why, value=count)
    wrong = "contradicted" if "contradicted" in found.values() else "not_reproduced"
    return Judgement(wrong, why, value=count)
