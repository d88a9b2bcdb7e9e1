"""The source of a kernel: whole runs, generated from the steps as traced by JAX."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.extend.core import ClosedJaxpr

from fluidcc.arrays import jax, jnp
from fluidcc.dde.fused.dialect import prelude
from fluidcc.dde.fused.elementwise import conversion
from fluidcc.dde.fused.lower import Lowering, flatten, unflatten
from fluidcc.dde.fused.writer import Elements, Memory, Writer, to_c
from fluidcc.dde.steps import Ring, Stepper
from fluidcc.dde.system import Shapes, System, size_of, structs_of

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
        self.writer.lines.extend(prelude(plan.simd_lanes, plan.state.dtype, plan.ring))
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
        return self.writer.constant("state", f"from_ring(ring, {index}, {offset}, stride)")

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
        plan, dtype = self.plan, self.plan.state.dtype

        def run(args: Any, t0: Any, step: Any, table: Any, *values: Any) -> Any:
            stepper = Stepper(plan.system, t0, step, args, plan.record, dtype)
            return function(stepper, Ring(table, 0, 1), *values)

        table = jax.ShapeDtypeStruct(self.table.shape, dtype)
        trace = jax.make_jaxpr(run, return_shape=True)
        return trace(self.structs, _TIME, _TIME, table, *structs)

    def emit(self, jaxpr: ClosedJaxpr, *operands: Elements) -> list[Elements]:
        """Emit a traced function, and return its results."""
        return self.lowering.lower(jaxpr, [*self.params, *self.clock[:2], self.table, *operands])

    def store_node(self, row: Elements, node: str) -> None:
        """Store the row of a node in the ring buffer of the history."""
        slot = f"(({node}) & {self.plan.slots - 1})"
        numbers = [to_c(element, self.plan.state.dtype) for element in row]
        for j, two in enumerate(zip(numbers[::2], numbers[1::2], strict=True)):
            index = f"{slot} * {row.size} + {2 * j}"
            self.writer.write(f"to_ring(ring, {index}, stride, {', '.join(two)});")

    def save(self, values: Elements) -> None:
        """Store numbers in the saved results."""
        size, to_float = values.size, conversion(self.plan.state.dtype, float)
        self.writer.write(
            f"auto *place = saved.data + ((long long)lane * times + saving) * {size};"
        )
        for i, element in enumerate(values):
            number = self.lowering.apply(to_float, [element], [self.plan.state.dtype], float)
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
    writer.write(f"number *ring = (number *)memory.data + {base};")
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
