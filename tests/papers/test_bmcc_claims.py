"""Load factors and estimates from samples of packet runs."""

import numpy as np
import pytest

from fluidcc.bundled.validation.lab.experiments import Experiment
from fluidcc.bundled.validation.lab.lab import Lab
from fluidcc.bundled.validation.lab.loads import estimates, load_factors
from fluidcc.bundled.validation.lab.store import Store


def test_estimates_move_to_the_load():
    """From below and from above; (11) marks at once; without packets not at all."""
    loads = np.array([0.5, 0.9, 0.9, 1.3, 1.05, 1.05])
    found = estimates(loads, np.array([0.0, 400.0, 0.0, 1.0, 400.0, 0.0]))
    assert found[0] == 0.15
    assert found[1] == pytest.approx(0.9, abs=0.02) and found[1] <= 0.9
    assert found[2] == found[1]
    assert found[3] == 1.2
    assert found[4] == pytest.approx(1.05, abs=0.02) and found[4] >= 1.05


def test_load_factors_count_what_arrives(tmp_path):
    """Without the part of the queue they add up to the packets that arrived."""
    experiment = Experiment(
        "test", "one flow", "", "", "qazi2010/three_flows", "", ("",), ({},), 10.0, 0.0, 1, 0.05
    )
    lab = Lab(Store(tmp_path), "bmcc")
    lab.experiment = lambda _: experiment
    runs = lab.packets("test")
    times, loads = load_factors(runs)
    assert times[0] == pytest.approx(0.2) and times[-1] == pytest.approx(10.0)
    samples, average = runs.series(0, "link_average", "bottleneck")
    queue = np.interp(times, samples, average)
    arrived = (loads * 12500.0 * 0.2 - 0.75 * queue).sum()
    assert arrived == pytest.approx(runs.values("links.bottleneck.arrivals")[0, 0], rel=2e-3)
