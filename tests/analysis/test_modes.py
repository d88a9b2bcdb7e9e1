"""Trajectories that begin on the mode of a root stay on it."""

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.analysis.modes import follow_mode

AVQ = """
[links.b]
capacity = 1250
packet_size = 1000
buffer = 100
queue = { law = "avq" }

[flows.f]
n = 20
rtt = 0.08
access_delay = 0.001
window = { law = "reno", reaction = "once_per_rtt" }
"""
CASES = {
    "RED": lambda: fc.load("hollot2001/slow"),
    "RED, delays by queues on the way": lambda: fc.replace(
        fc.load("hollot2001/slow"), {"model.delay": "fifo"}
    ),
    "growing": lambda: fc.load("hollot2001/fast"),
    # Kunniyur and Srikant (2001), their link and gains
    "AVQ": lambda: fc.loads(AVQ),
}


def _above(found):
    """The proven roots of a stability, one of each pair."""
    return [root for root in found.roots[: found.proven] if root.imag >= 0]


@pytest.mark.parametrize("case", CASES)
def test_the_moving_model_stays_on_the_modes_of_its_roots(case):
    found = fc.stability(CASES[case]())
    assert found.proven > 1 and found.stable is (case != "growing")
    for root, error in zip(_above(found)[:2], (1e-4, 1e-3), strict=True):
        run = follow_mode(found.equilibrium, found.linear, root)
        assert run.status is fc.Status.ok and run.error < error
        size = np.abs(run.mode)
        assert size[-1].max() / size[0].max() == pytest.approx(np.exp(root.real * run.times[-1]))


def test_avq_comes_back_to_its_rest_at_the_rate_of_its_rightmost_root():
    """The virtual rate is the slow number, as Kunniyur and Srikant have it."""
    found = fc.stability(CASES["AVQ"]())
    assert found.unstable == 0 and found.rightmost.imag == 0
    run = follow_mode(found.equilibrium, found.linear, found.rightmost)
    away = np.abs(run.away[:, -1])
    rate = np.polyfit(run.times, np.log(away), 1)[0]
    assert rate == pytest.approx(found.rightmost.real, rel=1e-4)
