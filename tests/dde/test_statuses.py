"""Every way to fail is a status with advice; wrong calls raise one clear error."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidcc as fc

HISTORY = {"constant": lambda t, p: jnp.ones(1), "short": lambda t, p: jnp.sqrt(t + 0.5)[None]}
FIELDS = {"decay": lambda t, y, z, p: -z[0], "blow_up": lambda t, y, z, p: y * y * y + 0.0 * z[0]}
LAGS = {
    "one": lambda t, y, p: 1.0,
    "negative": lambda t, y, p: 0.5 - t,
    "short": lambda t, y, p: 0.004,
    "growing": lambda t, y, p: 0.2 + t,
    "swinging": lambda t, y, p: t + 0.1 - 0.3 * jnp.sin(2.0 * t),  # t - lag passes t0 and returns
}
SMALL_RING, UNIFORM = fc.Uniform(0.01, slots=64), fc.Uniform(0.01)
LOCATED, FEW = fc.Located(0.05), fc.Located(0.05, max_steps=20)
STEPS = fc.MethodOfSteps()


@pytest.mark.parametrize(
    ("field", "history", "lag", "mesh", "status"),
    [
        ("blow_up", "constant", "one", UNIFORM, "nonfinite"),
        ("blow_up", "constant", "one", LOCATED, "nonfinite"),
        ("blow_up", "constant", "one", STEPS, "nonfinite"),
        ("decay", "constant", "negative", UNIFORM, "lag_below_step"),
        ("decay", "constant", "negative", LOCATED, "lag_negative"),
        ("decay", "constant", "short", UNIFORM, "lag_below_step"),
        ("decay", "constant", "one", SMALL_RING, "lag_exceeds_ring"),
        ("decay", "short", "one", UNIFORM, "history_out_of_range"),
        ("decay", "short", "one", LOCATED, "history_out_of_range"),
        ("decay", "short", "one", STEPS, "history_out_of_range"),
        ("decay", "constant", "swinging", LOCATED, "nonmonotone_argument"),
        ("decay", "constant", "swinging", STEPS, "nonmonotone_argument"),
        ("decay", "constant", "one", FEW, "step_limit"),
    ],
)
def test_failure_is_a_status(field, history, lag, mesh, status):
    solution = fc.solve_dde(
        FIELDS[field], HISTORY[history], 0.0, 3.0, lags=(LAGS[lag],), ts=[1.0, 3.0], mesh=mesh
    )
    assert fc.Status(int(solution.status)).name == status
    assert float(solution.status_time) < 3.0
    assert np.all(np.isfinite(solution.y))
    assert len(solution.message) > 20
    assert status in repr(solution)


def test_ring_grows_to_a_lag_that_grows():
    solution = fc.solve_dde(
        FIELDS["decay"], HISTORY["constant"], 0.0, 3.0, lags=(LAGS["growing"],), mesh=UNIFORM
    )
    assert int(solution.status) == fc.Status.ok
    np.testing.assert_allclose(solution.y[-1], [1.0 - 3.0], rtol=1e-12)  # all from the history


def test_chatter_is_a_status():
    """Two modes that push against each other: the boundary y = 0 is never left."""
    modes = fc.Modes(
        start=lambda t, y, z, p: 0,
        guards=lambda t, y, z, p, mode: jnp.where(mode == 0, y, -y),
        switch=lambda t, y, z, p, mode, hit: (1 - mode, y),
    )
    solution = fc.solve_dde(
        lambda t, y, z, p, mode: jnp.where(mode == 0, -1.0, 1.0)[None],
        HISTORY["constant"],
        0.0,
        3.0,
        lags=(),
        modes=modes,
        ts=[3.0],
        mesh=LOCATED,
    )
    assert fc.Status(int(solution.status)) is fc.Status.event_limit
    np.testing.assert_allclose(solution.status_time, 1.0, atol=1e-6)


def test_dense_output_needs_the_nodes():
    with pytest.raises(ValueError, match="kept its state only at ts"):
        run(UNIFORM, ts=[1.0])(0.5)


# -- Memory: what would not fit is refused with advice, before anything is allocated
def one(t, p):
    return 1.0


def lag(t, y, p):
    return 1.0


def run(mesh, end=10.0, **options):
    return fc.solve_dde(FIELDS["decay"], one, 0.0, end, lags=(lag,), mesh=mesh, **options)


@pytest.mark.parametrize(
    ("mesh", "end", "said"),
    [
        (fc.Uniform(0.1, slots=1 << 44), 1e12, "17592186044416 nodes x 1 numbers"),
        (fc.Uniform(1e-13), 10.0, "nodes x 1 numbers for 1 trajectories side by side"),
        (fc.Uniform(0.1), 1e12, "10000000000001 saved times"),
        (fc.Located(0.1, max_steps=(1 << 44) - 3), 10.0, "17592186044416 nodes x 1 numbers"),
    ],
)
def test_what_does_not_fit_is_refused(mesh, end, said):
    with pytest.raises(ValueError, match=said) as caught:
        run(mesh, end)
    assert "of memory, and there are " in str(caught.value)


def test_a_ring_is_no_longer_than_the_run():
    """History of 2^44 nodes is asked for, and 100 are made."""
    assert run(fc.Uniform(0.1, slots=1 << 44)).status == fc.Status.ok


def test_a_buffer_that_bounds_no_round_trip_in_memory():
    net = fc.replace(fc.load("misra2003/mixed"), {"links.bottleneck.buffer": 1e16})
    with pytest.raises(ValueError, match="a smaller buffer"):
        fc.simulate(net, until=1e9, mesh=fc.model.network_mesh.uniform_mesh(net))


# -- Jumps that nothing declares are crossed within the tolerance, or the run ends and tells when
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
    assert "solve_dde takes a switch as modes, and a jump at the start as y0" in found.message
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
