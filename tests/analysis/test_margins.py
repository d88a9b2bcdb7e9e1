"""Margins against published designs and the loop formulas of the fluid models."""

import math

import numpy as np
import pytest
from analysis_cases import CAPACITY, ecn_mod, front, hollot

from fluidcc.analysis.equilibrium import equilibrium
from fluidcc.analysis.linearize import linearize
from fluidcc.analysis.margins import loop_gain, margins, system_margins
from fluidcc.analysis.roots import rightmost_roots

N, C = 60, 3750.0


def pi_loop(r, gain=9.64e-6, z=0.53):
    """Hollot et al. (2001): simplified TCP plant with a PI controller."""

    def loop(w):
        s = 1j * w
        plant = C**2 / (2 * N) * np.exp(-s * r) / ((s + 2 * N / (r**2 * C)) * (s + 1 / r))
        return plant * gain * (s / z + 1) / s

    return loop


def test_published_pi_design():
    """Reference values by another program; the phase margin there has six digits."""
    found = margins(pi_loop(0.246))
    assert found.gain_crossover == pytest.approx(0.5207027420669592, rel=1e-10)
    assert found.phase_crossover == pytest.approx(3.496414627731952, rel=1e-10)
    assert found.gain_margin == pytest.approx(8.794944, abs=1e-6)
    assert found.phase_margin == pytest.approx(75.2954, abs=1e-3)
    assert found.delay_margin == pytest.approx(2.52381, abs=1e-5)


def test_integrator_with_delay_in_closed_form():
    """L = k e^(-s)/s: crossover k, PM = 90 - k rad; phase crossover pi/2, GM = pi/(2k)."""
    k = 0.4
    found = margins(lambda w: k * np.exp(-1j * w) / (1j * w))
    assert found.gain_crossover == pytest.approx(k, rel=1e-12)
    assert found.phase_margin == pytest.approx(90 - math.degrees(k), rel=1e-12)
    assert found.delay_margin == pytest.approx((math.pi / 2 - k) / k, rel=1e-12)
    assert found.gain_margin == pytest.approx(math.pi / (2 * k), rel=1e-12)
    first = [c.frequency for c in found.phase_crossovers][:3]
    np.testing.assert_allclose(first, math.pi / 2 + 2 * math.pi * np.arange(3), rtol=1e-10)


def test_phase_is_unwrapped_over_many_turns():
    """A slow roll-off behind a long delay: the phase at the crossover is below -360 degrees."""
    found = margins(lambda w: 20 * np.exp(-3j * w) / (1 + 1j * w))
    w = math.sqrt(399)
    phase = -3 * w - math.atan(w)
    margin = 180 + math.degrees(phase)
    assert found.gain_crossovers[0].phase_margin == pytest.approx(margin, rel=1e-9)
    assert found.phase_margin < -180


def test_several_gain_crossovers_are_all_found():
    """A resonance lifts the gain above 1 three times; the nearest to critical is shown."""

    def loop(w):
        s = 1j * w
        return 2 / (1 + 10 * s) * (1 + 0.2 * s) * 25 / (s**2 + 0.1 * s + 25)

    found = margins(loop)
    assert len(found.gain_crossovers) == 3
    for c in found.gain_crossovers:
        assert abs(loop(c.frequency)) == pytest.approx(1, rel=1e-10)
    assert found.phase_margin == min((c.phase_margin for c in found.gain_crossovers), key=abs)


def loop_by_hand(net, w):
    """Theory: L = N |g'| p' a/(s+a) [1/(1+sR)] K/(s+K) e^(-s age) for Reno per mark, f = 0."""
    eq = equilibrium(net)
    link, flows = eq.links["bottleneck"], eq.flows["flows"]
    p, W, R = link.signal, flows.window[0], flows.rtt[0]
    red, n = net.links[0].queue, net.flows[0].n[0]
    slope = red.p_max / (red.max_th - red.min_th)
    G_p, G_w = -(1 / W + W / 2), -(1 - p) / W**2 - p / 2
    a, K, s = -W / R * G_w, -CAPACITY * math.log1p(-red.w_q), 1j * w
    tail = type(net.flows[0].feedback).__name__ == "MarkTail"
    age = R if tail else R - link.queue / CAPACITY
    out = n * (G_p / G_w) * slope * a / (s + a) * K / (s + K) * np.exp(-s * age)
    return out if net.rates == "self_clocked" else out / (1 + s * R)


@pytest.mark.parametrize("rates", ["ack", "self_clocked"])
@pytest.mark.parametrize("w_q", [1e-5, 2e-3])
def test_loop_is_the_formula(rates, w_q):
    net = hollot(rates=rates, w_q=w_q)
    w = np.geomspace(1e-3, 1e2, 40)
    found = loop_gain(linearize(net), 0)(w)
    np.testing.assert_allclose(found, loop_by_hand(net, w), rtol=1e-8)


def test_front_has_less_delay_by_the_queueing():
    """Same gain crossover; the delay margin grows by exactly q/C. Theory, section 6."""
    tail, ahead = (hollot(rates="ack", w_q=1e-5, feedback=f) for f in (None, front()))
    a, b = (system_margins(linearize(net), scale=4.0) for net in (tail, ahead))
    queue = equilibrium(tail).links["bottleneck"].queue
    assert a.gain_crossover == pytest.approx(b.gain_crossover, rel=1e-10)
    assert b.delay_margin - a.delay_margin == pytest.approx(queue / CAPACITY, rel=1e-8)


def test_zero_frequency_gain_is_that_of_the_maps():
    """L(0) = N |g'(p)| p'(v), where g is the equilibrium window of each rate model."""
    for rates in ("ack", "self_clocked", "mgt"):
        net = hollot(rates=rates)
        eq = equilibrium(net)
        p = eq.links["bottleneck"].signal
        slope = 60 * 0.1 / 550
        squared = 2 * (1 - p) / p if rates != "mgt" else 2 / p
        expected = slope / (p**2 * math.sqrt(squared))  # both maps have |g'| = 1/(W p^2)
        assert system_margins(linearize(net), scale=4.0).zero_frequency_gain == pytest.approx(
            expected, rel=1e-6
        )


def test_kappa_invariance():
    """Equal kappa = c1 c2/(c1 + c2 W) under eq. 7: equal roots and margins. Theory, section 6."""
    one = ecn_mod(c1=0.0625, c2=0.125, w_q=1e-3)
    W = equilibrium(one).flows["flows"].window[0]
    kappa = 0.0625 * 0.125 / (0.0625 + 0.125 * W)
    c1 = 0.2
    other = ecn_mod(c1=c1, c2=kappa * c1 / (c1 - kappa * W), w_q=1e-3)
    a, b = rightmost_roots(linearize(one)), rightmost_roots(linearize(other))
    np.testing.assert_allclose(a.values[:4], b.values[:4], rtol=1e-9)
    first, second = (system_margins(linearize(net), scale=4.0) for net in (one, other))
    assert first.gain_margin == pytest.approx(second.gain_margin, rel=1e-9)
