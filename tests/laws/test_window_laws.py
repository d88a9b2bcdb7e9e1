"""Window laws with more than a rule per mark, the receiver-window feedback and the blocks.

References: Akujobi et al. (2002) for BECN; Qazi, Znati and Andrew (2010), eqs 2-6 and section 5,
for BMCC; Alizadeh et al. (2010, 2011) for DCTCP; the run of modified ACKs for the receiver window.
"""

import math

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import quad
from scipy.optimize import brentq

from fluidcc import laws
from fluidcc.laws.registry import LAWS
from fluidcc.programs import slope

Mode, Estimated = laws.BMCC(fallback=True).state_of, laws.DCTCP().state_of

R = 0.1
ONE = laws.Ack(1.0, 0.0, R)


def at(load: float, *, elapsed: float = 0.0, count: float = 0.0, rtt: float = R) -> laws.Ack:
    return laws.Ack(count, elapsed, rtt, load)


# -- TCP and BECN
def resting_window(law, reaction, p: float) -> float:
    """Window at which growth and reactions to marks balance, by bisection on the rules."""

    def drift(w: float) -> float:
        share = reaction.shares(p, w)
        return float(share.growing * law.on_ack(w, ONE) + share.reacting * law.on_mark(w, ONE))

    return brentq(drift, 1e-6, 1e6, xtol=1e-14, rtol=1e-14)


@pytest.mark.parametrize("p", [1e-4, 0.02, 0.5])
def test_the_pause_of_becn_leaves_its_equilibrium_where_it_is(p: float):
    assert laws.BECN().reaction == "pause" and laws.BECN(pause=False).reaction == "per_mark"
    for reaction in (laws.Pause(), laws.PerMark(growth="all")):
        assert resting_window(laws.BECN(), reaction, p) == pytest.approx(np.sqrt(2 / p), rel=1e-10)


def test_the_pause_is_a_renewal_process():
    # w carriers of silence, then a geometric wait of mean 1/p carriers; growth in the wait alone
    p, w = sp.symbols("p w", positive=True)
    share = laws.Pause().shares(p, w)
    assert sp.simplify(share.reacting - 1 / (w + 1 / p)) == 0
    assert sp.simplify(share.growing - (1 / p) / (w + 1 / p)) == 0


@pytest.mark.parametrize("p", [1e-4, 0.02, 0.4])
def test_blocks_of_once_per_rtt(p: float):
    w = resting_window(laws.Reno(), laws.OncePerRTT(block="poisson"), p)
    assert w * (1 - np.exp(-p * w)) == pytest.approx(2.0, rel=1e-9)
    w = resting_window(laws.Reno(), laws.OncePerRTT(block="round_chain"), p)
    quiet = (1 - p) ** w
    assert quiet == pytest.approx(w / 2 * (1 - quiet), rel=1e-9)
    clean = laws.OncePerRTT(block="round_chain", growth="clean").shares(p, 9.0)
    assert clean == laws.OncePerRTT(block="round_chain").shares(p, 9.0)
    assert laws.OncePerRTT(growth="clean", block="poisson").shares(p, 9.0).growing == 1 - p


# -- BMCC


def test_fallback_has_hysteresis():
    law = laws.BMCC(fallback=True)
    s = law.start(40.0)

    def after(change):
        return Mode(s.window + change.window, s.sack + change.sack)

    s = after(law.on_mark(s, at(0.5)))
    assert s == Mode(40.0, 1.0)  # the mark that begins it is no signal of congestion
    s = after(law.on_ack(s, at(0.5, elapsed=0.05, count=1.0)))
    assert s == Mode(40.0 + 1 / 40, 1.0)
    s = after(law.on_tick(s, at(0.5)))
    s = after(law.observe(s, at(0.99, count=1.0)))
    assert s.sack == 1.0
    s = after(law.on_loss(s, at(0.5)))
    assert s == Mode((40 + 1 / 40) / 2, 1.0)
    s = after(law.observe(s, at(1.05, count=1.0)))
    assert s.sack == 0.0
    w = s.window
    s = after(law.on_loss(s, at(1.05)))  # full load is known: its own reaction
    assert s == Mode(w / 2, 0.0)


