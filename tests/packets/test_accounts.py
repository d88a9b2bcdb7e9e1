"""Nothing gets lost: packets, their order, and the accounts of ports and flows."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from packet_cases import CASES, both_ways, conserved, dumbbell, finished, flows

from fluidcc import simulate_packets
from fluidcc.laws import Droptail, Loss, NewReno
from fluidcc.scenario.network import Start


@pytest.mark.parametrize("name", CASES)
def test_packets_are_conserved(name):
    conserved(finished(CASES[name], 20.0))


def test_a_single_packet_under_way_meets_no_queue():
    group = flows(1, window=NewReno(max_window=1.0), start=Start())
    net = dumbbell(group, Droptail())
    runs = simulate_packets(net, until=30.0, warmup=5.0)
    flow, link = runs.runs[0]["flows"]["flows"], runs.runs[0]["links"]["bottleneck"]
    service = 1 / 12500 + 1 / 1250
    assert flow["delay_mean"] == pytest.approx(0.0021 + 0.0213 + service, rel=1e-9)
    assert flow["delay_jitter"] < 1e-7
    assert flow["rtt_mean"] == pytest.approx(0.0831 + service, rel=1e-9)
    assert link["queue_max"] == 0 and link["number_in_system_max"] == 1
    assert link["number_in_system_mean"] == pytest.approx(link["utilization"], rel=1e-12)
    assert link["number_in_system_var"] == pytest.approx(
        link["utilization"] * (1 - link["utilization"]), rel=1e-9
    )
    # one packet a round trip, within the one that is under way
    assert flow["goodput"] * 25.0 / 8000 == pytest.approx(25.0 / (0.0831 + service), abs=1.0)


def test_a_full_window_keeps_the_link_busy_and_the_queue_constant():
    group = flows(1, window=NewReno(max_window=150.0), start=Start(), feedback=Loss())
    net = dumbbell(group, Droptail(), buffer=float("inf"))
    run = simulate_packets(net, until=30.0, warmup=10.0).runs[0]
    link, flow = run["links"]["bottleneck"], run["flows"]["flows"]
    assert link["utilization"] == 1.0
    # Little's law over the round trip: window = rate x round trip
    assert flow["rtt_mean"] == pytest.approx(150.0 / 1250.0, rel=1e-9)
    assert flow["window_mean"] == pytest.approx(150.0, rel=1e-12)
    without_queue = 0.0831 + 1 / 12500 + 1 / 1250
    assert link["queue_mean"] == pytest.approx(150.0 - 1250.0 * without_queue, abs=1.0)
    assert link["queue_var"] < 1.0


def test_lost_acknowledgements_are_a_metric():
    """They are drops of the link back beside the data that it drops."""
    net = both_ways()
    run, simulation = simulate_packets(net, until=30.0).runs[0], finished(net, 30.0)
    lost = {name: group["acks_lost"] for name, group in run["flows"].items()}
    assert lost["a"] > 20
    assert sum(lost.values()) == simulation.flows["acks_lost"].sum()
    data = sum(group["loss_fraction"] * group["sent"] for group in run["flows"].values())
    drops = sum(link["drops"] for link in run["links"].values())
    assert sum(lost.values()) + data == pytest.approx(drops, rel=1e-12)


# -- Bit identity: with and without elision, threads and compilation
SHORT = {"until": 3.0, "warmup": 1.0}


@pytest.mark.parametrize("name", CASES)
def test_elision_changes_nothing(name):
    runs = [
        simulate_packets(CASES[name], until=30.0, warmup=3.0, seeds=(5, 9), elide=elide).to_dict()
        for elide in (True, False)
    ]
    assert runs[0] == runs[1]


@pytest.mark.parametrize("name", ["loss", "chain", "front", "reverse", "sack_ecn", "sessions"])
def test_threads_and_order_change_nothing(name):
    net = CASES[name]
    serial = simulate_packets(net, until=20.0, seeds=range(6), threads=1)
    for threads in (2, 4):
        shuffled = simulate_packets(net, until=20.0, seeds=(4, 2, 5, 0, 1, 3), threads=threads)
        by_seed = {
            seed: run for seed, run in zip(shuffled.seeds, shuffled.to_dict()["runs"], strict=True)
        }
        assert all(
            json.dumps(by_seed[s]) == json.dumps(run)
            for s, run in zip(serial.seeds, serial.to_dict()["runs"], strict=True)
        )
    assert len({json.dumps(run["flows"]) for run in serial.to_dict()["runs"]}) > 1


def _short_runs() -> str:
    results = {name: simulate_packets(net, **SHORT).to_dict() for name, net in CASES.items()}
    return json.dumps(results)


def test_compiled_code_does_what_plain_python_does():
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    script = "import test_accounts; print(test_accounts._short_runs())"
    plain = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=Path(__file__).parent,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(plain.stdout) == json.loads(_short_runs())
