"""Jumps that nothing declares are crossed within the tolerance, or the run ends and names the time;
steep equations are none of those; derivatives in reverse mode are refused in one line.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidcc as fc


def one(t, p):
    return 1.0


def lag(t, y, p):
    return 1.0


def test_a_history_that_jumps_at_its_end_is_crossed():
    found = fc.solve_dde(
        lambda t, y, z, p: -z[0] + 0.5 * z[1],
        lambda t, p: jnp.where(t >= 0.0, 1.0, 0.0),
        0.0,
        0.5,
        lags=[lambda t, y, p: 1.0 / 3.0, lambda t, y, p: 0.2],
        ts=[0.5],
        mesh=fc.Located(rtol=1e-9),
    )
    assert int(found.status) == fc.Status.ok
    # y' = 0.5 from 0.2 on, less 1 from 1/3 on, and 0.25 (t - 0.4) more from 0.4 on
    np.testing.assert_allclose(found.y, [1.0 + 0.15 - 1.0 / 6.0 + 0.00125], rtol=2e-9)
    assert int(found.steps) < 20_000


def _of_smooth(t, n):
    """n times integrated: the solution of x' = -x(t - 1) that begins with 1 after nothing."""
    terms = ((-1.0) ** k * (t - k) ** (k + n) / math.factorial(k + n) for k in range(int(t) + 1))
    return math.fsum(terms)


def test_tolerance_is_met_whenever_the_field_jumps():
    """y' = -y(t - 1), and 1 more from p on: linear, so that the jump's part is known."""

    def field(t, y, z, p):
        return jnp.where(t < p, 0.0, 1.0) - z[0]

    rtol = 1e-6
    for p in np.linspace(0.31, 4.87, 24):
        found = fc.solve_dde(
            field, one, 0.0, 5.0, lags=[lag], params=p, ts=[5.0], mesh=fc.Located(rtol=rtol)
        )
        wanted = 1.0 - _of_smooth(5.0, 1) + _of_smooth(5.0 - p, 1)
        assert int(found.status) == fc.Status.ok
        assert abs(float(found.y[0]) - wanted) < rtol * (1.0 + abs(wanted)), p


def test_a_stiff_smooth_equation_is_solved():
    """Steps of the first length blow up; shorter ones do not."""
    found = fc.solve_dde(
        lambda t, y, z, p: -300.0 * (y - z[0] - jnp.cos(t) + jnp.cos(t - 1.0)) - jnp.sin(t),
        lambda t, p: jnp.cos(t),
        0.0,
        3.0,
        lags=[lag],
        ts=[1.5, 3.0],
    )
    assert int(found.status) == fc.Status.ok
    np.testing.assert_allclose(found.y, np.cos([1.5, 3.0]), rtol=3e-6)


def test_a_switch_without_a_solution_ends_and_names_the_time():
    """The switch acts at once at 0, over and over: how it goes on depends on the first step."""
    found = fc.solve_dde(
        lambda t, y, z, p: jnp.where(z[0] < 0.0, 1.0, -1.0) - y,
        lambda t, p: 0.0,
        0.0,
        5.0,
        lags=[lambda t, y, p: t / 2.0],
        mesh=fc.Located(rtol=1e-6),
    )
    assert fc.Status(int(found.status)) is fc.Status.tolerance_not_met
    assert found.message.startswith("after t = 0: ")
    assert "a switch by modes, a jump at the start by y0" in found.message
    assert int(found.steps) < 1 << 15


@pytest.mark.parametrize("mesh", [fc.Uniform(0.05, slots=64), fc.Located(0.05), fc.Located()])
@pytest.mark.parametrize("within", [jax.jit, lambda function: function], ids=["jit", "plain"])
def test_reverse_mode_is_refused_in_one_line(mesh, within):
    def value(p):
        return fc.solve_dde(
            lambda t, y, z, p: -p * z[0], one, 0.0, 2.0, lags=[lag], params=p, ts=[2.0], mesh=mesh
        ).y[0]

    with pytest.raises(ValueError, match=r"expected jax.jvp or jax.jacfwd, got reverse mode"):
        jax.grad(within(value))(1.3)
