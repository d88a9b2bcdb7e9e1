"""Figures of the BECN paper (Akujobi et al., 2002): numerals are its sections.

Our copy of the text has lost most captions: the contents of figures 2 to 23 follow from the
sections that name them. The fluid model is drawn if it has a smooth equilibrium: at 40 ms that
equilibrium, which is unstable for plain TCP and for the fewest flows; at 250 ms, where it is always
unstable, the mean of its trajectory.
"""

import numpy as np

from .drawing.figure import FLUID, Curve, Panel, Printed, figure, measured, modelled

_LABELS = {"tcp": "plain TCP", "ecn": "ECN", "becn": "BECN"}
LABELS = tuple(_LABELS.values())
_LINK = "links.bottleneck"
_LONG = 120.0  # of a trajectory [s]; its second half counts
_SIZE = 1.0  # of a packet [kB]
_BITS = 8000.0  # of a packet
_MAX_TH = 45.0  # [kB]
_RATE = 1250.0  # of the bottleneck [packet/s]
_HOMOGENEOUS = tuple(f"homogeneous_{group}" for group in _LABELS)
_LARGE = tuple(f"{name}_250ms" for name in _HOMOGENEOUS)
_WEB = ("web_ecn", "web_becn")
_WEB_LARGE = ("web_ecn_250ms", "web_becn_250ms")


def _group(name):
    """The kind of flows of an experiment: tcp, ecn or becn."""
    return name.removesuffix("_250ms").rpartition("_")[2]


def _resting(rests, values):
    """Values at points with a smooth equilibrium of the fluid model, else NaN."""
    return np.where([status == "regular" for status in rests.status], values, np.nan)


def _valid(lab, name):
    """Whether the equilibrium of the fluid model has no validity warning, at each point."""
    return np.array([reasons == [] for reasons in lab.reasons(name)])


def _late(time, values):
    """The second half of a trajectory: times and values."""
    late = time >= _LONG / 2
    return time[late], values[late]


def _cycle(lab, name, path, weight=None):
    """Means over time of the fluid trajectories at the points of an experiment, weighted by another
    quantity if one is given.
    """
    courses = lab.courses(name, _LONG)
    means = []
    for k in range(len(courses.points)):
        if courses.points[k] is None:
            means.append(np.nan)
            continue
        time, values = _late(*_course(courses, k, path))
        share = np.ones_like(time) if weight is None else _late(*_course(courses, k, weight))[1]
        means.append(np.trapezoid(values * share, time) / np.trapezoid(share, time))
    return np.array(means)


def _course(courses, k, path):
    """Times and one quantity at point k; of flows, that of their only round trip."""
    time, values = courses.series(k, path)
    return time, values[:, 0] if values.ndim > 1 else values


def _pair(lab, name, packets, rest, cycle, scale=1.0):
    """A quantity by packets and, over the same points, by the fluid model.

    `packets` is the path of the metric; `rest` and `cycle` are functions of the equilibria, and of
    the name of the experiment, that give it in the fluid model.
    """
    label, runs = _LABELS[_group(name)], lab.packets(name)
    own = measured(label, runs.x, scale * runs.values(packets))
    if name.endswith("_250ms"):
        values = cycle(name)
    else:
        rests = lab.rests(name)
        values = _resting(rests, rest(rests))
    return [own, modelled(label, runs.x, scale * values)]


def _goodputs(lab, names):
    """Average goodput of the flows."""
    curves = []
    for name in names:
        group = _group(name)
        rate, lost = f"flows.{group}.rate", f"flows.{group}.loss_fraction"

        def rest(rests, group=group, rate=rate):
            loss = rests.values(f"{_LINK}.mark_probability") if group == "tcp" else 0.0
            return _BITS * rests.values(rate) * (1 - loss)

        def cycle(name, rate=rate, lost=lost):
            return _BITS * _cycle(lab, name, rate) * (1 - _cycle(lab, name, lost, rate))

        curves += _pair(lab, name, f"flows.{group}.goodput", rest, cycle, 1e-6)
    return [Panel("flows", "average goodput (Mbit/s)", curves)]


