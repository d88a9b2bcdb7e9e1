"""Rules for the claims of the BECN paper (Akujobi et al., 2002): numerals are its sections.

"High congestion" is read as the most flows of an experiment, "very low" as the fewest. Loss and
delay are those of V.D. Readings: see the file of the experiments.

Two rules beside the general ones. A printed number that ours misses is `ordering_only` if its order
to each other number printed for the same point is ours too, significantly. The fluid model counts
as an engine only where its rest is stable and gives what is claimed.
"""

import dataclasses

import numpy as np
import sympy as sp

import fluidcc as fc
from fluidcc.papers.judging import alike, all_of, judge, near, ordered, shown, told
from fluidcc.papers.ledger import claims

_LINK = "links.bottleneck"
_OPEN = ("small_packets", "later_rules")  # where timeouts play no part
_READINGS = (*_OPEN, "short_timeout")
_MAX_TH = 45.0  # [packet]
_SIZE = 1000.0  # of a packet [B]
_BOTH = ("homogeneous_ecn", "homogeneous_becn")
_ALL = ("homogeneous_tcp", *_BOTH)
_BOTH_250, _ALL_250 = (tuple(f"{name}_250ms" for name in names) for names in (_BOTH, _ALL))
_CROWDED = ("crowded_becn", "crowded_ecn")
_QUENCHED = ("homogeneous_becn", "homogeneous_becn_250ms")
_WEB = ("web_ecn", "web_becn")
_WEB_250 = ("web_ecn_250ms", "web_becn_250ms")
_WORDS = {
    "queue_mean": "mean queue",
    "queue_bytes_mean": "mean queue",
    "queue_bytes_max": "longest queue",
    "drop_fraction": "loss",
    "mark_fraction": "share of marked packets",
    "utilization": "utilization",
}
_TIMEOUTS = (
    "as each of plain TCP's windows with a loss there ends in a timeout of 1 s with probability "
    "3/W, more often than in the runs"
)
_MARKS = "as its senders, which do not stand still after a reaction, need more signals"
_GROUPS = {"plain TCP": "tcp", "TCP": "tcp", "NewReno": "tcp", "ECN": "ecn", "BECN": "becn"}


def _flows(lab, name, metric):
    """A metric of the long-lived flows of an experiment, shape (points, seeds)."""
    group = "ftp" if "web" in name else name.removesuffix("_250ms").rpartition("_")[2]
    return lab.packets(name).values(f"flows.{group}.{metric}")


def _flows_at(lab, name, metric, x):
    """The same at one point, shape (seeds,)."""
    return _flows(lab, name, metric)[lab.experiment(name).x.index(x)]


def _link_at(lab, name, metric, x):
    """A metric of the bottleneck at one point, shape (seeds,)."""
    return lab.packets(name).at(x, f"{_LINK}.{metric}")


def _queue(rest):
    """Queue at rest [B]."""
    return _SIZE * rest["links"]["bottleneck"]["queue"]


def _signal(rest):
    """Packets marked or dropped at rest [%]."""
    return 100 * rest["links"]["bottleneck"]["signal"]


def _fluid(lab, name, x, of):
    """What the fluid model says at one point: `of` its rest, NaN where it has no smooth one, and
    whether that is stable.
    """
    experiment = lab.experiment(name)
    net = experiment.net(experiment.x.index(x))
    rest = lab.ask(fc.equilibrium, net)
    if rest["status"] != "interior":
        return np.nan, False
    return of(rest), lab.ask(fc.stability, net)["stable"]


def _with(found, fluid, holds, *, unit, because=""):
    """A judgement with what the fluid model says beside: `fluid` as from `_fluid`, one or more;
    `holds` tells whether values are as claimed.
    """
    values, stable = zip(*fluid, strict=True)
    said, engine = " and ".join(told(value, unit=unit) for value in values), found.engine
    if np.isnan(values).any():
        clause = "the fluid model has no smooth rest there"
    elif not all(stable):
        clause = f"the fluid model at rest, {said}, is unstable there"
    elif holds(*values):
        clause, engine = f"the fluid model at rest: {said}", f"{engine}+fluid"
    else:
        clause = f"the fluid model disagrees, {said}, {because}".removesuffix(", ")
    return dataclasses.replace(found, why=f"{found.why}; {clause}", engine=engine)


def _is(claim):
    """Whether a number of the fluid model is the claim's."""
    return lambda value: near(claim.value, [value], engine="fluid").verdict == "reproduced"


def _below(low, high):
    """Whether numbers of the fluid model are in the order that is claimed."""
    return low < high


