"""One trajectory on a uniform mesh: the computations within one step.

The history is a ring of rows, one for each of the latest nodes: a record's values, then step times
their slopes. The rows of one node are contiguous, one lane for each trajectory of a batch: reads
are close together in the cache, and a step writes one block. A step reads the ring before its own
write and returns its new row.

A small state is stepped component by component: in a batch each is an array over the lanes, which
vectorises.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from jax import Array, lax

from fluidcc.arrays import jax, jnp
from fluidcc.dde import hermite
from fluidcc.dde.integrate import Status, first
from fluidcc.dde.system import Args, System

MOST_READ = 256
"""Most delayed values that are interpolated one by one; more are interpolated as arrays."""
MOST_PARTS = 16
"""States up to this size are stepped component by component."""

_STAGES = ((0.5, 2.0), (0.5, 2.0), (1.0, 1.0))
"""Time of a stage, also the weight of the previous slope, and the weight of the stage's slope."""

Parts = tuple[Array, ...]


def split(y: Array) -> Parts:
    """The components of a state (n,); a large state stays one array."""
    return tuple(y) if y.size <= MOST_PARTS else (y,)


def join(parts: Parts) -> Array:
    """The state from the parts of `split`."""
    return parts[0] if parts[0].ndim else jnp.stack(parts)


@jax.custom_batching.custom_vmap
def scaled(step: Array, slope: Array) -> Parts:
    """Step times the slopes (n,), in parts; in a batch write_rows side by side, lanes last.

    They are multiplied as one array, which the compiler keeps. Otherwise it would recompute each
    part, with all its inputs, wherever it is used.
    """
    return split(step * slope)


@scaled.def_vmap
def _(size: int, batched: Any, step: Array, slope: Array) -> tuple[Parts, tuple[bool, ...]]:
    del size
    if not any(batched):  # of derivatives, in which only tangents are batched
        parts = split(step * slope)
        return parts, (False,) * len(parts)
    if batched[0]:
        axes = tuple(0 if moves else None for moves in batched)
        parts = jax.vmap(lambda a, b: split(a * b), axes)(step, slope)
        return parts, (True,) * len(parts)
    if slope.shape[1] > MOST_PARTS:
        return (step * slope,), (True,)
    parts = tuple(step * jnp.stack([slope[:, i] for i in range(slope.shape[1])]))
    return parts, (True,) * len(parts)


def get(array: Array, index: Array) -> Array:
    """Entries of an array, without clamps."""
    return array.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)


class Ring(NamedTuple):
    """The ring as one of its `lanes` trajectories sees it.

    `table` has shape (slots lanes, 2 U), with a power of two of slots.
    """

    table: Array
    lane: Any
    lanes: int

    @property
    def slots(self) -> int:
        """Number of nodes kept."""
        return self.table.shape[0] // self.lanes

    @property
    def width(self) -> int:
        """Number U of columns of the record."""
        return self.table.shape[1] // 2

    def _place(self, node: Array) -> Array:
        return (node & (self.slots - 1)) * self.lanes + self.lane

    def rows(self, node: Array) -> Array:
        """The rows (..., 2 U) of nodes of any shape."""
        return get(self.table, self._place(node))

    def numbers(self, node: Array, column: Array) -> tuple[Array, Array]:
        """Values, and step times slopes, of one column at each node."""
        at = self._place(node) * (2 * self.width) + column
        flat = self.table.reshape(-1)
        return get(flat, at), get(flat, at + self.width)


