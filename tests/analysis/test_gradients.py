"""Derivatives of equilibria, also on jumps and at full buffers, of roots and margins: closed forms,
and differences of solved neighbours.
"""

import dataclasses
import math

import analysis_cases as cases
import numpy as np
import pytest

import fluidcc as fc
from fluidcc import laws
from fluidcc.analysis.gradient import gradients

C, T = cases.CAPACITY, cases.PROPAGATION
LINK = ("queue", "queueing_delay", "average", "mark_probability", "utilization")
FLOW = ("window", "rtt", "queueing_delay", "rate", "mark_probability")
LOOP = (
    "decay_rate", "frequency", "phase_margin", "gain_margin", "delay_margin",
    "gain_crossover", "phase_crossover",
)  # fmt: skip


def capped():
    """Windows at their cap, which leave the link idle for part of the time."""
    net = cases.hollot()
    window = dataclasses.replace(net.flows[0].window, max_window=8.0)
    return dataclasses.replace(net, flows=(dataclasses.replace(net.flows[0], window=window),))


def controlled():
    """TCP with a PI controller, whose rest is at its reference."""
    net = cases.hollot()
    law = laws.PI(q_ref=200.0)
    return dataclasses.replace(net, links=(dataclasses.replace(net.links[0], queue=law),))


NETS = {
    "mgt": (
        cases.hollot(),
        ("flow.n", "flow.rtt", "link.capacity", "link.queue.w_q", "link.queue.p_max"),
    ),
    "self-clocked": (cases.ecn_mod(rates="self_clocked"), ("flow.rtt", "flow.window.c2")),
    "PI": (controlled(), ("flow.rtt", "link.queue.q_ref", "link.queue.k_pi")),
    "capped": (capped(), ("flow.n", "flow.rtt", "flow.window.max_window")),
}


def told(net, loops=False):
    """All quantities by name, in the words of the verbs themselves."""
    eq = fc.equilibrium(net)
    out = {f"links.{n}.{key}": getattr(v, key) for n, v in eq.links.items() for key in LINK}
    for (name, v), flows in zip(eq.flows.items(), eq.net.flows, strict=True):
        share = np.asarray(flows.n) / np.sum(np.asarray(flows.n))
        for key in FLOW:
            each = getattr(v, key)
            out[f"flows.{name}.{key}"] = float(share @ np.asarray(each))
    if loops:
        found = fc.stability(net)
        s = found.rightmost
        out |= {"decay_rate": -s.real, "frequency": s.imag}
        out |= {key: getattr(found, key) for key in LOOP[2:]}
    return out


@pytest.mark.parametrize("name", NETS)
def test_derivatives_are_those_of_neighbours(name):
    """To 1e-6 of the largest change by the same share of the parameter."""
    net, paths = NETS[name]
    here = told(net, loops=name != "capped")
    found = {g.of: g for g in gradients(net, list(here), paths)}
    for path in paths:
        at = fc.number_at(net, path)
        step = 3e-5 * at
        loops = "phase_margin" in here
        up, down = (told(cases.moved(net, path, at + k * step), loops) for k in (1, -1))
        for key, value in here.items():
            got = found[key]
            assert (got.value, got.status) == (pytest.approx(value, rel=1e-9, abs=1e-12), "ok")
            wanted = (up[key] - down[key]) / (2 * step)
            scale = abs(wanted) + 1e-3 * abs(value / at)
            assert got.derivatives[path] == pytest.approx(wanted, abs=1e-6 * scale + 1e-9)


def test_knee_has_two_derivatives():
    """A gentle RED whose equilibrium is at max_th: the slope of the marking jumps there."""
    rest = fc.equilibrium(cases.ecn_mod())
    v = rest.links["bottleneck"].average
    knee = 75.0
    net = cases.ecn_mod(max_th=knee)
    n = 60.0
    low, high = 1.0, 600.0
    for _ in range(60):  # the number of flows that rests at the knee
        n = 0.5 * (low + high)
        queue = fc.equilibrium(cases.moved(net, "flow.n", n)).links["bottleneck"].queue
        low, high = (n, high) if queue < knee else (low, n)
    net = cases.moved(net, "flow.n", n)
    found = fc.gradient(net, "queue", ["flow.n"])
    assert found.status == "kink" and math.isnan(found.derivatives["flow.n"]) and v > 0
    for side, got in zip((-1, 1), found.sides["flow.n"], strict=True):
        h = side * 1e-3
        q0, q1, q2 = (
            fc.equilibrium(cases.moved(net, "flow.n", n + k * h)).links["bottleneck"].queue
            for k in range(3)
        )
        assert got == pytest.approx((-3 * q0 + 4 * q1 - q2) / (2 * h), rel=1e-4)
    assert abs(found.sides["flow.n"][0] / found.sides["flow.n"][1] - 1) > 0.1
    margin = fc.gradient(net, "phase_margin", ["flow.n"])
    assert margin.status == "kink" and math.isnan(margin.derivatives["flow.n"])
    assert margin.value == fc.stability(net).phase_margin