def _or_order(found, claim, ids, of):
    """Where a number misses, its order to the others of `ids`, printed for the same point; `of` is
    what we have for a claim, shape (seeds,).
    """
    if found.verdict != "not_reproduced":
        return found
    steps, others = [], [claims("becn")[name] for name in ids if name != claim.id]
    for other in others:
        pair = (claim, other) if claim.value < other.value else (other, claim)
        steps.append(ordered(*(of(one) for one in pair)).verdict == "reproduced")
    if not all(steps):
        return found
    beside = " and ".join(f"{other.value:g} of {other.algorithms[0]}" for other in others)
    why = f"{found.why}: the order beside {beside} alone is right"
    return dataclasses.replace(found, verdict="ordering_only", why=why)


def _lower(one, other):
    """By how much `one` is below `other`, seed by seed [%]."""
    return 100 * (1 - one / other)


def _bound(lab, name):
    """What `check_bound` finds: verdicts by the values of the bound's definitions."""
    return {tuple(one["definitions"].values()): one for one in lab.bound(name)["bounds"]}


# General statements


@judge("BECN-01", needs=(*_WEB, *_WEB_250))
def slight_improvement(lab, claim):
    """Objects arrive sooner with BECN over all points of both delays; slight is below 10 %."""
    ecn, becn = (
        np.concatenate([lab.packets(name).values("flows.web.transfer_mean") for name in names])
        for names in zip(_WEB, _WEB_250, strict=True)
    )
    gain = 100 * (1 - becn.mean() / ecn.mean())
    order = ordered(becn, ecn, x=_places(lab, *_WEB), unit="s", what="object delay, BECN below ECN")
    return all_of(order, shown(gain < 10, f"{gain:.2g} % sooner in the mean", engine="packets",
                               otherwise="not_reproduced"))  # fmt: skip


def _places(lab, name, _):
    """Labels of the points of both delays together."""
    return [f"{x} at {delay} ms" for delay in (40, 250) for x in lab.experiment(name).x]


@judge("BECN-02", needs=(*_BOTH, *_BOTH_250))
def no_worse(lab, claim):
    """No point of either delay where the goodput of BECN is more than 5 % below that of ECN."""
    ecn, becn = (
        np.concatenate([_flows(lab, name, "goodput").mean(axis=1) for name in names])
        for names in zip(_BOTH, _BOTH_250, strict=True)
    )
    ratio = becn / ecn
    ends = f"{ratio.min():.3f} to {ratio.max():.3f}"
    why = f"goodput of BECN over that of ECN: {ends} over all points"
    return shown(bool((ratio >= 0.95).all()), why, engine="packets", value=float(ratio.min()))


@judge("BECN-03", needs=(*_BOTH_250, *_WEB_250))
def large_paths(lab, claim):
    """Goodput, losses of both kinds of traffic, and delay of objects at 250 ms, over all points."""
    return all_of(*_better_at_250(lab))


def _better_at_250(lab):
    x, web = lab.experiment(_BOTH_250[0]).x, lab.experiment(_WEB_250[0]).x
    slow, fast = (lab.packets(name).values("flows.web.transfer_mean") for name in _WEB_250)
    ecn, becn = (_flows(lab, name, "goodput") for name in _BOTH_250)
    return (
        ordered(ecn, becn, x=x, what="goodput at 250 ms, ECN below BECN", unit="bit/s"),
        *_losses_below(lab, _BOTH_250, _WEB_250, "250 ms"),
        ordered(fast, slow, x=web, unit="s", what="object delay at 250 ms, BECN below ECN"),
    )


def _losses_below(lab, bulk, web, where):
    """Losses of both kinds of traffic, BECN below ECN, over the points where either loses any."""
    parts = []
    for kind, names in (("loss", bulk), ("web loss", web)):
        group = {"loss": _flows}.get(kind, _web)
        ecn, becn = (100 * group(lab, name, "loss_fraction") for name in names)
        some = (ecn + becn).max(axis=1) > 0
        x = np.array(lab.experiment(names[0]).x)[some]
        what = f"{kind} at {where}, BECN below ECN"
        parts.append(ordered(becn[some], ecn[some], x=x, what=what, unit="%"))
    return parts


def _web(lab, name, metric):
    """A metric of the web transfers, shape (points, seeds)."""
    return lab.packets(name).values(f"flows.web.{metric}")


@judge("BECN-04", needs=_ALL_250[:2])
def newreno_beats_ecn(lab, claim):
    """Goodput at 250 ms over all numbers of flows."""
    tcp, ecn = (_flows(lab, name, "goodput") for name in _ALL_250[:2])
    x = lab.experiment(_ALL_250[0]).x
    return ordered(ecn, tcp, x=x, what="goodput, ECN below plain TCP", unit="bit/s")


