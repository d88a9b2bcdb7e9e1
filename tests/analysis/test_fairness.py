"""Gain and loss of throughput against closed forms."""

import numpy as np
import pytest
from scipy import stats

from fluidcc.analysis.equilibrium import equilibrium
from fluidcc.laws.feedback.loss import Loss
from fluidcc.laws.loss import HalveOnly
from fluidcc.laws.queue.red import RED
from fluidcc.laws.reaction import PerMark
from fluidcc.laws.window.reno import Reno
from fluidcc.packets.accounts.results import PacketRuns
from fluidcc.results.fairness import gain_and_loss, throughputs
from fluidcc.scenario.network import Flows, Link, Network


def pair(short=0.1):
    """Two classes of TCP; by W = sqrt(2/l) their rates are as 1/R."""
    link = Link(RED(min_th=10.0, max_th=400.0, p_max=0.5), capacity=1000.0, buffer=500.0)
    parts = {"reaction": PerMark(), "feedback": Loss(), "loss": HalveOnly()}
    groups = tuple(Flows(Reno(), n=np.ones(1), rtt=np.array([t]), **parts) for t in (short, 0.1))
    return Network((link,), groups, flow_names=("short", "long"))


def test_a_short_round_trip_gains_what_it_takes():
    baseline, mix = equilibrium(pair()), equilibrium(pair(short=0.01))
    for eq in (baseline, mix):
        assert sum(throughputs(eq).values()) == pytest.approx(1000.0, rel=1e-9)
    assert throughputs(baseline)["short"] == pytest.approx(500.0, rel=1e-9)
    wait = mix.links["bottleneck"].queue / 1000.0
    ratio = (0.1 + wait) / (0.01 + wait)
    out = gain_and_loss(mix, baseline, aggressive="short", other="long")
    assert out.loss == pytest.approx(2 / (1 + ratio), rel=1e-8)
    assert out.gain == pytest.approx(2 * ratio / (1 + ratio), rel=1e-8)


def test_measured_throughputs_do_as_well():
    out = gain_and_loss({"a": 6.0, "b": 2.0}, {"a": 4.0, "b": 4.0}, aggressive="a", other="b")
    assert out[:2] == (1.5, 0.5)


def runs(*goodputs, seeds):
    """Packet runs that differ in their goodputs only."""
    made = [{"flows": {k: {"goodput": v} for k, v in g.items()}, "links": {}} for g in goodputs]
    return PacketRuns.of(seeds, made, made, until=1.0, warmup=0.0)


def test_packet_runs_are_compared_seed_by_seed():
    mix = runs({"a": 6.0, "b": 2.0}, {"a": 5.0, "b": 3.0}, {"a": 8.0, "b": 1.0}, seeds=(1, 2, 3))
    alone = runs({"a": 5.0, "b": 4.0}, {"a": 4.0, "b": 4.0}, seeds=(2, 1))
    out = gain_and_loss(mix, alone, aggressive="a", other="b")
    gains, losses = np.array([1.5, 1.0]), np.array([0.5, 0.75])
    assert out[:2] == pytest.approx((gains.mean(), losses.mean()))
    width = stats.t.ppf(0.975, 1) * np.array([gains.std(ddof=1), losses.std(ddof=1)]) / np.sqrt(2)
    assert out[2:] == pytest.approx(width)
    with pytest.raises(ValueError, match=r"runs of the same seeds, got \(1, 2, 3\) and \(4,\)"):
        gain_and_loss(mix, runs({"a": 1.0, "b": 1.0}, seeds=(4,)), aggressive="a", other="b")
