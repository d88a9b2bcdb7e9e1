"""Roots and verdicts in batches, against those one by one and against closed forms."""

import math

import numpy as np
import scipy.special
from analysis_cases import ecn_mod, hollot

from fluidcc.analysis.batch import many_roots
from fluidcc.analysis.characteristic import Characteristic
from fluidcc.analysis.linear import LINK, Linear
from fluidcc.analysis.roots import rightmost_roots
from fluidcc.analysis.stability import stability
from fluidcc.analysis.stability_map import stability_map
from fluidcc.analysis.winding import counts
from fluidcc.scenario.paths import replace


def assert_as_one_by_one(systems, found, some=slice(None)):
    for i in np.arange(len(found))[some]:
        one = rightmost_roots(systems[i])
        assert found.unstable[i] == one.unstable and found.certified[i] == one.certified
        assert abs(found.rightmost[i] - one.rightmost) < 1e-9 * abs(one.rightmost)


def hayes():
    rng = np.random.default_rng(4)
    a0, a1 = rng.uniform(-3, 1, 300), rng.uniform(-6, 3, 300)
    lag = rng.uniform(0.2, 2, 300)
    order = np.argsort(a1)
    return a0[order], a1[order], lag[order]


def test_scalar_roots_are_lambert_values():
    a0, a1, lag = hayes()
    systems = Linear.retarded(a0[:, None, None], a1[:, None, None, None], lag[:, None])
    found = many_roots(systems)
    assert found.certified.all() and "ManyRoots: 300 systems" in repr(found)
    branches = np.arange(-8, 9)[:, None]
    s = scipy.special.lambertw(a1 * lag * np.exp(-a0 * lag), branches) / lag + a0
    np.testing.assert_allclose(found.rightmost.real, s.real.max(axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(found.unstable, np.sum(s.real > 0, axis=0))
    assert set(found.unstable) >= {0, 1, 2, 3}
    assert found.proven.mean() > 0.9 and np.mean(found.source == "neighbour") > 0.2


def test_counts_right_of_other_lines():
    """Lines between the real parts of -x(t - 1): -0.318, -2.06, -2.65, each of another system."""
    lines, expected = np.array([0.5, -0.3, -0.4, -2.0, -2.4]), [0, 0, 2, 2, 4]
    systems = Linear.retarded(np.zeros((5, 1, 1)), -np.ones((5, 1, 1, 1)), np.ones((5, 1)))
    found = counts(Characteristic(systems), np.arange(5), lines)
    assert [count.number for count in found] == expected


def two_delays(number):
    """Two states with two delays, along a way through their space."""
    rng = np.random.default_rng(9)
    t = np.linspace(0, 1, number)[:, None, None]
    A, B, C = (rng.normal(size=(2, 2, 2)) for _ in range(3))
    mixed = [(1 - t) * x[0] + t * x[1] for x in (A - 1.5 * np.eye(2), 2 * B, C)]
    lags = np.stack([0.7 + 0.2 * t[:, 0, 0], 1.3 - 0.3 * t[:, 0, 0]], axis=1)
    return Linear.retarded(mixed[0], np.stack(mixed[1:], axis=1), lags)


def test_roots_with_two_delays_are_those_one_by_one():
    systems = two_delays(300)
    found = many_roots(systems)
    assert found.certified.all() and len(set(found.unstable)) > 2
    assert_as_one_by_one(systems, found, slice(None, None, 9))


def arrows(number):
    """A link's state, a class with one state and a class with two, along a way."""
    out = []
    for t in np.linspace(0, 1, number):
        A = np.diag([-0.5 - t, -1.0, -0.7, -2.3 + 2 * t])
        A[1, 2] = 0.4
        B = np.zeros((4, 4))
        B[0, 0], B[1, 1], B[3, 2], B[3, 3] = -1.5 - t, -2.0, 1.2 + 2 * t, 0.9
        C = np.zeros((3, 4))
        C[0, 3], C[1, 0], C[2, 2], C[2, 1] = 1.0, 1.0, 0.5, 1.0
        out.append(Linear(
            A, B, C, np.zeros((3, 4)), pick=np.array([0, 0, 1, 2]),
            lag=np.array([0.4, 0.7 + 0.1 * t, 0.2, 0.3]),
            state_owner=np.array([0, 1, 1, LINK]), output_owner=np.array([LINK, 0, 1]),
        ))  # fmt: skip
    return Linear.stack(out)


def test_classes_of_different_size():
    systems = arrows(60)
    found = many_roots(systems)
    assert found.certified.all() and set(found.source) <= {"neighbour", "eigenvalues"}
    assert len(set(found.unstable)) > 1
    assert_as_one_by_one(systems, found, slice(None, None, 6))


def test_a_root_on_the_axis_is_not_certified():
    """At a delay of pi/2 the roots of -x(t - tau) are i and -i; a little aside they are not."""
    lag = math.pi / 2 * (1 + np.array([0.0, -1e-6, 1e-6]))[:, None]
    found = many_roots(Linear.retarded(np.zeros((3, 1, 1)), -np.ones((3, 1, 1, 1)), lag))
    assert found.certified.tolist() == [False, True, True] and found.source[0] == "single"
    assert found.unstable[1:].tolist() == [0, 2]
    assert abs(found.rightmost[0] - 1j) < 1e-9


def assert_as_pointwise(net, found, some=slice(None)):
    for point in found.points[some]:
        one = stability(replace(net, dict(point.set)))
        assert (point.status, point.stable) == (one.status, one.stable)
        assert (point.unstable, point.certified) == (one.unstable, one.certified)
        assert (point.rightmost is None) == (one.rightmost is None)
        if one.rightmost is not None:
            assert abs(point.rightmost - one.rightmost) < 1e-9 * abs(one.rightmost)
        for name, link in one.equilibrium.links.items():
            np.testing.assert_allclose(point.queues[name], link.queue, rtol=1e-9)


def test_map_is_what_stability_finds():
    """Interior, the jump of a RED that is not gentle, and nothing at rest."""
    net = hollot()
    over = {"link.queue.w_q": np.geomspace(1e-5, 1e-1, 6), "flow.n": [20, 60, 400, 1200]}
    found = stability_map(net, over)
    assert found.shape == (6, 4) and found.batched == 12 and not found.failed
    assert set(found.grid("stable").ravel()) == {-1, 0, 1}
    assert_as_pointwise(net, found)
    text = repr(found)
    assert "6 discontinuity" in text and "6 none" in text and "12 in batches" in text


def test_map_takes_corners_and_faults_alone():
    """A kink of the marking, where two linearisations are judged, and values that are none."""
    net = ecn_mod(marking=None)
    rest = stability(net).equilibrium.links["bottleneck"]
    over = {"link.queue.min_th": [rest.queue, rest.queue - 5.0, -1.0]}
    found = stability_map(net, over)
    assert found.points[2].status == "failed" and "min_th" in found.failed[0].describe()
    assert_as_pointwise(net, found, slice(0, 2))
