"""Derivatives of limit cycles against closed forms and against solved neighbours."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

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


def test_no_cycle_has_no_derivatives():
    still = fc.DelayEquation(_turning, [_lag], {**CIRCLE, "mu": -0.5}, np.zeros(2))
    found = fc.gradient(still, "cycle.period", ["mu"])
    assert found.status == "none" and math.isnan(found.derivatives["mu"])
    with pytest.raises(fc.ScenarioError, match=r"cycle\.period"):
        fc.gradient(still, "cycle.perod", ["mu"])
    with pytest.raises(ValueError, match="a cycle's quantity"):
        fc.gradient(still, "queue", ["mu"])
