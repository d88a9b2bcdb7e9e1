"""What every law says of itself: parameters, symbols, source, equations."""

import dataclasses

import pytest
from law_cases import registered_laws

from fluidcc.laws import symbolic
from fluidcc.laws.law import AbstractQueueLaw, AbstractWindowLaw
from fluidcc.laws.parameters import infos

each_law = pytest.mark.parametrize("law", registered_laws(), ids=lambda law: law.name)


@each_law
def test_parameters_are_described(law):
    for name, info in infos(law).items():
        assert info.doc and info.doc == info.doc.strip(), name
        if info.within is not None:
            assert info.symbol and info.unit, name
            default = getattr(law(), name)
            assert default in info.within, f"{name}: default {default} outside {info.within}"


@each_law
def test_unknown_choices_raise_and_name_the_key(law):
    for name in (n for n, i in infos(law).items() if i.choices):
        with pytest.raises(ValueError, match=rf"{law.name}\.{name}: expected one of .*'nonsense'"):
            law(**{name: "nonsense"})


@each_law
def test_laws_are_immutable(law):
    with pytest.raises(dataclasses.FrozenInstanceError):
        law().name = "other"


_HALF = r"\Delta W = - \frac{W}{2}"
_RAMP = r"\min\left(1, \max\left(0, \frac{- q_{\min} + v}{q_{\max} - q_{\min}}\right)\right)"
EQUATIONS = {
    "polynomial": [r"\Delta W = W^{\alpha} c_{1} n", r"\Delta W = - W^{\beta} c_{2}", _HALF],
    "reno": [r"\Delta W = \frac{n}{W}", _HALF, _HALF],
    "newreno": [r"\Delta W = \frac{n}{W}", _HALF, _HALF],
    "sack": [r"\Delta W = \frac{n}{W}", _HALF, _HALF],
    "becn": [r"\Delta W = \frac{n}{W}", _HALF, _HALF],
    "dctcp": [
        r"\Delta W = \frac{n}{W}",
        r"\Delta W = - \frac{W \alpha}{2}",
        _HALF,
        r"\Delta \alpha = \left(1 - \left(1 - g\right)^{\frac{n}{W}}\right) "
        r"\left(- \alpha + m\right)",
    ],
    "ecn_mod": [r"\Delta W = c_{1} n", r"\Delta W = - W c_{2}", _HALF],
    "binomial": [r"\Delta W = W^{- k - 1} a n", r"\Delta W = - W^{l} b", _HALF],
    "droptail": ["p = 0", "l = 0"],
    "threshold": [
        r"p = \begin{cases} \min\left(1, \max\left(0, \left(- T + q\right) \left(\begin{cases} "
        r"\frac{1}{\Delta} & \text{for}\: \Delta > 0 \\1 & \text{otherwise} \end{cases}\right)"
        r"\right)\right) & \text{for}\: \Delta > 0 \\\begin{cases} 1 & \text{for}\: T < q \\0 & "
        r"\text{otherwise} \end{cases} & \text{otherwise} \end{cases}",
        "l = 0",
    ],
    "red": [
        r"\Delta v = \left(1 - \left(1 - w_{q}\right)^{n}\right) \left(q - v\right)",
        r"p = \begin{cases} 1 & \text{for}\: q_{\max} < v \\"
        rf"p_{{\max}} {_RAMP} & \text{{otherwise}} \end{{cases}}",
        r"l = \begin{cases} 1 & \text{for}\: q_{\max} < v \\0 & \text{otherwise} \end{cases}",
    ],
    "blue": [
        r"\Delta p = - p + \min\left(1, \max\left(0, p + \begin{cases} d_{1} & \text{for}\: L < q "
        r"\\\begin{cases} 0 & \text{for}\: q > 0 \\- d_{2} & \text{otherwise} \end{cases} & "
        r"\text{otherwise} \end{cases}\right)\right) \quad \text{every } F",
        "l = 0",
    ],
    "load_factor": [
        r"\Delta \lambda = n s",
        r"\Delta q_{\mathrm{av}} = \left(1 - e^{- \frac{e}{8 t_{p}}}\right) "
        r"\left(q - q_{\mathrm{av}}\right)",
        r"\Delta \lambda = - \lambda \quad \text{every } t_{p}",
        r"\Delta f = - f + \frac{\kappa_{1} q_{\mathrm{av}} + \lambda}{C \gamma t_{p}} "
        r"\quad \text{every } t_{p}",
        r"p = \begin{cases} 1 & \text{for}\: f \geq u \\0 & \text{otherwise} \end{cases}",
        "l = 0",
    ],
    "pi": [
        r"\Delta p = - p + \min\left(1, \max\left(0, p + \left(q - q_{\mathrm{ref}}\right) "
        r"\left(\frac{D K_{\mathrm{PI}}}{2} + \frac{K_{\mathrm{PI}}}{z}\right) - "
        r"\left(q_{0} - q_{\mathrm{ref}}\right) \left(- \frac{D K_{\mathrm{PI}}}{2} + "
        r"\frac{K_{\mathrm{PI}}}{z}\right)\right)\right) \quad \text{every } D",
        r"\Delta q_0 = q - q_{0} \quad \text{every } D",
        "l = 0",
    ],
    "rem": [
        r"\Delta \mu = - \mu + \max\left(0, \gamma \left(\alpha "
        r"\left(q_{0} - q_{\mathrm{ref}}\right) + q - q_{0}\right) + \mu\right) "
        r"\quad \text{every } D",
        r"\Delta q_0 = q - q_{0} \quad \text{every } D",
        r"p = 1 - \phi^{- \mu}",
        "l = 0",
    ],
    "avq": [
        r"\Delta c = \alpha \left(\gamma e - \frac{n s}{C}\right)",
        r"p = \min\left(1, \max\left(0, - C c e + 1\right)\right)",
        "l = 0",
    ],
}
"""LaTeX of the rules of laws that have states or signals, with default choices."""
LINES = {"bmcc": 4, "adaptive_red": 4, "modified_load_factor": 8}
"""Number of equations of the laws whose equations are long."""


def test_equations_are_as_published():
    laws = [k() for k in registered_laws() if issubclass(k, AbstractWindowLaw | AbstractQueueLaw)]
    found = symbolic.equations(laws)
    assert {name: found.pop(name) for name in EQUATIONS} == EQUATIONS
    assert {name: len(lines) for name, lines in found.items()} == LINES
