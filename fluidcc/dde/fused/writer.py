"""Statements of C in which every number has a name of its own and is computed once."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from fluidcc.dde.fused.dialect import word_of

Element = str | float | int | bool
"""A number: its name in the source, or what it is if that is known."""

MOST_LINES = 100_000


class Memory(NamedTuple):
    """An array that stays in memory.

    `read` writes down its element some places after an index, as one of a row that is read or not.
    """

    read: Callable[[str, int, bool], str]
    shape: tuple[int, ...]


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
