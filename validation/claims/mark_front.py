"""Rules for the claims of the mark-front paper (Durresi et al., 2001)."""

import dataclasses
import math

import numpy as np

from fluidcc.bounds.mark_front.full_use import exact, optimal
from fluidcc.bounds.mark_front.networks import END, ENDLESS, FAST, FRONT, ONE, PATH, TAIL, WHOLE
from fluidcc.bounds.mark_front.networks import feedback as law
from fluidcc.laws.law import Trip
from fluidcc.papers.judging import Judgement, alike, all_of, judge, near, ordered, shown, told
from fluidcc.papers.measures import flow_unfairness, goodputs, link_efficiency, pipe_of
from fluidcc.papers.samples import interval
from fluidcc.ways import forward_delays, link_delays, reverse_delays

SIDES = ("tail", "front")
LINK = "links.bottleneck"
FULL = 1 - 1e-6  # share of the time: packets that just miss each other by rounding
EARTH, SECOND_ORDER = 6.378137e6, 3.986004418e14  # radius [m], gravitational constant [m^3/s^2]
DAY, LIGHT = 86164.1, 299792458.0  # sidereal [s], [m/s]


def _sides(*names):
    """The experiments of both sides, readings after an @."""
    parts = [name.partition("@") for name in names]
    return tuple(f"{own}_{side}{at}{reading}" for own, at, reading in parts for side in SIDES)


def _largest(runs):
    return runs.values(f"{LINK}.queue_max")


def _drops(runs):
    return runs.values(f"{LINK}.drops")


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


def _exceeded(entries, what):
    """A bound holds if no search finds a counterexample; the worst is told where one does."""
    wrong = [e for e in entries if e["verdict"] == "violated"]
    if not wrong:
        return shown(True, f"{what}: no counterexample", engine="packets")
    worst = max(wrong, key=lambda e: e["largest_excess"])
    text = f"{what}: exceeded by up to {worst['largest_excess']:.3g}, in the smallest "
    text += f"counterexample {worst['worst']['value']:.6g} against {worst['worst']['bound']:.6g}"
    return shown(False, text, engine="packets")


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


def _slow_start(lab, side, fluid):
    """The bound on the queue of slow start under the words of one reading."""
    found = lab.bound("mark_front.slow_start")["bounds"]
    words, chosen = _WORDS[lab.reading]
    wanted = {"marks": side, "access": ENDLESS, "sender": ONE, **chosen}
    (own,) = (e for e in found if all(e["definitions"][k] == v for k, v in wanted.items()))
    judged = _exceeded([own], f"packets beyond the printed limit ({words})")
    longest = found[0]["derivation"][fluid].partition(": ")[2]
    longest = longest.replace("C*T", "rd").replace("Th", "T").replace("*", "")
    if lab.reading:
        plain = next(e for e in found if e["definitions"]["marks"] == side)["largest_excess"]
        judged = dataclasses.replace(
            judged, why=f"{judged.why}; {_WORDS[None][0]}: exceeded by up to {plain:g} packets"
        )
    return dataclasses.replace(
        judged, why=f"{judged.why}; the fluid's longest queue is {longest}",
        engine="packets+analytic", unit="packets",
    )  # fmt: skip


@judge("MF-01", readings=("reached", "access"))
def slow_start_tail(lab, claim):
    """The bound on the queue of slow start, searched for counterexamples over thresholds and pipes.
    Readings: what section 4 leaves open, where marks begin, what r contains, the access link.
    """
    return _slow_start(lab, TAIL, 0)


@judge("MF-02", readings=("reached", "waiting", "access", "end"))
def slow_start_front(lab, claim):
    """As MF-01; also whether the packet in service counts, and when a packet leaves the queue."""
    return _slow_start(lab, FRONT, 1)


@judge("MF-03", needs=_sides("one"))
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


@judge("MF-04", needs=_sides("one"))
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
    return all_of(*parts, _exceeded(search, "share of time busy at less than rd - 1"))


@judge("MF-05", needs=_sides("start"))
def buffers(lab, claim):
    """Largest queue of slow start at the threshold rd - 1, over rd; mean over pipes."""
    parts = []
    for side, theirs in zip(SIDES, (3.0, 2.0), strict=True):
        runs = lab.packets(f"start_{side}")
        ratio = _largest(runs)[:, 0] / runs.x
        what = f"largest queue over rd, mark-{side} ({told(ratio.min())} to {told(ratio.max())})"
        parts.append(near(theirs, ratio.mean(), what=what))
    found = lab.bound("mark_front.buffer")["bounds"]
    lost = max(e["largest_excess"] for e in found if e["verdict"] == "violated")
    exactly = f"{found[0]['derivation'][0]}, {found[0]['derivation'][1]}"
    judged = all_of(*parts)
    why = f"{judged.why}; exactly ({exactly}) up to {lost:g} packets are lost in slow start"
    return dataclasses.replace(judged, why=why, unit="1", engine="packets+analytic")


