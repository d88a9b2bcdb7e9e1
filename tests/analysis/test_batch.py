"""Roots and verdicts in batches, against those one by one and against closed forms."""

import math

import numpy as np
import pytest
import scipy.special
from analysis_cases import ecn_mod, hollot

from fluidcc import replace, stability, stability_map
from fluidcc.analysis.batch import many_roots
from fluidcc.analysis.linear import Linear


def test_scalar_roots_are_lambert_values():
    rng = np.random.default_rng(4)
    numbers = np.stack([rng.uniform(*ends, 300) for ends in ((-3, 1), (-6, 3), (0.2, 2))])
    a0, a1, lag = numbers[:, np.argsort(numbers[1])]
    systems = Linear.retarded(a0[:, None, None], a1[:, None, None, None], lag[:, None])
    found = many_roots(systems)
    assert found.certified.all() and "ManyRoots: 300 systems" in repr(found)
    branches = np.arange(-8, 9)[:, None]
    s = scipy.special.lambertw(a1 * lag * np.exp(-a0 * lag), branches) / lag + a0
    np.testing.assert_allclose(found.rightmost.real, s.real.max(axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(found.unstable, np.sum(s.real > 0, axis=0))
    assert set(found.unstable) >= {0, 1, 2, 3}
    assert found.proven.mean() > 0.9 and np.mean(found.source == "neighbour") > 0.2


def test_a_root_on_the_axis_is_not_certified():
    """At a delay of pi/2 the roots of -x(t - tau) are i and -i; a little aside they are not."""
    lag = math.pi / 2 * (1 + np.array([0.0, -1e-6, 1e-6]))[:, None]
    found = many_roots(Linear.retarded(np.zeros((3, 1, 1)), -np.ones((3, 1, 1, 1)), lag))
    assert found.certified.tolist() == [False, True, True] and found.source[0] == "single"
    assert found.unstable[1:].tolist() == [0, 2]
    assert abs(found.rightmost[0] - 1j) < 1e-9


def test_triangular_systems_have_the_roots_of_their_diagonals():
    """Three states each, of many systems; one has a root at zero, where its matrix is singular."""
    rng = np.random.default_rng(2)
    present, delayed = (np.triu(rng.uniform(-2.0, 2.0, (200, 3, 3)), k) for k in (0, 1))
    present[7, 1, 1] = 0.0
    lags = rng.uniform(0.1, 1.0, (200, 1))
    found = many_roots(Linear.retarded(present, delayed[:, None], lags))
    roots = np.diagonal(present, axis1=1, axis2=2)
    certified = np.ones(200, bool)
    certified[7] = False
    np.testing.assert_array_equal(found.certified, certified)
    np.testing.assert_array_equal(found.unstable, np.sum(roots > 0, axis=1))
    np.testing.assert_allclose(found.rightmost, roots.max(axis=1), rtol=1e-9)


def test_systems_without_delay_have_the_eigenvalues_of_their_matrices():
    """Three states, fewer than roots that are followed, next to a much larger matrix of rank one,
    whose determinants lose digits.
    """
    rng = np.random.default_rng(6)
    column, row = rng.uniform(0.5, 1.5, (2, 200, 3, 1))
    present = rng.uniform(-1.0, 1.0, (200, 3, 3)) - 1e6 * column * np.swapaxes(row, 1, 2)
    found = many_roots(Linear.retarded(present, np.zeros((200, 1, 3, 3)), np.ones((200, 1))))
    roots = np.linalg.eigvals(present)
    np.testing.assert_array_equal(found.unstable, np.sum(roots.real > 0, axis=1))
    np.testing.assert_allclose(found.rightmost.real, roots.real.max(axis=1), rtol=1e-6, atol=1e-8)
    assert found.certified.all()


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


def test_points_and_grids_of_a_map_are_one():
    """Points with and without a verdict, and one that fails, by number, slice, field and file."""
    found = stability_map(hollot(), {"flow.n": [20, 60, 1200, -1.0]})
    last = found.points[-1]
    assert last == found.points[3] and last.status == "failed" and last.queues == {}
    assert found.points[:2] == tuple(found.points)[:2] and len(found.points) == 4
    for name in ("status", "message", "certified", "proven"):
        assert found.grid(name).tolist() == [getattr(p, name) for p in found.points]
    known = [p.unstable for p in found.points]
    assert found.grid("unstable").tolist() == [-1 if n is None else n for n in known]
    queues = found.grid("links.bottleneck.queue")
    np.testing.assert_array_equal(queues[:3], [p.queues["bottleneck"] for p in found.points[:3]])
    assert np.isnan(queues[3]) and [p["set"] for p in found.to_dict()["points"]] == [
        {"flow.n": n} for n in (20, 60, 1200, -1.0)
    ]
    with pytest.raises(ValueError, match=r"one of status.*did you mean 'unstable'"):
        found.grid("unstabel")


def test_a_map_of_several_classes_is_what_stability_finds():
    net = ecn_mod(n=(4.0, 3.0, 3.0), rtt=(0.05, 0.12, 0.25), p_max=1.0)
    found = stability_map(net, {"link.queue.w_q": np.geomspace(1e-5, 0.1, 16)})
    assert found.batched == 16 and set(found.grid("stable")) == {0, 1}
    assert_as_pointwise(net, found, slice(None, None, 3))


def test_map_takes_corners_and_faults_alone():
    """A kink of the marking, where two linearisations are judged, and values that are none."""
    net = ecn_mod(marking=None)
    rest = stability(net).equilibrium.links["bottleneck"]
    over = {"link.queue.min_th": [rest.queue, rest.queue - 5.0, -1.0]}
    found = stability_map(net, over)
    assert found.points[2].status == "failed" and "min_th" in found.failed[0].describe()
    assert_as_pointwise(net, found, slice(0, 2))
