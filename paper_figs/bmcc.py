"""Figures of the BMCC paper (Qazi et al., 2010): numerals are its sections.

Packet senders estimate the load factor by ADPM, one bit for each packet. In the fluid model they
know it exactly, cross traffic is steady, and flows start at the mean of their random times.
"""

import dataclasses

import numpy as np

import fluidcc as fc

from ..validation.lab.loads import estimates, load_factors
from ..validation.lab.measures import pipe_of
from ..validation.lab.samples import Courses
from .drawing.figure import FORMULA, Curve, Panel, Printed, figure, measured, modelled

_BITS = 8000.0  # of a packet
_SHORT, _LONG = 10.0, 40.0  # s of the figures over time
_WINDOW = "congestion window (packets)"
_NAMES = {"bmcc": "BMCC", "sack": "SACK"}
LABELS = tuple(_NAMES.values())
_FLOWS = ("first", "second", "third")
_TRIPS = {"first": "150 ms", "second": "200 ms", "third": "250 ms"}


def _course(lab, name, until, k=0):
    """Trajectory of the fluid model at point k of an experiment."""
    experiment, changes = lab.experiment(name), {}
    net = experiment.net(k)
    for group, flows in zip(net.flow_names, net.flows, strict=True):
        changes[f"flows.{group}.start"] = (flows.start.low + flows.start.high) / 2
        if flows.feedback.loads:
            changes[f"flows.{group}.estimator"] = "exact"
    found = lab.ask(fc.simulate, fc.replace(net, changes), until=until)
    return Courses(experiment, [found])


def _apart(times, columns):
    """Several series as one line with gaps between them."""
    gap = np.full((1, columns.shape[1]), np.nan)
    return np.tile(np.append(times, np.nan), columns.shape[1]), np.vstack([columns, gap]).T.ravel()


def _far_windows(lab, name, title=""):
    """The panel at 300 ms, up to pipe and buffer. Until a loss is noticed windows exceed these, up
    to the receivers' windows, which are not stated; those are the equilibrium of the fluid model.
    """
    panel, net = _windows(lab, name, title, fluid=False), lab.experiment(name).net(0)
    room = pipe_of(net) + float(net.links[0].buffer)
    edge = Curve("pipe and buffer", np.array([0.0, _LONG]), np.full(2, room), engine=FORMULA)
    return dataclasses.replace(panel, curves=[*panel.curves, edge], ylim=(0, 1.1 * room))


def _windows(lab, name, title="", fluid=True, until=_LONG):
    """A panel of windows over time: each flow by packets, the mean of its group by the fluid."""
    runs = lab.packets(name)
    groups = [group for group in _NAMES if group in lab.experiment(name).net(0).flow_names]
    curves = []
    for group in groups:
        times, windows = runs.series(0, "flow_window", group)
        shown = times <= until
        if len(groups) == 1:
            curves += [
                Curve(f"{_NAMES[group]}, flow {k + 1}", times[shown], column[shown], dense=True)
                for k, column in enumerate(windows.T)
            ]
        else:
            x, y = _apart(times[shown], windows[shown])
            curves.append(Curve(_NAMES[group], x, y, dense=True))
    if fluid:
        course = _course(lab, name, until)
        for group in groups:
            times, windows = course.series(0, f"flows.{group}.window")
            label = _NAMES[group] if len(groups) > 1 else "fluid model"
            curves.append(modelled(label, times, windows[:, 0], dense=True))
    return Panel("time (s)", _WINDOW, curves, title=title)