@judge("BECN-05", needs=("web_becn", "quenches_without_size"))
def overhead(lab, claim):
    """Long-lived flows get the same goodput when quenches have next to no size, on a way back with
    a queue of its own; and no packet is lost there.
    """
    own, light = (lab.packets(name) for name in ("web_becn", "quenches_without_size"))
    same = alike(own.values("flows.ftp.goodput"), light.values("flows.ftp.goodput"), x=own.x,
                 what="goodput with quenches of 56 B beside 1 B")  # fmt: skip
    lost = sum(own.values(f"flows.{g}.replies_lost").sum() for g in ("ftp", "web"))
    busy = own.values("links.back.utilization").max()
    why = f"{lost:.0f} packets lost on the way back, which is {100 * busy:.3g} % busy at most"
    return all_of(same, shown(lost == 0, why, engine="packets"))


@judge("BECN-06", needs=("homogeneous_becn",))
def reactions(lab, claim):
    """The bound on reactions in its quick search; and a lost quench is no worse than a lost echo,
    which the next ACK repeats, if the flow's next quench comes within a round trip, at 45 flows.
    """
    enhanced = _bound(lab, "becn.reactions")["enhanced",]
    case = enhanced["worst"]
    often = shown(
        enhanced["verdict"] == "holds",
        f"at most {case['value']:.3g} reactions per round trip in {enhanced['searched']} networks",
        engine="packets",
    )
    runs = lab.packets("homogeneous_becn")
    span = 45 * (runs.experiment.until - runs.experiment.warmup)
    trips = span / (runs.at(45, "flows.becn.rtt_mean") * runs.at(45, "flows.becn.quenches"))
    again = shown(
        bool((trips <= 1).all()),
        f"but at 45 flows the next quench of the same flow comes {trips.mean():.2g} round trips "
        "later in the mean, where an echo is repeated by every ACK",
        engine="packets", otherwise="contradicted" if (trips > 1).all() else "not_reproduced",
        value=float(trips.mean()), unit="round trip",
    )  # fmt: skip
    return all_of(often, again)


@judge("BECN-07", needs=_QUENCHED)
def only_marks_and_drops(lab, claim):
    """Quenches are as many as marks and drops, but for 20 at most at either end of the time
    measured.
    """
    gaps = []
    for name in _QUENCHED:
        runs = lab.packets(name)
        told_of = runs.values(f"{_LINK}.marks") + runs.values(f"{_LINK}.drops")
        gaps.append(np.abs(runs.values("flows.becn.quenches") - told_of))
    apart = float(np.max(np.concatenate(gaps)))
    why = f"quenches and the sum of marks and drops differ by {apart:.0f} at most in any run"
    return shown(apart <= 20, why, engine="packets", value=apart)


@judge("BECN-08")
def sooner(lab, claim):
    """The bound on ages, for routers in the first half of the way there, where the paper's is."""
    found = _bound(lab, "becn.sooner")
    near_source = [one for key, one in found.items() if "anywhere" not in key]
    far = [one for key, one in found.items() if "anywhere" in key and one["worst"]]
    holds = all(one["verdict"] == "holds" for one in near_source)
    place = far[0]["worst"]["scenario"]["before"] if far else np.nan
    why = (
        "holds for routers in the first half of the way there, as here "
        f"({far[0]['derivation'][0]}, with the propagation to the router f and from there on b, "
        f"and the queueing w); not for all others, such as one after {place:.2g} of the round "
        "trip's propagation"
    )
    return shown(holds, why, engine="analytic")


@judge("BECN-09", needs=("few_becn", "few_becn_dropped"))
def window_law(lab, claim):
    """Sampled windows of two flows: what remains after each fall, and how long growth waits, in
    round trips; quenches for marks, then for drops alone. Growth begins in the second round trip
    after a fall by a mark (0.9 to 2): a halved sender stands still until half of its packets are
    acknowledged, so that none of its ACKs may come when the pause ends.
    """
    parts = []
    for name, kind in (("few_becn", "mark"), ("few_becn_dropped", "drop")):
        runs = lab.packets(name)
        time, windows = runs.series(0, "flow_window", "becn")
        trip = float(runs.values("flows.becn.rtt_mean").mean())
        left, wait = _falls(time[time > 10], windows[time > 10], trip)
        why = (
            f"{kind}: {np.median(left):.3g} of the window left, growth after "
            f"{np.median(wait):.2g} round trips (medians of {len(left)} falls)"
        )
        late = np.median(wait) < 0.9
        if kind == "mark":
            late = wait.min() >= 0.9 and np.median(wait) <= 2
            why += (
                f", {wait.min():.2g} at least: with the first ACK after the full round trip, which "
                "is late where the halved sender has stood still"
            )
        right = bool(late and abs(np.median(left) - 0.5) <= 0.05)
        parts.append(shown(right, why, engine="packets", otherwise="not_reproduced"))
    return all_of(*parts)


