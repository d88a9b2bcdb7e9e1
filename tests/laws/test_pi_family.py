"""PI2 and PIE: the gains of the RFCs and of Linux, and the margins that are claimed for them."""

import numpy as np
import pytest
from scipy.optimize import brentq

import fluidcc as fc
from fluidcc.laws import PIE
from fluidcc.laws.law import Arrival

TRIP = 0.1  # s, with 15 ms of queue


def margin(name, window, **changes):
    """Gain margin [dB] of flows with windows of `window` packets at 100 ms, sent by their ACKs."""
    net = fc.replace(
        fc.load(name),
        {
            "link.capacity": 10_000, "link.buffer": 4000, "flow.n": 1000 / window,
            "flow.feedback": "mark_tail", "model.rates": "self_clocked", **changes,
        },
    )  # fmt: skip
    return 20 * np.log10(float(fc.stability(net).gain_margin))


def test_large_windows_over_pi2_have_the_margin_of_the_closed_form():
    """Gains and ticks of Linux's sch_dualpi2; W = sqrt(2)/p', and a queue of N W - C R."""
    w = np.geomspace(3.0, 30.0, 20_001)
    s, tick, window = 1j * w, 0.016, 1000.0
    controller = (41 / 256 + 819 / 256 * s * tick / (1 + s * tick)) / (s * tick)
    senders = window * TRIP / np.sqrt(2) / (1 + s * window * TRIP / 2) * np.exp(-s * TRIP)
    loop = controller * senders
    crossed = np.argmin(np.abs(np.unwrap(np.angle(loop)) + np.pi))
    closed = -20 * np.log10(abs(loop[crossed]))
    assert margin("rfc9332/pi2", window) == pytest.approx(closed, abs=0.05)


def test_ten_decibels_at_100_ms_are_those_of_self_clocked_senders():
    """Linux: the default gains give a margin of 10 dB with max_rtt = 100 ms."""
    assert margin("rfc9332/pi2", 5) > margin("rfc9332/pi2", 10) == pytest.approx(10.0, abs=0.1)
    assert 7.4 < margin("rfc9332/pi2", 1000) < margin("rfc9332/pi2", 20) < 10.0
    textbook = [margin("rfc9332/pi2", window, **{"model.rates": "mgt"}) for window in (5, 50)]
    assert textbook == pytest.approx([9.9, 1.8], abs=0.1)


def test_gains_of_pie_are_a_staircase_about_a_margin_that_is_enough():
    """The square of PI2 has nearly one margin; the steps of PIE keep it above 10 dB."""
    windows = (5, 10, 20, 30, 50, 100, 200, 500, 1000)
    pi2 = [margin("rfc9332/pi2", window) for window in windows]
    pie = [margin("rfc8033/pie", window) for window in windows]
    assert pi2 == sorted(pi2, reverse=True) and max(pi2) - min(pi2) < 5
    assert min(pie) > 10 and max(pie) < 22
    assert pie not in (sorted(pie), sorted(pie, reverse=True))


@pytest.mark.parametrize(
    ("p", "divisor"),
    [(0.2, 1), (0.05, 2), (5e-3, 8), (5e-4, 32), (5e-5, 128), (5e-6, 512), (5e-7, 2048)],
)
def test_steps_of_pie_shrink_as_the_rfc_has_it(p, divisor):
    """RFC 8033, section 4.2: 0.125 and 1.25 a second, divided, for 16 ms beyond a target of 15."""
    law = PIE()
    x = law.state_of(p, 0.025, 0.0)
    moved = law.on_tick(x, Arrival(0.0, 0.0, 31.0, 1000.0))
    step = (0.125 * 0.016 + 1.25 * 0.006) / divisor
    assert moved.p == pytest.approx(step, rel=1e-12)


def test_pie_lets_bursts_pass_and_forgets():
    """RFC 8033, sections 4.1, 4.3 and 4.4."""
    law, seen = PIE(), Arrival(1.0, 0.0, 30.0, 1000.0)
    assert law.signal(law.state_of(0.01, 0.02, 0.1), seen).mark == 0  # a burst
    assert law.signal(law.state_of(0.01, 0.007, 0.0), seen).mark == 0  # half the target
    assert law.signal(law.state_of(0.3, 0.007, 0.0), seen).mark > 0
    assert law.signal(law.state_of(0.01, 0.02, 0.0), seen._replace(queue=1.0)).mark == 0
    assert law.signal(law.state_of(0.01, 0.02, 0.0), seen).mark == pytest.approx(0.01 / 1.8415)
    empty = Arrival(1.0, 0.0, 0.0, 1000.0)
    left = 0.98 * (0.01 - 0.125 * 0.015 / 2)
    assert law.on_tick(law.state_of(0.01, 0.0, 0.0), empty).p == pytest.approx(left - 0.01)
    assert law.on_tick(law.state_of(0.0, 0.0, 0.0), empty).burst == pytest.approx(0.15)


@pytest.mark.parametrize("beyond", [0.0, 1e-14, 1e-13, 1e-12, 1e-11, 1e-6])
def test_an_equilibrium_is_found_where_marks_reach_every_packet(beyond):
    """Windows of two packets leave p = 1; the queue is longer than the target from there on."""
    net = fc.replace(fc.load("rfc9332/pi2"), {"model.rates": "ack", "flow.n": 50 * (1 + beyond)})
    rest = fc.equilibrium(net)
    assert rest.status == "regular"
    assert rest.links["bottleneck"].queue == pytest.approx(15 + 100 * beyond, rel=1e-9)


@pytest.mark.parametrize("k", [1.19, 1.64, 2.0])
def test_shares_of_coupled_senders_are_those_of_the_closed_form(k):
    """Reno has sqrt(2)/p'; DCTCP y/(k p') with y marks a round trip, which cut it once."""
    changes = {"link.capacity": 1e6, "link.buffer": 1e5, "flows.scalable.marking.k": k}
    rest = fc.equilibrium(fc.replace(fc.load("rfc9332/coupled"), changes))
    reno, scalable = (float(rest.flows[name].window[0]) for name in ("reno", "scalable"))
    y = brentq(lambda y: y * -np.expm1(-y) - 2, 1, 4)
    assert reno / scalable == pytest.approx(np.sqrt(2) * k / y, rel=2e-3)


def test_packets_of_coupled_senders_share_alike():
    """RFC 9332 recommends a coupling factor of 2 for shares that are roughly equal."""
    net = fc.load("rfc9332/coupled")
    runs = fc.simulate_packets(net, until=120, warmup=40, seeds=(1, 2))
    goodput = runs.to_dict()["mean"]["flows"]
    assert goodput["reno"]["goodput"] / goodput["scalable"]["goodput"] == pytest.approx(1, abs=0.2)


def test_equations_of_pie_say_when_packets_pass():
    drop = fc.latex(fc.load("rfc8033/pie"))
    (line,) = (own for own in drop.splitlines() if own.strip().startswith("p &="))
    assert r"b > 0" in line and "otherwise" in line
