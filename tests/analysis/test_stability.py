"""Roots, counts and margins of networks: closed forms, other discretisations, published points."""

import dataclasses
import math

import equinox as eqx
import numpy as np
import pytest
from analysis_cases import CAPACITY, ecn_mod, hollot, two_links

from fluidcc import bode, equilibrium, laws, linearize, load, replace, stability
from fluidcc.analysis.linearize import at_kink
from fluidcc.analysis.margins import loop_gain, margins, system_margins
from fluidcc.analysis.roots import approximate_roots, rightmost_roots


def test_hopf_point_of_hollot():
    """Theory, section 6: the full mgt linearisation loses stability at w_q = 1.048513e-4."""
    w_q, omega = 1.048513e-4, 1.341540
    at = stability(hollot(w_q=w_q)).rightmost
    assert abs(at.real) < 2e-7 and at.imag == pytest.approx(omega, abs=1e-6)
    below, above = (stability(hollot(w_q=f * w_q)) for f in (0.999, 1.001))
    assert (below.stable, below.unstable, below.certified) == (True, 0, True)
    assert (above.stable, above.unstable, above.certified) == (False, 2, True)


@pytest.mark.parametrize(
    ("rates", "feedback", "some"),
    [("ack", None, 5), ("ack", laws.MarkFront(), 5), ("self_clocked", None, 2)],
)
@pytest.mark.parametrize("w_q", [2e-5, 1e-3])
def test_roots_satisfy_the_formula(rates, feedback, some, w_q):
    """To 1e-10 in the root: the formula's own Newton step from there is that small.

    One self-clocked class: the root at s = 0 of the factor 1/(1 + s R) is no root of the model.
    """
    net = hollot(rates=rates, w_q=w_q, feedback=feedback)
    found = stability(net)
    assert found.certified and np.all(np.abs(found.roots) > 1e-6)
    for s in found.roots[:some]:
        h = 1e-6 * abs(s)
        low, here, high = (1 + loop_by_hand(net, v) for v in (s - h, s, s + h))
        assert abs(here / (high - low) * 2 * h) < 1e-10 * abs(s)


def test_several_self_clocked_classes_are_neutral():
    """One root at 0 for each class; the count is not proven, and the result says why."""
    net = ecn_mod(n=(4.0, 3.0, 3.0), rtt=(0.05, 0.12, 0.25), rates="self_clocked")
    eigenvalues = approximate_roots(linearize(net), 40)
    assert np.sum(np.abs(eigenvalues) < 1e-6) == 3
    found = stability(net)
    assert not found.certified and "neutral" in found.message
    assert found.unstable == np.sum(eigenvalues.real > 1e-6) == 2
    assert np.abs(eigenvalues - found.rightmost).min() < 1e-9


def test_two_links_have_the_roots_of_collocation():
    found, system = stability(two_links()), linearize(two_links())
    eigenvalues = approximate_roots(system, 20)
    assert found.certified and found.unstable == np.sum(eigenvalues.real > 0)
    for s in found.roots[:5]:
        assert np.abs(eigenvalues - s).min() < 1e-8
    assert len(found.margins.gain_crossovers) == 2  # one for each link's loop


@pytest.mark.parametrize("rates", ["ack", "mgt"])
def test_count_agrees_with_collocation(rates):
    """Three round trips, over the range in which stability changes."""
    for w_q in (1e-5, 3e-4, 3e-3, 0.1):
        net = ecn_mod(n=(4.0, 3.0, 3.0), rtt=(0.05, 0.12, 0.25), w_q=w_q, p_max=1.0, rates=rates)
        found, system = stability(net), linearize(net)
        eigenvalues = approximate_roots(system, 40)
        assert found.certified and found.unstable == np.sum(eigenvalues.real > 0)
        near = eigenvalues[np.abs(eigenvalues) < 20]
        assert np.abs(near - found.rightmost).min() < 1e-7


def test_two_hundred_classes_are_certified():
    """The arrow of 200 round trips: the rightmost roots are those of the system taken whole."""
    net = ecn_mod(n=np.full(200, 0.3), rtt=np.linspace(0.025, 0.25, 200))
    found = stability(net)
    assert found.certified and found.unstable == 0
    system = linearize(net)
    M = _matrix(system, found.rightmost)  # as good as singular: some b has a huge M^-1 b
    b = np.ones(len(M))
    assert np.linalg.norm(b) < 1e-10 * np.linalg.norm(np.linalg.solve(M, b)) * np.linalg.norm(M)
    assert found.margins is not None and found.phase_margin > 0


