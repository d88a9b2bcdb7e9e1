"""Numbers found by an index that is computed: in an array, or in memory."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import GatherScatterMode

from fluidcc.dde.fused.elementwise import Rule, converted, rule
from fluidcc.dde.fused.numbers import Numbers, Operand, all_known, text
from fluidcc.dde.fused.writer import Element, Memory

_HELD = Rule(
    "choose({0} < 0, ({type})0, choose({0} > {1}, {1}, {0}))", lambda a, most: np.clip(a, 0, most)
)
_INSIDE = Rule(
    "{0} & truth_of(({1} >= 0) & ({1} <= {2}))",
    lambda so, a, most: so & (0 <= a) & (a <= most),
)


def _sum(to: Numbers, a: Element, b: Element) -> Element:
    """Sum of two indices."""
    return a if b == 0 else b if a == 0 else to.pair("add", a, b, np.int32)


def _index(to: Numbers, value: Element, dtype: Any) -> Element:
    """An index as all are counted here."""
    return to.one(converted(dtype, np.int32), (value,), (dtype,), np.int32)


def _held(to: Numbers, start: Element, most: int, dtype: Any) -> Element:
    """A start held inside the array."""
    return _index(to, to.one(_HELD, (start, _most(most, dtype)), (dtype, dtype), dtype), dtype)


def _most(most: int, dtype: Any) -> int:
    """The largest index that a type has, up to the last one."""
    return min(most, int(np.iinfo(dtype).max))


def _starts(to: Numbers, operands: Sequence[Any], sizes: Sequence[int], equation: Any) -> Any:
    """Starts of a slice of `sizes` in the first of some operands, held inside it."""
    operand, *starts = operands
    types = [v.aval.dtype for v in equation.invars[len(equation.invars) - len(starts) :]]
    each = zip(starts, operand.shape, sizes, types, strict=True)
    return [_held(to, start.item(), n - size, dtype) for start, n, size, dtype in each]


def _flat(to: Numbers, place: Sequence[Element], shape: Sequence[int]) -> Element:
    """Index of a place in an array of this shape, counted through."""
    flat: Element = 0
    for k, part in enumerate(place):
        stride = int(np.prod(shape[k + 1 :]))
        flat = _sum(to, flat, part if stride == 1 else to.pair("mul", part, stride, np.int32))
    return flat


def _picked(
    to: Numbers, operand: Operand, place: Sequence[Element], dtype: Any, row: bool
) -> Element:
    """The element at a place inside an operand, one of a `row` or alone."""
    flat = _flat(to, place, operand.shape)
    if isinstance(operand, Memory):
        return operand.read(*to.sum_of(text(flat, np.int32)), row)
    return to.choice(flat, list(operand.flat), dtype)


def dynamic_slice(to: Numbers, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.dynamic_slice`."""
    operand, sizes = operands[0], equation.params["slice_sizes"]
    held = _starts(to, operands, sizes, equation)
    result = np.empty(sizes, object)
    for at in np.ndindex(*sizes):
        place = [_sum(to, *two) for two in zip(held, at, strict=True)]
        result[at] = _picked(to, operand, place, equation.outvars[0].aval.dtype, sizes[-1] > 1)
    return [result]


def gather(to: Numbers, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.gather`."""
    (operand, indices), params, out = operands, equation.params, equation.outvars[0].aval
    numbering, sizes, mode = params["dimension_numbers"], params["slice_sizes"], params["mode"]
    if numbering.operand_batching_dims:
        raise ValueError("a fused kernel cannot gather along batched axes: leave fused=True out")
    dtype = equation.invars[1].aval.dtype
    inner = [k for k in range(len(sizes)) if k not in numbering.collapsed_slice_dims]
    outer = [k for k in range(len(out.shape)) if k not in numbering.offset_dims]
    result = np.empty(out.shape, object)
    for at in np.ndindex(*out.shape):
        place: list[Element] = [0] * len(sizes)
        inside: Element = True
        for k, axis in enumerate(numbering.start_index_map):
            start, most = indices[(*(at[i] for i in outer), k)], operand.shape[axis] - sizes[axis]
            if mode == GatherScatterMode.FILL_OR_DROP:
                given = (inside, start, _most(most, dtype))
                inside = to.one(_INSIDE, given, (bool, dtype, dtype), bool)
            promised = mode == GatherScatterMode.PROMISE_IN_BOUNDS
            place[axis] = _index(to, start, dtype) if promised else _held(to, start, most, dtype)
        for axis, position in zip(inner, numbering.offset_dims, strict=True):
            place[axis] = _sum(to, place[axis], at[position])
        found = _picked(to, operand, place, out.dtype, sizes[-1] > 1)
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
    held = _starts(to, [operand, *starts], update.shape, equation)
    result, flat = operand.copy(), _flat(to, held, operand.shape)
    same = rule("eq", np.int32)
    assert same is not None
    for at in np.ndindex(*update.shape):
        shift = int(np.ravel_multi_index(at, operand.shape))
        for k in range(operand.size - shift):
            here = to.one(same, (flat, k), (np.int32, np.int32), bool)
            place = np.unravel_index(k + shift, operand.shape)
            result[place] = to.choice(here, (result[place], update[at]), dtype)
    return [result]
