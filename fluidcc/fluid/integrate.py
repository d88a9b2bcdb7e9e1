"""Integrate a system on any mesh: what is compiled, and how much room it gets."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer

from fluidcc.fluid import located, method_of_steps, refine, room, uniform
from fluidcc.fluid.batches import one_by_one, over_blocks, sequential, side_by_side
from fluidcc.fluid.meshes import Located, MethodOfSteps, Uniform
from fluidcc.fluid.status import Status
from fluidcc.fluid.system import Args, System, history_look
from fluidcc.fused import launch

TRACED_SLOTS = 1 << 10
TRACED_STEPS = 1 << 14
MOST_STEPS = 1 << 22
FEWEST_LANES, MOST_LANES = 8, 64
"""How many trajectories of a batch are stepped side by side, at least and at most."""
CACHED = 1 << 19
"""Bytes of the cache that their histories should fit in."""
_COPIES = 2  # of the history: that of the run, and the empty one that it began with


class Trajectory(NamedTuple):
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


def known(*values: Any) -> bool:
    """Whether all values are numbers now, not tracers."""
    return not any(isinstance(value, Tracer) for value in jax.tree.leaves(values))


def number(value: Any) -> Any:
    """Floats that stay numbers in traced code, where room is chosen, unless they are traced."""
    return value if isinstance(value, jax.Array) else np.asarray(value, float)


def power_of_two(least: float) -> int:
    """The smallest power of two that is at least `least`."""
    return 1 << max(0, int(np.ceil(least)) - 1).bit_length()


def integrate(
    system: System,
    y0: Array,
    t0: Any,
    t1: Any,
    args: Args,
    *,
    mesh: Uniform | Located | MethodOfSteps,
    ts: Any = None,
    jump: bool = False,
    batched: bool = False,
) -> Trajectory:
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
        blocks that suit the processor's cache.

    Raises
    ------
    ValueError
        For what the mesh cannot do.
    """
    t0, t1, ts = number(t0), number(t1), None if ts is None else number(ts)
    if isinstance(mesh, Uniform):
        return _on_uniform(system, y0, t0, t1, args, mesh, ts, batched)
    if isinstance(mesh, Located):
        return _on_located(system, y0, t0, t1, args, mesh, ts, jump, batched)
    if batched or not known(t0, t1, args, y0):
        raise ValueError("MethodOfSteps solves one trajectory at a time, outside jit and vmap")
    return _on_steps(system, y0, t0, t1, args, mesh, ts, jump)


def _first_lags(system: System, y0: Array, t0: Array, args: Args, batched: bool) -> Array:
    """Lags at t0, shape (M,); (B, M) in a batch."""

    def lags(y0: Array, args: Args) -> Array:
        return system.lags(t0, y0, args, history_look(system, t0, args))

    return side_by_side(lags, batched, y0, args)


def _first(y0: Array, args: Args, batched: bool) -> tuple[Array, Args]:
    """State at t0 and parameters of one trajectory."""
    if not batched:
        return y0, args
    return y0[0], type(args)(jax.tree.map(lambda leaf: leaf[0], args[0]), *args[1:])


def _lanes(ring: int) -> int:
    """How many trajectories whose history takes so many bytes to step side by side."""
    fit = max(CACHED // ring, FEWEST_LANES)
    return min(1 << (fit.bit_length() - 1), MOST_LANES)


@functools.partial(jax.jit, static_argnames=("system", "slots", "lanes", "batched", "single"))
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
    single: bool,
) -> uniform.Saved:
    def solve(y0: Array, args: Args) -> uniform.Saved:
        return uniform.integrate(system, y0, t0, t1, step, ts, args, slots, batched)

    def converted(leaf: Any) -> Any:
        floats = jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
        return jnp.asarray(leaf, jnp.float32) if floats else leaf

    if single:
        y0, args = jax.tree.map(converted, (y0, args))
    saved = over_blocks(solve, batched, y0, args, lanes)
    double = {name: getattr(saved, name).astype(float) for name in ("y", "slope", "record")}
    return saved._replace(**double)


