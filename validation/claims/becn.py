"""Rules for the claims of the BECN paper (Akujobi et al., 2002): numerals are its sections.

"High congestion" is read as the most flows of an experiment, "very low" as the fewest. Loss and
delay are those of V.D. Readings: see the file of the experiments.
"""

import dataclasses

import numpy as np
import sympy as sp

import fluidcc as fc
from fluidcc.papers.judging import alike, all_of, judge, near, ordered, shown, told

_LINK = "links.bottleneck"
_OPEN = ("gentle", "small_packets", "later_rules")  # where timeouts play no part
_READINGS = (*_OPEN, "short_timeout")
_MAX_TH = 45.0  # [packet]
_BOTH = ("homogeneous_ecn", "homogeneous_becn")
_ALL = ("homogeneous_tcp", *_BOTH)
_BOTH_250, _ALL_250 = (tuple(f"{name}_250ms" for name in names) for names in (_BOTH, _ALL))
_QUENCHED = ("homogeneous_becn", "homogeneous_becn_250ms")
_WEB = ("web_ecn", "web_becn")
_WEB_250 = ("web_ecn_250ms", "web_becn_250ms")
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


def _fluid(lab, name, x, of=lambda rest: rest["links"]["bottleneck"]["queue"], unit="packet"):
    """What the fluid model says at one point, as a clause; of `of` where it rests smoothly."""
    experiment = lab.experiment(name)
    rest = lab.ask(fc.equilibrium, experiment.net(experiment.x.index(x)))
    if rest["status"] != "interior":
        return f"{name} is {rest['status']} in the fluid model"
    return f"fluid at rest, {name}: {told(of(rest), unit=unit)}"


def _signal(rest):
    """Packets marked or dropped at rest [%]."""
    return 100 * rest["links"]["bottleneck"]["signal"]


def _with(judgement, *clauses):
    """A judgement with what the fluid model says beside."""
    why = "; ".join((judgement.why, *clauses))
    return dataclasses.replace(judgement, why=why, engine=f"{judgement.engine}+fluid")


def _lower(one, other):
    """By how much `one` is below `other`, seed by seed [%]."""
    return 100 * (1 - one / other)


def _bound(lab, name):
    """What `check_bound` finds: verdicts by the values of the bound's definitions."""
    found = lab.store.keep("bounds", {"bound": name}, lambda: fc.check_bound(name).to_dict())
    return {tuple(one["definitions"].values()): one for one in found["bounds"]}


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
    ecn, becn = ({m: _flows(lab, name, m) for m in ("goodput", "loss_fraction")}
                 for name in _BOTH_250)  # fmt: skip
    short = [{m: lab.packets(name).values(f"flows.web.{m}") for m in
              ("loss_fraction", "transfer_mean")} for name in _WEB_250]  # fmt: skip
    return (
        ordered(ecn["goodput"], becn["goodput"], x=x, what="goodput, ECN below BECN", unit="bit/s"),
        ordered(becn["loss_fraction"], ecn["loss_fraction"], x=x, what="loss, BECN below ECN"),
        ordered(short[1]["loss_fraction"], short[0]["loss_fraction"], x=web,
                what="web loss, BECN below ECN"),
        ordered(short[1]["transfer_mean"], short[0]["transfer_mean"], x=web, unit="s",
                what="object delay, BECN below ECN"),
    )  # fmt: skip


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


@judge("BECN-06", needs=_QUENCHED)
def reactions(lab, claim):
    """The bound on reactions in its quick search; and a lost quench is no worse than a lost echo,
    which the next ACK repeats, if the flow's next quench comes within a round trip.
    """
    enhanced = _bound(lab, "becn.reactions")["enhanced",]
    case = enhanced["worst"]
    often = shown(
        enhanced["verdict"] == "holds",
        f"at most {case['value']:.3g} reactions per round trip in {enhanced['searched']} networks",
        engine="packets",
    )
    trips = []
    for name in _QUENCHED:
        runs = lab.packets(name)
        n, span = np.array(runs.x)[:, None], runs.experiment.until - runs.experiment.warmup
        rounds = n * span / runs.values("flows.becn.rtt_mean")
        trips.append((rounds / np.maximum(runs.values("flows.becn.quenches"), 1)).mean(axis=1))
    ends = np.concatenate(trips)
    again = shown(
        bool((ends <= 1).all()),
        f"but the next quench of the same flow comes {ends.min():.2g} to {ends.max():.2g} round "
        "trips later in the mean, where an echo is repeated by every ACK",
        engine="packets", otherwise="contradicted" if (ends > 1).all() else "not_reproduced",
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
        f"({far[0]['derivation'][0]}); not for all others, such as one after {place:.2g} of the "
        "round trip's propagation"
    )
    return shown(holds, why, engine="analytic")


