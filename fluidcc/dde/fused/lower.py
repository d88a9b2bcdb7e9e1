"""Lowering of jaxprs to scalar C: arrays exist only as arrays of elements during this."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr, Literal
from jax.lax import GatherScatterMode

from fluidcc.arrays import jax, jnp
from fluidcc.dde.fused.writer import (
    ROUNDINGS,
    Arithmetic,
    Element,
    Elements,
    Memory,
    Operand,
    Rule,
    constants,
    conversion,
    is_constant,
    rule,
    to_c,
)

_CALLED = ("jaxpr", "call_jaxpr", "fun_jaxpr", "call")


class Lowering(Arithmetic):
    """Emits the operations of jaxprs; operands are arrays of elements, or in memory."""

    def lower(self, jaxpr: ClosedJaxpr, operands: Sequence[Operand]) -> list[Any]:
        """Emit a jaxpr and return its results; ValueError for an operation without a rule."""
        inner, consts = jaxpr.jaxpr, [constants(const) for const in jaxpr.consts]
        values = dict(zip([*inner.constvars, *inner.invars], [*consts, *operands], strict=True))
        read = lambda v: constants(v.val) if isinstance(v, Literal) else values[v]  # noqa: E731
        for equation in inner.eqns:
            results = self._results(equation, [read(v) for v in equation.invars])
            values.update(zip(equation.outvars, results, strict=True))
        return [read(v) for v in inner.outvars]

    def _results(self, equation: Any, operands: list[Any]) -> list[Any]:
        name, params = equation.primitive.name, equation.params
        if name in _SPECIAL:
            return _SPECIAL[name](self, operands, equation)
        if name == "reshape" and isinstance(operands[0], Memory):
            return [operands[0]._replace(shape=equation.outvars[0].aval.shape)]
        if name in _MOVES:
            moved = _MOVES[name](*operands, **params)
            return moved if isinstance(moved, list) else [moved]
        if not equation.outvars:
            raise ValueError(f"a fused kernel cannot do '{name}': leave fused=True out")
        types, out = [v.aval.dtype for v in equation.invars], equation.outvars[0].aval
        by = rule(name, types[0]) if types else None
        if by is not None:
            return [self.apply_each(by, operands, types, out)]
        if name in _REDUCTIONS:
            return [_reduce(self, name, operands[0], out.dtype, params["axes"])]
        inner = next((params[key] for key in _CALLED if key in params), None)
        if isinstance(inner, ClosedJaxpr):
            return self.lower(inner, operands)
        if all(map(is_constant, operands)):
            values = [jnp.asarray(v.tolist(), t) for v, t in zip(operands, types, strict=True)]
            result = equation.primitive.bind(*values, **params)
            results = result if equation.primitive.multiple_results else [result]
            return list(map(constants, results))
        raise ValueError(f"a fused kernel cannot be made of '{name}': leave fused=True out")


def _iota(emit: Lowering, operands: list[Any], equation: Any) -> list[Any]:
    del emit, operands
    shape, axis = equation.params["shape"], equation.params["dimension"]
    ones = [-1 if k == axis else 1 for k in range(len(shape))]
    return [constants(np.broadcast_to(np.arange(shape[axis]).reshape(ones), shape))]


def _cast(emit: Lowering, operand: Any, old: Any, dtype: Any) -> Any:
    """Cast an operand with the shape and type `old` to another type."""
    by = conversion(old.dtype, dtype)
    return emit.apply_each(by, [operand], [old.dtype], old.update(dtype=dtype))


def _convert(emit: Lowering, operands: list[Any], equation: Any) -> list[Any]:
    (old,), (new,) = equation.invars, equation.outvars
    return [_cast(emit, operands[0], old.aval, new.aval.dtype)]


def _round(emit: Lowering, operands: list[Any], equation: Any) -> list[Any]:
    by, out = ROUNDINGS[int(equation.params["rounding_method"])], equation.outvars[0].aval
    return [emit.apply_each(by, operands, [out.dtype], out)]


def _integer_pow(emit: Lowering, operands: list[Any], equation: Any) -> list[Any]:
    out = equation.outvars[0].aval
    powers = [emit.power(base, equation.params["y"], out.dtype) for base in operands[0].flat]
    return [np.array(powers, object).reshape(out.shape)]


def _polynomial(emit: Lowering, operands: list[Any], equation: Any) -> list[Any]:
    out = equation.outvars[0].aval
    x, *coefficients = (np.broadcast_to(v, out.shape).ravel() for v in operands)
    value = coefficients.pop().copy()
    for coefficient in reversed(coefficients):
        for k, (base, added) in enumerate(zip(x, coefficient, strict=True)):
            product = emit.binary("mul", value[k], base, out.dtype)
            value[k] = emit.binary("add", product, added, out.dtype)
    return [value.reshape(out.shape)]


def _select_n(emit: Lowering, operands: list[Any], equation: Any) -> list[Any]:
    out = equation.outvars[0].aval
    which, *cases = (np.broadcast_to(operand, out.shape).ravel() for operand in operands)
    chosen = np.empty(which.size, object)
    for i, index in enumerate(which):
        chosen[i] = emit.select(index, [case[i] for case in cases], out.dtype)
    return [chosen.reshape(out.shape)]


def _dot_general(emit: Lowering, operands: list[Any], equation: Any) -> list[Any]:
    dtype, axes = equation.outvars[0].aval.dtype, equation.params["dimension_numbers"]
    left, right = (
        _cast(emit, operand, v.aval, dtype)
        for v, operand in zip(equation.invars, operands, strict=True)
    )
    return [_multiply_matrices(emit, left, right, dtype, axes)]


def _clamp(emit: Lowering, operands: list[Any], equation: Any) -> list[Any]:
    out = equation.outvars[0].aval
    triples = zip(*(np.broadcast_to(v, out.shape).flat for v in operands), strict=True)
    clamped = [
        emit.binary("min", emit.binary("max", low, value, out.dtype), high, out.dtype)
        for low, value, high in triples
    ]
    return [np.array(clamped, object).reshape(out.shape)]


def _hi_primitive(emit: Lowering, operands: list[Any], equation: Any) -> list[Any]:
    structs = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in equation.invars]
    return emit.lower(jax.make_jaxpr(equation.params["_prim"].expand)(*structs), operands)


# primitives that only move elements


def _broadcast(a: Elements, shape: Any, broadcast_dimensions: Any, **_: Any) -> Elements:
    ones = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, a.shape, strict=True):
        ones[axis] = size
    return np.broadcast_to(a.reshape(ones), shape)


def _slice(a: Elements, start_indices: Any, limit_indices: Any, strides: Any) -> Elements:
    steps = strides or (1,) * a.ndim
    return a[tuple(map(slice, start_indices, limit_indices, steps))]


_MOVES: dict[str, Callable[..., Any]] = {
    "reshape": lambda a, new_sizes, **_: a.reshape(new_sizes),
    "squeeze": lambda a, dimensions: np.squeeze(a, tuple(dimensions)),
    "expand_dims": lambda a, dimensions: np.expand_dims(a, tuple(dimensions)),
    "broadcast_in_dim": _broadcast,
    "transpose": lambda a, permutation: np.transpose(a, permutation),
    "rev": lambda a, dimensions: np.flip(a, dimensions),
    "concatenate": lambda *parts, dimension: np.concatenate(parts, dimension),
    "stack": lambda *parts, axis: np.stack(parts, axis),
    "unstack": lambda a, axis: [np.squeeze(v, axis) for v in np.split(a, a.shape[axis], axis)],
    "split": lambda a, sizes, axis: np.split(a, np.cumsum(sizes)[:-1], axis),
    "slice": _slice,
    "tile": lambda a, reps: np.tile(a, reps),
    "copy": lambda a: a,
    "copy_p": lambda a: a,
    "stop_gradient": lambda a: a,
    "optimization_barrier": lambda *parts: list(parts),
}
"""By primitive: function of operands and parameters."""


# reductions

_REDUCTIONS = {
    "reduce_sum": "add",
    "reduce_prod": "mul",
    "reduce_max": "max",
    "reduce_min": "min",
    "reduce_and": "and",
    "reduce_or": "or",
}
"""By primitive: the binary primitive that combines two elements."""


def _reduce(
    emit: Arithmetic, primitive: str, operand: Elements, dtype: Any, axes: Sequence[int]
) -> Elements:
    """Reduce an operand over some axes."""
    remaining = [axis for axis in range(operand.ndim) if axis not in axes]
    shape = tuple(operand.shape[axis] for axis in remaining)
    count = int(np.prod([operand.shape[axis] for axis in axes]))
    lines = np.transpose(operand, [*remaining, *axes]).reshape(*shape, count)
    join = functools.partial(_combine, emit, _REDUCTIONS[primitive], dtype)
    out = np.empty(shape, object)
    empty = _identity(_REDUCTIONS[primitive], dtype)
    for index in np.ndindex(shape):
        line = list(lines[index])
        out[index] = functools.reduce(join, line) if line else empty
    return out


def _multiply_matrices(
    emit: Arithmetic, left: Elements, right: Elements, dtype: Any, axes: Any
) -> Elements:
    """Batched matrix products, with the axes of `lax.dot_general`."""
    (sums_left, sums_right), (batch_left, batch_right) = axes
    a, free_left = _to_matrices(left, batch_left, sums_left)
    b, free_right = _to_matrices(right, batch_right, sums_right)
    out = np.empty((a.shape[0], a.shape[1], b.shape[1]), object)
    for i, j, k in np.ndindex(out.shape):
        terms = [emit.binary("mul", *two, dtype) for two in zip(a[i, j], b[i, k], strict=True)]
        join = functools.partial(_combine, emit, "add", dtype)
        out[i, j, k] = functools.reduce(join, terms) if terms else 0
    return out.reshape([left.shape[k] for k in batch_left] + free_left + free_right)


def _to_matrices(
    operand: Elements, batch: Sequence[int], sums: Sequence[int]
) -> tuple[Elements, list[int]]:
    """The operand with shape (batch, free, summed), and the lengths of its free axes."""
    free = [k for k in range(operand.ndim) if k not in (*batch, *sums)]
    sizes = [[operand.shape[k] for k in part] for part in (batch, free, sums)]
    permuted = np.transpose(operand, [*batch, *free, *sums])
    return permuted.reshape([int(np.prod(part)) for part in sizes]), sizes[1]


def _combine(emit: Arithmetic, primitive: str, dtype: Any, a: Element, b: Element) -> Element:
    return emit.binary(primitive, a, b, dtype)


def _identity(primitive: str, dtype: Any) -> Element:
    """The identity element of a binary primitive: the result of an empty reduction."""
    kind = np.dtype(dtype)
    if primitive in ("max", "min") and kind.kind != "b":
        sign = -1 if primitive == "max" else 1
        bounds = np.iinfo(kind) if kind.kind in "iu" else None
        return sign * np.inf if bounds is None else bounds.min if sign < 0 else bounds.max
    all_ones = True if kind.kind == "b" else -1
    return {"add": 0, "mul": 1, "and": all_ones, "or": 0, "max": 0, "min": all_ones}[primitive]


# elements at a computed index, in an array or in memory

_CLAMPED = Rule(
    "choose({0} < 0, ({type})0, choose({0} > {1}, {1}, {0}))", lambda a, most: np.clip(a, 0, most)
)
_IN_BOUNDS = Rule(
    "{0} & truth_of(({1} >= 0) & ({1} <= {2}))",
    lambda so, a, most: so & (0 <= a) & (a <= most),
)


def _add_indices(emit: Arithmetic, a: Element, b: Element) -> Element:
    """Sum of two indices, without a statement if one is 0."""
    return a if b == 0 else b if a == 0 else emit.binary("add", a, b, np.int32)


def _to_index(emit: Arithmetic, value: Element, dtype: Any) -> Element:
    """An index of any type as int32."""
    return emit.apply(conversion(dtype, np.int32), (value,), (dtype,), np.int32)


def _clamp_index(emit: Arithmetic, start: Element, most: int, dtype: Any) -> Element:
    """A start of a slice, clamped to [0, most] as XLA does."""
    return _to_index(emit, emit.apply(_CLAMPED, (start, most), (dtype, dtype), dtype), dtype)


def _slice_starts(
    emit: Arithmetic, operands: Sequence[Any], sizes: Sequence[int], equation: Any
) -> Any:
    """Starts of a slice of `sizes` in the first operand, clamped so that it lies inside."""
    operand, *starts = operands
    types = [v.aval.dtype for v in equation.invars[len(equation.invars) - len(starts) :]]
    rows = zip(starts, operand.shape, sizes, types, strict=True)
    return [_clamp_index(emit, start.item(), n - size, dtype) for start, n, size, dtype in rows]


def _flat_index(emit: Arithmetic, position: Sequence[Element], shape: Sequence[int]) -> Element:
    """The flat index of a position in an array of this shape (row-major)."""
    index: Element = 0
    for k, part in enumerate(position):
        stride = int(np.prod(shape[k + 1 :]))
        term = part if stride == 1 else emit.binary("mul", part, stride, np.int32)
        index = _add_indices(emit, index, term)
    return index


def _read_element(
    emit: Arithmetic, operand: Operand, position: Sequence[Element], dtype: Any, row: bool
) -> Element:
    """The element at a position in an operand, one of a `row` that is read or alone."""
    index = _flat_index(emit, position, operand.shape)
    if isinstance(operand, Memory):
        return operand.read(*emit.split_sum(to_c(index, np.int32)), row)
    return emit.select(index, list(operand.flat), dtype)


def _dynamic_slice(emit: Arithmetic, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.dynamic_slice`."""
    operand, sizes = operands[0], equation.params["slice_sizes"]
    dtype = equation.outvars[0].aval.dtype
    starts = _slice_starts(emit, operands, sizes, equation)
    result = np.empty(sizes, object)
    for at in np.ndindex(*sizes):
        position = [_add_indices(emit, *pair) for pair in zip(starts, at, strict=True)]
        result[at] = _read_element(emit, operand, position, dtype, sizes[-1] > 1)
    return [result]


