"""Problems with closed forms or published reference values, on every mesh."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dde_problems import DELTA1, NEVES_FELDSTEIN, PROBLEMS, TCP

import fluidcc as fc

MESHES = [
    fc.Uniform(0.005),
    fc.Located(rtol=1e-8),
    fc.MethodOfSteps(diffrax.Dopri8(), rtol=1e-10, atol=1e-12),
]
# a jump in the history or a sampling instant off the mesh costs the uniform mesh a step's length
UNIFORM_ERROR = {"delta1": 2e-3, "sampled_exact": 1e-9}


def name_of(value):
    return getattr(value, "name", type(value).__name__)


@pytest.mark.parametrize("mesh", MESHES, ids=name_of)
@pytest.mark.parametrize("problem", PROBLEMS, ids=name_of)
def test_answer_or_documented_refusal(problem, mesh):
    kind = type(mesh).__name__
    until = 10.0 if problem is TCP and kind == "MethodOfSteps" else None
    solution, error = problem.error(mesh, until)
    expected = problem.refuses.get(kind, fc.Status.ok)
    assert fc.Status(int(solution.status)) is expected
    if expected is fc.Status.ok:
        assert error < (UNIFORM_ERROR.get(problem.name, 1e-7) if kind == "Uniform" else 1e-7)
    else:
        assert solution.status_time < 1.0  # where the lag vanishes
        assert np.all(np.isfinite(solution.y))
    if kind == "Located" and problem.breaks:
        # lags that depend on the state are as exact as the state; the others, to rounding
        close = 1e-7 if problem in (TCP, NEVES_FELDSTEIN) else 1e-12
        np.testing.assert_allclose(solution.breaking_points, problem.breaks, rtol=close)


def test_dense_output_on_located_and_uniform_meshes():
    right = np.array([NEVES_FELDSTEIN.exact(t) for t in (1.5, 2.0, 3.7)])
    for mesh in (fc.Located(0.02), fc.Uniform(0.02)):
        solution = NEVES_FELDSTEIN.solve(mesh)
        np.testing.assert_allclose(solution(jnp.array([1.5, 2.0, 3.7])), right, rtol=1e-7)
        np.testing.assert_allclose(solution(1.5), right[0], rtol=1e-7)


def test_a_jump_is_seen_from_both_sides():
    solution = DELTA1.solve(fc.Located(0.05))
    slope = (solution(1.0 + 1e-6) - solution(1.0 - 1e-6)) / 2e-6
    np.testing.assert_allclose(slope, [-0.5], atol=1e-5)  # 0 before, -1 after
    np.testing.assert_allclose(solution(0.5), [1.0], rtol=1e-15)


def test_plain_equation_without_lags():
    given = {"lags": (), "params": 4.0, "ts": [1.0, 3.0]}
    for mesh in (fc.Located(rtol=1e-9), fc.Uniform(0.01), fc.MethodOfSteps(rtol=1e-10, atol=1e-12)):
        solution = fc.solve_dde(
            lambda t, y, z, p: {"x": y["v"], "v": -p * y["x"]}, lambda t, p: {"x": 1.0, "v": 0.0},
            0.0, 3.0, **given, mesh=mesh,
        )  # fmt: skip
        np.testing.assert_allclose(solution.y["x"], np.cos([2.0, 6.0]), rtol=2e-8)


# -- Held inputs: their edges, direct and delayed, are breaking points
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
    inputs = fc.Sampled(theta[2:4], theta[4:])
    given = {"lags": (), "params": theta[:2], "ts": [END], "inputs": inputs, "mesh": mesh}
    return fc.solve_dde(field, lambda t, p: jnp.zeros(1), 0.0, END, **given)


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
