"""Primitives of JAX that join many numbers into one."""

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidcc.dde.fused.elementwise import Rule, rule
from fluidcc.dde.fused.numbers import Elements, Numbers
from fluidcc.dde.fused.writer import Element

JOINED = {
    "reduce_sum": "add",
    "reduce_prod": "mul",
    "reduce_max": "max",
    "reduce_min": "min",
    "reduce_and": "and",
    "reduce_or": "or",
    "cumsum": "add",
    "cumprod": "mul",
    "cummax": "max",
    "cummin": "min",
}
"""By primitive: the one that joins two."""


def joined(
    to: Numbers, primitive: str, operand: Elements, dtype: Any, axes: Sequence[int]
) -> Elements:
    """Sums and the like over some axes."""
    kept = [axis for axis in range(operand.ndim) if axis not in axes]
    shape = tuple(operand.shape[axis] for axis in kept)
    count = int(np.prod([operand.shape[axis] for axis in axes]))
    lines = np.transpose(operand, [*kept, *axes]).reshape(*shape, count)
    join = functools.partial(_join, to, JOINED[primitive], dtype)
    out = np.empty(shape, object)
    for place in np.ndindex(shape):
        line = list(lines[place])
        out[place] = functools.reduce(join, line) if line else _of_none(JOINED[primitive], dtype)
    return out


def running(
    to: Numbers, primitive: str, operand: Elements, dtype: Any, axis: int, back: bool
) -> Elements:
    """Running sums and the like along an axis, from its end if `back`."""
    join = functools.partial(_join, to, JOINED[primitive], dtype)
    lines = np.moveaxis(operand, axis, -1)
    lines = lines[..., ::-1] if back else lines
    out = np.empty(lines.shape, object)
    for place in np.ndindex(lines.shape[:-1]):
        out[place] = np.array([*itertools.accumulate(lines[place], join)], object)
    return np.moveaxis(out[..., ::-1] if back else out, -1, axis)


def largest(
    to: Numbers, operand: Elements, dtype: Any, axis: int, sign: str, index: Any
) -> Elements:
    """Place of the first largest number along an axis, of the type `index`; of the first smallest
    if `sign` is <.
    """
    lines = np.moveaxis(operand, axis, -1)
    better = rule("gt" if sign == ">" else "lt", dtype)
    if np.dtype(dtype).kind == "f":  # the first that is no number is before all others
        none = "({0} != {0}) & ({1} == {1})"
        better = Rule(f"truth_of(({{0}} {sign} {{1}}) | ({none}))")
    assert better is not None
    out = np.empty(lines.shape[:-1], object)
    for at in np.ndindex(out.shape):
        best, place = lines[at][0], 0
        for k, element in enumerate(lines[at][1:], 1):
            more = to.one(better, (element, best), (dtype, dtype), bool)
            best = to.choice(more, (best, element), dtype)
            place = to.choice(more, (place, k), index)
        out[at] = place
    return out


def products(to: Numbers, left: Elements, right: Elements, dtype: Any, axes: Any) -> Elements:
    """Products of matrices as `lax.dot_general` has them."""
    (sums_left, sums_right), (same_left, same_right) = axes
    a, own_left = _ordered(left, same_left, sums_left)
    b, own_right = _ordered(right, same_right, sums_right)
    out = np.empty((a.shape[0], a.shape[1], b.shape[1]), object)
    for i, j, k in np.ndindex(out.shape):
        terms = [to.pair("mul", *two, dtype) for two in zip(a[i, j], b[i, k], strict=True)]
        join = functools.partial(_join, to, "add", dtype)
        out[i, j, k] = functools.reduce(join, terms) if terms else 0
    return out.reshape([left.shape[k] for k in same_left] + own_left + own_right)


def _ordered(
    operand: Elements, same: Sequence[int], sums: Sequence[int]
) -> tuple[Elements, list[int]]:
    """The operand with shape (same, own, summed), and the lengths of its own axes."""
    own = [k for k in range(operand.ndim) if k not in (*same, *sums)]
    sizes = [[operand.shape[k] for k in part] for part in (same, own, sums)]
    turned = np.transpose(operand, [*same, *own, *sums])
    return turned.reshape([int(np.prod(part)) for part in sizes]), sizes[1]


def _join(to: Numbers, primitive: str, dtype: Any, a: Element, b: Element) -> Element:
    return to.pair(primitive, a, b, dtype)


def _of_none(primitive: str, dtype: Any) -> Element:
    """What joining no numbers gives."""
    kind = np.dtype(dtype)
    if primitive in ("max", "min") and kind.kind != "b":
        sign = -1 if primitive == "max" else 1
        bounds = np.iinfo(kind) if kind.kind in "iu" else None
        return sign * np.inf if bounds is None else bounds.min if sign < 0 else bounds.max
    every = True if kind.kind == "b" else -1
    return {"add": 0, "mul": 1, "and": every, "or": 0, "max": 0, "min": every}[primitive]