def test_statuses():
    net = cases.hollot()
    jump = fc.replace(net, {"link.queue.p_max": 0.001})
    wrong = fc.gradient(jump, "phase_margin", ["flow.n"])
    assert wrong.status == "discontinuity" and math.isnan(wrong.value)
    assert math.isnan(wrong.derivatives["flow.n"]) and "no derivatives" in wrong.message
    faint = fc.gradient(capped(), "phase_margin", ["flow.n"])
    assert (faint.status, faint.value) == ("no_crossover", math.inf)
    assert faint.to_dict()["value"] is None
    with pytest.raises(fc.ScenarioError, match="phase_margin"):
        fc.gradient(net, "phase_margn", ["flow.n"])
    with pytest.raises(fc.ScenarioError, match=r"links\.west\.queue"):
        fc.gradient(cases.two_links(), "queue", ["flows.long.n"])


def one_link(queue, window, *, n, **more):
    """One group with a round trip of 0.1 s on a link of 1250 packet/s, 100 packets of buffer."""
    flows = fc.Flows(window, n=np.array([n]), rtt=np.array([0.1]), **more)
    return fc.Network((fc.Link(queue, capacity=1250.0, buffer=100.0),), (flows,))


def slopes(net, of, paths):
    """Derivatives by quantity and path, all of them known."""
    found = gradients(net, of, paths)
    assert [g.failure for g in found] == [""] * len(of)
    return {g.of.split(".")[-1]: g for g in found}


def test_on_a_jump_of_the_marking():
    """RED at max_th: the queue stays there, W = C R/N and p = 2/W^2 (mgt)."""
    net = cases.hollot(n=600.0)
    paths = ["flow.n", "flow.rtt", "link.queue.max_th", "link.queue.p_max"]
    found = slopes(net, ["queue", "window", "link.mark_probability"], paths)
    w = C * (T + 700 / C) / 600
    by_window = np.array([-w / 600, C / 600, 1 / 600, 0.0])
    wanted = {"queue": [0, 0, 1, 0], "window": by_window, "mark_probability": -4 / w**3 * by_window}
    for key, each in wanted.items():
        assert found[key].status == "ok" and not found[key].sides
        np.testing.assert_allclose(list(found[key].derivatives.values()), each, atol=1e-12)
    margin = fc.gradient(net, "phase_margin", paths)
    assert margin.status == "discontinuity" and math.isnan(margin.derivatives["flow.n"])
    assert "no linearisation" in margin.message


def test_where_the_jump_begins_there_are_two_derivatives():
    """At p_max = 2/W^2 the rest comes to max_th. Below it the cubic of the queue holds."""
    n = C * (T + 700 / C) / math.sqrt(20)
    paths = ["flow.n", "flow.rtt", "link.queue.max_th", "link.queue.p_max"]
    queue, signal = gradients(cases.hollot(n=n), ["queue", "link.mark_probability"], paths)
    assert queue.status == signal.status == "kink" and "end of a discontinuity" in queue.message
    # log of (q - 150) (C T + q)^2 = 2 n^2 (max_th - 150)/p_max
    by_queue = 1 / 550 + 2 / (C * T + 700)
    slope = 2 / n / by_queue
    low, high = queue.sides["flow.n"]
    assert (low, high) == (pytest.approx(slope, rel=1e-6), pytest.approx(0, abs=1e-9))
    low, high = signal.sides["flow.n"]
    assert (low, high) == (pytest.approx(0.1 / 550 * slope, rel=1e-6), pytest.approx(0.2 / n))
    low, high = queue.sides["link.queue.p_max"]  # more marking frees the queue
    assert (low, high) == (pytest.approx(0, abs=1e-9), pytest.approx(-10 / by_queue, rel=1e-6))


