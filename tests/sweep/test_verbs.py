"""Sweeps of the package's own verbs: the same numbers however they are computed."""

import csv
import dataclasses
import functools
import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr
from sweep_cases import NET, OVER, draw, same

import fluidcc as fc
from fluidcc import memory
from fluidcc.model.network_mesh import uniform_mesh
from fluidcc.results.export import write
from fluidcc.sweep import simulate_map
from fluidcc.sweep.grid import GRID_VERBS

SLOW = fc.load("hollot2001/slow")
PLANE = {"link.queue.w_q": np.geomspace(1e-5, 1e-3, 6), "flow.n": np.linspace(40.0, 90.5, 5)}


def test_chunks_in_processes_give_what_the_caller_would_get():
    over = {"flow.n": (40, 60, -1), "link.queue.w_q": (1e-5, 1e-4)}
    alone = fc.sweep(SLOW, over, fc.equilibrium)
    data = fc.sweep(SLOW, over, fc.equilibrium, workers=2).to_xarray()
    expected = alone.to_xarray()
    same(data.drop_attrs(deep=False), expected.drop_attrs(deep=False))
    meaning = "packets at the link, with the one in service"
    attributes = {"units": "packet", "long_name": meaning}
    assert data["queue"].attrs == expected["queue"].attrs == attributes
    assert [found.status for found in alone.reasons] == ["failed", "failed"]
    assert [p.describe() for p in alone.failed] == [
        f"failed at flow.n = -1, link.queue.w_q = {w_q}: replace: flows.tcp.n: expected a value in "
        "(0, inf), got -1" for w_q in over["link.queue.w_q"]
    ]  # fmt: skip


def test_a_saved_sweep_has_the_reasons_and_the_picture_of_the_live_one(tmp_path):
    over = {"flow.n": (40, 60, -1), "link.queue.p_max": (1e-4, 0.1)}
    live = fc.sweep(SLOW, over, fc.stability, workers=0)
    assert live.reasons == fc.sweep(SLOW, over, fc.stability).reasons
    assert [found.status for found in live.reasons] == ["discontinuity"] * 2 + ["failed"] * 2
    live.save(tmp_path / "grid.nc")
    saved = fc.load_result(tmp_path / "grid.nc")
    pictures = [
        [(ax.get_xlabel(), ax.get_ylabel(), [line.get_xydata().tolist() for line in ax.lines])
         for ax in fc.plot(found).axes]
        for found in (live, saved)
    ]  # fmt: skip
    assert repr(pictures[0]) == repr(pictures[1])  # some are NaN


def test_packet_runs_over_a_grid_print_and_draw_their_means_over_seeds():
    runs = functools.partial(fc.simulate_packets, until=2.0, warmup=1.0, seeds=range(1, 6))
    over = {"flow.n": (40, 60)}
    swept, live = (fc.sweep(SLOW, over, runs, **how) for how in ({"workers": 0}, {}))
    first, *_ = (line.split() for line in repr(swept).splitlines() if line.startswith("40"))
    mean = live.points[0].result.mean["links"]["bottleneck"]["utilization"]
    assert first[:3] == ["40", "finished", f"{mean:.5g}"] and first.count("±") == 4
    drawn = {ax.get_ylabel().replace("\n", " ") for ax in swept.plot().axes}
    assert {r"Utilization $\rho$ of bottleneck", "Goodput of tcp [kbit/s]"} <= drawn
    assert "failed" not in repr(swept)


def test_crossings_over_a_grid_are_those_of_its_points():
    verb = functools.partial(fc.crossings, path="link.queue.w_q", low=5e-5, high=5e-4, points=5)
    data = fc.sweep(SLOW, {"flow.n": (50, 60)}, verb, workers=0).to_xarray()
    for n in (50, 60):
        (alone,) = verb(fc.replace(SLOW, {"flow.n": n})).crossings
        here = data.sel({"flow.n": n})
        assert float(here["link.queue.w_q"].squeeze()) == alone.value


