"""Steps number by number, as an accelerator takes them, are those on arrays."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.dde.fused import loop
from fluidcc.dde.integrate import integrate
from fluidcc.model.network_mesh import uniform_mesh
from fluidcc.model.network_system import network_system

RUNS, SLOTS, TURNS = 5, 1024, 16

by_numbers = jax.jit(loop.integrate, static_argnames=("system", "slots", "batched", "turns"))


def problem(name, clock="explicit", steps=600):
    """Runs of a network whose numbers differ, on a uniform mesh."""
    net = dataclasses.replace(fc.load(name), delay=clock)
    mesh = uniform_mesh(net)
    mesh = fc.Uniform(float(mesh.step), slots=SLOTS)
    until = steps * mesh.step
    system, y0, numbers = network_system(net, until=until)
    shares = np.linspace(0.9, 1.1, RUNS)
    first = jax.tree.map(lambda v: np.multiply.outer(shares, v), numbers[0])
    return system, np.tile(y0, (RUNS, 1)), type(numbers)(first, *numbers[1:]), mesh, until


def both(system, y0, args, mesh, until, batched=True):
    ts = np.linspace(0.0, until, 9)[1:]
    expected = integrate(system, y0, 0.0, until, args, mesh=mesh, ts=ts, batched=batched)
    found = by_numbers(
        system, y0, jnp.zeros(()), jnp.asarray(until), mesh.step, ts, args, SLOTS, batched, TURNS
    )
    return found, expected


@pytest.mark.parametrize(
    ("name", "clock"), [("hollot2001/slow", "fifo"), ("alizadeh2010/dctcp", "explicit")]
)
def test_networks(name, clock):
    found, expected = both(*problem(name, clock))
    assert np.all(np.asarray(expected.status) == fc.Status.ok)
    for key in ("y", "record"):
        value, right = (np.asarray(getattr(run, key)) for run in (found, expected))
        size = np.maximum(np.max(np.abs(right), axis=(0, 1), keepdims=True), 1e-9)
        np.testing.assert_allclose(value / size, right / size, rtol=0, atol=1e-12)
    for key in ("status", "status_time", "steps"):
        np.testing.assert_array_equal(getattr(found, key), getattr(expected, key))


def test_one_that_fails_leaves_the_others_as_they_are():
    system, y0, args, mesh, until = problem("hollot2001/slow")
    y0[1] = np.nan
    found, expected = both(system, y0, args, mesh, until)
    assert fc.Status(int(expected.status[1])) is fc.Status.nonfinite
    np.testing.assert_array_equal(found.status, expected.status)
    np.testing.assert_array_equal(found.status_time, expected.status_time)
    others = np.delete(np.arange(RUNS), 1)
    right = np.asarray(expected.y)[others]
    assert np.all(np.isfinite(right))
    np.testing.assert_allclose(np.asarray(found.y)[others], right, rtol=1e-9, atol=1e-12)


def test_one_run():
    system, y0, args, mesh, until = problem("hollot2001/slow")
    alone = type(args)(jax.tree.map(lambda v: v[0], args[0]), *args[1:])
    found, expected = both(system, y0[0], alone, mesh, until, batched=False)
    np.testing.assert_allclose(found.y, expected.y, rtol=1e-9, atol=1e-12)
    assert found.steps == expected.steps == 600


def test_many_groups_are_left_to_steps_on_arrays():
    system, y0, args, mesh, until = problem("misra2003/mixed", steps=4)
    with pytest.raises(ValueError, match=f"up to {loop.MOST_OPERATIONS} operations"):
        both(system, y0, args, mesh, until)
