"""Problems with closed forms or published reference values, on every mesh."""

import diffrax
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
    mesh = [fc.Located(rtol=1e-9), fc.Uniform(0.01), fc.MethodOfSteps(rtol=1e-10, atol=1e-12)]
    for each in mesh:
        solution = fc.solve_dde(
            lambda t, y, z, p: {"x": y["v"], "v": -p * y["x"]},
            lambda t, p: {"x": 1.0, "v": 0.0},
            0.0,
            3.0,
            lags=(),
            params=4.0,
            ts=[1.0, 3.0],
            mesh=each,
        )
        np.testing.assert_allclose(solution.y["x"], np.cos([2.0, 6.0]), rtol=2e-8)