def test_at_a_full_buffer():
    """W (1 - (1-l)^W) = 2 and n W (1-l) = C R, differentiated by hand."""
    net = one_link(
        laws.Droptail(), laws.Reno(), n=10.0, reaction=laws.OncePerRTT(), loss=laws.HalveOnly()
    )
    paths = ["flow.n", "flow.rtt", "link.buffer", "link.capacity"]
    found = slopes(net, ["queue", "window", "link.mark_probability", "rtt"], paths)
    w, loss = found["window"].value, found["mark_probability"].value
    kept = (1 - loss) ** w
    balance = [[1 - kept - w * kept * math.log(1 - loss), w * w * kept / (1 - loss)],
               [10 * (1 - loss), -10 * w]]  # fmt: skip
    moved = np.array([[0, 0, 0, 0], [-w * (1 - loss), 1250, 1, 0.1]])  # C R = C T + B
    by = np.linalg.solve(balance, moved)
    wanted = {"queue": [0, 0, 1, 0], "window": by[0], "mark_probability": by[1],
              "rtt": [0, 1, 1 / 1250, -100 / 1250**2]}  # fmt: skip
    for key, each in wanted.items():
        got = list(found[key].derivatives.values())
        np.testing.assert_allclose(got, each, rtol=1e-8, atol=1e-12)


def test_where_ticks_hold_the_average():
    """Adaptive RED midway between its thresholds; its p_max is what p = 2/(2 + W^2) needs."""
    red = laws.AdaptiveRED(min_th=20.0, max_th=60.0)
    net = one_link(red, laws.Reno(), n=40.0, reaction=laws.PerMark())
    paths = ["flow.n", "link.queue.max_th", "link.queue.p_max"]
    found = slopes(net, ["queue", "window", "link.mark_probability"], paths)
    w = (125 + 40) / 40
    by_window = np.array([-w / 40, 0.5 / 40, 0])
    wanted = {"queue": [0, 0.5, 0], "window": by_window,
              "mark_probability": -4 * w / (2 + w * w) ** 2 * by_window}  # fmt: skip
    for key, each in wanted.items():
        np.testing.assert_allclose(list(found[key].derivatives.values()), each, atol=1e-12)


@pytest.mark.parametrize("gamma", [0.9, 1.0])
def test_at_full_load(gamma):
    """W = gamma C T/n. A target of 1 has the queue at its end; `gamma` has no larger values."""
    net = one_link(laws.LoadFactor(gamma=gamma), laws.BMCC(), n=4.0, reaction=laws.OncePerRTT(),
                   feedback=laws.LoadFactorFeedback())  # fmt: skip
    paths = ["flow.n", "flow.rtt", "link.queue.t_p", "link.queue.gamma"]
    window, used, queue = gradients(net, ["window", "utilization", "queue"], paths)
    w = gamma * 125 / 4
    np.testing.assert_allclose(
        list(window.derivatives.values())[:3], [-w / 4, gamma * 1250 / 4, 0], atol=1e-9
    )
    if gamma < 1:
        assert window.derivatives["link.queue.gamma"] == pytest.approx(125 / 4)
        assert used.derivatives["link.queue.gamma"] == pytest.approx(1)
        assert queue.derivatives["link.queue.gamma"] == 0
    else:
        for found, wanted in ((used, 1), (queue, 0)):
            below, above = found.sides["link.queue.gamma"]
            assert below == pytest.approx(wanted, abs=1e-9) and math.isnan(above)
            assert found.status == "kink" and "an empty or full one" in found.message


def test_what_has_no_derivative_says_why():
    nowhere = fc.gradient(cases.hollot(n=3000.0), "queue", ["flow.n"])
    assert nowhere.status == "none" and "there is no equilibrium" in nowhere.message
    step = dataclasses.replace(cases.two_links().links[0].queue, at=20.0, width=0.0)
    net = one_link(step, laws.Reno(), n=40.0, reaction=laws.PerMark())
    found = fc.gradient(net, "queue", ["link.queue.at", "link.queue.width"])
    assert found.derivatives["link.queue.at"] == pytest.approx(1)
    assert found.status == "kink" and math.isnan(found.derivatives["link.queue.width"])
    assert "a discontinuity of two thresholds" in found.message