def _falls(time, windows, trip):
    """Windows left after falls, as a share, and waits until the next growth [round trips]."""
    left, waits = [], []
    for window in windows.T:
        for k in np.flatnonzero(np.diff(window) < -0.3 * window[:-1]):
            after = np.flatnonzero(window[k + 1 :] > window[k + 1])
            if after.size:
                left.append(window[k + 1] / window[k])
                waits.append(time[after[0]] / trip - time[0] / trip)
    return np.array(left), np.array(waits)


@judge("BECN-10", readings=("once",), needs=(
    *_QUENCHED, "homogeneous_becn_original", "homogeneous_becn_original_250ms"))  # fmt: skip
def original_aggressive(lab, claim):
    """More aggressive is a longer queue, over all points of each delay, and more loss, over those
    where either form loses any packet.
    """
    parts = []
    for delay in ("", "_250ms"):
        new, old = (lab.packets(f"homogeneous_becn{form}{delay}") for form in ("", "_original"))
        where = "250 ms" if delay else "40 ms"
        for metric, unit in (("queue_mean", "packet"), ("drop_fraction", "")):
            less, more = (runs.values(f"{_LINK}.{metric}") for runs in (new, old))
            some = (less + more).max(axis=1) > 0
            if some.any():
                what = f"{_WORDS[metric]} at {where}, enhanced below original"
                x = [label for label, good in zip(new.x, some, strict=True) if good]
                parts.append(ordered(less[some], more[some], x=x, unit=unit, what=what))
    return all_of(*parts)


# Beside plain TCP


def _gain(lab, name, x):
    """Gain in goodput over plain TCP [%], by packets and by the fluid model."""
    group, runs = name.rpartition("_")[2], lab.packets(name)
    own, plain = (runs.at(x, f"flows.{g}.goodput") for g in (group, "tcp"))

    def of(rest):
        flows, signal = rest["flows"], rest["links"]["bottleneck"]["signal"]
        through = flows["tcp"]["rate"][0] * (1 - signal)
        return 100 * (flows[group]["rate"][0] / through - 1)

    return 100 * (own / plain - 1), _fluid(lab, name, x, of)


def _gain_at_40(lab, claim, name):
    gain, fluid = _gain(lab, name, 40)
    what = f"gain of {claim.algorithms[0]} at 40 flows"
    found = near(claim.value, gain, unit="%", neutral=0.0, what=what)
    return _with(found, [fluid], _is(claim), unit="%", because=_TIMEOUTS)


@judge("BECN-11", needs=_CROWDED[:1], readings=_READINGS)
def becn_over_plain(lab, claim):
    """The gain of BECN at 40 flows."""
    return _gain_at_40(lab, claim, "crowded_becn")


@judge("BECN-12", needs=_CROWDED[1:], readings=_READINGS)
def ecn_over_plain(lab, claim):
    """The gain of ECN at 40 flows."""
    return _gain_at_40(lab, claim, "crowded_ecn")


@judge("BECN-13", "BECN-14", "BECN-15", needs=_CROWDED, readings=_READINGS)
def loss_beside_plain(lab, claim):
    """Loss of one half of 40 flows, 20 seeds; else the order of all three."""

    def lost(one):
        group = _GROUPS[one.algorithms[0]]
        name = "crowded_ecn" if group == "ecn" else "crowded_becn"
        return 100 * lab.packets(name).at(40, f"flows.{group}.loss_fraction")

    what = f"loss of {claim.algorithms[0]} at 40 flows"
    found = near(claim.value, lost(claim), unit="%", what=what)
    found = _or_order(found, claim, ("BECN-13", "BECN-14", "BECN-15"), lost)
    if claim.id != "BECN-14":
        return found
    fluid = _fluid(lab, "crowded_becn", 40, _signal)
    return _with(found, [fluid], _is(claim), unit="%", because=_MARKS)


def _gains_in_order(lab, x, less, more):
    (low, fluid), (high, other) = _gain(lab, less, x), _gain(lab, more, x)
    labels = (name.rpartition("_")[2].upper() for name in (less, more))
    what = f"gain at {x} flows, {' below '.join(labels)}"
    found = ordered(low, high, what=what, unit="%")
    return _with(found, [fluid, other], _below, unit="%", because=_TIMEOUTS)


@judge("BECN-16", needs=_CROWDED, readings=_OPEN)
def gain_order(lab, claim):
    """Gains at 40 flows."""
    return _gains_in_order(lab, 40, *reversed(_CROWDED))


