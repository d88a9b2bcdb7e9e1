"""Arithmetic that serves plain floats, NumPy and dual numbers, JAX arrays and SymPy alike.

The rules of the laws are written once with these functions and evaluated by every engine. Each
function looks at its arguments: any SymPy expression makes a SymPy expression, any JAX array a JAX
array, plain numbers a plain number; everything else is for NumPy, with or without slopes. SymPy and
JAX are not imported for that: a caller with such arguments has done so.
"""

import functools
import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fluidcc import dual
from fluidcc.recording import Recorded

Num = Any
"""A float, an array of NumPy or JAX, a dual or recorded number, or a SymPy expression."""

PLAIN = frozenset({bool, int, float})
"""Types of plain Python numbers."""

_NUMPY = frozenset({np.ndarray, np.float64, np.int64, np.bool_, dual.Dual, Recorded})


class _Floats:
    """The functions for plain numbers."""

    maximum, minimum, logical_not = max, min, operator.not_

    @staticmethod
    def where(condition: Num, yes: Num, no: Num) -> Num:
        return yes if condition else no


class _Symbols:
    """The functions for SymPy expressions."""

    def __getattr__(self, name: str) -> Any:
        import sympy as sp
        from sympy.codegen import cfunctions

        own = {
            "maximum": _extreme("Max"),
            "minimum": _extreme("Min"),
            "where": _piecewise,
            "logical_not": sp.Not,
        }
        return own.get(name) or getattr(sp, name, None) or getattr(cfunctions, name)


def _piecewise(condition: Num, yes: Num, no: Num) -> Num:
    """SymPy's `Piecewise`, which unfolds those in its conditions: time and text without end."""
    import sympy as sp

    if isinstance(condition, sp.Basic) and condition.has(sp.Piecewise):
        condition = condition.replace(sp.Piecewise, _chosen)
    return sp.Piecewise((yes, condition), (no, True))


def _chosen(*pairs: Any) -> Num:
    """A `Piecewise` as a number that stays whole."""
    (value, condition), *others = pairs
    return _choice()(condition, value, _chosen(*others)) if others else value


@functools.cache
def _choice() -> Any:
    import sympy as sp

    class Choice(sp.Function):  # of a condition, and of the numbers if it holds and if it does not
        nargs, is_extended_real = 3, True

        def _pythoncode(self, printer: Any, *_: Any) -> str:
            condition, yes, no = map(printer.doprint, self.args)
            return f"(({yes}) if ({condition}) else ({no}))"

        def _latex(self, printer: Any, *_: Any) -> str:
            condition, yes, no = self.args
            return printer.doprint(sp.Piecewise((yes, condition), (no, True)))

    return Choice


_LARGE = 100  # operations; from there on SymPy compares in vain, and for seconds


@functools.cache
def _extreme(name: str) -> Callable[[Num, Num], Num]:
    """SymPy's `Max` or `Min`, which compares its arguments whenever it is written anew; if they are
    large, a function that leaves them as they are.
    """
    import sympy as sp

    usual = getattr(sp, name)

    class Large(sp.Function):
        nargs, is_extended_real = 2, True

        def fdiff(self, argindex: int = 1) -> Num:
            args: Any = self.args
            above = args[argindex - 1] - args[2 - argindex]
            return sp.Heaviside(above if name == "Max" else -above)

        def _pythoncode(self, printer: Any, *_: Any) -> str:
            return f"{name.lower()}({', '.join(map(printer.doprint, self.args))})"

        def _latex(self, printer: Any, *_: Any) -> str:
            return printer.doprint(usual(*self.args, evaluate=False))

    Large.__name__ += name  # SymPy sorts by name

    def extreme(a: Num, b: Num) -> Num:
        size = sum(x.count_ops() for x in (a, b) if isinstance(x, sp.Basic))
        return Large(a, b) if size > _LARGE else usual(a, b)

    return extreme


for _name in ("exp", "log", "sqrt", "expm1", "log1p"):
    setattr(_Floats, _name, staticmethod(getattr(math, _name)))
_symbols = _Symbols()


def _space(*args: Num) -> Any:
    """The functions for these numbers."""
    space: Any = _Floats
    for a in args:
        kind = type(a)
        if kind not in PLAIN:
            if kind not in _NUMPY:
                return _other_space(*args)
            space = dual
    return space


