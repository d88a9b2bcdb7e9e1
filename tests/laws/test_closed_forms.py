"""Zero-drift windows and marking maps against the formulas of the papers."""

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from strategies import logarithmic

from fluidcc import laws

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
        share = reaction.shares(p, w)
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
    (found,) = laws.symbolic.zero_drift(law, reaction)
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
