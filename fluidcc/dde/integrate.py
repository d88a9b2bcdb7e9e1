"""Integrate a system on any mesh: a mesh is an object that solves initial-value problems."""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jax import Array
from jax.core import Tracer
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir, partial_eval

from fluidcc.arrays import jax, jnp
from fluidcc.dde.batches import Devices, devices_for, side_by_side
from fluidcc.dde.system import Args, System, history_look


class FlatSolution(NamedTuple):
    """A solution on flat vectors: y (S, n) and record (S, U) at t (S,), and how it ended.

    `evaluate` gives the states (S, n) at any times (S,), None where they were not kept.
    """

    t: Array
    y: Array
    record: Array
    status: Array
    status_time: Array
    steps: Array
    breaking_points: Array
    evaluate: Callable[[Array], Array] | None


class Problem(NamedTuple):
    """An initial-value problem, from t0 to t1, or a batch of them.

    `ts` are the increasing times to save (S,), None for the nodes; `jump` is true if y0 differs
    from the end of the history; in a batch y0 and the leaves of `args[0]` have a leading axis, and
    it is divided among `devices`.
    """

    system: System
    y0: Array
    t0: Array
    t1: Array
    args: Args
    ts: Array | None
    jump: bool
    batched: bool
    devices: Devices

    def one(self) -> tuple[Array, Args]:
        """State at t0 and parameters of one trajectory."""
        return one_of(self.y0, self.args, self.batched)

    def first_lags(self) -> Array:
        """Lags at t0, shape (M,); (B, M) in a batch."""

        def lags(y0: Array, args: Args) -> Array:
            look = history_look(self.system, self.t0, args)
            return self.system.lags(self.t0, y0, args, look)

        return side_by_side(lags, self.batched, self.y0, self.args)


class AbstractMesh(eqx.Module):
    """How a delay equation is stepped."""

    @abc.abstractmethod
    def solve(self, problem: Problem) -> FlatSolution:
        """The solution; ValueError for problems that the mesh cannot solve."""


def integrate(
    system: System,
    y0: Array,
    t0: Any,
    t1: Any,
    args: Args,
    *,
    mesh: AbstractMesh,
    ts: Any = None,
    jump: bool = False,
    batched: bool = False,
) -> FlatSolution:
    """Integrate a system from t0 to t1 and save at the increasing times `ts`, or at the nodes.

    Parameters
    ----------
    system, args
        The delay equation and its parameters.
    y0
        State at t0, (n,).
    jump
        Whether y0 differs from the end of the history.
    batched
        Whether y0 and the leaves of `args[0]` have a leading axis, over which to integrate in
        blocks that suit the processor's cache, on all devices of this process.

    Raises
    ------
    ValueError
        For problems that the mesh cannot solve.
    """
    t0, t1, ts = number(t0), number(t1), None if ts is None else number(ts)
    given = _forward_only((y0, t0, t1, args, ts, mesh))
    devices = devices_for(given) if batched and known(given) else ()
    if devices:
        given = jax.tree.map(np.asarray, given)  # from whichever device they are on
    y0, t0, t1, args, ts, mesh = given
    return mesh.solve(Problem(system, y0, t0, t1, args, ts, jump, batched, devices))


def check_mesh(mesh: object) -> None:
    """Raise ValueError if `mesh` is no mesh."""
    if not isinstance(mesh, AbstractMesh):
        raise ValueError(f"mesh: expected Uniform, Located or MethodOfSteps, got {mesh!r}")


def check_positive(name: str, value: Any) -> None:
    """Raise ValueError unless a plain number is positive; traced values pass."""
    if isinstance(value, str) or (isinstance(value, int | float) and not value > 0):
        raise ValueError(f"{name} must be positive, got {value}")


def known(*values: Any) -> bool:
    """Whether all values are numbers now, not tracers."""
    return not any(isinstance(value, Tracer) for value in jax.tree.leaves(values))


def number(value: Any) -> Any:
    """Floats as NumPy arrays, so that they stay concrete in traced code; JAX arrays unchanged."""
    return value if isinstance(value, jax.Array) else np.asarray(value, float)


def power_of_two(least: float) -> int:
    """The smallest power of two that is at least `least`."""
    return 1 << max(0, int(np.ceil(least)) - 1).bit_length()


def one_of(y0: Array, args: Args, batched: bool) -> tuple[Array, Args]:
    """State at t0 and parameters of one trajectory."""
    if not batched:
        return y0, args
    # concrete values by NumPy, which saves a JAX call for each
    row = lambda leaf: leaf[0] if isinstance(leaf, Tracer) else np.asarray(leaf)[0]  # noqa: E731
    return row(y0), type(args)(jax.tree.map(row, args[0]), *args[1:])


def in_single_precision(tree: Any) -> Any:
    """A PyTree with its floats in single precision."""

    def converted(leaf: Any) -> Any:
        floats = jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
        return jnp.asarray(leaf, jnp.float32) if floats else leaf

    return jax.tree.map(converted, tree)


# an identity that refuses reverse mode: loops of a solver have derivatives in forward mode alone
_forward = Primitive("forward_mode_only")
_forward.def_impl(lambda x: x)
_forward.def_abstract_eval(lambda x: x)
ad.primitive_jvps[_forward] = lambda x, dx: (_forward.bind(*x), _forward.bind(*dx))
batching.primitive_batchers[_forward] = lambda x, axes: (_forward.bind(*x), axes[0])
mlir.register_lowering(_forward, mlir.lower_fun(lambda x: x, multiple_results=False))


def _refuse(trace: Any, x: Any) -> Any:
    """Raise ValueError in reverse mode, which starts by partial evaluation of unknown tangents."""
    if x.is_known():
        return trace.default_process_primitive(_forward, (x,), {})
    raise ValueError(
        "solve_dde is differentiated in forward mode: expected jax.jvp or jax.jacfwd, got reverse "
        "mode (jax.grad, jax.jacrev, jax.vjp, jax.linearize)"
    )


partial_eval.custom_partial_eval_rules[_forward] = _refuse


def _forward_only(tree: Any) -> Any:
    """The same PyTree; ValueError if reverse mode differentiates it."""

    def marked(leaf: Any) -> Any:
        traced = isinstance(leaf, Tracer) and jnp.issubdtype(leaf.dtype, jnp.floating)
        return _forward.bind(leaf) if traced else leaf

    return jax.tree.map(marked, tree)
