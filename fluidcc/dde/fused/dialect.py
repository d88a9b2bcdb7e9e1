"""What stands at the head of a kernel: its words for numbers, for one trajectory or for several.

The statements of a kernel are the same for a thread that runs one trajectory, where every name is
a number (`one.h`), and for one that runs several abreast, where it is a vector with a number of
each (`abreast.h`).
"""

import decimal
import math
from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np

ABREAST = 8
"""Trajectories that a thread on a processor runs at a time, in a batch."""

TYPES = {
    "float64": ("f64", "double"),
    "float32": ("f32", "float"),
    "int8": ("i8", "signed char"),
    "int16": ("i16", "short"),
    "int32": ("i32", "int"),
    "int64": ("i64", "long long"),
    "uint8": ("u8", "unsigned char"),
    "uint16": ("u16", "unsigned short"),
    "uint32": ("u32", "unsigned int"),
    "uint64": ("u64", "unsigned long long"),
    "bool": ("truth", "bool"),
}
"""By type of numbers: the word for it in a kernel, and that for one of them in C."""

AT_ONCE = {
    "sqrt": "sqrt(x)",
    "floor": "floor(x)",
    "ceil": "ceil(x)",
    "abs": "fabs(x)",
    "round": "round(x)",
    "rint": "rint(x)",
}
"""Functions that a processor has for vectors too, and what they are of one number."""

IN_SERIES = {
    "exp": "exp(x)",
    "log": "log(x)",
    "pow": "pow(x, y)",
    "log1p": "log_of_one_and(x)",
    "expm1": "exp_less_one(x)",
}
"""Functions that are written out for vectors (`series.h`), and what they are of one number."""

ONE_BY_ONE = {
    **{
        name: f"{name}(x)"
        for name in (
            "exp2", "cbrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan",
            "erf", "erfc",
        )
    },
    "fmod": "fmod(x, y)",
    "atan2": "atan2(x, y)",
}  # fmt: skip
"""Functions that are taken of each number of a vector, and what they are of one number."""


def word_of(dtype: Any) -> str:
    """The word for a type of numbers; ValueError where there is none."""
    name = np.dtype(dtype).name
    if name not in TYPES:
        raise ValueError(
            f"a fused kernel has numbers of {', '.join(TYPES)}, got {name}: leave fused=True out"
        )
    return TYPES[name][0]


def in_c(dtype: Any) -> str:
    """What C calls one number of a type."""
    return TYPES[np.dtype(dtype).name][1]


def literal(value: Any, dtype: Any) -> str:
    """A known number."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return "yes" if value else "no"
    if kind.kind == "f":
        return f"(({word_of(kind)}){_float(kind.type(value))})"
    number = int(value)
    if number == np.iinfo(kind).min < 0:
        return f"(({word_of(kind)})({number + 1} - 1))"
    return f"(({word_of(kind)}){number}{'u' if kind.kind == 'u' else ''})"


def _float(value: Any) -> str:
    """C of a number of either precision."""
    if np.isfinite(value):
        return repr(float(value)) + ("f" if value.itemsize == 4 else "")
    name = "NOT_A_NUMBER" if np.isnan(value) else "INFINITE" if value > 0 else "-INFINITE"
    return name if value.itemsize == 8 else f"(float)({name})"


def head(abreast: int, dtype: Any, history: int) -> list[str]:
    """Lines that come before all else in a kernel with so many trajectories in a thread.

    Numbers of its state have a type, and so many of them are in the history of a trajectory.
    """
    if abreast not in (1, ABREAST):
        raise ValueError(f"a thread runs 1 trajectory or {ABREAST}, got {abreast}")
    several = abreast > 1
    vector = f" __attribute__((ext_vector_type({abreast})))" if several else ""
    return [
        "const double INFINITE = 1e308 * 1e308, NOT_A_NUMBER = INFINITE - INFINITE;",
        *(f"typedef {c} {word}{vector};" for word, c in TYPES.values() if word != "truth"),
        f"typedef {word_of(dtype)} state;",
        f"typedef {in_c(dtype)} number;",
        f"#define ABREAST {abreast}",
        f"#define HISTORY {history}ll",
        *(_lines("abreast.h") if several else _lines("one.h")),
        *(_vectors() if several else _singles({**AT_ONCE, **IN_SERIES, **ONE_BY_ONE})),
    ]


def _singles(functions: dict[str, str]) -> list[str]:
    """Functions of one number."""
    return [
        f"const auto {name}_of = [=]({_given(c)}) {{ return {c}; }};"
        for name, c in functions.items()
    ]


def _vectors() -> list[str]:
    """Functions of several numbers."""
    lines = [
        f"const auto {name}_of = [](auto x) {{ return __builtin_elementwise_{name}(x); }};"
        for name in AT_ONCE
    ]
    lines.extend(f"#define {name} {value}" for name, value in _constants().items())
    lines.extend(_lines("series.h"))
    for name, c in IN_SERIES.items():
        long = ", ".join(f"AS({x}, f64)" for x in ("xy" if "y" in _given(c) else "x"))
        result = f"AS({name}_long({long}), decltype(x))"
        lines.append(f"const auto {name}_of = [=]({_given(c)}) {{ return {result}; }};")
    for name, c in ONE_BY_ONE.items():
        each = c.replace("x)", "x[k])").replace("x,", "x[k],").replace("y)", "y[k])")
        body = f"auto z = x; EACH z[k] = {each}; return z;"
        lines.append(f"const auto {name}_of = [=]({_given(c)}) APART {{ {body} }};")
    return lines


def _given(c: str) -> str:
    """What a function is given, from what it is of one number."""
    return "auto x, auto y" if "y)" in c else "auto x"


def _lines(name: str) -> list[str]:
    return resources.files("fluidcc.dde.fused").joinpath(name).read_text("utf-8").splitlines()


def _constants() -> dict[str, str]:
    """What the series take: they leave out terms below the last digit."""
    least, most = np.finfo(float).tiny, np.finfo(float).max
    with decimal.localcontext(prec=50):
        two = math.floor(math.log(2.0) * 2**32) / 2**32
        rest = float(decimal.Decimal(2).ln() - decimal.Decimal(two))
    return {
        "LOG2_E": repr(1.0 / math.log(2.0)),
        "LN2": repr(two),
        "LN2_REST": repr(rest),
        "LEAST": repr(float(least)),
        "MOST": repr(float(most)),
        "ROOT_OF_HALF": f"{np.float64(math.sqrt(0.5)).view(np.int64)}ll",
        "EXP_SERIES": _series([1.0 / math.factorial(n) for n in range(15)]),
        "LOG_SERIES": _series([2.0 / (2 * n + 3) for n in range(10)]),
    }


def _series(coefficients: Sequence[float]) -> str:
    """A polynomial in r, by pairs of terms, pairs of pairs and so on: few operations in a row."""
    terms, power = [f"(f64){c!r}" for c in coefficients], "r"
    while len(terms) > 1:
        pairs = [f"({a} + {power} * {b})" for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = [*pairs, *terms[2 * len(pairs) :]]
        power = f"({power} * {power})"
    return terms[0]