@judge("BECN-17", needs=("competing_becn", "competing_ecn"), readings=_OPEN)
def gain_order_few(lab, claim):
    """Gains at 8 flows, the other way round."""
    return _gains_in_order(lab, 8, "competing_becn", "competing_ecn")


# Flows of one kind, 40 ms


@judge("BECN-18", "BECN-28", "BECN-29", needs=_ALL, readings=_READINGS)
def loss_alone(lab, claim):
    """Loss at 45 flows; else the order of all three."""

    def lost(one):
        name = f"homogeneous_{_GROUPS[one.algorithms[0]]}"
        return 100 * _flows_at(lab, name, "loss_fraction", 45)

    what = f"loss of {claim.algorithms[0]} at 45 flows"
    found = near(claim.value, lost(claim), unit="%", what=what)
    found = _or_order(found, claim, ("BECN-18", "BECN-28", "BECN-29"), lost)
    fluid = _fluid(lab, f"homogeneous_{_GROUPS[claim.algorithms[0]]}", 45, _signal)
    return _with(found, [fluid], _is(claim), unit="%")


@judge("BECN-19", "BECN-20", "BECN-21", needs=_ALL, readings=_READINGS)
def queue_alone(lab, claim):
    """Mean queue over time at 45 flows, in bytes; else the order of all three."""

    def queue(one):
        name = f"homogeneous_{_GROUPS[one.algorithms[0]]}"
        return _link_at(lab, name, "queue_bytes_mean", 45)

    what = f"mean queue of {claim.algorithms[0]} at 45 flows"
    found = near(claim.value, queue(claim), unit="B", what=what)
    found = _or_order(found, claim, ("BECN-19", "BECN-20", "BECN-21"), queue)
    fluid = _fluid(lab, f"homogeneous_{_GROUPS[claim.algorithms[0]]}", 45, _queue)
    return _with(found, [fluid], _is(claim), unit="B")


@judge("BECN-22", needs=_ALL, readings=_OPEN)
def queue_order(lab, claim):
    """Mean queues at 45 flows, both steps of the order."""
    tcp, ecn, becn = (_link_at(lab, name, "queue_bytes_mean", 45) for name in _ALL)
    return all_of(
        ordered(tcp, becn, what="queue, plain TCP below BECN", unit="B"),
        ordered(becn, ecn, what="queue, BECN below ECN", unit="B"),
    )


@judge("BECN-23", needs=("homogeneous_tcp",), readings=_READINGS)
def utilization_range(lab, claim):
    """Utilization at every number of flows within the printed range, which is the tolerance: 10 %
    would be more than what is left to 100 %.
    """
    runs = lab.packets("homogeneous_tcp")
    busy = 100 * runs.values(f"{_LINK}.utilization").mean(axis=1)
    low, high = claim.value
    outside = ", ".join(str(x) for x in runs.x[(busy < low) | (busy > high)])
    why = f"{busy.min():.5g} to {busy.max():.5g} % against {low} to {high} %" + (
        f", outside at {outside} flows" if outside else ""
    )
    return shown(not outside, why, engine="packets", otherwise="not_reproduced",
                 value=[busy.min(), busy.max()], unit="%")  # fmt: skip


@judge("BECN-24", needs=_ALL)
def goodput_alike(lab, claim):
    """Goodput of plain TCP beside that of each other, over all numbers of flows."""
    tcp, ecn, becn = (_flows(lab, name, "goodput") for name in _ALL)
    x = lab.experiment(_ALL[0]).x
    return all_of(
        alike(tcp, ecn, x=x, what="goodput of plain TCP beside ECN"),
        alike(tcp, becn, x=x, what="goodput of plain TCP beside BECN"),
    )


@judge("BECN-25", "BECN-27", needs=_BOTH, readings=_OPEN)
def fifteen_flows(lab, claim):
    """At 15 flows: mean queue, and the largest, for the instantaneous one; or utilization."""
    if claim.id == "BECN-27":
        ecn, becn = (100 * _link_at(lab, name, "utilization", 15) for name in _BOTH)
        return ordered(ecn, becn, what="utilization at 15 flows, ECN below BECN", unit="%")
    parts = []
    for metric in ("queue_bytes_mean", "queue_bytes_max"):
        ecn, becn = (_link_at(lab, name, metric, 15) for name in _BOTH)
        parts.append(ordered(becn, ecn, what=f"{_WORDS[metric]}, BECN below ECN", unit="B"))
    fluid = [_fluid(lab, name, 15, _queue) for name in reversed(_BOTH)]
    return _with(all_of(*parts), fluid, _below, unit="B")


