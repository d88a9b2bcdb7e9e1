"""Arithmetic that serves JAX arrays, SymPy expressions and plain floats alike.

The rules of the laws are written once with these functions and evaluated by every engine. Each
function looks at its arguments: any SymPy expression makes a SymPy expression, plain numbers make
a plain number, everything else goes to JAX, which is imported then.
"""

import math
import sys
from collections.abc import Callable
from typing import Any

Num = Any
"""A float, a JAX array or a SymPy expression."""


def _symbolic(*args: Num) -> bool:
    # SymPy takes as long to import as JAX; a caller with an expression has imported it
    basic = getattr(sys.modules.get("sympy.core.basic"), "Basic", ())
    return any(isinstance(a, basic) for a in args)


def _plain(*args: Num) -> bool:
    return all(isinstance(a, bool | int | float) for a in args)


def _jnp() -> Any:
    from fluidcc.arrays import jnp

    return jnp


def where(condition: Num, yes: Num, no: Num) -> Num:
    """`yes` if the condition holds, else `no`; both are evaluated, so guard their arguments."""
    if _symbolic(condition, yes, no):
        import sympy as sp

        return sp.Piecewise((yes, condition), (no, True))
    if _plain(condition, yes, no):
        return yes if condition else no
    return _jnp().where(condition, yes, no)


def maximum(a: Num, b: Num) -> Num:
    """The larger of two numbers."""
    if _symbolic(a, b):
        import sympy as sp

        return sp.Max(a, b)
    return max(a, b) if _plain(a, b) else _jnp().maximum(a, b)


def minimum(a: Num, b: Num) -> Num:
    """The smaller of two numbers."""
    if _symbolic(a, b):
        import sympy as sp

        return sp.Min(a, b)
    return min(a, b) if _plain(a, b) else _jnp().minimum(a, b)


def clip(a: Num, low: Num, high: Num) -> Num:
    """`a` moved into [low, high]."""
    return minimum(maximum(a, low), high)


def _unary(name: str) -> Callable[[Num], Num]:
    plain = getattr(math, name)

    def function(a: Num) -> Num:
        if _symbolic(a):
            import sympy as sp

            return getattr(sp, name)(a)
        return plain(a) if _plain(a) else getattr(_jnp(), name)(a)

    function.__name__ = name
    function.__doc__ = f"The function `{name}` of one number."
    return function


exp = _unary("exp")
log = _unary("log")
sqrt = _unary("sqrt")


def expm1(a: Num) -> Num:
    """exp(a) - 1, accurate for small `a`."""
    if _symbolic(a):
        from sympy.codegen.cfunctions import expm1 as symbolic

        return symbolic(a)
    return math.expm1(a) if _plain(a) else _jnp().expm1(a)


def log1p(a: Num) -> Num:
    """log(1 + a), accurate for small `a`."""
    if _symbolic(a):
        from sympy.codegen.cfunctions import log1p as symbolic

        return symbolic(a)
    return math.log1p(a) if _plain(a) else _jnp().log1p(a)


def slope(change: Callable[[Num], Any], *like: Any) -> Any:
    """Derivative of `change(k)` at k = 0: the rate of a rule stated for k packets or k seconds.

    Parameters
    ----------
    change
        Function of one number that returns a PyTree of numbers.
    like
        PyTrees that `change` closes over; one SymPy leaf among them makes the result symbolic.
    """
    from fluidcc.arrays import jax

    if _symbolic(*jax.tree.leaves(like)):
        import sympy as sp

        k = sp.Dummy("k", real=True)
        return jax.tree.map(lambda e: sp.diff(sp.sympify(e), k).subs(k, 0), change(k))

    def lifted(k: Num) -> Any:  # a change that ignores k must still be a JAX value
        return jax.tree.map(lambda v: v + 0.0 * k, change(k))

    return jax.jvp(lifted, (0.0,), (1.0,))[1]
