"""Figures of the RWM paper (Govindaswamy et al., 2012): numerals are its sections."""

import numpy as np

import fluidcc as fc

from ..validation.lab.measures import first_link, link_efficiency
from .drawing.figure import FLUID, Curve, Panel, Printed, figure, measured, modelled

FAMILIES = {"RED": "red", "ARED": "ared", "BLUE": "blue"}
LABELS = tuple(f"{family}{kind}" for family in FAMILIES for kind in ("", "-ECN", "-RWM"))
WINDOWS = (5, 8, 20)  # of the receivers, other than 100 packets
RESTING = ("regular", "discontinuity")  # the others have no single equilibrium


def _trio(family):
    """Experiments by label: drops, ECN, RWM."""
    name = FAMILIES[family]
    return {family: name, f"{family}-ECN": f"{name}_ecn", f"{family}-RWM": f"{name}_rwm"}


def _all(kind, *families):
    """Names of experiments, for `needs`."""
    return tuple(f"{name}{kind}" for family in families for name in _trio(family).values())


def _by_window(family):
    """Names of the experiments at four sources, also under other windows of the receivers."""
    own = _all("_queue", family)
    return (*own, *(f"{name}@window{size}" for name in own for size in WINDOWS))


RWM = {f"{family}-RWM": f"{name}_rwm" for family, name in FAMILIES.items()}


# metrics of packet runs: samples (points, seeds)
def _delay(runs):
    return 1e3 * runs.values("flows.tcp.delay_mean")


def _jitter(runs):
    return 1e3 * runs.values("flows.tcp.delay_jitter")


def _throughput(runs):
    return 100 * link_efficiency(runs)


def _drops(runs):
    return sum(runs.values(f"links.{k}.drops") for k in ("ingress", "second", "third", "egress"))


def _queue(runs):
    return runs.values("links.ingress.queue_mean")


# the same at the equilibrium of the fluid model
def _rest_delay(net, rest, until):
    flows = net.flows[0]
    fixed = float(flows.access_delay) + sum(float(link.delay) for link in net.links)
    sending = 1 / float(flows.access_capacity) + sum(1 / float(k.capacity) for k in net.links)
    waiting = rest["links"]["ingress"]["queue"] / float(net.links[0].capacity)
    return 1e3 * (fixed + sending + waiting)


def _rest_throughput(net, rest, until):
    return 100 * rest["links"]["ingress"]["utilization"]


def _rest_drops(net, rest, until):
    offered = float(np.sum(net.flows[0].n)) * rest["flows"]["tcp"]["rate"][0]
    return until * (offered - float(net.links[0].capacity))


def _rests(lab, name, of):
    """A quantity at equilibrium over the sources; NaN if the model has no single answer."""
    experiment, found = lab.experiment(name), []
    for k in range(len(experiment.x)):
        net = experiment.net(k)
        rest = lab.ask(fc.equilibrium, first_link(net))
        single = rest["status"] in RESTING
        found.append(of(net, rest, experiment.until) if single else np.nan)
    return np.array(found)


# panels
def _over_sources(lab, chosen, ylabel, of, rest=None, **how):
    """A metric over the number of sources, by label of an experiment."""
    curves = []
    for label, name in chosen.items():
        runs = lab.packets(name)
        curves.append(measured(label, runs.x, of(runs)))
        if rest is not None and "blue" not in name:
            at_rest = modelled(label, runs.x, _rests(lab, name, rest))
            curves += [at_rest] if np.isfinite(at_rest.y).any() else []
    return Panel("sources", ylabel, curves, **how)


def _change(lab, family, what, of, printed, *, sign=-1):
    """Change by RWM against both rivals, in percent, with the printed numbers."""
    *rivals, (_, best) = _trio(family).items()
    ours, curves = lab.packets(best), []
    for label, name in rivals:
        change = 100 * sign * (of(ours) / of(lab.packets(name)) - 1)
        curves.append(measured(label, ours.x, change))
    return Panel("sources", f"{what} by RWM (%)", curves, printed, title="RWM against each")


def _recent(times, samples, span=5.0):
    """Means over the last `span` seconds of samples at even distances."""
    width = max(1, round(span / (times[1] - times[0])))
    return times[width - 1 :], np.convolve(samples, np.ones(width) / width, "valid")


