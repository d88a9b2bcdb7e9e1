"""Runs are done once, kept, and taken up again after whatever ended them."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.bundled.validation.lab.lab import Lab
from fluidcc.bundled.validation.lab.store import Store
from fluidcc.folders import UNFINISHED

NAME = "becn/competing_ecn"
POINTS = 9


def kept(folder):
    """The results that a folder holds, by name."""
    files = (file for file in folder.glob("*.json") if not file.name.startswith(UNFINISHED))
    return {file.name: file.read_bytes() for file in files}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of an experiment that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    seen = []
    Lab(Store(folder), "becn", quick=True).perform([NAME], seen.append)
    assert seen == sorted(seen) and seen[-1] == pytest.approx(1.0)
    assert len(kept(folder)) == POINTS
    return folder


def test_runs_are_those_of_the_packet_simulator(whole):
    runs = Lab(Store(whole), "becn", quick=True).packets("competing_ecn")
    experiment = runs.experiment
    alone = fc.simulate_packets(
        experiment.net(2), until=experiment.until, warmup=experiment.warmup, seeds=(1, 2)
    )
    path = "links.bottleneck.queue_mean"
    assert runs.values(path).shape == (POINTS, experiment.seeds)
    expected = [run["links"]["bottleneck"]["queue_mean"] for run in alone.runs]
    np.testing.assert_array_equal(runs.values(path)[2, :2], expected)
    np.testing.assert_array_equal(runs.at(16, path), runs.values(path)[2])
    flows = runs.each("flows.ecn.goodput_flows")
    assert flows[0].shape == (experiment.seeds, 4)
    np.testing.assert_allclose(flows[0].mean(axis=1), runs.at(8, "flows.ecn.goodput"))


def test_what_is_kept_is_not_run_again(whole):
    before = {file: file.stat().st_mtime_ns for file in whole.iterdir()}
    lab = Lab(Store(whole), "becn", quick=True)
    lab.perform([NAME], lambda _: pytest.fail("something was run"))
    lab.packets("competing_ecn")
    assert {file: file.stat().st_mtime_ns for file in whole.iterdir()} == before


def test_an_interrupt_keeps_what_is_finished(whole, tmp_path):
    def stop(share):
        raise KeyboardInterrupt

    lab = Lab(Store(tmp_path), "becn", quick=True)
    with pytest.raises(KeyboardInterrupt):
        lab.perform([NAME], stop)
    assert 0 < len(kept(tmp_path)) < POINTS
    lab.perform([NAME])
    assert kept(tmp_path) == kept(whole)


def test_a_killed_process_and_a_damaged_file_lose_nothing(whole, tmp_path):
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from fluidcc.bundled.validation.lab.lab import Lab\n"
        "from fluidcc.bundled.validation.lab.store import Store\n"
        f"Lab(Store(Path(sys.argv[1])), 'becn', quick=True).perform(['{NAME}'])\n"
    )
    run = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
    while len(kept(tmp_path)) < 2:
        assert run.poll() is None
        time.sleep(0.02)
    run.send_signal(signal.SIGKILL)
    run.wait()
    damaged = tmp_path / min(kept(tmp_path))
    damaged.write_bytes(damaged.read_bytes()[:100])
    lab = Lab(Store(tmp_path), "becn", quick=True)
    lab.perform([NAME])
    lab.packets("competing_ecn")
    assert kept(tmp_path) == kept(whole)
