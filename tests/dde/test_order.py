"""The located mesh has order 4 whatever happens; adaptive solvers agree with it."""

import hybrid
import numpy as np
import pytest

import fluidcc as fc

TIMES = np.linspace(0.25, hybrid.END, 160)


def states(p, mesh):
    solution = hybrid.run(p, mesh, ts=TIMES)
    assert int(solution.status) == fc.Status.ok
    return np.asarray(solution.y), solution


@pytest.mark.parametrize("name", ["smooth", "growing", "cycle", "slow_start"])
def test_order_four(name):
    p = hybrid.case(name)
    right, _ = states(p, fc.Located(0.24 / 512, max_steps=30000))
    scale = np.abs(right).max(axis=0)
    # below 1e-11 rounding shows on the smooth cases
    shares = (12, 24, 48) if name in ("smooth", "growing") else (24, 48, 96, 192)
    errors = []
    for share in shares:
        y, _ = states(p, fc.Located(0.24 / share, max_steps=30000))
        errors.append(np.sqrt(np.mean(((y - right) / scale) ** 2, axis=0)).max())
    order = -np.polyfit(np.log(shares), np.log(errors), 1)[0]
    assert abs(order - 4.0) < 0.2
    if name in ("cycle", "slow_start"):
        assert right[:, 1].min() == 0.0  # the queue does empty


def test_adaptive_solver_agrees_where_modes_switch():
    p = hybrid.case("slow_start")
    end = 3.0
    ts = TIMES[TIMES < end]
    right = hybrid.run(p, fc.MethodOfSteps(rtol=1e-10, atol=1e-10), end=end, ts=ts)
    found = hybrid.run(p, fc.Located(0.24 / 512, max_steps=30000), end=end, ts=ts)
    assert int(right.status) == fc.Status.ok
    scale = np.abs(np.asarray(right.y)).max(axis=0)
    assert np.max(np.abs(np.asarray(found.y) - np.asarray(right.y)) / scale) < 1e-8


@pytest.mark.parametrize("name", ["growing", "slow_start"])
def test_uniform_mesh_converges(name):
    p = hybrid.case(name)
    right, _ = states(p, fc.Located(0.24 / 512, max_steps=30000))
    scale = np.abs(right).max(axis=0)
    errors = []
    for share in (16, 256):
        y, _ = states(p, fc.Uniform(0.24 / share, slots=1024))
        errors.append(np.sqrt(np.mean(((y - right) / scale) ** 2, axis=0)).max())
    # steps straddle breaking points (order 2 in the mean) and events (order 1, erratic)
    assert errors[1] < errors[0] / (16.0 if name == "growing" else 4.0)
    assert errors[1] < (3e-9 if name == "growing" else 1e-2)


@pytest.mark.parametrize("rtol", [1e-4, 1e-7])
def test_tolerance_is_met(rtol):
    p = hybrid.case("slow_start")
    right, _ = states(p, fc.Located(0.24 / 512, max_steps=30000))
    y, solution = states(p, fc.Located(rtol=rtol, max_steps=30000))
    assert np.all(np.abs(y - right) <= rtol * (1.0 + np.abs(right)))
    assert int(solution.steps) < 30000


def test_tolerance_out_of_reach_is_a_status():
    solution = hybrid.run(hybrid.case("growing"), fc.Located(rtol=1e-15, max_steps=1000))
    assert fc.Status(int(solution.status)) is fc.Status.tolerance_not_met
    assert "loosen" in solution.message
