"""Sweeps of the package's own verbs: the same numbers however they are computed."""

import functools

import numpy as np
import pytest
from sweep_cases import NET, OVER, draw, same

import fluidcc as fc
from fluidcc.sweep import job

SLOW = fc.load("hollot2001/slow")
PLANE = {"link.queue.w_q": np.geomspace(1e-5, 1e-3, 6), "flow.n": np.linspace(40.0, 90.5, 5)}


def test_chunks_in_processes_give_what_the_caller_would_get():
    over = {"flow.n": (40, 60, -1), "link.queue.w_q": (1e-5, 1e-4)}
    alone = fc.sweep(SLOW, over, fc.equilibrium)
    data = fc.sweep(SLOW, over, fc.equilibrium, workers=2).to_dataset()
    expected = alone.to_dataset()
    same(data.drop_attrs(deep=False), expected.drop_attrs(deep=False))
    meaning = "packets at the link, with the one in service"
    attributes = {"units": "packet", "long_name": meaning}
    assert data["queue"].attrs == expected["queue"].attrs == attributes
    assert [p.describe() for p in alone.failed] == [
        f"failed at flow.n = -1, link.queue.w_q = {w_q}: replace: flows.tcp.n: expected a value in "
        "(0, inf), got -1" for w_q in over["link.queue.w_q"]
    ]  # fmt: skip


def test_packets_have_the_given_seeds_at_every_point():
    verb = functools.partial(fc.simulate_packets, until=2.0, warmup=0.5, seeds=(3, 1))
    over = {"links.near.delay": (0.005, 0.02)}
    data = fc.sweep(NET, over, verb, workers=0).to_dataset()
    backwards = fc.sweep(NET, {"links.near.delay": (0.02, 0.005)}, verb, workers=0).to_dataset()
    same(data, backwards.isel({"links.near.delay": [1, 0]}))
    for k, delay in enumerate(over["links.near.delay"]):
        runs = verb(fc.replace(NET, {"links.near.delay": delay}))
        whole = runs.to_dataset()
        for name in ("link_utilization", "group_goodput"):
            found = data[name].isel({"links.near.delay": k}).values
            assert np.array_equal(found, whole[name].values), name
    assert data.attrs["seeds"] == "[3, 1]"


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setitem(job.GRID_VERBS, "fluidcc.analysis.stability_map.stability_map", 9)


def test_maps_are_the_same_however_they_are_cut(small_blocks, tmp_path):
    whole = fc.stability_map(SLOW, PLANE)
    assert whole.batched == 30
    in_memory = fc.sweep(SLOW, PLANE, fc.stability_map).to_dataset()

    class Enough(Exception):
        pass

    def stop(progress):
        raise Enough

    with pytest.raises(Enough):
        fc.sweep(SLOW, PLANE, fc.stability_map, folder=tmp_path / "a", workers=0, progress=stop)
    found = fc.sweep(SLOW, PLANE, fc.stability_map, folder=tmp_path / "a", workers=0)
    data = found.to_dataset()
    same(data, in_memory)
    expected = whole.to_dataset()
    for name in ("stable", "unstable", "certified"):
        assert np.array_equal(data[name].values, expected[name].values)
    for name in ("root_real", "root_imag", "bottleneck.queue"):
        assert data[name].values == pytest.approx(expected[name].values, rel=1e-8)
        assert data[name].attrs == expected[name].attrs
    assert not found.failed and "Sweep of 6 x 5 points" in repr(found)


@pytest.mark.parametrize(
    ("verb", "what"),
    [(lambda net: draw(net), "expected a function of a module"),
     (functools.partial(draw, seeds=object()), "expected numbers, text, lists or dataclasses"),
     (functools.partial(isinstance, NET), "expected options by name")],
)  # fmt: skip
def test_verbs_of_no_use_in_chunks_are_refused(verb, what):
    with pytest.raises(ValueError, match=f"verb: {what}"):
        fc.sweep(NET, OVER, verb, workers=1)