def _over_ecn(lab, names, printed=()):
    """Gain in goodput over ECN, seed by seed."""
    tcp, ecn, becn = (lab.packets(n).values(f"flows.{_group(n)}.goodput") for n in names)
    x, gains = lab.packets(names[0]).x, ((_LABELS["tcp"], tcp), (_LABELS["becn"], becn))
    curves = [measured(label, x, 100 * (own / ecn - 1)) for label, own in gains]
    return Panel("flows", "goodput gain over ECN (%)", curves, printed)


def _losses(lab, names, printed=()):
    """Share of the packets that were lost: of plain TCP, and of the two that react to marks."""
    panels = []
    for title, some in (("plain TCP", names[:1]), ("ECN and BECN", names[1:])):
        curves = []
        for name in some:
            group = _group(name)

            def rest(rests, group=group):
                signal = rests.values(f"{_LINK}.mark_probability")
                return signal if group == "tcp" else np.zeros_like(signal)

            def cycle(name):
                return _cycle(lab, name, f"{_LINK}.drop_fraction", f"{_LINK}.offered")

            curves += _pair(lab, name, f"flows.{group}.loss_fraction", rest, cycle, 100)
        own = [number for number in printed if number.label in title]
        panels.append(Panel("flows", "packets lost (%)", curves, own, title=title))
    return panels


def _utilizations(lab, names, printed=()):
    """Share of the time in which the bottleneck sends."""
    path, curves = f"{_LINK}.utilization", []
    for name in names:
        curves += _pair(lab, name, path, lambda rests: rests.values(path),
                        lambda name: _cycle(lab, name, path), 100)  # fmt: skip
    return [Panel("flows", "utilization (%)", curves, printed)]


def _queue(lab, name):
    """The queue of one run, over all of it and over 20 s with the fluid trajectory."""
    label, runs, courses = _LABELS[_group(name)], lab.packets(name), lab.courses(name, _LONG)
    time, queue = runs.series(0, "link_queue_bytes", "bottleneck")
    average = runs.series(0, "link_average", "bottleneck")[1]
    flow, fluid = courses.series(0, f"{_LINK}.queue")
    begin = _LONG - 20
    near, there = (time >= begin) & (time <= _LONG), flow >= begin
    seen = {"dense": True, "note": "queue, first seed"}
    printed = [Printed("max_th 45 kB (V.B)", _MAX_TH)]
    return [
        Panel("time (s)", "queue (kB)", [
            Curve(label, time, queue / 1e3, **seen),
            Curve("RED's average", time, average * _SIZE, dense=True),
        ], printed, ylim=(0, 95)),
        Panel("time (s)", "queue (kB)", [
            Curve(label, time[near], queue[near] / 1e3, **seen),
            Curve("RED's average", time[near], average[near] * _SIZE, dense=True),
            Curve("fluid trajectory", flow[there], fluid[there] * _SIZE, engine=FLUID, dense=True),
        ], printed, ylim=(0, 95)),
    ]  # fmt: skip


def _web(lab, names, metric, ylabel, scale=1.0, printed=()):
    """A metric of the web transfers."""
    curves = []
    for name in names:
        runs = lab.packets(name)
        curves.append(measured(_LABELS[_group(name)], runs.x, scale * runs.values(metric)))
    return [Panel("long-lived flows", ylabel, curves, printed)]


def _reduction(lab, names, metric, text, number, x):
    """Reduction of a web metric by BECN against ECN, with the printed number."""
    ecn, becn = (lab.packets(name) for name in names)
    shares = 100 * (1 - becn.values(metric) / ecn.values(metric))
    curves = [measured("BECN below ECN", ecn.x, shares)]
    return Panel("long-lived flows", "reduction by BECN (%)", curves, [Printed(text, number, x)])


