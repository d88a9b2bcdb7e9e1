"""Runs over seeds: results, intervals, faults, interruption."""

import dataclasses
import gc
import json
import math
import tracemalloc
from typing import ClassVar

import numpy as np
import pytest
from packet_cases import CASES, chain, dumbbell, finished, flows, red
from scipy import stats

from fluidcc.laws.law import AbstractQueueLaw, Signal
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.reaction import PerMark
from fluidcc.laws.window.ecn_mod import ECNMod
from fluidcc.laws.window.newreno import NewReno
from fluidcc.packets import run
from fluidcc.packets.engine import records
from fluidcc.packets.entry import entry_points
from fluidcc.packets.layout.build import Simulation
from fluidcc.packets.layout.plan import PacketError, plan
from fluidcc.packets.run import simulate_packets
from fluidcc.quantities import units


@pytest.fixture(scope="module")
def runs():
    return simulate_packets(chain(), until=20.0, warmup=4.0, seeds=(1, 2, 3))


def test_results_are_plain_data_in_the_agreed_form(runs):
    data = json.loads(json.dumps(runs.to_dict(), allow_nan=False))
    assert [r["seed"] for r in data["runs"]] == [1, 2, 3]
    for part in (*data["runs"], data["mean"], data["ci95"]):
        assert set(part["links"]) == {"first", "second"}
        assert set(part["flows"]) == {"both", "one", "two"}
        metrics = {m for m in units("packets", "links") if "voice" not in m and "left" not in m}
        assert set(part["links"]["first"]) == metrics
        assert set(part["flows"]["one"]) <= set(units("packets", "flows"))
    assert len(data["mean"]["flows"]["both"]["goodput_flows"]) == 3


def test_mean_and_interval_are_those_of_student(runs):
    values = [r["links"]["first"]["queue_mean"] for r in runs.runs]
    assert runs.mean["links"]["first"]["queue_mean"] == pytest.approx(np.mean(values), rel=1e-12)
    low, high = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    assert runs.ci95["links"]["first"]["queue_mean"] == pytest.approx((high - low) / 2, rel=1e-9)


def test_dataset_has_units_and_labels(runs):
    data = runs.to_dataset()
    assert (
        data["link_queue_mean"].sel(seed=2, link="second").item()
        == (runs.runs[1]["links"]["second"]["queue_mean"])
    )
    assert data["link_queue_var"].attrs["units"] == "packet^2"
    assert dict(data.sizes) == {"seed": 3, "link": 2, "group": 3, "flow": 8}


def test_one_long_run_has_an_interval_from_its_parts():
    """Batch means of one run cover what independent seeds say."""
    net = CASES["ecn"]
    one = simulate_packets(net, until=400.0, warmup=20.0, seeds=(7,))
    many = simulate_packets(net, until=400.0, warmup=20.0, seeds=range(20, 32))
    for name in ("queue_mean", "mark_fraction"):
        width = one.ci95["links"]["bottleneck"][name]
        spread = many.ci95["links"]["bottleneck"][name] * math.sqrt(12)
        assert 0.3 < width / spread < 3.0
    assert math.isnan(one.ci95["links"]["bottleneck"]["queue_max"])
    assert one.to_dict()["ci95"]["links"]["bottleneck"]["queue_max"] is None


def test_repr_shows_values_with_intervals_and_units(runs):
    text = repr(runs)
    assert "first" in text and "two" in text
    assert "goodput" in text and "bit/s" in text and "±" in text


def test_progress_ends_at_one():
    seen = []
    simulate_packets(CASES["ecn"], until=20.0, seeds=(1, 2), progress=seen.append)
    assert seen[-1] == 1.0
    assert all(0 <= f <= 1 for f in seen)


def test_an_interrupt_keeps_what_is_finished():
    net = dumbbell(flows(25), red())

    def interrupt(fraction):
        if fraction > 0.3:
            raise KeyboardInterrupt

    runs = simulate_packets(net, until=2000.0, seeds=range(8), threads=1, progress=interrupt)
    assert runs.status == "interrupted"
    assert runs.seeds + runs.missing == tuple(range(8))
    assert str(list(runs.missing)) in runs.message
    whole = simulate_packets(net, until=2000.0, seeds=runs.seeds[:1])
    assert whole.runs[0] == runs.runs[0]


def test_pool_and_rings_grow_when_an_estimate_was_too_small(monkeypatch):
    """Slow start without end over a queue without end."""
    endless = flows(1, window=NewReno())
    net = dumbbell(endless, Droptail(), buffer=float("inf"))
    link = simulate_packets(net, until=30.0).runs[0]["links"]["bottleneck"]
    assert link["queue_max"] > 10_000
    assert link["drops"] == 0
    monkeypatch.setattr(run, "_LARGEST", 1)
    with pytest.raises(PacketError, match=r"give the .* a finite buffer|give the window law a max"):
        simulate_packets(net, until=30.0)


class Broken(AbstractQueueLaw):
    """Says what is no probability."""

    name: ClassVar[str] = "broken"
    source: ClassVar[str] = "test"

    def signal(self, x, seen):
        return Signal(mark=(seen.queue - 3) ** 0.5 * (seen.queue - 3) ** 0.5 + 4)

    def chance(self, x, seen, gap):
        return (seen.queue - 3) ** 0.5


