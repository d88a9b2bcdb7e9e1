"""Stationary windows against closed forms, simulation of the same rules, and known constants."""

import math

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.laws import BMCC, DCTCP, ECNMod, Pause, PerMark, Reno


@pytest.mark.parametrize("p", [0.3, 0.02, 1e-3])
def test_additive_increase_on_every_clean_ack_has_the_mean_that_drift_says(p):
    # c1 w^0 up and c2 w down: the mean of a linear drift is exact. Misra and Ott (2003), eq. 4
    law = ECNMod(min_window=1e-3)
    found = fc.window_distribution(law, p, reaction=PerMark())
    assert found.window_per_packet == pytest.approx(float(law.c1 / law.c2) * (1 - p) / p, rel=1e-6)
    assert found.window_fluid == pytest.approx(found.window_per_packet, rel=1e-6)


def _moment(power, ratio=0.25, terms=20):
    """Mean of S^power for S = sum of ratio^j E_j over j >= 0, with E_j exponential of mean 1.

    The density of S is a mixture of those of its terms, with weights of both signs.
    """
    k = np.arange(1, terms)
    first = 1 / np.prod(1 - ratio ** np.arange(1, 200))
    weights = first * np.concatenate([[1.0], np.cumprod(1 / (1 - ratio**-k))])
    return math.gamma(1 + power) * np.sum(weights * ratio ** (power * np.arange(terms)))


def test_halving_windows_have_the_constants_of_small_probabilities():
    # the square of a window grows by 2 an ACK and falls to a quarter at each mark, which comes
    # after an exponential number of ACKs. Ott, Kemperman and Mathis (1996)
    found = fc.window_distribution(Reno(), 1e-6, reaction=PerMark())
    assert found.window_per_packet * 1e-3 == pytest.approx(math.sqrt(2) * _moment(0.5), rel=1e-4)
    assert found.window_mean * 1e-3 == pytest.approx(math.sqrt(2) / _moment(-0.5), rel=1e-4)
    assert found.window_mean * 1e-3 == pytest.approx(1.3098, rel=1e-4)


def test_shares_moments_and_quantiles_belong_together():
    found = fc.window_distribution(Reno(), 0.01, reaction=PerMark())
    assert found.packet_share.sum() == pytest.approx(1)
    assert found.time_share.sum() == pytest.approx(1)
    # 1/w of a packet is its time: the mean over time is the harmonic mean over packets
    assert found.window_mean == pytest.approx(1 / float(found.packet_share @ (1 / found.window)))
    assert found.quantile(0.1) < found.quantile(0.5) < found.window_mean * 1.1
    assert found.window_bias == pytest.approx(found.window_fluid / found.window_mean - 1)
    assert found.to_xarray()["time_share"].sum() == pytest.approx(1)
    assert "fluid / mean - 1" in repr(found)


@pytest.mark.parametrize("p", [0.0, -1.0, 1.0, math.nan])
def test_a_probability_out_of_range_is_refused(p):
    with pytest.raises(ValueError, match="p: expected a probability"):
        fc.window_distribution(Reno(), p, reaction=PerMark())


@pytest.mark.parametrize("law", [BMCC(), DCTCP()])
def test_laws_with_more_than_a_window_are_refused(law):
    with pytest.raises(ValueError, match="expected"):
        fc.window_distribution(law, 0.01, reaction=Pause())


# -- Stationary windows of networks: what each group hears
MIXED = fc.load("misra2003/mixed")


@pytest.fixture(scope="module")
def mixed():
    return fc.window_distributions(MIXED)


def test_every_group_has_the_marks_that_it_hears_at_rest(mixed):
    rest = fc.equilibrium(MIXED)
    for name, found in mixed.groups.items():
        assert found.mark_probability == pytest.approx(
            float(rest.flows[name].mark_probability[0]), rel=1e-12
        )
        assert found.window_fluid == pytest.approx(float(rest.flows[name].window[0]), rel=1e-6)
    # the mean of a linear drift is exact over packets. Misra and Ott (2003), eq. 4
    mod = mixed.groups["mod"]
    assert mod.window_per_packet == pytest.approx(mod.window_fluid, rel=1e-4)


def test_a_given_probability_takes_the_place_of_the_rest():
    law = MIXED.flows[0].window
    found = fc.window_distributions(MIXED, p=0.02)
    assert {own.mark_probability for own in found.groups.values()} == {0.02}
    expected = float(law.c1 / law.c2) * (1 - 0.02) / 0.02
    assert found.groups["mod"].window_per_packet == pytest.approx(expected, rel=1e-4)
