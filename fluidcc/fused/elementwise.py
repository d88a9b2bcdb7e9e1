"""What each primitive of JAX does to single numbers: in C, and in NumPy where they are known."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fluidcc.fused.writer import literal


class Rule(NamedTuple):
    """C of an operation, with `{0}`, `{1}`, ... for its operands, and the same on known numbers."""

    c: str
    known: Callable[..., Any] | None = None


_ANY = {
    "add": Rule("{0} + {1}", np.add),
    "add_any": Rule("{0} + {1}", np.add),
    "sub": Rule("{0} - {1}", np.subtract),
    "mul": Rule("{0} * {1}", np.multiply),
    "neg": Rule("-{0}", np.negative),
    "lt": Rule("{0} < {1}", np.less),
    "le": Rule("{0} <= {1}", np.less_equal),
    "gt": Rule("{0} > {1}", np.greater),
    "ge": Rule("{0} >= {1}", np.greater_equal),
    "eq": Rule("{0} == {1}", np.equal),
    "ne": Rule("{0} != {1}", np.not_equal),
    "le_to": Rule("{0} <= {1} || {1} != {1}"),  # in the order in which NaN comes last
    "lt_to": Rule("{0} < {1} || ({0} == {0} && {1} != {1})"),
    "and": Rule("{0} & {1}", np.bitwise_and),
    "or": Rule("{0} | {1}", np.bitwise_or),
    "xor": Rule("{0} ^ {1}", np.bitwise_xor),
    "square": Rule("{0} * {0}", np.square),
}

_FUNCTIONS = (
    "exp", "exp2", "log", "sqrt", "cbrt", "sin", "cos", "tan", "sinh", "cosh", "tanh",
    "asin", "acos", "atan", "erf", "erfc", "floor", "ceil",
)  # fmt: skip

_FLOATS = {
    **{name: Rule(f"{name}({{0}})") for name in _FUNCTIONS},
    "div": Rule("{0} / {1}"),
    "max": Rule("({0} > {1} || {0} != {0}) ? {0} : {1}"),  # what is no number stays none
    "min": Rule("({0} < {1} || {0} != {0}) ? {0} : {1}"),
    "sign": Rule("{0} > 0 ? 1 : ({0} < 0 ? -1 : {0})"),
    "abs": Rule("fabs({0})"),
    "is_finite": Rule("{0} - {0} == 0"),
    "rsqrt": Rule("1 / sqrt({0})"),
    "logistic": Rule("1 / (1 + exp(-{0}))"),
    "rem": Rule("fmod({0}, {1})"),
    "pow": Rule("pow({0}, {1})"),
    "atan2": Rule("atan2({0}, {1})"),
    "log1p": Rule("log_of_one_and({0})"),
    "expm1": Rule("exp_less_one({0})"),
}


def _quotient(a: Any, b: Any) -> Any:
    """As XLA divides integers: towards zero, and -1 by zero."""
    if b in (0, -1):
        return np.negative(a) if b else -1
    whole = abs(int(a)) // abs(int(b))
    return whole if (a < 0) == (b < 0) else -whole


def _remainder(a: Any, b: Any) -> Any:
    """What `_quotient` leaves, with the sign of `a`; all of it by zero."""
    left = abs(int(a)) % abs(int(b)) if b else abs(int(a))
    return -left if a < 0 else left


_INTEGERS = {
    "div": Rule("{1} == 0 ? -1 : ({1} == -1 ? -{0} : {0} / {1})", _quotient),
    "max": Rule("{0} > {1} ? {0} : {1}", np.maximum),
    "min": Rule("{0} < {1} ? {0} : {1}", np.minimum),
    "sign": Rule("{0} > 0 ? 1 : ({0} < 0 ? -1 : 0)", np.sign),
    "abs": Rule("{0} < 0 ? -{0} : {0}", np.abs),
    "rem": Rule("{1} == 0 ? {0} : ({1} == -1 ? 0 : {0} % {1})", _remainder),
    "not": Rule("~{0}", np.invert),
}

_UNSIGNED = {
    **_INTEGERS,
    "div": Rule("{1} == 0 ? -1 : {0} / {1}"),
    "rem": Rule("{1} == 0 ? {0} : {0} % {1}"),
    "sign": Rule("{0} != 0"),
    "abs": Rule("{0}"),
}

_TRUTHS = {
    "not": Rule("!{0}", np.logical_not),
    "max": Rule("{0} | {1}", np.logical_or),
    "min": Rule("{0} & {1}", np.logical_and),
}


def rule(primitive: str, dtype: Any) -> Rule | None:
    """The rule of a primitive on operands of a type; None if it does not go number by number."""
    own = {"f": _FLOATS, "b": _TRUTHS, "u": _UNSIGNED}.get(np.dtype(dtype).kind, _INTEGERS)
    return _ANY.get(primitive) or own.get(primitive)


def converted(old: Any, new: Any) -> Rule:
    """The rule that makes a number of another type."""
    old, new = np.dtype(old), np.dtype(new)
    if old.kind == "f" and new.kind in "iu":  # as XLA has it: the nearest, and 0 for no number
        least, most = int(np.iinfo(new).min), int(np.iinfo(new).max)
        low, high = literal(least, new), literal(most, new)
        within = f"{{0}} <= {least}.0 ? {low} : ({{0}} >= {most}.0 ? {high} : ({{type}}){{0}})"
        near = lambda v: 0 if v != v else int(min(max(v, least), most))  # noqa: E731
        return Rule(f"{{0}} != {{0}} ? 0 : ({within})", near)
    to = lambda value: np.asarray(value).astype(new)[()]  # noqa: E731
    if new.kind == "b":
        return Rule("{0} != 0", to)
    return Rule("{0}" if old == new else "({type}){0}", to)


ROUNDINGS = {0: Rule("round({0})"), 1: Rule("rint({0})")}
"""Halves away from zero, and to even."""
