"""Statements of C in which every number has a name of its own and is computed once; operations on
numbers that are known, or names.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.core import Tracer

from fluidcc.dde.fused.dialect import literal, word_of
from fluidcc.dde.fused.elementwise import Rule, rule

Element = str | float | int | bool
"""A number: its name in the source, or what it is if that is known."""

MOST_LINES = 100_000


Elements = np.ndarray[Any, Any]


class Memory(NamedTuple):
    """An array that stays in memory.

    `read` writes down its element some places after an index, as one of a row that is read or not.
    """

    read: Callable[[str, int, bool], str]
    shape: tuple[int, ...]


Operand = Elements | Memory


class Writer:
    """Collects statements; what stands in an inner block is not seen outside it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names = 0
        self._seen: list[dict[tuple[str, str], str]] = [{}]
        self.on = "yes"

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def write(self, line: str) -> None:
        """A line at the present depth; ValueError where there are more than MOST_LINES."""
        if len(self.lines) >= MOST_LINES:
            raise ValueError(
                f"a fused kernel has up to {MOST_LINES} operations, and this would have more, some "
                "minutes to compile: leave fused=True out"
            )
        self.lines.append("    " * (len(self._seen) - 1) + line)

    def name(self, stem: str) -> str:
        """A new name."""
        self._names += 1
        return f"{stem}{self._names}"

    def let(self, kind: str, expression: str) -> str:
        """Name of a constant that has the value of an expression."""
        return self._once("v", kind, "", expression)

    def listed(self, kind: str, elements: Sequence[str]) -> str:
        """Name of an array of constants."""
        return self._once("a", kind, f"[{len(elements)}]", "{" + ", ".join(elements) + "}")

    def _once(self, stem: str, kind: str, size: str, text: str) -> str:
        """Name of what is declared so, now or before."""
        for seen in self._seen:
            if (kind + size, text) in seen:
                return seen[kind + size, text]
        name = self.name(stem)
        self.write(f"const {kind} {name}{size} = {text};")
        self._seen[-1][kind + size, text] = name
        return name

    @contextlib.contextmanager
    def only(self, on: str) -> Iterator[None]:
        """For what concerns only the trajectories where `on` holds."""
        before, self.on = self.on, on
        yield
        self.on = before

    @contextlib.contextmanager
    def block(self, head: str = "") -> Iterator[None]:
        """An inner block, after `head`."""
        self.write(f"{head} {{".lstrip())
        self._seen.append({})
        yield
        self._seen.pop()
        self.write("}")

    def variables(self, dtypes: Iterable[Any]) -> list[str]:
        """Names of new variables, one of each type, that are zero."""
        names = []
        for dtype in dtypes:
            names.append(self.name("s"))
            self.write(f"{word_of(dtype)} {names[-1]} = {literal(0, dtype)};")
        return names

    def assign(
        self, names: Sequence[str], values: Sequence[Element], dtypes: Sequence[Any]
    ) -> None:
        """Give all variables their values at once, also where one has that of another."""
        texts = []
        for name, value, dtype in zip(names, values, dtypes, strict=True):
            if isinstance(value, str) and value in names and value != name:
                copy = self.name("v")
                self.write(f"const {word_of(dtype)} {copy} = {value};")
                value = copy
            texts.append(value if isinstance(value, str) else literal(value, dtype))
        for name, text in zip(names, texts, strict=True):
            if name != text and self.on == "yes":
                self.write(f"{name} = {text};")
            elif name != text:
                self.write(f"{name} = choose({self.on}, {text}, {name});")


_FEW = 3
"""Of so many numbers one is chosen by conditions, of more from a list."""


def known(value: Any) -> Elements:
    """An array of numbers as elements; ValueError where it is being traced, or has others."""
    if isinstance(value, Tracer):
        raise ValueError("Uniform(fused=True) works outside jit, vmap and derivatives")
    if hasattr(value, "dtype"):
        word_of(value.dtype)
    array = np.asarray(value)
    elements = np.empty(array.shape, object)
    elements[...] = array.tolist() if array.ndim else array.item()
    return elements


def all_known(operand: Operand) -> bool:
    """Whether all elements are numbers now."""
    return not isinstance(operand, Memory) and not any(isinstance(e, str) for e in operand.flat)


def text(element: Element, dtype: Any) -> str:
    """An element in C."""
    return element if isinstance(element, str) else literal(element, dtype)


class Numbers:
    """Operations written down by a writer; what is known is computed instead."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self._sums: dict[str, tuple[str, int]] = {}

    def one(self, by: Rule, elements: Sequence[Element], types: Sequence[Any], out: Any) -> Element:
        """A rule on single numbers."""
        if by.known is not None and not any(isinstance(e, str) for e in elements):
            given = [np.dtype(t).type(e) for t, e in zip(types, elements, strict=True)]
            with np.errstate(all="ignore"):
                return np.asarray(by.known(*given)).item()
        texts = [text(e, t) for e, t in zip(elements, types, strict=True)]
        name = self.writer.let(word_of(out), by.c.format(*texts, type=word_of(out)))
        named = [e for e in elements if isinstance(e, str)]
        if by is rule("add", int) and np.dtype(out) == np.int32 and len(named) == 1:
            (base,), (more,) = named, [e for e in elements if not isinstance(e, str)]
            before, rest = self.sum_of(str(base))
            self._sums[name] = before, rest + int(more)
        return name

    def sum_of(self, name: str) -> tuple[str, int]:
        """The number to which known ones were added to make another, and what they come to."""
        return self._sums.get(name, (name, 0))

    def pair(self, primitive: str, a: Element, b: Element, dtype: Any) -> Element:
        """Sum, product and the like of two numbers of one type."""
        by = rule(primitive, dtype)
        assert by is not None, primitive
        return self.one(by, (a, b), (dtype, dtype), dtype)

    def each(
        self, by: Rule, operands: Sequence[Elements], types: Sequence[Any], out: Any
    ) -> Elements:
        """A rule on every number of some operands; `out` has shape and type of the result."""
        parts = [np.broadcast_to(operand, out.shape).ravel() for operand in operands]
        results = np.empty(parts[0].size, object)
        for i, elements in enumerate(zip(*parts, strict=True)):
            results[i] = self.one(by, elements, types, out.dtype)
        return results.reshape(out.shape)

    def power(self, base: Element, exponent: int, dtype: Any) -> Element:
        """A whole power, by squares."""
        result, square, left = None, base, abs(exponent)
        while left:
            if left & 1:
                result = square if result is None else self.pair("mul", result, square, dtype)
            left >>= 1
            if left:
                square = self.pair("mul", square, square, dtype)
        result = 1 if result is None else result
        return self.pair("div", 1, result, dtype) if exponent < 0 else result

    def choice(self, index: Element, cases: Sequence[Element], dtype: Any) -> Element:
        """The case with a number; the first or second by a condition, false or true."""
        if not isinstance(index, str):
            return cases[int(index)]
        if all(isinstance(case, str) and case == cases[0] for case in cases):
            return cases[0]
        kind, texts = word_of(dtype), [text(case, dtype) for case in cases]
        if len(texts) > _FEW:
            return self.writer.let(kind, f"from_list({self.writer.listed(kind, texts)}, {index})")
        expression = texts[0]
        for k, case in enumerate(texts[1:]):
            later = f"{index} > {k}" if k else f"{index} != 0"
            expression = f"choose({later}, {case}, {expression})"
        return self.writer.let(kind, expression)
