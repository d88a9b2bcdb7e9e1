"""Steps of one length with the history in a ring: compiled once, fast in batches."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from fluidcc.fluid import hermite
from fluidcc.fluid.status import Status, first
from fluidcc.fluid.system import Args, System

MOST_PARTS = 16
"""States up to this size are stepped number by number."""


class Saved(NamedTuple):
    """What a run on a uniform mesh leaves: values at the saved times, and how it ended."""

    y: Array
    slope: Array
    record: Array
    status: Array
    status_time: Array
    steps: Array


class _Carry(NamedTuple):
    n: Array  # number of the latest node
    y: tuple[Array, ...]  # state there, in parts
    k: tuple[Array, ...]  # step times its slope
    before: tuple[Array, Array] | None  # both at the node before, where the ring lacks them
    ring: Array  # (slots, 2 U)
    mode: Array
    guards: Array  # at the latest node
    status: Array
    status_time: Array


def _split(y: Array) -> tuple[Array, ...]:
    """A state in its numbers: in a batch each is an array over the lanes, which vectorises."""
    return tuple(y) if y.size <= MOST_PARTS else (y,)


def _join(parts: tuple[Array, ...]) -> Array:
    """The state that has been split."""
    return parts[0] if parts[0].ndim else jnp.stack(parts)


def _rows(ring: Array, index: Array) -> Array:
    """Rows of the ring, whose length is a power of two, without clamps."""
    index = index & (ring.shape[0] - 1)
    return ring.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)


class _Problem:
    """One system on one uniform mesh: the functions that a step is made of."""

    def __init__(self, system: System, t0: Array, step: Array, args: Args, width: int) -> None:
        self.system, self.t0, self.step, self.args, self.width = system, t0, step, args, width
        self.lag_of = jnp.array(system.lag_of, jnp.int32)
        self.column_of = jnp.array(system.column_of, jnp.int32)
        self.whole_rows = system.reads_rows(width)
        kept = [column in system.held for column in range(width)]
        self.held = jnp.array(kept) if any(kept) else None
        self.values_only = jnp.array([1.0] * width + [0.0] * width)

    def time(self, n: Array, c: float) -> Array:
        """Time [unit of t] of the stage at the fraction `c` of the step after node n."""
        return self.t0 + (n.astype(self.t0.dtype) + c) * self.step

    def _past(self, time: Array, column: Array) -> Array:
        """Record before t0 at one time."""
        return self.system.history(time[None], column[None], self.args)[0]

    def stepwise(
        self, value: Array, back: Array, older: Array, newer: Array, column: Array
    ) -> Array:
        """`value`, but in held columns that of the latest node, `back` steps after the time."""
        if self.held is None:
            return value
        step = jnp.where(back < 1e-9, newer, older)
        return jnp.where(self.held[column], step, value)

    def look(self, ring: Array, n: Array, time: Array, column: Any) -> Array:
        """Value of one column of the record at an earlier time."""
        column = jnp.asarray(column, jnp.int32)
        back = jnp.maximum(self.time(n, 0.0) - time, 0.0) / self.step
        whole = back.astype(jnp.int32)
        older, newer = _rows(ring, n - whole - 1), _rows(ring, n - whole)
        value = hermite.interpolate(
            1.0 - (back - whole.astype(back.dtype)),
            older[column],
            older[column + self.width],
            newer[column],
            newer[column + self.width],
        )
        value = self.stepwise(value, back - jnp.floor(back), older[column], newer[column], column)
        return jnp.where(time < self.t0, self._past(jnp.minimum(time, self.t0), column), value)

    def delayed(self, ring: Array, n: Array, c: Array, y: Array) -> tuple[Array, Array]:
        """Values (P,) that are read at the stage (n + c, y), and the lags in steps (M,)."""
        t = self.time(n, c)  # pyright: ignore[reportArgumentType]
        lags = self.system.lags(t, y, self.args, lambda s, j, _: self.look(ring, n, s, j))
        lag_steps = lags / self.step
        if not self.system.columns:
            return jnp.zeros((0,), y.dtype), lag_steps
        back = jnp.maximum(lag_steps - c, 0.0)  # relative to node n: no absolute time enters
        whole = back.astype(jnp.int32)
        weight = hermite.weights(1.0 - (back - whole.astype(back.dtype)))
        if self.whole_rows:
            older, newer = _rows(ring, n - whole - 1), _rows(ring, n - whole)
            u = self.width
            parts = (older[:, :u], older[:, u:], newer[:, :u], newer[:, u:])
            terms = [w[:, None] * part for w, part in zip(weight, parts, strict=True)]
            z = (terms[0] + terms[1] + terms[2] + terms[3]).reshape(-1)
        else:
            flat, mask = ring.reshape(-1), ring.shape[0] - 1
            whole = whole[self.lag_of]
            older = ((n - whole - 1) & mask) * (2 * self.width) + self.column_of
            newer = ((n - whole) & mask) * (2 * self.width) + self.column_of
            ends = [
                flat.at[at].get(mode="promise_in_bounds", wrap_negative_indices=False)
                for at in (older, older + self.width, newer, newer + self.width)
            ]
            z = jnp.zeros((), y.dtype)
            for w, value in zip(weight, ends, strict=True):
                z = z + w[self.lag_of] * value
            part = (back - jnp.floor(back))[self.lag_of]
            z = self.stepwise(z, part, ends[0], ends[2], self.column_of)
        times = jnp.minimum((t - lags)[self.lag_of], self.t0)
        ago = (n.astype(lags.dtype) + c - lag_steps)[self.lag_of]
        return jnp.where(ago < 0.0, self.system.history(times, self.column_of, self.args), z), (
            lag_steps
        )

    def slope(self, ring: Array, n: Array, c: float, y: Array, mode: Array) -> tuple[Array, Array]:
        """Step times dy/dt at a stage, and the lags in steps."""
        if self.system.limit is not None:
            y = self.system.limit(y, mode, self.args)
        z, lag_steps = self.delayed(ring, n, jnp.asarray(c, y.dtype), y)
        t = self.time(n, c)
        return self.step * self.system.slope(t, y, z, self.args, mode), lag_steps

    def remembered(self, ring: Array, n: Array, c: float, y: Array, k: Array, mode: Array) -> Array:
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

    def switched(self, carry: _Carry, y: Array) -> tuple[Array, Array, Array]:
        """State, mode and guards at the end of the step after its events.

        A guard that would reach zero within a millionth of a step is taken to be there: events
        at mesh points must not depend on rounding.
        """
        events, mode = self.system.events, carry.mode
        if events is None:
            return y, mode, carry.guards
        z, _ = self.delayed(carry.ring, carry.n, jnp.ones((), y.dtype), y)
        t = self.time(carry.n, 1.0)
        guards = events.guards(t, y, z, self.args, mode)
        hit = guards < 1e-6 * jnp.maximum(carry.guards - guards, 0.0)
        new_mode, moved = events.switch(t, y, z, self.args, mode, hit)
        some = jnp.any(hit)
        y = jnp.where(some, moved, y)
        mode = jnp.where(some, new_mode.astype(mode.dtype), mode)
        return y, mode, events.guards(t, y, z, self.args, mode)

    def judge(self, carry: _Carry, row: Array, k: Array, lags: list[Array]) -> Array:
        """Status after a step whose stages had these lags, in steps."""
        finite = jnp.all(jnp.isfinite(row)) & jnp.all(jnp.isfinite(k))
        status = first(carry.status, ~finite, Status.nonfinite)
        if not self.system.columns:
            return status
        slots = carry.ring.shape[0]
        shortest, longest = jnp.min(jnp.stack(lags)), jnp.max(jnp.stack(lags))
        status = first(status, shortest < 0.0, Status.lag_negative)
        status = first(status, shortest < 1.0 - 1e-9, Status.lag_below_step)
        reach = jnp.minimum(longest, (carry.n + 1).astype(longest.dtype))
        return first(status, reach > slots - 2.0, Status.lag_exceeds_ring)

    def advance(self, carry: _Carry) -> _Carry:
        """One Runge-Kutta step; a trajectory that fails stays where it was."""
        n, ring, mode = carry.n, carry.ring, carry.mode
        add = lambda f, *parts: tuple(map(f, carry.y, *parts))  # noqa: E731

        def slope(c: float, y: tuple[Array, ...]) -> tuple[tuple[Array, ...], Array]:
            k, lags = self.slope(ring, n, c, _join(y), mode)
            return _split(k), lags

        k1 = carry.k
        k2, lag2 = slope(0.5, add(lambda y, a: y + 0.5 * a, k1))
        k3, lag3 = slope(0.5, add(lambda y, a: y + 0.5 * a, k2))
        k4, lag4 = slope(1.0, add(lambda y, a: y + a, k3))
        new = _join(add(lambda y, a, b, c, d: y + (a + 2.0 * (b + c) + d) / 6.0, k1, k2, k3, k4))
        if self.system.limit is not None:
            new = self.system.limit(new, mode, self.args)
        new, new_mode, guards = self.switched(carry, new)
        k, lag5 = self.slope(ring, n, 1.0, new, new_mode)

        row = self.remembered(ring, n, 1.0, new, k, new_mode)
        status = self.judge(carry, row, k, [lag2, lag3, lag4, lag5])
        ok = status == Status.ok
        y = tuple(jnp.where(ok, a, b) for a, b in zip(_split(new), carry.y, strict=True))
        k = tuple(jnp.where(ok, a, 0.0) for a in _split(k))
        before = None
        if self.system.record is None:
            row = jnp.concatenate([_join(y), _join(k)])
        else:
            row = jnp.where(ok, row, _rows(ring, n) * self.values_only)
            before = (_join(carry.y), _join(k1))
        slot = jnp.bitwise_and(n + 1, ring.shape[0] - 1)
        return _Carry(
            n=n + 1,
            y=y,
            k=k,
            before=before,
            ring=lax.dynamic_update_slice(ring, row[None], (slot, jnp.zeros_like(slot))),
            mode=jnp.where(ok, new_mode, mode),
            guards=guards,
            status=status,
            status_time=jnp.where(ok, self.time(n, 1.0), carry.status_time),
        )

    def start(self, y0: Array, slots: int) -> _Carry:
        """The first node: the state at t0 in an empty ring."""
        n = jnp.zeros((), jnp.int32)
        ring = jnp.zeros((slots, 2 * self.width), y0.dtype)
        mode, guards = jnp.zeros((0,), jnp.int32), jnp.zeros((0,), y0.dtype)
        if self.system.events is not None:
            z, _ = self.delayed(ring, n, jnp.zeros((), y0.dtype), y0)
            mode = self.system.events.initial(self.t0, y0, z, self.args).astype(jnp.int32)
            guards = self.system.events.guards(self.t0, y0, z, self.args, mode)
        k, _ = self.slope(ring, n, 0.0, y0, mode)
        finite = jnp.isfinite(k)
        status = first(jnp.int32(Status.ok), ~jnp.all(finite), Status.nonfinite)
        k = jnp.where(finite, k, 0.0)
        row = self.remembered(ring, n, 0.0, y0, k, mode)
        return _Carry(
            n=n,
            y=_split(y0),
            k=_split(k),
            before=None if self.system.record is None else (y0, k),
            ring=ring.at[0].set(row),
            mode=mode,
            guards=guards,
            status=status,
            status_time=self.t0,
        )

    def around(self, carry: _Carry) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Values and slopes of state and record at the last two nodes, for saving in between."""
        u, n = self.width, carry.n
        older, newer = _rows(carry.ring, jnp.maximum(n - 1, 0)), _rows(carry.ring, n)
        record = (older[:u], older[u:], newer[:u], newer[u:])
        if carry.before is None:
            return record, record
        return (*carry.before, _join(carry.y), _join(carry.k)), record

    def run(self, carry: _Carry, until: Array) -> _Carry:
        """Steps up to the first node that is not before `until`."""
        target = jnp.ceil((until - self.t0) / self.step - 1e-9).astype(jnp.int32)
        return lax.while_loop(lambda c: c.n < target, self.advance, carry)

    def cause(self, carry: _Carry) -> Array:
        """Final status: tells values that are not finite from a history that ends too early."""
        lost = jnp.zeros((), bool)
        if self.system.columns:
            look = lambda s, j, _: self.look(carry.ring, carry.n, s, j)  # noqa: E731
            lags = self.system.lags(carry.status_time, _join(carry.y), self.args, look)
            times = (carry.status_time - lags)[self.lag_of]
            past = self.system.history(jnp.minimum(times, self.t0), self.column_of, self.args)
            lost = jnp.any((times < self.t0) & ~jnp.isfinite(past))
        code = jnp.int32(Status.history_out_of_range)
        return jnp.where((carry.status == Status.nonfinite) & lost, code, carry.status)


