"""The source of a kernel: whole runs, from what JAX traces of their steps."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr

from fluidcc.dde.fused.dialect import head
from fluidcc.dde.fused.elementwise import converted
from fluidcc.dde.fused.lower import Lowering, flat, shaped
from fluidcc.dde.fused.writer import Elements, Memory, Writer, text
from fluidcc.dde.steps import Ring, Stepper
from fluidcc.dde.system import Shapes, System, size_of, structs_of

_TIME, _NODE = (jax.ShapeDtypeStruct((), jnp.dtype(kind)) for kind in ("float64", "int32"))
MOST_NUMBERS = 4096
"""Up to so many parameters each have a name of their own."""


class Plan(NamedTuple):
    """What the source of a kernel follows from: hashable.

    `own` and `shared` are the shapes of (y0, args[0]), of which each trajectory has its own, and
    of args[1:]. A thread runs so many trajectories `abreast`. `side_by_side` tells that the
    histories of all threads lie interleaved, as suits an accelerator with one trajectory in each,
    else one after the other.
    """

    system: System
    args: type
    own: Shapes
    shared: Shapes
    record: int
    slots: int
    side_by_side: bool
    abreast: int

    @property
    def state(self) -> jax.ShapeDtypeStruct:
        """The state of a trajectory."""
        return structs_of(self.own)[0]

    @property
    def ring(self) -> int:
        """How many numbers the history of a trajectory has."""
        return self.slots * 2 * self.record


class _Kernel:
    """Writes the parts of a kernel, each traced from a method of `Stepper`."""

    def __init__(self, plan: Plan) -> None:
        count = sum(size_of(shape) for shapes in (plan.own, plan.shared) for shape, _ in shapes[1])
        if count > MOST_NUMBERS:
            raise ValueError(
                f"a fused kernel takes up to {MOST_NUMBERS} numbers of state and parameters, got "
                f"{count}: leave fused=True out"
            )
        self.plan, self.writer = plan, Writer()
        self.to = Lowering(self.writer)
        self.writer.lines.extend(head(plan.abreast, plan.state.dtype, plan.ring))
        clock = (((), np.dtype(float)),) * 3
        own = self._loaded("from_own(own.data + (long long){} * lanes + lane)", plan.own[1])
        shared = self._loaded("(f64)shared.data[{}]", (*clock, *plan.shared[1]))
        self.clock = shared[:3]
        self.y0, self.params = own[0], [*own[1:], *shared[3:]]
        first, rest = structs_of(plan.own)[1], structs_of(plan.shared)
        self.structs = plan.args(first, *rest)
        self.table = Memory(self._kept, (plan.slots, 2 * plan.record))

    def _kept(self, index: str, more: int, row: bool) -> str:
        """A number of the history, `more` places after an index; as one of a `row` of them."""
        if row and self.plan.abreast > 1:
            four = self.writer.let("Four", f"four_from_ring(ring, {index}, {more // 4 * 4})")
            return f"{four}.of[{more % 4}]"
        return self.writer.let("state", f"from_ring(ring, {index}, {more}, stride)")

    def _loaded(self, place: str, leaves: Sequence[Any]) -> list[Elements]:
        """Parameters read from memory, one after the other."""
        values, first = [], 0
        for shape, dtype in leaves:
            value = np.empty(size_of(shape), object)
            for k in range(value.size):
                number = self.writer.let("f64", place.format(first + k))
                value[k] = self.to.one(converted(float, dtype), [number], [float], dtype)
            first += value.size
            values.append(value.reshape(shape))
        return values

    def trace(self, function: Callable[..., Any], *structs: Any) -> tuple[ClosedJaxpr, Any]:
        """`function(problem, ring, *values)` as JAX sees it, and the shapes of its results."""
        plan, dtype = self.plan, self.plan.state.dtype

        def run(args: Any, t0: Any, step: Any, table: Any, *values: Any) -> Any:
            problem = Stepper(plan.system, t0, step, args, plan.record, dtype)
            return function(problem, Ring(table, 0, 1), *values)

        table = jax.ShapeDtypeStruct(self.table.shape, dtype)
        trace = jax.make_jaxpr(run, return_shape=True)
        return trace(self.structs, _TIME, _TIME, table, *structs)

    def write(self, jaxpr: ClosedJaxpr, *operands: Elements) -> list[Elements]:
        """What has been traced, written down: its results."""
        return self.to.closed(jaxpr, [*self.params, *self.clock[:2], self.table, *operands])

    def enter(self, row: Elements, node: str) -> None:
        """Put the row of a node into the ring."""
        slot = f"(({node}) & {self.plan.slots - 1})"
        numbers = [text(element, self.plan.state.dtype) for element in row]
        for j, two in enumerate(zip(numbers[::2], numbers[1::2], strict=True)):
            place = f"{slot} * {row.size} + {2 * j}"
            self.writer.write(f"to_ring(ring, {place}, stride, {', '.join(two)});")

    def save(self, values: Elements) -> None:
        """Put numbers among what is saved."""
        size, to_float = values.size, converted(self.plan.state.dtype, float)
        self.writer.write(
            f"auto *place = saved.data + ((long long)lane * times + saving) * {size};"
        )
        for i, element in enumerate(values):
            number = self.to.one(to_float, [element], [self.plan.state.dtype], float)
            self.writer.write(f"to_each(place + {i}, (long long)times * {size}, {number});")


def source(plan: Plan) -> str:
    """C of a kernel's body: in it stand the first `lane` of `lanes`, `times` saved, and the arrays.

    Raises ValueError for an operation that has no rule.
    """
    kernel = _Kernel(plan)
    writer, n, until = kernel.writer, _scalar("((i32)n)"), _scalar("((f64)until)")
    start, lane = kernel.trace(lambda problem, ring, y0: problem.start(ring, y0), plan.state)
    place, _ = kernel.trace(lambda problem, ring, t: problem.node_at(t), _TIME)
    advance, _ = kernel.trace(
        lambda problem, ring, n, at: problem.advance(ring, n, at), _NODE, lane
    )
    saved, _ = kernel.trace(
        lambda problem, ring, n, t, at: problem.saved(ring, n, t, at), _NODE, _TIME, lane
    )
    cause, _ = kernel.trace(lambda problem, ring, n, at: problem.cause(ring, n, at), _NODE, lane)
    types = [leaf.dtype for leaf in jax.tree.leaves(lane) for _ in range(leaf.size)]
    names = writer.variables(types)
    at = shaped(names, jax.tree.leaves(lane))

    base, stride = f"(long long)lane * {plan.ring}", "1"
    if plan.side_by_side:
        base, stride = "lane", "lanes"
    writer.write(f"number *ring = (number *)memory.data + {base};")
    writer.write(f"const long long stride = {stride};")
    writer.write("int n = -1;")
    with writer.block():
        writer.assign(names, flat(kernel.write(start, kernel.y0)), types)
    with writer.block("for (int saving = 0; saving <= times; ++saving)"):
        writer.write("const double until = saving < times ? ts.data[saving] : shared.data[2];")
        (target,) = kernel.write(place, until)
        with writer.block(f"while (n < first({text(target.item(), np.int32)}))"):
            *new, row = kernel.write(advance, n, *at)
            kernel.enter(row, "n + 1")
            writer.assign(names, flat(new), types)
            writer.write("++n;")
        with writer.block("if (saving < times)"):
            kernel.save(np.concatenate(kernel.write(saved, n, until, *at)))
    (status,) = kernel.write(cause, n, *at)
    ended = at[[*_paths(lane)].index(".status_time")]
    writer.write(f"to_each(ended.data + 2 * lane, 2, {text(status.item(), np.int32)});")
    writer.write("to_each(ended.data + 2 * lane + 1, 2, (i32)n);")
    writer.write(f"to_each(status_time.data + lane, 1, {text(ended.item(), float)});")
    return str(writer)


def _scalar(name: str) -> Elements:
    return np.array(name, object)


def _paths(tree: Any) -> list[str]:
    """Where each leaf of a PyTree is."""
    return [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(tree)]
