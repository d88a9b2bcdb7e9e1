"""Integrate a system on any mesh: a mesh is an object that solves initial-value problems.

How an integration ended is a code per trajectory whose text is advice. Batches of trajectories are
integrated in blocks that fit the cache, in sequence, or divided among devices, each of which
integrates its part and waits for no other.
"""

import abc
import enum
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jax import Array, lax
from jax.core import Tracer
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir, partial_eval
from jax.sharding import Mesh, PartitionSpec

from fluidcc import memory
from fluidcc.arrays import jax, jnp
from fluidcc.dde.system import Args, System, history_look


class Status(enum.IntEnum):
    """Outcome of one trajectory; the first failure is kept, and its `advice` names the remedy.

    Examples
    --------
    >>> import fluidcc as fc
    >>> [status.name for status in fc.Status][:3]
    ['ok', 'nonfinite', 'lag_negative']
    """

    ok = 0
    nonfinite = 1
    lag_negative = 2
    lag_below_step = 3
    lag_exceeds_ring = 4
    history_out_of_range = 5
    event_limit = 6
    step_limit = 7
    nonmonotone_argument = 8
    tolerance_not_met = 9

    @property
    def advice(self) -> str:
        """The cause and the remedy."""
        return _ADVICE[self]


_ADVICE = {
    Status.ok: "the run reached its end",
    Status.nonfinite: "the state or its slope is not finite; check the parameters, or use a "
    "smaller step",
    Status.lag_negative: "a lag is negative, so the equation asks for the future; check the lags",
    Status.lag_below_step: "a lag is shorter than the step or does not settle within it; use a "
    "smaller step, or Located, which iterates such steps",
    Status.lag_exceeds_ring: "a lag is longer than the history kept; give Uniform more slots",
    Status.history_out_of_range: "the history is not finite where a lag reaches back to; give a "
    "history that covers the longest lag",
    Status.event_limit: "too many events without progress, or too many open breaking points; the "
    "mode chatters: let the switch move the state off the boundary, or merge the modes",
    Status.step_limit: "the step limit was reached before the end; raise max_steps, or use a "
    "larger step",
    Status.nonmonotone_argument: "t - lag went back over a breaking point, which multiplies "
    "breaking points; bound the growth of the lag (for networks: delay = 'fifo')",
    Status.tolerance_not_met: "the error estimate stayed above the tolerance at the smallest "
    "steps tried; loosen rtol or atol, or name the jump that is there. A queue law returns what "
    "changes its sign at the jump, such as (seen.queue - limit,), from breakpoints(x, seen) "
    "(docs/own_queue_law.md); uniform steps cross a jump of any rule (mesh=fluidcc.Uniform()); "
    "solve_dde takes a switch as modes, and a jump at the start as y0 "
    "(docs/own_delay_equation.md)",
}


def first(status: Array, condition: Array, code: Status) -> Array:
    """Set `code` where the condition holds and nothing has failed yet."""
    return jnp.where((status == Status.ok) & condition, jnp.int32(code), status)


_BATCH = "batch"
Devices = tuple[jax.Device, ...]


def _each(function: Callable[[Array, Any], Any], args: Any) -> Callable[[tuple[Array, Any]], Any]:
    """`function` of the values that differ along a batch: a pair of y0 and `args[0]`."""
    return lambda pair: function(pair[0], type(args)(pair[1], *args[1:]))


def _side_by_side(
    function: Callable[[Array, Any], Any], batched: bool, y0: Array, args: Any
) -> Any:
    """`function(y0, args)`, mapped along the leading axis of y0 and of `args[0]` if batched."""
    return jax.vmap(_each(function, args))((y0, args[0])) if batched else function(y0, args)


def one_by_one(function: Callable[[Array, Any], Any], batched: bool, y0: Array, args: Any) -> Any:
    """The same, in sequence (`lax.map`)."""
    return lax.map(_each(function, args), (y0, args[0])) if batched else function(y0, args)


