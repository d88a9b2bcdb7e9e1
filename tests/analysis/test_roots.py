"""Characteristic roots against Lambert's function, published values and another discretisation."""

import math

import numpy as np
import pytest
import scipy.special
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fluidcc.analysis.characteristic import Characteristic
from fluidcc.analysis.collocation import approximate_roots
from fluidcc.analysis.linear import LINK, Linear
from fluidcc.analysis.roots import rightmost_roots
from fluidcc.analysis.winding import count_roots


def scalar(a0, a1, tau):
    return Linear.retarded([[a0]], [[[a1]]], [tau])


def lambert(a0, a1, tau, branches=8):
    """Roots of s = a0 + a1 e^(-s tau) in the upper half plane, from the right."""
    z = a1 * tau * math.exp(-a0 * tau)
    s = np.array([scipy.special.lambertw(z, k) for k in range(-branches, branches + 1)]) / tau + a0
    s = s[s.imag >= -1e-12]
    return s[np.argsort(-s.real)]


@pytest.mark.parametrize(
    ("a0", "a1", "tau"),
    [(0, -1, 1), (-1, -2, 1.5), (0, -1.5, 1), (0, -1.6, 1), (0, -10, 1), (1, 0.5, 0.3), (-3, 1, 2)],
)
def test_scalar_roots_are_lambert_values(a0, a1, tau):
    found = rightmost_roots(scalar(a0, a1, tau))
    exact = lambert(a0, a1, tau)
    upper = found.values[found.values.imag >= 0][:4]
    np.testing.assert_allclose(upper, exact[: len(upper)], rtol=0, atol=1e-12)
    assert len(upper) >= 2
    assert found.certified and found.proven >= 1
    assert found.unstable == sum(2 if s.imag > 0 else 1 for s in exact if s.real > 0)


@pytest.mark.parametrize(
    ("a0", "a1", "tau", "roots"),
    [
        (0, -1, 1, [-0.318131505204764, 1.337235701430689, -2.062277729598284, 7.588631178472513]),
        (-1, -2, 1.5, [0.065617711050712, 1.466186852107398, -0.648693170201645, 5.2802770795022]),
    ],
)  # fmt: skip
def test_published_roots(a0, a1, tau, roots):
    """The first two pairs of -x(t - 1) and of Hayes's equation, from another solver."""
    found = rightmost_roots(scalar(a0, a1, tau)).values
    pairs = [part for s in found[[0, 2]] for part in (s.real, s.imag)]
    np.testing.assert_allclose(pairs, roots, rtol=0, atol=1e-12)


@pytest.mark.parametrize("omega", [0.5, 1.0, 2.5])
def test_hayes_boundary_separates_counts(omega):
    """On the boundary a root is i omega and the count is refused; beside it, it differs by 2."""
    a0, a1 = omega / math.tan(omega), -omega / math.sin(omega)
    on = rightmost_roots(scalar(a0, a1, 1.0))
    assert not on.certified and "too near" in on.reason
    assert abs(on.rightmost - 1j * omega) < 1e-12
    counts = [count_roots(Characteristic(scalar(a0, f * a1, 1.0))).number for f in (1.001, 0.999)]
    assert counts[0] - counts[1] == 2


def test_without_delay_roots_are_eigenvalues():
    A = np.array([[0.0, 1.0, 0.0], [-4.0, 0.5, 0.2], [0.0, 0.0, -1.0]])
    found = rightmost_roots(Linear.retarded(A, [], []))
    expected = np.linalg.eigvals(A)
    np.testing.assert_allclose(np.sort_complex(found.values), np.sort_complex(expected), atol=1e-12)
    assert found.unstable == 2 and found.certified


def random_system(draw_size, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(draw_size, draw_size))
    delayed = [2 * rng.normal(size=(draw_size, draw_size)) for _ in range(2)]
    return Linear.retarded(A, delayed, [0.7, 1.3])


@settings(max_examples=15)
@given(st.integers(1, 3), st.integers(0, 10**6))
def test_count_agrees_with_fine_collocation(size, seed):
    system = random_system(size, seed)
    eigenvalues = approximate_roots(system, 40)
    near = eigenvalues[np.abs(eigenvalues.imag) < 15]  # collocation has those to many digits
    assume(np.abs(near.real).min() > 1e-3)
    found = rightmost_roots(system)
    assert count_roots(Characteristic(system)).number == np.sum(near.real > 0)
    assert found.unstable == np.sum(near.real > 0) and found.certified
    for s in found.values[: found.proven]:
        assert np.abs(eigenvalues - s).min() < 1e-6 * (1 + abs(s))


def test_neutral_systems_are_refused():
    """x' = -x + 0.9 x'(t - 1), written with x' on the wire."""
    system = Linear(
        A=np.array([[-1.0]]), B=np.array([[0.9]]), C=np.array([[-1.0]]), D=np.array([[0.9]]),
        pick=np.array([0]), lag=np.array([1.0]),
        state_owner=np.array([LINK]), wire_owner=np.array([LINK]),
    )  # fmt: skip
    count = count_roots(Characteristic(system))
    assert count.number is None and "neutral" in count.reason
