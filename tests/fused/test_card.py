"""Kernels are compiled for a graphics card where there is none, and fit its registers."""

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ONE_TRIP, THREE, MANY = "hollot2001/slow", "TCP/RED, 3 groups", "misra2003/mixed"
TEN_GROUPS = "durresi2001/ten_tail_59ms"
NAMES = ONE_TRIP, THREE, MANY, TEN_GROUPS


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Numbers of the kernels of four networks, as `benchmarks/card.py` finds them."""
    try:
        importlib.metadata.distribution("nvidia-cuda-nvcc")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("no ptxas: uv sync --group card")
    file = tmp_path_factory.mktemp("card") / "numbers.json"
    asked = [sys.executable, "benchmarks/card.py", "--compile", "--half", "kernel"]
    subprocess.run([*asked, "--json", str(file), *NAMES], cwd=ROOT, check=True)
    return {name: halves["kernel"] for name, halves in json.loads(file.read_text()).items()}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_spilled(compiled, name):
    assert compiled[name]["stored"] == compiled[name]["loaded"] == 0
    assert compiled[name]["ptx"] <= 300_000


def test_one_round_trip_leaves_registers_for_sixteen_warps(compiled):
    assert compiled[ONE_TRIP]["registers"] <= 128