def _queues(lab, family, printed, numbers=()):
    """Average queue over time at four sources, and the reduction of its mean by RWM."""
    packets, fluid = [], []
    smooth = _recent if family == "BLUE" else lambda *samples: samples  # BLUE keeps no average
    for label, name in _trio(family).items():
        runs = lab.packets(f"{name}_queue")
        seen = smooth(*runs.series(0, "link_average", "ingress"))
        packets.append(Curve(label, *seen, dense=True, note="first seed"))
        experiment = runs.experiment
        course = lab.ask(fc.simulate, first_link(experiment.net(0)), until=experiment.until)
        average = np.array(course["links"]["ingress"]["average"], float)
        fluid_seen = smooth(np.array(course["time"]), average)
        fluid.append(Curve(label, *fluid_seen, engine=FLUID, dense=True))
    return [
        Panel("time (s)", "average queue (packets)", packets + fluid, numbers),
        Panel("receivers' window (packets)", "reduction of the mean queue (%)",
              _reductions(lab, family), printed, title="RWM against each"),
    ]  # fmt: skip


def _reductions(lab, family):
    """How much shorter the mean queue is by RWM, by the receivers' window, which is not stated:
    without validation of congestion windows, and last as on the left.
    """
    base = lab.under(None)
    labs = {str(size): lab.under(f"window{size}") for size in WINDOWS}
    labs |= {"100": base, "100, as left": lab}
    *rivals, (_, best) = _trio(family).items()
    curves = []
    for label, name in rivals:
        pairs = [
            [_queue(own.packets(f"{n}_queue"))[0] for n in (best, name)] for own in labs.values()
        ]
        change = np.array([100 * (1 - less / more) for less, more in pairs])
        curves.append(measured(label, list(labs), change))
    return curves


def _labelled(text, y, *labels, x=None):
    return [Printed(text, y, x, label) for label in labels]


@figure("6", "RED: average queue at the ingress", needs=_by_window("RED"))
def red_queues(lab):
    """RED's average over time at receivers' windows of 100 packets, and means over 150 s by that
    window; the fluid model is the ingress alone.
    """
    near = _labelled("RED-RWM close to 5 (4.1)", 5, "RED-RWM")
    return _queues(lab, "RED", [Printed("about 25 % (4.1)", 25)], near)


@figure("7", "RED: one-way packet delay", needs=_all("", "RED"))
def red_delay(lab):
    """Mean one-way delay; the equilibrium of the fluid, with propagation and transmission times."""
    return [
        _over_sources(lab, _trio("RED"), "delay (ms)", _delay, _rest_delay),
        _change(lab, "RED", "reduction", _delay, [Printed("15 to 20 % (4.1)", (15, 20))]),
    ]


@figure("8", "RED: delay jitter", needs=_all("", "RED"))
def red_jitter(lab):
    """Standard deviation of the one-way delay; a fluid model at equilibrium has none."""
    return [
        _over_sources(lab, _trio("RED"), "jitter (ms)", _jitter),
        _change(lab, "RED", "reduction", _jitter, [Printed("about 35 % (4.1)", 35)]),
    ]


@figure("9", "RED: throughput", needs=_all("", "RED"))
def red_throughput(lab):
    """Goodput of all sources over the slowest link's rate; the fluid model fills it."""
    numbers = _labelled("RED, RED-ECN saturated: 93 % (4.1)", 93, "")
    how = {"rest": _rest_throughput, "printed": numbers}
    return [_over_sources(lab, _trio("RED"), "throughput (%)", _throughput, **how)]


@figure("10", "RED: total packet drops", needs=_all("", "RED"))
def red_drops(lab):
    """Drops at all routers in 1000 s; those at the fluid equilibrium are its excess load."""
    return [_over_sources(lab, _trio("RED"), "drops (packets)", _drops, _rest_drops)]


@figure("11", "ARED: average queue at the ingress", needs=_by_window("ARED"))
def ared_queues(lab):
    """Adaptive RED's average over time at receivers' windows of 100 packets, and means over 150 s
    by that window; the fluid model is the ingress alone.
    """
    near = _labelled("ARED-RWM at 5 (4.2)", 5, "ARED-RWM")
    return _queues(lab, "ARED", [Printed("about 50 % (4.2)", 50)], near)


@figure("12", "ARED: one-way packet delay", needs=_all("", "ARED"))
def ared_delay(lab):
    """Mean one-way delay; the equilibrium of the fluid, with propagation and transmission times."""
    return [
        _over_sources(lab, _trio("ARED"), "delay (ms)", _delay, _rest_delay),
        _change(lab, "ARED", "reduction", _delay, [Printed("7 to 10 % (4.2)", (7, 10))]),
    ]