def _on_uniform(
    system: System,
    y0: Array,
    t0: Array,
    t1: Array,
    args: Args,
    mesh: Uniform,
    ts: Array | None,
    batched: bool,
) -> Trajectory:
    """On a uniform mesh; the ring grows until it suffices, where that can be seen."""
    step, every = number(mesh.step), ts is None
    if mesh.single and (system.events is not None or system.record is not None):
        raise ValueError(
            "Uniform(single=True) is for smooth equations: expected a field without inputs and "
            "modes, got one with events, or a network; leave single out"
        )
    if mesh.fused and not known(step, t0, t1, args, y0, ts):
        raise ValueError("Uniform(fused=True) works outside jit, vmap and derivatives")
    one_y0, one_args = _first(y0, args, batched)
    width = system.record_size(one_y0, t0, one_args)
    if ts is not None:
        times = ts.size
    elif known(step, t0, t1):
        times = int(np.ceil(float((t1 - t0) / step) - 1e-9)) + 1
    else:
        raise ValueError("Uniform needs ts in traced code whose step, t0 or t1 is traced")
    trajectories = y0.shape[0] if batched else 1
    kept = 8.0 * trajectories * times * (2 * y0.shape[-1] + width)
    number_size = 4 if mesh.single else 8
    slots = power_of_two(mesh.slots or TRACED_SLOTS)
    if mesh.slots is None:
        lags = _first_lags(system, y0, t0, args, batched)
        if known(lags, step):
            usable = jnp.where(jnp.isfinite(lags), lags, 0.0)  # a status tells of the others
            longest = float(jnp.max(usable, initial=0.0) / step)
            slots = power_of_two(max(2.0 * longest, 1.0) + 3.0)
    row = 2 * width * number_size
    if known(step, t0, t1) and _COPIES * slots * row > room.memory():
        slots = min(slots, power_of_two(float((t1 - t0) / step) + 4.0))  # t0 is in the ring then
    while True:
        lanes = min(_lanes(slots * row), trajectories)
        room.require(
            kept + _COPIES * slots * row * lanes,
            f"uniform steps: a history of {slots} nodes x {width} numbers for {lanes} trajectories "
            f"side by side, and {times} saved times for {trajectories},",
            "take a larger step, a smaller buffer (it bounds the longest round trip), fewer saved "
            "times, or fewer trajectories at once",
        )
        if ts is None:
            ts = jnp.minimum(t0 + step * jnp.arange(times, dtype=float), t1)
        options: dict[str, Any] = {"slots": slots, "batched": batched, "single": mesh.single}
        if mesh.fused:
            saved = launch.integrate(system, y0, t0, t1, step, ts, args, **options)
        else:
            saved = _uniform(system, y0, t0, t1, step, ts, args, lanes=lanes, **options)
        if mesh.slots is not None or not known(saved.status):
            break
        if not np.any(np.asarray(saved.status) == Status.lag_exceeds_ring):
            break
        slots *= 4
    shape = saved.status.shape
    dense = every and not batched
    return Trajectory(
        t=jnp.broadcast_to(ts, (*shape, *ts.shape)),
        y=saved.y,
        record=saved.record,
        status=saved.status,
        status_time=saved.status_time,
        steps=saved.steps,
        breaking_points=jnp.zeros((*shape, 0)),
        evaluate=jax.tree_util.Partial(uniform.evaluate, (ts, saved.y, saved.slope))
        if dense
        else None,
    )


@functools.partial(
    jax.jit, static_argnames=("system", "capacity", "jump", "batched", "refined", "dense")
)
def _located(
    system: System,
    y0: Array,
    t0: Array,
    t1: Array,
    settings: tuple[Array, Array, Array],
    ts: Array | None,
    args: Args,
    *,
    capacity: int,
    jump: bool,
    batched: bool,
    refined: bool,
    dense: bool,
) -> tuple[located.Run, Array, Array, Array]:
    """The run, with its track only if `dense`, and times, states and records saved."""

    def single(y0: Array, args: Args, t0: Array, t1: Array, settings: Any, ts: Any):
        step, rtol, atol = settings

        def solve(step: Array) -> located.Run:
            return located.integrate(system, y0, t0, t1, step, args, capacity=capacity, jump=jump)

        if refined:
            probes = jnp.linspace(t0, t1, 67)[1:]
            probes = probes if ts is None else jnp.concatenate([ts, probes])
            probe = lambda run: located.states(run, probes, y0.size)  # noqa: E731
            run = refine.refine(solve, probe, step, rtol, atol)
        else:
            run = solve(step)
        times = located.nodes(run) if ts is None else ts
        saved = located.remembered(run, times)
        states = saved[:, saved.shape[1] - y0.size :]
        records = states if system.record is None else saved[:, : saved.shape[1] - y0.size]
        return run if dense else run._replace(track=None), times, states, records

    run = lambda y0, args: sequential(single, y0, args, t0, t1, settings, ts)  # noqa: E731
    return one_by_one(run, batched, y0, args)


