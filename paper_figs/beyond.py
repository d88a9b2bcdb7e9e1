"""Figures that the papers do not have: results of the fluid model and of rules on their topics."""

import numpy as np

import fluidcc as fc
from fluidcc.laws.feedback.receiver_window import ReceiverWindow
from fluidcc.laws.law import Ack
from fluidcc.laws.window.bmcc import BMCC

from ..validation.bounds.one_connection import FRONT, TAIL, published
from .drawing.figure import FORMULA, Curve, Field, Panel, figure, measured, modelled

_TAIL, _FRONT = "mark-tail", "mark-front"


def _roots(lab, net, over):
    """Real part of the rightmost root [1/s] over two paths; NaN if the verdict is undetermined."""
    found = lab.ask(fc.stability_map, net, {k: [float(x) for x in v] for k, v in over.items()})
    roots = [p["rightmost"] if p["stable"] is not None else None for p in found["points"]]
    values = [np.nan if root is None else root[0] for root in roots]
    return np.array(values).reshape([len(v) for v in over.values()])


@figure("becn_stability", "Stability of ECN versus BECN")
def becn_stability(lab):
    """Network of the BECN paper (VI.B).

    Blank if p_max is too small; low on the right windows are capped, and there is no queue.
    """
    count = 7 if lab.quick else 20
    n, trips = np.round(np.geomspace(4, 50, count)), np.geomspace(0.06, 0.5, count)
    found = {}
    for group in ("ecn", "becn"):
        net = fc.load(f"akujobi2002/homogeneous_{group}")
        found[group] = _roots(lab, net, {f"flows.{group}.n": n, f"flows.{group}.rtt": trips})
    fields = {
        "ECN": Field("rightmost root (1/s)", 1e3 * trips, n, found["ecn"], 0.0, (0.0,)),
        "BECN": Field("rightmost root (1/s)", 1e3 * trips, n, found["becn"], 0.0, (0.0,)),
        "BECN less ECN": Field(
            "difference of the roots (1/s)", 1e3 * trips, n, found["becn"] - found["ecn"], 0.0
        ),
    }
    axis = "round trip without queue (ms)"
    return [Panel(axis, "flows", field=field, title=title) for title, field in fields.items()]


@figure("margins", "Margins of marks at the tail and at the front")
def margins(lab):
    """50 ECN-NewReno flows of the ECN-mod paper; margins jump where the queue passes max_th.

    On the right both curves coincide: marks at the front gain the queueing delay at equilibrium.
    """
    trips = np.linspace(0.05, 0.5, 7 if lab.quick else 25)
    phase, delay, waits = {}, {}, []
    for label, law in ((_TAIL, "mark_tail"), (_FRONT, "mark_front")):
        phase[label], delay[label] = [], []
        for trip in trips:
            changes = {"flows.newreno.rtt": float(trip), "flows.newreno.feedback": law}
            net = fc.replace(fc.load("misra2003/besteffort_newreno"), changes)
            seen = lab.ask(fc.stability, net)
            phase[label].append(_number(seen["phase_margin"]))
            delay[label].append(1e3 * _number(seen["delay_margin"]))
            if law == "mark_tail":
                queue = lab.ask(fc.equilibrium, net)["links"]["bottleneck"]["queue"]
                waits.append(1e3 * queue / float(net.links[0].capacity))
    x, apart = 1e3 * trips, np.subtract(delay[_FRONT], delay[_TAIL])
    axis = "round trip without queue (ms)"
    return [
        Panel(axis, "phase margin (degrees)", [modelled(k, x, v) for k, v in phase.items()]),
        Panel(axis, "delay margin (ms)", [modelled(k, x, v) for k, v in delay.items()]),
        Panel(axis, "time (ms)", [modelled("front's delay margin less tail's", x, apart),
                                  modelled("queueing delay at equilibrium", x, waits)]),
    ]  # fmt: skip


def _number(value):
    return np.nan if value is None else float(value)