def integrate(
    system: System, y0: Array, t0: Array, t1: Array, step: Array, ts: Array, args: Args, slots: int
) -> Saved:
    """Integrate from t0 to t1 and save at the increasing times `ts`, shape (S,).

    Classical Runge-Kutta method, first same as last; cubic Hermite interpolation of the history.
    `slots` is the static length of the ring, a power of two.
    """
    width = system.record_size(y0, t0, args)
    problem = _Problem(system, t0, step, args, width)

    def save(carry: _Carry, t: Array) -> tuple[_Carry, tuple[Array, Array, Array]]:
        carry = problem.run(carry, t)
        theta = (t - problem.time(carry.n, -1.0)) / step
        at, record = problem.around(carry)
        y, slope = jax.jvp(lambda s: hermite.interpolate(s, *at), (theta,), (jnp.ones_like(theta),))
        record = hermite.interpolate(theta, *record)
        return carry, (y, slope / step, record)

    carry, (ys, slopes, records) = lax.scan(save, problem.start(y0, slots), ts)
    carry = problem.run(carry, t1)
    status = problem.cause(carry)
    return Saved(ys, slopes, records, status, carry.status_time, carry.n)


def evaluate(saved: tuple[Array, Array, Array], t: Array) -> Array:
    """State at times t (S,), from the times, states and slopes of all nodes: (S, n)."""
    nodes, y, slope = saved
    newer = jnp.clip(jnp.searchsorted(nodes, t), 1, nodes.size - 1)
    length = nodes[newer] - nodes[newer - 1]
    theta = ((t - nodes[newer - 1]) / length)[:, None]
    length = length[:, None]
    return hermite.interpolate(
        theta, y[newer - 1], length * slope[newer - 1], y[newer], length * slope[newer]
    )
