"""The located mesh: steps that land on breaking points and on changes of mode, of order 4.

If no step is given, the step is halved until the estimated error meets a tolerance. If the error
falls more slowly than for a smooth equation, there are undeclared jumps or kinks: then each single
step must meet a tolerance too, so that only the steps around them become short.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jax import Array, lax
from jax.sharding import Mesh

from fluidcc import memory
from fluidcc.arrays import jax, jnp
from fluidcc.dde import track as tr
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
    one_by_one,
    power_of_two,
    sequential,
)
from fluidcc.dde.machine import Machine
from fluidcc.dde.system import Args, System
from fluidcc.dde.track import Track
from fluidcc.executables import compile_once

MOST_STEPS = 1 << 22
_TRACED_STEPS = 1 << 14
_EASY_SIZE = 1 << 21  # numbers; memory too small to matter
_FEW = 16.0**-3.5
"""Share of the tolerance below which shorter steps are given up: three reductions have failed."""


class Located(AbstractMesh):
    """Runge-Kutta steps that land on breaking points and on changes of mode: order 4 throughout.

    Parameters
    ----------
    step
        Longest step, in the unit of t; or None, and the step is halved until the error estimated
        from two runs meets `atol + rtol |y|`. If it falls slowly, as at undeclared jumps
        and kinks, steps around them are shortened one by one.
    rtol, atol
        Relative and absolute tolerance when no step is given; `atol` is `rtol` by default.
    max_steps
        Most nodes to store. By default enough for a third more steps than the longest step
        needs and a thousand events.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.solve_dde(
    ...     lambda t, y, z, p: -z[0], lambda t, p: 1.0, 0.0, 2.0, lags=[lambda t, y, p: 1.0],
    ...     ts=[2.0], mesh=fc.Located(0.25),
    ... )
    >>> found.y.round(6).tolist()
    [-0.5]
    """

    step: Any = None
    _: dataclasses.KW_ONLY
    rtol: float = 1e-6
    atol: float | None = None
    max_steps: int | None = eqx.field(default=None, static=True)

    def __check_init__(self) -> None:
        """Raise ValueError for a step, tolerance or limit that is not positive."""
        check_positive("Located(step)", 1 if self.step is None else self.step)
        check_positive("Located(rtol)", self.rtol)
        check_positive("Located(atol)", 1 if self.atol is None else self.atol)
        check_positive("Located(max_steps)", 1 if self.max_steps is None else self.max_steps)

    def solve(self, problem: Problem) -> FlatSolution:
        """Integrate; the memory for steps grows until it suffices, if values are concrete."""
        system, y0, t0, t1, args, ts, jump, batched, devices = problem
        if batched and ts is None:
            raise ValueError("a batch on a located mesh needs ts: its trajectories differ in nodes")
        refined = self.step is None
        if refined:
            step = _first_step(problem.first_lags(), t1 - t0)
        else:
            step = number(self.step)
        atol = self.rtol if self.atol is None else self.atol
        settings = (step, number(self.rtol), number(atol))
        now = known(t0, t1, settings, args, y0)
        dense = not batched and (ts is None or now)
        one_y0, one_args = problem.one()
        columns = system.kept_size(one_y0, t0, one_args)
        most = MOST_STEPS if self.max_steps is None else power_of_two(self.max_steps + 3)
        capacity = 1 << 12 if now else _TRACED_STEPS
        if self.max_steps is not None and not (refined and now):
            capacity = most
        elif not refined and known(t0, t1, step):
            capacity = power_of_two(1.3 * float((t1 - t0) / step) + 1000.0)
        if now and not batched and capacity < most:  # more is compiled anew
            capacity = max(capacity, min(1 << 15, power_of_two(_EASY_SIZE / (4 * columns + 2))))
        capacity = min(capacity, most)
        options = {"jump": jump, "batched": batched, "refined": refined, "dense": dense}
        given: dict[str, Any] = {"t0": t0, "t1": t1, "settings": settings, "ts": ts}
        while True:
            memory.require(
                8.0 * capacity * (4 * columns + 2) * in_one_memory(devices),
                f"located steps: {capacity} nodes x {columns} numbers",
                "take a larger step or tolerance, a shorter run, or a lower max_steps",
            )
            run_all = functools.partial(_located, system, **given, capacity=capacity, **options)
            run, times, values, records = divide_batch(run_all, devices, y0, args)
            if not now or capacity >= most:
                break
            short = (Status.step_limit, Status.tolerance_not_met)
            more = np.isin(np.asarray(run.status), short)
            left = np.asarray((t1 - run.end) / run.pace)  # steps
            more &= (left > 0.0) & (left < MOST_STEPS)
            if not np.any(more):
                break
            capacity = min(8 * capacity, most)
        events = run.events
        if now:  # cut off the padding that traced code needs
            events = events[..., : int(np.max(np.sum(np.isfinite(np.asarray(events)), axis=-1)))]
            if ts is None:
                times, values, records = (v[: int(run.nodes) + 1] for v in (times, values, records))
        read = functools.partial(states, size=y0.shape[-1])
        return FlatSolution(
            t=times,
            y=values,
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
    shortest = jnp.min(jnp.where(lags > 0.0, lags, jnp.inf))  # a NaN lag is ignored
    return jnp.maximum(lax.stop_gradient(shortest) / 4.0, span / 2000.0)


class Run(NamedTuple):
    """Result of a run on a located mesh."""

    track: Track
    nodes: Array
    end: Array
    events: Array
    status: Array
    status_time: Array
    pace: Array  # mean length of the later half of the steps
    excess: Array  # largest estimated error of a step, in units of the tolerance


def integrate(
    system: System,
    y0: Array,
    t0: Array,
    t1: Array,
    step: Array,
    args: Args,
    *,
    capacity: int,
    jump: bool,
    tolerance: tuple[Array, Array, Array] | None = None,
) -> Run:
    """Integrate from t0 to t1 in steps of at most `step`.

    `capacity`, a power of two, bounds the number of steps; `jump` is true if y0 differs from the
    end of the history; `tolerance` is that of each step, as for a `Machine`.
    """
    machine = Machine(system, t0, t1, step, args, tolerance)
    start = machine.start(y0, capacity, 0 if jump else 1)
    carry = lax.while_loop(lambda c: ~c.done & (c.status == Status.ok), machine.advance, start)
    half = carry.node // 2
    pace = carry.t - tr.at(carry.track.steps, half, jnp.int32(0))
    pace = pace / (carry.node - half).astype(pace.dtype)
    results = (carry.track, carry.node, carry.t, carry.events, carry.status, carry.status_time)
    return Run(*results, lax.stop_gradient(pace), carry.excess)


def nodes(run: Run) -> Array:
    """Times of all nodes, the last one repeated: (N + 1,)."""
    return jnp.append(jnp.minimum(run.track.steps[:, 0], run.end), run.end)


def remembered(run: Run, t: Array) -> Array:
    """Record and state at times t (S,): (S, V).

    At a jump this is the value after it; past the end of the run it is the last value.
    """
    time = jnp.minimum(t, run.end)
    index = jnp.clip(tr.search(run.track, time), 0, jnp.maximum(run.nodes - 1, 0))
    return tr.read_rows(run.track, index, time)


def states(run: Run, t: Array, size: int) -> Array:
    """The last `size` columns, which are the state, at times t (S,): (S, size)."""
    return remembered(run, t)[:, tr.width(run.track) - size :]


@compile_once(
    static_argnames=("system", "capacity", "jump", "batched", "refined", "dense", "shared")
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
) -> tuple[Run, Array, Array, Array]:
    """The run, with its track only if `dense`, and the saved times, states and records."""

    def single(y0: Array, args: Args, t0: Array, t1: Array, settings: Any, ts: Any):
        step, rtol, atol = settings

        def solve(step: Array, share: Array | None = None) -> Run:
            tolerance = None if share is None else (rtol, atol, share)
            options = {"capacity": capacity, "jump": jump, "tolerance": tolerance}
            return integrate(system, y0, t0, t1, step, args, **options)

        if refined:
            probes = jnp.linspace(t0, t1, 67)
            probes = probes if ts is None else jnp.concatenate([ts, probes])
            run = _refine(solve, probes, y0.size, step, rtol, atol)
        else:
            run = solve(step)
        times = nodes(run) if ts is None else ts
        saved = remembered(run, times)
        states = saved[:, saved.shape[1] - y0.size :]
        records = states if system.record is None else saved[:, : saved.shape[1] - y0.size]
        return run if dense else run._replace(track=None), times, states, records

    run = lambda y0, args: sequential(single, y0, args, t0, t1, settings, ts)  # noqa: E731
    each = lambda y0, args: one_by_one(run, batched, y0, args)  # noqa: E731
    return on_each_device(each, shared, y0, args)


class Refined(NamedTuple):
    """A run whose step is halved until the difference to the run before is small."""

    run: Run
    values: Array  # at the probes
    step: Array  # of the next run
    factor: Array  # by which the step of the last run was shorter than that of the one before
    share: Array  # of the tolerance, for each single step of the next run; infinite at first
    error: Array  # estimated, in units of the tolerance
    first: Array  # probe at which the tolerance is not met
    met: Array
    stuck: Array  # whether shorter steps are of no use


def _refine(
    integrate: Callable[[Array, Array], Run],
    probes: Array,
    size: int,
    step: Array,
    rtol: Array,
    atol: Array,
) -> Run:
    """Run with shorter and shorter steps until the estimated error is met at the probes, times at
    which states of this `size` are compared.
    """

    def rerun(state: Refined) -> Refined:
        run = integrate(state.step, state.share)
        values = states(run, probes, size)
        change = lax.stop_gradient(jnp.abs(values - state.values))
        change = change / (atol + rtol * jnp.abs(lax.stop_gradient(values)))
        errors = jnp.max(change, axis=1) / (state.factor**4 - 1.0)  # the method is of order 4
        error, local, ok = jnp.max(errors), jnp.isfinite(state.share), run.status == Status.ok
        # the error estimate of a step is of order 3, but of order 2 at kinks and 1 at jumps
        smooth = run.excess <= jnp.maximum(1.0, state.run.excess / state.factor**2.5)
        # and the estimated error of the run before must agree with its actual error
        smooth &= error * (state.factor**4 - 1.0) <= 2.0 * state.error
        early = ~jnp.isfinite(state.error) & (error > 1.0)  # the first steps are long
        slow = ~local & ~(ok & (smooth | early))
        met = ok & (error <= 1.0) & ~slow
        halvings = jnp.ceil(0.25 * jnp.log2(jnp.where(jnp.isfinite(error), error, 16.0)))
        factor = 2.0 ** jnp.where(local | slow, 1.0, jnp.clip(halvings, 1.0, 3.0))
        each = jnp.where(slow, 1.0, state.share / factor**4)
        first = jnp.min(jnp.where(errors <= 1.0, jnp.inf, probes))
        stuck = (state.share < _FEW) & (error > 0.5 * state.error)
        return Refined(run, values, state.step / factor, factor, each, error, first, met, stuck)

    integrate = jax.jit(integrate, inline=True)  # traced once, for shapes and in the loop
    infinite = jnp.full_like(step, jnp.inf)
    shapes = jax.eval_shape(integrate, step, infinite)
    blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    blank = blank._replace(excess=infinite)
    values, two, no = jnp.full((probes.size, size), jnp.inf), 2.0 + 0.0 * step, jnp.zeros((), bool)
    state = Refined(blank, values, step, two, infinite, infinite, infinite, no, no)

    def is_unfinished(state: Refined) -> Array:
        status = state.run.status
        long = (status == Status.nonfinite) | (status == Status.lag_below_step)
        long &= state.share == 1.0  # the run had steps of one length
        return ~state.met & ~state.stuck & ((status == Status.ok) | long)

    state = lax.while_loop(is_unfinished, rerun, state)
    run = state.run
    short = ~state.met & ((run.status == Status.step_limit) | (run.status == Status.ok))
    status = jnp.where(short, jnp.int32(Status.tolerance_not_met), run.status)
    good = jnp.max(jnp.where(probes < state.first, probes, jnp.min(probes)))
    time = jnp.where(short & (state.first < run.status_time), good, run.status_time)
    return run._replace(status=status, status_time=time)