@pytest.mark.parametrize("p_max", [0.01, 0.015, 0.02, 0.0226, 0.2])
def test_many_classes_do_not_hide_the_pair_of_the_loop(p_max):
    """20 classes of two laws; the system taken whole by collocation knows all roots nearby."""
    net = replace(load("misra2003/mixed"), {"link.queue.p_max": p_max})
    system = linearize(net)
    eigenvalues, found = approximate_roots(system, 16), rightmost_roots(system)
    waves = eigenvalues[eigenvalues.imag > 1e-3]
    pair = waves[np.argmax(waves.real)]
    assert found.certified and found.unstable == np.sum(eigenvalues.real > 0)
    assert np.abs(found.values - pair).min() < 1e-7
    expected = eigenvalues[np.argsort(-eigenvalues.real)]
    assert found.proven >= 6
    np.testing.assert_allclose(
        found.values[: found.proven].real, expected[: found.proven].real, atol=1e-7
    )


def _matrix(system, s):
    m = len(system.C)
    late = np.zeros((len(system.pick), m), complex)
    late[np.arange(len(system.pick)), system.pick] = np.exp(-s * system.lag)
    top = np.hstack([s * np.eye(len(system.A)) - system.A, -system.B @ late])
    return np.vstack([top, np.hstack([-system.C, np.eye(m) - system.D @ late])])


def test_capped_windows_and_empty_queues_are_held():
    """What a bound holds is no state; only RED's average is left and decays with its own pole."""
    net = hollot(n=1.0, rates="ack")
    capped = hollot_with_cap(net, 600.0)
    found = stability(capped)
    K = -CAPACITY * math.log1p(-0.005)
    assert found.status == "empty" and found.stable
    np.testing.assert_allclose(found.roots, [-K], rtol=1e-10)
    assert found.gain_margin is None and found.phase_margin is None


def hollot_with_cap(net, cap):
    return eqx.tree_at(lambda n: n.flows[0].window.max_window, net, cap)


def kinked(n=60.0, rtt=0.1):
    """Gentle RED whose equilibrium sits on max_th: p_max is the marking needed there."""
    window = 1250 / n * (rtt + 75 / 1250)
    return ecn_mod(p_max=2 / (2 + window**2), n=(n,), rtt=(rtt,))


def test_a_kink_has_two_linearisations():
    net = kinked()
    eq = equilibrium(net)
    assert eq.links["bottleneck"].queue == pytest.approx(75, abs=1e-9)
    assert at_kink(net, eq) and not at_kink(ecn_mod(), equilibrium(ecn_mod()))
    slopes = []
    for side in (-1, 1):
        system = linearize(net, eq, side=side)
        slopes.append(system.C[system.signals[0][0], 2])
    p_max = net.links[0].queue.p_max
    np.testing.assert_allclose(slopes, [p_max / 50, (1 - p_max) / 75], rtol=1e-9)
    found = stability(net)
    assert "corner" in found.message
    worse = max((rightmost_roots(linearize(net, eq, side=s)) for s in (-1, 1)),
                key=lambda r: r.rightmost.real)  # fmt: skip
    assert found.rightmost == worse.rightmost


def test_no_verdict_without_a_smooth_equilibrium():
    found = stability(hollot(n=600.0))
    assert found.status == "discontinuity"
    assert found.stable is None and found.unstable is None and not found.certified
    assert "next: `fluidcc cycle`" in found.message  # what to do instead
    with pytest.raises(ValueError, match="discontinuity"):
        linearize(hollot(n=600.0))


# -- Margins against published designs and the loop formulas of the fluid models
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


@pytest.mark.parametrize("too_large", [1e-3, 2.9e-3, 2e-2, 0.3])
@pytest.mark.parametrize("delay", [0.4, 6.07])
@pytest.mark.parametrize("power", [0.00425, 0.3, 1.0])
def test_an_estimate_of_a_loop_leads_to_the_same_crossovers(power, delay, too_large):
    """Flat gains near 1 too, whose crossover moves by turns with a small error."""

    def loop(w):
        return 1.004 * w**-power * np.exp(-1j * delay * w) / (1 + 1j * w / 50) ** 3

    estimates = tuple(lambda w, k=k: (1 + k * too_large) * loop(w) for k in (1.0, 2.2))
    found, own = margins(loop, estimates=estimates), margins(loop)
    assert [dataclasses.astuple(c) for c in found.gain_crossovers] == [
        pytest.approx(dataclasses.astuple(c), rel=1e-9) for c in own.gain_crossovers
    ]
    assert found.gain_margin == pytest.approx(own.gain_margin, rel=1e-9)


def test_an_estimate_that_cannot_be_followed_is_not_used():
    def loop(w):
        return 2 / (1 + 1j * w) ** 3

    def jumps(w):
        return np.where(w < 3, 1.0, 5.0j) * loop(w)

    assert margins(loop, estimates=(jumps, jumps)) == margins(loop)


