"""HighSpeed TCP (RFC 3649) and Scalable TCP (Kelly, 2003): published windows, shares and times."""

import math
from itertools import islice

import pytest

import fluidcc as fc
from fluidcc.laws import Ack, HighSpeed, Scalable

ONE = Ack(1.0, 0.0, 0.1)
TABLE_12 = [
    (38, 1, 0.50), (118, 2, 0.44), (221, 3, 0.41), (347, 4, 0.38), (1058, 8, 0.33),
    (5036, 20, 0.25), (10661, 30, 0.21), (30975, 50, 0.15), (84035, 71, 0.10),
]  # fmt: skip
"""Window, increase and decrease: RFC 3649, appendix B. Increases are whole packets, cut off."""
TABLE_3 = [(1e-2, 12, 8), (1e-3, 38, 25), (1e-4, 263, 38), (1e-5, 1795, 57),
           (1e-6, 12279, 83), (1e-7, 83981, 123)]  # fmt: skip
"""Share of lost packets, window, round trips between losses: RFC 3649, section 5."""
TABLE_5 = [(1e-4, 2.2), (1e-5, 4.7), (1e-6, 10.2), (1e-7, 22.1)]
"""Share of lost packets, window of HighSpeed TCP over that of TCP: RFC 3649, section 6."""
TABLE_6 = [(100, 131), (200, 475), (500, 3601), (1000, 17409), (2000, 72754)]
"""Round trips, window from one packet on: RFC 3649, section 6."""


def round_trips(law, w):
    """Windows of a law without losses, one for each round trip."""
    while True:
        yield w
        w += w * float(law.on_ack(w, ONE))


def evenly_spaced(law, p):
    """Mean window and round trips between losses that are 1/p packets apart, when they repeat."""
    w, rounds = 100.0, 0.0
    for _ in range(60):
        left, rounds = 1 / p, 0.0
        for grown in round_trips(law, w):
            w = grown
            if left <= w:
                break
            left, rounds = left - w, rounds + 1
        rounds += left / w
        w += left * float(law.on_ack(w, ONE))
        w += float(law.on_mark(w, ONE))
    return 1 / (p * rounds), rounds


def window(law, p):
    """Mean window of the population of flows at random losses."""
    changes = {
        "link.random_loss": p, "link.capacity": 1e9, "link.buffer": math.inf,
        "flow.window.law": law,
    }  # fmt: skip
    rest = fc.equilibrium(fc.replace(fc.load("rfc3649/lossy"), changes))
    return float(rest.flows["highspeed"].window[0])


@pytest.mark.parametrize(("w", "increase", "decrease"), TABLE_12)
def test_increase_and_decrease_are_those_of_the_rfc(w, increase, decrease):
    law = HighSpeed()
    assert float(law.decrease(float(w))) == pytest.approx(decrease, abs=0.005)
    grown = float(law.increase(float(w)))
    assert increase <= grown == pytest.approx(increase, rel=0.04)  # exponent 1.2 for 1.198 there
    assert float(law.on_ack(float(w), ONE)) == pytest.approx(grown / w, rel=1e-12)
    assert float(law.on_loss(float(w), ONE)) == pytest.approx(-decrease * w, rel=0.05)


@pytest.mark.parametrize(("p", "mean", "between"), TABLE_3)
def test_windows_are_those_of_the_response_function(p, mean, between):
    found, rounds = evenly_spaced(HighSpeed(), p)
    assert found == pytest.approx(mean, rel=0.06)  # 5.9 % at 38 packets, where a(w) begins at 1
    assert rounds == pytest.approx(between, rel=0.05)
    if p <= 1e-4:
        assert found == pytest.approx(mean, rel=0.012)
        assert window("highspeed", p) == pytest.approx(mean, rel=0.025)


@pytest.mark.parametrize(("p", "ratio"), TABLE_5)
def test_shares_beside_tcp_are_those_of_the_rfc(p, ratio):
    """Random losses leave TCP 1.31/sqrt(p) in place of 1.2/sqrt(p): 8 % less of a ratio."""
    assert window("highspeed", p) / window("sack", p) == pytest.approx(ratio, rel=0.09)


