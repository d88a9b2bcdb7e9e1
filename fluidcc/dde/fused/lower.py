"""From equations that JAX has traced to C, number by number: arrays exist only while this runs."""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal
from jax.lax import GatherScatterMode

from fluidcc.dde.fused.elementwise import ROUNDINGS, Rule, converted, rule
from fluidcc.dde.fused.writer import (
    Element,
    Elements,
    Memory,
    Numbers,
    Operand,
    all_known,
    known,
    text,
)

_CALLED = ("jaxpr", "call_jaxpr", "fun_jaxpr", "call")


class Lowering(Numbers):
    """Writes what jaxprs compute; operands are arrays of elements, or in memory."""

    def closed(self, jaxpr: ClosedJaxpr, operands: Sequence[Operand]) -> list[Any]:
        """Results of a jaxpr; ValueError where an operation has no rule."""
        inner, consts = jaxpr.jaxpr, [known(const) for const in jaxpr.consts]
        values = dict(zip([*inner.constvars, *inner.invars], [*consts, *operands], strict=True))
        read = lambda v: known(v.val) if isinstance(v, Literal) else values[v]  # noqa: E731
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
            return [self.each(by, operands, types, out)]
        if name in _JOINED and "axes" in params:
            return [_joined(self, name, operands[0], out.dtype, params["axes"])]
        if name in _JOINED:
            axis, back = params["axis"], params["reverse"]
            return [_running(self, name, operands[0], out.dtype, axis, back)]
        inner = next((params[key] for key in _CALLED if key in params), None)
        if isinstance(inner, ClosedJaxpr):
            return self.closed(inner, operands)
        if all(map(all_known, operands)):
            given = [jnp.asarray(v.tolist(), t) for v, t in zip(operands, types, strict=True)]
            found = equation.primitive.bind(*given, **params)
            return list(map(known, found if equation.primitive.multiple_results else [found]))
        raise ValueError(f"a fused kernel cannot be made of '{name}': leave fused=True out")


def _iota(to: Lowering, operands: list[Any], equation: Any) -> list[Any]:
    del to, operands
    shape, axis = equation.params["shape"], equation.params["dimension"]
    ones = [-1 if k == axis else 1 for k in range(len(shape))]
    return [known(np.broadcast_to(np.arange(shape[axis]).reshape(ones), shape))]


def _as(to: Lowering, operand: Any, old: Any, dtype: Any) -> Any:
    """An operand, which is `old`, in another type."""
    by = converted(old.dtype, dtype)
    return to.each(by, [operand], [old.dtype], old.update(dtype=dtype))


def _convert(to: Lowering, operands: list[Any], equation: Any) -> list[Any]:
    (old,), (new,) = equation.invars, equation.outvars
    return [_as(to, operands[0], old.aval, new.aval.dtype)]


def _round(to: Lowering, operands: list[Any], equation: Any) -> list[Any]:
    by, out = ROUNDINGS[int(equation.params["rounding_method"])], equation.outvars[0].aval
    return [to.each(by, operands, [out.dtype], out)]


def _power(to: Lowering, operands: list[Any], equation: Any) -> list[Any]:
    out = equation.outvars[0].aval
    powers = [to.power(base, equation.params["y"], out.dtype) for base in operands[0].flat]
    return [np.array(powers, object).reshape(out.shape)]


def _polynomial(to: Lowering, operands: list[Any], equation: Any) -> list[Any]:
    out = equation.outvars[0].aval
    x, *coefficients = (np.broadcast_to(v, out.shape).ravel() for v in operands)
    value = coefficients.pop().copy()
    for coefficient in reversed(coefficients):
        for k, (base, added) in enumerate(zip(x, coefficient, strict=True)):
            value[k] = to.pair("add", to.pair("mul", value[k], base, out.dtype), added, out.dtype)
    return [value.reshape(out.shape)]


def _select(to: Lowering, operands: list[Any], equation: Any) -> list[Any]:
    out = equation.outvars[0].aval
    which, *cases = (np.broadcast_to(operand, out.shape).ravel() for operand in operands)
    chosen = np.empty(which.size, object)
    for i, index in enumerate(which):
        chosen[i] = to.choice(index, [case[i] for case in cases], out.dtype)
    return [chosen.reshape(out.shape)]


def _largest(to: Lowering, operands: list[Any], equation: Any) -> list[Any]:
    sign = ">" if equation.primitive.name == "argmax" else "<"
    (axis,), dtype = equation.params["axes"], equation.invars[0].aval.dtype
    return [_first_largest(to, operands[0], dtype, axis, sign, equation.outvars[0].aval.dtype)]


def _products(to: Lowering, operands: list[Any], equation: Any) -> list[Any]:
    dtype, axes = equation.outvars[0].aval.dtype, equation.params["dimension_numbers"]
    left, right = (
        _as(to, operand, v.aval, dtype)
        for v, operand in zip(equation.invars, operands, strict=True)
    )
    return [_matrix_products(to, left, right, dtype, axes)]