def _gather(emit: Arithmetic, operands: list[Any], equation: Any) -> list[Any]:
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
        position: list[Element] = [0] * len(sizes)
        inside: Element = True
        for k, axis in enumerate(numbering.start_index_map):
            start, most = indices[(*(at[i] for i in outer), k)], operand.shape[axis] - sizes[axis]
            if mode == GatherScatterMode.FILL_OR_DROP:
                tested = (inside, start, most)
                inside = emit.apply(_IN_BOUNDS, tested, (bool, dtype, dtype), bool)
            promised = mode == GatherScatterMode.PROMISE_IN_BOUNDS
            position[axis] = (
                _to_index(emit, start, dtype)
                if promised
                else _clamp_index(emit, start, most, dtype)
            )
        for axis, dim in zip(inner, numbering.offset_dims, strict=True):
            position[axis] = _add_indices(emit, position[axis], at[dim])
        element = _read_element(emit, operand, position, out.dtype, sizes[-1] > 1)
        missing = _fill_value(out.dtype, params["fill_value"])
        result[at] = emit.select(inside, (missing, element), out.dtype)
    return [result]


def _fill_value(dtype: Any, fill: Any) -> Element:
    """The default of `lax.gather` for elements outside an array."""
    kind = np.dtype(dtype)
    if fill is not None or kind.kind == "f":
        return np.nan if fill is None else fill
    bounds = None if kind.kind == "b" else np.iinfo(kind)
    return True if bounds is None else int(bounds.min if kind.kind == "i" else bounds.max)


