"""Delay equations as models: where they rest, their roots, and what is wrong with them."""

import math

import numpy as np
import pytest

import fluidcc as fc


def tau(t, y, p):
    return p["loop"]["tau"]


PAIR = fc.DelayEquation(  # a state of two parts, nested parameters
    lambda t, y, z, p: {
        "x": -p["loop"]["gain"] * z[0]["x"] * y["x"] + y["x"], "v": y["x"] - y["v"]
    },
    (tau,), {"loop": {"gain": 2.0, "tau": 0.5}}, {"x": 0.4, "v": 0.0},
)  # fmt: skip


def test_states_and_parameters_have_structure():
    rest = PAIR.equilibrium()
    assert rest.status == "regular" and rest.smooth
    assert rest.y["x"] == pytest.approx(0.5, rel=1e-12) == rest.y["v"]
    np.testing.assert_allclose(rest.lags, [0.5])
    found = fc.stability(PAIR)  # s = -e^(-s/2), and -1
    assert found.stable and found.certified and found.equilibrium.y["x"] == rest.y["x"]
    assert found.rightmost == pytest.approx(-1)
    s = next(s for s in found.roots if s.imag > 0)
    assert abs(s + np.exp(-s / 2)) < 1e-12
    assert found.to_dict()["equilibrium"]["y"]["v"] == pytest.approx(0.5)
    assert "regular" in repr(found) and rest.to_xarray().sizes["state"] == 2


def test_crossings_along_a_nested_parameter():
    found = fc.crossings(PAIR, "loop.tau", 0.2, 3.0, points=7)
    (hopf,) = found.crossings
    assert (hopf.value, hopf.frequency) == (pytest.approx(math.pi / 2), pytest.approx(1.0))
    assert found.stable_at_low and hopf.criticality == "supercritical"
    assert found.to_dict()["crossings"][0]["lyapunov"] == hopf.lyapunov < 0
    assert "supercritical" in repr(found)


def test_a_lag_that_moves_with_the_state_is_frozen_in_the_linear_system():
    model = fc.DelayEquation(
        lambda t, y, z, p: 1 - z[0], [lambda t, y, p: 0.3 * y**2], {"tau": 1.0}, 0.5
    )
    s = fc.stability(model).rightmost
    assert abs(s + np.exp(-0.3 * s)) < 1e-12


def test_an_equilibrium_that_is_not_found_is_a_status():
    none = fc.DelayEquation(lambda t, y, z, p: 1 + y * z[0], [lambda t, y, p: 1.0], {}, 0.5)
    assert none.equilibrium().status == "none"
    found = fc.stability(none)
    assert found.stable is None and "try another guess" in found.message
    negative = fc.DelayEquation(lambda t, y, z, p: 1 - z[0], [lambda t, y, p: -y], {}, 0.5)
    assert "a lag is negative" in negative.equilibrium().message
