"""Changes of stability along a parameter, against closed forms and fine scans."""

import functools
import itertools
import math

import numpy as np
import pytest
import scipy.optimize
from analysis_cases import CAPACITY, ecn_mod, hollot

import fluidcc as fc
from fluidcc import equilibrium, linearize, load, replace, stability
from fluidcc.analysis.characteristic import Characteristic
from fluidcc.analysis.roots import approximate_roots, polish

crossings = functools.partial(fc.crossings, criticality=False)  # test_normal_form has it


def test_hopf_point_along_the_filter():
    found = crossings(hollot(), "link.queue.w_q", 1e-7, 0.9)
    assert found.stable_at_low and found.certified
    assert len(found.crossings) == 1 and not found.secondary and not found.without_equilibrium
    hopf = found.crossings[0]
    assert hopf.value == pytest.approx(1.048513e-4, rel=5e-7)
    assert hopf.frequency == pytest.approx(1.341540, abs=1e-6)
    assert (hopf.becomes, hopf.below, hopf.above) == ("unstable", 0, 2)
    root = stability(hollot(w_q=hopf.value)).rightmost
    assert abs(root.real) < 1e-10 and root.imag == pytest.approx(hopf.frequency, rel=1e-10)


def static_boundary(net):
    """All (K, w) with 1 + L(i w) = 0 for L = c a/(s+a) K/(s+K) e^(-sR): self-clocked, one class.

    On the axis the phase gives K(w) and the gain a scalar equation in w.
    """
    eq = equilibrium(net)
    flows, p = eq.flows["flows"], eq.links["bottleneck"].mark_probability
    W, R, red = flows.window[0], flows.rtt[0], net.links[0].queue
    a, c = p * W / R, 60 / (W * p**2) * red.p_max / 550

    def filter_phase(w):  # of K/(K + i w), in (-pi/2, 0)
        return -math.pi + math.atan(w / a) + w * R

    def excess(w):
        return c * math.cos(math.atan(w / a)) * math.cos(filter_phase(w)) - 1

    w = np.linspace(1e-3, (math.pi / 2) / R, 4000)
    w = w[[-math.pi / 2 < filter_phase(x) < 0 for x in w]]
    values = [excess(x) for x in w]
    out = []
    for (low, y0), (high, y1) in itertools.pairwise(zip(w, values, strict=True)):
        if y0 * y1 < 0:
            omega = scipy.optimize.brentq(excess, low, high, xtol=1e-15)
            K = omega / math.tan(-filter_phase(omega))
            out.append((-math.expm1(-K / CAPACITY), omega))
    return sorted(out)


def test_stability_is_not_monotone_in_the_filter():
    """Self-clocked: a slow filter is stable, a middle one not, a fast one again. Theory, 6."""
    net = hollot(rates="self_clocked")
    exact = static_boundary(net)
    found = crossings(net, "link.queue.w_q", 1e-6, 0.3)
    assert len(exact) == 2
    assert [c.becomes for c in found.crossings] == ["unstable", "stable"]
    np.testing.assert_allclose([(c.value, c.frequency) for c in found.crossings], exact, rtol=1e-9)
    assert found.stable_at_low


def test_two_crossings_within_one_cell_are_found():
    """Five points: stable at all of them, unstable only between two."""
    net = hollot(rates="self_clocked")
    low, high = 1e-6, 0.3
    exact = [value for value, _ in static_boundary(net)]
    grid = np.geomspace(low, high, 4)
    assert sum(exact[0] < g < exact[1] for g in grid) == 0
    found = crossings(net, "link.queue.w_q", low, high, points=4)
    np.testing.assert_allclose([c.value for c in found.crossings], exact, rtol=1e-9)


