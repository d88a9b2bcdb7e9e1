"""Steps of one length by JAX on an accelerator: those of `uniform`, number by number.

There each operation on arrays of a shape of its own is a kernel, whose launch takes longer than
its work. So a step is lowered to the graph of its numbers, and each of these is an array over the
trajectories: a compiler makes a few large kernels of them. Derivatives are lost, as a graph has
neither `custom_jvp` nor `stop_gradient`.
"""

from typing import Any

import numpy as np
from jax import Array, lax
from jax.extend.core import ClosedJaxpr

from fluidcc.arrays import jax, jnp
from fluidcc.dde.fused import launch
from fluidcc.dde.fused.evaluate import Evaluation, Numbers, choose
from fluidcc.dde.fused.graph import Graph, Memory
from fluidcc.dde.fused.lower import lower
from fluidcc.dde.integrate import one_of
from fluidcc.dde.steps import Clock, Saved, get
from fluidcc.dde.system import Args, System, size_of

MOST_OPERATIONS = 20_000
"""Most operations of a step on numbers: more take over a minute to compile."""


class _Steps:
    """Traced methods of `Stepper` for many trajectories."""

    def __init__(self, lanes: int, arguments: list[Numbers], slots: int, record: int) -> None:
        self.lanes, self.arguments = lanes, arguments
        self.shape = (slots, 2 * record)

    def write(self, table: Array, node: Array, row: Numbers, last: Array) -> Array:
        """The history with the row of a node in place of the oldest one's; that of a node after the
        `last` one goes where none is read.
        """
        slot = jnp.where(node > last, self.shape[0], jnp.bitwise_and(node, self.shape[0] - 1))
        zero = jnp.zeros_like(slot)
        return lax.dynamic_update_slice(table, jnp.stack(row)[None], (slot, zero, zero))

    def call(self, jaxpr: ClosedJaxpr, table: Array, *own: Numbers) -> list[Numbers]:
        """Results of a method; raises ValueError for an operation that the graph lacks."""
        graph = Graph(unrolled=np.iinfo(int).max, most=MOST_OPERATIONS)
        evaluation = Evaluation(graph, self.lanes)
        flat, lane = table.reshape(-1), jnp.arange(self.lanes, dtype=jnp.int32)

        def read(index: Array, offset: int, row: bool) -> Array:
            del row
            return get(flat, (index + offset) * self.lanes + lane)

        operands: list[Any] = []
        for numbers, v in zip([*self.arguments, None, *own], jaxpr.jaxpr.invars, strict=True):
            if numbers is None:
                operands.append(Memory(read, self.shape))
            else:
                node = graph.add("given", v.aval.dtype, size_of(v.aval.shape))
                evaluation.bind(node, numbers)
                operands.append(node.ids.reshape(v.aval.shape))
        results = lower(graph, jaxpr, operands)
        return evaluation.numbers(results, [v.aval.dtype for v in jaxpr.jaxpr.outvars])


def integrate(
    system: System,
    y0: Array,
    t0: Array,
    t1: Array,
    step: Array,
    ts: Array,
    args: Args,
    slots: int,
    batched: bool,
    turns: int,
) -> Saved:
    """As the loop of `uniform`, but the host looks after `turns` steps whether more are to come.

    Raises ValueError for an operation that the graph lacks, and for more than MOST_OPERATIONS.
    """
    lanes = y0.shape[0] if batched else 1
    one_y0, one_args = one_of(y0, args, batched)
    plan = launch.plan(system, one_y0, one_args, t0, slots=slots, interleaved=True, simd_lanes=1)
    traces = launch.trace(plan)
    columns = lambda leaf: list(jnp.asarray(leaf).reshape(lanes, -1).T)  # noqa: E731
    repeated = lambda leaf: columns(jnp.broadcast_to(leaf, (lanes, *np.shape(leaf))))  # noqa: E731
    own = map(columns, jax.tree.leaves(args[0]))
    clock = Clock.of(t0, step)
    shared = map(repeated, (*jax.tree.leaves(tuple(args[1:])), *clock))
    steps = _Steps(lanes, [*own, *shared], slots, plan.record)
    node = jax.ShapeDtypeStruct((), jnp.int32)
    leaves = [node, *jax.tree.leaves(traces.lane)]
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]

    def pack(parts: list[Numbers]) -> Array:
        """All in one array: others would be copied one by one from turn to turn."""
        return jnp.stack([number.astype(y0.dtype) for part in parts for number in part])

    def unpack(packed: Array) -> list[Numbers]:
        parts = zip(jnp.split(packed, ends), leaves, strict=True)
        return [list(part.astype(leaf.dtype)) for part, leaf in parts]

    def advance(n: Array, packed: Array, table: Array, target: Array) -> tuple[Array, Array]:
        """The step from node n, if that is before the node `target`."""
        number, *at = unpack(packed)
        *new, row = steps.call(traces.advance, table, number, *at)
        new = [[number[0] + 1], *new]
        if turns > 1:
            new = choose(number[0] < target, new, [number, *at])
        return pack(new), steps.write(table, n + 1, row, target)

    def several(carry: Any, target: Array) -> Any:
        n, *at = carry
        move = lambda k, at: advance(n + k, at[0], at[1], target)  # noqa: E731
        return jnp.minimum(n + turns, target), *lax.fori_loop(0, turns, move, tuple(at))

    def save(carry: Any, t: Array) -> Any:
        target = clock.node_at(t)
        move = lambda c: several(c, target)  # noqa: E731
        n, packed, table = lax.while_loop(lambda c: c[0] < target, move, carry)
        number, *at = unpack(packed)
        time = [jnp.broadcast_to(t, (lanes,))]
        saved = steps.call(traces.saved, table, number, time, *at)
        return (n, packed, table), [jnp.stack(numbers, axis=-1) for numbers in saved]

    table = jnp.zeros((slots + 1, 2 * plan.record, lanes), y0.dtype)
    first = steps.call(traces.start, table, columns(y0))
    n = jnp.full((), -1, jnp.int32)
    # each trajectory has the number of its node, too: n alone would have kernels of its own
    start = (n, pack([[jnp.broadcast_to(n, (lanes,))], *first]), table)
    # the end t1 is saved too and dropped, so that only one loop of steps is compiled
    (n, packed, table), saved = lax.scan(save, start, jnp.append(ts, t1))
    number, *at = unpack(packed)
    ((status,),) = steps.call(traces.cause, table, number, *at)
    y, slope, record = (jnp.moveaxis(v[:-1], 1, 0) for v in saved)
    (reached,) = jax.tree.unflatten(jax.tree.structure(traces.lane), at).status_time
    result = Saved(y, slope, record, status, reached, number[0])
    return result if batched else jax.tree.map(lambda v: v[0], result)