@figure("2", "Goodput gain over plain TCP", needs=("competing_becn", "competing_ecn"))
def goodput_gain(lab):
    """Gain in goodput of half of the flows over the other half, plain TCP, and that of the fluid
    model at equilibrium within the axis; with more flows it is far beyond, as every window of
    plain TCP with a loss risks a timeout of 1 s there (VI.A).
    """
    curves = []
    for group in ("ecn", "becn"):
        name, label = f"competing_{group}", _LABELS[group]
        runs, rests = lab.packets(name), lab.rests(name)
        own, plain = (runs.values(f"flows.{g}.goodput") for g in (group, "tcp"))
        sent, rest = (rests.values(f"flows.{g}.rate") for g in (group, "tcp"))
        through = rest * (1 - rests.values(f"{_LINK}.mark_probability"))
        curves.append(measured(label, runs.x, 100 * (own / plain - 1)))
        gain = _resting(rests, 100 * (sent / through - 1))
        curves.append(modelled(label, runs.x, gain, valid=_valid(lab, name)))
    printed = [
        Printed("up to 43 % (VI.A)", 43, 40, "BECN"),
        Printed("up to 31.5 % (VI.A)", 31.5, 40, "ECN"),
    ]
    return [Panel("flows", "goodput gain (%)", curves, printed, ylim=(-10, 80))]


@figure("3", "Loss beside plain TCP", needs=("competing_becn", "competing_ecn"))
def competing_loss(lab):
    """Share of the packets of each half that the bottleneck dropped; the fluid model at
    equilibrium, for plain TCP alone, as it drops no packet of the others (VI.A).
    """
    panels = []
    for group in ("becn", "ecn"):
        name, curves = f"competing_{group}", []
        runs, rests = lab.packets(name), lab.rests(name)
        for each in ("tcp", group):
            lost = 100 * runs.values(f"flows.{each}.loss_fraction")
            curves.append(measured(_LABELS[each], runs.x, lost))
        at_rest = _resting(rests, 100 * rests.values(f"{_LINK}.mark_probability"))
        curves.append(modelled(_LABELS["tcp"], runs.x, at_rest))
        printed = {
            "becn": [Printed("5.21 % (VI.A)", 5.21, 40, "plain TCP"),
                     Printed("0.07 % (VI.A)", 0.07, 40, "BECN")],
            "ecn": [Printed("0.18 % (VI.A)", 0.18, 40, "ECN")],
        }  # fmt: skip
        title = f"{_LABELS[group]} beside plain TCP"
        panels.append(Panel("flows", "packets lost (%)", curves, printed[group], title=title))
    return panels


@figure("4", "Average goodput, 40 ms", needs=_HOMOGENEOUS)
def goodput(lab):
    """Average goodput of flows of one kind, with the equilibrium of the fluid model if it is
    smooth, which ends beyond 25 flows for BECN and ECN; and gains over ECN (VI.B).
    """
    return [*_goodputs(lab, _HOMOGENEOUS), _over_ecn(lab, _HOMOGENEOUS)]


@figure("5", "Loss, 40 ms", needs=_HOMOGENEOUS)
def loss(lab):
    """Share of the packets lost; the fluid at equilibrium drops none of BECN and ECN until its mark
    probability passes p_max, and has no smooth equilibrium beyond (VI.B).
    """
    printed = [
        Printed("4.6 % (VI.B)", 4.6, 45, "plain TCP"),
        Printed("1.19 % (VI.B)", 1.19, 45, "ECN"),
        Printed("0.99 % (VI.B)", 0.99, 45, "BECN"),
    ]
    return _losses(lab, _HOMOGENEOUS, printed)


@figure("6", "Utilization, 40 ms", needs=_HOMOGENEOUS)
def utilization(lab):
    """Share of the time in which the bottleneck sends; 1 at equilibrium of the fluid (VI.B)."""
    printed = [Printed("97.44 to 99.7 % (VI.B)", (97.44, 99.7), None, "plain TCP")]
    return _utilizations(lab, _HOMOGENEOUS, printed)


