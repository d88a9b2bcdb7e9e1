"""Values that have derivatives in forward mode alone: the loops of a solver have no reverse."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir, partial_eval

_forward = Primitive("forward_mode_only")
_forward.def_impl(lambda x: x)
_forward.def_abstract_eval(lambda x: x)
ad.primitive_jvps[_forward] = lambda x, dx: (_forward.bind(*x), _forward.bind(*dx))
batching.primitive_batchers[_forward] = lambda x, axes: (_forward.bind(*x), axes[0])
mlir.register_lowering(_forward, mlir.lower_fun(lambda x: x, multiple_results=False))


def _refuse(trace: Any, x: Any) -> Any:
    """The first thing that reverse mode does is to set tangents aside, as yet unknown."""
    if x.is_known():
        return trace.default_process_primitive(_forward, (x,), {})
    raise ValueError(
        "solve_dde is differentiated in forward mode: expected jax.jvp or jax.jacfwd, got reverse "
        "mode (jax.grad, jax.jacrev, jax.vjp, jax.linearize)"
    )


partial_eval.custom_partial_eval_rules[_forward] = _refuse


def forward_only(tree: Any) -> Any:
    """The same PyTree; ValueError if reverse mode differentiates it."""

    def marked(leaf: Any) -> Any:
        traced = isinstance(leaf, Tracer) and jnp.issubdtype(leaf.dtype, jnp.floating)
        return _forward.bind(leaf) if traced else leaf

    return jax.tree.map(marked, tree)