def _sooner(net):
    """How much sooner the front's marks are heard at the queue rd - 1 [s], by the laws' ages."""
    flows, delays = net.flows[0], link_delays(net)
    queued = float(optimal(pipe_of(net))) / float(net.links[0].capacity)
    nearest = [np.min(forward_delays(flows, delays)[0]), np.min(reverse_delays(flows, delays)[0])]
    ahead, back = map(float, nearest)
    way = Trip(float(np.min(flows.rtt)) + queued, ahead, queued, back)
    return float(law(TAIL).age(way) - law(FRONT).age(way))


@judge("MF-06", needs=("two_leo_tail", "two_geo_apart_tail"))
def sooner(lab, claim):
    """The laws' ages of marks from tail and front at the queue rd - 1, over the fixed round trip;
    the search over ways tells the exact difference.
    """
    parts = []
    for name in ("two_leo_tail", "two_geo_apart_tail"):
        net = lab.experiment(name).net(0)
        saved, fixed = _sooner(net), float(np.min(net.flows[0].rtt))
        what = f"marks are heard sooner by {1000 * saved:.0f} ms at a round trip of "
        what += f"{1000 * fixed:.0f} ms, in round trips"
        parts.append(near(1.0, saved / fixed, what=what, engine="analytic"))
    found = {
        e["definitions"]["sooner"]: e["verdict"] for e in lab.bound("mark_front.delay")["bounds"]
    }
    judged = all_of(*parts)
    exact_one = found["by r less one packet time"] == "holds"
    why = f"{judged.why}; " + ("exactly a round trip less one packet time" if exact_one else
                               "a round trip less one packet time is not exact")  # fmt: skip
    return dataclasses.replace(judged, why=why, unit="RTT")


@judge("MF-07", needs=_sides("ten_leo"))
def buffer_leo(lab, claim):
    """Largest queue over the whole axis."""
    return _better(lab, "ten_leo", _largest, "largest queue", "packets")


@judge("MF-08", needs=_sides("ten_geo"), readings=("total",))
def buffer_geo(lab, claim):
    """Largest queue over the whole axis."""
    return _better(lab, "ten_geo", _largest, "largest queue", "packets")


@judge("MF-09", needs=_sides("ten_geo_apart"), readings=("total",))
def buffer_geo_apart(lab, claim):
    """Largest queue over the whole axis."""
    return _better(lab, "ten_geo_apart", _largest, "largest queue", "packets")


_CASES = {"two_leo": "two sources, TS = 59 ms", "two_geo_apart": "two sources, TS = 259 ms"}
_LONGER = ("two_leo@long", "two_geo_apart@long", "two_geo_apart@both")


def _cases(lab):
    """Words, runs of 10 s and runs of 100 s, for each side of both networks."""
    for name, words in _CASES.items():
        longer = "both" if lab.reading == "total" and name == "two_geo_apart" else "long"
        for side in SIDES:
            own = f"{name}_{side}"
            yield f"{words}, mark-{side}", lab.packets(own), lab.packets(f"{own}@{longer}")


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


@judge("MF-10", needs=_sides("two_leo", "two_geo_apart", *_LONGER), readings=("total",))
def grows_to_the_pipe(lab, claim):
    """Three parts for each side of both networks: efficiency grows from each threshold to the next
    up to rd, is alike from there on, and is almost full there: 95 % or more. Runs of 10 s, as in
    the text, decide; those of 100 s are told.
    """
    parts, longer = [], []
    for words, short, long in _cases(lab):
        parts.append(_grows(words, short, "10 s"))
        longer.append(f"{words} {_grows(words, long, '100 s').verdict.replace('_', ' ')}")
    judged = all_of(*parts)
    why = f"{judged.why}; by runs of 100 s, which do not decide: {', '.join(longer)}"
    return dataclasses.replace(judged, why=why)