def over_blocks(
    function: Callable[[Array, Any], Any], batched: bool, y0: Array, args: Any, block: int
) -> Any:
    """`function(y0, args)`; a batch in equal blocks of at most `block` trajectories, in
    sequence.

    The last block is filled up with trajectories of the batch, so that one shape is compiled.
    """
    if not batched or y0.shape[0] <= block:
        return function(y0, args)
    total = y0.shape[0]
    count = -(-total // block)
    size = -(-total // count)
    fill = count * size - total

    def cut(leaf: Array) -> Array:
        leaf = jnp.concatenate([leaf, leaf[:fill]]) if fill else leaf
        return leaf.reshape(count, size, *leaf.shape[1:])

    y0, first = jax.tree.map(cut, (y0, args[0]))
    results = lax.map(_each(function, args), (y0, first))
    return jax.tree.map(lambda v: v.reshape(count * size, *v.shape[2:])[:total], results)


def sequential(function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)` that becomes a loop under vmap.

    Under plain vmap every trajectory would copy its whole past in each step, and wait for the
    slowest. Tangents of one trajectory are vectorised.
    """
    leaves, structure = jax.tree.flatten(args)
    forms = []  # known once it was traced, which takes longer than all else that is done here

    def plain(*leaves: Array) -> tuple[Array, ...]:
        results, form = jax.tree.flatten(function(*jax.tree.unflatten(structure, leaves)))
        forms.append(form)
        return tuple(results)

    flat = jax.custom_batching.custom_vmap(plain)

    @flat.def_vmap
    def rule(
        axis_size: int, in_batched: list[bool], *leaves: Array
    ) -> tuple[tuple[Array, ...], tuple[bool, ...]]:
        del axis_size
        moving = [leaf for leaf, is_batched in zip(leaves, in_batched, strict=True) if is_batched]

        def call_one(moving: list[Array]) -> tuple[Array, ...]:
            parts, pairs = iter(moving), zip(leaves, in_batched, strict=True)
            return flat(*(next(parts) if is_batched else leaf for leaf, is_batched in pairs))

        result = lax.map(call_one, moving) if moving else plain(*leaves)
        return result, (bool(moving),) * len(result)

    results = flat(*leaves)
    return jax.tree.unflatten(forms[0], results)


def devices_for(values: Any) -> Devices:
    """The devices of this process; none if it has only one, or values were put on a chosen one.

    Other processes of a `jax.distributed` job have devices too, but would have to make each call
    together with this one.
    """
    devices = jax.local_devices()
    arrays = [leaf for leaf in jax.tree.leaves(values) if isinstance(leaf, Array)]
    put = any(leaf.committed and len(leaf.devices()) == 1 for leaf in arrays)
    chosen = put or memory.chosen() is not None
    return () if len(devices) == 1 or chosen else tuple(devices)


def in_one_memory(devices: Devices) -> int:
    """How many of the devices share one memory: those of a processor do."""
    return len(devices) if devices and devices[0].platform == "cpu" else 1


def divide_batch(run: Callable[..., Any], devices: Devices, y0: Any, args: Any) -> Any:
    """`run(y0, args=args, shared=mesh)` with a batch filled up to equal shares, and cut again.

    `run` hands `mesh` to `on_each_device`; there is none for a single trajectory.
    """
    total = y0.shape[0] if devices else 1
    if total == 1:
        return run(y0, args=args, shared=None)
    share = -(-total // len(devices))
    mesh = Mesh(np.array(devices[: -(-total // share)]), _BATCH)
    index = np.arange(share * mesh.size) % total
    y0, first = jax.tree.map(lambda leaf: leaf[index], (y0, args[0]))
    results = run(y0, args=type(args)(first, *args[1:]), shared=mesh)
    if index.size == total:
        return results
    # devices exchange numbers in a cut, and one that waits long for another ends the process
    return jax.tree.map(lambda leaf: leaf[:total], jax.block_until_ready(results))


def on_each_device(run: Callable[..., Any], mesh: Mesh | None, y0: Array, args: Any) -> Any:
    """`run(y0, args)` in compiled code, on each device of the mesh for its part of the batch."""
    if mesh is None:
        return run(y0, args)

    def run_part(y0: Array, first: Any, others: Any) -> Any:
        return run(y0, type(args)(first, *others))

    along, whole = PartitionSpec(_BATCH), PartitionSpec()
    # loops begin with numbers replicated over devices, which the check would refuse
    spread = jax.shard_map(
        run_part, mesh=mesh, in_specs=(along, along, whole), out_specs=along, check_vma=False
    )
    return spread(y0, args[0], tuple(args[1:]))


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

        return _side_by_side(lags, self.batched, self.y0, self.args)


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
