"""Integrate a system on any mesh."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import Mesh

from fluidcc import memory
from fluidcc.dde import located, method_of_steps, refine, shards
from fluidcc.dde.batches import one_by_one, sequential
from fluidcc.dde.forward import forward_only
from fluidcc.dde.meshes import Located, MethodOfSteps, Uniform
from fluidcc.dde.on_uniform import on_uniform
from fluidcc.dde.status import Status
from fluidcc.dde.system import Args, System
from fluidcc.dde.trajectory import Trajectory, first, first_lags, known, number, power_of_two

TRACED_STEPS = 1 << 14
MOST_STEPS = 1 << 22
EASY_ROOM = 1 << 21  # numbers; room that costs nothing to have


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
        blocks that suit the processor's cache, on all devices of this process.

    Raises
    ------
    ValueError
        For what the mesh cannot do.
    """
    t0, t1, ts = number(t0), number(t1), None if ts is None else number(ts)
    y0, t0, t1, args, ts, mesh = forward_only((y0, t0, t1, args, ts, mesh))
    given, devices = (y0, t0, t1, args, ts, mesh), ()
    if batched and known(given) and (devices := shards.devices_for(given)):
        y0, t0, t1, args, ts, mesh = jax.tree.map(np.asarray, given)  # from wherever they lie
    if isinstance(mesh, Uniform):
        return on_uniform(system, y0, t0, t1, args, mesh, ts, batched, devices)
    if isinstance(mesh, Located):
        return _on_located(system, y0, t0, t1, args, mesh, ts, jump, batched, devices)
    if batched or not known(t0, t1, args, y0):
        raise ValueError(
            "MethodOfSteps solves one trajectory at a time, outside jit, vmap and derivatives"
        )
    return _on_steps(system, y0, t0, t1, args, mesh, ts, jump)


@functools.partial(
    jax.jit,
    static_argnames=("system", "capacity", "jump", "batched", "refined", "dense", "shared"),
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
    shared: Mesh | None,
) -> tuple[located.Run, Array, Array, Array]:
    """The run, with its track only if `dense`, and times, states and records saved."""

    def single(y0: Array, args: Args, t0: Array, t1: Array, settings: Any, ts: Any):
        step, rtol, atol = settings

        def solve(step: Array, share: Array | None = None) -> located.Run:
            tolerance = None if share is None else (rtol, atol, share)
            options = {"capacity": capacity, "jump": jump, "tolerance": tolerance}
            return located.integrate(system, y0, t0, t1, step, args, **options)

        if refined:
            probes = jnp.linspace(t0, t1, 67)
            probes = probes if ts is None else jnp.concatenate([ts, probes])
            run = refine.refine(solve, probes, y0.size, step, rtol, atol)
        else:
            run = solve(step)
        times = located.nodes(run) if ts is None else ts
        saved = located.remembered(run, times)
        states = saved[:, saved.shape[1] - y0.size :]
        records = states if system.record is None else saved[:, : saved.shape[1] - y0.size]
        return run if dense else run._replace(track=None), times, states, records

    run = lambda y0, args: sequential(single, y0, args, t0, t1, settings, ts)  # noqa: E731
    each = lambda y0, args: one_by_one(run, batched, y0, args)  # noqa: E731
    return shards.each_its_own(each, shared, y0, args)


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
    devices: shards.Devices,
) -> Trajectory:
    """On a located mesh; room for steps grows until it suffices, where that can be seen."""
    if batched and ts is None:
        raise ValueError("a batch on a located mesh needs ts: its trajectories differ in nodes")
    refined = mesh.step is None
    if refined:
        step = _first_step(first_lags(system, y0, t0, args, batched), t1 - t0)
    else:
        step = number(mesh.step)
    atol = mesh.rtol if mesh.atol is None else mesh.atol
    settings = (step, number(mesh.rtol), number(atol))
    now = known(t0, t1, settings, args, y0)
    dense = not batched and (ts is None or now)
    one_y0, one_args = first(y0, args, batched)
    columns = system.kept_size(one_y0, t0, one_args)
    capacity = 1 << 12 if now else TRACED_STEPS
    if mesh.max_steps is not None:
        capacity = power_of_two(mesh.max_steps + 3)
    elif not refined and known(t0, t1, step):
        capacity = power_of_two(1.3 * float((t1 - t0) / step) + 1000.0)
    if now and not batched and mesh.max_steps is None:  # more room is compiled anew
        capacity = max(capacity, min(1 << 15, power_of_two(EASY_ROOM / (4 * columns + 2))))
    options = {"jump": jump, "batched": batched, "refined": refined, "dense": dense}
    given: dict[str, Any] = {"t0": t0, "t1": t1, "settings": settings, "ts": ts}
    while True:
        memory.require(
            8.0 * capacity * (4 * columns + 2) * shards.in_one_memory(devices),
            f"located steps: {capacity} nodes x {columns} numbers",
            "take a larger step or tolerance, a shorter run, or a lower max_steps",
        )
        solve = functools.partial(_located, system, **given, capacity=capacity, **options)
        run, times, states, records = shards.dealt_out(solve, devices, y0, args)
        if not now or mesh.max_steps is not None or capacity >= MOST_STEPS:
            break
        short = (Status.step_limit, Status.tolerance_not_met)
        more = np.isin(np.asarray(run.status), short)
        left = np.asarray((t1 - run.end) / run.pace)  # steps
        more &= (left > 0.0) & (left < MOST_STEPS)
        if not np.any(more):
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