def test_further_roots_that_cross_are_kept_apart():
    """A fast filter and a steep RED: more pairs follow the first; the verdict changes no more."""
    net = hollot(n=20.0, p_max=1.0, w_q=0.1, rates="self_clocked")
    found = crossings(net, "flow.rtt", 0.04, 0.12, points=7)
    assert found.stable_at_low is False and not found.crossings
    assert len(found.secondary) >= 1
    for c in found.secondary:
        assert c.above == c.below + 2
        system = linearize(replace(net, {"flow.rtt": c.value}))
        on_axis = polish(Characteristic(system), np.array([1j * c.frequency]))
        assert abs(on_axis[0] - 1j * c.frequency) < 1e-9 * c.frequency


def test_saturation_ends_the_scan_but_not_the_search():
    """More flows: stable from some N on; beyond another the marking needed exceeds p_max."""
    net = hollot()
    found = crossings(net, "flow.n", 20.0, 1000.0)
    assert found.stable_at_low is False
    (crossing,) = found.crossings
    assert crossing.becomes == "stable"
    root = stability(replace(net, {"flow.n": crossing.value})).rightmost
    assert abs(root.real) < 1e-9
    (gap,) = found.without_equilibrium
    window = math.sqrt(2 / 0.1)
    limit = CAPACITY * (0.2 + 700 / CAPACITY) / window
    assert gap.status == "discontinuity" and gap.high == 1000.0
    assert gap.low == pytest.approx(limit, rel=1e-9)
    assert found.to_dict()["without_equilibrium"] == [
        {"low": gap.low, "high": 1000.0, "status": "discontinuity"}
    ]


def test_a_jump_at_a_kink_is_a_change_of_stability():
    """Where the queue passes max_th of a gentle RED the slope of p jumps, and with it the roots."""
    net = ecn_mod(p_max=0.02, w_q=1e-3, n=(20.0,), rtt=(0.2,))
    path = "flow.n"
    found = crossings(net, path, 5.0, 60.0, points=12)
    counts = {
        n: stability(replace(net, {path: float(n)})).unstable for n in np.linspace(5.5, 59.5, 28)
    }
    for n, count in counts.items():
        passed = [c for c in (*found.crossings, *found.secondary) if c.value < n]
        expected = max(passed, key=lambda c: c.value).above if passed else (
            0 if found.stable_at_low else counts[min(counts)])  # fmt: skip
        assert count == expected
    jumps = [c for c in found.crossings if c.jump]
    assert jumps
    for c in jumps:
        at = equilibrium(replace(net, {path: c.value})).links["bottleneck"].queue
        assert min(abs(at - corner) for corner in (25, 75, 150)) < 1e-6


def test_the_frequency_at_a_jump_is_that_of_the_unstable_side():
    """20 classes; the queue passes a corner of RED at the marking that the flows need there."""
    net = load("misra2003/mixed")
    found = crossings(net, "link.queue.p_max", 0.0222, 0.024, points=3)
    (jump,) = found.crossings
    assert jump.jump and (jump.becomes, jump.below, jump.above) == ("stable", 2, 0)
    before = replace(net, {"link.queue.p_max": jump.value * (1 - 1e-9)})
    eigenvalues = approximate_roots(linearize(before), 16)
    rightmost = eigenvalues[np.argmax(eigenvalues.real)]
    assert jump.frequency == pytest.approx(abs(rightmost.imag), rel=1e-5)
    assert found.to_dict()["crossings"][0]["jump"] is True


def test_every_count_between_crossings_agrees():
    """Three round trips and a steep RED: the verdict between crossings is that of the roots."""
    net = ecn_mod(n=(4.0, 3.0, 3.0), rtt=(0.05, 0.12, 0.25), p_max=1.0)
    found = crossings(net, "link.queue.w_q", 1e-6, 0.5)
    edges = [1e-6, *(c.value for c in found.crossings), 0.5]
    verdict = found.stable_at_low
    for low, high in itertools.pairwise(edges):
        middle = math.sqrt(low * high)
        assert stability(replace(net, {"link.queue.w_q": middle})).stable == verdict
        verdict = not verdict
    for c in found.crossings:
        system = linearize(replace(net, {"link.queue.w_q": c.value}))
        assert system.size[0] == 5
