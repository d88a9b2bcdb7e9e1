"""Runge-Kutta steps that land on breaking points and on changes of mode: order 4 throughout.

A step in which a guard falls below zero is repeated: bracketed secant steps, one Newton correction,
and then the step that lands there. Automatic differentiation sees only the Newton correction, which
is the implicit function theorem for the time of the event: dt = -dg/(dg/dt) at guard g = 0.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from fluidcc.dde import track as tr
from fluidcc.dde.status import Status, first
from fluidcc.dde.system import Args, System
from fluidcc.dde.track import Track
from fluidcc.dde.trial import MAX_TRIALS, Carry, Reading, Search, Stepper, Trial, fresh, narrow

_TIE = 1e-9  # of the step: an argument this close to a breaking point has reached it
_JUMP = 1e-9
"""Of a value and its change in a step: a larger difference across an event counts as a jump."""
_LEAST = 1e-10
"""Of the step: the shortest step, whatever its error, so that a jump is crossed."""
_STEEP = 10.0
"""Of the change in a step: far beyond the slopes that a step can resolve."""
_LATEST = np.iinfo(np.int32).max
MAX_PASSES = 12
MAX_CHATTER = 40
LAST_ORDER = 4
"""Jumps in this derivative and higher ones are below what a method of order 4 can see."""


class AfterEvent(NamedTuple):
    """State after an event at the end of a step."""

    y: Array
    mode: Array
    signs: Array
    reading: Reading
    orders: Array  # (U,) derivative that jumps, per column of the record


class Machine(Stepper):
    """The decisions between trials: repeat, narrow, land, or go on.

    `tolerance` of each step: relative, absolute, and a share of both; an infinite share, or None,
    accepts any error.
    """

    def __init__(
        self,
        system: System,
        t0: Array,
        t1: Array,
        step: Array,
        args: Args,
        tolerance: tuple[Array, Array, Array] | None = None,
    ) -> None:
        super().__init__(system, t0, t1, step, args)
        self.tolerance = tolerance
        self.share = jnp.inf if tolerance is None else tolerance[2]

    def cap(self, t: Array) -> Array:
        """Length of the next step: the mesh's, or the rest of the run."""
        left = self.t1 - t
        return jnp.where(left <= self.step * (1.0 + 1e-9), left, self.step)

    def excess(self, carry: Carry, trial: Trial) -> Array:
        """Estimated error of a trial in units of the tolerance; infinite for NaN."""
        if self.tolerance is None:
            return jnp.zeros_like(carry.t)
        rtol, atol, _ = self.tolerance
        size = jnp.maximum(jnp.abs(carry.y), jnp.abs(trial.y))
        excess = jnp.max(jnp.abs(trial.rough) / (atol + rtol * size))
        return jnp.nan_to_num(lax.stop_gradient(excess), nan=jnp.inf)

    def start(self, y0: Array, capacity: int, order: int) -> Carry:
        """The carry that arrives at t0, which is a breaking point of the given order."""
        system, t0, args, h = self.system, self.t0, self.args, self.cap(self.t0)
        width = system.kept_size(y0, t0, args)
        columns = system.record_size(y0, t0, args)
        past = y0[:0]
        if system.record is not None:  # the record may jump at t0, where it meets its history
            past = system.history(jnp.full((columns,), t0), jnp.arange(columns), args)
        here = jnp.concatenate([past, y0, jnp.zeros((width,), y0.dtype)])
        track = tr.empty(capacity, width, columns, t0)
        zero, never = jnp.zeros((self.lags,), jnp.int32), jnp.full((self.lags,), jnp.inf, t0.dtype)
        unread = Reading(zero, zero, zero, zero + _LATEST, -never, never)
        carry = Carry(
            arriving=jnp.ones((), bool),
            orders=jnp.full((columns,), order, jnp.int32),
            node=jnp.int32(0),
            t=t0,
            y=y0,
            k=jnp.zeros_like(y0),
            here=here,
            h=h,
            longest=jnp.full_like(t0, jnp.inf),
            excess=jnp.zeros_like(t0),
            mode=jnp.zeros((0,), jnp.int32),
            signs=jnp.zeros((0,), y0.dtype),
            reading=facing(unread, track, t0, jnp.int32(0), zero > 0),
            track=tr.write(track, jnp.int32(0), tr.begun(t0, here, h)),
            events=jnp.full((capacity,), jnp.inf, t0.dtype),
            count=jnp.int32(0),
            chatter=jnp.int32(0),
            search=fresh(jnp.zeros((0,), y0.dtype)),
            status=jnp.int32(Status.ok),
            status_time=t0,
            done=self.t1 <= t0,
        )
        _, lags, _ = self.delayed(carry, t0, y0)
        now = lags <= 1e-12 * self.step
        carry = carry._replace(reading=facing(unread, track, t0, carry.node, now))
        z, lags, _ = self.delayed(carry, t0, y0)
        if system.events is not None:
            carry = carry._replace(mode=system.events.initial(t0, y0, z, args).astype(jnp.int32))
        if system.kinks is not None:
            kinks = system.kinks(t0, y0, z, args, carry.mode)
            carry = carry._replace(signs=jnp.where(kinks < 0.0, -1.0, 1.0))
        # one guard for each lag is known without the field, which gives the number of the others
        guards = jax.eval_shape(lambda: self.guards(carry, t0, y0, z, t0 - lags))
        return carry._replace(search=fresh(jnp.ones(guards.shape, guards.dtype)))

    def pass_breaks(self, track: Track, reading: Reading, reached: Array) -> Reading:
        """Reading of lags once those `reached` (M,) have passed the breaking point ahead of them.

        Breaking points in columns that a lag does not read are skipped for it.
        """
        following = reading.following
        low = jnp.where(reached, tr.break_node(track, following), reading.low)
        behind = jnp.where(reached, tr.break_time(track, following), reading.behind)

        def unread(following: Array) -> Array:
            order = lowest_jump(self.system, track, following)
            return (following < track.known) & (order >= LAST_ORDER)

        following = lax.while_loop(
            lambda f: jnp.any(unread(f)),
            lambda f: f + unread(f).astype(f.dtype),
            following + reached.astype(following.dtype),
        )
        ahead = tr.break_time(track, following)
        high = jnp.where(jnp.isfinite(ahead), tr.break_node(track, following) - 1, _LATEST)
        return Reading(reading.index, following, low, high, behind, ahead)

    def pass_met(
        self, carry: Carry, t: Array, y: Array, met: Array
    ) -> tuple[Reading, Array, Array]:
        """Reading after all breaking points that lags have met at (t, y), the lowest derivative
        that jumps at them in the columns that each lag reads, (M,), and the lags (M,).

        Values read behind a breaking point can move the arguments over further ones: no packet
        enters an empty queue while nothing arrives, so that arguments jump over such times.
        """

        def pass_once(state: tuple[Any, ...]) -> tuple[Any, ...]:
            _, reading, met, below, _ = state
            order = lowest_jump(self.system, carry.track, reading.following)
            below = jnp.where(met, jnp.minimum(below, order), below)
            reading = self.pass_breaks(carry.track, reading, met)
            _, lags, _ = self.delayed(carry._replace(reading=reading), t, y)
            met = reading.ahead <= t - lags + _TIE * self.step
            return jnp.zeros((), bool), reading, met, below, lags

        none = jnp.full((self.lags,), LAST_ORDER, jnp.int32)
        start = (jnp.ones((), bool), carry.reading, met, none, jnp.zeros((self.lags,), t.dtype))
        end = lax.while_loop(lambda state: state[0] | jnp.any(state[2]), pass_once, start)
        return end[1], end[3], end[4]

    def jumps(self, before: Array, after: Array) -> Array:
        """Whether values (U,) jump to those just after, (U,)."""
        size, half = before.size, after.size // 2
        value, rise = after[:size], after[half : half + size]
        large = jnp.maximum(jnp.abs(value), jnp.abs(before)) + self.step * jnp.abs(rise)
        return jnp.abs(value - before) > _JUMP * large

    def failure(
        self, carry: Carry, trial: Trial, unsettled: Array, accept: Array, again: Array
    ) -> Array:
        """Status after a trial, which is made `again` if it is shorter."""
        status = carry.status
        far = carry.reading.early[self.lag_of]
        lost = jnp.any(far & ~jnp.isfinite(trial.z))
        status = first(status, lost, Status.history_out_of_range)
        finite = jnp.all(jnp.isfinite(trial.y)) & jnp.all(jnp.isfinite(trial.k))
        status = first(status, ~finite & ~again, Status.nonfinite)
        negative = accept & (trial.shortest < -1e-3 * self.step)
        status = first(status, negative, Status.lag_negative)
        passes = unsettled & (carry.search.passes >= MAX_PASSES) & ~again
        status = first(status, passes, Status.lag_below_step)
        back = trial.arguments < carry.reading.behind - 1e-6 * self.step
        status = first(status, accept & jnp.any(back), Status.nonmonotone_argument)
        status = first(status, carry.chatter > MAX_CHATTER, Status.event_limit)
        full = carry.node >= carry.track.steps.shape[0] - 3
        return first(status, full, Status.step_limit)

    def unsettled(self, carry: Carry, end: Array) -> Array:
        """Whether the end of a step differs from the provisional one that its lags have read:
        lags shorter than the step read its interpolant, so that it is iterated.
        """
        half = end.size // 2
        row = tr.at(carry.track.steps, carry.node)[2:]
        change = jnp.abs(jnp.concatenate([end[:half], carry.h * end[half:]]) - row[2 * half :])
        size = jnp.abs(end[:half]) + carry.h * jnp.abs(end[half:])
        return jnp.any(change > 1e-12 * jnp.concatenate([size, size]))

    def switch(self, carry: Carry, trial: Trial, t: Array) -> AfterEvent:
        """The end of a step on which guards are zero: a new breaking point.

        Columns of the record that depend directly on values that a lag reads jump in the same
        derivative as those, others in a higher one; a jump of a value is detected in any case.
        """
        system, hit = self.system, carry.search.hit
        y, mode, signs = trial.y, carry.mode, carry.signs
        used, event = 0, jnp.zeros((), bool)
        if system.events is not None:
            used = hit.size - signs.size - self.lags
            mode_hit = hit[:used]
            new_mode, moved = system.events.switch(t, y, trial.z, self.args, mode, mode_hit)
            event = jnp.any(mode_hit)
            mode = jnp.where(event, new_mode.astype(mode.dtype), mode)
            y = jnp.where(event, moved, y)
        if system.kinks is not None:
            kinked = hit[used : used + signs.size]
            signs = jnp.where(kinked, -signs, signs)
            event = event | jnp.any(kinked)
        reading = carry.reading._replace(index=trial.index)
        met = reading.ahead <= trial.arguments + _TIE * self.step
        met = met | hit[hit.size - self.lags :]
        reading, below, lags = self.pass_met(carry._replace(reading=reading), t, y, met)
        later = lax.cond(
            jnp.any(below < LAST_ORDER),
            lambda: below[None] + integrations(system, (t, y, trial.z, self.args, mode)),
            lambda: jnp.full((carry.orders.size, self.lags), LAST_ORDER, jnp.int32),
        )
        # piecewise constant laws have zero derivatives, which hide that a value jumps
        later = jnp.where(below[None] == 0, jnp.minimum(later, 1), later)
        orders = jnp.min(later, axis=1, initial=LAST_ORDER)
        orders = jnp.where(event, jnp.minimum(orders, 1), orders).astype(jnp.int32)
        # lags that vanish pass it now
        passed = facing(reading, carry.track, t, carry.node + 1, lags <= _TIE * self.step)
        reading = _choose(jnp.any(orders < LAST_ORDER), passed, reading)
        return AfterEvent(y, mode, signs, reading, orders)

    def advance(self, carry: Carry) -> Carry:
        """One trial and its consequences; or, on arrival at t0 or after an event, slopes and record
        there.
        """
        h, search, arriving = carry.h, carry.search, carry.arriving
        trial = self.trial(carry, h)
        unsettled = trial.overlap & self.unsettled(carry, trial.here)
        bad = jnp.any(trial.guards <= 0.0)
        excess = self.excess(carry, trial)
        least = jnp.maximum(_LEAST * self.step, 1e-15 * jnp.abs(carry.t))
        shorten = jnp.where(unsettled, search.passes >= MAX_PASSES, excess > self.share)
        shorten = shorten & (h > least) & jnp.isfinite(self.share) & ~arriving
        searching = ~search.landing & (bad | jnp.isfinite(search.high))
        searching = searching & ~unsettled & ~shorten & ~arriving
        accept = ~unsettled & ~searching & ~shorten & ~arriving
        status = self.failure(carry, trial, unsettled, accept, shorten)
        good = status == Status.ok
        accept = accept & good

        search, length = self.continue_search(carry, trial, searching & good, unsettled)
        search = _choose(shorten, fresh(search.first_guards), search)
        growth = 0.9 * jnp.cbrt(self.share / excess)
        length = jnp.where(shorten, h * jnp.clip(growth, 0.1, 0.5), length)
        t = jnp.where(h == self.t1 - carry.t, self.t1, carry.t + h)
        event = accept & carry.search.landing
        reading = carry.reading._replace(index=trial.index)
        nothing = AfterEvent(
            trial.y, carry.mode, carry.signs, reading, jnp.full_like(carry.orders, LAST_ORDER)
        )
        landed = lax.cond(event, lambda: self.switch(carry, trial, t), lambda: nothing)
        longest = jnp.maximum(h * jnp.clip(growth, 0.5, 5.0), least)
        longest = jnp.where(event, jnp.maximum(longest, carry.longest), longest)
        longest = jnp.where(jnp.isfinite(self.share), longest, jnp.inf)
        next_h = jnp.where(accept, jnp.minimum(self.cap(t), longest), length)
        next_h = jnp.where(arriving, h, next_h)
        here = jnp.where(arriving, trial.here, carry.here)
        straight = tr.line(carry.t, here, next_h)
        this = jnp.where(searching | shorten | arriving, straight, _cubic(carry, trial.here))
        n, half = carry.y.size, here.size // 2
        ahead = trial.here.at[half - n : half].set(landed.y)
        following = tr.line(jnp.where(accept, t, jnp.inf), ahead, next_h)
        track = tr.write(carry.track, carry.node, jnp.stack([this, following]))
        jumps = self.jumps(carry.here[: carry.orders.size], trial.here)
        orders = jnp.where(jumps, 0, carry.orders)
        new = arriving & jnp.any(carry.orders < LAST_ORDER)
        # depends on results of the event, so that XLA writes the breaking points in place after it
        orders = jnp.where(arriving, orders, landed.orders)
        track = tr.add_break(track, new, carry.t, carry.node, orders)
        moved = carry._replace(
            arriving=event,
            orders=landed.orders,
            node=carry.node + 1,
            t=t,
            y=landed.y,
            k=trial.k,
            here=trial.here,
            longest=longest,
            excess=jnp.maximum(carry.excess, excess),
            mode=landed.mode,
            signs=landed.signs,
            reading=landed.reading,
            chatter=jnp.where(event & (h < 1e-6 * self.step), carry.chatter + 1, 0),
            search=fresh(trial.guards),
            status_time=t,
            done=self.t1 - t <= 1e-12 * self.step,
        )
        arrived = carry._replace(
            arriving=jnp.zeros((), bool),
            k=trial.k,
            here=trial.here,
            reading=reading,
            search=fresh(trial.guards),
        )
        stayed = _choose(arriving & good, _light(arrived), _light(carry._replace(search=search)))
        carry = _choose(accept, _light(moved), stayed)
        entry = jnp.where(event, t, jnp.inf)[None]
        events = tr.put(moved.events, entry, moved.count)
        return carry._replace(
            h=next_h,
            track=track,
            events=events,
            count=moved.count + event.astype(jnp.int32),
            status=status,
        )

    def continue_search(
        self, carry: Carry, trial: Trial, searching: Array, unsettled: Array
    ) -> tuple[Search, Array]:
        """The search after a trial that was not accepted, and the length of the next trial."""
        search, h = carry.search, carry.h
        if not trial.guards.size:
            return search._replace(passes=search.passes + 1), h
        narrowed, length, index = narrow(search, h, trial.guards)
        close = (jnp.abs(length - h) <= 1e-7 * self.step) | (narrowed.trials > MAX_TRIALS)
        land = searching & close
        length, hit = lax.cond(
            land,
            lambda: self.landing(carry._replace(search=narrowed), length, index),
            lambda: (length, jnp.zeros_like(search.hit)),
        )
        narrowed = narrowed._replace(landing=land, hit=hit, passes=jnp.int32(0))
        repeated = search._replace(passes=search.passes + 1)
        return _choose(unsettled, repeated, narrowed), jnp.where(unsettled, h, length)


