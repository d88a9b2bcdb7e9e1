"""The C of kernels: their prelude of types and functions, the elementwise primitives of JAX, and
statements in static single assignment, where every number has one name and is computed once.

The statements are the same for a thread with one trajectory, where every name is a scalar
(`scalar.h`), and for a thread with several in SIMD lanes, where it is a vector (`simd.h`).
Arithmetic is on elements, which are either constants or such names.
"""

import contextlib
import decimal
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from jax.core import Tracer

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
        "const double INFINITE = 1e308 * 1e308, NOT_A_NUMBER = INFINITE - INFINITE;",
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


Element = str | float | int | bool
"""A number: its name in the source as text, or its value if that is constant."""

MOST_LINES = 100_000


Elements = np.ndarray[Any, Any]


class Memory(NamedTuple):
    """An array that stays in memory.

    ``read(index, offset, row)`` emits a read of the element `index` + `offset`; `row` tells whether
    its neighbours in a row are read too.
    """

    read: Callable[[str, int, bool], str]
    shape: tuple[int, ...]


Operand = Elements | Memory


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
        """A new name."""
        self._names += 1
        return f"{stem}{self._names}"

    def constant(self, kind: str, expression: str) -> str:
        """Name of a C constant with the value of an expression."""
        return self._declare("v", kind, "", expression)

    def array(self, kind: str, elements: Sequence[str]) -> str:
        """Name of a C array of constants."""
        return self._declare("a", kind, f"[{len(elements)}]", "{" + ", ".join(elements) + "}")

    def _declare(self, stem: str, kind: str, size: str, text: str) -> str:
        """Name of the declaration with this text, which is added if it is new (value numbering)."""
        for scope in self._scopes:
            if (kind + size, text) in scope:
                return scope[kind + size, text]
        name = self.name(stem)
        self.write(f"const {kind} {name}{size} = {text};")
        self._scopes[-1][kind + size, text] = name
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

    def variables(self, dtypes: Iterable[Any]) -> list[str]:
        """Names of new variables, one of each type, initialised to zero."""
        names = []
        for dtype in dtypes:
            names.append(self.name("s"))
            self.write(f"{lane_type(dtype)} {names[-1]} = {literal(0, dtype)};")
        return names

    def assign(
        self, names: Sequence[str], values: Sequence[Element], dtypes: Sequence[Any]
    ) -> None:
        """Assign all variables at once, so that values may refer to the old variables."""
        texts = []
        for name, value, dtype in zip(names, values, dtypes, strict=True):
            if isinstance(value, str) and value in names and value != name:
                copy = self.name("v")
                self.write(f"const {lane_type(dtype)} {copy} = {value};")
                value = copy
            texts.append(value if isinstance(value, str) else literal(value, dtype))
        for name, text in zip(names, texts, strict=True):
            if name != text and self.mask == "yes":
                self.write(f"{name} = {text};")
            elif name != text:
                self.write(f"{name} = choose({self.mask}, {text}, {name});")


_FEW = 3
"""Most cases selected by conditions; more are selected from an array."""


def constants(value: Any) -> Elements:
    """An array of numbers as elements; raises ValueError for a traced array or another type."""
    if isinstance(value, Tracer):
        raise ValueError("Uniform(fused=True) works outside jit, vmap and derivatives")
    if hasattr(value, "dtype"):
        lane_type(value.dtype)
    array = np.asarray(value)
    elements = np.empty(array.shape, object)
    elements[...] = array.tolist() if array.ndim else array.item()
    return elements


def is_constant(operand: Operand) -> bool:
    """Whether all elements are constants."""
    return not isinstance(operand, Memory) and not any(isinstance(e, str) for e in operand.flat)


def to_c(element: Element, dtype: Any) -> str:
    """An element as C."""
    return element if isinstance(element, str) else literal(element, dtype)


class Arithmetic:
    """Emits operations to a writer; operations on constants are computed at once (folded)."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self._sums: dict[str, tuple[str, int]] = {}

    def apply(
        self, by: Rule, elements: Sequence[Element], types: Sequence[Any], out: Any
    ) -> Element:
        """Apply a rule to single numbers."""
        if by.known is not None and not any(isinstance(e, str) for e in elements):
            values = [np.dtype(t).type(e) for t, e in zip(types, elements, strict=True)]
            with np.errstate(all="ignore"):
                return np.asarray(by.known(*values)).item()
        texts = [to_c(e, t) for e, t in zip(elements, types, strict=True)]
        name = self.writer.constant(lane_type(out), by.c.format(*texts, type=lane_type(out)))
        named = [e for e in elements if isinstance(e, str)]
        if by is rule("add", int) and np.dtype(out) == np.int32 and len(named) == 1:
            (term,), (constant,) = named, [e for e in elements if not isinstance(e, str)]
            base, offset = self.split_sum(str(term))
            self._sums[name] = base, offset + int(constant)
        return name

    def split_sum(self, name: str) -> tuple[str, int]:
        """The base name and constant offset of a sum; the name itself and 0 for anything else."""
        return self._sums.get(name, (name, 0))

    def binary(self, primitive: str, a: Element, b: Element, dtype: Any) -> Element:
        """Apply a binary primitive such as `add` or `mul` to two numbers of one type."""
        by = rule(primitive, dtype)
        assert by is not None, primitive
        return self.apply(by, (a, b), (dtype, dtype), dtype)

    def apply_each(
        self, by: Rule, operands: Sequence[Elements], types: Sequence[Any], out: Any
    ) -> Elements:
        """Apply a rule element by element; `out` has shape and type of the result."""
        parts = [np.broadcast_to(operand, out.shape).ravel() for operand in operands]
        results = np.empty(parts[0].size, object)
        for i, elements in enumerate(zip(*parts, strict=True)):
            results[i] = self.apply(by, elements, types, out.dtype)
        return results.reshape(out.shape)

    def power(self, base: Element, exponent: int, dtype: Any) -> Element:
        """An integer power, by repeated squaring."""
        result, square, left = None, base, abs(exponent)
        while left:
            if left & 1:
                result = square if result is None else self.binary("mul", result, square, dtype)
            left >>= 1
            if left:
                square = self.binary("mul", square, square, dtype)
        result = 1 if result is None else result
        return self.binary("div", 1, result, dtype) if exponent < 0 else result

    def select(self, index: Element, cases: Sequence[Element], dtype: Any) -> Element:
        """The case with an index; for two cases the index may be a condition, false or true."""
        if not isinstance(index, str):
            return cases[int(index)]
        if all(isinstance(case, str) and case == cases[0] for case in cases):
            return cases[0]
        kind, texts = lane_type(dtype), [to_c(case, dtype) for case in cases]
        if len(texts) > _FEW:
            cases_name = self.writer.array(kind, texts)
            return self.writer.constant(kind, f"from_list({cases_name}, {index})")
        expression = texts[0]
        for k, case in enumerate(texts[1:]):
            later = f"{index} > {k}" if k else f"{index} != 0"
            expression = f"choose({later}, {case}, {expression})"
        return self.writer.constant(kind, expression)