# -- DCTCP
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_the_estimate_moves_by_eq1_over_one_window(share: float):
    law = laws.DCTCP()
    s = Estimated(25.0, 0.3)
    whole = s.alpha + law.observe(s, laws.Ack(25.0, 0.0, R, 0.0, share)).alpha
    assert whole == pytest.approx((1 - 1 / 16) * 0.3 + share / 16, rel=1e-14)
    for _ in range(25):  # packet by packet
        s = s._replace(alpha=s.alpha + law.observe(s, laws.Ack(1.0, 0.0, R, 0.0, share)).alpha)
    assert s.alpha == pytest.approx(whole, rel=1e-13)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_dctcp_is_the_published_fluid_model_under_step_marking(p: float):
    # Alizadeh et al. (2011), eqs 1 and 2; their g is the slope -log(1 - g) of eq. 1's factor
    law, w, alpha = laws.DCTCP(), 30.0, 0.2
    s, acks = Estimated(w, alpha), w / R
    heard = laws.OncePerRTT().shares(p, w).reacting
    growth = slope(lambda k: law.on_ack(s, laws.Ack(k, 0.0, R)).window, w)
    moved = slope(lambda k: law.observe(s, laws.Ack(k, 0.0, R, 0.0, p)).alpha, w)
    drift = acks * (growth + heard * law.on_mark(s, ONE).window)
    assert drift == pytest.approx(1 / R - w * alpha * p / (2 * R), rel=1e-10)
    assert acks * moved == pytest.approx(-np.log(1 - law.g) / R * (p - alpha), rel=1e-12)


def estimated_share(threshold: float) -> float:
    """Mean estimate of one sender whose rounds are marked above a window, after a long time.

    The weight is a tenth of the bound of Alizadeh et al. (2010), section 3.4, so that the estimate
    hardly moves from one mark to the next.
    """
    law = laws.DCTCP(g=0.1 * 1.386 / math.sqrt(2 * threshold))
    w, alpha, total, rounds = threshold, math.sqrt(2 / threshold), 0.0, round(20 / law.g)
    for k in range(rounds):
        marked = 1.0 if w > threshold else 0.0
        alpha += law.observe(Estimated(w, alpha), laws.Ack(w, 0.0, R, 0.0, marked)).alpha
        rule = law.on_mark if marked else law.on_ack
        w += rule(Estimated(w, alpha), laws.Ack(w, 0.0, R)).window
        total += (k >= rounds // 2) * alpha
    return total / (rounds - rounds // 2)


def test_the_estimate_at_a_step_threshold_tends_to_its_asymptote():
    # Alizadeh et al. (2010), section 3.3: alpha is about sqrt(2/W*) for a large threshold W*
    errors = [1 - estimated_share(w) * math.sqrt(w / 2) for w in (1e2, 1e3)]
    assert 0 < errors[1] < 0.05 < errors[0] < 0.1


# -- receiver window
@pytest.mark.parametrize("p", [0.0, 0.2, 0.9, 0.999, 1.0])
@pytest.mark.parametrize(("w", "persistence"), [(2, 0.0), (20, 0.0), (11, 1 / 6), (300, 0.0)])
def test_mean_flight_is_that_of_runs_of_modified_acks(w: int, persistence: float, p: float):
    cost = 1 + persistence * (w - 2)  # packets of flight; (w - 1)/cost is whole
    longest = round((w - 1) / cost)
    flights = [w - cost * k for k in range(longest)]
    mean = sum(f * p**k * (1 - p) for k, f in enumerate(flights)) + p**longest
    found = laws.ReceiverWindow(persistence=persistence).flight_size(float(w), p)
    assert found == pytest.approx(mean, rel=1e-10)


def test_web_sources_are_active_for_their_share_of_the_time():
    web, rate = LAWS["traffic"]["web"](file=30.0, idle=2.0), 12.0
    transfer = 30.0 / rate  # s, each followed by 2 s of silence
    active = web.beginning() / (web.beginning() + web.ending(rate))
    assert active == pytest.approx(transfer / (transfer + 2.0), rel=1e-14)
    assert LAWS["traffic"]["bulk"]().ending(rate) == 0.0


# -- The ADPM code: its hash, the receiver's rule, and what becomes of the estimate
LAW = laws.ADPM()
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
    other = laws.ADPM(low_share=0.1, mild_share=0.6, lowest=0.2, mild=0.5, highest=1.5)
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
