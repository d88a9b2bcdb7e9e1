"""Rules as SymPy expressions."""

import pytest
import sympy as sp

from fluidcc.laws import symbolic
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.loss import PFTK, Recovery
from fluidcc.laws.marking import EqualWindow, Plain
from fluidcc.laws.queue.adaptive_red import AdaptiveRED
from fluidcc.laws.queue.blue import BLUE
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.queue.red import RED
from fluidcc.laws.reaction import OncePerRTT, PerMark, Refractory
from fluidcc.laws.spreading import Uniform, Wait
from fluidcc.laws.window.binomial import Binomial
from fluidcc.laws.window.bmcc import BMCC
from fluidcc.laws.window.ecn_mod import ECNMod
from fluidcc.laws.window.polynomial import Polynomial
from fluidcc.laws.window.reno import Reno


def named(*symbols: sp.Symbol) -> dict[str, sp.Symbol]:
    return {s.name: s for s in symbols}


def test_parameters_keep_their_order_and_signs():
    found = symbolic.parameter_symbols(Polynomial())
    assert list(found) == ["min_window", "max_window", "c1", "alpha", "c2", "beta"]
    assert found["c1"].is_positive and found["alpha"].is_positive is None
    assert symbolic.parameter_values(ECNMod(c1=0.25))[2:] == (0.25, 0.125)
    assert symbolic.parameter_symbols(RED())["min_th"].name == r"q_{\min}"


def test_zero_is_allowed_where_the_range_has_it():
    found = symbolic.parameter_symbols(RED())
    assert found["min_th"].is_positive is None and found["max_th"].is_positive


def test_laws_without_parameters_stay_as_they_are():
    assert symbolic.with_symbols(Droptail()) == Droptail()
    assert symbolic.with_symbols(ECNMod()).c1 == sp.Symbol("c_1", positive=True)


def test_rule_of_a_window_law():
    rule = symbolic.rule(Polynomial(), "on_ack")
    assert [s.name for s in rule.state] == ["W"]
    assert [s.name for s in rule.event] == ["n", "e", "R", "f", "m", r"\delta"]
    by = named(*rule.state, *rule.event, *rule.parameters)
    assert rule.results == (by["n"] * by["c_1"] * by["W"] ** by[r"\alpha"],)


def test_rule_of_a_queue_law():
    rule = symbolic.rule(RED(), "on_arrival")
    by = named(*rule.state, *rule.event, *rule.parameters)
    expected = (1 - (1 - by["w_q"]) ** by["n"]) * (by["q"] - by["v"])
    assert sp.simplify(rule.results[0] - expected) == 0
    assert symbolic.rule(Droptail(), "on_arrival").results == ()
    silent = symbolic.rule(Droptail(), "signal")
    assert silent.state == () and [float(r) for r in silent.results] == [0.0] * 4


def test_states_of_several_numbers():
    x = symbolic.state_symbols(AdaptiveRED())
    assert [s.name for s in x] == ["v", r"p_{\max}"] and x.v.is_nonnegative
    s = symbolic.state_symbols(BMCC(fallback=True))
    assert [str(v) for v in s] == ["W", r"\sigma"] and s.window.is_positive
    assert symbolic.state_symbols(BMCC()) == sp.Symbol("W", real=True, positive=True)
    assert symbolic.state_symbols(Droptail()) == ()
    rule = symbolic.rule(AdaptiveRED(), "on_tick")
    assert rule.state == tuple(x) and rule.results[0].is_zero
    assert x.p in rule.results[1].free_symbols


def test_losses_are_asked_by_recovery():
    ways = {w: symbolic.rule(Recovery(), "lost", recovery=w) for w in ("reno", "newreno", "sack")}
    assert ways["reno"] == ways["sack"] != ways["newreno"]
    assert symbolic.rule(Recovery(), "window").results == ()
    assert len(symbolic.rule(PFTK(), "window").results) == 1


def test_zero_drift_of_laws_that_remember_more_than_a_window():
    assert symbolic.zero_drift(BMCC(fallback=True), OncePerRTT()) == []


def test_rules_of_reactions_and_spreadings():
    rule = symbolic.rule(Refractory(), "shares")
    p, w = rule.event
    assert float(rule.results[0]) == 1.0
    assert sp.simplify(rule.results[1] - p / (1 + w * p)) == 0
    assert len(symbolic.rule(PerMark(), "growing").event) == 5
    assert len(symbolic.rule(PerMark(), "ready").event) == 4
    rate = symbolic.rule(Wait(), "rate")
    assert sp.simplify(rate.results[0] - 2 * rate.event[0] / (3 - rate.event[0])) == 0
    chance = symbolic.rule(Uniform(), "chance")
    values = dict(zip(chance.event, (sp.Rational(1, 4), 3), strict=True))
    assert chance.results[0].subs(values) == sp.Rational(1, 2)


@pytest.mark.parametrize(
    ("law", "method"),
    [(Reno(), "period"), (Reno(), "window"), (MarkTail(), "age"), (PerMark(), "nothing"),
     (Plain(), "probability")],
    ids=str,
)  # fmt: skip
def test_unknown_rules_are_refused(law, method):
    with pytest.raises(TypeError, match=f"{law.name} has no rule '{method}'"):
        symbolic.rule(law, method)


def test_marking_rule_has_the_parameters_of_the_window_law():
    rule = symbolic.marking_rule(EqualWindow(), ECNMod())
    (p,) = rule.event
    by = named(*rule.parameters)
    inside = rule.results[0].subs(
        {p: sp.Rational(1, 3), by["c_1"]: 1, by["c_2"]: sp.Rational(1, 2)}
    )
    assert sp.simplify(inside - sp.Rational(1, 2)) == 0  # 1/(1 + (1/2) sqrt(2 (2/3)/(1/3)))
    assert symbolic.marking_rule(Plain(), ECNMod()).results == (p,)


def test_zero_drift_keeps_windows_only():
    p = sp.Symbol("p", positive=True)
    (window,) = symbolic.zero_drift(Reno(), Refractory())
    assert sp.simplify(window - 1 - sp.sqrt(1 + 2 / p)) == 0
    assert symbolic.zero_drift(Reno(), OncePerRTT()) == []  # w (1 - (1 - p)^w) = 2


def test_latex():
    assert symbolic.latex_rule(ECNMod(), "on_mark") == [r"\Delta W = - W c_{2}"]
    assert symbolic.latex_rule(Droptail(), "on_arrival") == []
    assert symbolic.latex_period(BMCC(md="per_rtt")) == "R"
    assert symbolic.latex_period(BLUE()) == "F"
    assert symbolic.latex_period(Reno()) == symbolic.latex_period(RED()) == ""
    found = symbolic.equations([Reno(), Droptail(), MarkTail(), Binomial()])
    assert list(found) == ["reno", "droptail", "binomial"]  # feedback has no equation of its own