def _other_space(*args: Num) -> Any:
    if symbolic(*args):
        return _symbols
    if traced(*args):
        from fluidcc.arrays import jnp

        return jnp
    return dual


def symbolic(*args: Num) -> bool:
    """Whether any of some numbers is a SymPy expression."""
    basic = getattr(sys.modules.get("sympy.core.basic"), "Basic", ())
    return any(isinstance(a, basic) for a in args)


def traced(*args: Num) -> bool:
    """Whether any of some numbers is an array of JAX."""
    rare = [a for a in args if type(a) not in _NUMPY and type(a) not in PLAIN]
    array = getattr(sys.modules.get("jax"), "Array", ()) if rare else ()
    return any(isinstance(a, array) for a in rare)


def is_tracer(a: Num) -> bool:
    """Whether a number is one of JAX within a function that it transforms."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(a, jax.core.Tracer)


def where(condition: Num, yes: Num, no: Num) -> Num:
    """`yes` if the condition holds, else `no`; both are evaluated, so guard their arguments."""
    return _space(condition, yes, no).where(condition, yes, no)


def maximum(a: Num, b: Num) -> Num:
    """The larger of two numbers."""
    return _space(a, b).maximum(a, b)


def minimum(a: Num, b: Num) -> Num:
    """The smaller of two numbers."""
    return _space(a, b).minimum(a, b)


def clip(a: Num, low: Num, high: Num) -> Num:
    """`a` moved into [low, high]."""
    return minimum(maximum(a, low), high)


def logical_not(condition: Num) -> Num:
    """Whether a condition does not hold; `~` makes -2, which is true, of Python's `True`."""
    return _space(condition).logical_not(condition)


def _unary(name: str) -> Callable[[Num], Num]:
    def function(a: Num) -> Num:
        return getattr(_space(a), name)(a)

    function.__name__ = name
    function.__doc__ = f"The function `{name}` of one number."
    return function


exp = _unary("exp")
log = _unary("log")
sqrt = _unary("sqrt")
expm1 = _unary("expm1")
log1p = _unary("log1p")


def total(a: Num) -> Num:
    """Sum of the numbers of an array."""
    return _space(a).sum(a) if traced(a) else dual.total(a)


def stack(values: Sequence[Num]) -> Num:
    """Numbers of one shape along a new first axis."""
    return _arrays(*values).stack(values)


def concatenate(values: Sequence[Num], axis: int = 0) -> Num:
    """Arrays, one after the other along an axis."""
    return _arrays(*values).concatenate(values, axis)


def _arrays(*args: Num) -> Any:
    """The functions for arrays of these numbers."""
    space = _space(*args)
    return dual if space is _Floats else space


def _of_array(name: str) -> Callable[..., Num]:
    def function(a: Num, *others: Num) -> Num:
        if traced(a):
            return getattr(_space(a), name)(a, *others)
        return getattr(np, name)(dual.plain(a), *others)

    function.__name__ = name
    function.__doc__ = f"The function `{name}` of NumPy, of the values of an array."
    return function


floor, nextafter = _of_array("floor"), _of_array("nextafter")
least, greatest = _of_array("min"), _of_array("max")
anywhere, everywhere = _of_array("any"), _of_array("all")


def add_at(a: Num, row: Num, value: Num) -> Num:
    """The array (n, B) with numbers (B,) added, each in a row of its own; it may be the same array,
    changed.
    """
    columns = np.arange(a.shape[1])
    if traced(a, row, value):
        return _space(a, row, value).asarray(a).at[row.astype(int), columns].add(value)
    a[row.astype(int), columns] += value
    return a


def ravel(a: Num) -> Num:
    """All numbers of an array as a vector."""
    return a.reshape((-1,)) if hasattr(a, "reshape") else np.reshape(a, -1)


def broadcast_to(a: Num, shape: tuple[int, ...]) -> Num:
    """A number or an array in a larger shape."""
    return _arrays(a).broadcast_to(a, shape)


def zeros_like(a: Num) -> Num:
    """Zeros in the shape of a number or an array."""
    return _space(a).zeros_like(a) if traced(a) else np.zeros(np.shape(dual.plain(a)))


def ones_like(a: Num) -> Num:
    """Ones in the shape of a number or an array."""
    return 1.0 + zeros_like(a)


def constant(a: Num) -> Num:
    """The number without derivatives."""
    if not traced(a):
        return dual.plain(a)
    from fluidcc.arrays import jax

    return jax.lax.stop_gradient(a)
