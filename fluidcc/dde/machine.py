"""Runge-Kutta steps that land on breaking points and on changes of mode: order 4 throughout.

A step in which a guard falls below zero is repeated: secant steps in the
bracket, one Newton correction, and then the step that lands there. Automatic differentiation sees
only the Newton correction, which is the implicit function theorem for the time of the event.
"""

from typing import NamedTuple

import numpy as np
from jax import Array, lax

from fluidcc.arrays import jax, jnp
from fluidcc.dde import track as tr
from fluidcc.dde.integrate import Status, first
from fluidcc.dde.system import Args, System
from fluidcc.dde.track import Track
from fluidcc.dde.trial import MAX_TRIALS, Carry, Reading, Search, Stepper, Trial, fresh, narrow

_TIE = 1e-9  # of the step: lags so near to a breaking point have reached it
_JUMP = 1e-9
"""Of a value and of its change in a step: what differs by more across an event has jumped."""
_LEAST = 1e-10
"""Of the step: it is not made shorter, whatever its error; so a jump is crossed."""
_STEEP = 10.0
"""Of what a step changes: far beyond the slopes that a step can resolve."""
MAX_PASSES = 12
MAX_CHATTER = 40
LAST_ORDER = 4
"""Jumps in this derivative and higher ones are below what a method of order 4 can see."""


class Arrival(NamedTuple):
    """State just after the end of an accepted step."""

    y: Array
    k: Array
    here: Array
    mode: Array
    signs: Array
    reading: Reading
    guards: Array
    orders: Array  # (U,) derivative that jumps here, per column of the record
    event: Array  # time of the event; 0 if there is none