def _clamp(to: Lowering, operands: list[Any], equation: Any) -> list[Any]:
    out = equation.outvars[0].aval
    each = zip(*(np.broadcast_to(v, out.shape).flat for v in operands), strict=True)
    held = [
        to.pair("min", to.pair("max", low, value, out.dtype), high, out.dtype)
        for low, value, high in each
    ]
    return [np.array(held, object).reshape(out.shape)]


def _expanded(to: Lowering, operands: list[Any], equation: Any) -> list[Any]:
    structs = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in equation.invars]
    return to.closed(jax.make_jaxpr(equation.params["_prim"].expand)(*structs), operands)


# numbers that only move: arrays of anything, without a computation


def _broadcast(a: Elements, shape: Any, broadcast_dimensions: Any, **_: Any) -> Elements:
    ones = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, a.shape, strict=True):
        ones[axis] = size
    return np.broadcast_to(a.reshape(ones), shape)


def _cut(a: Elements, start_indices: Any, limit_indices: Any, strides: Any) -> Elements:
    every = strides or (1,) * a.ndim
    return a[tuple(map(slice, start_indices, limit_indices, every))]


def _padded(a: Elements, value: Elements, padding_config: Any) -> Elements:
    gaps = [gap for *_, gap in padding_config]
    inner = [n + max(n - 1, 0) * gap for n, gap in zip(a.shape, gaps, strict=True)]
    spread = np.full(inner, value[()], object)
    spread[tuple(slice(None, None, gap + 1) for gap in gaps)] = a
    for axis, (low, high, _) in enumerate(padding_config):
        ends = [(max(low, 0), max(high, 0)) if k == axis else (0, 0) for k in range(a.ndim)]
        spread = np.pad(spread, ends, constant_values=value[()])
        keep = slice(max(-low, 0), spread.shape[axis] - max(-high, 0))
        spread = spread[(slice(None),) * axis + (keep,)]
    return spread


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
    "slice": _cut,
    "tile": lambda a, reps: np.tile(a, reps),
    "pad": _padded,
    "copy": lambda a: a,
    "copy_p": lambda a: a,
    "stop_gradient": lambda a: a,
    "optimization_barrier": lambda *parts: list(parts),
}
"""By primitive: function of operands and parameters."""


# numbers that are joined into one

