"""Zero-drift windows and marking maps against the formulas of the papers."""

import math

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from strategies import logarithmic

from fluidcc import laws
from fluidcc.bundled.validation.lab.formulas import mean_error, share_above, zero_drift
from fluidcc.programs import slope

P = sp.Symbol("p", positive=True)
ONE = laws.Ack(1.0, 0.0, 0.1)
POLYNOMIALS = [
    laws.Reno(),
    laws.NewReno(),
    laws.ECNMod(c1=0.0625),
    laws.ECNMod(c1=0.25, c2=0.25),
    laws.Binomial(),
    laws.Binomial(k=1.0, l=0.0, a=2.0),
    laws.Polynomial(c1=0.5, alpha=-0.4, c2=0.3, beta=0.8),
]
"""One law of each class, and some more of their parameters."""

shares_of_marks = st.one_of(logarithmic(1e-6, 0.999), st.floats(0.01, 0.99))


def resting_window(law, reaction, p: float) -> float:
    """Window at which the drift per ACK vanishes, by bisection on the rules."""

    def drift(w: float) -> float:
        share = reaction.shares(p, w, 0.1)
        return float(share.growing * law.on_ack(w, ONE) + share.reacting * law.on_mark(w, ONE))

    return brentq(drift, 1e-12, 1e12, xtol=1e-14, rtol=1e-14, maxiter=500)


def w_eq4(law, p: float) -> float:
    """Misra and Ott (2003), eq. 4."""
    return (law.c1 / law.c2 * (1 - p) / p) ** (1 / (law.beta - law.alpha))


@pytest.mark.parametrize("law", POLYNOMIALS, ids=lambda law: law.name)
@given(p=shares_of_marks)
def test_zero_drift_window_of_the_polynomial_class(law, p: float):
    assert resting_window(law, laws.PerMark(), p) == pytest.approx(w_eq4(law, p), rel=1e-10)


@settings(max_examples=25)
@given(p=shares_of_marks)
def test_zero_drift_windows_of_tcp(p: float):
    for law in (laws.Reno(), laws.NewReno()):
        clean, every = laws.PerMark(), laws.PerMark(growth="all")
        assert resting_window(law, clean, p) == pytest.approx(np.sqrt(2 * (1 - p) / p), rel=1e-10)
        assert resting_window(law, every, p) == pytest.approx(np.sqrt(2 / p), rel=1e-10)
        deaf = resting_window(law, laws.Refractory(), p)
        assert deaf == pytest.approx(1 + np.sqrt(1 + 2 / p), rel=1e-10)
        block = resting_window(law, laws.OncePerRTT(), p)
        assert block * (1 - (1 - p) ** block) == pytest.approx(2.0, rel=1e-9)
        clean_block = resting_window(law, laws.OncePerRTT(growth="clean"), p)
        cut = (1 - (1 - p) ** clean_block) * clean_block / 2
        assert cut == pytest.approx(1 - p, rel=1e-9)


FORMULAS = [
    (laws.Reno(), laws.PerMark(), sp.sqrt(2 * (1 - P) / P)),
    (laws.NewReno(), laws.PerMark(growth="all"), sp.sqrt(2 / P)),
    (laws.Reno(), laws.Refractory(), 1 + sp.sqrt(1 + 2 / P)),
    (laws.ECNMod(), laws.PerMark(), sp.Symbol("c_1") / sp.Symbol("c_2") * (1 - P) / P),
    (
        laws.Binomial(),
        laws.PerMark(),
        (sp.Symbol("a") / sp.Symbol("b") * (1 - P) / P)
        ** (1 / (sp.Symbol("k") + sp.Symbol("l") + 1)),
    ),
    (
        laws.Polynomial(),
        laws.PerMark(),
        (sp.Symbol("c_1") / sp.Symbol("c_2") * (1 - P) / P)
        ** (1 / (sp.Symbol(r"\beta") - sp.Symbol(r"\alpha"))),
    ),
]


@pytest.mark.parametrize(("law", "reaction", "expected"), FORMULAS, ids=lambda x: str(x)[:30])
def test_zero_drift_by_algebra(law, reaction, expected):
    (found,) = zero_drift(law, reaction)
    values = {s.name: 0.1 + 0.17 * i for i, s in enumerate(sorted(found.free_symbols, key=str))}
    by_name = [e.subs({s: values[s.name] for s in e.free_symbols}) for e in (found, expected)]
    assert float(by_name[0]) == pytest.approx(float(by_name[1]), rel=1e-13)


# -- eq. 7
@pytest.mark.parametrize("law", POLYNOMIALS, ids=lambda law: law.name)
@given(p=shares_of_marks)
def test_equal_window_gives_every_law_the_window_of_tcp(law, p: float):
    marked = float(laws.EqualWindow().probability(p, law))
    # 1 - p_mod loses digits where p_mod is next to 1, so compare odds: eq. 4 without a division
    tcp = np.sqrt(2 * (1 - p) / p)
    grown = (1 - marked) * law.on_ack(tcp, ONE)
    assert grown == pytest.approx(-marked * law.on_mark(tcp, ONE), rel=1e-9, abs=1e-15)