class Machine(Stepper):
    """The decisions between trials: repeat, narrow, land, or go on.

    `tolerance` is that of each step, relative and absolute, and a share of both, infinite if steps
    may err; without one they may, too.
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
        """Length of the next step: the mesh's, or what is left."""
        left = self.t1 - t
        return jnp.where(left <= self.step * (1.0 + 1e-9), left, self.step)

    def excess(self, carry: Carry, trial: Trial) -> Array:
        """Estimated error of a trial in units of the tolerance; infinite if it is no number."""
        if self.tolerance is None:
            return jnp.zeros_like(carry.t)
        rtol, atol, _ = self.tolerance
        size = jnp.maximum(jnp.abs(carry.y), jnp.abs(trial.y))
        excess = jnp.max(jnp.abs(trial.rough) / (atol + rtol * size))
        return jnp.nan_to_num(lax.stop_gradient(excess), nan=jnp.inf)

    def start(self, y0: Array, capacity: int, order: int) -> Carry:
        """The node at t0, whose breaking point has the given order."""
        system, t0, args = self.system, self.t0, self.args
        width = system.kept_size(y0, t0, args)
        columns = system.record_size(y0, t0, args)
        track = tr.empty(capacity, width, t0, jnp.full((columns,), order))
        flat = jnp.concatenate([jnp.zeros((width - y0.size,)), y0, jnp.zeros((width,))])
        h = self.cap(t0)
        carry = Carry(
            node=jnp.int32(0),
            t=t0,
            y=y0,
            k=jnp.zeros_like(y0),
            here=flat,
            h=h,
            longest=jnp.full_like(t0, jnp.inf),
            excess=jnp.zeros_like(t0),
            mode=jnp.zeros((0,), jnp.int32),
            signs=jnp.zeros((0,), y0.dtype),
            reading=self.unread(),
            track=tr.write(track, jnp.int32(0), tr.begun(t0, flat, h)),
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
        carry = carry._replace(reading=self.read_on(carry.track, carry.reading, now))
        z, lags, _ = self.delayed(carry, t0, y0)
        if system.events is not None:
            carry = carry._replace(mode=system.events.initial(t0, y0, z, args).astype(jnp.int32))
        if system.kinks is not None:
            kinks = system.kinks(t0, y0, z, args, carry.mode)
            carry = carry._replace(signs=jnp.where(kinks < 0.0, -1.0, 1.0))
        k = self.slope(t0, y0, z, carry.mode, carry.signs)
        finite = jnp.isfinite(k)
        lost = jnp.any(carry.reading.early[self.lag_of] & ~jnp.isfinite(z))
        status = first(carry.status, lost, Status.history_out_of_range)
        status = first(status, ~jnp.all(finite), Status.nonfinite)
        k = jnp.where(finite, k, 0.0)
        here = self.remembered(carry, t0, y0, k, carry.mode, 1.0)
        guards = self.guards(carry, t0, y0, z, t0 - lags)
        track = carry.track
        if system.record is not None:  # what has travelled may jump where it meets its history
            past = system.history(jnp.full((columns,), t0), jnp.arange(columns), args)
            orders = jnp.where(self.jumps(past, here), 0.0, order)
            track = track._replace(breaks=track.breaks.at[0, 2:].set(orders))
        track = tr.write(track, carry.node, tr.begun(t0, here, h))
        return carry._replace(k=k, here=here, track=track, search=fresh(guards), status=status)

    def unread(self) -> Reading:
        """Reading of lags that all reach into the history."""
        zero = jnp.zeros((self.lags,), jnp.int32)
        never = jnp.full((self.lags,), jnp.inf, self.t0.dtype)
        start = jnp.full((self.lags,), self.t0)
        return Reading(zero, zero, zero, zero, -never, start)

    def read_on(self, track: Track, reading: Reading, reached: Array) -> Reading:
        """Reading of lags once those `reached` (M,) have passed the breaking point ahead of them.

        Breaking points of what a lag does not read are none for it.
        """
        following = reading.following
        low = jnp.where(reached, tr.break_node(track, following), reading.low)
        behind = jnp.where(reached, tr.break_time(track, following), reading.behind)

        def blind(following: Array) -> Array:
            return (following < track.known) & (lowest(self.system, track, following) >= LAST_ORDER)

        following = lax.while_loop(
            lambda f: jnp.any(blind(f)),
            lambda f: f + blind(f).astype(f.dtype),
            following + reached.astype(following.dtype),
        )
        ahead = tr.break_time(track, following)
        latest = jnp.iinfo(jnp.int32).max
        high = jnp.where(jnp.isfinite(ahead), tr.break_node(track, following) - 1, latest)
        return Reading(reading.index, following, low, high, behind, ahead)

    def met(self, carry: Carry, t: Array, y: Array, reading: Reading) -> Array:
        """Lags (M,) that have reached the breaking point ahead of them."""
        _, lags, _ = self.delayed(carry._replace(reading=reading), t, y)
        return reading.ahead <= t - lags + _TIE * self.step

    def pass_by(
        self, carry: Carry, t: Array, y: Array, reading: Reading, met: Array
    ) -> tuple[Reading, Array]:
        """Reading once all breaking points are passed that lags have met at (t, y), and the lowest
        derivative that jumps at them in what each lag reads, (M,).

        What lags read behind a breaking point moves their arguments: of packets that found an empty
        queue none enters while nothing arrives.
        """

        def on(state: tuple[Reading, Array, Array]) -> tuple[Reading, Array, Array]:
            reading, met, below = state
            order = lowest(self.system, carry.track, reading.following)
            below = jnp.where(met, jnp.minimum(below, order), below)
            reading = self.read_on(carry.track, reading, met)
            return reading, self.met(carry, t, y, reading), below

        start = (reading, met, jnp.full((self.lags,), LAST_ORDER, jnp.int32))
        reading, _, below = lax.while_loop(lambda state: jnp.any(state[1]), on, start)
        return reading, below

    def jumps(self, before: Array, after: Array) -> Array:
        """Whether values (U,) jump to what is remembered just after, (U,)."""
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
        """Whether the end of a step differs from the provisional one that its lags have read."""
        half = end.size // 2
        row = tr.at(carry.track.steps, carry.node)[2:]
        change = jnp.abs(jnp.concatenate([end[:half], carry.h * end[half:]]) - row[2 * half :])
        size = jnp.abs(end[:half]) + carry.h * jnp.abs(end[half:])
        return jnp.any(change > 1e-12 * jnp.concatenate([size, size]))

    def go_on(self, carry: Carry, trial: Trial, end: Array) -> Arrival:
        """Arrival at the end of a step without an event."""
        return Arrival(
            y=trial.y,
            k=trial.k,
            here=end,
            mode=carry.mode,
            signs=carry.signs,
            reading=carry.reading._replace(index=trial.index),
            guards=trial.guards,
            orders=jnp.full((carry.track.breaks.shape[1] - 2,), LAST_ORDER, jnp.int32),
            event=jnp.zeros_like(carry.t),
        )

    def switch(self, carry: Carry, trial: Trial, end: Array, t: Array) -> Arrival:
        """Arrival at the end of a step on which guards are zero: a new breaking point.

        Columns of the record that follow at once from what a lag reads jump in the same derivative
        as that, others in one that is higher; a jump of a value is seen in any case.
        """
        system, track, hit = self.system, carry.track, carry.search.hit
        y, mode, signs = trial.y, carry.mode, carry.signs
        used, event = 0, jnp.zeros((), bool)
        if system.events is not None:
            used = hit.size - signs.size - self.lags
            mine = hit[:used]
            new_mode, moved = system.events.switch(t, y, trial.z, self.args, mode, mine)
            event = jnp.any(mine)
            mode = jnp.where(event, new_mode.astype(mode.dtype), mode)
            y = jnp.where(event, moved, y)
        if system.kinks is not None:
            kinked = hit[used : used + signs.size]
            signs = jnp.where(kinked, -signs, signs)
            event = event | jnp.any(kinked)
        reading = carry.reading._replace(index=trial.index)
        met = reading.ahead <= trial.arguments + _TIE * self.step
        reading, below = self.pass_by(carry, t, y, reading, hit[hit.size - self.lags :] | met)
        later = lax.cond(
            jnp.any(below < LAST_ORDER),
            lambda: below[None] + integrations(system, (t, y, trial.z, self.args, mode)),
            lambda: jnp.full((carry.track.breaks.shape[1] - 2, self.lags), LAST_ORDER, jnp.int32),
        )
        # laws that are constant by pieces show nothing of a value that jumps
        later = jnp.where(below[None] == 0, jnp.minimum(later, 1), later)
        orders = jnp.min(later, axis=1, initial=LAST_ORDER)
        orders = jnp.where(event, jnp.minimum(orders, 1), orders)
        new = jnp.any(orders < LAST_ORDER)
        # lags that vanish may pass it now, before it is known what jumps
        track = tr.add_break(track, new, t, carry.node + 1, jnp.zeros_like(orders))
        renewed = carry._replace(track=track)
        reading = self.read_on(track, reading, jnp.zeros_like(met))
        met = self.met(renewed, t, y, reading)
        reading, _ = self.pass_by(renewed, t, y, reading, met)
        arrived = carry._replace(mode=mode, signs=signs, reading=reading, track=track)
        z, lags, index = self.delayed(arrived, t, y)
        reading = reading._replace(index=index)
        k = self.slope(t, y, z, mode, signs)
        here = self.remembered(arrived, t, y, k, mode, 1.0)
        guards = self.guards(arrived, t, y, z, t - lags)
        jumps = new & self.jumps(end[: orders.size], here)
        orders = jnp.where(jumps, 0, orders).astype(jnp.int32)
        return Arrival(y, k, here, mode, signs, reading, guards, orders, t)

    def advance(self, carry: Carry) -> Carry:
        """One trial and what follows from it."""
        h, search = carry.h, carry.search
        trial = self.trial(carry, h)
        end = self.remembered(carry, carry.t + h, trial.y, trial.k, carry.mode, -1.0)
        unsettled = trial.overlap & self.unsettled(carry, end)
        bad = jnp.any(trial.guards <= 0.0)
        excess = self.excess(carry, trial)
        least = jnp.maximum(_LEAST * self.step, 1e-15 * jnp.abs(carry.t))
        shorten = jnp.where(unsettled, search.passes >= MAX_PASSES, excess > self.share)
        shorten = shorten & (h > least) & jnp.isfinite(self.share)
        searching = ~search.landing & (bad | jnp.isfinite(search.high)) & ~unsettled & ~shorten
        accept = ~unsettled & ~searching & ~shorten
        status = self.failure(carry, trial, unsettled, accept, shorten)
        good = status == Status.ok
        accept = accept & good

        search, length = self.continue_search(carry, trial, searching & good, unsettled)
        search = _choose(shorten, fresh(search.first_guards), search)
        growth = 0.9 * jnp.cbrt(self.share / excess)
        length = jnp.where(shorten, h * jnp.clip(growth, 0.1, 0.5), length)
        t = jnp.where(h == self.t1 - carry.t, self.t1, carry.t + h)
        event = accept & carry.search.landing
        arrival = lax.cond(
            event,
            lambda: self.switch(carry, trial, end, t),
            lambda: self.go_on(carry, trial, end),
        )
        longest = jnp.maximum(h * jnp.clip(growth, 0.5, 5.0), least)
        longest = jnp.where(event, jnp.maximum(longest, carry.longest), longest)
        longest = jnp.where(jnp.isfinite(self.share), longest, jnp.inf)
        next_h = jnp.where(accept, jnp.minimum(self.cap(t), longest), length)
        this = jnp.where(
            searching | shorten, tr.line(carry.t, carry.here, length), _cubic(carry, end)
        )
        following = tr.line(jnp.where(accept, t, jnp.inf), arrival.here, next_h)
        track = tr.write(carry.track, carry.node, jnp.stack([this, following]))
        new = event & jnp.any(arrival.orders < LAST_ORDER)
        # by what comes out of the event, so that the breaking points are written in place after it
        track = tr.add_break(track, new, arrival.event, carry.node + 1, arrival.orders)
        moved = carry._replace(
            node=carry.node + 1,
            t=t,
            y=arrival.y,
            k=arrival.k,
            here=arrival.here,
            longest=longest,
            excess=jnp.maximum(carry.excess, excess),
            mode=arrival.mode,
            signs=arrival.signs,
            reading=arrival.reading,
            chatter=jnp.where(event & (h < 1e-6 * self.step), carry.chatter + 1, 0),
            search=fresh(arrival.guards),
            status_time=t,
            done=self.t1 - t <= 1e-12 * self.step,
        )
        stayed = carry._replace(search=search)
        carry = _choose(accept, _light(moved), _light(stayed))
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
    """The present step as an interval, from what is remembered at both its ends.

    Where a root begins, of which no cubic has the slope, that is the one of the parabola through
    the rest.
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

    Whatever is read may jump there: a breaking point of order 0.
    """
    system, args, t = machine.system, machine.args, carry.t
    orders = jnp.zeros((carry.track.breaks.shape[1] - 2,), t.dtype)
    track = tr.add_break(carry.track, jnp.ones((), bool), t, carry.node, orders)
    reading = machine.read_on(track, carry.reading, jnp.zeros((machine.lags,), bool))
    y, mode, h = carry.y + by, carry.mode, machine.cap(t)
    y = y if system.limit is None else system.limit(y, mode, args)
    carry = carry._replace(y=y, reading=reading, track=track, h=h, done=machine.t1 <= t)
    z, lags, _ = machine.delayed(carry, t, y)
    if system.events is not None:
        mode = system.events.initial(t, y, z, args).astype(mode.dtype)
    k = machine.slope(t, y, z, mode, carry.signs)
    here = machine.remembered(carry, t, y, k, mode, 1.0)
    track = tr.write(track, carry.node, tr.begun(t, here, h))
    carry = carry._replace(mode=mode, k=k, here=here, track=track)
    return carry._replace(search=fresh(machine.guards(carry, t, y, z, t - lags)))


def lowest(system: System, track: Track, following: Array) -> Array:
    """Lowest derivative that jumps at breaking points (M,) in what each lag reads, (M,)."""
    orders = tr.break_orders(track, following)
    reads = np.zeros(orders.shape, bool)
    for lag, columns in enumerate(system.columns):
        reads[lag, list(columns)] = True
    return jnp.min(jnp.where(reads, orders, LAST_ORDER), axis=1, initial=LAST_ORDER)


def integrations(system: System, at: tuple[Array, Array, Array, Args, Array]) -> Array:
    """How many times what is read at each lag is integrated on its way to each column of the
    record, at (t, y, z, args, mode), (U, M): so many derivatives more are continuous there.

    From where derivatives are zero in this mode; what has no way counts `LAST_ORDER`.
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
        by_lag = by_lag | _joined(by_lag, jnp.asarray(leads))
    else:  # lags by the state: it moves at once all that is read
        by_state = by_state | jnp.any(by_lag, axis=1, keepdims=True)
    found, reach = jnp.where(by_lag[n:], 0, LAST_ORDER), by_lag[:n]
    for times in range(1, LAST_ORDER):
        via = _joined(by_state, reach)
        found, reach = jnp.where(via[n:], jnp.minimum(found, times), found), via[:n]
    return found


def _joined(first: Array, second: Array) -> Array:
    """Whether a chain leads through both of two relations."""
    return first.astype(jnp.float32) @ second.astype(jnp.float32) > 0