@figure("kappa", "Steps of ECN-mod that act alike")
def kappa(lab):
    """50 flows of one round trip: under eq. 7 c1 and c2 enter by c1 c2/(c1 + c2 W) alone."""
    net = fc.load("misra2003/besteffort")
    net = fc.replace(net, {"flows.mod.rtt": "100 ms"})
    window = float(np.mean(lab.ask(fc.equilibrium, net)["flows"]["mod"]["window"]))
    count = 5 if lab.quick else 16
    c1, c2 = np.geomspace(0.02, 0.6, count), np.geomspace(0.02, 0.5, count)
    both = c1 * c2[:, None] / (c1 + c2[:, None] * window)
    roots = _roots(lab, net, {"flows.mod.window.c2": c2, "flows.mod.window.c1": c1})
    curves = [modelled(f"c2 = {c2[k]:.2g}", both[k], roots[k]) for k in (0, count // 2, count - 1)]
    log = {"xscale": "log", "yscale": "log"}
    levels = (0.005, 0.01, 0.02, 0.05, 0.1)
    return [
        Panel(
            "c1 (packets)", "c2 (1)", field=Field("kappa (1)", c1, c2, both, None, levels), **log
        ),
        Panel("c1 (packets)", "c2 (1)", field=Field("rightmost root (1/s)", c1, c2, roots), **log),
        Panel("kappa (1)", "rightmost root (1/s)", curves, xscale="log"),
    ]


def _grown(law, load, time, trip):
    """Window after some time of multiplicative increase at one load, from a window of 1."""
    held = np.minimum(time, trip)  # an ACK counts one round trip at most
    ack = Ack(1.0, held, trip, load)
    return (1.0 + np.asarray(law.on_ack(1.0, ack), float)) ** (time / held)


@figure("increase", "Multiplicative increase of BMCC")
def increase(lab):
    """The map of one period by eqs 2 and 3, its iterates, and the law at all times between."""
    law, period = BMCC(), float(BMCC().t_p)
    load = np.linspace(float(law.lowest), float(law.mild) - 1e-9, 60)
    mapped = load * _grown(law, load, period, period)
    trips = np.linspace(0.02, 0.4, 40)
    factor = _grown(law, load[None, :], trips[:, None], trips[:, None])
    steps, parts = np.arange(6), 200
    sampled, smooth = [float(law.lowest)], [float(law.lowest)]
    for _ in steps[1:]:
        sampled.append(sampled[-1] * float(_grown(law, sampled[-1], period, period)))
        value = smooth[-1]
        for _ in range(parts):
            value *= float(_grown(law, value, period / parts, period))
        smooth.append(value)
    keep = np.array(sampled) < law.mild
    even = np.array(smooth) < law.mild
    return [
        Panel("load factor (1)", "load factor one period later (1)",
              [modelled("sampled each period", load, mapped),
               Curve("unchanged", load, load, engine=FORMULA)]),
        Panel("load factor (1)", "round trip (ms)",
              field=Field("growth in a round trip (1)", load, 1e3 * trips, factor, None,
                          (1.1, 1.5, 2.0, 3.0, 5.0))),
        Panel("periods", "load factor (1)",
              [modelled("sampled each period", steps[keep], np.array(sampled)[keep]),
               modelled("read at all times", steps[even], np.array(smooth)[even])]),
    ]  # fmt: skip


@figure("effective_window", "Flight under modified ACKs")
def effective_window(lab):
    """RWM: each modified ACK costs one packet (persistence 0), or all but one (persistence 1)."""
    p, windows = np.linspace(0.0, 0.95, 60), np.arange(2, 61, dtype=float)
    law = {rho: ReceiverWindow(persistence=float(rho)) for rho in (0, 1)}
    curves = [
        [modelled(f"persistence {rho}", p, law[rho].flight_size(w, p) / w) for rho in law]
        for w in (5.0, 20.0)
    ]
    field = np.asarray(law[0].flight_size(windows[None, :], p[:, None])) / windows[None, :]
    share = "flight over congestion window (1)"
    return [
        Panel("ACKs modified (1)", share, curves[0], title="window of 5 packets"),
        Panel("ACKs modified (1)", share, curves[1], title="window of 20 packets"),
        Panel("congestion window (packets)", "ACKs modified (1)", title="persistence 0",
              field=Field(share, windows, p, field, None, (0.5, 0.8, 0.9, 0.95))),
    ]  # fmt: skip


@figure("peaks", "Bounds of slow start versus the longest queue",
        needs=("mark_front/start_tail", "mark_front/start_front"))  # fmt: skip
def peaks(lab):
    """Published bounds 2 Th + rd - 1 and Th + rd at Th = rd - 1; above 0 a bound fails here.

    They hold if queues that reach Th mark and rd has all transmissions: at the tail with the packet
    in service, at the front without it and only as packets leave or with slower access.
    """
    counts = {"waiting": "queue_max", "in service too": "number_in_system_max"}
    curves, apart = [], []
    for marks, side, formula in (
        (TAIL, _TAIL, "2 Th + rd - 1"), (FRONT, _FRONT, "Th + rd"),
    ):  # fmt: skip
        found = lab.packets(f"mark_front/start_{marks}")
        pipe = found.x.astype(float)
        nets = [found.experiment.net(k) for k in range(len(pipe))]
        at = np.array([float(net.links[0].queue.at) for net in nets])
        bound = published(marks, at, pipe)
        for words, metric in counts.items():
            peak = found.values(f"links.bottleneck.{metric}")
            curves.append(measured(f"{side}, {words}", pipe, peak))
            apart.append(measured(f"{side}, {words}", pipe, peak - bound[:, None]))
        curves.append(Curve(f"bound of {side}: {formula}", pipe, bound, engine=FORMULA))
    axis = "pipe rd (packets)"
    return [
        Panel(axis, "longest queue (packets)", curves),
        Panel(axis, "queue above the bound (packets)", apart),
    ]
