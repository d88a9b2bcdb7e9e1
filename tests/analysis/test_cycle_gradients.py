"""Derivatives of limit cycles against closed forms and against solved neighbours."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from analysis_cases import hollot

import fluidcc as fc
from fluidcc.analysis.gradients.cycle import cycle_gradients

SPEED = 2.0
CIRCLE = {"mu": 0.5, "a": -0.8, "speed": SPEED, "lag": 0.3}


def _turning(t, y, z, p):
    """A circle of radius r turns at `speed`; r grows at the rate mu + a r^2, r as it was before."""
    growth = p["mu"] + p["a"] * (z[0] @ z[0])
    return jnp.stack([growth * y[0] - p["speed"] * y[1], growth * y[1] + p["speed"] * y[0]])


def _lag(t, y, p):
    return p["lag"]


def test_circle_has_its_closed_form():
    circle = fc.DelayEquation(_turning, [_lag], CIRCLE, np.zeros(2))
    names = ["cycle.period", "cycle.states.0.max", "cycle.states.1.min"]
    period, top, bottom = cycle_gradients(circle, names, list(CIRCLE))
    radius = math.sqrt(0.5 / 0.8)
    assert period.value == pytest.approx(2 * math.pi / SPEED, rel=1e-10)
    wanted = {"mu": 0.0, "a": 0.0, "speed": -2 * math.pi / SPEED**2, "lag": 0.0}
    assert period.derivatives == pytest.approx(wanted, rel=1e-8, abs=1e-8)
    wanted = {"mu": radius / 2 / 0.5, "a": radius / 2 / 0.8, "speed": 0.0, "lag": 0.0}
    assert top.derivatives == pytest.approx(wanted, rel=1e-6, abs=1e-6)
    assert bottom.derivatives == pytest.approx({k: -v for k, v in wanted.items()}, abs=1e-6)


@pytest.mark.slow
def test_network_whose_average_passes_a_corner():
    """TCP over RED, whose average passes corners of the marking on its way; 15 s."""
    net = fc.replace(hollot(w_q=2e-4, p_max=0.1), {"link.queue.max_th": 400.0})
    here = fc.cycle(net)
    names = [
        "cycle.period",
        "cycle.link.queue.max",
        "cycle.link.average.min",
        "cycle.flow.window.max",
    ]
    paths = ["flow.rtt", "link.queue.p_max", "link.queue.w_q"]
    found = cycle_gradients(net, names, paths)
    assert here.status == "nonsmooth"

    def told(net):
        c = fc.cycle(net, start=here)
        (link,), (flows,) = c.links.values(), c.flows.values()
        return np.array([c.period, link.queue[1], link.average[0], flows.window[0][1]])

    assert [g.value for g in found] == pytest.approx(told(net), rel=1e-6)
    for path in paths:
        at = fc.number_at(net, path)
        up, down = (told(fc.replace(net, {path: at * (1 + s * 1e-4)})) for s in (1, -1))
        wanted = (up - down) / (2e-4 * at)
        got = [g.derivatives[path] for g in found]
        assert got == pytest.approx(wanted, rel=1e-6)


def test_no_cycle_has_no_derivatives():
    still = fc.DelayEquation(_turning, [_lag], {**CIRCLE, "mu": -0.5}, np.zeros(2))
    found = fc.gradient(still, "cycle.period", ["mu"])
    assert found.status == "none" and math.isnan(found.derivatives["mu"])
    with pytest.raises(fc.ScenarioError, match=r"cycle\.period"):
        fc.gradient(still, "cycle.perod", ["mu"])
    with pytest.raises(ValueError, match="a cycle's quantity"):
        fc.gradient(still, "queue", ["mu"])