def test_a_law_that_gives_no_number_is_named():
    with pytest.raises(PacketError, match="seed 1: a law gave"):
        simulate_packets(dumbbell(flows(3), Broken()), until=20.0)


def test_a_window_beyond_all_measure_ends_a_run(monkeypatch):
    """Not one event that sends a billion packets, which no interrupt could end."""
    monkeypatch.setattr(run, "_LARGEST", 1)
    wild = flows(1, window=ECNMod(c1=1e9, max_window=float("inf")), reaction=PerMark())
    with pytest.raises(PacketError, match=r"a max_window|a finite buffer"):
        simulate_packets(dumbbell(wild, Droptail(), buffer=50.0), until=20.0)


def test_sequence_numbers_end_with_a_status():
    """A flow whose numbers are shifted close to the last one; they do not wrap."""
    simulation = finished(dumbbell(flows(1), Droptail(), buffer=50.0), 20.0)
    advance, _ = entry_points()
    flow, shift = simulation.flows[0], records.UNLIMITED - int(simulation.flows[0]["acked"]) - 300
    for name in ("next_sequence", "highest_sent", "acked", "recover", "timed_sequence"):
        flow[name] += shift
    simulation.receivers[0]["expected"] += shift
    simulation.packets["sequence"] += shift
    status = advance(simulation.address, 100.0, 10_000_000)
    assert status == records.TOO_MANY_PACKETS
    assert flow["highest_sent"] == records.UNLIMITED - 1


def _with(**changes):
    return dataclasses.replace(flows(2), **changes)


@pytest.mark.parametrize(
    ("net", "options", "said"),
    [
        (CASES["ecn"], {"until": 1.0, "warmup": 1.0}, "0 <= warmup < until"),
        (CASES["ecn"], {"until": float("inf")}, "0 <= warmup < until"),
        (CASES["ecn"], {"until": 1e301}, "0 <= warmup < until"),
        (CASES["ecn"], {"until": "5"}, r"0 <= warmup < until.*got 0\.0 and '5'"),
        (CASES["ecn"], {"until": 5.0, "warmup": None}, "0 <= warmup < until.*got None and"),
        (CASES["ecn"], {"until": 1.0, "seeds": ()}, "seeds: expected different whole numbers"),
        (CASES["ecn"], {"until": 1.0, "seeds": (1, 1)}, "seeds: expected different"),
        (CASES["ecn"], {"until": 1.0, "threads": 0}, "threads: expected at least 1"),
        (dumbbell(_with(n=np.array([2.5])), red()), {"until": 1.0}, "flows.flows.n: expected"),
        (dumbbell(_with(rtt=np.array([0.02])), red()), {"until": 1.0}, "flows.flows.rtt: expected"),
        (dumbbell(_with(sender=(("tik", 1),)), red()), {"until": 1.0}, "did you mean 'tick'"),
        (dumbbell(flows(2), red(), packet_size=10.5), {"until": 1.0}, "packet_size in B"),
        (
            dumbbell(_with(window=NewReno(max_window=0.5)), red()),
            {"until": 1.0},
            "window.max_window: expected at least 1",
        ),
    ],
)
def test_faults_are_named(net, options, said):
    with pytest.raises(PacketError if "tick" not in said else ValueError, match=said):
        simulate_packets(net, **options)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"capacity": 1.25e9, "buffer": float("inf")}, r"would take 1.\de\+10 bytes: more packets"),
        ({"capacity": 1e300}, "would take .* bytes: more packets are under way than any estimate"),
        ({"packet_size": 1e10}, "packet_size in B: expected at most 10000000, got 1e"),
    ],
)
def test_networks_that_fit_no_memory_are_refused(changes, says):
    net = dumbbell(flows(1, window=NewReno()), Droptail(), **changes)
    with pytest.raises(PacketError, match=says):
        simulate_packets(net, until=1.0)


def test_memory_that_is_not_there_is_a_clear_error(monkeypatch):
    def full(*args):
        raise MemoryError

    monkeypatch.setattr(run, "Simulation", full)
    with pytest.raises(PacketError, match="seed 1: no memory is left: more packets"):
        simulate_packets(CASES["ecn"], until=1.0)


def test_runs_hold_no_more_memory_together_than_is_free(monkeypatch):
    """Those that have no room wait until others have ended, whose arrays go at once."""
    net = dumbbell(flows(1, window=NewReno()), Droptail(), capacity=1e6, buffer=1e5)
    alone = simulate_packets(net, until=4.0, seeds=(1, 2, 3)).to_dict()
    one = Simulation(plan(net), 1, True).nbytes
    assert one > 1e7
    monkeypatch.setattr("fluidcc.memory._of_machine", lambda: 1.5 * one)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        together = simulate_packets(net, until=4.0, seeds=(1, 2, 3), threads=3)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert together.to_dict() == alone
    assert peak < 1.9 * one
    monkeypatch.setattr("fluidcc.memory._of_machine", lambda: 0.5 * one)
    with pytest.raises(PacketError, match=r"would take .* of memory, and .* are free"):
        simulate_packets(net, until=0.2)
