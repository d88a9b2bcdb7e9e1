"""Held inputs: their edges, direct and delayed, are breaking points."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidcc as fc

# y' = u(t - a - b y): the edge of a held input reaches y through a lag that depends on y.
# With u = r0, r1, r2 between the edges s0, s1, y is straight between t0 and t1, where
# t0 - a - b y(t0) = s0 and so on.
THETA = jnp.array([0.3, 0.2, 1.0, 2.2, 1.5, -0.7, 0.9])  # a, b, s0, s1, r0, r1, r2
END = 4.0


def edges(theta):
    a, b, s0, s1, r0, r1, _ = theta
    t0 = (s0 + a) / (1.0 - b * r0)
    t1 = (s1 + a + b * (r0 - r1) * t0) / (1.0 - b * r1)
    return jnp.stack([t0, t1])


def closed_form(theta):
    *_, r0, r1, r2 = theta
    t0, t1 = edges(theta)
    return r0 * t0 + r1 * (t1 - t0) + r2 * (END - t1)


def field(t, y, z, p, u):
    return u(t - p[0] - p[1] * y[0])[None]


def solve(theta, mesh):
    return fc.solve_dde(
        field,
        lambda t, p: jnp.zeros(1),
        0.0,
        END,
        lags=(),
        params=theta[:2],
        ts=[END],
        inputs=fc.Sampled(theta[2:4], theta[4:]),
        mesh=mesh,
    )


@pytest.mark.parametrize("mesh", [fc.Located(0.1), fc.MethodOfSteps()], ids=["located", "steps"])
def test_delayed_edge_has_its_closed_form(mesh):
    solution = solve(THETA, mesh)
    np.testing.assert_allclose(solution.y[0, 0], closed_form(THETA), rtol=1e-11)
    np.testing.assert_allclose(solution.breaking_points, edges(THETA), rtol=1e-10)


def test_delayed_edge_has_its_derivatives():
    found = jax.jacfwd(lambda theta: solve(theta, fc.Located(0.1)).y[0, 0])(THETA)
    np.testing.assert_allclose(found, jax.jacfwd(closed_form)(THETA), rtol=1e-9, atol=1e-9)


def test_input_of_several_columns_and_lags():
    """Two calls with different lags: y' = u(t)[0] + u(t - 1)[1]."""
    solution = fc.solve_dde(
        lambda t, y, z, p, u: u(t)[0] + u(t - 1.0)[1],
        lambda t, p: 0.0,
        0.0,
        3.0,
        lags=(),
        inputs=fc.Sampled([0.7], [[1.0, 0.0], [2.0, 5.0]]),
        ts=[0.7, 1.7, 3.0],
        mesh=fc.Located(0.2),
    )
    np.testing.assert_allclose(solution.y, [0.7, 2.7, 2.7 + 2.6 + 6.5], rtol=1e-11)
    np.testing.assert_allclose(solution.breaking_points, [0.7, 1.7], rtol=1e-11)
