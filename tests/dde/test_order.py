"""The located mesh has order 4 whatever happens; adaptive solvers agree with it."""

import hybrid
import jax
import jax.numpy as jnp
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


# -- Batches, derivatives and compilation: what `jit`, `vmap` and `jacfwd` promise
END = 2.4
LATE = np.array([0.5, 1.0, 1.8, 2.4])  # the queue starts to fill at 1.7
MESHES = [fc.Uniform(0.24 / 32, slots=128), fc.Located(0.24 / 64, max_steps=1000)]


def name_of(mesh):
    return type(mesh).__name__


def parameters(theta):
    """Slow start, with propagation delay, marking and first window from theta."""
    p = hybrid.case("slow_start")
    first = jnp.stack([theta[2], jnp.zeros(()), jnp.zeros(())])
    return {**p, "propagation": theta[0], "max_p": theta[1], "start": first}


def states_of(theta, mesh):
    return hybrid.run(parameters(theta), mesh, end=END, ts=LATE)


THETA = jnp.array([0.2, 0.2, 4.0])
SPREAD = jnp.linspace(0.9, 1.1, 5)[:, None] * THETA[None]


@pytest.mark.parametrize("mesh", MESHES, ids=name_of)
def test_batch_is_the_single_run(mesh):
    single = np.stack([states_of(theta, mesh).y for theta in SPREAD])
    mapped = jax.jit(jax.vmap(lambda theta: states_of(theta, mesh)))(SPREAD)
    blocks = hybrid.run(jax.vmap(parameters)(SPREAD), mesh, end=END, ts=LATE, batched=True)
    for many in (mapped, blocks):
        np.testing.assert_allclose(many.y, single, rtol=1e-11, atol=1e-11)
        assert np.all(np.asarray(many.status) == fc.Status.ok)
        assert many.t.shape == (5, 4)


@pytest.mark.parametrize("mesh", MESHES, ids=name_of)
def test_poisoned_lane_leaves_the_others_bit_identical(mesh):
    good = jnp.broadcast_to(THETA, (70, 3)) * jnp.linspace(0.9, 1.1, 70)[:, None]
    bad = good.at[37, 1].set(jnp.nan)
    run = lambda theta: hybrid.run(  # noqa: E731
        jax.vmap(parameters)(theta), mesh, end=END, ts=LATE, batched=True
    )
    right, found = run(good), run(bad)
    others = np.arange(70) != 37
    assert np.array_equal(np.asarray(right.y)[others], np.asarray(found.y)[others])
    assert np.all(np.asarray(found.status)[others] == fc.Status.ok)
    assert int(found.status[37]) == fc.Status.nonfinite
    assert float(found.status_time[37]) < END
    assert np.all(np.isfinite(found.y))
    assert "nonfinite (1)" in repr(found)


def test_derivatives_of_the_located_solution():
    """With respect to a delay, a parameter and the state at t0, with events in between."""
    mesh = MESHES[1]
    found = np.asarray(jax.jacfwd(lambda theta: states_of(theta, mesh).y)(THETA))
    assert int(states_of(THETA, mesh).breaking_points.size) > 3
    for i, step in enumerate((1e-6, 1e-6, 1e-5)):
        up = np.asarray(states_of(THETA.at[i].add(step), mesh).y)
        down = np.asarray(states_of(THETA.at[i].add(-step), mesh).y)
        wanted = (up - down) / (2.0 * step)
        assert np.max(np.abs(found[..., i] - wanted)) < 1e-6 * np.max(np.abs(wanted))


def _one(t, p):
    return 1.0


@pytest.mark.parametrize("mesh", [fc.Uniform, fc.Located], ids=lambda m: m.__name__)
def test_nothing_compiles_twice(mesh):
    """The field is traced once: parameters, the delay, times, steps may change."""
    traces = []

    def field(t, y, z, p):
        traces.append(1)
        return -p["gain"] * z[0]

    def delay(t, y, p):
        return p["delay"]

    def run(gain, lag, end, step):
        made = mesh(step, slots=256) if mesh is fc.Uniform else mesh(step, max_steps=1000)
        p = {"gain": gain, "delay": lag}
        ts = np.linspace(0.0, end, 5)[1:]
        return fc.solve_dde(field, _one, 0.0, end, lags=(delay,), params=p, ts=ts, mesh=made)

    first = run(1.0, 1.0, 2.0, 0.05)
    before = len(traces)
    second = run(0.5, 0.7, 3.0, 0.02)
    # every call looks at the shapes once, without compiling
    assert len(traces) - before <= 1
    np.testing.assert_allclose(first.y[1], 0.0, atol=1e-12)
    assert second.y[1] != first.y[1]
