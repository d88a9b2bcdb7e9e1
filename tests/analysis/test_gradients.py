"""Derivatives of equilibria, roots and margins against differences of solved neighbours."""

import dataclasses
import math

import analysis_cases as cases
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.analysis.gradients.gradient import gradients
from fluidcc.laws.queue.pi import PI

LINK = ("queue", "average", "signal", "utilization")
FLOW = ("window", "rtt", "rate", "heard")
LOOP = (
    "rightmost", "decay_rate", "frequency", "phase_margin", "gain_margin", "delay_margin",
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
    law = PI(q_ref=200.0)
    return dataclasses.replace(net, links=(dataclasses.replace(net.links[0], queue=law),))


NETS = {
    "mgt": (
        cases.hollot(),
        ("flow.n", "flow.rtt", "link.capacity", "link.queue.w_q", "link.queue.p_max"),
    ),
    "ack, two round trips": (
        cases.ecn_mod(n=(10.0, 20.0), rtt=(0.08, 0.13)),
        ("flow.n", "flow.window.c1", "link.queue.max_th"),
    ),
    "self-clocked": (cases.ecn_mod(rates="self_clocked"), ("flow.rtt", "flow.window.c2")),
    "two links": (
        cases.two_links(),
        ("flows.long.n", "links.west.delay"),
    ),
    "PI": (controlled(), ("flow.rtt", "link.queue.q_ref", "link.queue.k_pi")),
    "capped": (capped(), ("flow.n", "flow.rtt", "flow.window.max_window")),
}
LONG = ("ack, two round trips", "two links")  # 10 and 25 s


def moved(net, path, value):
    """The network with one number changed; `n` of a group in proportion."""
    if path.endswith(".n"):
        return jax.jit(lambda v: fc.replace(net, {path: v}))(value)
    return fc.replace(net, {path: value})


def told(net, loops):
    """All quantities by name, in the words of the verbs themselves."""
    eq = fc.equilibrium(net)
    out = {f"links.{n}.{key}": getattr(v, key) for n, v in eq.links.items() for key in LINK}
    for (name, v), flows in zip(eq.flows.items(), eq.net.flows, strict=True):
        share = np.asarray(flows.n) / np.sum(np.asarray(flows.n))
        for key in FLOW:
            each = v.signal if key == "heard" else getattr(v, key)
            out[f"flows.{name}.{key}"] = float(share @ np.asarray(each))
    if loops:
        found = fc.stability(net)
        s = found.rightmost
        out |= {"rightmost": s.real, "decay_rate": -s.real, "frequency": s.imag}
        out |= {key: getattr(found, key) for key in LOOP[3:]}
    return out


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n in LONG else []) for n in NETS]
)
def test_derivatives_are_those_of_neighbours(name):
    """To 1e-6 of the largest change by the same share of the parameter."""
    net, paths = NETS[name]
    here = told(net, loops=name != "capped")
    found = {g.of: g for g in gradients(net, list(here), paths)}
    for path in paths:
        at = fc.number_at(net, path)
        step = 3e-5 * at
        loops = "phase_margin" in here
        up, down = (told(moved(net, path, at + k * step), loops) for k in (1, -1))
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
        queue = fc.equilibrium(moved(net, "flow.n", n)).links["bottleneck"].queue
        low, high = (n, high) if queue < knee else (low, n)
    net = moved(net, "flow.n", n)
    found = fc.gradient(net, "queue", ["flow.n"])
    assert found.status == "kink" and math.isnan(found.derivatives["flow.n"]) and v > 0
    for side, got in zip((-1, 1), found.sides["flow.n"], strict=True):
        h = side * 1e-3
        q0, q1, q2 = (
            fc.equilibrium(moved(net, "flow.n", n + k * h)).links["bottleneck"].queue
            for k in range(3)
        )
        assert got == pytest.approx((-3 * q0 + 4 * q1 - q2) / (2 * h), rel=1e-4)
    assert abs(found.sides["flow.n"][0] / found.sides["flow.n"][1] - 1) > 0.1
    margin = fc.gradient(net, "phase_margin", ["flow.n"])
    assert margin.status == "kink" and math.isnan(margin.derivatives["flow.n"])
    assert margin.value == fc.stability(net).phase_margin


def test_function_of_the_equilibrium():
    """Any function of the rest: here the packets on the way and in the queue."""

    def inside(eq):
        flows = eq.flows["flows"]
        return jnp.sum(flows.rate * flows.rtt) + eq.links["bottleneck"].queue ** 2

    net = cases.hollot()
    found = fc.gradient(net, inside, ["flow.n"])
    each = gradients(net, ["window", "queue"], ["flow.n"])
    window, queue = (g.derivatives["flow.n"] for g in each)
    wanted = window + 2 * each[1].value * queue
    assert found.derivatives["flow.n"] == pytest.approx(wanted, rel=1e-12)


def test_statuses():
    net = cases.hollot()
    jump = fc.replace(net, {"link.queue.p_max": 0.001})
    wrong = fc.gradient(jump, "phase_margin", ["flow.n"])
    assert wrong.status == "saturated" and math.isnan(wrong.value)
    assert math.isnan(wrong.derivatives["flow.n"]) and "no derivatives" in wrong.message
    faint = fc.gradient(capped(), "phase_margin", ["flow.n"])
    assert (faint.status, faint.value) == ("no_crossover", math.inf)
    assert faint.to_dict()["value"] is None
    with pytest.raises(fc.ScenarioError, match="phase_margin"):
        fc.gradient(net, "phase_margn", ["flow.n"])
    with pytest.raises(fc.ScenarioError, match=r"links\.west\.queue"):
        fc.gradient(cases.two_links(), "queue", ["flows.long.n"])


def test_shown():
    found = fc.gradient(cases.hollot(), "queue", ["flow.n", "flow.rtt"])
    assert "flow.rtt" in repr(found) and "(packet) / (s)" in repr(found)
    data = found.to_dataset()
    assert data["derivative"].sel(parameter="flow.n") == found.derivatives["flow.n"]
    assert found.to_dict()["derivatives"] == found.derivatives
