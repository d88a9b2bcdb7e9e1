"""Straight-line code for elementwise functions, recorded while they are evaluated once.

A rule as it is written takes most of its time for trees, dual numbers and calls. On a tape its
operations on numbers are left, sums over the classes of a group among them: those with equal
arguments once, those on constants not at all (Griewank and Walther, 2008, chapter 6). A product
with the constant 0 is 0, of infinity too, which is NaN in compiled code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

NO_BRANCHES = (
    "an engine asks about all numbers at once; write ops.where(condition, yes, no), "
    "ops.logical_not, ops.minimum or ops.maximum"
)
"""Why rules do not branch in Python on a number, and what does in place of it."""

_SIGNS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**",
    "remainder": "%", "floor_divide": "//",
    "greater": ">", "less": "<", "greater_equal": ">=", "less_equal": "<=", "equal": "==",
    "not_equal": "!=", "bitwise_and": "&", "bitwise_or": "|",
}  # fmt: skip
_NEUTRAL = {"add": 0, "subtract": 0, "multiply": 1, "divide": 1, "power": 1}  # on the right
_NAME = re.compile(r"\b[av]\d+\b")


class Tape:
    """Operations in their order, each with a name of its own; its numbers are of the class `of`."""

    def __init__(self, of: type[Recorded] | None = None) -> None:
        self.of = of or Recorded
        self.inputs: list[Recorded] = []
        self.operations: dict[str, Recorded] = {}

    def input(self, example: Any) -> Recorded:
        """One more argument of the function."""
        self.inputs.append(self.of(self, f"a{len(self.inputs)}", np.float64(example)))
        return self.inputs[-1]

    def add(self, operation: str, example: Any) -> Recorded:
        """The result of an operation, which may be on the tape already."""
        if operation not in self.operations:
            name = f"v{len(self.operations)}"
            self.operations[operation] = self.of(self, name, example)
        return self.operations[operation]

    def needed(self, results: Sequence[Any]) -> set[str]:
        """Names of the inputs and operations on which results depend."""
        names = {each.name for each in results if isinstance(each, Recorded)}
        for operation, result in reversed(self.operations.items()):
            if result.name in names:
                names.update(_NAME.findall(operation))
        return names

    def program(self, results: Sequence[Any], held: int = 0) -> Callable[..., Any]:
        """The function of arrays of one shape, or of shapes that NumPy broadcasts, that gives the
        results; without operations that none of them needs.

        The first `held` inputs are arguments of a function that gives that function, and operations
        on them alone are done once for all of its calls.
        """
        last = f"return ({''.join(f'{_text(r)}, ' for r in results)})"
        needed = self.needed(results)
        ahead = reversed(self.operations.items())
        used = [(result.name, operation) for operation, result in ahead if result.name in needed]
        names = [each.name for each in self.inputs]
        moving, once, each_time = set(names[held:]), [], []
        for name, operation in reversed(used):
            moves = not moving.isdisjoint(_NAME.findall(operation))
            if moves:
                moving.add(name)
            (each_time if moves else once).append((name, operation))
        made, later, body = {name for name, _ in each_time}, set(_NAME.findall(last)), [last]
        for name, operation in reversed(each_time):  # memory is left to the next operation
            over = (made & set(_NAME.findall(operation))) - later
            body += [f"del {', '.join(sorted(over))}"] if over else []
            body.append(f"{name} = {operation}")
            later |= over
        head = [f"def given({', '.join(names[:held])}):", *(f"{n} = {op}" for n, op in once)]
        inner = [f"def function({', '.join(names[held:])}):", *reversed(body)]
        text = "\n    ".join([*head, "\n        ".join(inner), "return function"])
        found: dict[str, Any] = {"np": np, "inf": math.inf, "nan": math.nan}
        exec(text, found)
        return found["given"]


class Recorded(NDArrayOperatorsMixin):
    """A number on a tape, with its value at the example, which shows if it is a yes or no."""

    __slots__ = ("example", "name", "tape")
    shape, ndim, size = (), 0, 1

    def __init__(self, tape: Tape, name: str, example: Any) -> None:
        self.tape, self.name, self.example = tape, name, example

    def __array_ufunc__(self, function: np.ufunc, method: str, *args: Any, out: Any = None) -> Any:
        """The result of an operation; `out`, of x += y, is the name that takes it."""
        return _apply(function, *args) if method == "__call__" else NotImplemented

    def __array_function__(self, function: Any, types: Any, args: tuple, named: dict) -> Any:
        if function is np.where:
            return _where(*args)
        if function is np.broadcast_to:
            return args[0]
        if function is np.sum and len(args) == 1 and not named:  # over the classes of a group
            return self.tape.add(f"np.sum({self.name}, axis=-1, keepdims=True)", self.example)
        return function(self.example) if function in (np.shape, np.ndim) else NotImplemented

    def __bool__(self) -> bool:
        raise ValueError(f"a rule of a law branches in Python on a number: {NO_BRANCHES}")

    def reshape(self, *_: Any) -> Recorded:
        """The number itself."""
        return self


def _text(x: Any) -> str:
    return x.name if isinstance(x, Recorded) else f"({np.asarray(x).item()!r})"


def _example(x: Any) -> Any:
    return x.example if isinstance(x, Recorded) else x


def _is(x: Any, number: float) -> bool:
    return not isinstance(x, Recorded) and bool(x == number)


def _is_number(x: Any) -> bool:
    return np.asarray(_example(x)).dtype != bool


def _apply(function: np.ufunc, *args: Any) -> Any:
    """The result of an operation of which at least one argument is recorded."""
    name = function.__name__
    a, b = args if len(args) == 2 else (args[0], None)
    if name == "multiply" and (_is(a, 0) or _is(b, 0)):
        return np.float64(0.0)
    if _is_number(b) and (_is(a, 0) if name == "add" else name == "multiply" and _is(a, 1)):
        return b
    if _is_number(a) and _is(b, _NEUTRAL.get(name, math.nan)):
        return a
    tape = next(x.tape for x in args if isinstance(x, Recorded))
    texts = [_text(x) for x in args]
    sign = _SIGNS.get(name)
    operation = f" {sign} ".join(texts) if sign else f"np.{name}({', '.join(texts)})"
    return tape.add(operation, function(*map(_example, args)))


def _where(condition: Any, yes: Any, no: Any) -> Any:
    if not isinstance(condition, Recorded):
        return yes if condition else no
    operation = f"np.where({', '.join(map(_text, (condition, yes, no)))})"
    return condition.tape.add(operation, np.where(*map(_example, (condition, yes, no)))[()])