def test_packets_have_the_given_seeds_at_every_point():
    verb = functools.partial(fc.simulate_packets, until=2.0, warmup=0.5, seeds=(3, 1))
    over = {"links.near.delay": (0.005, 0.02)}
    data = fc.sweep(NET, over, verb, workers=0).to_xarray()
    backwards = fc.sweep(NET, {"links.near.delay": (0.02, 0.005)}, verb, workers=0).to_xarray()
    same(data, backwards.isel({"links.near.delay": [1, 0]}))
    for k, delay in enumerate(over["links.near.delay"]):
        runs = verb(fc.replace(NET, {"links.near.delay": delay}))
        whole = runs.to_xarray()
        for name in ("link_utilization", "group_goodput"):
            found = data[name].isel({"links.near.delay": k}).values
            assert np.array_equal(found, whole[name].values), name
    assert data.attrs["seeds"] == "[3, 1]"


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setitem(GRID_VERBS, "fluidcc.analysis.stability_map.stability_map", 9)


def test_maps_are_the_same_however_they_are_cut(small_blocks, tmp_path):
    whole = fc.stability_map(SLOW, PLANE)
    assert whole.batched == 30
    in_memory = fc.sweep(SLOW, PLANE, fc.stability_map).to_xarray()

    class Enough(Exception):
        pass

    def stop(progress):
        raise Enough

    with pytest.raises(Enough):
        fc.sweep(SLOW, PLANE, fc.stability_map, folder=tmp_path / "a", workers=0, progress=stop)
    found = fc.sweep(SLOW, PLANE, fc.stability_map, folder=tmp_path / "a", workers=0)
    data = found.to_xarray()
    same(data, in_memory)
    expected = whole.to_xarray()
    for name in ("stable", "unstable", "certified"):
        assert np.array_equal(data[name].values, expected[name].values)
    for name in ("root_real", "root_imag", "links.bottleneck.queue"):
        assert data[name].values == pytest.approx(expected[name].values, rel=1e-8)
        assert data[name].attrs == expected[name].attrs
    assert not found.failed and "30 points" in repr(found)


@pytest.mark.parametrize(
    ("verb", "what"),
    [(lambda net: draw(net), "expected a function of a module"),
     (functools.partial(draw, seeds=object()), "expected numbers, text, lists or dataclasses"),
     (functools.partial(isinstance, NET), "expected options by name")],
)  # fmt: skip
def test_verbs_of_no_use_in_chunks_are_refused(verb, what):
    with pytest.raises(ValueError, match=f"verb: {what}"):
        fc.sweep(NET, OVER, verb, workers=1)


# -- Trajectories over grids: each is what it is alone, whatever it is stepped beside
TIMES = np.linspace(0.0, 3.0, 7)
CORNERS = {"flow.n": (40.0, 90.0), "link.queue.w_q": (1e-6, 1e-4)}


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


NUMBERS = {
    "hollot2001/slow": {
        "link.queue.w_q": [1e-6, 1e-4], "flow.n": [40, 50, 60], "link.capacity": [3750.0, 3800.0],
    },
    "qazi2010/two_bmcc_router": {
        "flows.bmcc.window.kappa_2": [0.35, 0.3], "flows.bmcc.rtt": [0.04, 0.05, 0.06],
        "flows.ahead.n": [1.0, 2.0], "links.bottleneck.queue.t_p": [0.2, 0.1],
    },
}  # fmt: skip
"""Numbers of links, of laws of queues and windows, of flows and of sources that become others."""


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_change_together(name):
    net, run = fc.load(name), {"until": 2.0, "points": [1.0, 2.0], "mesh": fc.Uniform(1e-3)}
    found = fc.simulate_map(net, NUMBERS[name], **run)
    values = itertools.product(*NUMBERS[name].values())
    expected = [dict(zip(NUMBERS[name], each, strict=True)) for each in values]
    assert [dict(p.set) for p in found.points] == expected
    for point in (*found.points[::5], found.points[-1]):
        here = fc.replace(net, point.set)
        assert point.result.net == here
        agree(point.result, fc.simulate(here, **run), 1e-9)


def test_wrong_numbers_fail_alone():
    """One out of its range, and some that do not fit to another."""
    over = {"link.queue.max_th": [400.0, 700.0, 900.0], "link.buffer": [800.0, 1000.0, -5.0, 600.0]}
    found = fc.simulate_map(SLOW, over, until=1.0, points=[1.0])
    expected = fc.sweep(SLOW, over, functools.partial(fc.simulate, until=1.0, points=[1.0]))
    assert [p.message for p in found.points] == [p.message for p in expected.points]
    assert [dict(p.set) for p in found.failed] == [dict(p.set) for p in expected.failed]
    assert "expected less than links.bottleneck.buffer, 600.0 packet" in found.failed[-1].message
    assert 3 < len(found.failed) < 8


