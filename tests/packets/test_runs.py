"""Runs over seeds: results, intervals, faults, interruption."""

import dataclasses
import gc
import math
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from packet_cases import CASES, chain, conserved, dumbbell, flows, red
from scipy import stats

from fluidcc import Network, equilibrium, load, simulate_packets
from fluidcc.laws import Backward, Droptail, Loss, NewReno, Pause, ReceiverWindow
from fluidcc.laws.parameters import infos
from fluidcc.packets.budget import packet_time, trace_size
from fluidcc.packets.build import Simulation
from fluidcc.packets.engine import records as r
from fluidcc.packets.hooks import entry_points
from fluidcc.packets.initial import find_initial
from fluidcc.packets.plan import PacketError, plan
from fluidcc.scenario.sender import PROFILES, SenderOptions, sender_options


@pytest.fixture(scope="module")
def runs():
    return simulate_packets(chain(), until=20.0, warmup=4.0, seeds=(1, 2, 3))


def test_mean_and_interval_are_those_of_student(runs):
    values = [r["links"]["first"]["queue_mean"] for r in runs.runs]
    assert runs.mean["links"]["first"]["queue_mean"] == pytest.approx(np.mean(values), rel=1e-12)
    low, high = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    assert runs.ci95["links"]["first"]["queue_mean"] == pytest.approx((high - low) / 2, rel=1e-9)


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


def _with(**changes):
    return dataclasses.replace(flows(2), **changes)


