"""Every way to fail is a status with advice; wrong calls raise one clear error."""

import jax.numpy as jnp
import numpy as np
import pytest

import fluidcc as fc

HISTORY = {"constant": lambda t, p: jnp.ones(1), "short": lambda t, p: jnp.sqrt(t + 0.5)[None]}
FIELDS = {
    "decay": lambda t, y, z, p: -z[0],
    "blow_up": lambda t, y, z, p: y * y * y + 0.0 * z[0],
}
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


def call(**changes):
    arguments = {
        "field": FIELDS["decay"],
        "history": HISTORY["constant"],
        "t0": 0.0,
        "t1": 3.0,
        "lags": (LAGS["one"],),
        **changes,
    }
    return fc.solve_dde(**arguments)


def test_dense_output_needs_the_nodes():
    with pytest.raises(ValueError, match="kept its state only at ts"):
        call(ts=[1.0], mesh=UNIFORM)(0.5)
