"""Numbers found by an index that is computed: in an array, or in memory."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import GatherScatterMode

from fluidcc.fused.elementwise import Rule
from fluidcc.fused.numbers import Numbers, Operand, all_known, text
from fluidcc.fused.writer import Element, Memory, ctype

_HELD = Rule("{0} < 0 ? 0 : ({0} > {1} ? {1} : {0})", lambda a, most: np.clip(a, 0, most))
_INSIDE = Rule("{0} & ({1} >= 0) & ({1} <= {2})", lambda so, a, most: so & (0 <= a) & (a <= most))


def _sum(to: Numbers, a: Element, b: Element) -> Element:
    """Sum of two indices."""
    return a if b == 0 else b if a == 0 else to.pair("add", a, b, np.int32)


def _held(to: Numbers, start: Element, most: int) -> Element:
    """A start held inside the array."""
    return to.one(_HELD, (start, most), (np.int32, np.int32), np.int32)


def _flat(to: Numbers, place: Sequence[Element], shape: Sequence[int]) -> Element:
    """Index of a place in an array of this shape, counted through."""
    flat: Element = 0
    for k, part in enumerate(place):
        stride = int(np.prod(shape[k + 1 :]))
        flat = _sum(to, flat, part if stride == 1 else to.pair("mul", part, stride, np.int32))
    return flat


def _picked(to: Numbers, operand: Operand, place: Sequence[Element], dtype: Any) -> Element:
    """The element at a place inside an operand."""
    flat = _flat(to, place, operand.shape)
    if isinstance(operand, Memory):
        return to.writer.let(ctype(dtype), operand.place.format(text(flat, np.int32)))
    return to.choice(flat, list(operand.flat), dtype)


def dynamic_slice(to: Numbers, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.dynamic_slice`."""
    operand, starts, sizes = operands[0], operands[1:], equation.params["slice_sizes"]
    held = [
        _held(to, start.item(), n - size)
        for start, n, size in zip(starts, operand.shape, sizes, strict=True)
    ]
    result = np.empty(sizes, object)
    for at in np.ndindex(*sizes):
        place = [_sum(to, *two) for two in zip(held, at, strict=True)]
        result[at] = _picked(to, operand, place, equation.outvars[0].aval.dtype)
    return [result]


def gather(to: Numbers, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.gather`."""
    (operand, indices), params, out = operands, equation.params, equation.outvars[0].aval
    numbering, sizes, mode = params["dimension_numbers"], params["slice_sizes"], params["mode"]
    if numbering.operand_batching_dims:
        raise ValueError("a fused kernel cannot gather along batched axes: leave fused=True out")
    inner = [k for k in range(len(sizes)) if k not in numbering.collapsed_slice_dims]
    outer = [k for k in range(len(out.shape)) if k not in numbering.offset_dims]
    result = np.empty(out.shape, object)
    for at in np.ndindex(*out.shape):
        place: list[Element] = [0] * len(sizes)
        inside: Element = True
        for k, axis in enumerate(numbering.start_index_map):
            start, most = indices[(*(at[i] for i in outer), k)], operand.shape[axis] - sizes[axis]
            if mode == GatherScatterMode.FILL_OR_DROP:
                inside = to.one(_INSIDE, (inside, start, most), (bool, np.int32, np.int32), bool)
            if mode != GatherScatterMode.PROMISE_IN_BOUNDS:
                start = _held(to, start, most)
            place[axis] = start
        for axis, position in zip(inner, numbering.offset_dims, strict=True):
            place[axis] = _sum(to, place[axis], at[position])
        found = _picked(to, operand, place, out.dtype)
        missing = _missing(out.dtype, params["fill_value"])
        result[at] = to.choice(inside, (missing, found), out.dtype)
    return [result]


def _missing(dtype: Any, fill: Any) -> Element:
    """What stands for numbers outside an array."""
    kind = np.dtype(dtype)
    if fill is not None or kind.kind == "f":
        return np.nan if fill is None else fill
    bounds = None if kind.kind == "b" else np.iinfo(kind)
    return True if bounds is None else int(bounds.min if kind.kind == "i" else bounds.max)


def scatter(to: Numbers, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.scatter` and `lax.scatter_add` to places that are known."""
    (operand, indices, updates), dtype = operands, equation.outvars[0].aval.dtype
    if not all_known(indices):
        raise ValueError("a fused kernel cannot write to a computed index: leave fused=True out")
    marks = jnp.arange(1, updates.size + 1, dtype=jnp.int32).reshape(updates.shape)
    marked = jax.lax.scatter_p.bind(
        jnp.zeros(operand.shape, jnp.int32),
        jnp.asarray(indices.astype(np.int32)),
        marks,
        **dict(equation.params, update_jaxpr=None, update_consts=()),
    )
    result, mark, add = operand.copy(), np.asarray(marked), equation.primitive.name != "scatter"
    if add and np.count_nonzero(mark) != updates.size:
        raise ValueError(
            "a fused kernel cannot add twice to one index, or outside: leave fused=True out"
        )
    for at in map(tuple, np.argwhere(mark)):
        new = updates.flat[mark[at] - 1]
        result[at] = to.pair("add", result[at], new, dtype) if add else new
    return [result]


def dynamic_update_slice(to: Numbers, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.dynamic_update_slice`."""
    (operand, update, *starts), dtype = operands, equation.outvars[0].aval.dtype
    held = [
        _held(to, start.item(), n - size)
        for start, n, size in zip(starts, operand.shape, update.shape, strict=True)
    ]
    result, flat = operand.copy(), _flat(to, held, operand.shape)
    same = Rule("{0} == {1}", np.equal)
    for at in np.ndindex(*update.shape):
        shift = int(np.ravel_multi_index(at, operand.shape))
        for k in range(operand.size - shift):
            here = to.one(same, (flat, k), (np.int32, np.int32), bool)
            place = np.unravel_index(k + shift, operand.shape)
            result[place] = to.choice(here, (result[place], update[at]), dtype)
    return [result]