@pytest.mark.parametrize(
    ("net", "options", "said"),
    [
        (CASES["ecn"], {"until": 1.0, "warmup": 1.0}, "0 <= warmup < until"),
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


# -- Sender options: profiles, faults, and that every one of them does something
# a value other than the default, and what shows its effect: losses, marks, replies that pass links,
# windows that the receiver holds back, delayed ACKs
EFFECTS = {
    "tick": (0.1, "loss"),
    "min_rto": (1.0, "loss"),
    "max_rto": (0.25, "loss"),
    "initial_rto": (0.03, "loss"),
    "initial_window": (10.0, "ecn"),
    "initial_ssthresh": (4.0, "ecn"),
    "syn": (False, "ecn"),
    "syn_size": (900.0, "ecn"),
    "ack_size": (500.0, "back"),
    "quench_size": (1500.0, "back"),
    "dup_acks": (2, "loss"),
    "limited_transmit": (False, "loss"),
    "one_fast_retransmit": (False, "loss"),
    "integer_windows": (True, "ecn"),
    "window_validation": (True, "held"),
    "partial_deflation": (False, "loss"),
    "partial_timer_once": (False, "loss"),
    "recovery_burst": (1, "loss"),
    "recovery": ("reno", "loss"),
    "echo": ("packet", "ecn"),
    "grow_on_echo": (True, "ecn"),
    "overhead": (0.001, "ecn"),
    "delayed_acks": (True, "ecn"),
    "ack_delay": (0.02, "delayed"),
    "byte_counting": (2, "delayed"),
    "choice_waiting": (8, "ecn"),
    "choice_arms": (False, "ecn"),
    "mark_below": (0.02, "ecn"),
}


def _runs(kind, **options):
    sender, given = tuple(options.items()), {}
    if kind == "loss":
        given = {"feedback": Loss()}
    elif kind == "back":
        given = {"feedback": Backward(), "reaction": Pause()}
    elif kind == "delayed":
        sender = (*sender, ("delayed_acks", True))
    elif kind == "held":
        given = {"feedback": ReceiverWindow()}
    group = flows(12, sender=sender, **given)
    net = dumbbell(group, red(), buffer=20.0)
    if kind == "back":  # quenches of the second router and ACKs pass the third link
        first = dataclasses.replace(net.links[0], queue=Droptail(), capacity=2000.0, buffer=500.0)
        links = (first, *net.links, dataclasses.replace(first, capacity=100.0))
        group = dataclasses.replace(group, route=(0, 1), reverse_route=(2,))
        net = Network(links=links, flows=(group,), link_names=("first", "red", "back"))
    return simulate_packets(net, until=30.0).runs


@pytest.fixture(scope="module")
def plain():
    return {kind: _runs(kind) for kind in ("loss", "ecn", "back", "held", "delayed")}


def test_every_option_is_tried():
    assert set(EFFECTS) == set(infos(SenderOptions)) - {"profile"}


@pytest.mark.parametrize("name", EFFECTS)
def test_option_does_something(name, plain):
    value, kind = EFFECTS[name]
    assert getattr(SenderOptions(), name) != value
    assert _runs(kind, **{name: value}) != plain[kind]


def test_a_profile_is_its_options():
    older = sender_options({"profile": "ns-2.1b8a"})
    changed = PROFILES["ns-2.1b8a"]
    assert all(getattr(older, k) == v for k, v in changed.items())
    assert sender_options({"profile": "ns-2.1b8a", "min_rto": 0.5}).min_rto == 0.5
    assert _runs("loss", profile="ns-2.1b8a") == _runs("loss", **changed)


# -- Runs that begin at the equilibrium
def test_runs_from_the_equilibrium_need_no_warm_up():
    net = load("misra2003/mixed")
    seeds = range(5)
    late = simulate_packets(net, until=60.0, warmup=30.0, seeds=seeds)
    begun = simulate_packets(net, until=30.0, seeds=seeds, initial=equilibrium)
    empty = simulate_packets(net, until=30.0, seeds=seeds)
    for name, link in begun.mean["links"].items():
        for metric in ("queue_mean", "utilization", "mark_fraction", "queueing_delay_p95"):
            half = math.hypot(*(r.ci95["links"][name][metric] for r in (late, begun)))
            assert abs(link[metric] - late.mean["links"][name][metric]) < 1.5 * half, metric
        assert link["drops"] == 0 < empty.mean["links"][name]["drops"]
        assert empty.mean["links"][name]["utilization"] < link["utilization"] - 0.02


@pytest.mark.parametrize("name", ["chain", "reverse_route", "dctcp", "reverse"])
def test_runs_from_the_equilibrium_lose_no_packet_and_need_no_hop(name):
    net = CASES[name]
    runs = [
        simulate_packets(net, until=20.0, warmup=2.0, elide=elide, initial=equilibrium).to_dict()
        for elide in (True, False)
    ]
    assert runs[0] == runs[1]
    layout = plan(net)
    simulation = Simulation(layout, 1, True, 8, find_initial(layout, equilibrium))
    advance, _ = entry_points()
    conserved(simulation)
    assert advance(simulation.address, 20.0, 1 << 40) == r.FINISHED
    conserved(simulation)


def test_networks_without_an_equilibrium_cannot_begin_there():
    net = CASES["load_factor"]
    with pytest.raises(PacketError, match=r"initial: flows\.flows know load factors"):
        simulate_packets(net, until=1.0, initial=equilibrium)
    with pytest.raises(PacketError, match=r"initial: expected fluidcc\.equilibrium"):
        simulate_packets(CASES["ecn"], until=1.0, initial=plan)


def test_the_time_of_runs_is_estimated_by_what_links_can_carry():
    net = dumbbell(flows(25), red(), cross=100.0)
    one = packet_time(net, 100.0, 1)
    assert one == pytest.approx(100 * 1250 / 2.5e6)
    assert packet_time(net, 1000.0, 1) == pytest.approx(10 * one)
    slow = dumbbell(flows(1, window=NewReno(max_window=10.0)), red(), cross=100.0)
    assert packet_time(slow, 100.0, 1) < 0.2 * one


@pytest.mark.parametrize(("name", "span"), [("alizadeh2010/dctcp", 0.1), ("misra2003/mixed", 10.0)])
def test_the_size_of_traces_is_estimated(name, span, tmp_path):
    for file in (tmp_path / "trace.csv", tmp_path / "trace.pcap"):
        simulate_packets(load(name), until=span, trace=file)
        about = trace_size(load(name), span, file.suffix == ".pcap")
        assert about == pytest.approx(file.stat().st_size, rel=0.35)


def test_runs_for_which_there_is_no_room_are_refused_before_they_start(tmp_path, monkeypatch):
    net = load("hollot2001/slow")
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=3e9))
    for ending, other in ((".csv", ", or a capture"), (".pcap", "$")):
        says = (
            rf"trace: '.*' would take about .* GB, and 3 GB are free: trace a shorter run.*{other}"
        )
        with pytest.raises(PacketError, match=says):
            simulate_packets(net, until=1e6, trace=tmp_path / f"trace{ending}")
        assert not list(tmp_path.iterdir())
    monkeypatch.setattr("fluidcc.memory._of_machine", lambda: 1e9)
    says = "metrics of 60 flows in 1000000 runs would take 6 GB of memory, and there are 1 GB: take"
    with pytest.raises(PacketError, match=says):
        simulate_packets(net, until=10.0, seeds=range(1_000_000))