def _light(carry: Carry) -> Carry:
    """The carry without its long arrays."""
    return carry._replace(track=None, events=None)  # pyright: ignore[reportArgumentType]


def _choose(condition: Array, yes, no):
    """`yes` or `no`, leaf by leaf."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def _cubic(carry: Carry, end: Array) -> Array:
    """The present step as an interval, from record and slopes at both its ends.

    If the slope at the start is infinite, as of a square root at 0, it is replaced by that of the
    parabola through the other three values.
    """
    half, h = end.size // 2, carry.h
    here = carry.here
    before, rise, after, fall = here[:half], h * here[half:], end[:half], h * end[half:]
    change = after - before
    seen = _STEEP * (jnp.abs(change) + jnp.abs(fall)) + _JUMP * jnp.abs(before)
    rise = jnp.where(jnp.abs(rise) > seen, 2.0 * change - fall, rise)
    return jnp.concatenate([jnp.stack([carry.t, h]), before, rise, after, fall])


def moved(machine: Machine, carry: Carry, by: Array) -> Carry:
    """The carry with its state moved by (n,), inside its bounds, to go on up to the machine's end.

    All values read may jump there: a breaking point of order 0.
    """
    system, args, t = machine.system, machine.args, carry.t
    reading = machine.pass_breaks(carry.track, carry.reading, jnp.zeros((machine.lags,), bool))
    reading = facing(reading, carry.track, t, carry.node, jnp.zeros((machine.lags,), bool))
    y, mode, h = carry.y + by, carry.mode, machine.cap(t)
    y = y if system.limit is None else system.limit(y, mode, args)
    half = carry.here.size // 2
    here = carry.here.at[half - y.size : half].set(y)
    carry = carry._replace(
        arriving=jnp.ones((), bool),
        orders=jnp.zeros_like(carry.orders),
        y=y,
        here=here,
        reading=reading,
        track=tr.write(carry.track, carry.node, tr.begun(t, here, h)),
        h=h,
        done=machine.t1 <= t,
    )
    if system.events is not None:
        z, _, _ = machine.delayed(carry, t, y)
        carry = carry._replace(mode=system.events.initial(t, y, z, args).astype(mode.dtype))
    return carry


def facing(reading: Reading, track: Track, t: Array, node: Array, passed: Array) -> Reading:
    """Reading of lags once t, where the interval `node` starts, is a breaking point that is not on
    the track yet, behind all that are; lags `passed` (M,) have passed it.
    """
    last = reading.following == track.known
    on, off = last & passed, last & ~passed
    return reading._replace(
        following=reading.following + on.astype(jnp.int32),
        low=jnp.where(on, node, reading.low),
        high=jnp.where(off, jnp.maximum(node - 1, 0), reading.high),
        behind=jnp.where(on, t, reading.behind),
        ahead=jnp.where(off, t, reading.ahead),
    )


def lowest_jump(system: System, track: Track, following: Array) -> Array:
    """Lowest derivative that jumps at breaking points (M,) in the columns of each lag, (M,)."""
    orders = tr.break_orders(track, following)
    reads = np.zeros(orders.shape, bool)
    for lag, columns in enumerate(system.columns):
        reads[lag, list(columns)] = True
    return jnp.min(jnp.where(reads, orders, LAST_ORDER), axis=1, initial=LAST_ORDER)


def integrations(system: System, at: tuple[Array, Array, Array, Args, Array]) -> Array:
    """Number of integrations between the value read at each lag and each column of the record, at
    (t, y, z, args, mode), (U, M): each makes one more derivative continuous there.

    Shortest paths in the graph of nonzero derivatives in this mode; `LAST_ORDER` without a path.
    """
    mode, record, size = at[-1], system.record, len(system.columns)
    t, y, z, args = jax.tree.map(lax.stop_gradient, at[:-1])
    n = y.size
    if record is None:
        return jnp.ones((n, size), jnp.int32)

    def both(v: Array) -> Array:
        parts = (t, v[:n], v[n:], args, mode)
        return jnp.concatenate([system.slope(*parts), record(*parts)])

    felt = jax.jacfwd(both)(jnp.concatenate([y, z])) != 0.0
    by_state, by_lag = felt[:, :n], jnp.zeros((felt.shape[0], size), bool)
    by_lag = by_lag.at[:, np.array(system.lag_of, int)].max(felt[:, n:])
    if system.leading:
        leads = np.zeros((size, size), bool)
        for lag, others in system.leading:
            leads[list(others), lag] = True
        by_lag = by_lag | _compose(by_lag, jnp.asarray(leads))
    else:  # lags depend on the state, which then moves all values read
        by_state = by_state | jnp.any(by_lag, axis=1, keepdims=True)
    count, reach = jnp.where(by_lag[n:], 0, LAST_ORDER), by_lag[:n]
    for times in range(1, LAST_ORDER):
        via = _compose(by_state, reach)
        count, reach = jnp.where(via[n:], jnp.minimum(count, times), count), via[:n]
    return count


def _compose(first: Array, second: Array) -> Array:
    """Composition of two relations: a path through both."""
    return first.astype(jnp.float32) @ second.astype(jnp.float32) > 0
