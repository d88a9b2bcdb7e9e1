"""Characteristic roots against Lambert's function, published values and another discretisation."""

import math

import numpy as np
import pytest
import scipy.special
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc import errors
from fluidcc.analysis.characteristic import Characteristic
from fluidcc.analysis.linear import LINK, Linear
from fluidcc.analysis.roots import approximate_roots, rightmost_roots
from fluidcc.analysis.stability import prove
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
        state_owner=np.array([LINK]), output_owner=np.array([LINK]),
    )  # fmt: skip
    count = count_roots(Characteristic(system))
    assert count.number is None and "neutral" in count.reason


# -- Counts of unstable roots proven in ball arithmetic
# x' = a x + b x(t - 1). Hayes (1950); roots of x' = -b x(t - 1) cross at b = pi/2 + 2 k pi
HAYES = {
    (0.0, -1.57): 0,
    (0.0, -1.58): 2,
    (0.0, -(np.pi / 2) * (1 - 1e-9)): 0,
    (0.0, -(np.pi / 2) * (1 + 1e-9)): 2,
    (0.0, -8.0): 4,
    (0.5, -1.0): 0,
    (2.0, 1.0): 1,
    (-1.0, -5.0): 2,
    (-3.0, 2.9): 0,
}


@pytest.mark.parametrize("numbers", HAYES, ids=str)
def test_the_count_is_that_of_hayes(numbers):
    a, b = numbers
    found = prove(Linear.retarded(a, [[[b]]], [1.0]))
    assert found.unstable == HAYES[numbers], found.reason


def test_two_delays():
    # x' = -b (x(t - 1) + x(t - 3)) = -2 b x(t - 2) cos(s): i w is a root where cos(2 w) = 0 and
    # w = 2 b sin(2 w) cos(w), first at w = pi/4: b = pi/(4 sqrt(2)) = 0.5554
    first = np.pi / (4 * np.sqrt(2.0))
    for b, unstable in ((0.99 * first, 0), (1.01 * first, 2)):
        system = Linear.retarded(0.0, [[[-b]], [[-b]]], [1.0, 3.0])
        assert prove(system).unstable == unstable


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_a_root_on_the_axis_is_refused(shift):
    # s^2 + shift^2: roots at +- i shift, exactly
    found = prove(Linear.retarded([[0.0, 1.0], [-shift, 0.0]], [], []))
    assert found.unstable is None
    assert "too near the imaginary axis" in found.reason


def test_what_is_conserved_is_refused():
    system = Linear.retarded([[0.0]], [], [])
    conserved = Linear(**{**vars(system), "conserved": 1})
    assert "conserved" in prove(conserved).reason


@pytest.mark.parametrize(("name", "unstable"), [("hollot2001/slow", 0), ("hollot2001/fast", 2)])
def test_stability_of_a_scenario_as_a_theorem(name, unstable):
    net = fc.load(name)
    plain, proven = fc.stability(net), fc.stability(net, certify=True)
    assert (plain.proof, proven.proof) == ("double precision", "ball arithmetic")
    assert proven.unstable == plain.unstable == unstable
    assert proven.stable == (unstable == 0)
    assert proven.certified
    assert "in ball arithmetic" in repr(proven)
    assert proven.to_dict()["proof"] == "ball arithmetic"


def test_without_the_library_the_command_that_installs_it_is_told(monkeypatch):
    def absent(_: str) -> None:
        raise ImportError

    monkeypatch.setattr(errors, "import_module", absent)
    with pytest.raises(errors.MissingExtra, match=r"pip install 'fluidcc\[certify\]'"):
        prove(Linear.retarded(0.0, [[[-1.0]]], [1.0]))
