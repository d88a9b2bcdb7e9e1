"""Single precision: sums are compensated, and what it is not for is refused."""

import jax.numpy as jnp
import numpy as np
import pytest

import fluidcc as fc


def slow(t, y, z, p):
    """A filter whose rise in a step lies below the last digit of its state."""
    return p["pole"] * (200.0 - z[0])


def hundred(t, p):
    return 100.0


def lag(t, y, p):
    return p["lag"]


@pytest.mark.parametrize("batched", [False, True])
def test_compensated_sums_keep_a_slow_filter_going(batched):
    shape = (5,) if batched else ()
    p = {"pole": jnp.full(shape, 1e-6), "lag": jnp.full(shape, 0.5)}

    def states(single):
        mesh = fc.Uniform(0.01, slots=64, single=single)
        options = {"lags": (lag,), "params": p, "ts": [100.0], "mesh": mesh, "batched": batched}
        return np.asarray(fc.solve_dde(slow, hundred, 0.0, 100.0, **options).y)

    found = states(True)
    assert found.dtype == np.float64
    # without compensation the state stays at 100
    np.testing.assert_allclose(found - 100.0, 100.0 * -np.expm1(-1e-4), rtol=5e-3)
    np.testing.assert_allclose(found, states(False), rtol=2e-7)


def test_not_for_inputs_and_networks():
    inputs = fc.Sampled(times=[0.5], values=[0.0, 1.0])
    mesh = fc.Uniform(0.01, single=True)
    with pytest.raises(ValueError, match="leave single out"):
        fc.solve_dde(
            lambda t, y, z, p, u: u(t) - z[0], lambda t, p: 1.0, 0.0, 1.0,
            lags=(lambda t, y, p: 0.5,), inputs=inputs, mesh=mesh,
        )  # fmt: skip
    with pytest.raises(ValueError, match="or a network"):
        fc.simulate(fc.load("hollot2001/slow"), until=0.1, mesh=mesh)