def _scatter(emit: Arithmetic, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.scatter` and `lax.scatter_add` with constant indices.

    JAX itself scatters the numbers of the updates, which shows where each update goes.
    """
    (operand, indices, updates), dtype = operands, equation.outvars[0].aval.dtype
    if not is_constant(indices):
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
        result[at] = emit.binary("add", result[at], new, dtype) if add else new
    return [result]


# loops and branches

MOST_UNROLLED = 64


def flatten(values: Sequence[Elements]) -> list[Any]:
    """All elements of some arrays, one after the other."""
    return [element for value in values for element in value.flat]


def unflatten(elements: Sequence[Any], avals: Sequence[Any]) -> list[Elements]:
    """Arrays of these shapes with consecutive elements: the inverse of `flatten`."""
    remaining, values = list(elements), []
    for aval in avals:
        value = np.empty(int(np.prod(aval.shape)), object)
        value[:] = remaining[: value.size]
        remaining = remaining[value.size :]
        values.append(value.reshape(aval.shape))
    return values


def _types(avals: Sequence[Any]) -> list[Any]:
    return [aval.dtype for aval in avals for _ in range(int(np.prod(aval.shape)))]


def _while_loop(emit: Any, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.while_loop`."""
    writer, params = emit.writer, equation.params
    out, split = [v.aval for v in equation.outvars], params["cond_nconsts"]
    ends = split + params["body_nconsts"]
    cond_consts, body_consts, start = operands[:split], operands[split:ends], operands[ends:]
    types = _types(out)
    names = writer.variables(types)
    writer.assign(names, flatten(start), types)
    carry = unflatten(names, out)
    active = writer.name("mask")
    writer.write(f"truth {active} = {writer.mask};")
    with writer.block("for (;;)"), writer.masked(active):
        (go,) = emit.lower(params["cond_jaxpr"], [*cond_consts, *carry])
        any_goes = _reduce(emit, "reduce_or", go, bool, range(go.ndim)).item()
        # a new name, as the condition was evaluated under the former mask
        left = writer.name("mask")
        writer.write(f"const truth {left} = {active} & {to_c(any_goes, bool)};")
        writer.write(f"{active} = {left};")
        writer.write(f"if (!any_lane({left})) break;")
        with writer.masked(left):
            new = emit.lower(params["body_jaxpr"], [*body_consts, *carry])
            if go.ndim:  # a loop under vmap: each element stops at its own condition
                new = [
                    _keep_finished(emit, go, *values, dtype=aval.dtype)
                    for *values, aval in zip(carry, new, out, strict=True)
                ]
            writer.assign(names, flatten(new), types)
    return carry


def _keep_finished(emit: Any, go: Elements, old: Elements, new: Elements, dtype: Any) -> Elements:
    """New values where the condition `go` (leading axes) is true, else old ones."""
    which = np.broadcast_to(go.reshape(*go.shape, *(1,) * (new.ndim - go.ndim)), new.shape)
    values = np.empty(new.shape, object)
    for at in np.ndindex(new.shape):
        values[at] = emit.select(which[at], (old[at], new[at]), dtype)
    return values


def _cond(emit: Any, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.cond` and `lax.switch`."""
    writer, (index, *inputs) = emit.writer, operands
    out, branches = [v.aval for v in equation.outvars], equation.params["branches"]
    if not isinstance(index.item(), str):
        chosen = int(np.clip(int(index.item()), 0, len(branches) - 1))
        return emit.lower(branches[chosen], inputs)
    types = _types(out)
    names = writer.variables(types)
    for k, branch in enumerate(branches):
        sign = "<=" if k == 0 else ">=" if k == len(branches) - 1 else "=="
        active = writer.constant("truth", f"{writer.mask} & truth_of({index.item()} {sign} {k})")
        with writer.block(f"if (any_lane({active}))"), writer.masked(active):
            writer.assign(names, flatten(emit.lower(branch, inputs)), types)
    return unflatten(names, out)


def _count_alike(inside: Sequence[Any], outside: Sequence[Any]) -> int:
    """Number of operands or results of a loop with the same shape in its body: the carry."""
    pairs = zip(inside, outside, strict=True)
    return sum(inner.aval.shape == aval.shape for inner, aval in pairs)


def _scan(emit: Any, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.scan`, unrolled."""
    params = equation.params
    out, count = [v.aval for v in equation.outvars], params["length"]
    if count > MOST_UNROLLED:
        raise ValueError(
            f"a fused kernel cannot be made of a scan of {count} steps, more than {MOST_UNROLLED}: "
            "leave fused=True out"
        )
    body = params["jaxpr"].jaxpr
    split = _count_alike(body.outvars, out)  # scanned inputs and outputs have one axis more outside
    ends = _count_alike(body.invars, [v.aval for v in equation.invars])
    consts, carry, rows = operands[: ends - split], operands[ends - split : ends], operands[ends:]
    order = range(count)[::-1] if params["reverse"] else range(count)
    rows_out: dict[int, list[Elements]] = {}
    for k in order:
        results = emit.lower(params["jaxpr"], [*consts, *carry, *(row[k] for row in rows)])
        carry, rows_out[k] = results[:split], results[split:]
    stacked = [
        np.stack([rows_out[k][i] for k in range(count)])
        if count
        else constants(np.zeros(aval.shape))
        for i, aval in enumerate(out[split:])
    ]
    return [*carry, *stacked]


_SPECIAL: dict[str, Callable[..., list[Any]]] = {
    "call_hi_primitive": _hi_primitive,
    "clamp": _clamp,
    "cond": _cond,
    "convert_element_type": _convert,
    "dot_general": _dot_general,
    "dynamic_slice": _dynamic_slice,
    "gather": _gather,
    "integer_pow": _integer_pow,
    "iota": _iota,
    "polynomial": _polynomial,  # JAX 0.12
    "round": _round,
    "scan": _scan,
    "scatter": _scatter,
    "scatter-add": _scatter,
    "select_n": _select_n,
    "while": _while_loop,
}