@figure("7", "Queue, 15 ECN flows", needs=("queue_ecn",))
def queue_ecn(lab):
    """Queue at the bottleneck and RED's average of it, with the fluid trajectory (VI.B)."""
    return _queue(lab, "queue_ecn")


@figure("8", "Queue, 15 BECN flows", needs=("queue_becn",))
def queue_becn(lab):
    """Queue at the bottleneck and RED's average of it, with the fluid trajectory (VI.B)."""
    return _queue(lab, "queue_becn")


@figure("9", "Web object transfer delay, 40 ms", needs=_WEB)
def web_delay(lab):
    """Mean time from the request of an object to the ACK of its last packet, and the reduction seed
    by seed; no fluid curve, as fluid sources do not begin each object with a small window (VI.C).
    """
    metric = "flows.web.fct_mean"
    return [
        *_web(lab, _WEB, metric, "transfer delay (s)"),
        _reduction(lab, _WEB, metric, "up to 8.1 % (VI.C)", 8.1, 10),
    ]


@figure("10", "Web packet loss, 40 ms", needs=_WEB)
def web_loss(lab):
    """Share of the packets of web objects that were lost; no fluid curve, as it leaves out the
    Pareto bursts that lose them (VI.C).
    """
    printed = [
        Printed("5.09 % (VI.C)", 5.09, 35, "ECN"),
        Printed("3.76 % (VI.C)", 3.76, 35, "BECN"),
    ]
    return _web(lab, _WEB, "flows.web.loss_fraction", "web packets lost (%)", 100, printed)


@figure("11", "Queue, ECN web transfers and 15 ECN flows", needs=("queue_web_ecn",))
def queue_web_ecn(lab):
    """Queue at the bottleneck and RED's average of it, with the fluid trajectory, which
    slides along max_th: it needs more marks than RED gives below (VI.C).
    """
    return _queue(lab, "queue_web_ecn")


@figure("12", "Queue, BECN web transfers and 15 BECN flows", needs=("queue_web_becn",))
def queue_web_becn(lab):
    """Queue at the bottleneck and RED's average of it, with the fluid trajectory, which
    slides along max_th: it needs more marks than RED gives below (VI.C).
    """
    return _queue(lab, "queue_web_becn")


@figure("13", "Average goodput, 250 ms", needs=_LARGE)
def goodput_large(lab):
    """Average goodput of flows of one kind, with the mean of the fluid trajectory over its limit
    cycle; the paper prints gains over ECN alone: 20 % of BECN, 6.6 % of plain TCP (VI.D).
    """
    printed = [
        Printed("20 % (VI.D)", 20, 45, "BECN"),
        Printed("6.6 % (VI.D)", 6.6, 45, "plain TCP"),
    ]
    return [*_goodputs(lab, _LARGE), _over_ecn(lab, _LARGE, printed)]


@figure("14", "Loss, 250 ms", needs=_LARGE)
def loss_large(lab):
    """Share of the packets lost, with that of the fluid trajectory over its limit cycle (VI.D)."""
    printed = [
        Printed("0.86 % (VI.D)", 0.86, 45, "plain TCP"),
        Printed("0.77 % (VI.D)", 0.77, 45, "ECN"),
        Printed("0 % (VI.D)", 0.0, 45, "BECN"),
    ]
    return _losses(lab, _LARGE, printed)


@figure("15", "Utilization, 250 ms", needs=_LARGE)
def utilization_large(lab):
    """Share of the time in which the bottleneck sends, with the mean of the fluid trajectory over
    its limit cycle (VI.D).
    """
    return _utilizations(lab, _LARGE)