@judge("MF-11", needs=_sides("two_leo", "two_geo_apart"))
def below_one(lab, claim):
    """Every efficiency is below 1, and that of the smallest threshold below that of rd."""
    parts = []
    for name in _sides("two_leo", "two_geo_apart"):
        runs = lab.packets(name)
        case, _, side = name.rpartition("_")
        words = f"{_CASES[case]}, mark-{side}"
        seen, pipe = link_efficiency(runs), pipe_of(runs.experiment.net(0))
        at = int(np.argmin(np.abs(runs.x - pipe)))
        what = f"{words}, efficiency at T = {runs.x[0]} and {runs.x[at]}"
        parts.append(ordered(seen[0], seen[at], what=what))
        parts.append(shown(bool(seen.max() < 1), f"at most {told(seen.max())}", engine="packets"))
    found = lab.bound("mark_front.efficiency")["bounds"]
    first = [e for e in found if e["definitions"]["counted"] == "from the first packet"]
    words = ", ".join({e["definitions"]["counted"]: 1 for e in found if e["verdict"] != "holds"})
    judged = all_of(*parts, _exceeded(first, "efficiency of one connection beyond 1"))
    more = f"; it is exactly 1 where it is counted {words}" if words else ""
    return dataclasses.replace(judged, why=judged.why + more)


def _efficient(lab, name):
    """Link efficiency over the whole axis; the fluid's least thresholds of full use beside it."""
    own = f"drops_{name}" if lab.reading == "finite" else name
    judged = _better(lab, own, link_efficiency, "efficiency", more=True)
    pipe = pipe_of(lab.experiment(f"{own}_tail").net(0))
    tail, front = (float(exact(marks, pipe, 2.0)) for marks in (TAIL, FRONT))
    why = f"{judged.why}; two flows as fluid are busy from T = {tail:.1f} on (tail), {front:.1f} "
    why += "(front), which reacts sooner and so grows less before it halves"
    return dataclasses.replace(judged, why=why, engine="packets+analytic", unit="1")


@judge("MF-12", needs=_sides("two_leo", "drops_two_leo"), readings=("finite",))
def efficiency_leo(lab, claim):
    """Link efficiency over the whole axis, buffers endless, or of about rd (`finite`): the text
    explains the gain by packets that are dropped.
    """
    return _efficient(lab, "two_leo")


