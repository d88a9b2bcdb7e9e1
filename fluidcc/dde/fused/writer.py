"""Statements of C in static single assignment: every number has one name and is computed once; and
arithmetic on elements, which are either constants or such names.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.core import Tracer

from fluidcc.dde.fused.dialect import lane_type, literal
from fluidcc.dde.fused.elementwise import Rule, rule

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