@figure("16", "Queue, 45 plain TCP flows, 250 ms", needs=("queue_tcp_250ms",))
def queue_tcp_large(lab):
    """Queue at the bottleneck and RED's average of it, with the fluid trajectory (VI.D)."""
    return _queue(lab, "queue_tcp_250ms")


@figure("17", "Queue, 45 ECN flows, 250 ms", needs=("queue_ecn_250ms",))
def queue_ecn_large(lab):
    """Queue at the bottleneck and RED's average of it, with the fluid trajectory (VI.D)."""
    return _queue(lab, "queue_ecn_250ms")


@figure("18", "Queue, 45 BECN flows, 250 ms", needs=("queue_becn_250ms",))
def queue_becn_large(lab):
    """Queue at the bottleneck and RED's average of it, with the fluid trajectory (VI.D)."""
    return _queue(lab, "queue_becn_250ms")


@figure("19", "Web object transfer delay, 250 ms", needs=_WEB_LARGE)
def web_delay_large(lab):
    """Mean time from the request of an object to the ACK of its last packet, and the reduction seed
    by seed; no fluid curve, as fluid sources do not begin each object with a small window (VI.D).
    """
    metric = "flows.web.fct_mean"
    return [
        *_web(lab, _WEB_LARGE, metric, "transfer delay (s)"),
        _reduction(lab, _WEB_LARGE, metric, "6.4 % (VI.D)", 6.4, 25),
    ]


@figure("20", "Web packet loss, 250 ms", needs=_WEB_LARGE)
def web_loss_large(lab):
    """Share of the packets of web objects that were lost, and the reduction seed by seed; no fluid
    curve, as it leaves out the Pareto bursts that lose them (VI.D).
    """
    metric = "flows.web.loss_fraction"
    return [
        *_web(lab, _WEB_LARGE, metric, "web packets lost (%)", 100),
        _reduction(lab, _WEB_LARGE, metric, "88.3 % (VI.D)", 88.3, 25),
    ]


@figure("21", "Queue, ECN web transfers and 25 ECN flows, 250 ms", needs=("queue_web_ecn_250ms",))
def queue_web_ecn_large(lab):
    """Queue at the bottleneck and RED's average of it, with the fluid trajectory (VI.D)."""
    return _queue(lab, "queue_web_ecn_250ms")


@figure("22", "Queue, BECN web transfers and 25 BECN flows, 250 ms",
        needs=("queue_web_becn_250ms",))  # fmt: skip
def queue_web_becn_large(lab):
    """Queue at the bottleneck and RED's average of it, with the fluid trajectory (VI.D)."""
    return _queue(lab, "queue_web_becn_250ms")


@figure("23", "Source quenches among the packets on the way back",
        needs=("homogeneous_becn", "homogeneous_becn_250ms"))  # fmt: skip
def quenches(lab):
    """Quenches among quenches and ACKs, with the equilibrium of the fluid model at 40 ms, where it
    is smooth, and the mean of its trajectory at 250 ms (VI.E).
    """
    curves = []
    path = "flows.becn.quench_fraction"
    for delay, name in (("40 ms", "homogeneous_becn"), ("250 ms", "homogeneous_becn_250ms")):
        runs = lab.packets(name)
        if delay == "40 ms":
            rests = lab.rests(name)
            fluid = _resting(rests, rests.values(f"{_LINK}.quench_fraction"))
        else:
            quench_rate = _cycle(lab, name, f"{_LINK}.source_quench_rate")
            ack_rate = _cycle(lab, name, f"{_LINK}.utilization") * _RATE
            fluid = quench_rate / (quench_rate + ack_rate)
        curves.append(measured(delay, runs.x, 100 * runs.values(path)))
        curves.append(modelled(delay, runs.x, 100 * fluid))
    printed = [
        Printed("5.4 % (VI.E)", 5.4, 45, "40 ms"),
        Printed("0.64 % (VI.E)", 0.64, 45, "250 ms"),
    ]
    return [Panel("flows", "quenches on the way back (%)", curves, printed)]
