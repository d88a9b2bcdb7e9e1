"""Compound TCP, TCP-Illinois, H-TCP and TCP Westwood: window laws that react to losses, and read
the queueing delay: published windows, values and boundaries.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import fluidcc as fc
from fluidcc.laws import (
    HTCP,
    AbstractQueueLaw,
    Ack,
    Compound,
    Illinois,
    MarkTail,
    PerMark,
    Polynomial,
    Signal,
    Westwood,
    ops,
    param,
)
from fluidcc.scenario.network import FlowsInitial

R = 0.1  # s
PARTS = 8  # of a round trip


def added(s, change):
    return type(s)(*(a + b for a, b in zip(s, change, strict=True)))


def ack(count, rtt=R, delay=0.0):
    """What a window brings in a part of a round trip."""
    return Ack(count=count, elapsed=rtt / PARTS, rtt=rtt, delay=delay)


def random_losses(alpha, k, beta, p):
    """Mean over time of windows that grow by alpha w^k in a round trip and lose the share beta, at
    independent losses of probability p: 1 over the mean of 1/w over packets. In packets
    y = w^(2 - k)/(2 - k) grows by alpha each, so that its moments have a product.
    """
    e = 1 / (2 - k)
    falls = (1 - beta) ** ((2 - k) * np.arange(1.0, 400.0))
    moment = (alpha / p) ** -e * math.gamma(1 - e)
    moment *= np.prod((1 - falls * (1 - beta) ** -1) / (1 - falls))
    return 1 / ((2 - k) ** -e * moment)


def lossy(name, **changes):
    """A scenario of random losses whose link is never full."""
    return fc.replace(fc.load(name), {"link.capacity": 1e6, **changes})


def test_random_losses_of_tcp_are_the_known_ones():
    """1.3098/sqrt(p) of TCP, and 0.0749/p of Scalable TCP, to which k = 1 comes close."""
    assert random_losses(1.0, 0.0, 0.5, 1e-4) == pytest.approx(130.98, abs=0.01)
    assert random_losses(0.01, 0.999, 0.125, 1e-4) == pytest.approx(749.0, rel=0.01)


# -- Compound TCP
def evenly_spaced(law, p):
    """Mean window if each 1/p-th packet is lost, when windows repeat."""
    s, trips = law.start(2 * random_losses(law.alpha, law.k, law.beta, p)), 0.0
    for _ in range(40):
        left, trips = 1 / p, 0.0
        while left > 0:
            count = min(s.window / PARTS, left)
            left, trips = left - count, trips + count / s.window
            s = added(s, law.on_ack(s, ack(count)))
        s = added(s, law.on_mark(s, ack(0.0)))
    return 1 / (p * trips)


@pytest.mark.parametrize("p", [1e-4, 1e-5, 1e-6])
def test_windows_of_compound_tcp_are_those_of_its_response_function(p):
    """1/p packets from (1 - beta) w to w, by alpha w^k in a round trip: p^-0.8."""
    alpha, beta, k = 0.125, 0.5, 0.75
    top = (alpha * (2 - k) / (p * (1 - (1 - beta) ** (2 - k)))) ** (1 / (2 - k))
    trips = top ** (1 - k) * (1 - (1 - beta) ** (1 - k)) / (alpha * (1 - k))
    assert evenly_spaced(Compound(), p) == pytest.approx(1 / (p * trips), rel=0.01)


class Blind(AbstractQueueLaw):
    """Marks at random, whatever the queue."""

    name = "blind"
    source = "none"
    p: float = param(4e-4, "p_0", unit="1", doc="share of marked packets", within="(0, 1)")

    def signal(self, x, seen):
        return Signal(mark=self.p)


def test_packets_of_compound_tcp_have_the_window_of_random_marks():
    link = fc.Link(Blind(p=4e-4), capacity=1e6, delay=0.05, buffer=2000.0)
    flows = fc.Flows(
        Compound(low_window=0.0), n=np.array([16.0]), rtt=np.array([R]), feedback=MarkTail(),
        reaction=PerMark(growth="all"), initial=FlowsInitial(window=140.0),
    )  # fmt: skip
    net = fc.Network((link,), (flows,))
    runs = fc.simulate_packets(net, until=120.0, warmup=30.0, seeds=(1, 2))
    seen = float(np.mean(runs.mean["flows"]["flows"]["window_mean"]))
    assert seen == pytest.approx(random_losses(0.125, 0.75, 0.5, 4e-4), rel=0.03)


@pytest.mark.parametrize(
    ("w", "queued", "change"),
    [
        (37.0, 0.0, 1.0),  # TCP
        (39.0, 0.0, 0.125 * 39**0.75),
        (400.0, 29.0, 0.125 * 400**0.75),
        (400.0, 31.0, 1 - 31.0),
        (400.0, 120.0, 1 - 100.0),  # no more than there is
    ],
)
def test_a_round_trip_of_compound_tcp(w, queued, change):
    law, rtt = Compound(), 0.15
    s = law.start(w)._replace(by_delay=min(100.0, w))
    grown = law.on_ack(s, Ack(count=w, elapsed=rtt, rtt=rtt, delay=queued * rtt / w))
    assert grown.window == pytest.approx(change, rel=1e-12)
    assert grown.by_delay == pytest.approx(change - 1, abs=1e-12)


def test_a_loss_halves_the_window_of_compound_tcp_and_both_parts_of_it():
    law = Compound()
    s = law.start(100.0)._replace(by_delay=60.0)
    assert added(s, law.on_loss(s, ack(0.0))) == (50.0, 30.0)
    less = Compound(beta=0.25)
    assert added(s, less.on_loss(s, ack(0.0))) == (75.0, 55.0)
    after = s._replace(window=1.0)  # a timeout
    assert added(after, law.observe(after, ack(1.0))) == (1.0, 1.0)


class Power(AbstractQueueLaw):
    """Marks by a power of the rate of arrivals, as of a small drop-tail buffer."""

    name = "power_of_rate"
    source = "Raina and Wischik (2005)"
    c: float = param(100.0, "c", unit="packet/s", doc="where all is marked", within="(0, inf)")
    b: float = param(4.0, "b", unit="1", doc="exponent", within="(0, inf)")

    def signal(self, x, seen):
        return Signal(mark=ops.minimum(1 / (seen.elapsed * self.c), 1.0) ** self.b)


LAWS = [
    (Compound(low_window=0.0), 0.125, 0.75, 0.5),
    (Polynomial(c1=1.0, alpha=-1.0, c2=0.5, beta=1.0), 1.0, 0.0, 0.5),  # Reno
    (Polynomial(c1=0.01, alpha=0.0, c2=0.125, beta=1.0), 0.01, 1.0, 0.125),  # Scalable TCP
]


def over_power(law, b, c):
    link = fc.Link(Power(c=c, b=b), capacity=1e7, buffer=math.inf)
    flows = fc.Flows(
        law, n=np.array([1.0]), rtt=np.array([R]), feedback=MarkTail(),
        reaction=PerMark(growth="clean"), initial=FlowsInitial(window=20.0),
    )  # fmt: skip
    return fc.Network((link,), (flows,))


@pytest.mark.parametrize("w", [20.0, 60.0])
@pytest.mark.parametrize(("law", "alpha", "k", "beta"), LAWS)
def test_the_boundary_over_a_small_buffer_is_that_in_closed_form(law, alpha, k, beta, w):
    """Growth i = alpha w^(k - 1) an ACK, cuts beta w, p = (w/(C R))^B: stable if and only if
    i sqrt(B^2 - ((2 - k)(1 - p))^2) < arccos(-(2 - k)(1 - p)/B).
    """
    i = alpha * w ** (k - 1)
    p = i / (i + beta * w)
    a = (2 - k) * (1 - p)
    critical: Any = brentq(
        lambda b: i * math.sqrt(b**2 - a**2) - math.acos(-a / b), a * (1 + 1e-9), 9 / i
    )
    for b, stable in ((0.999 * critical, True), (1.001 * critical, False)):
        net = over_power(law, b, w / R / p ** (1 / b))
        rest = fc.equilibrium(net)
        assert float(rest.flows["flows"].window[0]) == pytest.approx(w, rel=1e-4)
        found = fc.stability(net)
        assert found.stable is stable
    root = found.roots[0]
    assert abs(root.imag) == pytest.approx(i * math.sqrt(critical**2 - a**2) / R, rel=2e-3)


# -- TCP-Illinois
@pytest.mark.parametrize(
    ("delay", "largest", "w", "acked", "window", "threshold"),
    [
        (0.002, 0.005, 39, 0, 39, 27),
        (0.0, 0.01, 60, 2, 60, 52),
        (0.008, 0.010, 39, 0, 39, 19),
        (0.002, 0.005, 40, 55, 41, 29),
    ],
)
def test_values_of_ns_3_for_illinois(delay, largest, w, acked, window, threshold):
    """tcp-illinois-test.cc, with its delays in whole ms; two cases are in slow start."""
    law, event = Illinois(largest=largest), Ack(float(acked), R, R + delay, delay=delay)
    w += math.floor(law.on_ack(float(w), event))
    assert w == window
    assert math.floor(w + law.on_loss(float(w), event)) == threshold


@pytest.mark.parametrize("share", [0.0, 0.005, 0.02, 0.1, 0.3, 0.5, 0.8, 0.9, 1.0, 1.5])
def test_growth_and_cut_of_illinois_are_those_of_its_functions(share):
    """kappa_1/(kappa_2 + d) and kappa_3 + kappa_4 d: Liu, Basar and Srikant (2008), by Linux."""
    dm, low, high, b_low, b_high = 0.2, 0.3, 10.0, 1 / 8, 1 / 2
    d = share * dm
    d1, d2, d3 = 0.01 * dm, 0.1 * dm, 0.8 * dm
    kappa_1 = (dm - d1) * low * high / (high - low)
    kappa_2 = (dm - d1) * low / (high - low) - d1
    kappa_4 = (b_high - b_low) / (d3 - d2)
    kappa_3 = (b_low * d3 - b_high * d2) / (d3 - d2)
    growth = high if d <= d1 else max(kappa_1 / (kappa_2 + d), low)
    cut = b_low if d <= d2 else b_high if d >= d3 else kappa_3 + kappa_4 * d
    law, event = Illinois(largest=dm), Ack(1.0, 0.0, R + d, delay=d)
    assert law.on_ack(100.0, event) == pytest.approx(growth / 100, rel=1e-12)
    assert law.on_mark(100.0, event) == pytest.approx(-100 * cut, rel=1e-12)
    assert (law.on_ack(14.9, event), law.on_mark(14.9, event)) == (1 / 14.9, -14.9 / 2)
    assert law.on_ack(15.1, event) == pytest.approx(growth / 15.1, rel=1e-12)


@pytest.mark.parametrize("p", [1e-4, 1e-3])
def test_illinois_without_a_queue_grows_by_10_and_loses_an_eighth(p):
    rest = fc.equilibrium(lossy("liu2008/lossy", **{"link.random_loss": p}))
    window = random_losses(10.0, 0.0, 0.125, p)
    assert float(rest.flows["illinois"].window[0]) == pytest.approx(window, rel=0.03)


def test_packets_of_illinois_have_the_queue_of_the_mean():
    net = fc.load("liu2008/red")
    rest = fc.equilibrium(net)
    delay = float(rest.links["bottleneck"].queue) / float(net.links[0].capacity)
    law: Any = net.flows[0].window
    w = float(rest.flows["illinois"].window[0])
    p = float(rest.flows["illinois"].mark_probability[0])
    reactions = 1 - (1 - p) ** w
    assert law.increase(delay) == pytest.approx(law.decrease(delay) * w * reactions, rel=1e-6)
    assert fc.stability(net).stable
    runs = fc.simulate_packets(net, until=60.0, warmup=20.0, seeds=(1, 2))
    seen = runs.mean["links"]["bottleneck"]["queue_mean"]
    assert seen == pytest.approx(float(rest.links["bottleneck"].queue), rel=0.03)


# -- H-TCP
@pytest.mark.parametrize(
    ("since", "w", "size", "grown"),
    [(0.999, 38, 536, 15), (1.099, 38, 1, 2), (1.499, 53, 1446, 33)],
)
def test_growth_of_htcp_is_that_in_values_of_ns_3(since, w, size, grown):
    """tcp-htcp-test.cc: bytes by one ACK, to which it adds alpha as one over the window's packets
    and alpha bytes; a packet in the window's packets for each of alpha is the rule of Linux.
    """
    assert math.floor(size / w + HTCP().increase(since)) == grown


def test_growth_of_htcp_long_after_a_loss():
    """1 + 10 (D - 1) + ((D - 1)/2)^2 in a round trip of a sender that halves."""
    law = HTCP()
    assert law.increase(11.0) == 1 + 100 + 25
    s = law.start(50.0)._replace(since=11.0)
    assert law.on_ack(s, ack(1.0)).window == pytest.approx(126 / 50)
    assert law.on_ack(s._replace(left=0.8), ack(1.0)).window == pytest.approx(0.4 * 126 / 50)


@pytest.mark.parametrize(("delay", "left"), [(0.0, 0.8), (0.02, 0.8), (0.05, 2 / 3), (0.2, 0.5)])
def test_a_loss_leaves_the_part_of_the_round_trip_without_the_queue(delay, left):
    law = HTCP()
    s = law.start(100.0)._replace(since=7.0)
    after = added(s, law.on_loss(s, Ack(0.0, 0.0, 0.1 + delay, delay=delay)))
    assert after == pytest.approx((100 * left, 0.0, left))


@pytest.mark.parametrize("time", [0.5, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("delay", [0.0, 0.05, 0.2])
def test_windows_of_htcp_by_the_time_between_losses_do_not_depend_on_what_losses_leave(time, delay):
    """2 (1 - beta) makes good for the cut: w = 2/R (T + 5 (T - 1)^2 + (T - 1)^3/12) at losses."""
    law, rtt, steps = HTCP(), 0.1 + delay, 1000
    beyond = max(time - 1, 0.0)
    window = 2 / rtt * (time + 5 * beyond**2 + beyond**3 / 12)
    s, step, met = law.start(0.7 * window), time / steps, 0.0
    for _ in range(25):
        for _ in range(steps):
            s = added(s, law.on_ack(s, Ack(s.window * step / rtt, step, rtt, delay=delay)))
        met = s.window
        s = added(s, law.on_mark(s, Ack(0.0, 0.0, rtt, delay=delay)))
    assert met == pytest.approx(window, rel=3e-3)


def test_htcp_keeps_a_link_full_whose_buffer_is_half_of_what_tcp_needs():
    """A loss leaves R_min/R_max of the window: the queue empties, and no more."""
    used = {}
    for law in ("htcp", "sack"):
        changes = {"flow.window.law": law, "flow.n": 1.0, "link.buffer": 125.0}
        net = fc.replace(fc.load("leith2004/lossy"), changes | {"link.random_loss": 0.0})
        net = fc.replace(net, {"link.capacity": 2500.0})
        runs = fc.simulate_packets(net, until=200.0, warmup=50.0, seeds=(1,))
        used[law] = runs.mean["links"]["path"]["utilization"]
    assert used["htcp"] > 0.995
    assert used["sack"] < 0.98


def test_levels_of_htcp_agree_under_random_losses():
    net = lossy("leith2004/lossy")
    window = float(fc.equilibrium(net).flows["htcp"].window[0])
    runs = fc.simulate_packets(net, until=200.0, warmup=50.0, seeds=(1, 2, 3, 4))
    seen = float(np.mean(runs.mean["flows"]["htcp"]["window_mean"]))
    assert seen == pytest.approx(window, rel=0.05)


# -- TCP Westwood
def test_westwood_has_the_rate_of_grieco_and_mascolo():
    """sqrt((1 - p)/p)/sqrt(R d): a round trip R of which d is in queues, each loss counting."""
    net = fc.replace(
        fc.load("mascolo2001/red"),
        {"flow.window.reaction": "per_mark", "flow.window.growth": "clean"},
    )
    rest = fc.equilibrium(net)
    flow, queue = rest.flows["westwood"], float(rest.links["bottleneck"].queue)
    p, rtt, delay = (
        float(flow.mark_probability[0]),
        float(flow.rtt[0]),
        queue / net.links[0].capacity,
    )
    rate = math.sqrt((1 - p) / p / (rtt * delay))
    assert float(flow.rate[0]) == pytest.approx(rate, rel=1e-6)


def test_the_estimate_of_westwood_moves_by_an_eighth_in_a_round_trip():
    law = Westwood()
    s = law.start(80.0)
    for _ in range(5 * PARTS):
        s = added(s, law.observe(s, ack(10.0)))
    assert s.bandwidth == pytest.approx(800 * (1 - (7 / 8) ** 5), rel=1e-12)
    lost = added(s, law.on_loss(s, ack(0.0, rtt=0.15, delay=0.05)))
    assert lost.window == pytest.approx(80 * (1 - (7 / 8) ** 5), rel=1e-12)
    over = s._replace(bandwidth=2000.0)
    assert law.on_loss(over, ack(0.0)).window == 0.0


def test_westwood_fills_a_link_at_random_losses_and_tcp_does_not():
    net, times = fc.load("mascolo2001/lossy"), {"until": 60.0, "warmup": 20.0, "seeds": (1, 2)}
    rest, seen = fc.equilibrium(net), fc.simulate_packets(net, **times).mean["links"]["path"]
    assert seen["utilization"] > 0.99
    assert seen["queue_mean"] == pytest.approx(float(rest.links["path"].queue), rel=0.35)
    tcp = fc.simulate_packets(fc.replace(net, {"flow.window.law": "sack"}), **times)
    assert tcp.mean["links"]["path"]["utilization"] < 0.55
