"""TCP Prague: rounds of 25 ms at least, rates that do not depend on shorter round trips."""

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.laws import AbstractReaction, Ack, Prague, Shares

TARGET = 0.025  # s: draft-briscoe-iccrg-prague-congestion-control-04, section 2.4.4


def test_mean_rates_below_the_target_do_not_depend_on_the_round_trip():
    """Marks in a round, y = p x max(R, T), obey y (1 - (1 - p)^(y/p)) = 2 (1 - p)."""
    prague = fc.equilibrium(fc.load("prague2024/round_trips")).flows["prague"]
    near, middle, far = prague.rate * np.maximum(prague.rtt, TARGET)
    p = float(prague.mark_probability[0])
    y = p * near
    assert -y * np.expm1(y / p * np.log1p(-p)) == pytest.approx(2 * (1 - p), rel=1e-6)
    assert (middle, far) == pytest.approx((near, near), rel=1e-3)


@pytest.mark.parametrize("run", [fc.simulate_packets, fc.simulate_trains])
def test_flows_of_5_and_of_25_ms_share_equally(run):
    """And those of 50 ms have half of it: as the inverse of the round trip beyond the target."""
    runs = run(fc.load("prague2024/round_trips"), until=60, warmup=20, seeds=(1, 2))
    goodput = runs.to_xarray().flow_goodput.mean("seed").values.reshape(3, 2).mean(axis=1)
    near, middle, far = goodput  # the queue adds 0.9 ms
    assert near / middle == pytest.approx(1.0, abs=0.07)
    assert middle / far == pytest.approx(50.9 / 25.9, abs=0.14)


def test_rounds_last_25_ms_at_least():
    law = Prague()
    s = law.state_of(20.0, 0.2)
    for rtt in (0.005, 0.0125, 0.025, 0.1):
        share = min(rtt / TARGET, 1.0)
        ack = Ack(1.0, 0.0, rtt, marked=1.0)
        assert law.on_ack(s, ack).window == pytest.approx(share**2 / 20)
        left = 0.8 * (15 / 16) ** (share / 20)
        assert law.observe(s, ack).alpha == pytest.approx(0.8 - left)
    assert law.on_mark(s, ack).window == pytest.approx(-2.0)
    assert law.on_loss(s, ack).window == pytest.approx(-10.0)


def test_packets_react_once_in_25_ms():
    """Eight of the smallest windows keep the queue above the step: all packets are marked, and
    an ACK, of which two come in 4 ms, cuts the window as soon as the last cut is 25 ms old.
    """
    marked = {
        "link.capacity": 4000, "link.queue.at": "0.5 ms", "flow.n": 8, "flow.rtt": "2 ms",
        "flow.sender.syn": False,  # they carry no marks, and would be lost
    }  # fmt: skip
    net = fc.replace(fc.load("prague2024/step"), marked)
    runs = fc.simulate_packets(net, until=20, warmup=10, seeds=[1]).to_dict()["mean"]
    assert runs["links"]["bottleneck"]["mark_fraction"] == 1
    cuts = runs["flows"]["prague"]["window_reductions"] / 8
    assert 10 / (TARGET + 0.004) < cuts <= 10 / TARGET


@pytest.mark.parametrize("other", ["cubic", "newreno"])
def test_prague_shares_alike_with_coupled_classic_senders(other):
    """RFC 9332, section 2.1: rates are roughly equal at k = 2."""
    net = fc.replace(fc.load("prague2024/coupled"), {"flows.cubic.window.law": other})
    goodput = fc.simulate_packets(net, until=60, warmup=20, seeds=(1, 2)).to_dict()["mean"]["flows"]
    ratio = goodput["prague"]["goodput"] / goodput["cubic"]["goodput"]
    assert ratio == pytest.approx(1.0, abs=0.25)


def test_own_reactions_have_the_round_trip():
    class Spaced(AbstractReaction):
        name = "spaced"
        source = "test"

        def shares(self, p, w):
            return Shares(1.0, p)

        def ready(self, since):
            return 1

        def growing(self, since, marked):
            return 1

    with pytest.raises(fc.ScenarioError, match=r"a method shares\(self, p, w, rtt\)"):
        fc.register(Spaced)
