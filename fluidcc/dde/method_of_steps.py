"""The method of steps: adaptive solvers of ordinary equations between breaking points.

Within a segment no lag reaches the segment itself and no mode changes, so the equation is an
ordinary one with a smooth right-hand side, for which diffrax's solvers have a proven error
control. The segment ends at the first event, found on the dense output. Kinks of a record that
change no mode are left to the step-size control.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import numpy as np
from jax import Array, lax

from fluidcc.arrays import jax, jnp
from fluidcc.dde.integrate import AbstractMesh, FlatSolution, Problem, Status, check_positive, known
from fluidcc.dde.system import Args, System, no_look

DEGREE = 8
"""Degree of the polynomial that stores one step of the solver."""
MAX_STEPS = 32
"""Steps of the solver in one segment; a longer stretch becomes several segments."""
LAST_ORDER = 8
"""Jumps in this derivative and higher ones are left to the step-size control."""
GRID = 16
"""Points per step at which guards are evaluated."""

_NODES = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
_TO_POWERS = np.linalg.inv(np.vander(_NODES, increasing=True))


class MethodOfSteps(AbstractMesh):
    """Adaptive steps of a diffrax solver from breaking point to breaking point.

    An independent check of the other meshes, and the one for equations without delay. It is
    driven from Python: not for jit or vmap, and lags must not vanish.

    Parameters
    ----------
    solver
        An explicit diffrax solver with dense output.
    rtol, atol
        Tolerances of its step-size control.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.solve_dde(
    ...     lambda t, y, z, p: -z[0], lambda t, p: 1.0, 0.0, 2.0, lags=[lambda t, y, p: 1.0],
    ...     ts=[2.0], mesh=fc.MethodOfSteps(),
    ... )
    >>> found.y.round(6).tolist()
    [-0.5]
    """

    solver: diffrax.AbstractAdaptiveSolver = diffrax.Dopri8()
    _: dataclasses.KW_ONLY
    rtol: float = 1e-8
    atol: float = 1e-10

    def __check_init__(self) -> None:
        """Raise ValueError for a tolerance that is not positive."""
        check_positive("MethodOfSteps(rtol)", self.rtol)
        check_positive("MethodOfSteps(atol)", self.atol)

    def solve(self, problem: Problem) -> FlatSolution:
        """Adaptive steps between breaking points."""
        if problem.batched or not known(problem.t0, problem.t1, problem.args, problem.y0):
            raise ValueError(
                "MethodOfSteps solves one trajectory at a time, outside jit, vmap and derivatives"
            )
        pieces, nodes, breaks, status = _integrate(problem, self)
        size, t = problem.y0.size, nodes if problem.ts is None else problem.ts
        remembered = _evaluate(pieces, t)
        split = remembered.shape[1] - size
        plain = problem.system.record is None
        return FlatSolution(
            t=t,
            y=remembered[:, split:],
            record=remembered if plain else remembered[:, :split],
            status=jnp.int32(status),
            status_time=nodes[-1],
            steps=jnp.int32(nodes.size - 1),
            breaking_points=breaks,
            evaluate=jax.tree_util.Partial(functools.partial(_states, size=size), pieces),
        )


class Pieces(NamedTuple):
    """The past: one polynomial per step, in powers of s in [-1, 1]."""

    starts: Array  # (N,), infinite for unused entries
    lengths: Array  # (N,)
    powers: Array  # (N, DEGREE + 1, V): of the record, if there is one, and the state


class Sides(NamedTuple):
    """Range of the past that each lag may read in a segment, shapes (M,)."""

    before: Array  # whether it reads the history
    present: Array  # whether it is zero
    low: Array  # first piece
    high: Array  # last piece
    ahead: Array  # next breaking point or the start of the segment, infinite for none


class Segment(NamedTuple):
    """A piece of the solution up to the first event."""

    end: Array
    y: Array
    steps: Array  # number of steps
    starts: Array  # (MAX_STEPS,)
    lengths: Array
    powers: Array
    hit: Array  # guards that are zero at the end
    arguments: Array  # (M,) t - lag at the end
    z: Array
    lags: Array
    good: Array  # whether everything is finite


def _value(pieces: Pieces, index: Array, time: Array) -> Array:
    """Record and state (V,) at one time from the given piece; beyond its ends its tangent.

    Trial steps that are later shortened read past the end of a piece, which may be far shorter than
    the step: the extrapolated polynomial would explode there.
    """
    s = 2.0 * (time - pieces.starts[index]) / pieces.lengths[index] - 1.0
    inside = jnp.clip(s, -1.0, 1.0)

    def polynomial(s: Array) -> Array:
        value = jnp.zeros(pieces.powers.shape[2])
        for i in reversed(range(DEGREE + 1)):
            value = value * s + pieces.powers[index, i]
        return value

    value, rise = jax.jvp(polynomial, (inside,), (jnp.ones_like(inside),))
    return value + rise * (s - inside)


def _evaluate(pieces: Pieces, t: Array) -> Array:
    """Record and state at times t (S,): (S, V); at a jump the value after it."""
    last = jnp.sum(jnp.isfinite(pieces.starts), dtype=jnp.int32) - 1
    time = jnp.minimum(t, pieces.starts[last] + pieces.lengths[last])
    index = jnp.clip(
        jnp.searchsorted(pieces.starts, time, side="right").astype(jnp.int32) - 1, 0, last
    )
    return jax.vmap(_value, in_axes=(None, 0, 0))(pieces, index, time)


def _states(pieces: Pieces, t: Array, *, size: int) -> Array:
    """States at times t (S,): the last columns, (S, size)."""
    return _evaluate(pieces, t)[:, -size:]


class _Field(eqx.Module):
    """The right-hand side of one segment."""

    system: System = eqx.field(static=True)
    pieces: Pieces
    sides: Sides
    mode: Array
    t0: Array
    args: Args

    def delayed(self, t: Array, y: Array) -> tuple[Array, Array]:
        """Values (P,) that are read at (t, y), and the lags (M,)."""
        if not self.system.columns:
            return jnp.zeros((0,)), jnp.zeros((0,))
        lags = self.system.lags(t, y, self.args, no_look)
        time, sides = t - lags, self.sides
        index = jnp.searchsorted(self.pieces.starts, time, side="right").astype(jnp.int32) - 1
        index = jnp.clip(index, sides.low, sides.high)
        each = jnp.array(self.system.lag_of)
        columns = jnp.array(self.system.column_of)
        values = jax.vmap(_value, in_axes=(None, 0, 0))(self.pieces, index, time)[each, columns]
        if self.system.record is None:
            values = jnp.where(sides.present[each], y[columns], values)
        past = self.system.history(jnp.minimum(time, self.t0)[each], columns, self.args)
        return jnp.where(sides.before[each], past, values), lags

    def remembered(self, t: Array, y: Array) -> Array:
        """The record, which is read later, then the state (n,)."""
        record = self.system.record
        if record is None:
            return y
        z = self.delayed(t, y)[0]
        return jnp.concatenate([record(t, y, z, self.args, self.mode), y])

    def __call__(self, t: Any, y: Array, _: Any) -> Array:
        """dy/dt, for the solver."""
        return self.system.slope(t, y, self.delayed(t, y)[0], self.args, self.mode)

    def guards(self, t: Array, y: Array) -> Array:
        """Guards of the modes, then the distance of each argument to its limit in the segment."""
        z, lags = self.delayed(t, y)
        parts = []
        if self.system.events is not None:
            parts.append(self.system.events.guards(t, y, z, self.args, self.mode))
        ahead = self.sides.ahead
        known = jnp.isfinite(ahead)
        parts.append(jnp.where(known, jnp.where(known, ahead, 0.0) - (t - lags), 1.0))
        return jnp.concatenate(parts)


@eqx.filter_jit
def _segment(field: _Field, solver: Any, t: Array, until: Array, y: Array, tolerance: Any):
    rtol, atol = tolerance
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        solver,
        t,
        until,
        None,
        y,
        saveat=diffrax.SaveAt(dense=True, steps=True),
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
        max_steps=MAX_STEPS,
        throw=False,
    )
    assert solution.ts is not None
    ends = jnp.where(jnp.isfinite(solution.ts), solution.ts, -jnp.inf)
    reached = jnp.max(ends)
    at = lambda s: solution.evaluate(jnp.clip(s, t, reached))  # noqa: E731
    starts = jnp.concatenate([t[None], ends[:-1]])
    starts = jnp.where(jnp.isfinite(ends), starts, jnp.inf)

    def bad(s: Array) -> Array:
        return jnp.any(field.guards(s, at(s)) < 0.0)

    fractions = (jnp.arange(GRID, dtype=float) + 1.0)[None] / GRID
    lengths = jnp.where(jnp.isfinite(starts), ends - starts, 0.0)
    grid = (starts[:, None] + lengths[:, None] * fractions).reshape(-1)
    is_bad = jax.vmap(bad)(jnp.where(jnp.isfinite(grid), grid, t)) & jnp.isfinite(grid)
    some, place = jnp.any(is_bad), jnp.argmax(is_bad)
    high = jnp.where(some, grid[place], reached)
    low = jnp.where(place > 0, grid[jnp.maximum(place - 1, 0)], t)

    def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = 0.5 * (ends[0] + ends[1])
        wrong = bad(middle)
        return jnp.where(wrong, ends[0], middle), jnp.where(wrong, middle, ends[1])

    high = jnp.where(some, lax.fori_loop(0, 60, halve, (low, high))[1], reached)
    late = high + 1e-10 * (until - t)
    hit = some & (field.guards(late, at(jnp.minimum(late, reached))) < 0.0)

    steps = jnp.sum(starts < high)
    lengths = jnp.minimum(ends, high) - starts
    times = starts[:, None] + lengths[:, None] * (0.5 * (jnp.asarray(_NODES)[None] + 1.0))
    keep = lambda s: field.remembered(s, at(s))  # noqa: E731
    # collocation: exact at the Chebyshev points, from which the inverse Vandermonde has the powers
    samples = jax.vmap(jax.vmap(keep))(jnp.where(jnp.isfinite(times), times, t))
    powers = jnp.einsum("ij,sjn->sin", jnp.asarray(_TO_POWERS), samples)
    end_y = at(high)
    z, lags = field.delayed(high, end_y)
    good = jnp.all(jnp.isfinite(end_y)) & (reached > t)
    return Segment(high, end_y, steps, starts, lengths, powers, hit, high - lags, z, lags, good)


class _History:
    """Pieces and breaking points so far, on the host."""

    def __init__(self, t0: float, size: int) -> None:
        self.t0, self.count = t0, 0
        self.starts = np.full(1024, np.inf)
        self.lengths = np.ones(1024)
        self.powers = np.zeros((1024, DEGREE + 1, size))
        self.times: list[float] = []
        self.nodes: list[int] = []
        self.orders: list[int] = []

    def add_break(self, time: float, order: int) -> None:
        """A breaking point at the start of the next piece."""
        if order < LAST_ORDER:
            self.times.append(time)
            self.nodes.append(self.count)
            self.orders.append(order)

    def extend(self, segment: Segment) -> None:
        """Append the pieces of a segment; capacity is doubled so that few shapes are compiled."""
        old, self.count = self.count, self.count + int(segment.steps)
        if self.count > self.starts.size:
            capacity = self.starts.size
            self.starts = np.append(self.starts, np.full(capacity, np.inf))
            self.lengths = np.append(self.lengths, np.ones(capacity))
            self.powers = np.append(self.powers, np.zeros_like(self.powers), axis=0)
        new = slice(old, self.count)
        self.starts[new] = segment.starts[: self.count - old]
        self.lengths[new] = segment.lengths[: self.count - old]
        self.powers[new] = segment.powers[: self.count - old]

    def pieces(self) -> Pieces:
        """All pieces, as they are now."""
        return Pieces(*(jnp.array(part) for part in (self.starts, self.lengths, self.powers)))

    def sides(self, passed: np.ndarray, lags: np.ndarray, t: float) -> Sides:
        """Ranges that lags read after passing `passed` breaking points each, at time t."""
        present = lags <= 0.0
        low = [self.nodes[max(p - 1, 0)] for p in passed]
        following = [p < len(self.times) for p in passed]
        high = [
            self.nodes[p] - 1 if more else self.count - 1
            for p, more in zip(passed, following, strict=True)
        ]
        ahead = [self.times[p] if more else t for p, more in zip(passed, following, strict=True)]
        return Sides(
            before=jnp.asarray(passed == 0),
            present=jnp.asarray(present),
            low=jnp.asarray(low, jnp.int32),
            high=jnp.asarray(np.maximum(high, low), jnp.int32),
            ahead=jnp.asarray(np.where(present, np.inf, ahead)),
        )


def _integrate(problem: Problem, mesh: MethodOfSteps) -> tuple[Pieces, Array, Array, Status]:
    """The stored past, the nodes, the breaking points and the status, segment by segment."""
    system, y0, t0, t1, args = problem[:5]
    lags_at = jax.jit(lambda t, y: system.lags(t, y, args, no_look))
    start, end = float(t0), float(t1)
    past = _History(start, system.kept_size(y0, t0, args))
    past.add_break(start, 0 if problem.jump else 1)
    tie = 1e-10 * (end - start)
    t, y = start, y0
    lags = np.asarray(lags_at(t0, y0))
    passed = np.where(lags <= 0.0, 1, 0)
    breaks: list[float] = []
    mode = jnp.zeros((0,), jnp.int32)
    if system.events is not None:
        field = _Field(system, past.pieces(), past.sides(passed, lags, start), mode, t0, args)
        mode = system.events.initial(t0, y0, field.delayed(t0, y0)[0], args)
    status = Status.ok
    while end - t > 1e-12 * (end - start) and status is Status.ok:
        lags = np.asarray(lags_at(jnp.asarray(t), y))
        apart = lags[lags > 0.0]
        shortest = float(apart.min()) if apart.size else end - start
        if np.any(lags < -tie):
            status = Status.lag_negative
        elif shortest < 1e-6 * (end - start):
            status = Status.lag_below_step
        else:
            field = _Field(
                system, past.pieces(), past.sides(passed, lags, t), mode, jnp.asarray(t0), args
            )
            until = jnp.asarray(min(t + shortest, end))
            tolerance = (jnp.asarray(mesh.rtol), jnp.asarray(mesh.atol))
            segment = _segment(field, mesh.solver, jnp.asarray(t), until, y, tolerance)
            status = _judge(segment, field, past, passed, tie)
        if status is not Status.ok:
            break
        past.extend(segment)
        t, y = float(segment.end), segment.y
        y, mode, order = _switch(system, segment, mode, args)
        arguments = np.asarray(segment.arguments)
        for i, argument in enumerate(arguments):
            while passed[i] < len(past.times) and past.times[passed[i]] <= argument + tie:
                order = min(order, past.orders[passed[i]] + 1)
                passed[i] += 1
        if order <= LAST_ORDER:
            breaks.append(t)
            past.add_break(t, order)
    nodes = np.append(past.starts[: past.count], t)
    if not past.count:  # it failed at once: the state at t0 is the last good one
        past.starts[0], past.powers[0, 0, -y0.size :] = start, y0
    return past.pieces(), jnp.asarray(nodes), jnp.asarray(breaks, float), status


def _judge(
    segment: Segment, field: _Field, past: _History, passed: np.ndarray, tie: float
) -> Status:
    """Status of a segment: ok if it may be accepted."""
    each = np.asarray(field.system.lag_of, int)
    if np.any(~np.isfinite(np.asarray(segment.z)) & (passed == 0)[each]):
        return Status.history_out_of_range
    if not bool(segment.good):
        return Status.nonfinite
    behind = [past.times[p - 1] if p else -np.inf for p in passed]
    if np.any(np.asarray(segment.arguments) < np.asarray(behind) - tie):
        return Status.nonmonotone_argument
    present = np.asarray(field.sides.present)
    if np.any(np.asarray(segment.lags)[present] > tie):
        return Status.lag_below_step
    return Status.ok


def _switch(system: System, segment: Segment, mode: Array, args: Args) -> tuple[Array, Array, int]:
    """State, mode and order of the jump after the events at the end of a segment."""
    order = LAST_ORDER + 1
    y = segment.y
    if system.events is None:
        return y, mode, order
    hit = segment.hit[: segment.hit.size - len(system.columns)]
    if bool(jnp.any(hit)):
        new, moved = system.events.switch(segment.end, y, segment.z, args, mode, hit)
        jumped = bool(jnp.any(jnp.abs(moved - y) > 1e-9 * (1.0 + jnp.abs(y))))
        return moved, new, 0 if jumped else 1
    return y, mode, order
