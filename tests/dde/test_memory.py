"""Memory: what would not fit is refused with advice, before anything is allocated."""

import pytest

import fluidcc as fc


def decay(t, y, z, p):
    return -z[0]


def one(t, p):
    return 1.0


def lag(t, y, p):
    return 1.0


def run(mesh, end=10.0, **options):
    return fc.solve_dde(decay, one, 0.0, end, lags=(lag,), mesh=mesh, **options)


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