@judge("BECN-09", needs=("few_becn", "few_becn_dropped"))
def window_law(lab, claim):
    """Sampled windows of two flows: what remains after each fall, and how long growth waits, in
    round trips; quenches for marks, then for drops alone. A pause is at least 0.9 round trips.
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
        late = np.median(wait) >= 0.9 if kind == "mark" else np.median(wait) < 0.9
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
                what = f"{metric} at {where}, enhanced below original"
                x = [label for label, good in zip(new.x, some, strict=True) if good]
                parts.append(ordered(less[some], more[some], x=x, unit=unit, what=what))
    return all_of(*parts)


# Beside plain TCP


def _gain(lab, group, x):
    """Gain in goodput over plain TCP [%], by packets and as a clause by the fluid model."""
    name = f"competing_{group}"
    runs = lab.packets(name)
    own, plain = (runs.at(x, f"flows.{g}.goodput") for g in (group, "tcp"))

    def of(rest):
        flows, signal = rest["flows"], rest["links"]["bottleneck"]["signal"]
        through = flows["tcp"]["rate"][0] * (1 - signal)
        return 100 * (flows[group]["rate"][0] / through - 1)

    return 100 * (own / plain - 1), _fluid(lab, name, x, of, "%")


@judge("BECN-11", "BECN-12", needs=("competing_becn", "competing_ecn"), readings=_READINGS)
def gain_over_plain(lab, claim):
    """The gain at 40 flows."""
    group = _GROUPS[claim.algorithms[0]]
    gain, fluid = _gain(lab, group, 40)
    what = f"gain of {claim.algorithms[0]} at 40 flows"
    return _with(near(claim.value, gain, unit="%", neutral=0.0, what=what), fluid)


@judge("BECN-13", "BECN-14", "BECN-15", needs=("competing_becn", "competing_ecn"),
       readings=_READINGS)  # fmt: skip
def loss_beside_plain(lab, claim):
    """Loss of one half of 40 flows."""
    group = _GROUPS[claim.algorithms[0]]
    name = "competing_ecn" if group == "ecn" else "competing_becn"
    lost = 100 * lab.packets(name).at(40, f"flows.{group}.loss_fraction")
    found = near(claim.value, lost, unit="%", what=f"loss of {claim.algorithms[0]} at 40 flows")
    if group != "tcp":
        return found
    return _with(found, _fluid(lab, name, 40, _signal, "%"))


@judge("BECN-16", "BECN-17", needs=("competing_becn", "competing_ecn"), readings=_OPEN)
def gain_order(lab, claim):
    """Gains at 40 flows, and the other way round at 8."""
    x, more = (40, "becn") if claim.id == "BECN-16" else (8, "ecn")
    less = "ecn" if more == "becn" else "becn"
    (low, fluid), (high, other) = _gain(lab, less, x), _gain(lab, more, x)
    what = f"gain at {x} flows, {less.upper()} below {more.upper()}"
    return _with(ordered(low, high, what=what, unit="%"), fluid, other)


# Flows of one kind, 40 ms


@judge("BECN-18", "BECN-28", "BECN-29", needs=_ALL, readings=_READINGS)
def loss_alone(lab, claim):
    """Loss at 45 flows."""
    group = _GROUPS[claim.algorithms[0]]
    lost = 100 * _flows_at(lab, f"homogeneous_{group}", "loss_fraction", 45)
    what = f"loss of {claim.algorithms[0]} at 45 flows"
    found = near(claim.value, lost, unit="%", what=what)
    return _with(found, _fluid(lab, f"homogeneous_{group}", 45, _signal, "%"))


@judge("BECN-19", "BECN-20", "BECN-21", needs=_ALL, readings=_READINGS)
def queue_alone(lab, claim):
    """Mean queue over time at 45 flows, in bytes."""
    name = f"homogeneous_{_GROUPS[claim.algorithms[0]]}"
    queue = _link_at(lab, name, "queue_bytes_mean", 45)
    found = near(claim.value, queue, unit="B", what=f"mean queue of {claim.algorithms[0]}")
    return _with(found, _fluid(lab, name, 45))


@judge("BECN-22", needs=_ALL, readings=_OPEN)
def queue_order(lab, claim):
    """Mean queues at 45 flows, both steps of the order."""
    tcp, ecn, becn = (_link_at(lab, name, "queue_bytes_mean", 45) for name in _ALL)
    return all_of(
        ordered(tcp, becn, what="queue, plain TCP below BECN", unit="B"),
        ordered(becn, ecn, what="queue, BECN below ECN", unit="B"),
    )


@judge("BECN-23", needs=("homogeneous_tcp",))
def utilization_range(lab, claim):
    """Utilization at every number of flows within the printed range, give or take 1 %."""
    runs = lab.packets("homogeneous_tcp")
    busy = 100 * runs.values(f"{_LINK}.utilization").mean(axis=1)
    low, high = claim.value
    inside = bool((busy >= low - 1).all() and (busy <= high + 1).all())
    rest = 100 * lab.rests("homogeneous_tcp").values(f"{_LINK}.utilization").min()
    why = (
        f"{busy.min():.4g} to {busy.max():.4g} % over 10 to 45 flows against {low} to {high} %; "
        f"{rest:.4g} % at least in the fluid model at rest"
    )
    return shown(inside, why, engine="packets+fluid",
                 otherwise="not_reproduced", value=[busy.min(), busy.max()], unit="%")  # fmt: skip


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
        parts.append(ordered(becn, ecn, what=f"{metric}, BECN below ECN", unit="B"))
    return _with(all_of(*parts), *(_fluid(lab, name, 15) for name in _BOTH))


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


@judge("BECN-31", "BECN-44", needs=(*_WEB, *_WEB_250), readings=_OPEN)
def web_queue(lab, claim):
    """Mean queue beside 15 flows, at 250 ms beside 25; how far it varies is told beside."""
    names, x = (_WEB, 15) if claim.id == "BECN-31" else (_WEB_250, 25)
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
    """Loss of web packets beside 35 flows."""
    group = _GROUPS[claim.algorithms[0]]
    lost = 100 * lab.packets(f"web_{group}").at(35, "flows.web.loss_fraction")
    what = f"web loss of {claim.algorithms[0]} beside 35 flows"
    return near(claim.value, lost, unit="%", what=what)


@judge("BECN-35", "BECN-46", needs=(*_WEB, *_WEB_250), readings=_READINGS)
def web_delays(lab, claim):
    """Reduction of the mean object delay, seed by seed: beside 10 flows, at 250 ms beside 25."""
    names, x = (_WEB, 10) if claim.id == "BECN-35" else (_WEB_250, 25)
    ecn, becn = (lab.packets(name).at(x, "flows.web.transfer_mean") for name in names)
    what = f"reduction of the object delay beside {x} flows"
    return near(claim.value, _lower(becn, ecn), unit="%", neutral=0.0, what=what)


# 250 ms


@judge("BECN-36", "BECN-37", needs=(*_BOTH_250, "queue_ecn_250ms", "queue_becn_250ms"),
       readings=_OPEN)  # fmt: skip
def below_max_th(lab, claim):
    """Loss at 45 flows and 250 ms, within 0.01 % where none is claimed; and whether the largest
    queue of each run is below max_th, or for part of the verdict RED's average of it.
    """
    group = _GROUPS[claim.algorithms[0]]
    name = f"homogeneous_{group}_250ms"
    lost = 100 * _flows_at(lab, name, "loss_fraction", 45)
    longest = _link_at(lab, name, "queue_max", 45)
    sampled = lab.packets(f"queue_{group}_250ms")
    time, average = sampled.series(0, "link_average", "bottleneck")
    largest = float(average[time >= sampled.experiment.warmup].max())
    over, kept = bool((longest >= _MAX_TH).all()), largest < _MAX_TH
    right = not (longest >= _MAX_TH).any() if group == "becn" else over
    half = "ordering_only" if group == "becn" and kept else "not_reproduced"
    why = (
        f"largest queue of a run {longest.min():.0f} to {longest.max():.0f} packets, largest "
        f"average {largest:.3g} (first seed), where max_th is {_MAX_TH:.0f}"
    )
    return all_of(
        near(claim.value, lost, unit="%", absolute=0.01, what=f"loss of {claim.algorithms[0]}"),
        shown(right, why, engine="packets", otherwise=half, value=float(longest.mean()),
              unit="packet"),
    )  # fmt: skip


@judge("BECN-38", "BECN-41", needs=_ALL_250, readings=_OPEN)
def utilization_250(lab, claim):
    """Utilization at 45 flows and 250 ms."""
    more, less = (_GROUPS[label] for label in claim.algorithms)
    low, high = (
        100 * _link_at(lab, f"homogeneous_{group}_250ms", "utilization", 45)
        for group in (less, more)
    )
    what = f"utilization, {claim.algorithms[1]} below {claim.algorithms[0]}"
    return ordered(low, high, what=what, unit="%")


@judge("BECN-39", "BECN-43", needs=_ALL_250, readings=_READINGS)
def gain_250(lab, claim):
    """Gain in goodput at 45 flows and 250 ms, seed by seed."""
    own, ecn = (
        _flows_at(lab, f"homogeneous_{_GROUPS[label]}_250ms", "goodput", 45)
        for label in claim.algorithms
    )
    what = f"gain of {claim.algorithms[0]} over ECN at 45 flows"
    return near(claim.value, 100 * (own / ecn - 1), unit="%", neutral=0.0, what=what)


@judge("BECN-40", needs=_ALL_250, readings=_OPEN)
def newreno_queue(lab, claim):
    """Mean and largest queue at 45 flows and 250 ms; the largest stands for the instantaneous."""
    parts = []
    for metric in ("queue_bytes_mean", "queue_bytes_max"):
        tcp, ecn = (_link_at(lab, name, metric, 45) for name in _ALL_250[:2])
        parts.append(ordered(tcp, ecn, what=f"{metric}, plain TCP below ECN", unit="B"))
    return all_of(*parts)


@judge("BECN-42", needs=_ALL_250, readings=_READINGS)
def newreno_loss(lab, claim):
    """Loss of plain TCP at 45 flows and 250 ms."""
    lost = 100 * _flows_at(lab, "homogeneous_tcp_250ms", "loss_fraction", 45)
    found = near(claim.value, lost, unit="%", what="loss of plain TCP at 45 flows")
    return _with(found, _fluid(lab, "homogeneous_tcp_250ms", 45, _signal, "%"))


@judge("BECN-45", needs=_WEB_250, readings=_READINGS)
def web_loss_250(lab, claim):
    """Reduction of the loss of web packets beside 25 flows at 250 ms, seed by seed."""
    ecn, becn = (lab.packets(name).at(25, "flows.web.loss_fraction") for name in _WEB_250)
    what = "reduction of the web loss beside 25 flows"
    return near(claim.value, _lower(becn, ecn), unit="%", neutral=0.0, what=what)


# Quenches


@judge("BECN-47", "BECN-48", needs=_QUENCHED, readings=_READINGS)
def quench_share(lab, claim):
    """Quenches among quenches and ACKs at 45 flows, those that arrive at the senders."""
    name = "homogeneous_becn" if claim.id == "BECN-47" else "homogeneous_becn_250ms"
    share = 100 * lab.packets(name).at(45, "flows.becn.quench_fraction")
    rest = _fluid(lab, name, 45, lambda r: 100 * r["links"]["bottleneck"]["quench_ratio"], "%")
    return _with(near(claim.value, share, unit="%", what="quenches at 45 flows"), rest)


@judge("BECN-49")
def quench_bytes(lab, claim):
    """The size by the headers in a quench, and when its share of the bytes is the smaller."""
    ip, icmp, told_of = 20, 8, 8
    size = ip + icmp + ip + told_of
    f, mean = sp.symbols("f s", positive=True)
    share = size * f / (size * f + mean * (1 - f))
    at = sp.solve(sp.Eq(share, f), mean)
    numbers = [float(share.subs({f: 0.054, mean: other})) for other in (40, 576)]
    why = (
        f"IP and ICMP header with the IP header and 8 bytes of what was dropped: {size} B; the "
        f"share of bytes is below that of packets if the others have more than {at[0]} B in the "
        f"mean: 5.4 % of the packets are {100 * numbers[0]:.2g} % of the bytes beside ACKs of 40 B "
        f"alone, as in the paper's runs, and {100 * numbers[1]:.2g} % beside packets of 576 B"
    )
    return shown(size == claim.value and at == [size], why, engine="analytic", value=size)


@judge("BECN-50", needs=_QUENCHED)
def larger_product(lab, claim):
    """Utilization, mean queue and marks at 250 ms below those at 40 ms, over all points."""
    near_by, far = (lab.packets(name) for name in _QUENCHED)
    return all_of(*(
        ordered(far.values(f"{_LINK}.{metric}"), near_by.values(f"{_LINK}.{metric}"), x=far.x,
                what=f"{metric}, 250 ms below 40 ms", unit=unit)
        for metric, unit in (("utilization", ""), ("queue_mean", "packet"), ("mark_fraction", ""))
    ))  # fmt: skip


@judge("BECN-51", needs=(*_BOTH, *_WEB, *_BOTH_250, *_WEB_250))
def conclusion(lab, claim):
    """Goodput and object delay alike at 40 ms; better at 250 ms."""
    ecn, becn = (_flows(lab, name, "goodput") for name in _BOTH)
    slow, fast = (lab.packets(name).values("flows.web.transfer_mean") for name in _WEB)
    return all_of(
        alike(becn, ecn, x=lab.experiment(_BOTH[0]).x, what="goodput at 40 ms beside ECN"),
        alike(fast, slow, x=lab.experiment(_WEB[0]).x, what="object delay at 40 ms beside ECN"),
        *_better_at_250(lab),
    )
