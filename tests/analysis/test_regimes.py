"""Rests of queue laws and of links against closed forms or another solver."""

import math

import equinox as eqx
import numpy as np
import pytest
from rest_cases import C, N, T, drift, flows, found, one_link
from scipy.optimize import brentq

from fluidcc.analysis.equilibrium import equilibrium
from fluidcc.laws.feedback.loss import Loss
from fluidcc.laws.queue.adaptive_red import AdaptiveRED
from fluidcc.laws.queue.avq import AVQ
from fluidcc.laws.queue.blue import BLUE
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.queue.pi import PI
from fluidcc.laws.queue.red import RED
from fluidcc.laws.queue.rem import REM
from fluidcc.laws.reaction import OncePerRTT
from fluidcc.laws.voice import Voice
from fluidcc.scenario.network import Link, Network


@pytest.mark.parametrize(("law", "queue"), [(PI(), 175.0), (REM(), 20.0)], ids=["pi", "rem"])
def test_integrators_hold_their_reference(law, queue):
    """p is what the windows need there: W = C R/N = sqrt(2(1-p)/p)."""
    net = one_link(law)
    eq, link, group = found(net)
    window = C / N * (T + queue / C)
    assert (eq.status, eq.sliding, eq.smooth) == ("interior", (), True)
    assert link.queue == pytest.approx(queue, rel=1e-11)
    assert link.signal == pytest.approx(2 / (2 + window**2), rel=1e-10)
    assert group.window[0] == pytest.approx(window, rel=1e-10)
    assert f"sampled every {float(getattr(law, law.period)):.3g} s" in eq.message
    np.testing.assert_allclose(drift(net, eq), 0, atol=1e-8)


def test_avq_uses_its_target_with_an_empty_queue():
    """Y = gamma C, and the virtual capacity that marks p of it."""
    net = one_link(AVQ(gamma=0.9))
    eq, link, _ = found(net)
    p = 2 / (2 + (0.9 * C * T / N) ** 2)
    assert eq.status == "interior" and link.queue == 0.0
    assert link.utilization == pytest.approx(0.9, rel=1e-10)
    assert link.signal == pytest.approx(p, rel=1e-9)
    assert float(eq.rest.laws[0]) == pytest.approx(0.9 * (1 - p), rel=1e-9)
    np.testing.assert_allclose(drift(net, eq), 0, atol=1e-7)


def adaptive(n):
    return one_link(AdaptiveRED(min_th=100.0, max_th=300.0), flows(n=(n,)))


def test_adaptive_red_slides_at_its_target():
    """v = target and p_max = 2 p(target), within the limits of p_max."""
    eq, link, _ = found(adaptive(N))
    p = 2 / (2 + (C / N * (T + 200 / C)) ** 2)
    assert 0.009 <= 2 * p <= 0.51
    assert (eq.status, eq.sliding, eq.smooth) == ("interior", ("bottleneck",), False)
    assert link.average == pytest.approx(200.0, rel=1e-12)
    assert eq.rest.laws[0].p == pytest.approx(2 * p, rel=1e-9)
    assert "every 0.5 s it steps the marking up" in eq.message


@pytest.mark.parametrize(("n", "low", "high"), [(2.0, 0.009, 0.01), (600.0, 0.5, 0.51)])
def test_adaptive_red_beyond_its_limits_is_red(n, low, high):
    """p_max ends past a limit by less than one step; the queue is RED's with that p_max."""
    eq, link, _ = found(adaptive(n))
    p_max = float(eq.rest.laws[0].p)

    def excess(q):
        p = p_max * (q - 100) / 200
        return n * math.sqrt(2 * (1 - p) / p) / (T + q / C) - C

    assert low <= p_max <= high
    assert eq.status == "interior" and eq.smooth and "adapted as far as it can" in eq.message
    assert link.queue == pytest.approx(brentq(excess, 100.001, 299.9, xtol=1e-12), rel=1e-10)