def write_rows(table: Array, node: Array, rows: Array) -> Array:
    """The table with the rows (lanes, 2 U) of a new node in place of the oldest one's."""
    lanes = rows.shape[0]
    at = jnp.bitwise_and(node, table.shape[0] // lanes - 1) * lanes
    return lax.dynamic_update_slice(table, rows, (at, jnp.zeros_like(at)))


class Saved(NamedTuple):
    """Result of a run on a uniform mesh: values at the saved times, and how it ended."""

    y: Array
    slope: Array
    record: Array
    status: Array
    status_time: Array
    steps: Array


class Lane(NamedTuple):
    """State of one trajectory at the latest node."""

    y: Parts  # state at the latest node, in parts
    k: Parts  # step times its slope
    before: tuple[Array, Array] | None  # both at the node before, if the ring lacks them
    mode: Array
    guards: Array  # at the latest node
    status: Array
    status_time: Array


def _cubic(weight: Sequence[Array], *ends: Array) -> Array:
    """Values between two nodes from their values and slopes, by the weights of each."""
    terms = [w * end for w, end in zip(weight, ends, strict=True)]
    return terms[0] + terms[1] + terms[2] + terms[3]


def _range(lags: Array, shortest: Any, longest: Any) -> tuple[Array, Array]:
    """The range of lags, extended from `shortest` and `longest` of those before."""
    return (
        jnp.minimum(shortest, jnp.min(lags, initial=jnp.inf)),
        jnp.maximum(longest, jnp.max(lags, initial=-jnp.inf)),
    )


class Clock(NamedTuple):
    """Times of the nodes: the first one, the step, and one over the step."""

    t0: Any
    step: Any
    per_step: Any

    @classmethod
    def of(cls, t0: Any, step: Any) -> "Clock":
        """The clock of a step."""
        return cls(t0, step, 1.0 / step)

    def node_at(self, until: Array) -> Array:
        """Number of the first node that is not before a time."""
        return jnp.ceil((until - self.t0) / self.step - 1e-9).astype(jnp.int32)


class Stepper:
    """One trajectory on one uniform mesh: the functions that a step is made of.

    The loop of its stages has `unroll` of them in a turn.
    """

    def __init__(
        self, system: System, clock: Clock, args: Args, width: int, unroll: int = 1
    ) -> None:
        self.unroll = unroll
        self.system, self.clock, self.args, self.width = system, clock, args, width
        self.t0, self.step, self.per_step = clock
        self.lag_of = jnp.array(system.lag_of, jnp.int32)
        self.column_of = jnp.array(system.column_of, jnp.int32)
        self.whole_rows = system.reads_rows(width)
        self.by_numbers = self.whole_rows and len(system.lag_of) <= MOST_READ
        kept = [column in system.held for column in range(width)]
        self.held = jnp.array(kept) if any(kept) else None
        self.values_only = jnp.array([1.0] * width + [0.0] * width)

    def time(self, n: Array, c: float) -> Array:
        """Time [unit of t] of the stage at the fraction `c` of the step after node n."""
        return self.t0 + (n.astype(float) + c) * self.step

    def _past(self, time: Array, column: Array) -> Array:
        """Record before t0 at one time."""
        return self.system.history(time[None], column[None], self.args)[0]

    def stepwise(
        self, value: Array, back: Array, older: Array, newer: Array, column: Array
    ) -> Array:
        """`value`, but zero-order hold in held columns: `older`, or `newer` at the node itself."""
        if self.held is None:
            return value
        step = jnp.where(back < 1e-9, newer, older)
        return jnp.where(self.held[column], step, value)

    def look(self, ring: Ring, n: Array, time: Array, column: Any) -> Array:
        """Value of one column of the record at an earlier time."""
        column = jnp.asarray(column, jnp.int32)
        back = jnp.maximum(self.time(n, 0.0) - time, 0.0) / self.step
        whole = back.astype(jnp.int32)
        older, newer = ring.numbers(n - whole - 1, column), ring.numbers(n - whole, column)
        value = hermite.interpolate(1.0 - (back - whole.astype(back.dtype)), *older, *newer)
        value = self.stepwise(value, back - jnp.floor(back), older[0], newer[0], column)
        return jnp.where(time < self.t0, self._past(jnp.minimum(time, self.t0), column), value)

    def delayed(self, ring: Ring, n: Array, c: Array, y: Array) -> tuple[Array, Array]:
        """Values (P,) that are read at the stage (n + c, y), and the lags in steps (M,)."""
        t = self.time(n, c)  # pyright: ignore[reportArgumentType]
        look = lambda s, j, _: self.look(ring, n, s, j)  # noqa: E731
        lags = self.system.lags(t, y, self.args, look)
        lag_steps = lags * self.per_step
        if not self.system.columns:
            return jnp.zeros((0,), y.dtype), lag_steps
        back = jnp.maximum(lag_steps - c, 0.0)  # relative to node n: no absolute time enters
        times = jnp.minimum(self._each(t - lags), self.t0)
        before = self.system.history(times, self.column_of, self.args)
        early = n.astype(lag_steps.dtype) + c - lag_steps < 0.0
        if self.by_numbers:
            return self._rows_by_numbers(ring, n, back, early, before), lag_steps
        z = self._rows(ring, n, back) if self.whole_rows else self._numbers(ring, n, back)
        return jnp.where(self._each(early), before, z), lag_steps

    def _each(self, values: Array) -> Array:
        """Values of lags (M,) repeated for each number that they read (P,)."""
        return values[self.lag_of]

    def _rows_by_numbers(
        self, ring: Ring, n: Array, back: Array, early: Array, before: Array
    ) -> Array:
        """Records (P,) at each lag `back` (M,); values that the field ignores are not computed."""
        u, z = self.width, []
        for i, steps in enumerate(back):
            whole = steps.astype(jnp.int32)
            weight = hermite.weights(1.0 - (steps - whole.astype(steps.dtype)))
            older, newer = ring.rows(n - whole - 1), ring.rows(n - whole)
            for j in range(u):
                value = _cubic(weight, older[j], older[u + j], newer[j], newer[u + j])
                z.append(jnp.where(early[i], before[i * u + j], value))
        return jnp.stack(z)

    def _rows(self, ring: Ring, n: Array, back: Array) -> Array:
        """Records (P,) at each lag `back` (M,)."""
        u, whole = self.width, back.astype(jnp.int32)
        weight = [w[:, None] for w in hermite.weights(1.0 - (back - whole.astype(back.dtype)))]
        older, newer = ring.rows(n - whole - 1), ring.rows(n - whole)
        return _cubic(weight, older[:, :u], older[:, u:], newer[:, :u], newer[:, u:]).reshape(-1)

    def _numbers(self, ring: Ring, n: Array, back: Array) -> Array:
        """One column each (P,) at each lag `back` (M,)."""
        whole = back.astype(jnp.int32)
        weight = hermite.weights(1.0 - (back - whole.astype(back.dtype)))
        whole = self._each(whole)
        older = ring.numbers(n - whole - 1, self.column_of)
        newer = ring.numbers(n - whole, self.column_of)
        z = jnp.zeros(())
        for w, end in zip(weight, (*older, *newer), strict=True):
            z = z + self._each(w) * end
        back = self._each(back)
        return self.stepwise(z, back - jnp.floor(back), older[0], newer[0], self.column_of)

    def limited(self, y: Array, mode: Array) -> Array:
        """A state inside its bounds."""
        return y if self.system.limit is None else self.system.limit(y, mode, self.args)

    def slope(self, n: Array, c: Any, y: Array, z: Array, mode: Array) -> Parts:
        """Step times dy/dt at a stage."""
        return scaled(self.step, self.system.slope(self.time(n, c), y, z, self.args, mode))

    def rises(self, ring: Ring, n: Array, at: Lane) -> tuple[list[Array], Array, Array]:
        """Increment of the classical Runge-Kutta step, in parts, and its shortest and longest lag
        in steps. Zero when it arrives at the first node.

        The stages are a loop, which compiles several times faster than copies of the field.
        """

        def stage(state: tuple[Any, ...], tableau: Array) -> tuple[tuple[Any, ...], None]:
            k, total, shortest, longest = state
            c, weight = tableau
            y = join(tuple(a + c * b for a, b in zip(at.y, k, strict=True)))
            y = self.limited(y, at.mode)
            z, lags = self.delayed(ring, n, c, y)
            k = self.slope(n, c, y, z, at.mode)
            total = tuple(a + weight * b for a, b in zip(total, k, strict=True))
            return (k, total, *_range(lags, shortest, longest)), None

        infinite = jnp.asarray(jnp.inf)
        start = (at.k, at.k, infinite, -infinite)
        end, _ = lax.scan(stage, start, jnp.array(_STAGES), unroll=self.unroll)
        _, total, shortest, longest = jax.tree.map(
            lambda nothing, some: jnp.where(n < 0, nothing, some), start, end
        )
        return [part * (1.0 / 6.0) for part in total], shortest, longest

    def remembered(self, ring: Ring, n: Array, c: float, y: Array, k: Array, mode: Array) -> Array:
        """Record at the stage (n + c, y) with step times its slope: a row (2 U,)."""
        record = self.system.record
        if record is None:
            return jnp.concatenate([y, k])

        def along(c: Array, y: Array) -> Array:
            z, _ = self.delayed(ring, n, c, y)
            t = self.time(n, c)  # pyright: ignore[reportArgumentType]
            return record(t, y, z, self.args, mode)

        at = (jnp.asarray(c, y.dtype), y)
        return jnp.concatenate(jax.jvp(along, at, (jnp.ones((), y.dtype), k)))

    def switched(self, ring: Ring, n: Array, at: Lane, y: Array) -> tuple[Array, Array]:
        """State and mode at the end of the step after its events.

        A guard that would reach zero within a millionth of a step is taken to be there: events
        at mesh points must not depend on rounding.
        """
        events, mode = self.system.events, at.mode
        if events is None:
            return y, mode
        z, _ = self.delayed(ring, n, jnp.ones((), y.dtype), y)
        t = self.time(n, 1.0)
        guards = events.guards(t, y, z, self.args, mode)
        hit = (guards < 1e-6 * jnp.maximum(at.guards - guards, 0.0)) & (n >= 0)
        new_mode, moved = events.switch(t, y, z, self.args, mode, hit)
        some = jnp.any(hit)
        return jnp.where(some, moved, y), jnp.where(some, new_mode.astype(mode.dtype), mode)

    def judge(
        self, ring: Ring, n: Array, status: Array, row: Array, k: Array, shortest: Any, longest: Any
    ) -> Array:
        """Status after a step whose stages had lags in this range, in steps."""
        finite = jnp.all(jnp.isfinite(row)) & jnp.all(jnp.isfinite(k))
        status = first(status, ~finite, Status.nonfinite)
        status = first(status, shortest < 0.0, Status.lag_negative)
        status = first(status, shortest < 1.0 - 1e-9, Status.lag_below_step)
        reach = jnp.minimum(longest, (n + 1).astype(longest.dtype))
        return first(status, reach > ring.slots - 2.0, Status.lag_exceeds_ring)

    def advance(self, ring: Ring, n: Array, at: Lane) -> tuple[Lane, Array]:
        """One Runge-Kutta step, and its row; a trajectory that fails stays where it was.

        From node -1, before the first one, it arrives at t0 unchanged.
        """
        mode, one = at.mode, jnp.ones(())
        rises, *reach = self.rises(ring, n, at)
        new = tuple(a + b for a, b in zip(at.y, rises, strict=True))
        new = self.limited(join(new), mode)
        new, new_mode = self.switched(ring, n, at, new)
        z, lags = self.delayed(ring, n, one, new)
        guards = at.guards
        if self.system.events is not None:
            guards = self.system.events.guards(self.time(n, 1.0), new, z, self.args, new_mode)
        parts = self.slope(n, one, new, z, new_mode)
        k = join(parts)

        row = self.remembered(ring, n, 1.0, new, k, new_mode)
        status = self.judge(ring, n, at.status, row, k, *_range(lags, *reach))
        ok = status == Status.ok
        y = tuple(jnp.where(ok, a, b) for a, b in zip(split(new), at.y, strict=True))
        before = None
        k = tuple(jnp.where(ok, a, 0.0) for a in parts)
        if self.system.record is None:
            row = jnp.concatenate([join(y), join(k)])
        else:
            row = jnp.where(ok, row, ring.rows(n) * self.values_only)
            before = (join(at.y), join(at.k))
        lane = Lane(
            y=y,
            k=k,
            before=before,
            mode=jnp.where(ok, new_mode, mode),
            guards=guards,
            status=status,
            status_time=jnp.where(ok, self.time(n, 1.0), at.status_time),
        )
        return lane, row

    def start(self, ring: Ring, y0: Array) -> Lane:
        """Before the first node, with an empty ring: the state at t0."""
        n, one = jnp.full((), -1, jnp.int32), jnp.ones(())
        events, mode, guards = self.system.events, jnp.zeros((0,), jnp.int32), y0[:0]
        if events is not None:
            z, _ = self.delayed(ring, n, one, y0)
            mode = events.initial(self.t0, y0, z, self.args).astype(jnp.int32)
            form = jax.eval_shape(events.guards, self.t0, y0, z, self.args, mode)
            guards = jnp.zeros(form.shape, form.dtype)
        still = jnp.zeros_like(y0)
        return Lane(
            y=split(y0),
            k=split(still),
            before=None if self.system.record is None else (y0, still),
            mode=mode,
            guards=guards,
            status=jnp.int32(Status.ok),
            status_time=self.t0,
        )

    def around(self, ring: Ring, n: Array, at: Lane) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Values and slopes of state and record at the last two nodes, for saving in between."""
        u = self.width
        older, newer = ring.rows(jnp.maximum(n - 1, 0)), ring.rows(n)
        record = (older[:u], older[u:], newer[:u], newer[u:])
        if at.before is None:
            return record, record
        return (*at.before, join(at.y), join(at.k)), record

    def saved(self, ring: Ring, n: Array, t: Array, at: Lane) -> tuple[Array, Array, Array]:
        """State, its slope and record at a time within the last step."""
        theta = (t - (self.t0 + (n.astype(float) - 1.0) * self.step)) / self.step
        ends, record = self.around(ring, n, at)
        y, slope = jax.jvp(
            lambda s: hermite.interpolate(s, *ends), (theta,), (jnp.ones_like(theta),)
        )
        return y, slope * self.per_step, hermite.interpolate(theta, *record)

    def cause(self, ring: Ring, n: Array, at: Lane) -> Array:
        """Final status: for values that are not finite, whether the history ends too early."""
        lost = jnp.zeros((), bool)
        if self.system.columns:
            look = lambda s, j, _: self.look(ring, n, s, j)  # noqa: E731
            lags = self.system.lags(at.status_time, join(at.y), self.args, look)
            times = self._each(at.status_time - lags)
            past = self.system.history(jnp.minimum(times, self.t0), self.column_of, self.args)
            lost = jnp.any((times < self.t0) & ~jnp.isfinite(past))
        code = jnp.int32(Status.history_out_of_range)
        return jnp.where((at.status == Status.nonfinite) & lost, code, at.status)