def test_structures_differ_and_single_points_fail():
    over = {"model.rates": ["ack", "self_clocked"], "flow.n": (40, -1), "flow.start": (0.0, 0.7)}
    steps = []
    found = fc.simulate_map(SLOW, over, until=3.0, points=TIMES, progress=steps.append)
    verb = functools.partial(fc.simulate, until=3.0, points=TIMES, mesh=fc.Uniform())
    expected = fc.sweep(SLOW, over, verb)
    assert [p.set for p in found.points] == [p.set for p in expected.points]
    assert [p.message for p in found.points] == [p.message for p in expected.points]
    assert len(found.failed) == 5
    counts = [(s.done, s.failed) for s in steps]  # (7, 5) or (6, 5) after the first structure
    assert counts in ([(5, 5), (6, 5), (8, 5)], [(5, 5), (7, 5), (8, 5)])
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
from fluidcc.sweep.grid import GRID_VERBS
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
    monkeypatch.setitem(GRID_VERBS, "fluidcc.sweep.simulate_map.simulate_map", 2)
    verb = functools.partial(fc.simulate_map, until=3.0, points=TIMES)
    kept = fc.sweep(SLOW, CORNERS, verb, folder=tmp_path / "a", workers=0).to_xarray()
    again = fc.sweep(SLOW, CORNERS, verb, folder=tmp_path / "a", workers=0).to_xarray()
    same(again, kept)
    whole = verb(SLOW, CORNERS).to_xarray()
    assert set(whole.variables) == set(kept.variables)
    assert whole.sizes == kept.sizes
    for name in ("links.bottleneck.queue", "flows.tcp.window"):
        assert kept[name].attrs == whole[name].attrs
        np.testing.assert_allclose(kept[name].values, whole[name].values, rtol=1e-9)
    assert set(kept["status"].values.ravel()) == {"ok"}


# -- Grids of parameters: order, failures, labelled arrays, files
GRID = {"flows.tcp.n": [2, 3], "links.near.delay": ["5 ms", 0.007, 0.001]}
DELAYS = [0.005, 0.007, 0.001]


def test_points_come_in_the_order_of_the_grid():
    shares = []
    grid = fc.sweep(NET, GRID, draw, progress=shares.append)
    assert [dict(p.set) for p in grid.points] == [
        {"flows.tcp.n": n, "links.near.delay": d} for n in (2, 3) for d in DELAYS
    ]
    assert shares == [pytest.approx(k / 6) for k in range(1, 7)]
    assert [p.message for p in grid.failed] == ["nothing to draw"]
    assert grid.to_dict()["points"][4]["status"] == "failed"
    assert "failed at flows.tcp.n = 3, links.near.delay = 0.007: nothing to draw" in repr(grid)


def test_files_give_back_the_axes_as_dimensions_and_nan_where_a_point_failed(tmp_path):
    grid = fc.sweep(NET, GRID, draw)
    data, rows = grid.to_xarray(), list(grid.axes)
    assert data["delay"].dims == ("flows.tcp.n", "links.near.delay")
    assert data["links.near.delay"].attrs["units"] == "s"
    known = np.array([DELAYS, [0.005, np.nan, 0.001]])
    assert np.array_equal(data["delay"].values, known, equal_nan=True)
    own = data["value"].isel({"links.near.delay": 0}).values  # two numbers at 2 flows, three at 3
    assert np.array_equal(np.isnan(own), [[False, False, True], [False, False, False]])
    assert data["status"].values.tolist() == [["drawn"] * 3, ["drawn", "failed", "drawn"]]
    assert not {"status", "message"} & set(data.attrs)  # which belong to their points
    write(data, tmp_path / "grid.nc", rows, {"command": "test"})
    with xr.open_dataset(tmp_path / "grid.nc", engine="h5netcdf") as back:
        for name in ("delay", "value"):
            assert np.array_equal(back[name].values, data[name].values, equal_nan=True)
        assert back["value"].attrs["units"] == "s" and back.attrs["command"] == "test"
    write(data, tmp_path / "grid.csv", rows, {"command": "test"})
    lines = (tmp_path / "grid.csv").read_text().splitlines()
    told = [line for line in lines if line.startswith("#")]
    found = list(csv.DictReader(lines[len(told) :]))
    assert "# command: test" in told
    assert [float(r["delay"]) for r in found] == pytest.approx(known.ravel(), nan_ok=True)
    assert float(found[3]["value[2] (s)"]) == own[1, 2] and found[4]["status"] == "failed"