@judge("BECN-26", needs=_BOTH, readings=_OPEN)
def no_loss(lab, claim):
    """No loss at 15 flows: below 0.01 %, the last digit that the paper prints."""
    lost = [100 * _flows_at(lab, name, "loss_fraction", 15) for name in _BOTH]
    parts = [
        near(0.0, own, absolute=0.01, unit="%", what=f"loss of {label}")
        for own, label in zip(lost, ("ECN", "BECN"), strict=True)
    ]
    return all_of(*parts)


# Web transfers, 40 ms


@judge("BECN-30", needs=_WEB)
def both_lose(lab, claim):
    """Web packets are lost at every point, and more beside 35 flows than beside 5."""
    parts = []
    for name, label in zip(_WEB, ("ECN", "BECN"), strict=True):
        lost = 100 * lab.packets(name).values("flows.web.loss_fraction")
        parts += [
            ordered(np.zeros_like(lost), lost, unit="%", what=f"web loss of {label} above 0",
                    x=lab.experiment(name).x),
            ordered(lost[0], lost[-1], unit="%", what=f"{label}, beside 5 below beside 35"),
        ]  # fmt: skip
    return all_of(*parts)


@judge("BECN-31", needs=_WEB, readings=_OPEN)
def web_queue(lab, claim):
    """Mean queue beside 15 flows; how far it varies is told beside."""
    return _web_queue(lab, _WEB, 15)


@judge("BECN-44", needs=_WEB_250, readings=_OPEN)
def web_queue_250(lab, claim):
    """Mean queue at 250 ms beside 25 flows; how far it varies is told beside."""
    return _web_queue(lab, _WEB_250, 25)


def _web_queue(lab, names, x):
    ecn, becn = (_link_at(lab, name, "queue_bytes_mean", x) for name in names)
    found = ordered(becn, ecn, what=f"queue beside {x} flows, BECN below ECN", unit="B")
    spread, busy = (
        [_link_at(lab, name, metric, x).mean() for name in reversed(names)]
        for metric in ("queue_bytes_var", "utilization")
    )
    beside = (
        f"standard deviation {told(spread[0] ** 0.5, unit='B')} and "
        f"{told(spread[1] ** 0.5, unit='B')}, utilization {told(busy[0])} and {told(busy[1])}"
    )
    return dataclasses.replace(found, why=f"{found.why}; {beside}")


@judge("BECN-32", needs=("objects_ecn", "objects_becn"))
def long_objects(lab, claim):
    """Objects of one size at the same load: the reduction of their delay is more for the longest
    than for the shortest, and there significant.
    """
    ecn, becn = (lab.packets(name).values("flows.web.transfer_mean") for name in
                 ("objects_ecn", "objects_becn"))  # fmt: skip
    gain = _lower(becn, ecn)
    x = lab.experiment("objects_ecn").x
    each = ", ".join(f"{g:.2g} % at {size}" for g, size in zip(gain.mean(axis=1), x, strict=True))
    return all_of(
        ordered(gain[0], gain[-1], unit="%",
                what=f"reduction at {x[0]} packets below that at {x[-1]} ({each})"),
        ordered(np.zeros_like(gain[-1]), gain[-1], unit="%", what=f"reduction at {x[-1]} above 0"),
    )  # fmt: skip


@judge("BECN-33", "BECN-34", needs=_WEB, readings=_READINGS)
def web_losses(lab, claim):
    """Loss of web packets beside 35 flows; else the order of both."""

    def lost(one):
        name = f"web_{_GROUPS[one.algorithms[0]]}"
        return 100 * lab.packets(name).at(35, "flows.web.loss_fraction")

    what = f"web loss of {claim.algorithms[0]} beside 35 flows"
    found = near(claim.value, lost(claim), unit="%", what=what)
    return _or_order(found, claim, ("BECN-33", "BECN-34"), lost)


@judge("BECN-35", needs=_WEB, readings=_READINGS)
def web_delay(lab, claim):
    """Reduction of the mean object delay beside 10 flows, seed by seed."""
    return _web_reduction(lab, claim, _WEB, 10, "transfer_mean", "object delay")


@judge("BECN-46", needs=_WEB_250, readings=_READINGS)
def web_delay_250(lab, claim):
    """Reduction of the mean object delay at 250 ms beside 25 flows, seed by seed."""
    return _web_reduction(lab, claim, _WEB_250, 25, "transfer_mean", "object delay")


@judge("BECN-45", needs=_WEB_250, readings=_READINGS)
def web_loss_250(lab, claim):
    """Reduction of the loss of web packets beside 25 flows at 250 ms, seed by seed."""
    return _web_reduction(lab, claim, _WEB_250, 25, "loss_fraction", "web loss")


