"""From jaxprs to the graph of a kernel."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr, Literal
from jax.lax import GatherScatterMode

from fluidcc.arrays import jax, jnp
from fluidcc.dde.fused.graph import Graph, Ids, Memory, Operand, Region
from fluidcc.dde.fused.writer import ROUNDINGS, Rule, conversion, rule

_CALLED = ("jaxpr", "call_jaxpr", "fun_jaxpr", "call")


def lower(graph: Graph, jaxpr: ClosedJaxpr, operands: Sequence[Operand]) -> list[Any]:
    """Add a jaxpr, return its results; ValueError for an operation without a rule."""
    inner, consts = jaxpr.jaxpr, [graph.constants(const) for const in jaxpr.consts]
    values = dict(zip([*inner.constvars, *inner.invars], [*consts, *operands], strict=True))
    read = lambda v: graph.constants(v.val) if isinstance(v, Literal) else values[v]  # noqa: E731
    for equation in inner.eqns:
        results = _results(graph, equation, [read(v) for v in equation.invars])
        values.update(zip(equation.outvars, results, strict=True))
    return [read(v) for v in inner.outvars]


def _results(graph: Graph, equation: Any, operands: list[Any]) -> list[Any]:
    name, params = equation.primitive.name, equation.params
    if name in _SPECIAL:
        return _SPECIAL[name](graph, operands, equation)
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
        return [graph.apply(by, operands, types, out.dtype, out.shape)]
    if name in _REDUCTIONS:
        return [_reduce(graph, name, operands[0], out.dtype, params["axes"])]
    inner = next((params[key] for key in _CALLED if key in params), None)
    if isinstance(inner, ClosedJaxpr):
        return lower(graph, inner, operands)
    if not any(isinstance(v, Memory) or np.any(v >= 0) for v in operands):
        values = [jnp.asarray(graph.values(v, t)) for v, t in zip(operands, types, strict=True)]
        result = equation.primitive.bind(*values, **params)
        results = result if equation.primitive.multiple_results else [result]
        return list(map(graph.constants, results))
    raise ValueError(f"a fused kernel cannot be made of '{name}': leave fused=True out")


def _iota(graph: Graph, operands: list[Any], equation: Any) -> list[Any]:
    del operands
    shape, axis = equation.params["shape"], equation.params["dimension"]
    ones = [-1 if k == axis else 1 for k in range(len(shape))]
    return [np.broadcast_to(graph.constants(np.arange(shape[axis])).reshape(ones), shape)]


def _cast(graph: Graph, operand: Any, old: Any, dtype: Any) -> Any:
    """Cast an operand of type `old` to another type."""
    if old == dtype:
        return operand
    return graph.apply(conversion(old, dtype), [operand], [old], dtype)


def _convert(graph: Graph, operands: list[Any], equation: Any) -> list[Any]:
    (old,), (new,) = equation.invars, equation.outvars
    return [_cast(graph, operands[0], old.aval.dtype, new.aval.dtype)]


def _round(graph: Graph, operands: list[Any], equation: Any) -> list[Any]:
    by, out = ROUNDINGS[int(equation.params["rounding_method"])], equation.outvars[0].aval
    return [graph.apply(by, operands, [out.dtype], out.dtype)]


def _integer_pow(graph: Graph, operands: list[Any], equation: Any) -> list[Any]:
    """An integer power, by repeated squaring."""
    dtype, exponent = equation.outvars[0].aval.dtype, equation.params["y"]
    result, square, left = None, operands[0], abs(exponent)
    while left:
        if left & 1:
            result = square if result is None else graph.binary("mul", result, square, dtype)
        left >>= 1
        if left:
            square = graph.binary("mul", square, square, dtype)
    one = np.broadcast_to(graph.constants(np.ones((), dtype)), operands[0].shape)
    result = one if result is None else result
    return [graph.binary("div", one, result, dtype) if exponent < 0 else result]


def _polynomial(graph: Graph, operands: list[Any], equation: Any) -> list[Any]:
    out = equation.outvars[0].aval
    x, *coefficients = (np.broadcast_to(v, out.shape) for v in operands)
    value = coefficients.pop()
    for coefficient in reversed(coefficients):
        product = graph.binary("mul", value, x, out.dtype)
        value = graph.binary("add", product, coefficient, out.dtype)
    return [value]


def _select_n(graph: Graph, operands: list[Any], equation: Any) -> list[Any]:
    which, *cases = operands
    out = equation.outvars[0].aval
    return [graph.select(which, cases, out.dtype, out.shape)]


def _dot_general(graph: Graph, operands: list[Any], equation: Any) -> list[Any]:
    dtype, axes = equation.outvars[0].aval.dtype, equation.params["dimension_numbers"]
    left, right = (
        _cast(graph, operand, v.aval.dtype, dtype)
        for v, operand in zip(equation.invars, operands, strict=True)
    )
    return [_multiply_matrices(graph, left, right, dtype, axes)]


def _clamp(graph: Graph, operands: list[Any], equation: Any) -> list[Any]:
    (low, value, high), dtype = operands, equation.outvars[0].aval.dtype
    return [graph.binary("min", graph.binary("max", low, value, dtype), high, dtype)]


def _hi_primitive(graph: Graph, operands: list[Any], equation: Any) -> list[Any]:
    """What JAX expands, of arguments in a tree."""
    primitive = equation.params["_prim"]
    structs = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in equation.invars]
    arguments = jax.tree.unflatten(primitive.in_tree, structs)
    return lower(graph, jax.make_jaxpr(primitive.expand)(*arguments), operands)


# primitives that only move numbers


def _broadcast(a: Ids, shape: Any, broadcast_dimensions: Any, **_: Any) -> Ids:
    ones = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, a.shape, strict=True):
        ones[axis] = size
    return np.broadcast_to(a.reshape(ones), shape)


def _slice(a: Ids, start_indices: Any, limit_indices: Any, strides: Any) -> Ids:
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
"""By primitive: the binary primitive that combines two numbers."""


def _reduce(graph: Graph, primitive: str, operand: Ids, dtype: Any, axes: Sequence[int]) -> Ids:
    """Reduce an operand over some axes."""
    remaining = [axis for axis in range(operand.ndim) if axis not in axes]
    shape = tuple(operand.shape[axis] for axis in remaining)
    count = int(np.prod([operand.shape[axis] for axis in axes], dtype=int))
    lines = np.transpose(operand, [*remaining, *axes]).reshape(*shape, count)
    return graph.reduce(_REDUCTIONS[primitive], lines, dtype)


def _multiply_matrices(graph: Graph, left: Ids, right: Ids, dtype: Any, axes: Any) -> Ids:
    """Batched matrix products, with the axes of `lax.dot_general`."""
    (sums_left, sums_right), (batch_left, batch_right) = axes
    a, free_left = _to_matrices(left, batch_left, sums_left)
    b, free_right = _to_matrices(right, batch_right, sums_right)
    products = graph.binary("mul", a[:, :, None], b[:, None], dtype)
    out = graph.reduce("or" if np.dtype(dtype) == bool else "add", products, dtype)
    return out.reshape([left.shape[k] for k in batch_left] + free_left + free_right)


def _to_matrices(operand: Ids, batch: Sequence[int], sums: Sequence[int]) -> tuple[Ids, list[int]]:
    """The operand with shape (batch, free, summed), and the lengths of its free axes."""
    free = [k for k in range(operand.ndim) if k not in (*batch, *sums)]
    sizes = [[operand.shape[k] for k in part] for part in (batch, free, sums)]
    permuted = np.transpose(operand, [*batch, *free, *sums])
    return permuted.reshape([int(np.prod(part)) for part in sizes]), sizes[1]


# numbers at a computed index, in an array or in memory

_CLAMPED = Rule(
    "choose({0} < 0, ({type})0, choose({0} > {1}, {1}, {0}))",
    lambda a, most: np.clip(a, 0, most),
    lambda a, most: jnp.clip(a, 0, most),
)
_in_bounds = lambda so, a, most: so & (0 <= a) & (a <= most)  # noqa: E731
_IN_BOUNDS = Rule("{0} & truth_of(({1} >= 0) & ({1} <= {2}))", _in_bounds, _in_bounds)


def _add_indices(graph: Graph, a: Ids, b: Ids) -> Ids:
    """Sum of two indices."""
    return graph.binary("add", a, b, np.int32)


def _to_index(graph: Graph, value: Ids, dtype: Any) -> Ids:
    """Indices of any type as int32."""
    return _cast(graph, value, np.dtype(dtype), np.dtype(np.int32))


def _clamp_index(graph: Graph, start: Ids, most: int, dtype: Any) -> Ids:
    """Starts of a slice, clamped to [0, most] as XLA does."""
    clamped = graph.apply(_CLAMPED, (start, graph.constants(most)), (dtype, dtype), dtype)
    return _to_index(graph, clamped, dtype)


def _read(graph: Graph, operand: Operand, position: Sequence[Ids], dtype: Any, row: bool) -> Ids:
    """The numbers at positions in an operand, of a `row` that is read or alone."""
    index = graph.constants(0)
    for k, part in enumerate(position):
        stride = graph.constants(int(np.prod(operand.shape[k + 1 :], dtype=int)))
        index = _add_indices(graph, index, graph.binary("mul", part, stride, np.int32))
    if isinstance(operand, Memory):
        return graph.read(operand, index, dtype, row)
    return graph.pick(operand, index, dtype)


def _dynamic_slice(graph: Graph, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.dynamic_slice`."""
    (operand, *starts), sizes = operands, equation.params["slice_sizes"]
    types = [v.aval.dtype for v in equation.invars[len(equation.invars) - len(starts) :]]
    position = []
    for axis, (start, n, size, dtype) in enumerate(
        zip(starts, operand.shape, sizes, types, strict=True)
    ):
        first = _clamp_index(graph, start, n - size, dtype)
        along = graph.constants(np.arange(size)).reshape([-1] + [1] * (len(sizes) - axis - 1))
        position.append(_add_indices(graph, first, along))
    position = list(np.broadcast_arrays(*position)) if position else []
    out = equation.outvars[0].aval
    row = bool(sizes) and sizes[-1] > 1
    return [np.broadcast_to(_read(graph, operand, position, out.dtype, row), out.shape)]


