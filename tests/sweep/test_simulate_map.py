"""Trajectories over grids: each is what it is alone, whatever it is stepped beside."""

import dataclasses
import functools
import os
import subprocess
import sys

import numpy as np
import pytest
from sweep_cases import same

import fluidcc as fc
from fluidcc import memory
from fluidcc.model.network_mesh import uniform_mesh
from fluidcc.sweep import job, simulate_map

SLOW = fc.load("hollot2001/slow")
TIMES = np.linspace(0.0, 3.0, 7)
PLANE = {"flow.n": (40.0, 90.0), "link.queue.w_q": (1e-6, 1e-4)}


def agree(found, expected, tolerance):
    """Runs tell the same to a share of the largest number of their kind."""
    assert found.status is expected.status
    assert found.status_time == pytest.approx(expected.status_time, rel=tolerance)
    assert np.array_equal(found.time, expected.time)
    for kind in ("links", "flows"):
        for name, run in getattr(expected, kind).items():
            for field in dataclasses.fields(run):
                known = getattr(run, field.name)
                size = np.max(np.abs(known), initial=1e-3)
                other = getattr(getattr(found, kind)[name], field.name)
                np.testing.assert_allclose(other, known, rtol=0, atol=tolerance * size)


def of_several_trips(net):
    """The network with half of its one group at another round trip."""
    group = net.flows[0]
    n, rtt = np.ravel(group.n), np.ravel(group.rtt)
    group = dataclasses.replace(group, n=np.append(n / 2, n / 2), rtt=np.append(rtt, 1.3 * rtt))
    return dataclasses.replace(net, flows=(group,))


def test_each_is_as_it_is_alone():
    """Two round trips, and calls at random."""
    net, path, steps = of_several_trips(fc.load("misra2003/persistent_mod")), "link.capacity", 200
    step = float(uniform_mesh(net).step)
    mesh, value = fc.Uniform(step), fc.number_at(net, path)
    run = {"until": steps * step, "points": np.linspace(0.0, steps * step, 9), "mesh": mesh}
    values = [value, 1.05 * value, 1.1 * value]
    found = fc.simulate_map(net, {path: values}, **run)
    assert not found.failed and len(found.points) == 3
    windows = []
    for point, own in zip(found.points, values, strict=True):
        alone = fc.simulate(fc.replace(net, {path: own}), **run)
        agree(point.result, alone, 1e-9)
        windows.append(alone.flows[net.flow_names[0]].window)
    assert not np.array_equal(windows[0], windows[2])


def test_structures_differ_and_single_points_fail():
    over = {"model.rates": ["ack", "self_clocked"], "flow.n": (40, -1), "flow.start": (0.0, 0.7)}
    steps = []
    found = fc.simulate_map(SLOW, over, until=3.0, points=TIMES, progress=steps.append)
    verb = functools.partial(fc.simulate, until=3.0, points=TIMES, mesh=fc.Uniform())
    expected = fc.sweep(SLOW, over, verb)
    assert [p.set for p in found.points] == [p.set for p in expected.points]
    assert [p.message for p in found.points] == [p.message for p in expected.points]
    assert len(found.failed) == 5
    assert [(s.done, s.failed) for s in steps] == [(5, 5), (6, 5), (7, 5), (8, 5)]
    for point, other in zip(found.points, expected.points, strict=True):
        if other.result is not None:
            agree(point.result, other.result, 2e-3)  # shorter steps


def test_more_networks_than_a_launch_has_and_kernels(monkeypatch):
    monkeypatch.setattr(simulate_map, "_ON_PROCESSOR", 4)
    values = np.linspace(40.0, 90.0, 6)
    found, fused = (
        fc.simulate_map(SLOW, {"flow.n": values}, until=3.0, points=TIMES, mesh=mesh)
        for mesh in (None, fc.Uniform(fused=True))
    )
    run = {"until": 3.0, "points": TIMES, "mesh": fc.Uniform(2.0**-7.5)}
    for k, (point, other) in enumerate(zip(found.points, fused.points, strict=True)):
        assert point.set == {"flow.n": values[k]}
        agree(point.result, fc.simulate(fc.replace(SLOW, point.set), **run), 1e-9)
        agree(other.result, point.result, 1e-9)


@pytest.mark.parametrize("fit", [2e5, 1e5])
def test_what_does_not_fit_together_runs_alone_or_fails_alone(monkeypatch, fit):
    """Histories of 128 nodes, and of 1024, as the run is short, where the buffer is large."""
    over = {"link.buffer": [800.0, 1e6], "flow.n": [50.0, 60.0]}
    run = functools.partial(fc.simulate_map, SLOW, over, until=3.0, points=TIMES)
    whole = run()
    monkeypatch.setattr(memory, "_memory", lambda device: fit)
    found = run()
    assert len(whole.points) == len(found.points) == 4 and not whole.failed
    for point, other in zip(found.points, whole.points, strict=True):
        if fit == 2e5 or point.set["link.buffer"] == 800.0:
            agree(point.result, other.result, 1e-9)
        else:
            assert point.result is None
            assert "x 4 numbers for 1 trajectories side by side" in point.message


def test_launches_stay_on_the_device_that_was_chosen():
    """In a process of its own, with two devices; a launch for each 8 networks."""
    code = """
import jax, numpy as np, fluidcc as fc
from fluidcc.sweep import simulate_map
ran, integrate = [], simulate_map.integrate
def watched(*args, **options):
    found = integrate(*args, **options)
    ran.append(found.y.devices())
    return found
simulate_map.integrate = watched
net, there = fc.load("hollot2001/slow"), jax.devices()[1]
over = {"flow.n": np.linspace(40.0, 90.0, 20)}
with jax.default_device(there):
    found = fc.simulate_map(net, over, until=1.0, points=[1.0])
assert not found.failed and len(ran) == 3, ran
assert all(devices == {there} for devices in ran), ran
"""
    several = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | several)


def test_sweeps_keep_blocks_of_them(monkeypatch, tmp_path):
    monkeypatch.setitem(job.GRID_VERBS, "fluidcc.sweep.simulate_map.simulate_map", 2)
    verb = functools.partial(fc.simulate_map, until=3.0, points=TIMES)
    kept = fc.sweep(SLOW, PLANE, verb, folder=tmp_path / "a", workers=0).to_dataset()
    again = fc.sweep(SLOW, PLANE, verb, folder=tmp_path / "a", workers=0).to_dataset()
    same(again, kept)
    whole = verb(SLOW, PLANE).to_dataset()
    assert set(whole.variables) == set(kept.variables)
    assert whole.sizes == kept.sizes
    for name in ("bottleneck.queue", "tcp.window"):
        assert kept[name].attrs == whole[name].attrs
        np.testing.assert_allclose(kept[name].values, whole[name].values, rtol=1e-9)
    assert set(kept["status"].values.ravel()) == {"ok"}
