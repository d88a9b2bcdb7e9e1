"""Steps of one length with the history in a ring: compiled once, fast in batches.

Trajectories of a batch are stepped together. A step is written for one of them and mapped over all
with the ring read-only; its one write comes after all reads, so that XLA updates it in place.
"""

import contextlib
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jax import Array, lax
from jax.sharding import Mesh

from fluidcc import memory
from fluidcc.arrays import jax, jnp
from fluidcc.dde import hermite
from fluidcc.dde.fused import launch, loop
from fluidcc.dde.integrate import (
    AbstractMesh,
    FlatSolution,
    Problem,
    Status,
    check_positive,
    divide_batch,
    in_one_memory,
    known,
    number,
    on_each_device,
    one_of,
    over_blocks,
    power_of_two,
)
from fluidcc.dde.steps import Clock, Lane, Ring, Saved, Stepper, write_rows
from fluidcc.dde.system import Args, System
from fluidcc.executables import compile_once

_SLOTS = 1 << 10  # of a ring if the lags are unknown, and the most of a short one
_MOST_LANES = 64  # most trajectories that a processor steps together
_CACHED = 1 << 19  # bytes of cache for their histories
_TURNS = 16
_UNROLLED = 3  # stages in one turn of their loop on an accelerator: fewer, larger kernels
_LONGEST = (1 << 31) - 1  # indices of the ring are counted in 32 bits
_ADVICE = (
    "a larger step, a smaller buffer (it bounds the longest round trip), fewer saved times, or "
    "fewer trajectories at once"
)
_COPIES = 2  # of the history: that of the run, and the empty one at its start
_SHARE = 0.5  # of an accelerator's free memory, for histories; the rest is for the step


