"""One trial step on a located mesh: its stages, what it reads, and its guards; and the search for
the length at which a step ends on an event.

Within a trial step the mode and the side of every breaking point are fixed, so that the guards
are smooth in its length.
"""

from typing import Any, NamedTuple

from jax import Array, lax

from fluidcc.arrays import jax, jnp
from fluidcc.dde import track as tr
from fluidcc.dde.system import Args, System
from fluidcc.dde.track import Track

STAGES = (  # time, weight of the slope before, weight in the sum, whether the sum is the state
    (0.5, 0.5, 1.0 / 3.0, 0.0),
    (0.5, 0.5, 1.0 / 3.0, 0.0),
    (1.0, 1.0, 1.0 / 6.0, 0.0),
    (1.0, 0.0, 0.0, 1.0),
)
_BESIDE = 1e-12
"""Of a state: how far beside a kink its one side is taken, above rounding errors."""

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
    passes: Array  # of a step on its own interpolant


def fresh(guards: Array) -> Search:
    """The search at the start of a step where the guards have these values."""
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
    """Take a trial into the bracket; the next length to try, and the guard that decides it.

    Each guard that is negative at the far end predicts its zero by the secant through the last
    two trials; the first counts. What leaves the bracket is replaced by its middle.
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
    """Interval of each lag: its argument lies between two breaking points, until an event."""

    index: Array  # (M,) interval of the argument at the start of the step
    following: Array  # (M,) number of the next breaking point that the lag can see
    low: Array  # (M,) first interval since the latest of them
    high: Array  # (M,) last interval before the next one
    behind: Array  # (M,) time of the latest breaking point passed; -inf in the history
    ahead: Array  # (M,) time of the next one, infinite where there is none yet

    @property
    def early(self) -> Array:
        """Whether a lag still reaches into the history, (M,)."""
        return jnp.isinf(self.behind)


class Carry(NamedTuple):
    """State between two trials."""

    node: Array  # number of steps made
    t: Array
    y: Array
    k: Array  # dy/dt just after t
    here: Array  # what is remembered just after t, with its slope: (2 V,)
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
    """One Runge-Kutta step of some length."""

    y: Array
    k: Array
    z: Array
    arguments: Array  # (M,) t - lag at the end
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

        Beyond the breaking points around the argument it goes on straight: smooth, as all that is
        fixed within a step, and rising with time wherever it does at the breaking point.
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
        """dy/dt on the side of all kinks that holds, where a stage may have strayed over one.

        The state goes back onto the kink, as far as it is from it: what a step that lands there
        needs is its limit from this side, also where the right-hand side jumps.
        """
        return self.system.slope(t, self.beside(t, y, z, mode, signs), z, self.args, mode)

    def beside(self, t: Array, y: Array, z: Array, mode: Array, signs: Array) -> Array:
        """The state on the side of all kinks that holds: one that strayed over a kink, on it."""
        kinks = self.system.kinks
        if kinks is None or not signs.size:
            return y

        def distances(y: Array) -> Array:
            return kinks(t, y, z, self.args, mode)

        def back(moved: Array, kink: tuple[Array, ...]) -> tuple[Array, None]:
            sign, away, towards = kink
            least = _BESIDE * jnp.sum(jnp.abs(towards) * jnp.abs(y))
            away, norm = away + towards @ moved, jnp.sum(towards**2)
            short = (sign * away < least) & (norm > 0.0)
            length = jnp.where(short, (sign * least - away) / jnp.where(short, norm, 1.0), 0.0)
            return moved + length * towards, None

        rows = (signs, distances(y), jax.jacfwd(distances)(y))
        return y + lax.scan(back, jnp.zeros_like(y), rows)[0]

    def trial(self, carry: Carry, h: Array) -> Trial:
        """Classical Runge-Kutta step of length h, and the slope at its end.

        The stages are a loop, which compiles several times faster than four copies of the field.
        """

        def stage(state: tuple[Array, ...], tableau: Array) -> tuple[tuple[Array, ...], Any]:
            k, total, _, _ = state
            c, previous, weight, last = tableau
            y = carry.y + h * (previous * k + last * total)
            z, lags, index = self.delayed(carry, carry.t + c * h, y)
            k = self.slope(carry.t + c * h, y, z, carry.mode, carry.signs)
            return (k, total + weight * k, y, z), (lags - c * h, index, k)

        z = jnp.zeros((len(self.system.lag_of),), carry.y.dtype)
        start = (carry.k, carry.k / 6.0, carry.y, z)
        (k, _, y, z), (reach, index, slopes) = lax.scan(stage, start, jnp.array(STAGES))
        arguments = carry.t - reach[-1]
        guards = self.guards(carry, carry.t + h, y, z, arguments)
        shortest = jnp.min(carry.t + h - arguments, initial=jnp.inf)
        overlap = jnp.min(reach, initial=jnp.inf) < 0.0  # how far each stage reaches behind t
        rough = h / 6.0 * (carry.k - slopes[0] - slopes[1] + slopes[3])
        return Trial(y, k, z, arguments, index[-1], guards, shortest, overlap, rough)

    def guards(self, carry: Carry, t: Array, y: Array, z: Array, arguments: Array) -> Array:
        """Functions that are positive up to the next event: modes, kinks, breaking points."""
        parts = []
        if self.system.events is not None:
            beside = self.beside(t, y, z, carry.mode, carry.signs)
            parts.append(self.system.events.guards(t, beside, z, self.args, carry.mode))
        if self.system.kinks is not None:
            parts.append(carry.signs * self.system.kinks(t, y, z, self.args, carry.mode))
        ahead = carry.reading.ahead
        known = jnp.isfinite(ahead)
        parts.append(jnp.where(known, jnp.where(known, ahead, 0.0) - arguments, 1.0))
        return jnp.concatenate(parts)

    def remembered(
        self, carry: Carry, t: Array, y: Array, k: Array, mode: Array, side: float
    ) -> Array:
        """The recorded outputs and their slopes, just before (side -1) or after t: (2 V,)."""
        record = self.system.record
        if record is None:
            return jnp.concatenate([y, k])
        away = side * 1e-9 * self.step  # off the kink, to the side that is meant

        def along(t: Array, y: Array) -> Array:
            z, _, _ = self.delayed(carry, t, y)
            return record(t, y, z, self.args, mode)

        u, du = jax.jvp(along, (t + away, y + away * k), (jnp.ones_like(t), k))
        return jnp.concatenate([u - away * du, y, du, k])

    def landing(self, carry: Carry, h: Array, index: Array) -> tuple[Array, Array]:
        """Length at which guard `index` is zero, differentiable, and all guards zero there."""
        fixed = lax.stop_gradient(h)
        guards, fall = jax.jvp(
            lambda h: self.trial(carry, h).guards, (fixed,), (jnp.ones_like(fixed),)
        )
        fall = lax.stop_gradient(fall)
        # what the last event has left behind its zero comes at once, and moves with that event
        falls = (fall < 0.0) & ((carry.search.first_guards > 0.0) | (carry.search.low > 0.0))
        move = jnp.where(falls, -guards / jnp.where(falls, fall, -1.0), jnp.inf)
        correction = jnp.where(falls[index], move[index], 0.0)
        near = jnp.abs(move - correction) <= 1e-9 * self.step
        low, high = carry.search.low, carry.search.high
        inside = (fixed + correction >= low) & (fixed + correction <= high)
        hit = near.at[index].set(True)
        lasting = jnp.maximum(jnp.where(inside, fixed + correction, fixed), 1e-14 * self.step)
        # the value by what is inside the bracket, the derivative by the correction in any case
        return lax.stop_gradient(lasting) + (correction - lax.stop_gradient(correction)), hit