def _gather(graph: Graph, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.gather`."""
    (operand, indices), params, out = operands, equation.params, equation.outvars[0].aval
    numbering, sizes, mode = params["dimension_numbers"], params["slice_sizes"], params["mode"]
    if numbering.operand_batching_dims:
        raise ValueError("a fused kernel cannot gather along batched axes: leave fused=True out")
    dtype = equation.invars[1].aval.dtype
    inner = [k for k in range(len(sizes)) if k not in numbering.collapsed_slice_dims]
    outer = [k for k in range(len(out.shape)) if k not in numbering.offset_dims]
    shape = [out.shape[k] if k in outer else 1 for k in range(len(out.shape))]
    position: list[Ids] = [graph.constants(0)] * len(sizes)
    inside: Ids = graph.constants(True)
    for k, axis in enumerate(numbering.start_index_map):
        start, most = indices[..., k].reshape(shape), operand.shape[axis] - sizes[axis]
        if mode == GatherScatterMode.FILL_OR_DROP:
            tested = (inside, start, graph.constants(most))
            inside = graph.apply(_IN_BOUNDS, tested, (bool, dtype, dtype), bool)
        promised = mode == GatherScatterMode.PROMISE_IN_BOUNDS
        position[axis] = (
            _to_index(graph, start, dtype) if promised else _clamp_index(graph, start, most, dtype)
        )
    for axis, dim in zip(inner, numbering.offset_dims, strict=True):
        along = [-1 if k == dim else 1 for k in range(len(out.shape))]
        steps = graph.constants(np.arange(sizes[axis])).reshape(along)
        position[axis] = _add_indices(graph, position[axis], steps)
    position = [np.broadcast_to(part, out.shape) for part in position]
    elements = _read(graph, operand, position, out.dtype, sizes[-1] > 1)
    if mode != GatherScatterMode.FILL_OR_DROP:
        return [elements]
    missing = graph.constants(_fill_value(out.dtype, params["fill_value"]))
    return [graph.select(inside, (missing, elements), out.dtype, out.shape)]


def _fill_value(dtype: Any, fill: Any) -> Any:
    """The default of `lax.gather` for numbers outside an array."""
    kind = np.dtype(dtype)
    if fill is not None or kind.kind == "f":
        return np.nan if fill is None else fill
    bounds = None if kind.kind == "b" else np.iinfo(kind)
    return True if bounds is None else int(bounds.min if kind.kind == "i" else bounds.max)


def _scatter(graph: Graph, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.scatter` and `lax.scatter_add` with constant indices.

    JAX itself scatters the numbers of the updates, which shows where each update goes.
    """
    (operand, indices, updates), dtype = operands, equation.outvars[0].aval.dtype
    if np.any(indices >= 0):
        raise ValueError("a fused kernel cannot write to a computed index: leave fused=True out")
    marks = jnp.arange(1, updates.size + 1, dtype=jnp.int32).reshape(updates.shape)
    marked = jax.lax.scatter_p.bind(
        jnp.zeros(operand.shape, jnp.int32),
        jnp.asarray(graph.values(indices, np.int32)),
        marks,
        **dict(equation.params, update_jaxpr=None, update_consts=()),
    )
    result, mark, add = operand.copy(), np.asarray(marked), equation.primitive.name != "scatter"
    if add and np.count_nonzero(mark) != updates.size:
        raise ValueError(
            "a fused kernel cannot add twice to one index, or outside: leave fused=True out"
        )
    at = mark > 0
    new = updates.ravel()[mark[at] - 1]
    result[at] = graph.binary("add", result[at], new, dtype) if add else new
    return [result]


# loops and branches

MOST_TURNS = 64
_FEW = 600  # operations of all turns of a loop that is written out


def _flat(values: Sequence[Ids]) -> list[Ids]:
    return [value.ravel() for value in values]


def _shaped(values: Sequence[Ids], avals: Sequence[Any]) -> list[Ids]:
    return [value.reshape(aval.shape) for value, aval in zip(values, avals, strict=True)]


def _while_loop(graph: Graph, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.while_loop`."""
    params = equation.params
    out, split = [v.aval for v in equation.outvars], params["cond_nconsts"]
    ends = split + params["body_nconsts"]
    cond_consts, body_consts, start = operands[:split], operands[split:ends], operands[ends:]
    mark, variables = len(graph.nodes), graph.variables(out)
    carry = _shaped([v.ids for v in variables], out)
    (go,) = lower(graph, params["cond_jaxpr"], [*cond_consts, *carry])
    any_goes = graph.reduce("or", go.reshape(1, -1), bool)
    new = lower(graph, params["body_jaxpr"], [*body_consts, *carry])
    if go.ndim:  # a loop under vmap: each element stops at its own condition
        ones = [go.reshape(*go.shape, *(1,) * (len(aval.shape) - go.ndim)) for aval in out]
        new = [
            graph.select(one, pair, aval.dtype, aval.shape)
            for one, *pair, aval in zip(ones, carry, new, out, strict=True)
        ]
    region = Region("while", variables, _flat(start), [[any_goes], _flat(new)])
    return _shaped(graph.region(region, mark), out)


def _cond(graph: Graph, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.cond` and `lax.switch`."""
    (index, *inputs), branches = operands, equation.params["branches"]
    if index < 0:
        chosen = int(np.clip(int(graph.value(index.item())), 0, len(branches) - 1))
        return lower(graph, branches[chosen], inputs)
    out = [v.aval for v in equation.outvars]
    mark = len(graph.nodes)
    variables = graph.variables(out)
    values = [_flat(lower(graph, branch, inputs)) for branch in branches]
    region = Region("branches", variables, [index.ravel()], values)
    return _shaped(graph.region(region, mark), out)


def _count_alike(inside: Sequence[Any], outside: Sequence[Any]) -> int:
    """Number of operands or results of a loop with the same shape in its body: the carry."""
    pairs = zip(inside, outside, strict=True)
    return sum(inner.aval.shape == aval.shape for inner, aval in pairs)


def _count_equations(jaxpr: Any) -> int:
    """Number of operations on arrays in a jaxpr and all that it calls."""
    total = 0
    for equation in jaxpr.eqns:
        inner = [equation.params[key] for key in _CALLED if key in equation.params]
        parts = [_count_equations(j.jaxpr) for j in inner if isinstance(j, ClosedJaxpr)]
        total += sum(parts) if parts else 1
    return total


def _scan(graph: Graph, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.scan`: a loop, or written out if it is short."""
    params = equation.params
    out, count = [v.aval for v in equation.outvars], params["length"]
    if count > MOST_TURNS:
        raise ValueError(
            f"a fused kernel cannot be made of a scan of {count} steps, more than {MOST_TURNS}: "
            "leave fused=True out"
        )
    body = params["jaxpr"].jaxpr
    split = _count_alike(body.outvars, out)  # scanned inputs and outputs have one axis more outside
    ends = _count_alike(body.invars, [v.aval for v in equation.invars])
    consts, carry, rows = operands[: ends - split], operands[ends - split : ends], operands[ends:]
    if params["reverse"]:
        rows = [row[::-1] for row in rows]
    if split == len(out) and _count_equations(body) * count > _FEW:
        return _loop(graph, params["jaxpr"], count, consts, carry, rows, out)
    rows_out: list[list[Ids]] = []
    for k in range(count):
        results = lower(graph, params["jaxpr"], [*consts, *carry, *(row[k] for row in rows)])
        carry, row_out = results[:split], results[split:]
        rows_out.append(row_out)
    order = rows_out[::-1] if params["reverse"] else rows_out
    stacked = [
        np.stack([row[i] for row in order]) if count else np.zeros(aval.shape, np.int64)
        for i, aval in enumerate(out[split:])
    ]
    return [*carry, *stacked]


def _loop(
    graph: Graph, body: Any, count: int, consts: Any, carry: Any, rows: Any, out: Any
) -> list[Any]:
    """A loop of so many turns, with scanned inputs `rows`."""
    mark = len(graph.nodes)
    (counter,) = graph.variables([jax.ShapeDtypeStruct((), np.int32)])
    variables = graph.variables(out)
    index = counter.ids.reshape(())
    graph.weight *= count
    picked = []
    for row, v in zip(rows, body.jaxpr.invars[len(consts) + len(carry) :], strict=True):
        if np.any(row >= 0) or row.ndim > 1:
            steps = np.arange(row[0].size)
            at = _add_indices(
                graph,
                graph.binary("mul", index, graph.constants(steps.size), np.int32),
                graph.constants(steps).reshape(row.shape[1:]),
            )
            picked.append(graph.pick(row, at, v.aval.dtype))
        else:
            picked.append(graph.pick(row, index, v.aval.dtype))
    now = _shaped([v.ids for v in variables], out)
    new = lower(graph, body, [*consts, *now, *picked])
    graph.weight //= count
    region = Region("loop", variables, _flat(carry), [_flat(new)], count, counter)
    return _shaped(graph.region(region, mark), out)


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