@judge(
    "MF-13", needs=_sides("two_geo_apart", "drops_two_geo_apart"),
    readings=("finite", "total"),
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


@judge("MF-14", needs=_sides("drops_ten_leo"), readings=("double",))
def drops_ten_leo(lab, claim):
    """Far fewer drops; buffers of about rd, or of 2 rd."""
    return _fewer(lab, "drops_ten_leo", far=True)


@judge("MF-15", needs=_sides("drops_two_leo"), readings=("double",))
def drops_two_leo(lab, claim):
    """Far fewer drops; buffers of about rd, or of 2 rd."""
    return _fewer(lab, "drops_two_leo", far=True)


@judge("MF-16", needs=_sides("drops_ten_geo"), readings=("double", "total"))
def drops_ten_geo(lab, claim):
    """Fewer drops; buffers of about rd, or of 2 rd."""
    return _fewer(lab, "drops_ten_geo")


@judge("MF-17", needs=_sides("drops_two_geo"), readings=("double", "total"))
def drops_two_geo(lab, claim):
    """Fewer drops; buffers of about rd, or of 2 rd."""
    return _fewer(lab, "drops_two_geo")


def _saved(lab, name):
    """Share of the tail's drops that the front saves, over all thresholds, shape (seeds,)."""
    tail, front, _ = _both(lab, name, _drops)
    return 1 - front.sum(axis=0) / np.maximum(tail.sum(axis=0), 1.0)


@judge(
    "MF-18", needs=_sides("drops_ten_geo", "drops_two_geo", "drops_ten_geo_apart"),
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


@judge("MF-19", needs=_sides("ten_leo", "ten_leo_apart"), readings=("apart",))
def unfairness_leo(lab, claim):
    """Unfairness over the whole axis: round trips the same as the text has them, or different ones
    as the caption has (`apart`).
    """
    name = "ten_leo_apart" if lab.reading == "apart" else "ten_leo"
    return _better(lab, name, flow_unfairness, "unfairness")


@judge("MF-20", needs=_sides("ten_geo_apart", "ten_geo"), readings=("same", "total"))
def unfairness_geo(lab, claim):
    """Unfairness over the whole axis: different round trips, or the same ones (`same`)."""
    name = "ten_geo" if lab.reading == "same" else "ten_geo_apart"
    return _better(lab, name, flow_unfairness, "unfairness")


@judge("MF-21", needs=_sides("ten_leo", "ten_geo_apart"), readings=("total",))
def fairness_gain(lab, claim):
    """Unfairness at the tail less that at the front, mean over thresholds of equal shares of rd."""
    gains = []
    for name in ("ten_leo", "ten_geo_apart"):
        tail, front, _ = _both(lab, name, flow_unfairness)
        gains.append((tail - front).mean(axis=0))
    return ordered(gains[1], gains[0], what="unfairness taken away, GSO and LEO")


@judge("MF-22", needs=_sides("old", "near"))
def favoured(lab, claim):
    """Goodput of the first five flows (oldest, or nearest) over that of the last five, once all
    have started: above 1 at the tail, and less at the front.
    """
    parts = []
    for name, words in (
        ("old", "of five old flows over five new ones"),
        ("near", "of five near flows over five far ones"),
    ):
        ratios, x = [], None
        for side in SIDES:
            runs = lab.packets(f"{name}_{side}")
            share, x = np.array(goodputs(runs)), runs.x
            ratios.append(share[..., :5].sum(axis=-1) / share[..., 5:].sum(axis=-1))
        tail, front = ratios
        parts += [
            ordered(
                np.ones_like(tail),
                tail,
                x=x,
                what=f"goodput {words}, of equal shares and mark-tail",
            ),
            ordered(front, tail, x=x, what=f"goodput {words}, mark-front and mark-tail"),
        ]
    return all_of(*parts)


def _signs(tail, front):
    """1 where the front's is significantly more, -1 where less, 0 elsewhere; shape (points,)."""
    mean, half = interval(front - tail)
    return np.where(np.abs(mean) > half, np.sign(mean), 0)


@judge("MF-23", needs=_sides("two_leo", "two_geo_apart", *_LONGER), readings=("total",))
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


@judge("MF-24", needs=("ten_leo_apart_tail",))
def index(lab, claim):
    """The definition: our metric is this formula of the acknowledged packets, in every run."""
    runs = lab.packets("ten_leo_apart_tail")
    ours = 1 - runs.values("flows.reno.jain")
    gap = float(np.abs(ours - flow_unfairness(runs)).max())
    why = f"a definition, and that of our metric: they differ by {gap:.1g} at most in all runs"
    return shown(gap < 1e-9, why, engine="packets", value=gap)


@judge("MF-25")
def no_loss(lab, claim):
    """Buffers of the largest queue of slow start, searched for counterexamples over thresholds,
    pipes and ways to start; the claim is a general statement, and the simulations beside it have
    two or ten connections, so that one counterexample with several contradicts it. A buffer of the
    largest queue of the whole run loses nothing by construction, and decides nothing.
    """
    found = lab.bound("mark_front.no_loss")["bounds"]
    first = [e for e in found if "slow start" in e["definitions"]["requirement"]]
    told_of, lost = {"holds": [], "violated": []}, []
    for e in first:
        words = f"{e['definitions']['connections']} with mark-{e['definitions']['marks']}"
        if e["verdict"] == "violated":
            lost.append(e["largest_excess"])
            case = e["worst"]["scenario"]
            (link,), (flows, *_) = case["links"].values(), case["flows"].values()
            words += f" ({e['worst']['value']:g} packets at T = {link['queue']['at']:g} and "
            words += f"rd = {link['capacity'] * flows['rtt']:g}, at most {e['largest_excess']:g})"
        told_of[e["verdict"]].append(words)
    why = "a buffer of the largest queue of the first slow start loses nothing for "
    why += ", ".join(told_of["holds"]) or "none"
    why += "; it loses packets for " + (", ".join(told_of["violated"]) or "none")
    why += "; one of the largest queue of the whole run loses none by construction"
    return shown(not lost, why, engine="packets", value=max(lost, default=0.0), unit="packets")


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
    "5a": ("two_leo", link_efficiency, True),
    "5b": ("two_geo_apart", link_efficiency, True),
    "6a": ("drops_ten_leo", _drops, False),
    "6b": ("drops_two_leo", _drops, False),
    "7a": ("drops_ten_geo", _drops, False),
    "7b": ("drops_two_geo", _drops, False),
    "7c": ("drops_ten_geo_apart", _drops, False),
    "8a": ("ten_leo", flow_unfairness, False),
    "8b": ("ten_geo_apart", flow_unfairness, False),
}


@judge(
    "MF-27", needs=_sides(*dict.fromkeys(name for name, _, _ in _ALL.values())),
    readings=("total", "double"),
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