def loop_by_hand(net, s):
    """Theory: L = N |g'| p' a/(s+a) [1/(1+sR)] K/(s+K) e^(-s age) for Reno per mark, f = 0."""
    eq = equilibrium(net)
    link, flows = eq.links["bottleneck"], eq.flows["flows"]
    p, W, R = link.mark_probability, flows.window[0], flows.rtt[0]
    red, n = net.links[0].queue, net.flows[0].n[0]
    slope = red.p_max / (red.max_th - red.min_th)
    G_p, G_w = -(1 / W + W / 2), -(1 - p) / W**2 - p / 2
    a, K = -W / R * G_w, -CAPACITY * math.log1p(-red.w_q)
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
    np.testing.assert_allclose(found, loop_by_hand(net, 1j * w), rtol=1e-8)


def test_bode_is_the_formula_with_its_phase_unwrapped():
    """Lags of the window, the average and the self-clocking, and a delay: phases add up."""
    net = hollot(rates="ack", w_q=2e-3)
    found, eq = bode(net), equilibrium(net)
    (curve,) = found.curves
    p, W, R = (getattr(eq.flows["flows"], k)[0] for k in ("mark_probability", "window", "rtt"))
    a = ((1 - p) / W + p * W / 2) / R
    K = -CAPACITY * math.log1p(-net.links[0].queue.w_q)
    w = curve.frequency
    lags = np.arctan(w / a) + np.arctan(w / K) + np.arctan(w * R) + w * R
    np.testing.assert_allclose(curve.phase, -np.degrees(lags), rtol=1e-7)
    np.testing.assert_allclose(curve.magnitude, abs(loop_by_hand(net, 1j * w)), rtol=1e-8)


def test_margins_of_bode_are_those_of_stability():
    """At the gain crossover |L| is 1, and the phase the margin less 180 degrees, with all turns."""
    net = load("akujobi2002/homogeneous_tcp_250ms")
    found, judged = bode(net), stability(net)
    data = found.to_xarray()
    at = math.log(judged.gain_crossover), np.log(data["frequency"])
    assert np.interp(*at, np.log(data["magnitude"])) == pytest.approx(0, abs=1e-3)
    assert np.interp(*at, data["phase"]) == pytest.approx(judged.phase_margin - 180, abs=0.1)
    assert float(data["phase_margin"]) == judged.phase_margin < -180
    # the first crossing of the negative axis decides by how much the gain must fall
    response = found.curves[0].response
    first = np.flatnonzero((np.diff(np.sign(response.imag)) > 0) & (response.real[1:] < 0))[0]
    share = response.imag[first] / (response.imag[first] - response.imag[first + 1])
    factor = -((1 - share) * response.real[first] + share * response.real[first + 1])
    words = judged.describe_margins()
    assert f"lags {-judged.phase_margin:.4g} deg beyond -180 deg" in words
    assert f"fall by a factor of {factor:.3g} ({20 * math.log10(factor):.3g} dB)" in words
    assert words in repr(judged) and words in repr(found)
    assert f"{judged.gain_margin:.5g} ({20 * math.log10(judged.gain_margin):.3g} dB)" in repr(found)
    assert stability(load("hollot2001/slow")).describe_margins() == ""


def test_front_has_less_delay_by_the_queueing():
    """Same gain crossover; the delay margin grows by exactly q/C. Theory, section 6."""
    tail, ahead = (hollot(rates="ack", w_q=1e-5, feedback=f) for f in (None, laws.MarkFront()))
    a, b = (system_margins(linearize(net), scale=4.0) for net in (tail, ahead))
    queue = equilibrium(tail).links["bottleneck"].queue
    assert a.gain_crossover == pytest.approx(b.gain_crossover, rel=1e-10)
    assert b.delay_margin - a.delay_margin == pytest.approx(queue / CAPACITY, rel=1e-8)


def test_zero_frequency_gain_is_that_of_the_maps():
    """L(0) = N |g'(p)| p'(v), where g is the equilibrium window of each rate model."""
    for rates in ("ack", "self_clocked", "mgt"):
        net = hollot(rates=rates)
        eq = equilibrium(net)
        p = eq.links["bottleneck"].mark_probability
        slope = 60 * 0.1 / 550
        squared = 2 * (1 - p) / p if rates != "mgt" else 2 / p
        expected = slope / (p**2 * math.sqrt(squared))  # both maps have |g'| = 1/(W p^2)
        assert system_margins(linearize(net), scale=4.0).zero_frequency_gain == pytest.approx(
            expected, rel=1e-6
        )
