"""Operations on elements, each a known number or the name of one."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.core import Tracer

from fluidcc.dde.fused.dialect import word_of
from fluidcc.dde.fused.elementwise import Rule, rule
from fluidcc.dde.fused.writer import Element, Memory, Writer, literal

Elements = np.ndarray[Any, Any]
Operand = Elements | Memory

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
