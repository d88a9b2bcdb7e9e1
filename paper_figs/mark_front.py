"""Figures of the mark-front paper (Durresi et al., 2001): numerals are its sections."""

import dataclasses

import numpy as np

import fluidcc as fc

from ..validation.bounds.one_connection import FRONT, TAIL, published
from ..validation.lab.measures import flow_unfairness, link_efficiency, pipe_of, unfair
from ..validation.lab.samples import Courses
from .drawing.figure import FORMULA, Curve, Panel, figure, measured, modelled

SIDES = ("tail", "front")
LABELS = tuple(f"mark-{side}" for side in SIDES)
LINK = "links.bottleneck"
TOTAL = "259 ms is the whole round trip"
THRESHOLD = "threshold (packets)"


def _needs(*names):
    """The experiments of both sides, readings after an @."""
    parts = [name.partition("@") for name in names]
    return tuple(f"{own}_{side}{at}{reading}" for own, at, reading in parts for side in SIDES)


def _until(net, times, values):
    """Integral over the times whose packets are acknowledged by the end."""
    acked = times <= times[-1] - float(np.min(net.flows[0].rtt))
    return np.trapezoid(values[acked], times[acked], axis=0)


def _largest(runs):
    return runs.values(f"{LINK}.queue_max")


def _drops(runs):
    return runs.values(f"{LINK}.drops")


def _fluid_largest(net, course):
    return course(f"{LINK}.queue")[1].max()


def _fluid_efficiency(net, course):
    times, used = course(f"{LINK}.utilization")
    return _until(net, times, used) / times[-1]


def _fluid_drops(net, course):
    times, share = course(f"{LINK}.drop_fraction")
    return np.trapezoid(share * course(f"{LINK}.offered")[1], times)


def _fluid_unfairness(net, course):
    return float(unfair(_until(net, *course("flows.reno.rate"))))


def _panel(lab, name, ylabel, value, fluid=None, title="", *, rates="ack", **more):
    """Both sides over the threshold; `value` of the runs, `fluid` of a trajectory whose senders are
    clocked by `rates`, or None.
    """
    own, at, reading = name.partition("@")
    curves = []
    for side in SIDES:
        full = f"{own}_{side}{at}{reading}"
        runs = lab.packets(full)
        curves.append(measured(f"mark-{side}", runs.x, value(runs)))
        if fluid is not None:
            curves.append(modelled(f"mark-{side}", runs.x, _modelled(lab, full, fluid, rates)))
    return Panel(THRESHOLD, ylabel, curves, title=title, **more)


def _modelled(lab, name, fluid, rates):
    """A quantity of the fluid trajectory of each point; NaN if there is none."""
    experiment = lab.experiment(name)
    net = experiment.net(0)
    courses = lab.courses(name, until=experiment.until) if rates == net.rates else Courses(
        experiment, [
            lab.ask(fc.simulate, dataclasses.replace(experiment.net(k), rates=rates),
                    until=experiment.until)
            for k in range(len(experiment.x))
        ],
    )  # fmt: skip
    return [
        np.nan if point is None else fluid(net, lambda path, k=k: courses.series(k, path))
        for k, point in enumerate(courses.points)
    ]


def _bounded(lab, name, title, fluid=None):
    """The buffer requirement, with results 1 and 2."""
    own, at, reading = name.partition("@")
    panel = _panel(lab, name, "largest queue (packets)", _largest, fluid, title)
    experiment = lab.experiment(f"{own}_tail{at}{reading}")
    at, pipe = np.array(experiment.x, float), pipe_of(experiment.net(0))
    bounds = [
        Curve(f"{formula} (4, one connection)", at, published(marks, at, pipe), engine=FORMULA)
        for marks, formula in ((TAIL, "2T + rd - 1"), (FRONT, "T + rd"))
    ]
    return Panel(panel.xlabel, panel.ylabel, [*panel.curves, *bounds], title=title)


def _efficient(lab, name, title, fluid=None, rates="ack", top=1.0):
    """Link efficiency up to `top`, with a line at T = rd, where the paper has it almost full."""
    own, at, reading = name.partition("@")
    pipe = pipe_of(lab.experiment(f"{own}_tail{at}{reading}").net(0))
    panel = _panel(lab, name, "link efficiency", link_efficiency, fluid, title, rates=rates,
                   ylim=(0, 1.05 * top))  # fmt: skip
    place = Curve("T = rd", np.array([pipe, pipe]), np.array([0.0, top]), engine=FORMULA)
    return dataclasses.replace(panel, curves=[*panel.curves, place])


