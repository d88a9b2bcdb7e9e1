"""Closed forms that follow from the laws and that papers state: windows without drift, errors of
estimated load factors.
"""

from typing import Any

import sympy as sp

from fluidcc import ops
from fluidcc.laws.law import AbstractReaction, AbstractWindowLaw, Ack
from fluidcc.laws.load_code import ADPM
from fluidcc.laws.parameters import parameter_values
from fluidcc.laws.symbolic import in_powers, parameter_symbols, with_symbols

Num = Any


def zero_drift(window: AbstractWindowLaw, reaction: AbstractReaction) -> list[sp.Expr]:
    """Windows at which growth and reactions to marks of probability p balance, as formulas.

    Misra and Ott (2003), eq. 4, for any law whose state is its window; empty for others, for rules
    with cases, and if SymPy finds no closed form. Roots that are no windows, negative at the law's
    parameters, are left out.
    """
    if len(window.fields) > 1:
        return []
    w, p = sp.Symbol("W", positive=True, real=True), sp.Symbol("p", positive=True)
    bare, one = with_symbols(window), Ack(sp.Integer(1), sp.Integer(0), sp.Symbol("R", real=True))
    share = reaction.shares(p, w, one.rtt)
    balance = share.growing * bare.on_ack(w, one) + share.reacting * bare.on_mark(w, one)
    if balance.has(sp.Piecewise, sp.Max, sp.Min):
        return []
    try:
        roots = sp.solve(sp.nsimplify(in_powers(balance)), w)
    except NotImplementedError:
        return []
    usual = dict(zip(parameter_symbols(window).values(), parameter_values(window), strict=True))
    return [root for root in roots if _positive_at(root, usual, p)]


def _positive_at(formula: sp.Expr, usual: dict[sp.Symbol, float], p: sp.Symbol) -> bool:
    """Whether a formula gives a positive number for usual parameters and some p."""
    numbers = (sp.N(formula.subs([*usual.items(), (p, share)])) for share in (0.01, 0.1, 0.5, 0.9))
    return any(bool(number.is_positive) for number in numbers)


def share_above(code: ADPM, value: Num, load: Num, packets: Num) -> Num:
    """Probability that an estimate which began at `highest` is above `value` after `packets`
    packets at a constant load factor; for load <= value < highest.
    """
    return (1 - (code.distribution(value) - code.distribution(load))) ** packets


def share_below(code: ADPM, value: Num, load: Num, packets: Num) -> Num:
    """Probability that an estimate which began at `lowest` is below `value` after `packets`
    packets at a constant load factor; for lowest < value <= load.
    """
    return (1 - (code.distribution(load) - code.distribution(value))) ** packets


def mean_error(code: ADPM, load: Num, packets: Num) -> Num:
    """Mean of the estimate less the load factor, for an estimate that began at `highest`.

    The integral of `share_above`; 1/(n F') for many packets, F' the slope of the distribution.
    """
    error, here = 0.0, code.distribution(load)
    for low, high, share in code.parts():
        start = 1 - ops.maximum(code.distribution(ops.clip(load, low, high)) - here, 0.0)
        end = 1 - ops.maximum(code.distribution(high) - here, 0.0)
        powers = start ** (packets + 1) - end ** (packets + 1)
        error = error + powers * (high - low) / (share * (packets + 1))
    return error


def packets_needed(code: ADPM, error: Num, load: Num, chance: Num) -> Num:
    """Packets after which an estimate that began at `highest` exceeds the load factor by more than
    `error` with this probability only.
    """
    between = code.distribution(load + error) - code.distribution(load)
    return ops.log(chance) / ops.log(1 - between)
