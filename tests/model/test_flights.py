"""What flows have in flight against what their windows hold."""

import numpy as np
import pytest

from fluidcc.laws.queue.avq import AVQ
from fluidcc.laws.reaction import OncePerRTT
from fluidcc.laws.window.reno import Reno
from fluidcc.model.simulate import simulate
from fluidcc.scenario.network import Flows, Link, Network


@pytest.mark.parametrize(("delay", "kept"), [("explicit", False), ("fifo", True)])
def test_self_clocked_flights_are_kept_by_the_fifo_clock(delay, kept):
    """The pace of the ACKs is the derivative of the round trip under `fifo` alone."""
    flows = Flows(
        Reno(), n=np.array([10.0, 10.0]), rtt=np.array([0.05, 0.11]), reaction=OncePerRTT(),
        access_delay=0.001,
    )  # fmt: skip
    link = Link(AVQ(), capacity=1250.0, buffer=100.0)
    run = simulate(Network((link,), (flows,), rates="self_clocked", delay=delay), until=12.0)
    assert ("more in flight than their windows; use model.delay" in run.message) == (not kept)
    flow, late = run.flows["flows"], run.time > 6
    excess = np.mean((flow.rate * flow.rtt)[late], axis=0) / np.mean(flow.window[late], axis=0) - 1
    assert np.max(np.abs(excess)) < 0.05 if kept else np.min(excess) > 0.5