@figure("3", "Buffer requirement, TS = 59 ms", needs=_needs("ten_leo"))
def buffer_leo(lab):
    """Largest queue of 10 s over the threshold, buffers endless; starts 0.3 s apart, each drawn
    within 50 ms. The fluid of ten groups that start apart is left out: it compiles for minutes.
    """
    return [_bounded(lab, "ten_leo", "")]


@figure(
    "4", "Buffer requirement of ten connections, TS = 259 ms",
    needs=_needs("ten_geo", "ten_geo_apart", "ten_geo@total", "ten_geo_apart@total"),
    panels=("a", "b", "a'", "b'"),
)  # fmt: skip
def buffer_geo(lab):
    """Largest queue of 10 s; above with 259 ms as the delay of a hop, as drawn in the paper (round
    trip 1048 ms), below as the whole round trip; rd is that of the nearest source. The fluid's slow
    start multiplies windows by 1.76 a round trip, not by 2.
    """
    return [
        _bounded(lab, "ten_geo", "overlapping, same round trip"),
        _bounded(lab, "ten_geo_apart", "different round trips", _fluid_largest),
        _bounded(lab, "ten_geo@total", "with 259 ms in all"),
        _bounded(lab, "ten_geo_apart@total", "with 259 ms in all", _fluid_largest),
    ]


@figure(
    "5", "Link efficiency of two sources",
    needs=_needs("two_leo", "two_geo_apart", "two_geo_apart@total"), panels=("a", "b"),
)  # fmt: skip
def efficiency(lab):
    """Acknowledged packets of the first 10 s over those that the link could send; the fluid's are
    those that leave a round trip before the end. In (a) its senders are self-clocked, which is
    closer to the packets there; in (b) they are clocked by ACKs, and its slow start multiplies
    windows by 1.76 a round trip, not by 2. Buffers are of about rd, in the last panel endless.
    """
    return [
        _efficient(
            lab, "two_leo", "same round trip, TS = 59 ms", _fluid_efficiency, "self_clocked"
        ),
        _efficient(lab, "two_geo_apart", "different ones, TS = 259 ms", _fluid_efficiency, top=0.4),
        _efficient(lab, "two_geo_apart@total", f"{TOTAL}, endless buffer", _fluid_efficiency),
    ]


@figure(
    "6", "Dropped packets, TS = 59 ms", needs=_needs("drops_ten_leo", "drops_two_leo"),
    panels=("a", "b"),
)  # fmt: skip
def drops_leo(lab):
    """Packets dropped in 10 s by a buffer of 49, about rd, which the paper leaves open; the fluid
    is the one with self-clocked senders, which is closer to the packets than that with ACKs.
    """
    return [
        _panel(lab, "drops_ten_leo", "dropped (packets)", _drops, None, "ten overlapping sources"),
        _panel(
            lab,
            "drops_two_leo",
            "dropped (packets)",
            _drops,
            _fluid_drops,
            "two sources",
            rates="self_clocked",
        ),
    ]


@figure(
    "7", "Dropped packets, TS = 259 ms",
    needs=_needs(
        "drops_ten_geo", "drops_two_geo", "drops_ten_geo_apart",
        "drops_ten_geo@total", "drops_two_geo@total", "drops_ten_geo_apart@total",
    ),
    panels=("a", "a'", "b", "b'", "c", "c'"),
)  # fmt: skip
def drops_geo(lab):
    """Packets dropped in 10 s by a buffer of about rd; left with 259 ms as the delay of a hop
    (rd = 196.5, buffer 199), right as the whole round trip (rd = 48.6, buffer 51).
    """
    cases = (
        ("drops_ten_geo", None, "ten overlapping sources"),
        ("drops_two_geo", _fluid_drops, "two sources"),
        ("drops_ten_geo_apart", _fluid_drops, "ten, different round trips"),
    )
    return [
        _panel(lab, f"{name}{reading}", "dropped (packets)", _drops, fluid, title)
        for name, fluid, words in cases
        for reading, title in (("", words), ("@total", "with 259 ms in all"))
    ]


@figure(
    "8", "Unfairness of ten connections",
    needs=_needs("ten_leo", "ten_geo_apart", "ten_geo_apart@total"), panels=("a", "b"),
)  # fmt: skip
def unfairness(lab):
    """One less Jain's index of the packets acknowledged within 10 s; text and captions disagree on
    round trips: (a) is the text's, same ones, 0.3 s apart, (b) different ones.
    """
    words = "unfairness"
    return [
        _panel(lab, "ten_leo", words, flow_unfairness, None, "overlapping, TS = 59 ms"),
        _panel(lab, "ten_geo_apart", words, flow_unfairness, _fluid_unfairness,
               "different round trips, TS = 259 ms"),
        _panel(lab, "ten_geo_apart@total", words, flow_unfairness, _fluid_unfairness, TOTAL),
    ]  # fmt: skip