@given(p=shares_of_marks)
def test_equal_window_of_ecn_mod_is_eq7(p: float):
    law = laws.ECNMod(c1=0.25)
    expected = 1 / (1 + law.c2 / law.c1 * np.sqrt(2 * (1 - p) / p))
    assert float(laws.EqualWindow().probability(p, law)) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("law", POLYNOMIALS, ids=lambda law: law.name)
def test_equal_window_at_its_ends_and_for_tcp(law):
    assert laws.EqualWindow().probability(0.0, law) == 0.0
    assert laws.EqualWindow().probability(1.0, law) == 1.0
    assert laws.Plain().probability(0.3, law) == 0.3
    if law.alpha == -1 and law.c2 == 0.5:
        assert float(laws.EqualWindow().probability(0.3, law)) == pytest.approx(0.3, rel=1e-15)


# -- Window laws with more than a rule per mark, the receiver-window feedback and the blocks
Mode, Estimated = laws.BMCC(fallback=True).state_of, laws.DCTCP().state_of

R = 0.1


def at(load: float, *, elapsed: float = 0.0, count: float = 0.0, rtt: float = R) -> laws.Ack:
    return laws.Ack(count, elapsed, rtt, load)


# -- TCP and BECN
@pytest.mark.parametrize("p", [1e-4, 0.02, 0.5])
def test_the_pause_of_becn_leaves_its_equilibrium_where_it_is(p: float):
    assert laws.BECN().reaction == "pause" and laws.BECN(pause=False).reaction == "per_mark"
    for reaction in (laws.Pause(), laws.PerMark(growth="all")):
        assert resting_window(laws.BECN(), reaction, p) == pytest.approx(np.sqrt(2 / p), rel=1e-10)


@pytest.mark.parametrize("reaction", [laws.Pause(), laws.Refractory()], ids=["pause", "refractory"])
def test_a_reaction_that_waits_is_a_renewal_process(reaction):
    """w carriers of silence, then a geometric wait of mean 1/p: a reaction each w + 1/p of them;
    with the pause windows grow in the wait alone.
    """
    p, w = sp.symbols("p w", positive=True)
    share = reaction.shares(p, w, 0.1)
    assert sp.simplify(share.reacting - 1 / (w + 1 / p)) == 0
    if reaction.name == "pause":
        assert sp.simplify(share.growing - (1 / p) / (w + 1 / p)) == 0


@pytest.mark.parametrize("p", [1e-4, 0.02, 0.4])
def test_blocks_of_once_per_rtt(p: float):
    w = resting_window(laws.Reno(), laws.OncePerRTT(block="poisson"), p)
    assert w * (1 - np.exp(-p * w)) == pytest.approx(2.0, rel=1e-9)
    w = resting_window(laws.Reno(), laws.OncePerRTT(block="round_chain"), p)
    quiet = (1 - p) ** w
    assert quiet == pytest.approx(w / 2 * (1 - quiet), rel=1e-9)
    clean = laws.OncePerRTT(block="round_chain", growth="clean").shares(p, 9.0, 0.1)
    assert clean == laws.OncePerRTT(block="round_chain").shares(p, 9.0, 0.1)
    assert laws.OncePerRTT(growth="clean", block="poisson").shares(p, 9.0, 0.1).growing == 1 - p


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
    heard = laws.OncePerRTT().shares(p, w, 0.1).reacting
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


# -- The ADPM code: its hash, the receiver's rule, and what becomes of the estimate
LAW = laws.ADPM()
LOADS = [0.1, 0.15, 0.4, 0.75, 0.9, 1.0, 1.1, 1.19]


def test_hash_masses_and_their_inverse():
    assert [LAW.distribution(v) for v in (0.1, 0.15, 0.75, 1.0, 1.2)] == [0.0, 0.0, 0.25, 0.5, 1.0]
    for hashed in (0.0, 0.1, 0.25, 0.4, 0.5, 0.9):
        assert LAW.distribution(LAW.hash_value(hashed)) == pytest.approx(hashed, abs=1e-15)
    other = laws.ADPM(low_share=0.1, mild_share=0.6, lowest=0.2, mild=0.5, highest=1.5)
    assert [other.hash_value(h) for h in (0.0, 0.1, 0.7)] == pytest.approx([0.2, 0.5, 1.0])


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
    share = lambda v: float(share_above(LAW, v, load, packets))  # noqa: E731
    expected, _ = quad(share, told, 1.2, points=inner or None, epsabs=1e-12)
    assert float(mean_error(LAW, load, packets)) == pytest.approx(expected, rel=1e-10)
