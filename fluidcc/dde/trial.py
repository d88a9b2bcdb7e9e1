"""One trial step on a located mesh: its stages, delayed values and guards; and the search for
the length at which a step ends on an event.

Within a trial step the mode and the side of every breaking point are fixed, so that the guards
are smooth in its length.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from fluidcc.dde import track as tr
from fluidcc.dde.system import Args, System
from fluidcc.dde.track import Track

STAGES = (  # time and weight of the slope before; weights in the sum, and in the error estimate
    (0.5, 0.5, 1.0 / 3.0, -1.0 / 6.0),
    (0.5, 0.5, 1.0 / 3.0, -1.0 / 6.0),
    (1.0, 1.0, 1.0 / 6.0, 0.0),
)
_OFFSET = 1e-12
"""Of a state: distance from a kink at which one side is evaluated, above rounding errors."""

MAX_TRIALS = 60


class Search(NamedTuple):
    """State of the search for the end of the present step."""

    first_guards: Array  # at the start of the step
    low: Array  # longest length tried at which every guard was positive
    high: Array  # shortest length tried at which some guard was negative, or infinity
    high_guards: Array
    last: Array  # latest length tried
    last_guards: Array
    landing: Array  # whether the next trial is the one that lands
    hit: Array  # (m,) guards that are zero there
    trials: Array
    passes: Array  # iterations of a step that reads its own interpolant


def fresh(guards: Array) -> Search:
    """The search at the start of a step, with the guards there."""
    zero = jnp.zeros((), guards.dtype)
    return Search(
        first_guards=guards,
        low=zero,
        high=zero + jnp.inf,
        high_guards=guards,
        last=zero,
        last_guards=guards,
        landing=jnp.zeros((), bool),
        hit=jnp.zeros(guards.shape, bool),
        trials=jnp.int32(0),
        passes=jnp.int32(0),
    )


def narrow(search: Search, h: Array, guards: Array) -> tuple[Search, Array, Array]:
    """Update the bracket by a trial; also the next length to try, and the guard that decides it.

    Each guard that is negative at the far end predicts its zero by the secant through the last
    two trials; the earliest counts. A length outside the bracket is replaced by its middle.
    """
    bad = jnp.any(guards <= 0.0)
    low = jnp.where(bad, search.low, h)
    high = jnp.where(bad, h, search.high)
    high_guards = jnp.where(bad, guards, search.high_guards)
    gap = h - search.last
    fall = (guards - search.last_guards) / jnp.where(gap == 0.0, 1.0, gap)
    usable = (high_guards <= 0.0) & (fall < 0.0)
    zero = jnp.where(usable, h - guards / jnp.where(usable, fall, -1.0), jnp.inf)
    index = jnp.where(jnp.any(usable), jnp.argmin(zero), jnp.argmin(high_guards))
    length = zero[index]
    inside = (length > low) & (length <= high) & (search.trials < MAX_TRIALS // 2)
    length = jnp.where(inside, length, 0.5 * (low + high))
    narrowed = search._replace(
        low=low,
        high=high,
        high_guards=high_guards,
        last=h,
        last_guards=guards,
        trials=search.trials + 1,
    )
    return narrowed, length, index


class Reading(NamedTuple):
    """Where each lag reads: its argument lies between two breaking points, until an event."""

    index: Array  # (M,) interval of the argument at the start of the step
    following: Array  # (M,) number of the next breaking point that the lag can see
    low: Array  # (M,) first interval since the latest of them
    high: Array  # (M,) last interval before the next one
    behind: Array  # (M,) time of the latest breaking point passed; -inf in the history
    ahead: Array  # (M,) time of the next one, infinite if there is none yet

    @property
    def early(self) -> Array:
        """Whether a lag still reaches into the history, (M,)."""
        return jnp.isinf(self.behind)


class Carry(NamedTuple):
    """State between two trials.

    If it is `arriving`, the start or an event has just changed state, mode or reading at t: slopes
    and record are still those from before.
    """

    arriving: Array
    orders: Array  # (U,) derivative that jumps at t, per column of the record, while arriving
    node: Array  # number of steps made
    t: Array
    y: Array
    k: Array  # dy/dt just after t
    here: Array  # record and state just after t, with their slopes: (2 V,)
    h: Array  # length of the next trial
    longest: Array  # that its tolerance allows the next step
    excess: Array  # largest estimated error of a step so far, in units of the tolerance
    mode: Array
    signs: Array  # of the kinks
    reading: Reading
    track: Track
    events: Array  # (N,) times of all breaking points and changes of mode
    count: Array
    chatter: Array
    search: Search
    status: Array
    status_time: Array
    done: Array


class Trial(NamedTuple):
    """The end of one Runge-Kutta step of some length; of length 0 if the carry is arriving."""

    y: Array
    k: Array
    here: Array  # record and state there, with slopes, on the side of the step: (2 V,)
    z: Array
    arguments: Array  # (M,) t - lag
    index: Array  # (M,) intervals that hold them
    guards: Array
    shortest: Array  # lag at the end; in the stages, less accurate, one may seem negative
    overlap: Array  # whether a lag reached into the step itself
    rough: Array  # (n,) distance of the sum of the stages from that of the midpoint rule


class Stepper:
    """One system with one set of parameters: the functions that a step is made of."""

    def __init__(self, system: System, t0: Array, t1: Array, step: Array, args: Args) -> None:
        self.system, self.t0, self.t1, self.step, self.args = system, t0, t1, step, args
        self.lag_of = jnp.array(system.lag_of, jnp.int32)
        self.column_of = jnp.array(system.column_of, jnp.int32)
        self.lags = len(system.columns)

    def look(self, carry: Carry, time: Array, column: Array | int, lag: Array | int) -> Array:
        """Value of one column of the record at the argument `time` of a lag.

        Beyond the breaking points around the argument it is extended linearly: smooth, as all that
        is fixed within a step, and with the slope that it has at the breaking point.
        """
        reading, column = carry.reading, jnp.asarray(column, jnp.int32)
        lag = jnp.asarray(lag, jnp.int32)
        index, low, high, behind, ahead = (
            tr.at(part, lag)
            for part in (reading.index, reading.low, reading.high, reading.behind, reading.ahead)
        )
        before = self.system.history(jnp.minimum(time, self.t0)[None], column[None], self.args)[0]
        near = jnp.clip(time, behind, ahead)
        index = tr.walk(carry.track, index, near, low, jnp.minimum(high, carry.node))
        value, rise = jax.jvp(
            lambda s: tr.read_columns(carry.track, index, s, column),
            (near,),
            (jnp.ones_like(near),),
        )
        return jnp.where(jnp.isinf(behind), before, value + rise * (time - near))

    def delayed(self, carry: Carry, t: Array, y: Array) -> tuple[Array, Array, Array]:
        """Values (P,) that are read at (t, y), the lags (M,) and the intervals read (M,)."""
        if not self.lags:
            none = jnp.zeros((0,), y.dtype)
            return none, none, carry.reading.index
        track, reading = carry.track, carry.reading
        lags = self.system.lags(t, y, self.args, lambda s, j, m: self.look(carry, s, j, m))
        time = t - jnp.maximum(lags, 0.0)
        high = jnp.minimum(reading.high, carry.node)
        index = tr.walk(track, reading.index, time, reading.low, high)
        if self.system.record is None and self.system.reads_rows(tr.width(track)):
            z = tr.read_rows(track, index, time).reshape(-1)
        else:
            z = tr.read_columns(track, index[self.lag_of], time[self.lag_of], self.column_of)
        past = jnp.minimum(time, self.t0)[self.lag_of]
        before = self.system.history(past, self.column_of, self.args)
        return jnp.where(reading.early[self.lag_of], before, z), lags, index

    def slope(self, t: Array, y: Array, z: Array, mode: Array, signs: Array) -> Array:
        """dy/dt on the present side of all kinks, although a stage may have crossed one.

        Such a state is projected back onto the kink: a step that lands there needs the limit of
        dy/dt from this side, also if the right-hand side jumps.
        """
        return self.system.slope(t, self.one_sided(t, y, z, mode, signs), z, self.args, mode)

    def one_sided(self, t: Array, y: Array, z: Array, mode: Array, signs: Array) -> Array:
        """The state on the present side of all kinks: projected onto those that it has crossed."""
        kinks = self.system.kinks
        if kinks is None or not signs.size:
            return y

        def distances(y: Array) -> Array:
            return kinks(t, y, z, self.args, mode)

        def project(moved: Array, kink: tuple[Array, ...]) -> tuple[Array, None]:
            sign, away, towards = kink
            least = _OFFSET * jnp.sum(jnp.abs(towards) * jnp.abs(y))
            away, norm = away + towards @ moved, jnp.sum(towards**2)
            short = (sign * away < least) & (norm > 0.0)
            length = jnp.where(short, (sign * least - away) / jnp.where(short, norm, 1.0), 0.0)
            return moved + length * towards, None

        rows = (signs, distances(y), jax.jacfwd(distances)(y))
        return y + lax.scan(project, jnp.zeros_like(y), rows)[0]

    def stages(self, carry: Carry, h: Array) -> tuple[Array, Array, Array]:
        """The state at the end of a classical Runge-Kutta step of length h, its error estimate but
        for the last slope, and how far the lags reach behind t at least.

        The stages are a loop, which compiles several times faster than copies of the field.
        """

        def stage(state: tuple[Array, ...], tableau: Array) -> tuple[tuple[Array, ...], None]:
            k, total, rough, reach = state
            c, previous, weight, error = tableau
            y = carry.y + h * (previous * k)
            z, lags, _ = self.delayed(carry, carry.t + c * h, y)
            k = self.slope(carry.t + c * h, y, z, carry.mode, carry.signs)
            reach = jnp.minimum(reach, jnp.min(lags - c * h, initial=jnp.inf))
            return (k, total + weight * k, rough + error * k, reach), None

        start = (carry.k, carry.k / 6.0, carry.k / 6.0, jnp.full_like(carry.t, jnp.inf))
        (_, total, rough, reach), _ = lax.scan(stage, start, jnp.array(STAGES))
        return carry.y + h * total, rough, reach

    def trial(self, carry: Carry, h: Array) -> Trial:
        """A step of length h, or the node at which the carry is arriving: one evaluation at its end
        serves both.
        """
        h = jnp.where(carry.arriving, 0.0, h)
        nothing = (carry.y, jnp.zeros_like(carry.k), jnp.full_like(carry.t, jnp.inf))
        y, rough, reach = lax.cond(carry.arriving, lambda: nothing, lambda: self.stages(carry, h))
        t = carry.t + h
        z, lags, index = self.delayed(carry, t, y)
        k = self.slope(t, y, z, carry.mode, carry.signs)
        arguments = carry.t - (lags - h)
        known = jnp.where(carry.arriving & ~jnp.isfinite(k), 0.0, k)
        reach = jnp.minimum(reach, jnp.min(lags - h, initial=jnp.inf))
        return Trial(
            y=y,
            k=k,
            here=self.remembered(carry, t, y, known),
            z=z,
            arguments=arguments,
            index=index,
            guards=self.guards(carry, t, y, z, arguments),
            shortest=jnp.min(t - arguments, initial=jnp.inf),
            overlap=reach < 0.0,
            rough=h * (rough + k / 6.0),
        )

    def guards(self, carry: Carry, t: Array, y: Array, z: Array, arguments: Array) -> Array:
        """Functions that are positive up to the next event: modes, kinks, breaking points."""
        parts = []
        if self.system.events is not None:
            one_sided = self.one_sided(t, y, z, carry.mode, carry.signs)
            parts.append(self.system.events.guards(t, one_sided, z, self.args, carry.mode))
        if self.system.kinks is not None:
            parts.append(carry.signs * self.system.kinks(t, y, z, self.args, carry.mode))
        ahead = carry.reading.ahead
        known = jnp.isfinite(ahead)
        parts.append(jnp.where(known, jnp.where(known, ahead, 0.0) - arguments, 1.0))
        return jnp.concatenate(parts)

    def remembered(self, carry: Carry, t: Array, y: Array, k: Array) -> Array:
        """Record, state and their slopes at the end of a step, just before t; just after t if the
        carry is arriving: (2 V,).
        """
        record = self.system.record
        if record is None:
            return jnp.concatenate([y, k])
        away = jnp.where(carry.arriving, 1e-9, -1e-9) * self.step  # off the kink, to the right side

        def along(t: Array, y: Array) -> Array:
            z, _, _ = self.delayed(carry, t, y)
            return record(t, y, z, self.args, carry.mode)

        u, du = jax.jvp(along, (t + away, y + away * k), (jnp.ones_like(t), k))
        return jnp.concatenate([u - away * du, y, du, k])

    def landing(self, carry: Carry, h: Array, index: Array) -> tuple[Array, Array]:
        """Length at which guard `index` is zero, differentiable, and all guards zero there."""

        def guards_at(h: Array) -> Array:
            t, y = carry.t + h, self.stages(carry, h)[0]
            z, lags, _ = self.delayed(carry, t, y)
            return self.guards(carry, t, y, z, carry.t - (lags - h))

        fixed = lax.stop_gradient(h)
        guards, fall = jax.jvp(guards_at, (fixed,), (jnp.ones_like(fixed),))
        fall = lax.stop_gradient(fall)
        # a guard that the last event left below zero is hit at once, and moves with that event
        falls = (fall < 0.0) & ((carry.search.first_guards > 0.0) | (carry.search.low > 0.0))
        move = jnp.where(falls, -guards / jnp.where(falls, fall, -1.0), jnp.inf)
        correction = jnp.where(falls[index], move[index], 0.0)
        near = jnp.abs(move - correction) <= 1e-9 * self.step
        low, high = carry.search.low, carry.search.high
        inside = (fixed + correction >= low) & (fixed + correction <= high)
        hit = near.at[index].set(True)
        lasting = jnp.maximum(jnp.where(inside, fixed + correction, fixed), 1e-14 * self.step)
        # the value stays inside the bracket; the derivative is always that of the correction, which
        # is that of the time of the event by the implicit function theorem
        return lax.stop_gradient(lasting) + (correction - lax.stop_gradient(correction)), hit
