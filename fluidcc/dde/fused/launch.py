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
from fluidcc.dde.fused.lower import Lowering, flatten, unflatten
from fluidcc.dde.fused.writer import SIMD_LANES, Elements, Memory, Writer, conversion, prelude, to_c
from fluidcc.dde.integrate import one_of
from fluidcc.dde.steps import Ring, Saved, Stepper
from fluidcc.dde.system import Args, Shapes, System, shapes_of, size_of, structs_of

_TIME, _NODE = (jax.ShapeDtypeStruct((), jnp.dtype(kind)) for kind in ("float64", "int32"))
MOST_NUMBERS = 4096
"""Most numbers of state and parameters, as each has a name in the source."""


class Plan(NamedTuple):
    """The data that determine the source of a kernel: hashable.

    `lane_shapes` are those of (y0, args[0]), which each trajectory has, `shared_shapes` those of
    args[1:]. A thread runs `simd_lanes` trajectories. If `interleaved`, equal entries of all
    histories are adjacent, as suits a GPU with one trajectory per thread; else each is contiguous.
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
        self.plan, self.writer = plan, Writer()
        self.lowering = Lowering(self.writer)
        self.writer.lines.extend(prelude(plan.simd_lanes, plan.ring))
        clock = (((), np.dtype(float)),) * 3
        lane_numbers = self._load(
            "from_lanes(lane_numbers.data + (long long){} * lanes + lane)", plan.lane_shapes[1]
        )
        shared_numbers = self._load(
            "(f64)shared_numbers.data[{}]", (*clock, *plan.shared_shapes[1])
        )
        self.clock = shared_numbers[:3]
        self.y0, self.params = lane_numbers[0], [*lane_numbers[1:], *shared_numbers[3:]]
        params, others = structs_of(plan.lane_shapes)[1], structs_of(plan.shared_shapes)
        self.structs = plan.args(params, *others)
        self.table = Memory(self._read_history, (plan.slots, 2 * plan.record))

    def _read_history(self, index: str, offset: int, row: bool) -> str:
        """The number of the history at `index` + `offset`; one of a `row` that is read at once."""
        if row and self.plan.simd_lanes > 1:
            four = self.writer.constant("Four", f"four_from_ring(ring, {index}, {offset // 4 * 4})")
            return f"{four}.of[{offset % 4}]"
        return self.writer.constant("f64", f"from_ring(ring, {index}, {offset}, stride)")

    def _load(self, pattern: str, leaves: Sequence[Any]) -> list[Elements]:
        """Emit reads of the numbers of leaves, which are consecutive in memory."""
        values, first = [], 0
        for shape, dtype in leaves:
            value = np.empty(size_of(shape), object)
            for k in range(value.size):
                number = self.writer.constant("f64", pattern.format(first + k))
                value[k] = self.lowering.apply(conversion(float, dtype), [number], [float], dtype)
            first += value.size
            values.append(value.reshape(shape))
        return values

    def trace(self, function: Callable[..., Any], *structs: Any) -> tuple[ClosedJaxpr, Any]:
        """The jaxpr of `function(stepper, ring, *values)`, and the shapes of its results."""
        plan = self.plan

        def run(args: Any, t0: Any, step: Any, table: Any, *values: Any) -> Any:
            stepper = Stepper(plan.system, t0, step, args, plan.record)
            return function(stepper, Ring(table, 0, 1), *values)

        table = jax.ShapeDtypeStruct(self.table.shape, float)
        trace = jax.make_jaxpr(run, return_shape=True)
        return trace(self.structs, _TIME, _TIME, table, *structs)

    def emit(self, jaxpr: ClosedJaxpr, *operands: Elements) -> list[Elements]:
        """Emit a traced function, and return its results."""
        return self.lowering.lower(jaxpr, [*self.params, *self.clock[:2], self.table, *operands])

    def store_node(self, row: Elements, node: str) -> None:
        """Store the row of a node in the ring buffer of the history."""
        slot = f"(({node}) & {self.plan.slots - 1})"
        numbers = [to_c(element, float) for element in row]
        for j, two in enumerate(zip(numbers[::2], numbers[1::2], strict=True)):
            index = f"{slot} * {row.size} + {2 * j}"
            self.writer.write(f"to_ring(ring, {index}, stride, {', '.join(two)});")

    def save(self, values: Elements) -> None:
        """Store numbers in the saved results."""
        size = values.size
        self.writer.write(
            f"auto *place = saved.data + ((long long)lane * times + saving) * {size};"
        )
        for i, element in enumerate(values):
            number = to_c(element, float)
            self.writer.write(f"store_lanes(place + {i}, (long long)times * {size}, {number});")


def write_source(plan: Plan) -> str:
    """C of a kernel's body, in which `lane` is the first lane of the thread, of `lanes` in all.

    Raises ValueError for an operation that has no rule.
    """
    kernel = _Kernel(plan)
    writer, n, until = kernel.writer, _scalar("((i32)n)"), _scalar("((f64)until)")
    start, lane = kernel.trace(lambda stepper, ring, y0: stepper.start(ring, y0), plan.state)
    node_at, _ = kernel.trace(lambda stepper, ring, t: stepper.node_at(t), _TIME)
    advance, _ = kernel.trace(
        lambda stepper, ring, n, carry: stepper.advance(ring, n, carry), _NODE, lane
    )
    saved, _ = kernel.trace(
        lambda stepper, ring, n, t, carry: stepper.saved(ring, n, t, carry), _NODE, _TIME, lane
    )
    cause, _ = kernel.trace(
        lambda stepper, ring, n, carry: stepper.cause(ring, n, carry), _NODE, lane
    )
    types = [leaf.dtype for leaf in jax.tree.leaves(lane) for _ in range(leaf.size)]
    names = writer.variables(types)
    carry = unflatten(names, jax.tree.leaves(lane))

    base, stride = f"(long long)lane * {plan.ring}", "1"
    if plan.interleaved:
        base, stride = "lane", "lanes"
    writer.write(f"double *ring = (double *)memory.data + {base};")
    writer.write(f"const long long stride = {stride};")
    writer.write("int n = -1;")
    with writer.block():
        writer.assign(names, flatten(kernel.emit(start, kernel.y0)), types)
    with writer.block("for (int saving = 0; saving <= times; ++saving)"):
        end = "shared_numbers.data[2]"
        writer.write(f"const double until = saving < times ? ts.data[saving] : {end};")
        (target,) = kernel.emit(node_at, until)
        with writer.block(f"while (n < first_lane({to_c(target.item(), np.int32)}))"):
            *new, row = kernel.emit(advance, n, *carry)
            kernel.store_node(row, "n + 1")
            writer.assign(names, flatten(new), types)
            writer.write("++n;")
        with writer.block("if (saving < times)"):
            kernel.save(np.concatenate(kernel.emit(saved, n, until, *carry)))
    (status,) = kernel.emit(cause, n, *carry)
    ended = carry[[*_paths(lane)].index(".status_time")]
    writer.write(f"store_lanes(ended.data + 2 * lane, 2, {to_c(status.item(), np.int32)});")
    writer.write("store_lanes(ended.data + 2 * lane + 1, 2, (i32)n);")
    writer.write(f"store_lanes(status_time.data + lane, 1, {to_c(ended.item(), float)});")
    return str(writer)


def _scalar(name: str) -> Elements:
    return np.array(name, object)


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
        simd_lanes=simd_lanes, lanes=lanes,
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