@pytest.mark.parametrize(("p_0", "rests"), [(0.005, 220.0), (0.016, None), (0.3, 180.0)])
def test_adaptive_red_rests_anywhere_in_its_band(p_0, rests):
    """p_max moves outside the band alone: from below it climbs to its top, from above falls."""
    law = AdaptiveRED(min_th=100.0, max_th=300.0, target="band", p_max=p_0, lowest=0.001)
    net = one_link(law, flows(n=(N,)))
    eq, link, _ = found(net)

    def needed(q):
        return 2 / (2 + (C / N * (T + q / C)) ** 2)

    if rests is None:
        rests = brentq(lambda q: p_0 * (q - 100) / 200 - needed(q), 180, 220, xtol=1e-12)
        assert eq.rest.laws[0].p == p_0
    assert (eq.status, eq.sliding, eq.smooth) == ("continuum", (), False)
    assert link.average == pytest.approx(rests, rel=1e-10)
    assert link.signal == pytest.approx(needed(rests), rel=1e-9)
    np.testing.assert_allclose(drift(net, eq)[:2], 0, atol=1e-8)  # p_max: rounding decides
    assert "queues from 180 to 220 packets" in eq.message and "slides" not in eq.message
    assert f"signals from {needed(220.0):.6g} to {needed(180.0):.6g}" in eq.message


@pytest.mark.parametrize(("n", "below"), [(2.0, True), (600.0, False)])
def test_a_band_out_of_reach_leaves_one_rest(n, below):
    """p_max goes to its limit from any start, and stays there."""
    law = AdaptiveRED(min_th=100.0, max_th=300.0, target="band")
    eq, link, _ = found(one_link(law, flows(n=(n,))))
    assert (eq.status, eq.smooth) == ("interior", True)
    assert "adapted as far as it can" in eq.message
    assert link.average < 180 if below else link.average > 220


def test_blue_rests_anywhere_below_its_threshold():
    """Every p between those needed at q = L and at q = 0; from p = 0 it climbs to q = L."""
    eq, link, _ = found(one_link(BLUE(threshold=50.0)))
    at = [2 / (2 + (C / N * (T + q / C)) ** 2) for q in (50.0, 0.0)]
    assert eq.status == "continuum" and not eq.smooth
    assert link.queue == pytest.approx(50.0, rel=1e-12)
    assert link.signal == pytest.approx(at[0], rel=1e-9)
    assert f"signals from {at[0]:.6g} to {at[1]:.6g}" in eq.message
    assert "queues from 0 to 50 packets" in eq.message


def test_links_of_one_rate_behind_each_other_have_one_queue():
    """The first of them lets through what the second can carry; what it loses does not come."""
    red = RED(min_th=10.0, max_th=60.0, p_max=0.5)
    links = (Link(red, capacity=500.0, buffer=100.0), Link(Droptail(), capacity=500.0, buffer=40.0))
    own = flows(n=(10.0,), rtt=(0.1,), route=(0, 1), feedback=Loss(), reaction=OncePerRTT())
    eq = equilibrium(Network(links, (own,), link_names=("first", "second"), flow_names=("a",)))
    first, second = eq.links["first"], eq.links["second"]
    assert eq.status == "interior" and "not unique" not in eq.message
    assert first.queue > 10 and second.queue == 0.0
    assert 10 * eq.flows["a"].rate[0] * (1 - first.signal) == pytest.approx(500.0, rel=1e-9)
    assert second.utilization == pytest.approx(1.0, rel=1e-9) and second.signal == 0.0


def test_traffic_that_no_signal_slows_leaves_the_rest():
    red = RED(min_th=20.0, max_th=60.0)
    eq, link, group = found(one_link(red, flows(n=(10.0,)), capacity=1000.0, cross=400.0))
    assert eq.status == "interior" and link.utilization == 1.0
    assert 10 * group.rate[0] == pytest.approx(600.0, rel=1e-10)


def test_flows_share_what_calls_leave():
    """wfq: the mean of the calls is taken from the capacity, and from what the queue waits for."""
    voice = Voice(calls=10.0, codec=64000.0)
    net = one_link(RED(min_th=20.0, max_th=60.0), flows(n=(10.0,)), capacity=1000.0, voice=voice)
    eq, link, group = found(net)
    left = 1000.0 - float(voice.mean(1000.0))
    assert eq.status == "interior" and left < 1000.0
    assert 10 * group.rate[0] == pytest.approx(left, rel=1e-9)
    assert group.rtt[0] == pytest.approx(T + link.queue / left, rel=1e-12)


def test_results_tell_what_slides():
    eq = equilibrium(adaptive(N))
    assert eq.to_dict()["sliding"] == ["bottleneck"]
    assert eq.to_dict()["links"]["bottleneck"]["load"] is None
    other = eqx.tree_at(lambda n: n.links[0].queue.interval, adaptive(N), 0.25)
    assert "every 0.25 s" in equilibrium(other).message
