"""Bit identity: with and without elision, threads, compilation, and in any order of seeds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from packet_cases import CASES

from fluidcc.packets.run import simulate_packets

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
    script = "import test_identity; print(test_identity._short_runs())"
    plain = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=Path(__file__).parent,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(plain.stdout) == json.loads(_short_runs())