@figure("1", "Throughput of three BMCC flows", needs=("three_flows",))
def three_flows(lab):
    """First seed; goodput in means over 1 s, flows arrive 100 s apart on 100 Mbit/s (3.4)."""
    runs, course = lab.packets("three_flows"), _course(lab, "three_flows", 400.0)
    curves, whole = [], {}
    for group in _FLOWS:
        label = f"{_TRIPS[group]} round trip"
        times, rates = runs.series(0, "flow_goodput_sampled", group)
        seconds = np.nan_to_num(rates[1:, 0]).reshape(-1, 20).mean(axis=1) / 1e6
        curves.append(Curve(label, times[20::20], seconds, dense=True))
        instants, rates = course.series(0, f"flows.{group}.rate")
        curves.append(modelled(label, instants, 8e-3 * rates[:, 0], dense=True))
        whole[group] = seconds
    curves.append(Curve("all together", times[20::20], sum(whole.values()), dense=True))
    printed = [
        Printed("about 50 Mbit/s each", 50),
        Printed("about 100 Mbit/s in all", 100, label="all together"),
    ]
    return [Panel("time (s)", "throughput (Mbit/s)", curves, printed, ylim=(0.0, 120.0))]


@figure("2", "Load factor and its estimates by ADPM", needs=("three_flows",), panels=("a", "b"))
def load_estimates(lab):
    """Load factor of the bottleneck by eq. 1, from its traffic, and estimates: the receivers'
    rule (3.2) applied to as many hashes as each flow got packets; (b) is the second arrival (3.4).
    """
    runs, course = lab.packets("three_flows"), _course(lab, "three_flows", 400.0)
    ends, loads = load_factors(runs)
    fluid = course.series(0, "links.bottleneck.load_factor")
    router = [Curve("router", ends, loads, dense=True), modelled("router", *fluid, dense=True)]
    begin, end = 98.0, 112.0
    zoom = []
    for curve in router:
        near = (curve.x >= begin) & (curve.x <= end)
        zoom.append(dataclasses.replace(curve, x=curve.x[near], y=curve.y[near]))
    for k, group in enumerate(_FLOWS[:2]):
        times, rates = runs.series(0, "flow_goodput_sampled", group)
        sent = loads[np.searchsorted(ends, times[2:] - 1e-9) - 1] * (times[2:] > ends[0] + 1e-9)
        packets = np.nan_to_num(rates[2:, 0]) * (times[1] - times[0]) / _BITS
        found, near = estimates(sent, packets, seed=k + 1), (times >= begin) & (times <= end)
        zoom.append(Curve(f"estimate, {_TRIPS[group]}", times[near], found[near[2:]], dense=True))
    return [
        Panel("time (s)", "load factor", router, title="the router", ylim=(0.0, 1.5)),
        Panel("time (s)", "load factor", zoom, title="when the second flow arrives"),
    ]


@figure("3", "Two BMCC flows over a BMCC router", needs=("two_bmcc_router",))
def bmcc_router(lab):
    """First seed; in the fluid both flows are alike (4.1)."""
    return [_windows(lab, "two_bmcc_router")]


@figure("4", "Windows of two BMCC flows over a droptail router",
        needs=("two_droptail", "two_droptail_300ms"), panels=("a", "b"))  # fmt: skip
def droptail(lab):
    """First seed; at 300 ms windows above pipe and buffer are cut off: how far they go depends on
    receivers' windows, which the paper does not state (6750 packets here); they are the equilibrium
    of the fluid model (4.1.1).
    """
    return [
        _windows(lab, "two_droptail", "T = 40 ms", until=_SHORT),
        _far_windows(lab, "two_droptail_300ms", "T = 300 ms"),
    ]


@figure("5", "Windows of two BMCC flows over a RED router with ECN",
        needs=("two_red", "two_red_300ms"), panels=("a", "b"))  # fmt: skip
def red(lab):
    """First seed; the parameters of RED are not stated, and at 300 ms windows above pipe and buffer
    are cut off, as in figure 4 (4.1.2).
    """
    return [
        _windows(lab, "two_red", "T = 40 ms", until=_SHORT),
        _far_windows(lab, "two_red_300ms", "T = 300 ms"),
    ]


_MIXES = ("mix_droptail", "mix_droptail_300ms", "mix_red", "mix_red_300ms")