@pytest.mark.parametrize(("after", "grown"), TABLE_6)
def test_windows_grow_as_in_the_rfc(after, grown):
    *_, w = islice(round_trips(HighSpeed(), 1.0), after)
    assert w == pytest.approx(grown, rel=0.04)


def test_small_windows_are_those_of_tcp():
    law, tcp = HighSpeed(), Scalable(low_window=1e3)
    for w in (1.0, 10.0, 38.0):
        assert float(law.on_ack(w, ONE)) == float(tcp.on_ack(w, ONE)) == 1 / w
        assert float(law.on_mark(w, ONE)) == float(tcp.on_mark(w, ONE)) == -w / 2


def test_parameters_that_do_not_fit_together_are_refused():
    for change in ({"low_window": 9e4}, {"high_p": 1e-2}):
        with pytest.raises(ValueError, match=r"low_window|high_p"):
            HighSpeed(**change).check()


@pytest.mark.parametrize("w", [100.0, 1e3, 1e5])
def test_scalable_recovers_in_13_round_trips_at_every_rate(w):
    """Kelly (2003): log(1 - b)/log(1 + a) round trips, 2.7 s if one takes 200 ms."""
    law = Scalable()
    lost = w + float(law.on_loss(w, ONE))
    times = [grown for grown in islice(round_trips(law, lost), 20) if grown < w]
    assert len(times) * 0.2 == pytest.approx(2.7, abs=0.15)
    mean, rounds = evenly_spaced(law, 1 / (12.5 * w))
    assert rounds == pytest.approx(13.42, rel=0.005)
    assert mean == pytest.approx(12.5 * w / 13.42, rel=0.005)


def test_scalable_windows_of_mean_and_population():
    """Mean windows: a = b (1 - (1 - p)^W). Random losses: E ln W rests at p W ln(1/(1 - b)) = a."""
    rest = fc.equilibrium(fc.load("kelly2003/red")).flows["scalable"]
    p, w = float(rest.mark_probability[0]), float(rest.window[0])
    assert w == pytest.approx(math.log1p(-0.01 / 0.125) / math.log1p(-p), rel=1e-6)
    assert w == pytest.approx(0.08 / p, rel=0.05)  # Kelly (2003): a/b over p
    assert window("scalable", p) == pytest.approx(0.01 / (p * -math.log(0.875)), rel=2e-3)


def test_packets_share_with_tcp_as_the_rfc_says():
    """At its 1.26e-4, equation 1 over 1.2/sqrt(p) is 2.03."""
    net = fc.load("rfc3649/beside_tcp")
    rest = fc.equilibrium(net)
    p = float(rest.flows["tcp"].mark_probability[0])
    ratio = 0.12 / p**0.835 / (1.2 / math.sqrt(p))
    fast, tcp = (float(rest.flows[name].rate[0]) for name in ("highspeed", "tcp"))
    assert fast / tcp == pytest.approx(ratio, rel=0.04)
    assert fc.stability(net).stable
    seen = fc.simulate_packets(net, until=100, warmup=30, seeds=(1, 2)).to_dict()["mean"]
    fast, tcp = (seen["flows"][name]["goodput"] for name in ("highspeed", "tcp"))
    assert fast / tcp == pytest.approx(ratio, rel=0.1)


def test_packets_of_scalable_senders_keep_the_queue_of_the_population():
    net = fc.load("kelly2003/red")
    assert fc.stability(net).stable
    population = fc.equilibrium(fc.replace(net, {"model.closure": "population"}))
    queue = float(population.links["bottleneck"].queue)
    seen = fc.simulate_packets(net, until=60, warmup=20, seeds=(1, 2)).to_dict()["mean"]
    assert seen["links"]["bottleneck"]["queue_mean"] == pytest.approx(queue, rel=0.05)
