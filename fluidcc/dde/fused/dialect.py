"""The prelude of a kernel: types and functions, for one trajectory per thread or several.

The statements of a kernel are the same for a thread with one trajectory, where every name is a
scalar (`scalar.h`), and for a thread with several in SIMD lanes, where it is a vector (`simd.h`).
"""

import decimal
import math
from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np

SIMD_LANES = 8
"""Trajectories per thread on a processor, in a batch."""

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
"""By NumPy type: the type in a kernel, a scalar or a vector of lanes, and the scalar type in C."""

BUILTINS = {
    "sqrt": "sqrt(x)",
    "floor": "floor(x)",
    "ceil": "ceil(x)",
    "abs": "fabs(x)",
    "round": "round(x)",
    "rint": "rint(x)",
}
"""Functions with vector instructions: their C for one number."""

SERIES = {
    "exp": "exp(x)",
    "log": "log(x)",
    "pow": "pow(x, y)",
    "log1p": "log1p_scalar(x)",
    "expm1": "expm1_scalar(x)",
}
"""Functions with series for vectors (`series.h`): their C for one number."""

PER_LANE = {
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
"""Functions evaluated lane by lane: their C for one number."""


def lane_type(dtype: Any) -> str:
    """The type in a kernel, such as `f64`; raises ValueError if there is none."""
    name = np.dtype(dtype).name
    if name not in TYPES:
        raise ValueError(
            f"a fused kernel has numbers of {', '.join(TYPES)}, got {name}: leave fused=True out"
        )
    return TYPES[name][0]


def scalar_type(dtype: Any) -> str:
    """The C type of one number."""
    return TYPES[np.dtype(dtype).name][1]


def literal(value: Any, dtype: Any) -> str:
    """A constant as C."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return "yes" if value else "no"
    if kind.kind == "f":
        return f"(({lane_type(kind)}){_float(kind.type(value))})"
    number = int(value)
    if number == np.iinfo(kind).min < 0:
        return f"(({lane_type(kind)})({number + 1} - 1))"
    return f"(({lane_type(kind)}){number}{'u' if kind.kind == 'u' else ''})"


def _float(value: Any) -> str:
    """C of a floating-point number of either precision."""
    if np.isfinite(value):
        return repr(float(value)) + ("f" if value.itemsize == 4 else "")
    name = "NOT_A_NUMBER" if np.isnan(value) else "INFINITE" if value > 0 else "-INFINITE"
    return name if value.itemsize == 8 else f"(float)({name})"


def prelude(simd_lanes: int, dtype: Any, history: int) -> list[str]:
    """First lines of a kernel with `simd_lanes` trajectories per thread.

    `dtype` is the type of the state, `history` the numbers in the history of a trajectory.
    """
    if simd_lanes not in (1, SIMD_LANES):
        raise ValueError(f"a thread runs 1 trajectory or {SIMD_LANES}, got {simd_lanes}")
    several = simd_lanes > 1
    vector = f" __attribute__((ext_vector_type({simd_lanes})))" if several else ""
    return [
        "const double INFINITE = 1e308 * 1e308, NOT_A_NUMBER = INFINITE - INFINITE;",
        *(f"typedef {c} {word}{vector};" for word, c in TYPES.values() if word != "truth"),
        f"typedef {lane_type(dtype)} state;",
        f"typedef {scalar_type(dtype)} number;",
        f"#define SIMD_LANES {simd_lanes}",
        f"#define HISTORY {history}ll",
        *(_lines("simd.h") if several else _lines("scalar.h")),
        *(_vector_functions() if several else _scalar_functions()),
    ]


def _scalar_functions() -> list[str]:
    """C of functions of one number."""
    return [
        f"const auto {name}_of = [=]({_parameters(c)}) {{ return {c}; }};"
        for name, c in {**BUILTINS, **SERIES, **PER_LANE}.items()
    ]


def _vector_functions() -> list[str]:
    """C of functions of vectors."""
    lines = [
        f"const auto {name}_of = [](auto x) {{ return __builtin_elementwise_{name}(x); }};"
        for name in BUILTINS
    ]
    lines.extend(f"#define {name} {value}" for name, value in _constants().items())
    lines.extend(_lines("series.h"))
    for name, c in SERIES.items():
        long = ", ".join(f"AS({x}, f64)" for x in ("xy" if "y" in _parameters(c) else "x"))
        result = f"AS({name}_long({long}), decltype(x))"
        lines.append(f"const auto {name}_of = [=]({_parameters(c)}) {{ return {result}; }};")
    for name, c in PER_LANE.items():
        one_lane = c.replace("x)", "x[k])").replace("x,", "x[k],").replace("y)", "y[k])")
        body = f"auto z = x; EACH_LANE z[k] = {one_lane}; return z;"
        lines.append(f"const auto {name}_of = [=]({_parameters(c)}) NOINLINE {{ {body} }};")
    return lines


def _parameters(c: str) -> str:
    """Parameters of a function, from its C for one number."""
    return "auto x, auto y" if "y)" in c else "auto x"


def _lines(name: str) -> list[str]:
    return resources.files("fluidcc.dde.fused").joinpath(name).read_text("utf-8").splitlines()


def _constants() -> dict[str, str]:
    """Constants of the series, which are truncated below the last digit."""
    least, most = np.finfo(float).tiny, np.finfo(float).max
    with decimal.localcontext(prec=50):
        two = math.floor(math.log(2.0) * 2**32) / 2**32
        remainder = float(decimal.Decimal(2).ln() - decimal.Decimal(two))
    return {
        "LOG2_E": repr(1.0 / math.log(2.0)),
        "LN2": repr(two),
        "LN2_REST": repr(remainder),
        "LEAST": repr(float(least)),
        "MOST": repr(float(most)),
        "ROOT_OF_HALF": f"{np.float64(math.sqrt(0.5)).view(np.int64)}ll",
        "EXP_SERIES": _series([1.0 / math.factorial(n) for n in range(15)]),
        "LOG_SERIES": _series([2.0 / (2 * n + 3) for n in range(10)]),
    }


def _series(coefficients: Sequence[float]) -> str:
    """A polynomial in r by Estrin's scheme, pairs of terms, pairs of pairs: few steps in a row."""
    terms, power = [f"(f64){c!r}" for c in coefficients], "r"
    while len(terms) > 1:
        pairs = [f"({a} + {power} * {b})" for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = [*pairs, *terms[2 * len(pairs) :]]
        power = f"({power} * {power})"
    return terms[0]