def _web_reduction(lab, claim, names, x, metric, words):
    ecn, becn = (lab.packets(name).at(x, f"flows.web.{metric}") for name in names)
    what = f"reduction of the {words} beside {x} flows"
    return near(claim.value, _lower(becn, ecn), unit="%", neutral=0.0, what=what)


# 250 ms


@judge("BECN-36", "BECN-37", readings=(*_OPEN, "average"),
       needs=(*_BOTH_250, "queue_ecn_250ms", "queue_becn_250ms"))  # fmt: skip
def below_max_th(lab, claim):
    """Loss at 45 flows and 250 ms, within 0.01 % where none is claimed, else the order of both; and
    whether the largest queue of each run is below max_th, or above it. The reading "average" takes
    RED's average of the queue for the queue.
    """

    def lost(one):
        name = f"homogeneous_{_GROUPS[one.algorithms[0]]}_250ms"
        return 100 * _flows_at(lab, name, "loss_fraction", 45)

    group = _GROUPS[claim.algorithms[0]]
    if lab.reading == "average":
        runs = lab.packets(f"queue_{group}_250ms")
        time, average = runs.series(0, "link_average", "bottleneck")
        longest = average[time >= runs.experiment.warmup].max()[None]
        what = "largest average of the first seed"
    else:
        longest = _link_at(lab, f"homogeneous_{group}_250ms", "queue_max", 45)
        what = "longest queue of a run"
    over = longest >= _MAX_TH
    right, wrong = (over.any(), over.all()) if group == "becn" else (not over.all(), not over.any())
    ends = " to ".join(dict.fromkeys(f"{end:.3g}" for end in (longest.min(), longest.max())))
    found = near(claim.value, lost(claim), unit="%", absolute=0.01,
                 what=f"loss of {claim.algorithms[0]}")  # fmt: skip
    return all_of(
        _or_order(found, claim, ("BECN-36", "BECN-37"), lost),
        shown(not right, f"{what} {ends} packets, where max_th is {_MAX_TH:.0f}", engine="packets",
              otherwise="contradicted" if wrong else "not_reproduced",
              value=float(longest.mean()), unit="packet"),
    )  # fmt: skip


@judge("BECN-38", needs=_BOTH_250, readings=_OPEN)
def utilization_of_becn(lab, claim):
    """Utilization at 45 flows and 250 ms, ECN below BECN."""
    return _utilizations(lab, claim, *_BOTH_250)


@judge("BECN-41", needs=_ALL_250[:2], readings=_OPEN)
def utilization_of_newreno(lab, claim):
    """Utilization at 45 flows and 250 ms, ECN below plain TCP."""
    return _utilizations(lab, claim, *reversed(_ALL_250[:2]))


def _utilizations(lab, claim, less, more):
    low, high = (100 * _link_at(lab, name, "utilization", 45) for name in (less, more))
    what = f"utilization, {claim.algorithms[1]} below {claim.algorithms[0]}"
    return ordered(low, high, what=what, unit="%")


@judge("BECN-39", needs=_BOTH_250, readings=_READINGS)
def gain_of_becn_250(lab, claim):
    """Gain of BECN in goodput at 45 flows and 250 ms, seed by seed."""
    return _gain_250(lab, claim, *_BOTH_250)


@judge("BECN-43", needs=_ALL_250[:2], readings=_READINGS)
def gain_of_newreno_250(lab, claim):
    """Gain of plain TCP in goodput at 45 flows and 250 ms, seed by seed."""
    return _gain_250(lab, claim, *reversed(_ALL_250[:2]))


def _gain_250(lab, claim, less, more):
    ecn, own = (_flows_at(lab, name, "goodput", 45) for name in (less, more))
    what = f"gain of {claim.algorithms[0]} over ECN at 45 flows"
    return near(claim.value, 100 * (own / ecn - 1), unit="%", neutral=0.0, what=what)


@judge("BECN-40", needs=_ALL_250[:2], readings=_OPEN)
def newreno_queue(lab, claim):
    """Mean and largest queue at 45 flows and 250 ms; the largest stands for the instantaneous."""
    parts = []
    for metric in ("queue_bytes_mean", "queue_bytes_max"):
        tcp, ecn = (_link_at(lab, name, metric, 45) for name in _ALL_250[:2])
        parts.append(ordered(tcp, ecn, what=f"{_WORDS[metric]}, plain TCP below ECN", unit="B"))
    return all_of(*parts)


