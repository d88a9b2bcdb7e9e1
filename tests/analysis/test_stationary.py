"""Stationary windows against closed forms, simulation of the same rules, and known constants."""

import math

import numpy as np
import pytest
from scipy import stats

import fluidcc as fc
from fluidcc.analysis.stationary import stationary_window
from fluidcc.laws.law import Ack
from fluidcc.laws.reaction import OncePerRTT, Pause, PerMark
from fluidcc.laws.window.binomial import Binomial
from fluidcc.laws.window.bmcc import BMCC
from fluidcc.laws.window.dctcp import DCTCP
from fluidcc.laws.window.ecn_mod import ECNMod
from fluidcc.laws.window.polynomial import Polynomial
from fluidcc.laws.window.reno import Reno

ONE = Ack(1.0, 0.0, 1.0)


@pytest.mark.parametrize("p", [0.3, 0.02, 1e-3])
def test_additive_increase_on_every_clean_ack_has_the_mean_that_drift_says(p):
    # c1 w^0 up and c2 w down: the mean of a linear drift is exact. Misra and Ott (2003), eq. 4
    law = ECNMod(min_window=1e-3)
    found = stationary_window(law, p, reaction=PerMark())
    assert found.mean == pytest.approx(float(law.c1 / law.c2) * (1 - p) / p, rel=1e-6)
    assert found.fluid == pytest.approx(found.mean, rel=1e-6)


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
    found = stationary_window(Reno(), 1e-6, reaction=PerMark())
    assert found.mean * 1e-3 == pytest.approx(math.sqrt(2) * _moment(0.5), rel=1e-4)
    assert found.time_mean * 1e-3 == pytest.approx(math.sqrt(2) / _moment(-0.5), rel=1e-4)
    assert found.time_mean * 1e-3 == pytest.approx(1.3098, rel=1e-4)


def _simulated(law, p, deaf, quiet, acks, seed):
    """Means over packets and time of many windows that follow the rules one ACK at a time."""
    draw, chains = np.random.default_rng(seed), 400
    w, left = np.full(chains, 8.0), np.zeros(chains)
    rate = w.copy()
    packets, times = np.zeros(chains), np.zeros(chains)
    for k in range(2 * acks):
        if k >= acks:
            gap = 1 / np.where(left > 0, rate, w)
            packets += w
            times += gap
            if k == acks:
                area = np.zeros(chains)
            area += w * gap
        marked = draw.random(chains) < p
        reacts = marked & (left <= 0)
        grows = ~reacts & ((left <= 0) | (not quiet)) & (~marked | deaf)
        left = np.maximum(left - 1, 0)
        rate = np.where(reacts, w, rate)
        left = np.where(reacts & deaf, np.floor(w) - 1, left)
        cut = np.maximum(w + np.asarray(law.on_mark(w, ONE)), law.min_window)
        grown = np.minimum(w + np.asarray(law.on_ack(w, ONE)), law.max_window)
        if k >= acks and deaf:  # no ACKs come when those of packets not sent were due
            silent = np.where(reacts, (w - cut) / w, 0.0)
            times += silent
            area += cut * silent
        w = np.where(reacts, cut, np.where(grows, grown, w))
    return packets / acks, area / times


@pytest.mark.parametrize(
    ("law", "reaction", "quiet", "p"),
    [
        (Reno(), PerMark(), False, 0.02),
        (Reno(max_window=12.0), PerMark(), False, 0.005),
        (Binomial(), PerMark(), False, 0.02),
        (Polynomial(c1=0.5, alpha=0.0, c2=0.3, beta=0.7), PerMark(), False, 0.05),
        (Reno(), OncePerRTT(), True, 0.01),
        (Reno(), OncePerRTT(), False, 0.01),
    ],
    ids=["reno", "cap", "sqrt", "polynomial", "quiet", "deaf"],
)
def test_simulated_windows_have_the_same_means(law, reaction, quiet, p):
    found = stationary_window(law, p, reaction=reaction, quiet=quiet)
    seen = _simulated(law, p, not isinstance(reaction, PerMark), quiet, 4000, 5)
    for exact, values in zip((found.mean, found.time_mean), seen, strict=True):
        half = stats.t.ppf(1 - 5e-5, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
        assert abs(values.mean() - exact) < half


def test_shares_moments_and_quantiles_belong_together():
    found = stationary_window(Reno(), 0.01, reaction=PerMark())
    assert found.packets.sum() == pytest.approx(1)
    assert found.time.sum() == pytest.approx(1)
    # 1/w of a packet is its time: the mean over time is the harmonic mean over packets
    assert found.time_mean == pytest.approx(1 / float(found.packets @ (1 / found.window)))
    assert found.quantile(0.1) < found.quantile(0.5) < found.time_mean * 1.1
    assert found.bias == pytest.approx(found.fluid / found.time_mean - 1)
    assert found.to_dataset()["time"].sum() == pytest.approx(1)
    assert "fluid / mean - 1" in repr(found)


@pytest.mark.parametrize("p", [0.0, -1.0, 1.0, math.nan])
def test_a_probability_out_of_range_is_refused(p):
    with pytest.raises(ValueError, match="p: expected a probability"):
        stationary_window(Reno(), p, reaction=PerMark())


@pytest.mark.parametrize("law", [BMCC(), DCTCP()])
def test_laws_with_more_than_a_window_are_refused(law):
    with pytest.raises(ValueError, match="expected"):
        stationary_window(law, 0.01, reaction=Pause())


# -- Stationary windows of networks: what each group hears, and why others have none ---------------


MIXED = fc.load("misra2003/mixed")


@pytest.fixture(scope="module")
def mixed():
    return fc.stationary_windows(MIXED)


def test_every_group_has_the_marks_that_it_hears_at_rest(mixed):
    rest = fc.equilibrium(MIXED)
    for name, found in mixed.groups.items():
        assert found.p == pytest.approx(float(rest.flows[name].signal[0]), rel=1e-12)
        assert found.fluid == pytest.approx(float(rest.flows[name].window[0]), rel=1e-6)
    # the mean of a linear drift is exact over packets. Misra and Ott (2003), eq. 4
    mod = mixed.groups["mod"]
    assert mod.mean == pytest.approx(mod.fluid, rel=1e-4)


def test_a_given_probability_takes_the_place_of_the_rest():
    law = MIXED.flows[0].window
    found = fc.stationary_windows(MIXED, p=0.02)
    assert {own.p for own in found.groups.values()} == {0.02}
    expected = float(law.c1 / law.c2) * (1 - 0.02) / 0.02
    assert found.groups["mod"].mean == pytest.approx(expected, rel=1e-4)