@figure("6", "Windows of three BMCC and three SACK flows over other routers", needs=_MIXES,
        panels=("a", "b", "c", "d"))  # fmt: skip
def mixes(lab):
    """First seed; at 300 ms windows above pipe and buffer are cut off, as in figure 4 (4.1.3)."""
    heads = ("droptail, T = 40 ms", "droptail, T = 300 ms", "RED, T = 40 ms", "RED, T = 300 ms")
    return [
        _far_windows(lab, name, head) if "300" in name else _windows(lab, name, head, until=_SHORT)
        for name, head in zip(_MIXES, heads, strict=True)
    ]


@figure("7", "BMCC and SACK over a BMCC router", needs=("mix_bmcc_router",))
def starved(lab):
    """Three flows each, first seed (4.2.1)."""
    return [_windows(lab, "mix_bmcc_router")]


@figure("8", "BMCC and SACK with ECN over a BMCC router", needs=("mix_bmcc_router_ecn",))
def starved_ecn(lab):
    """Three flows each, first seed (4.2.2)."""
    return [_windows(lab, "mix_bmcc_router_ecn")]


@figure("9", "BMCC and SACK over the modified router, 40 ms", needs=("mix_modified_router",))
def modified(lab):
    """Three flows each, first seed (5.2)."""
    return [_windows(lab, "mix_modified_router")]


@figure("10", "BMCC and SACK over the modified router, 300 ms",
        needs=("mix_modified_router_300ms",))  # fmt: skip
def modified_far(lab):
    """Three flows each, first seed; in the fluid BMCC grows without bound (5.2)."""
    return [_far_windows(lab, "mix_modified_router_300ms")]


_PAIRS = ("gain_baseline", "gain_bmcc", "gain_short")
_MEAN = (20.0, 60.0)  # s of the trajectories of figure 11


def _rates(lab, name, group):
    """Rates of a flow in the fluid: at equilibrium; with BMCC, which cycles, by a trajectory."""
    if name != "gain_bmcc":
        rests = lab.rests(name)
        sound = np.array([status == "regular" for status in rests.status])
        return np.where(sound, rests.values(f"flows.{group}.rate"), np.nan)
    found = []
    for k in range(len(lab.experiment(name).x)):
        times, rates = _course(lab, name, _MEAN[1], k).series(0, f"flows.{group}.rate")
        found.append(rates[times >= _MEAN[0], 0].mean())
    return np.array(found)


@figure("11", "Gain and loss of throughput next to a SACK flow", needs=_PAIRS, panels=("a", "b"))
def gain_and_loss(lab):
    """Throughput of the stronger flow (gain) and of the SACK flow with it (loss) over that of
    two SACK flows at the modified router; in the fluid SACK is at equilibrium, stable or not, and
    BMCC the mean of 20 to 60 s (5.2).
    """
    runs, panels = {name: lab.packets(name) for name in _PAIRS}, []
    x = runs["gain_baseline"].x
    for group, head in (("strong", "gain G"), ("weak", "loss L")):
        base, curves = runs["gain_baseline"].values(f"flows.{group}.goodput"), []
        alone = _rates(lab, "gain_baseline", group)
        for name, label in (("gain_bmcc", "BMCC of T"), ("gain_short", "SACK of 10 ms")):
            ratio = runs[name].values(f"flows.{group}.goodput") / base
            curves.append(measured(label, x, ratio))
            curves.append(modelled(label, x, _rates(lab, name, group) / alone))
        panels.append(Panel("round trip T (ms)", head, curves, title=head, yscale="log"))
    return panels


@figure("12", "Windows of two BMCC flows with the fallback",
        needs=("fallback_droptail", "fallback_red"), panels=("a", "b"))  # fmt: skip
def fallback(lab):
    """First seed; T = 40 ms; in the fluid both flows are alike (5.3)."""
    return [
        _windows(lab, "fallback_droptail", "droptail"),
        _windows(lab, "fallback_red", "RED with ECN"),
    ]