@figure("13", "ARED: delay jitter", needs=_all("", "ARED"))
def ared_jitter(lab):
    """Standard deviation of the one-way delay; a reduction by 133 % is more than all of it."""
    return [
        _over_sources(lab, _trio("ARED"), "jitter (ms)", _jitter),
        _change(lab, "ARED", "reduction", _jitter, [Printed("about 133 % (4.2)", 133)]),
    ]


@figure("14", "ARED: throughput", needs=_all("", "ARED"))
def ared_throughput(lab):
    """Goodput of all sources over the slowest link's rate; the fluid model fills it."""
    return [_over_sources(lab, _trio("ARED"), "throughput (%)", _throughput, _rest_throughput)]


@figure("15", "ARED: total packet drops", needs=_all("", "ARED"))
def ared_drops(lab):
    """Drops at all routers in 1000 s; those at the fluid equilibrium are its excess load."""
    return [_over_sources(lab, _trio("ARED"), "drops (packets)", _drops, _rest_drops)]


@figure("16", "BLUE: average queue at the ingress", needs=_by_window("BLUE"))
def blue_queues(lab):
    """Mean over the last 5 s, as BLUE keeps none; in the fluid model, of the ingress alone, BLUE
    is at equilibrium for any queue between 0 and 15 packets.
    """
    return _queues(lab, "BLUE", [Printed("30 to 50 % (4.3)", (30, 50))])


@figure("17", "BLUE: one-way packet delay", needs=_all("", "BLUE"))
def blue_delay(lab):
    """Mean one-way delay; the fluid model has no single equilibrium under BLUE."""
    printed = [
        *_labelled("2 to 5 % (4.3)", (2, 5), "BLUE"),
        *_labelled("2 to 10 % (4.3)", (2, 10), "BLUE-ECN"),
    ]
    return [
        _over_sources(lab, _trio("BLUE"), "delay (ms)", _delay),
        _change(lab, "BLUE", "reduction", _delay, printed),
    ]


@figure("18", "BLUE: delay jitter", needs=_all("", "BLUE"))
def blue_jitter(lab):
    """Standard deviation of the one-way delay."""
    printed = [
        *_labelled("9 to 29 % (4.3)", (9, 29), "BLUE"),
        *_labelled("28 to 70 % (4.3)", (28, 70), "BLUE-ECN"),
    ]
    return [
        _over_sources(lab, _trio("BLUE"), "jitter (ms)", _jitter),
        _change(lab, "BLUE", "reduction", _jitter, printed),
    ]


@figure("19", "BLUE: throughput", needs=_all("", "BLUE"))
def blue_throughput(lab):
    """Goodput of all sources over the rate of the slowest link."""
    printed = [Printed("1 to 7 % (4.3)", (1, 7))]
    return [
        _over_sources(lab, _trio("BLUE"), "throughput (%)", _throughput),
        _change(lab, "BLUE", "gain", _throughput, printed, sign=1),
    ]


@figure("20", "BLUE: total packet drops", needs=_all("", "BLUE"))
def blue_drops(lab):
    """Packets dropped at all routers in 1000 s."""
    return [_over_sources(lab, _trio("BLUE"), "drops (packets)", _drops, yscale="log")]


@figure("21", "Three queues with RWM: one-way packet delay", needs=tuple(RWM.values()))
def rwm_delay(lab):
    """Mean one-way delay; the fluid model at equilibrium, of which BLUE has no single one."""
    return [_over_sources(lab, RWM, "delay (ms)", _delay, _rest_delay)]


@figure("22", "Three queues with RWM: delay jitter", needs=tuple(RWM.values()))
def rwm_jitter(lab):
    """Standard deviation of the one-way delay; a fluid model at equilibrium has none."""
    return [_over_sources(lab, RWM, "jitter (ms)", _jitter)]


@figure("23", "Three queues with RWM: throughput", needs=tuple(RWM.values()))
def rwm_throughput(lab):
    """Goodput of all sources over the slowest link's rate; the fluid model fills it."""
    return [_over_sources(lab, RWM, "throughput (%)", _throughput, _rest_throughput)]


@figure("24", "Three queues with RWM: total packet drops", needs=tuple(RWM.values()))
def rwm_drops(lab):
    """Drops at all routers in 1000 s; those at the fluid equilibrium are its excess load."""
    return [_over_sources(lab, RWM, "drops (packets)", _drops, _rest_drops)]
