"""Kernels of whole runs: their source, generated from the steps as traced by JAX, compiled and run
by Warp on an NVIDIA GPU, or on the processor without a C compiler.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr

from fluidcc import memory
from fluidcc.arrays import jax, jnp
from fluidcc.dde.fused.emit import Emitter
from fluidcc.dde.fused.graph import Graph, Ids, Memory, Node
from fluidcc.dde.fused.lower import lower
from fluidcc.dde.fused.writer import SIMD_LANES, Writer, conversion, lane_type, prelude
from fluidcc.dde.integrate import one_of
from fluidcc.dde.steps import Clock, Ring, Saved, Stepper
from fluidcc.dde.system import Args, Shapes, System, shapes_of, size_of, structs_of

_TIME, _NODE = (jax.ShapeDtypeStruct((), jnp.dtype(kind)) for kind in ("float64", "int32"))
_CLOCK = Clock(_TIME, _TIME, _TIME)
WARP = 32
"""Threads of a graphics card that run together."""
MOST_NUMBERS = 4096
"""Most numbers of state and parameters."""
UNROLLED = {True: 2, False: 64}
"""Largest arrays that are computed number by number, by whether that is on a graphics card, where
registers are few.
"""
MOST_WRITTEN_OUT = 16
"""Most numbers of a node that are stored two by two."""


class Plan(NamedTuple):
    """The data that determine the source of a kernel: hashable.

    `lane_shapes` are those of (y0, args[0]), which each trajectory has, `shared_shapes` those of
    args[1:]. A thread runs `simd_lanes` trajectories. If `interleaved`, equal entries of the
    histories of 32 are adjacent, as suits a GPU with one trajectory per thread; else each is
    contiguous.
    """

    system: System
    args: type
    lane_shapes: Shapes
    shared_shapes: Shapes
    record: int
    slots: int
    interleaved: bool
    simd_lanes: int

    @property
    def state(self) -> jax.ShapeDtypeStruct:
        """The state of a trajectory."""
        return structs_of(self.lane_shapes)[0]

    @property
    def side_by_side(self) -> int:
        """Trajectories whose equal numbers are adjacent in memory: those of a warp or a thread."""
        return WARP if self.interleaved else self.simd_lanes

    @property
    def ring(self) -> int:
        """Length of the history of a trajectory, in numbers."""
        return self.slots * 2 * self.record


def plan(
    system: System, y0: Any, args: Args, t0: Any, *, slots: int, interleaved: bool, simd_lanes: int
) -> Plan:
    """The plan of a kernel for trajectories like that of y0 and `args`."""
    lane_shapes, shared_shapes = map(shapes_of, ((y0, args[0]), tuple(args[1:])))
    record = system.record_size(y0, t0, args)
    shapes = lane_shapes, shared_shapes
    return Plan(system, type(args), *shapes, record, slots, interleaved, simd_lanes)


class Traces(NamedTuple):
    """Methods of `Stepper` for one trajectory as jaxprs, and the shapes of the state at a node.

    Their operands are the leaves of the arguments, the clock, the history (slots, 2 U) of this
    trajectory, then their own.
    """

    start: ClosedJaxpr
    node_at: ClosedJaxpr
    advance: ClosedJaxpr
    saved: ClosedJaxpr
    cause: ClosedJaxpr
    lane: Any


def trace(plan: Plan) -> Traces:
    """Trace the methods of which a run is made."""
    params, others = structs_of(plan.lane_shapes)[1], structs_of(plan.shared_shapes)
    structs = plan.args(params, *others)
    table = jax.ShapeDtypeStruct((plan.slots, 2 * plan.record), float)

    def of(function: Callable[..., Any], *own: Any) -> tuple[ClosedJaxpr, Any]:
        def run(args: Any, clock: Clock, table: Any, *values: Any) -> Any:
            stepper = Stepper(plan.system, clock, args, plan.record)
            return function(stepper, Ring(table, 0, 1), *values)

        return jax.make_jaxpr(run, return_shape=True)(structs, _CLOCK, table, *own)

    start, lane = of(lambda stepper, ring, y0: stepper.start(ring, y0), plan.state)
    node_at, _ = of(lambda stepper, ring, t: stepper.clock.node_at(t), _TIME)
    advance, _ = of(lambda stepper, ring, n, at: stepper.advance(ring, n, at), _NODE, lane)
    saved, _ = of(lambda stepper, ring, n, t, at: stepper.saved(ring, n, t, at), _NODE, _TIME, lane)
    cause, _ = of(lambda stepper, ring, n, at: stepper.cause(ring, n, at), _NODE, lane)
    return Traces(start, node_at, advance, saved, cause, lane)


class _Kernel:
    """Emits the parts of a kernel, each traced from a method of `Stepper`."""

    def __init__(self, plan: Plan) -> None:
        count = sum(
            size_of(shape)
            for shapes in (plan.lane_shapes, plan.shared_shapes)
            for shape, _ in shapes[1]
        )
        if count > MOST_NUMBERS:
            raise ValueError(
                f"a fused kernel takes up to {MOST_NUMBERS} numbers of state and parameters, got "
                f"{count}: leave fused=True out"
            )
        self.plan, self.writer, self.graph = plan, Writer(), Graph(UNROLLED[plan.interleaved])
        self.writer.lines.extend(prelude(plan.simd_lanes, plan.ring))
        self.emitter = Emitter(self.writer, self.graph, reload=plan.interleaved)
        own, times = plan.lane_shapes[1], (((), np.dtype(float)),) * 3
        shared = (*times, *plan.shared_shapes[1])
        count = sum(size_of(shape) for shape, _ in own)
        width = plan.side_by_side
        self.writer.write(
            f"const double *own = lane_numbers.data + (long long)(lane / {width}) * {count * width}"
            f" + lane % {width};"
        )
        lane_numbers = self._given(f"from_lanes(own + ({{}}) * {width})", own)
        shared_numbers = self._given("(f64)shared_numbers.data[{}]", shared)
        t0, step, _ = shared_numbers[: len(times)]
        self.clock = lower(self.graph, jax.make_jaxpr(Clock.of)(_TIME, _TIME), [t0, step])
        self.y0, self.params = lane_numbers[0], [*lane_numbers[1:], *shared_numbers[len(times) :]]
        self.table = Memory(self._read_history, (plan.slots, 2 * plan.record))

    def _read_history(self, index: str, offset: int, row: bool) -> str:
        """The number of the history at `index` + `offset`; one of a `row` that is read at once."""
        if row and self.plan.simd_lanes > 1:
            four = self.writer.shared("Four", f"four_from_ring(ring, {index}, {offset // 4 * 4})")
            return f"{four}.of[{offset % 4}]"
        return self.writer.constant("f64", f"from_ring(ring, {index}, {offset}, stride)")

    def _given(self, pattern: str, leaves: Sequence[Any]) -> list[Ids]:
        """Numbers of leaves, which are consecutive in memory.

        On a graphics card those of the parameters are read where they are needed, which takes
        fewer registers, all others at the start.
        """
        values, first = [], 0
        for shape, dtype in leaves:
            size = size_of(shape)
            node = self.graph.add("given", dtype, size)
            convert = conversion(float, dtype).c
            self._name_numbers(node, lambda k, f=first: pattern.format(f"{f} + {k}"), convert)
            first += size
            values.append(node.ids.reshape(shape))
        return values

    def _name_numbers(self, node: Node, read: Callable[[str], str], convert: str) -> None:
        writer, kind = self.writer, lane_type(node.dtype)
        if self.plan.interleaved and node.dtype == float:
            node.detail = read
            return

        def number(k: str) -> str:
            name = writer.constant("f64", read(k))
            return convert.format(name, type=kind)

        if node.size > self.graph.unrolled:
            array, i = writer.variable(node.dtype, node.size), writer.name("k")
            with writer.block(f"for (int {i} = 0; {i} < {node.size}; ++{i})"):
                writer.write(f"{array}[{i}] = {number(i)};")
            self.emitter.bind(node, array)
        else:
            names = [writer.constant(kind, number(str(k))) for k in range(node.size)]
            self.emitter.bind(node, names)

    def add(self, jaxpr: ClosedJaxpr, *operands: Ids) -> list[Ids]:
        """Add a traced function to the graph, and return its results."""
        return lower(self.graph, jaxpr, [*self.params, *self.clock, self.table, *operands])

    def emit(self, jaxpr: ClosedJaxpr, *operands: Ids) -> list[str]:
        """Emit a traced function, and return the numbers of its results, as C."""
        results = self.add(jaxpr, *operands)
        self.emitter.compute(*results)
        types = [v.aval.dtype for v in jaxpr.jaxpr.outvars]
        return [
            self.emitter.text(number, dtype)
            for ids, dtype in zip(results, types, strict=True)
            for number in ids.ravel().tolist()
        ]

    def store_node(self, row: Ids, node: str) -> None:
        """Store the row of a node in the ring buffer of the history."""
        emitter, writer = self.emitter, self.writer
        slot = writer.constant("int", f"(({node}) & {self.plan.slots - 1}) * {row.size}")
        if row.size <= MOST_WRITTEN_OUT:
            numbers = [emitter.text(number, float) for number in row.tolist()]
            for j, two in enumerate(zip(numbers[::2], numbers[1::2], strict=True)):
                writer.write(f"to_ring(ring, {slot} + {2 * j}, stride, {', '.join(two)});")
        else:
            emitter.copy(
                row, float, lambda k, number: f"one_to_ring(ring, {slot} + {k}, stride, {number});"
            )

    def save(self, values: Ids) -> None:
        """Store numbers in the saved results."""
        size = values.size
        self.writer.write(
            f"auto *place = saved.data + ((long long)lane * times + saving) * {size};"
        )
        stride = f"(long long)times * {size}"
        self.emitter.copy(
            values, float, lambda k, number: f"store_lanes(place + {k}, {stride}, {number});"
        )


def write_source(plan: Plan) -> str:
    """C of a kernel's body, in which `lane` is the first lane of the thread, of `lanes` in all.

    Raises ValueError for an operation that has no rule.
    """
    kernel = _Kernel(plan)
    writer, emitter, graph = kernel.writer, kernel.emitter, kernel.graph
    start, node_at, advance, saved, cause, lane = trace(plan)
    node, end = (graph.add("given", dtype, 1) for dtype in (np.int32, float))
    emitter.bind(node, ["((i32)n)"])
    n, until = (given.ids.reshape(()) for given in (node, end))
    leaves = jax.tree.leaves(lane)
    variables = graph.variables(leaves)
    carry = [v.ids.reshape(leaf.shape) for v, leaf in zip(variables, leaves, strict=True)]

    base, stride = f"(long long)lane * {plan.ring}", 1
    if plan.interleaved:
        base = f"(long long)(lane / {WARP}) * {plan.ring * WARP} + lane % {WARP}"
        stride = WARP
    writer.write(f"double *ring = (double *)memory.data + {base};")
    writer.write(f"const int stride = {stride};")
    writer.write("int n = -1;")
    for variable in variables:
        emitter.declare(variable, parked=True)
    with emitter.block():
        emitter.assign(variables, kernel.add(start, kernel.y0))
    with emitter.block("for (int saving = 0; saving <= times; ++saving)"):
        final = "shared_numbers.data[2]"
        writer.write(f"const double until = saving < times ? ts.data[saving] : {final};")
        emitter.bind(end, ["((f64)until)"])
        (target,) = kernel.emit(node_at, until)
        with emitter.block(f"while (n < first_lane({target}))"):
            *new, row = kernel.add(advance, n, *carry)
            emitter.compute(*new, row)
            kernel.store_node(row, "n + 1")
            emitter.assign(variables, new)
            writer.write("++n;")
        with emitter.block("if (saving < times)"):
            results = np.concatenate([v.ravel() for v in kernel.add(saved, n, until, *carry)])
            emitter.compute(results)
            kernel.save(results)
    (status,) = kernel.emit(cause, n, *carry)
    ended = carry[[*_paths(lane)].index(".status_time")].item()
    writer.write(f"store_lanes(ended.data + 2 * lane, 2, {status});")
    writer.write("store_lanes(ended.data + 2 * lane + 1, 2, (i32)n);")
    writer.write(f"store_lanes(status_time.data + lane, 1, {emitter.text(ended, float)});")
    return str(writer)


def _paths(tree: Any) -> list[str]:
    """The path of each leaf of a PyTree."""
    return [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(tree)]


_MOST_LANES, _MOST_BYTES = 256, 1 << 28
"""Most trajectories of one launch on a processor, and most bytes for them."""
_SHARE = 0.8
"""Share of a GPU's free memory for one launch."""
_LONGEST = (1 << 31) - 1
"""Most elements of an array in Warp."""