class Uniform(AbstractMesh):
    """Classical Runge-Kutta steps of one length, history in a ring: fast, in batches above all.

    Steps do not land on breaking points, so the error falls as the square of the step on smooth
    models, and as its first power where modes switch. Lags must stay above the step.

    Parameters
    ----------
    step
        Length of a step, in the unit of t. By default, for networks only: a 32nd of the least
        round trip, but at most 0.9 of the shortest delay and the memory of the averages of queue
        laws; if laws tick, the longest step below that which divides the times between ticks.
    slots
        Nodes kept in the ring, rounded up to a power of two: at least longest lag / step + 3; more
        than 1024 only if the run fills them. By default twice what the lags at t0 need, and
        four times as many until that suffices, if values are concrete; 1024 in traced code.
        A run that would not fit in memory is refused before anything is allocated.
    fused
        Run one kernel, generated from the equation and compiled by Warp (extra ``gpu``): on the
        card if JAX computes on one, each trajectory a thread, else on the processor, where no
        compiler is needed, eight of a batch in SIMD lanes. The same steps as without it, to
        rounding. Not in traced code.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.solve_dde(
    ...     lambda t, y, z, p: -z[0], lambda t, p: 1.0, 0.0, 2.0, lags=[lambda t, y, p: 1.0],
    ...     ts=[2.0], mesh=fc.Uniform(0.125),
    ... )
    >>> found.y.round(6).tolist()
    [-0.5]
    """

    step: Any = None
    slots: int | None = eqx.field(default=None, static=True)
    fused: bool = eqx.field(default=False, static=True, kw_only=True)

    def __check_init__(self) -> None:
        """Raise ValueError for a step or a number of slots that is not positive."""
        check_positive("Uniform(step)", 1 if self.step is None else self.step)
        check_positive("Uniform(slots)", 1 if self.slots is None else self.slots)

    def solve(self, problem: Problem) -> FlatSolution:
        """Integrate; the ring grows until it suffices, if values are concrete."""
        system, y0, t0, t1, args, ts, _, batched, devices = problem
        if self.step is None:
            raise ValueError(
                "Uniform(step): expected the length of a step, which networks alone have"
            )
        step, every = number(self.step), ts is None
        concrete = known(step, t0, t1, args, y0, ts)
        if self.fused and not concrete:
            raise ValueError("Uniform(fused=True) works outside jit, vmap and derivatives")
        one_y0, one_args = problem.one()
        width = system.record_size(one_y0, t0, one_args)
        if ts is not None:
            times = ts.size
        elif known(step, t0, t1):
            times = int(np.ceil(float((t1 - t0) / step) - 1e-9)) + 1
        else:
            raise ValueError("Uniform needs ts in traced code whose step, t0 or t1 is traced")
        slots = self._first_slots(problem)
        while True:
            lanes = self._side_by_side(problem, slots, width, times)
            if ts is None:
                ts = jnp.minimum(t0 + step * jnp.arange(times, dtype=float), t1)
            options: dict[str, Any] = {"slots": slots, "lanes": lanes, "batched": batched}
            if self.fused:
                saved = launch.integrate(system, y0, t0, t1, step, ts, args, **options)
            else:
                given = {"t0": t0, "t1": t1, "step": step, "ts": ts}
                on_card = concrete and memory.place().platform != "cpu"
                options["turns"] = turns_for((t1 - t0) / step, times) if on_card else None
                run = functools.partial(_uniform, system, **given, **options)
                saved = divide_batch(run, devices, y0, args)
            if self.slots is not None or not known(saved.status):
                break
            if not np.any(np.asarray(saved.status) == Status.lag_exceeds_ring):
                break
            slots *= 4
        shape = saved.status.shape
        read = jax.tree_util.Partial(_evaluate, (ts, saved.y, saved.slope))
        return FlatSolution(
            t=jnp.broadcast_to(ts, (*shape, *ts.shape)),
            y=saved.y,
            record=saved.record,
            status=saved.status,
            status_time=saved.status_time,
            steps=saved.steps,
            breaking_points=jnp.zeros((*shape, 0)),
            evaluate=read if every and not batched else None,
        )

    def _first_slots(self, problem: Problem) -> int:
        """Initial length of the ring: a long one is at most what the run fills."""
        step, slots = number(self.step), power_of_two(self.slots or _SLOTS)
        if self.slots is None:
            lags = problem.first_lags()
            if known(lags, step):
                usable = jnp.where(jnp.isfinite(lags), lags, 0.0)  # others lead to a status
                longest = float(jnp.max(usable, initial=0.0) / step)
                slots = power_of_two(max(2.0 * longest, 1.0) + 3.0)
        if slots > _SLOTS and known(step, problem.t0, problem.t1):  # shorter ones suit any run
            steps = float((problem.t1 - problem.t0) / step)
            slots = min(slots, max(power_of_two(steps + 4.0), _SLOTS))  # t0 is in the ring then
        return slots

    def _side_by_side(self, problem: Problem, slots: int, width: int, times: int) -> int:
        """Number of trajectories to step together on each device.

        Raises ValueError if their histories and all saved values do not fit in memory.
        """
        y0, devices = problem.y0, problem.devices
        trajectories, columns = y0.shape[0] if problem.batched else 1, 2 * y0.shape[-1] + width
        history, saved = 2 * width * slots, 8.0 * trajectories * times * columns
        ring, most = 8 * history, _LONGEST // history
        if self.fused:
            lanes = launch.batch_size(history, times * columns, trajectories)
            in_memory, copies = lanes, 1
        else:
            share = -(-trajectories // max(len(devices), 1))
            lanes = max(min(_lanes(ring, saved, share), share, most), 1)
            in_memory, copies = min(lanes * in_one_memory(devices), trajectories), _COPIES
        memory.require(
            saved + copies * ring * in_memory,
            f"uniform steps: a history of {slots} nodes x {width} numbers for {in_memory} "
            f"trajectories side by side, and {times} saved times for {trajectories},",
            f"take {_ADVICE}",
        )
        if most < 1:
            raise memory.TooLittleMemory(
                f"uniform steps: a history has up to {_LONGEST} numbers, got {slots} nodes x "
                f"{width} values and slopes: take {_ADVICE}"
            )
        return lanes


def turns_for(steps: Any, times: int) -> int:
    """Number of steps after which the host of an accelerator looks whether the next saved time is
    reached, as it waits for the device then: of the steps on the way at most one in 16 is empty.
    """
    return _TURNS if float(steps) / times >= 8 * _TURNS else 1


def _lanes(ring: int, saved: float, share: int) -> int:
    """Number of trajectories to step together, if the history of each takes `ring` bytes.

    An accelerator takes its whole share of the batch, or what fits next to the `saved` bytes.
    """
    if memory.place().platform != "cpu":
        fit = _SHARE * (memory.available() - saved) / (_COPIES * ring)
        return int(max(min(fit, share), 1))
    fit = _CACHED // ring
    if fit >= _MOST_LANES:
        return _MOST_LANES
    return 32 if fit >= 16 else 8  # 16 are slower than 32 wherever they would be taken


@compile_once(static_argnames=("system", "slots", "lanes", "batched", "turns", "shared"))
def _uniform(
    system: System,
    y0: Array,
    t0: Array,
    t1: Array,
    step: Array,
    ts: Array,
    args: Args,
    *,
    slots: int,
    lanes: int,
    batched: bool,
    turns: int | None,
    shared: Mesh | None,
) -> Saved:
    """Steps on arrays if `turns` is None, else by number, as derivatives are not taken."""

    def solve(y0: Array, args: Args) -> Saved:
        given = (system, y0, t0, t1, step, ts, args, slots, batched)
        if turns is None:
            return _integrate(*given)
        with contextlib.suppress(ValueError):  # too many operations, or one that the graph lacks
            return loop.integrate(*given, turns)
        return _integrate(*given, unroll=_UNROLLED)

    blocks = lambda y0, args: over_blocks(solve, batched, y0, args, lanes)  # noqa: E731
    return on_each_device(blocks, shared, y0, args)


class _Carry(NamedTuple):
    n: Array  # number of the latest node
    lane: Lane  # in a batch with a leading axis (B,)
    table: Array  # of the ring


def _integrate(
    system: System,
    y0: Array,
    t0: Array,
    t1: Array,
    step: Array,
    ts: Array,
    args: Args,
    slots: int,
    batched: bool = False,
    unroll: int = 1,
) -> Saved:
    """Integrate from t0 to t1 and save at the increasing times `ts`, shape (S,).

    Classical Runge-Kutta method, first same as last; cubic Hermite interpolation of the history.
    `slots` is the static length of the ring, a power of two. In a batch y0 and the leaves of
    `args[0]` have a leading axis, and so has all that is saved.
    """
    lanes = y0.shape[0] if batched else 1
    one_y0, one_args = one_of(y0, args, batched)
    width = system.record_size(one_y0, t0, one_args)
    clock = Clock.of(t0, step)

    def stepper(args: Args) -> Stepper:
        return Stepper(system, clock, args, width, unroll)

    def each(function: Callable[..., Any], table: Array, *values: Any) -> Any:
        """`function(stepper, ring, *values)` for every trajectory."""

        def call_one(lane: Any, first: Any, *values: Any) -> Any:
            one_stepper = stepper(type(args)(first, *args[1:]))
            return function(one_stepper, Ring(table, lane, lanes), *values)

        if not batched:
            return call_one(0, args[0], *values)
        return jax.vmap(call_one)(jnp.arange(lanes, dtype=jnp.int32), args[0], *values)

    def append(table: Array, n: Array, row: Array) -> Array:
        return write_rows(table, n, row if batched else row[None])

    def advance(carry: _Carry) -> _Carry:
        n = carry.n
        move = lambda stepper, ring, at: stepper.advance(ring, n, at)  # noqa: E731
        lane, row = each(move, carry.table, carry.lane)
        return _Carry(n + 1, lane, append(carry.table, n + 1, row))

    def run(carry: _Carry, until: Array) -> _Carry:
        target = clock.node_at(until)
        return lax.while_loop(lambda c: c.n < target, advance, carry)

    def save(carry: _Carry, t: Array) -> tuple[_Carry, tuple[Array, Array, Array]]:
        carry = run(carry, t)
        n = carry.n
        see = lambda stepper, ring, at: stepper.saved(ring, n, t, at)  # noqa: E731
        return carry, each(see, carry.table, carry.lane)

    table = jnp.zeros((slots * lanes, 2 * width), y0.dtype)
    lane = each(lambda stepper, ring, y0: stepper.start(ring, y0), table, y0)
    start = _Carry(jnp.full((), -1, jnp.int32), lane, table)
    # the end t1 is saved too and dropped, so that only one loop of steps is compiled
    carry, saved = lax.scan(save, start, jnp.append(ts, t1))
    saved = jax.tree.map(lambda v: v[:-1], saved)
    if batched:
        saved = jax.tree.map(lambda v: jnp.moveaxis(v, 1, 0), saved)
    judge = lambda stepper, ring, at: stepper.cause(ring, carry.n, at)  # noqa: E731
    status = each(judge, carry.table, carry.lane)
    y, slope, record = saved
    steps = jnp.broadcast_to(carry.n, status.shape)
    return Saved(y, slope, record, status, carry.lane.status_time, steps)


def _evaluate(saved: tuple[Array, Array, Array], t: Array) -> Array:
    """State at times t (S,), from the times, states and slopes of all nodes: (S, n)."""
    nodes, y, slope = saved
    newer = jnp.clip(jnp.searchsorted(nodes, t), 1, nodes.size - 1)
    length = nodes[newer] - nodes[newer - 1]
    theta = ((t - nodes[newer - 1]) / length)[:, None]
    length = length[:, None]
    return hermite.interpolate(
        theta, y[newer - 1], length * slope[newer - 1], y[newer], length * slope[newer]
    )
