"""What flows have in flight against what their windows hold."""

import numpy as np
import pytest

from fluidcc.laws.queue.avq import AVQ
from fluidcc.laws.reaction import OncePerRTT
from fluidcc.laws.window.reno import Reno
from fluidcc.model.runs import excess_in_flight
from fluidcc.model.simulate import simulate
from fluidcc.scenario.network import Flows, Link, Network

TIME = np.linspace(0.0, 40.0, 4001)


def waves(factor: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Window, rate and round trip of two classes; the second has `factor` times its window."""
    window = 10 + 3 * np.sin(2 * np.pi * TIME)[:, None] * np.ones(2)
    rtt = np.array([0.1, 0.2]) + 0.01 * np.cos(TIME)[:, None]
    return window, np.array([1.0, factor]) * window / rtt, rtt


@pytest.mark.parametrize(("factor", "excess"), [(1.0, None), (1.05, None), (1.3, 0.3), (0.5, -0.5)])
def test_excess_is_that_of_the_class_furthest_off(factor, excess):
    found = excess_in_flight(TIME, *waves(factor))
    assert found == (None if excess is None else pytest.approx(excess, rel=1e-12))


def test_short_or_sparse_runs_say_nothing():
    window, rate, rtt = waves(2.0)
    assert excess_in_flight(TIME[::100], window[::100], rate[::100], rtt[::100]) is None
    assert excess_in_flight(TIME / 20, window, rate, rtt) is None


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