_JOINED = {
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


def _joined(
    to: Numbers, primitive: str, operand: Elements, dtype: Any, axes: Sequence[int]
) -> Elements:
    """Sums and the like over some axes."""
    kept = [axis for axis in range(operand.ndim) if axis not in axes]
    shape = tuple(operand.shape[axis] for axis in kept)
    count = int(np.prod([operand.shape[axis] for axis in axes]))
    lines = np.transpose(operand, [*kept, *axes]).reshape(*shape, count)
    join = functools.partial(_join, to, _JOINED[primitive], dtype)
    out = np.empty(shape, object)
    for place in np.ndindex(shape):
        line = list(lines[place])
        out[place] = functools.reduce(join, line) if line else _of_none(_JOINED[primitive], dtype)
    return out


def _running(
    to: Numbers, primitive: str, operand: Elements, dtype: Any, axis: int, back: bool
) -> Elements:
    """Running sums and the like along an axis, from its end if `back`."""
    join = functools.partial(_join, to, _JOINED[primitive], dtype)
    lines = np.moveaxis(operand, axis, -1)
    lines = lines[..., ::-1] if back else lines
    out = np.empty(lines.shape, object)
    for place in np.ndindex(lines.shape[:-1]):
        out[place] = np.array([*itertools.accumulate(lines[place], join)], object)
    return np.moveaxis(out[..., ::-1] if back else out, -1, axis)


def _first_largest(
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


def _matrix_products(
    to: Numbers, left: Elements, right: Elements, dtype: Any, axes: Any
) -> Elements:
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


# numbers found by a computed index, in an array or in memory

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


def _dynamic_slice(to: Numbers, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.dynamic_slice`."""
    operand, sizes = operands[0], equation.params["slice_sizes"]
    held = _starts(to, operands, sizes, equation)
    result = np.empty(sizes, object)
    for at in np.ndindex(*sizes):
        place = [_sum(to, *two) for two in zip(held, at, strict=True)]
        result[at] = _picked(to, operand, place, equation.outvars[0].aval.dtype, sizes[-1] > 1)
    return [result]


def _gather(to: Numbers, operands: list[Any], equation: Any) -> list[Any]:
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


def _scatter(to: Numbers, operands: list[Any], equation: Any) -> list[Any]:
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


def _dynamic_update_slice(to: Numbers, operands: list[Any], equation: Any) -> list[Any]:
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


# loops and branches

MOST_UNROLLED = 64


def flat(values: Sequence[Elements]) -> list[Any]:
    """All elements of some arrays in turn."""
    return [element for value in values for element in value.flat]


def shaped(elements: Sequence[Any], avals: Sequence[Any]) -> list[Elements]:
    """Arrays of these shapes with the elements in turn."""
    rest, values = list(elements), []
    for aval in avals:
        value = np.empty(int(np.prod(aval.shape)), object)
        value[:] = rest[: value.size]
        rest = rest[value.size :]
        values.append(value.reshape(aval.shape))
    return values


def _types(avals: Sequence[Any]) -> list[Any]:
    return [aval.dtype for aval in avals for _ in range(int(np.prod(aval.shape)))]


def _while_loop(to: Any, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.while_loop`."""
    writer, params = to.writer, equation.params
    out, split = [v.aval for v in equation.outvars], params["cond_nconsts"]
    ends = split + params["body_nconsts"]
    tested, used, start = operands[:split], operands[split:ends], operands[ends:]
    types = _types(out)
    names = writer.variables(types)
    writer.assign(names, flat(start), types)
    carry = shaped(names, out)
    on = writer.name("on")
    writer.write(f"truth {on} = {writer.on};")
    with writer.block("for (;;)"), writer.only(on):
        (go,) = to.closed(params["cond_jaxpr"], [*tested, *carry])
        any_goes = _joined(to, "reduce_or", go, bool, range(go.ndim)).item()
        left = writer.name("on")  # a name of its own: what the condition said of others was before
        writer.write(f"const truth {left} = {on} & {text(any_goes, bool)};")
        writer.write(f"{on} = {left};")
        writer.write(f"if (!some({left})) break;")
        with writer.only(left):
            new = to.closed(params["body_jaxpr"], [*used, *carry])
            if go.ndim:  # a loop under vmap, in which each goes on for as long as its own condition
                new = [
                    _going(to, go, *values, dtype=aval.dtype)
                    for *values, aval in zip(carry, new, out, strict=True)
                ]
            writer.assign(names, flat(new), types)
    return carry


def _going(to: Any, go: Elements, old: Elements, new: Elements, dtype: Any) -> Elements:
    """New values where a loop goes on, by its leading axes."""
    which = np.broadcast_to(go.reshape(*go.shape, *(1,) * (new.ndim - go.ndim)), new.shape)
    found = np.empty(new.shape, object)
    for at in np.ndindex(new.shape):
        found[at] = to.choice(which[at], (old[at], new[at]), dtype)
    return found


def _cond(to: Any, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.cond` and `lax.switch`."""
    writer, (index, *given) = to.writer, operands
    out, branches = [v.aval for v in equation.outvars], equation.params["branches"]
    if not isinstance(index.item(), str):
        place = int(np.clip(int(index.item()), 0, len(branches) - 1))
        return to.closed(branches[place], given)
    types = _types(out)
    names = writer.variables(types)
    for k, branch in enumerate(branches):
        sign = "<=" if k == 0 else ">=" if k == len(branches) - 1 else "=="
        on = writer.let("truth", f"{writer.on} & truth_of({index.item()} {sign} {k})")
        with writer.block(f"if (some({on}))"), writer.only(on):
            writer.assign(names, flat(to.closed(branch, given)), types)
    return shaped(names, out)


def _alike(inside: Sequence[Any], outside: Sequence[Any]) -> int:
    """How many operands or results of a loop have the shape that they have in its body."""
    pairs = zip(inside, outside, strict=True)
    return sum(own.aval.shape == aval.shape for own, aval in pairs)


def _scan(to: Any, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.scan`, written out step by step."""
    params = equation.params
    out, count = [v.aval for v in equation.outvars], params["length"]
    if count > MOST_UNROLLED:
        raise ValueError(
            f"a fused kernel cannot be made of a scan of {count} steps, more than {MOST_UNROLLED}: "
            "leave fused=True out"
        )
    body = params["jaxpr"].jaxpr
    split = _alike(body.outvars, out)  # what a row is cut from, or piled up to, has one axis more
    ends = _alike(body.invars, [v.aval for v in equation.invars])
    consts, carry, rows = operands[: ends - split], operands[ends - split : ends], operands[ends:]
    order = range(count)[::-1] if params["reverse"] else range(count)
    found: dict[int, list[Elements]] = {}
    for k in order:
        results = to.closed(params["jaxpr"], [*consts, *carry, *(row[k] for row in rows)])
        carry, found[k] = results[:split], results[split:]
    stacked = [
        np.stack([found[k][i] for k in range(count)]) if count else known(np.zeros(aval.shape))
        for i, aval in enumerate(out[split:])
    ]
    return [*carry, *stacked]


_SPECIAL: dict[str, Callable[..., list[Any]]] = {
    "argmax": _largest,
    "argmin": _largest,
    "call_hi_primitive": _expanded,
    "clamp": _clamp,
    "cond": _cond,
    "convert_element_type": _convert,
    "dot_general": _products,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "integer_pow": _power,
    "iota": _iota,
    "polynomial": _polynomial,
    "round": _round,
    "scan": _scan,
    "scatter": _scatter,
    "scatter-add": _scatter,
    "select_n": _select,
    "while": _while_loop,
}