def _on_located(
    system: System,
    y0: Array,
    t0: Array,
    t1: Array,
    args: Args,
    mesh: Located,
    ts: Array | None,
    jump: bool,
    batched: bool,
) -> Trajectory:
    """On a located mesh; room for steps grows until it suffices, where that can be seen."""
    if batched and ts is None:
        raise ValueError("a batch on a located mesh needs ts: its trajectories differ in nodes")
    refined = mesh.step is None
    if refined:
        step = _first_step(_first_lags(system, y0, t0, args, batched), t1 - t0)
    else:
        step = number(mesh.step)
    atol = mesh.rtol if mesh.atol is None else mesh.atol
    settings = (step, number(mesh.rtol), number(atol))
    now = known(t0, t1, settings, args, y0)
    dense = not batched and (ts is None or now)
    capacity = 1 << 12 if now else TRACED_STEPS
    if mesh.max_steps is not None:
        capacity = power_of_two(mesh.max_steps + 3)
    elif not refined and known(t0, t1, step):
        capacity = power_of_two(1.3 * float((t1 - t0) / step) + 1000.0)
    options = {"jump": jump, "batched": batched, "refined": refined, "dense": dense}
    one_y0, one_args = _first(y0, args, batched)
    columns = system.kept_size(one_y0, t0, one_args)
    while True:
        room.require(
            8.0 * capacity * (4 * columns + 2),
            f"located steps: {capacity} nodes x {columns} numbers",
            "take a larger step or tolerance, a shorter run, or a lower max_steps",
        )
        run, times, states, records = _located(
            system, y0, t0, t1, settings, ts, args, capacity=capacity, **options
        )
        if not now or mesh.max_steps is not None or capacity >= MOST_STEPS:
            break
        short = (Status.step_limit, Status.tolerance_not_met)
        if not np.any(np.isin(np.asarray(run.status), short)):
            break
        capacity *= 8
    events = run.events
    if now:  # cut to length what traced code fills up
        events = events[..., : int(np.max(np.sum(np.isfinite(np.asarray(events)), axis=-1)))]
        if ts is None:
            times, states, records = (v[: int(run.nodes) + 1] for v in (times, states, records))
    read = functools.partial(located.states, size=y0.shape[-1])
    return Trajectory(
        t=times,
        y=states,
        record=records,
        status=run.status,
        status_time=run.status_time,
        steps=run.nodes,
        breaking_points=events,
        evaluate=jax.tree_util.Partial(read, run) if dense else None,
    )


def _first_step(lags: Array, span: Array) -> Array:
    """A quarter of the shortest lag, between a fortieth and a two thousandth of the run."""
    lags = jnp.append(jnp.ravel(lags), span / 10.0)
    shortest = jnp.min(jnp.where(lags > 0.0, lags, jnp.inf))  # a lag that is no number has none
    return jnp.maximum(lax.stop_gradient(shortest) / 4.0, span / 2000.0)


def _on_steps(
    system: System,
    y0: Array,
    t0: Array,
    t1: Array,
    args: Args,
    mesh: MethodOfSteps,
    ts: Array | None,
    jump: bool,
) -> Trajectory:
    """By adaptive steps between breaking points."""
    run = method_of_steps.integrate(system, y0, t0, t1, args, mesh, jump)
    nodes = jnp.asarray(run.nodes)
    t = nodes if ts is None else ts
    remembered = method_of_steps.evaluate(run.pieces, t)
    split = remembered.shape[1] - y0.size
    states = functools.partial(_last_columns, size=y0.size)
    return Trajectory(
        t=t,
        y=remembered[:, split:],
        record=remembered if system.record is None else remembered[:, :split],
        status=jnp.int32(run.status),
        status_time=nodes[-1],
        steps=jnp.int32(nodes.size - 1),
        breaking_points=jnp.asarray(run.breaking_points),
        evaluate=jax.tree_util.Partial(states, run.pieces),
    )


def _last_columns(pieces: method_of_steps.Pieces, t: Array, *, size: int) -> Array:
    """States at times t (S,), which come last in what the method of steps remembers."""
    return method_of_steps.evaluate(pieces, t)[:, -size:]