@judge("BECN-42", needs=_ALL_250[:1], readings=_READINGS)
def newreno_loss(lab, claim):
    """Loss of plain TCP at 45 flows and 250 ms."""
    lost = 100 * _flows_at(lab, "homogeneous_tcp_250ms", "loss_fraction", 45)
    found = near(claim.value, lost, unit="%", what="loss of plain TCP at 45 flows")
    fluid = _fluid(lab, "homogeneous_tcp_250ms", 45, _signal)
    return _with(found, [fluid], _is(claim), unit="%")


# Quenches


@judge("BECN-47", needs=_QUENCHED[:1], readings=(*_READINGS, "forty_flows"))
def quench_share(lab, claim):
    """Quenches at 45 flows and 40 ms, those that arrive, among quenches and ACKs."""
    return _quench_share(lab, claim, "homogeneous_becn")


@judge("BECN-48", needs=_QUENCHED[1:], readings=(*_READINGS, "forty_flows"))
def quench_share_250(lab, claim):
    """Quenches at 45 flows and 250 ms, those that arrive, among quenches and ACKs."""
    return _quench_share(lab, claim, "homogeneous_becn_250ms")


def _quench_share(lab, claim, name):
    """The number of flows that is high congestion is not said: 45, the most, or by a reading 40."""
    points = lab.experiment(name).x
    n, other = (40, 45) if lab.reading == "forty_flows" else (45, 40)
    share = {x: 100 * lab.packets(name).at(x, "flows.becn.quench_fraction")
             for x in (n, other) if x in points}  # fmt: skip
    what = f"quenches among quenches and ACKs at {n} flows"
    found = near(claim.value, share[n], unit="%", what=what)
    if other in share:
        why = f"{found.why}; {told(share[other].mean(), unit='%')} at {other} flows"
        found = dataclasses.replace(found, why=why)
    fluid = _fluid(lab, name, n, lambda rest: 100 * rest["links"]["bottleneck"]["quench_ratio"])
    return _with(found, [fluid], _is(claim), unit="%")


@judge("BECN-49", needs=_QUENCHED[:1])
def quench_bytes(lab, claim):
    """The size by the headers in a quench; and its share of the bytes, beside ACKs of 40 B as in
    the runs, below its share of the packets. Packets of a real network are not among the runs.
    """
    ip, icmp, told_of, ack = 20, 8, 8, 40
    size = ip + icmp + ip + told_of
    f, mean = sp.symbols("f s", positive=True)
    share = size * f / (size * f + mean * (1 - f))
    least = sp.solve(sp.Eq(share, f), mean)[0]
    runs = lab.packets("homogeneous_becn")
    packets = runs.values("flows.becn.quench_fraction")
    data = sp.lambdify((f, mean), share)
    octets = data(packets, ack)
    low, high = (100 * part[-1].mean() for part in (packets, octets))
    why = (
        f"at 45 flows quenches are {low:.2g} % of the packets and {high:.2g} % of the bytes beside "
        f"ACKs of {ack} B; less only if the others have more than {least} B in the mean, "
        f"as {100 * data(packets[-1].mean(), 576):.2g} % beside packets of 576 B"
    )
    return all_of(
        shown(size == claim.value, f"IP and ICMP header with the IP header and 8 bytes of what was "
              f"dropped: {size} B", engine="analytic"),
        shown(bool((octets < packets).all()), why, engine="packets", otherwise="not_reproduced",
              value=high, unit="%"),
    )  # fmt: skip


@judge("BECN-50", needs=_QUENCHED)
def larger_product(lab, claim):
    """Utilization, mean queue and marks at 250 ms below those at 40 ms, over all points."""
    near_by, far = (lab.packets(name) for name in _QUENCHED)
    return all_of(*(
        ordered(far.values(f"{_LINK}.{metric}"), near_by.values(f"{_LINK}.{metric}"), x=far.x,
                what=f"{_WORDS[metric]}, 250 ms below 40 ms", unit=unit)
        for metric, unit in (("utilization", ""), ("queue_mean", "packet"), ("mark_fraction", ""))
    ))  # fmt: skip


@judge("BECN-51", needs=(*_BOTH, *_WEB, *_BOTH_250, *_WEB_250))
def conclusion(lab, claim):
    """Alike or better at 40 ms: goodput and object delay alike, and losses of both kinds of traffic
    below those with ECN; better at 250 ms.
    """
    ecn, becn = (_flows(lab, name, "goodput") for name in _BOTH)
    slow, fast = (lab.packets(name).values("flows.web.transfer_mean") for name in _WEB)
    return all_of(
        alike(becn, ecn, x=lab.experiment(_BOTH[0]).x, what="goodput at 40 ms beside ECN"),
        alike(fast, slow, x=lab.experiment(_WEB[0]).x, what="object delay at 40 ms beside ECN"),
        *_losses_below(lab, _BOTH, _WEB, "40 ms"),
        *_better_at_250(lab),
    )
