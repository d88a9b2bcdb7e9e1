"""The C of kernels: their prelude of types and functions, the elementwise primitives of JAX, and
statements, where every number has one name and is computed once.

The statements are the same for a thread with one trajectory, where every name is a scalar
(`scalar.h`), and for a thread with several in SIMD lanes, where it is a vector (`simd.h`).
"""

import contextlib
import decimal
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from jax import Array, lax

SIMD_LANES = 8
"""Trajectories per thread on a processor, in a batch."""

TYPES = {
    "float64": ("f64", "double"),
    "int32": ("i32", "int"),
    "int64": ("i64", "long long"),
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


def literal(value: Any, dtype: Any) -> str:
    """A constant as C."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return "yes" if value else "no"
    if kind.kind == "f":
        if np.isfinite(value):
            return f"((f64){float(value)!r})"
        name = "NOT_A_NUMBER" if np.isnan(value) else "INFINITE" if value > 0 else "-INFINITE"
        return f"((f64){name})"
    number = int(value)
    if number == np.iinfo(kind).min < 0:
        return f"(({lane_type(kind)})({number + 1} - 1))"
    return f"(({lane_type(kind)}){number}{'u' if kind.kind == 'u' else ''})"


def prelude(simd_lanes: int, history: int) -> list[str]:
    """First lines of a kernel with `simd_lanes` trajectories per thread, each with so many numbers
    in its `history`.
    """
    if simd_lanes not in (1, SIMD_LANES):
        raise ValueError(f"a thread runs 1 trajectory or {SIMD_LANES}, got {simd_lanes}")
    several = simd_lanes > 1
    vector = f" __attribute__((ext_vector_type({simd_lanes})))" if several else ""
    return [
        "#define INFINITE (1e308 * 1e308)",
        "#define NOT_A_NUMBER (INFINITE - INFINITE)",
        *(f"typedef {c} {word}{vector};" for word, c in TYPES.values() if word != "truth"),
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
        given = "x, y" if "y" in _parameters(c) else "x"
        lines.append(
            f"const auto {name}_of = [=]({_parameters(c)}) {{ return {name}_long({given}); }};"
        )
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


class Rule(NamedTuple):
    """C of an operation, with `{0}`, `{1}`, ... for operands; NumPy, for constants; and JAX."""

    c: str
    known: Callable[..., Any] | None = None
    traced: Callable[..., Array] | None = None


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
    "le_to": Rule("truth_of(({0} <= {1}) | ({1} != {1}))", traced=lambda a, b: (a <= b) | (b != b)),
    "lt_to": Rule(
        "truth_of(({0} < {1}) | (({0} == {0}) & ({1} != {1})))",
        traced=lambda a, b: (a < b) | ((a == a) & (b != b)),
    ),
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


_TRACED = {
    "add_any": "add", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "not": "bitwise_not",
}  # fmt: skip
"""Names of JAX's functions if they are not those of their primitives."""

for _table in (_ANY, _FLOATS, _INTEGERS, _UNSIGNED, _TRUTHS):
    for _name, _rule in _table.items():
        if _rule.traced is None:
            _traced = getattr(lax, _TRACED.get(_name, _name), None)
            _table[_name] = _rule._replace(traced=_traced)


def rule(primitive: str, dtype: Any) -> Rule | None:
    """The rule of a primitive on operands of a type; None if it is not elementwise."""
    by_kind = {"f": _FLOATS, "b": _TRUTHS, "u": _UNSIGNED}.get(np.dtype(dtype).kind, _INTEGERS)
    return by_kind.get(primitive) or _ANY.get(primitive)


def conversion(old: Any, new: Any) -> Rule:
    """The rule that converts a number to another type."""
    old, new = np.dtype(old), np.dtype(new)
    traced = functools.partial(lax.convert_element_type, new_dtype=new)
    if old.kind == "f" and new.kind in "iu":  # as in XLA: clamped to the range, and 0 for NaN
        least, most = int(np.iinfo(new).min), int(np.iinfo(new).max)
        low, high = literal(least, new), literal(most, new)
        below, above = literal(least, old), literal(most, old)
        within = f"choose({{0}} >= {above}, {high}, AS({{0}}, {{type}}))"
        clamped = f"choose({{0}} <= {below}, {low}, {within})"
        to_integer = lambda v: 0 if v != v else int(min(max(v, least), most))  # noqa: E731
        return Rule(f"choose({{0}} != {{0}}, ({{type}})0, {clamped})", to_integer, traced)
    to = lambda value: np.asarray(value).astype(new)[()]  # noqa: E731
    if new.kind == "b":
        return Rule("truth_of({0} != 0)", to, traced)
    if old.kind == "b":
        return Rule("choose({0}, ({type})1, ({type})0)", to, traced)
    return Rule("{0}" if old == new else "AS({0}, {type})", to, traced)


ROUNDINGS = {
    method.value: Rule(c, traced=functools.partial(lax.round, rounding_method=method))
    for method, c in (
        (lax.RoundingMethod.AWAY_FROM_ZERO, "round_of({0})"),
        (lax.RoundingMethod.TO_NEAREST_EVEN, "rint_of({0})"),
    )
}
"""Halves away from zero, and to even."""


MOST_LINES = 100_000


class Writer:
    """Collects statements; names declared in an inner block are not visible outside it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names = 0
        self._scopes: list[dict[tuple[str, str], str]] = [{}]
        self.mask = "yes"

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def write(self, line: str) -> None:
        """Add a line at the present depth; raises ValueError for more than MOST_LINES."""
        if len(self.lines) >= MOST_LINES:
            raise ValueError(
                f"a fused kernel has up to {MOST_LINES} operations, and this would have more, some "
                "minutes to compile: leave fused=True out"
            )
        self.lines.append("    " * (len(self._scopes) - 1) + line)

    def name(self, stem: str) -> str:
        """A new name, by a stem that begins no type in C, as i32."""
        self._names += 1
        return f"{stem}{self._names}"

    def constant(self, kind: str, expression: str) -> str:
        """Name of a C constant with the value of an expression."""
        name = self.name("v")
        self.write(f"const {kind} {name} = {expression};")
        return name

    def shared(self, kind: str, expression: str) -> str:
        """The same; one name for one expression, whose parts do not change meanwhile."""
        for scope in self._scopes:
            if (kind, expression) in scope:
                return scope[kind, expression]
        name = self._scopes[-1][kind, expression] = self.constant(kind, expression)
        return name

    def table(self, kind: str, values: Sequence[str]) -> str:
        """Name of an array of constants."""
        text = "{" + ", ".join(values) + "}"
        for scope in self._scopes:
            if (kind, text) in scope:
                return scope[kind, text]
        name = self._scopes[-1][kind, text] = self.name("t")
        self.write(f"{kind} {name}[{len(values)}] = {text};")
        return name

    @contextlib.contextmanager
    def masked(self, mask: str) -> Iterator[None]:
        """Restrict assignments to the lanes in which `mask` is true."""
        before, self.mask = self.mask, mask
        yield
        self.mask = before

    @contextlib.contextmanager
    def block(self, head: str = "") -> Iterator[None]:
        """An inner block with `head` before its brace."""
        self.write(f"{head} {{".lstrip())
        self._scopes.append({})
        yield
        self._scopes.pop()
        self.write("}")

    def variable(self, dtype: Any, size: int = 0, *, kept: bool = False) -> str:
        """Name of a new variable, initialised to zero; of an array if a size is given, which the
        compiler keeps in memory if `kept`.
        """
        name = self.name("a" if size else "s")
        first = f"[{size}]" if size else f" = {literal(0, dtype)}"
        self.write(f"{'volatile ' * kept}{lane_type(dtype)} {name}{first};")
        return name

    def assign(self, names: Sequence[str], values: Sequence[str], dtypes: Sequence[Any]) -> None:
        """Assign all variables at once, so that values may refer to the old variables."""
        texts = []
        for name, value, dtype in zip(names, values, dtypes, strict=True):
            copied = value in names and value != name
            texts.append(self.constant(lane_type(dtype), value) if copied else value)
        for name, text in zip(names, texts, strict=True):
            if name != text:
                self.write(f"{name} = {self.unmasked(text, name)};")

    def unmasked(self, new: str, old: str) -> str:
        """The new value in the lanes that are not masked, else the old one."""
        return new if self.mask == "yes" else f"choose({self.mask}, {new}, {old})"
