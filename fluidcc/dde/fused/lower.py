"""From equations that JAX has traced to C, number by number: arrays exist only while this runs."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from fluidcc.dde.fused import control, indexing
from fluidcc.dde.fused.elementwise import ROUNDINGS, converted, rule
from fluidcc.dde.fused.many import JOINED, joined, largest, products, running
from fluidcc.dde.fused.moves import MOVES
from fluidcc.dde.fused.numbers import Numbers, Operand, all_known, known
from fluidcc.dde.fused.writer import Memory

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
        if name in MOVES:
            moved = MOVES[name](*operands, **params)
            return moved if isinstance(moved, list) else [moved]
        if not equation.outvars:
            raise ValueError(f"a fused kernel cannot do '{name}': leave fused=True out")
        types, out = [v.aval.dtype for v in equation.invars], equation.outvars[0].aval
        by = rule(name, types[0]) if types else None
        if by is not None:
            return [self.each(by, operands, types, out)]
        if name in JOINED and "axes" in params:
            return [joined(self, name, operands[0], out.dtype, params["axes"])]
        if name in JOINED:
            axis, back = params["axis"], params["reverse"]
            return [running(self, name, operands[0], out.dtype, axis, back)]
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
    return [largest(to, operands[0], dtype, axis, sign, equation.outvars[0].aval.dtype)]


def _products(to: Lowering, operands: list[Any], equation: Any) -> list[Any]:
    dtype, axes = equation.outvars[0].aval.dtype, equation.params["dimension_numbers"]
    left, right = (
        _as(to, operand, v.aval, dtype)
        for v, operand in zip(equation.invars, operands, strict=True)
    )
    return [products(to, left, right, dtype, axes)]


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


_SPECIAL: dict[str, Callable[..., list[Any]]] = {
    "argmax": _largest,
    "argmin": _largest,
    "call_hi_primitive": _expanded,
    "clamp": _clamp,
    "cond": control.cond,
    "convert_element_type": _convert,
    "dot_general": _products,
    "dynamic_slice": indexing.dynamic_slice,
    "dynamic_update_slice": indexing.dynamic_update_slice,
    "gather": indexing.gather,
    "integer_pow": _power,
    "iota": _iota,
    "polynomial": _polynomial,
    "round": _round,
    "scan": control.scan,
    "scatter": indexing.scatter,
    "scatter-add": indexing.scatter,
    "select_n": _select,
    "while": control.while_loop,
}
