"""The ADPM code: its hash, the receiver's rule, and what becomes of the estimate.

References: Qazi, Znati and Andrew (2010), section 3.2; the distribution after n packets follows
from the hashes that fall between estimate and load factor. Random runs have fixed seeds and are
compared within 5 standard errors.
"""

import numpy as np
import pytest
from scipy.integrate import quad

from fluidcc.laws.adpm import ADPM

LAW = ADPM()
LOADS = [0.1, 0.15, 0.4, 0.75, 0.9, 1.0, 1.1, 1.19]


def estimates(start: float, load: float, packets: int, runs: int, seed: int) -> np.ndarray:
    """Estimates after a number of packets, of many receivers under the rule."""
    hashes = np.random.default_rng(seed).random((packets, runs))
    estimate = np.full(runs, start)
    for row in hashes:
        estimate = estimate + np.asarray(LAW.decode(estimate, row, load))
    return estimate


def test_hash_masses_and_their_inverse():
    assert [LAW.distribution(v) for v in (0.1, 0.15, 0.75, 1.0, 1.2)] == [0.0, 0.0, 0.25, 0.5, 1.0]
    for hashed in (0.0, 0.1, 0.25, 0.4, 0.5, 0.9):
        assert LAW.distribution(LAW.hash_value(hashed)) == pytest.approx(hashed, abs=1e-15)
    other = ADPM(low_share=0.1, mild_share=0.6, lowest=0.2, mild=0.5, highest=1.5)
    assert [other.hash_value(h) for h in (0.0, 0.1, 0.7)] == pytest.approx([0.2, 0.5, 1.0])


def test_the_rule_of_the_receiver():
    at = {v: float(LAW.distribution(v)) for v in (0.3, 0.8, 1.1)}
    moved = {(e, h): e + LAW.decode(e, at[h], 0.9) for e in (0.5, 1.15) for h in at}
    expected = {
        (0.5, 0.3): 0.5,  # (01), but the hash tells less than the estimate
        (0.5, 0.8): 0.8,  # (01) and h above the estimate
        (0.5, 1.1): 0.5,  # (10), but above the estimate
        (1.15, 0.3): 1.15,
        (1.15, 0.8): 1.15,
        (1.15, 1.1): 1.1,  # (10) and h below the estimate
    }
    assert moved == pytest.approx(expected)


@pytest.mark.parametrize("estimate", [0.0, 0.15, 0.5, 0.75, 0.95, 1.0, 1.13, 1.2])
@pytest.mark.parametrize("load", LOADS)
def test_mean_is_the_integral_of_the_rule(estimate: float, load: float):
    ends = [LAW.distribution(v) for v in (estimate, load)]
    change = lambda h: float(LAW.decode(estimate, h, load))  # noqa: E731
    expected, _ = quad(change, 0, 1, points=sorted({0.25, 0.5, *ends} - {0.0, 1.0}), epsabs=1e-13)
    assert float(LAW.mean(estimate, load)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("packets", [3, 20])
@pytest.mark.parametrize("load", LOADS)
def test_mean_error_is_the_mean_of_the_distribution(load: float, packets: int):
    told = max(load, 0.15)
    inner = [v for v in (0.75, 1.0) if v > told]
    share = lambda v: float(LAW.share_above(v, load, packets))  # noqa: E731
    expected, _ = quad(share, told, 1.2, points=inner or None, epsabs=1e-12)
    assert float(LAW.mean_error(load, packets)) == pytest.approx(expected, rel=1e-10)
    found = estimates(1.2, load, packets, 20_000, seed=12) - told
    error = found.std(ddof=1) / np.sqrt(len(found))
    assert abs(found.mean() - expected) <= 5 * error


@pytest.mark.parametrize(("load", "slope"), [(0.4, 0.25 / 0.6), (0.85, 1.0), (1.05, 2.5)])
def test_errors_of_many_packets(load: float, slope: float):
    n = 1000.0
    assert LAW.mean_error(load, n) * n * slope == pytest.approx(1.0, rel=0.02)
    # one number that moves by the mean rule forgets half as fast
    estimate = 1.2
    for _ in range(round(n)):
        estimate += float(LAW.mean(estimate, load))
    assert (estimate - load) * n * slope == pytest.approx(2.0, rel=0.05)


def test_the_estimate_after_a_mark_of_another_router():
    for n in (1, 4, 9):
        assert LAW.share_above(1.0, 0.0, n) == pytest.approx(0.5**n, rel=1e-14)
        assert LAW.share_above(0.75, 0.0, n) == pytest.approx(0.75**n, rel=1e-14)
