"""Elementwise primitives of JAX: in C, and in NumPy for constants."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fluidcc.dde.fused.dialect import BUILTINS, PER_LANE, SERIES, literal


class Rule(NamedTuple):
    """C of an operation, with `{0}`, `{1}`, ... for operands, and its NumPy for constants."""

    c: str
    known: Callable[..., Any] | None = None


_ANY = {
    "add": Rule("{0} + {1}", np.add),
    "add_any": Rule("{0} + {1}", np.add),
    "sub": Rule("{0} - {1}", np.subtract),
    "mul": Rule("{0} * {1}", np.multiply),
    "neg": Rule("-{0}", np.negative),
    "lt": Rule("truth_of({0} < {1})", np.less),
    "le": Rule("truth_of({0} <= {1})", np.less_equal),
    "gt": Rule("truth_of({0} > {1})", np.greater),
    "ge": Rule("truth_of({0} >= {1})", np.greater_equal),
    "eq": Rule("truth_of({0} == {1})", np.equal),
    "ne": Rule("truth_of({0} != {1})", np.not_equal),
    # in the total order, in which NaN is last
    "le_to": Rule("truth_of(({0} <= {1}) | ({1} != {1}))"),
    "lt_to": Rule("truth_of(({0} < {1}) | (({0} == {0}) & ({1} != {1})))"),
    "and": Rule("{0} & {1}", np.bitwise_and),
    "or": Rule("{0} | {1}", np.bitwise_or),
    "xor": Rule("{0} ^ {1}", np.bitwise_xor),
    "square": Rule("{0} * {0}", np.square),
}

_FLOATS = {
    **{name: Rule(f"{name}_of({{0}})") for name in (*PER_LANE, *BUILTINS, *SERIES)},
    "div": Rule("{0} / {1}"),
    "max": Rule("choose(({0} > {1}) | ({0} != {0}), {0}, {1})"),  # NaN stays NaN
    "min": Rule("choose(({0} < {1}) | ({0} != {0}), {0}, {1})"),
    "sign": Rule("choose({0} > 0, ({type})1, choose({0} < 0, ({type})-1, {0}))"),
    "is_finite": Rule("truth_of({0} - {0} == 0)"),
    "rsqrt": Rule("1 / sqrt_of({0})"),
    "logistic": Rule("1 / (1 + exp_of(-{0}))"),
    "rem": Rule("fmod_of({0}, {1})"),
    "pow": Rule("pow_of({0}, {1})"),
    "atan2": Rule("atan2_of({0}, {1})"),
}


def _quotient(a: Any, b: Any) -> Any:
    """Integer division as in XLA: towards zero; division by zero gives -1."""
    if b in (0, -1):
        return np.negative(a) if b else -1
    whole = abs(int(a)) // abs(int(b))
    return whole if (a < 0) == (b < 0) else -whole


def _remainder(a: Any, b: Any) -> Any:
    """Remainder of `_quotient`, with the sign of `a`; `a` itself for division by zero."""
    size = abs(int(a)) % abs(int(b)) if b else abs(int(a))
    return -size if a < 0 else size


_BY = "choose(({1} == 0) | ({1} == -1), ({type})1, {1})"  # a divisor that no processor traps on

_INTEGERS = {
    "div": Rule(
        f"choose({{1}} == 0, ({{type}})-1, choose({{1}} == -1, -{{0}}, {{0}} / {_BY}))", _quotient
    ),
    "max": Rule("choose({0} > {1}, {0}, {1})", np.maximum),
    "min": Rule("choose({0} < {1}, {0}, {1})", np.minimum),
    "sign": Rule("choose({0} > 0, ({type})1, choose({0} < 0, ({type})-1, ({type})0))", np.sign),
    "abs": Rule("choose({0} < 0, -{0}, {0})", np.abs),
    "rem": Rule(
        f"choose({{1}} == 0, {{0}}, choose({{1}} == -1, ({{type}})0, {{0}} % {_BY}))", _remainder
    ),
    "not": Rule("~{0}", np.invert),
}

_UNSIGNED = {
    **_INTEGERS,
    "div": Rule("choose({1} == 0, ({type})-1, {0} / choose({1} == 0, ({type})1, {1}))"),
    "rem": Rule("choose({1} == 0, {0}, {0} % choose({1} == 0, ({type})1, {1}))"),
    "sign": Rule("choose({0} != 0, ({type})1, ({type})0)"),
    "abs": Rule("{0}"),
}

_TRUTHS = {
    "not": Rule("{0} == no", np.logical_not),
    "add": Rule("{0} | {1}", np.logical_or),
    "mul": Rule("{0} & {1}", np.logical_and),
    "square": Rule("{0}", np.asarray),
    "max": Rule("{0} | {1}", np.logical_or),
    "min": Rule("{0} & {1}", np.logical_and),
    "lt": Rule("({0} == no) & {1}", np.less),
    "le": Rule("({0} == no) | {1}", np.less_equal),
    "gt": Rule("{0} & ({1} == no)", np.greater),
    "ge": Rule("{0} | ({1} == no)", np.greater_equal),
}


def rule(primitive: str, dtype: Any) -> Rule | None:
    """The rule of a primitive on operands of a type; None if it is not elementwise."""
    by_kind = {"f": _FLOATS, "b": _TRUTHS, "u": _UNSIGNED}.get(np.dtype(dtype).kind, _INTEGERS)
    return by_kind.get(primitive) or _ANY.get(primitive)


def conversion(old: Any, new: Any) -> Rule:
    """The rule that converts a number to another type."""
    old, new = np.dtype(old), np.dtype(new)
    if old.kind == "f" and new.kind in "iu":  # as in XLA: clamped to the range, and 0 for NaN
        least, most = int(np.iinfo(new).min), int(np.iinfo(new).max)
        low, high = literal(least, new), literal(most, new)
        below, above = literal(least, old), literal(most, old)
        within = f"choose({{0}} >= {above}, {high}, AS({{0}}, {{type}}))"
        clamped = f"choose({{0}} <= {below}, {low}, {within})"
        to_integer = lambda v: 0 if v != v else int(min(max(v, least), most))  # noqa: E731
        return Rule(f"choose({{0}} != {{0}}, ({{type}})0, {clamped})", to_integer)
    to = lambda value: np.asarray(value).astype(new)[()]  # noqa: E731
    if new.kind == "b":
        return Rule("truth_of({0} != 0)", to)
    if old.kind == "b":
        return Rule("choose({0}, ({type})1, ({type})0)", to)
    return Rule("{0}" if old == new else "AS({0}, {type})", to)


ROUNDINGS = {0: Rule("round_of({0})"), 1: Rule("rint_of({0})")}
"""Halves away from zero, and to even."""