def device() -> str:
    """The device of kernels, as named by Warp: the GPU on which JAX computes, or else ``cpu``.

    Raises ValueError if Warp does not find that GPU.
    """
    target = memory.place()
    if target.platform != "gpu":
        return "cpu"
    if not _import_threads().cards():
        raise ValueError("Uniform(fused=True): JAX computes on a graphics card that Warp lacks")
    return f"cuda:{target.local_hardware_id}"


def batch_size(history: int, saved: int, trajectories: int) -> int:
    """Number of trajectories in one launch; on a processor a multiple of SIMD_LANES if possible.

    `history` and `saved` are the numbers of each in its history and in its saved results. Raises
    TooLittleMemory if they do not fit for a single trajectory.
    """
    longest, target = max(history, saved, 1), device()
    if longest > _LONGEST:
        raise memory.TooLittleMemory(
            f"a fused kernel has up to {_LONGEST} numbers in a history and in saved results, "
            f"got {longest}: take a larger step, fewer saved times, or leave fused=True out"
        )
    size = 8 * (history + saved)
    fit = min(_MOST_LANES, _MOST_BYTES // size)
    if target != "cpu":
        fit = int(_SHARE * _import_threads().free_memory(target)) // size
    most = min(fit, _LONGEST // longest)
    if target == "cpu" and trajectories > 1 and most >= SIMD_LANES:
        return min(most, trajectories + SIMD_LANES - 1) // SIMD_LANES * SIMD_LANES
    return max(min(most, trajectories), 1)


@functools.lru_cache(maxsize=16)
def kernel(plan: Plan) -> Any:
    """The kernel of a plan, compiled at its first launch; raises ValueError without Warp."""
    return _import_threads().kernel(
        write_source(plan), simd_lanes=plan.simd_lanes, fuse_multiply_add=plan.interleaved
    )


def _import_threads() -> Any:
    """The module that needs Warp."""
    try:
        from fluidcc.dde.fused import threads
    except ImportError:
        raise ValueError(
            "Uniform(fused=True) needs the package warp-lang: pip install 'fluidcc[gpu]', or "
            "warp-lang alone without a graphics card"
        ) from None
    return threads


def integrate(
    system: System,
    y0: Array,
    t0: Any,
    t1: Any,
    step: Any,
    ts: Any,
    args: Args,
    *,
    slots: int,
    lanes: int,
    batched: bool,
) -> Saved:
    """As `uniform.integrate`, by one kernel with a thread for each trajectory, or for several.

    Each launch has `lanes` trajectories.

    Raises
    ------
    ValueError
        Without Warp, or for an operation that a kernel cannot do.
    """
    target = device()
    shared_args = tuple(args[1:])
    one_y0, one_args = one_of(y0, args, batched)
    count = y0.shape[0] if batched else 1
    simd_lanes = 1 if target != "cpu" or lanes % SIMD_LANES else SIMD_LANES
    shape = plan(
        system, one_y0, one_args, t0, slots=slots, interleaved=target != "cpu",
        simd_lanes=simd_lanes,
    )  # fmt: skip
    columns = _columns((y0, args[0]), count)
    columns = np.pad(columns, ((0, 0), (0, -count % simd_lanes)), mode="edge")
    shared = np.concatenate([np.array([[t0], [step], [t1]], float), _columns(shared_args, 1)])
    ts, sizes = np.asarray(ts, float), [y0.shape[-1], y0.shape[-1], shape.record]
    results = _import_threads().run(
        kernel(shape), columns, shared, ts, history=shape.ring, width=sum(sizes), device=target,
        simd_lanes=simd_lanes, lanes=lanes, side_by_side=shape.side_by_side,
    )  # fmt: skip
    saved, times, ended = (values[:count] for values in results)
    y, slope, records = np.split(saved, np.cumsum(sizes)[:-1], axis=-1)
    values = (y, slope, records, ended[:, 0], times, ended[:, 1])
    return Saved(*(jnp.asarray(v if batched else v[0]) for v in values))


def _columns(tree: Any, lanes: int) -> np.ndarray:
    """Leaves of a PyTree as numbers in double precision, a column for each lane: (K, lanes).

    Raises ValueError for integers that double precision cannot represent.
    """
    parts = [np.zeros((lanes, 0))]
    for leaf in map(np.asarray, jax.tree.leaves(tree)):
        if leaf.dtype.kind in "iu" and np.any(np.abs(leaf.astype(float)) > 2.0**53):
            raise ValueError("a fused kernel takes whole numbers up to 2^53: leave fused=True out")
        parts.append(leaf.astype(float).reshape(lanes, -1))
    return np.concatenate(parts, axis=1).T
