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


def alone(scenario, rtt, rate):
    """Flows of a rate [Mbit/s] fill 100 Mbit/s, sent as acknowledgements return."""
    return fc.replace(
        fc.load(scenario),
        {
            "link.capacity": "100 Mbit/s", "link.buffer": 10_000, "link.delay": 0.001,
            "flow.n": 100 / rate, "flow.rtt": rtt, "flow.feedback": "mark_tail",
            "flow.window": "prague", "model.rates": "self_clocked",
        },
    )  # fmt: skip


@pytest.mark.parametrize("rate", [1.6, 5.0])
def test_a_rate_without_the_round_trip_makes_the_queue_an_integrator(rate):
    """Windows fill the queue, which lengthens the round trip and no more: with the controller's
    there are two poles at zero, and L tends to -K/w^2, with the gain of Linux, 41/256 in 16 ms.
    """
    net = alone("rfc9332/pi2", 0.005, rate)
    curve = fc.bode(net).curves[0]
    x, trip = rate * 1e6 / 12e3, 0.02
    h = 1e-6

    def drift(p):
        """Growth of the logarithm of a window."""
        return (1 - p) / (x * TARGET**2) - p / (2 * TARGET) * (1 - (1 - p) ** (x * TARGET))

    p = float(fc.equilibrium(net).flows["reno"].mark_probability[0])
    assert drift(p) == pytest.approx(0.0, abs=1e-6)
    slope = (drift(p + h) - drift(p - h)) / (2 * h)
    gain = 41 / 256 / 0.016 * 2 * p**0.5 * slope * trip
    w, L = curve.frequency[0], curve.response[0]
    assert w < 0.1 and (L * w**2) == pytest.approx(gain, rel=2e-3)
    assert 0 < fc.stability(net).phase_margin < 25


def test_a_queue_shared_below_25_ms_swings():
    """20 flows over PIE: unstable at 5 ms and the 15 ms of its queue, stable at 10 ms, and so in
    packets.
    """
    far, near = (alone("rfc8033/pie", rtt, 5.0) for rtt in (0.01, 0.005))
    assert fc.stability(far, roots=0).stable and not fc.stability(near, roots=0).stable
    runs = [fc.simulate_packets(net, until=60, warmup=30, seeds=[1]) for net in (far, near)]
    still, swing = (r.to_dict()["mean"]["links"]["bottleneck"]["queue_cov"] for r in runs)
    assert still < 0.1 and swing > 0.4


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
