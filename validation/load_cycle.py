"""Switching cycles under a sampled load factor, from the laws' own rules for packets and time.

The oracle of `fc.cycle` for one class of BMCC flows on one link (Qazi et al., 2010, eqs 1 to 6),
compared in tests/analysis/test_load_cycle.py.

Senders that increase below full load and decrease at it, at instants of their own, never rest: the
load is sampled, held, and heard one age later. Between two such events one class of flows on one
link is moved by the rules as they stand (what happens in `elapsed` seconds), not by their slopes.
What arrives at the queue is counted in packets sent one access delay before, so that jumps of the
rate keep their place. Steps end at all events, and where a decrease reaches the queue.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import fluidcc as fc
from fluidcc.laws.law import Ack, Arrival, Signal
from fluidcc.model.delays import explicit_delays, round_trip
from fluidcc.model.fluid import steady
from fluidcc.model.rates import Sender, marks_seen, received, sending_rate, summed
from fluidcc.ops import Num
from fluidcc.scenario.network import Network, first_hop

_BELOW = math.nextafter(1.0, 0.0)
_SHORT = 32  # steps in a period and in a round trip, while there is a queue
_BENT = 1e-3  # second difference of a rate over a step: Simpson's rule is then right to 1e-8
_SAME = 1e-9  # of a period: times that are one
_AGREE = 1e-9  # relative: a state that has come back
_AGAIN, _LONGEST = 8, 16  # turns in a row that agree; turns of the longest repetition looked for
_KEPT = 256  # steps that are remembered, far more than one access delay takes
_ON_THEIR_WAY = 64  # samples
_TURNS, _STEPS = 256, 500_000  # at most; steps of one turn


class NoCycleError(ValueError):
    """Senders that do not go round, or not by the load factor alone."""


class LoadCycle(NamedTuple):
    """A cycle under a sampled load factor: means over `turns`, and extremes of them."""

    period: float  # s
    window: tuple[float, float]  # of one flow [packet]
    queue: tuple[float, float]  # packet
    average: tuple[float, float]  # that the queue law keeps [packet]
    utilization: float
    decreases: tuple[int, int]  # fewest and most in one turn
    turns: int
    repeats: bool  # exactly, after `turns`


class _Cells(NamedTuple):
    """Rate of one flow over the last steps, a parabola in each: shapes (_KEPT,).

    The rate is first + rise u + bend u^2 with u from 0 to 1 over the step.
    """

    start: Any  # s
    span: Any  # s
    total: Any  # packets sent before
    first: Any  # packet/s
    rise: Any
    bend: Any

    def sent(self, time: Num) -> Num:
        """Packets sent until `time`, for one step or the same for each."""
        u = (time - self.start) / self.span
        return self.total + self.span * u * (self.first + u * (self.rise / 2 + u * self.bend / 3))

    def at(self, time: Num) -> _Cells:
        """The step that `time` lies in."""
        k = jnp.argmax(jnp.where(self.start <= time, self.start, -jnp.inf))
        return jax.tree.map(lambda v: v[k], self)


class _Loop(NamedTuple):
    """State of one link and one class of flows between events."""

    time: Any
    window: Any
    queue: Any
    memory: Any  # of the queue law
    known: Signal  # that the senders act on
    told: Signal  # samples on their way, (_ON_THEIR_WAY,)
    told_at: Any
    taken: Any  # number of samples
    arrived: Any  # of these at the senders
    cells: _Cells
    steps: Any
    sample_due: Any
    tick_due: Any
    landing: Any  # when the first decrease on its way reaches the queue
    falling: Any  # whether the last tick was a decrease
    outside: Any  # whether signals beside the load factor moved the window


class _Turn(NamedTuple):
    """What one turn reached."""

    lows: Any  # window, queue, average queue [packet]
    highs: Any
    served: Any  # packets
    decreases: Any
    steps: Any
    done: Any


class _Model:
    """One class of flows on one link: what happens in time, and at events."""

    def __init__(self, net: Network) -> None:
        self.net, self.link, self.flows = net, net.links[0], net.flows[0]
        self.hop = first_hop(self.flows)
        self.sampling = self.link.queue.period()
        self.same = _SAME * self.sampling

    def rtt(self, queue: Num) -> Num:
        """Round trip of a packet sent now [s]."""
        return round_trip(self.net, self.flows, (queue,))

    def age(self, queue: Num) -> Num:
        """Age of the signal heard now [s]."""
        return self.flows.feedback.age(explicit_delays(self.net, self.flows, (queue,)).trips[0])

    def rate(self, window: Num, known: Signal, rtt: Num) -> Num:
        """Rate of one flow [packet/s]."""
        return sending_rate(self.flows, Sender(self.flows.window.start(window)), known, rtt)

    def ack(self, known: Signal, rtt: Num, *, count: float = 1.0, elapsed: Num = 0.0) -> Ack:
        """What the senders are told."""
        return Ack(count, elapsed, rtt, known.load, marks_seen(self.flows, known))

    def moved(self, window: Num, rule: Callable[[Any, Ack], Any], ack: Ack) -> Num:
        """The window after a rule of its law."""
        law = self.flows.window
        change = law.window(rule(law.start(window), ack))
        return jnp.clip(window + change, law.min_window, law.max_window)

    def period(self, loop: _Loop) -> Num:
        """Time until the next tick of the senders [s]."""
        between = self.flows.window.period(self.ack(loop.known, self.rtt(loop.queue)))
        assert between is not None
        return between

    def start(self, window: Num) -> _Loop:
        """Steady windows just below full load, which the link has not sampled yet."""
        zero, known = jnp.zeros(()), Signal(*(jnp.zeros(()) for _ in Signal._fields))
        known = known._replace(load=jnp.asarray(_BELOW))
        rate = self.rate(window, known, self.rtt(zero))
        nothing = jnp.zeros(_KEPT)
        cells = _Cells(
            nothing - jnp.inf, nothing + 1.0, nothing, nothing, nothing, nothing
        )  # fmt: skip
        cells = cells._replace(
            start=cells.start.at[0].set(0.0), first=cells.first.at[0].set(rate)
        )  # fmt: skip
        memory = jax.tree.map(lambda v: jnp.asarray(v, float), self.link.queue.start(zero))
        told = Signal(*(jnp.zeros(_ON_THEIR_WAY) for _ in Signal._fields))
        count, no = jnp.zeros((), int), jnp.asarray(False)
        loop = _Loop(
            zero, window, zero, memory, known, told, told.load, count, count, cells, count,
            self.sampling, zero, jnp.asarray(jnp.inf), no, no,
        )  # fmt: skip
        return loop._replace(tick_due=self.period(loop))

    def step(self, loop: _Loop, span: Num) -> tuple[_Loop, Num, Num]:
        """The state `span` seconds later, what arrived [packet] and how bent the rate was."""
        here, known, grow = loop.time, loop.known, self.flows.window.on_ack
        rtt, base = self.rtt(loop.queue), loop.cells.at(here).sent(here)
        left = loop.cells.at(here - self.hop).sent(here - self.hop)
        until = here + span - self.hop
        before = loop.cells.at(until).sent(until)
        window, queue, came, bent = loop.window, loop.queue, 0.0, 0.0
        cell = _Cells(here, span, base, 0.0, 0.0, 0.0)
        for _ in range(2):  # the queue of the first time gives the round trips of the second
            last = self.rtt(queue)
            middle = 0.5 * (rtt + last)
            early = self.ack(known, 0.5 * (rtt + middle), count=0.0, elapsed=0.5 * span)
            half = self.moved(loop.window, grow, early)
            window = self.moved(
                loop.window, grow, self.ack(known, middle, count=0.0, elapsed=span)
            )  # fmt: skip
            one, two = self.rate(loop.window, known, rtt), self.rate(half, known, middle)
            three = self.rate(window, known, last)
            bend = 2 * (one - 2 * two + three)
            bent = jnp.abs(bend) / (2 * two)
            cell = cell._replace(first=one, rise=three - one - bend, bend=bend)
            sent = jnp.where(until > here, cell.sent(until), before)
            came = self.flows.n * (sent - left) + self.link.cross * span
            queue = jnp.maximum(0.0, loop.queue + came - self.link.capacity * span)
        law, capacity = self.link.queue, self.link.capacity
        samples = span * law.sampling_rate(came / span, capacity)
        seen = Arrival(samples, span, 0.5 * (loop.queue + queue),
                       capacity)  # fmt: skip
        memory = summed(loop.memory, law.on_arrival(loop.memory, seen))
        place = (loop.steps + 1) % _KEPT
        cells = jax.tree.map(lambda ring, v: ring.at[place].set(v), loop.cells, cell)
        after = loop._replace(
            time=here + span, window=window, queue=queue, memory=memory, cells=cells,
            steps=loop.steps + 1,
        )  # fmt: skip
        return after, came, bent

    def advanced(self, loop: _Loop) -> tuple[_Loop, Num]:
        """The state at the next event, or on the way to it, and what arrived [packet]."""
        place = loop.arrived % _ON_THEIR_WAY
        hearing = jnp.where(
            loop.arrived < loop.taken, loop.told_at[place] + self.age(loop.queue), jnp.inf
        )
        events = jnp.stack([loop.sample_due, loop.tick_due, hearing, loop.landing])
        rest = self.flows.rtt  # a longer gap between ACKs would count as a pause
        span = jnp.minimum(jnp.min(events) - loop.time, rest)
        short = jnp.minimum(self.sampling, rest) / _SHORT
        tried, _, bent = self.step(loop, span)
        busy = (loop.queue > 0) | (tried.queue > 0) | (bent > _BENT)
        after, came, _ = self.step(loop, jnp.where(busy, jnp.minimum(span, short), span))
        return after, came

    def heard(self, loop: _Loop) -> _Loop:
        """The state after the sample that has come, if one has."""
        place = loop.arrived % _ON_THEIR_WAY
        now = loop.time + self.same - self.age(loop.queue)
        comes = (loop.arrived < loop.taken) & (loop.told_at[place] <= now)
        said = received(self.flows, (Signal(*(v[place] for v in loop.told)),))
        known = jax.tree.map(lambda a, b: jnp.where(comes, a, b), said, loop.known)
        ack = self.ack(known, self.rtt(loop.queue))
        marked = self.moved(loop.window, self.flows.window.on_mark, ack) != loop.window
        other = (known.drop > 0) | ((ack.marked > 0) & marked)
        return loop._replace(
            known=known, arrived=loop.arrived + comes.astype(int), outside=loop.outside | other
        )

    def sampled(self, loop: _Loop) -> _Loop:
        """The state after the tick of the link, where one is due."""
        due = loop.sample_due <= loop.time + self.same
        law, seen = self.link.queue, Arrival(0.0, 0.0, loop.queue, self.link.capacity)
        ticked = summed(loop.memory, law.on_tick(loop.memory, seen))
        memory = jax.tree.map(lambda a, b: jnp.where(due, a, b), ticked, loop.memory)
        place = jnp.where(due, loop.taken % _ON_THEIR_WAY, _ON_THEIR_WAY)  # or outside: dropped
        said = law.signal(memory, seen._replace(count=1.0))
        told = Signal(*(v.at[place].set(s) for v, s in zip(loop.told, said, strict=True)))
        return loop._replace(
            memory=memory, told=told, told_at=loop.told_at.at[place].set(loop.sample_due),
            taken=loop.taken + due.astype(int),
            sample_due=loop.sample_due + jnp.where(due, self.sampling, 0.0),
        )  # fmt: skip

    def ticked(self, loop: _Loop) -> tuple[_Loop, Any, Any]:
        """The state after the senders' tick, whether it was a decrease, and the first of a turn."""
        due = loop.tick_due <= loop.time + self.same
        ack = self.ack(loop.known, self.rtt(loop.queue))
        window = self.moved(loop.window, self.flows.window.on_tick, ack)
        falls = due & (window < loop.window)
        landing = jnp.where(loop.landing <= loop.time + self.same, jnp.inf, loop.landing)
        away = falls & (self.hop > 0)
        after = loop._replace(
            window=jnp.where(due, window, loop.window),
            tick_due=loop.tick_due + jnp.where(due, self.period(loop), 0.0),
            landing=jnp.where(away, jnp.minimum(landing, loop.time + self.hop), landing),
            falling=jnp.where(due, falls, loop.falling),
        )
        return after, falls, falls & ~loop.falling

    def seen(self, loop: _Loop) -> Array:
        """Window, queue and average queue [packet]."""
        average = self.link.queue.average(loop.memory, loop.queue)
        return jnp.stack([loop.window, loop.queue, jnp.asarray(average)])


@jax.jit
def begin(net: Network, window: Num) -> _Loop:
    """Steady windows just below full load."""
    return _Model(net).start(window)


@jax.jit
def next_turn(net: Network, loop: _Loop) -> tuple[_Loop, _Turn]:
    """Move to the next first decrease."""
    model = _Model(net)
    now, count = model.seen(loop), jnp.zeros((), int)

    def body(carry: tuple[_Loop, _Turn]) -> tuple[_Loop, _Turn]:
        loop, turn = carry
        after, came = model.advanced(loop)
        before = model.seen(after)
        served = turn.served + came - (after.queue - loop.queue)
        loop, falls, first = model.ticked(model.heard(after))
        loop = model.sampled(loop)
        reached = jnp.stack([before, model.seen(loop)])
        turn = _Turn(
            jnp.minimum(turn.lows, jnp.min(reached, axis=0)),
            jnp.maximum(turn.highs, jnp.max(reached, axis=0)),
            served, turn.decreases + falls.astype(int), turn.steps + 1, first,
        )  # fmt: skip
        return loop, turn

    def going(carry: tuple[_Loop, _Turn]) -> Any:
        return ~carry[1].done & (carry[1].steps < _STEPS)

    begin = _Turn(now, now, jnp.zeros(()), count, count, jnp.asarray(False))
    return jax.lax.while_loop(going, body, (loop, begin))


def _phase(model: _Model, loop: _Loop, start: float) -> np.ndarray:
    """Numbers that say where in its turn a loop is; queues are compared with a period's packets."""
    each = float(model.link.capacity * model.sampling)
    dues = [float((due - loop.time) / model.sampling) for due in (loop.tick_due, loop.sample_due)]
    memory = [float(v) / each for v in jax.tree.leaves(loop.memory)]
    return np.array([float(loop.window) / start, float(loop.queue) / each, *memory, *dues])


def as_one_class(net: Network) -> Network:
    """The network with its calls at their mean rate and a scalar in each place."""
    net = steady(net)
    return jax.tree.map(lambda v: jnp.reshape(jnp.asarray(v, float), ()), net)


def load_cycle(net: Network) -> LoadCycle:
    """The cycle of one class of flows on one link that samples its load.

    Parameters
    ----------
    net
        The network; its senders act on the load factor, grow with time, decrease at ticks and
        remember nothing but their window. The buffer is taken as endless. It starts from the rest
        in the mean.

    Raises
    ------
    NoCycleError
        If there is no cycle, or the senders act on more than the load factor.
    """
    window = float(np.ravel(fc.equilibrium(net).op.windows[0])[0])
    net = as_one_class(net)
    model, loop = _Model(net), begin(net, jnp.asarray(window))
    loop, _ = next_turn(net, loop)  # ends at the first decrease: no turn
    turns, ends = [], [_phase(model, loop, window)]
    times = [float(loop.time)]
    while len(turns) < _TURNS and int(loop.steps) < _STEPS:
        loop, turn = next_turn(net, loop)
        if bool(loop.outside):
            raise NoCycleError("signals beside the load factor move the windows")
        if not bool(turn.done):
            break
        turns.append(turn)
        times.append(float(loop.time))
        ends.append(_phase(model, loop, window))
        count = _repetition(np.asarray(ends))
        if count:
            return _mean(net, turns[-count:], times[-1] - times[-1 - count], repeats=True)
    if len(turns) < 2:
        raise NoCycleError(f"the senders do not switch again within {float(loop.time):.3g} s")
    half = len(turns) // 2
    return _mean(net, turns[half:], times[-1] - times[half], repeats=False)


def _repetition(ends: np.ndarray) -> int:
    """Turns after which the states at their ends (turns, numbers) repeat; 0 where they do not.

    One return is not enough: turns whose differences grow pass near one another by chance.
    """
    for count in range(1, _LONGEST + 1):
        again = max(_AGAIN, count)
        if len(ends) >= count + again:
            apart = np.abs(ends[-again:] - ends[-again - count : -count])
            if np.max(apart) < _AGREE:
                return count
    return 0


def _mean(net: Network, turns: list[_Turn], time: float, *, repeats: bool) -> LoadCycle:
    """One cycle from several turns that took `time` together."""
    lows, highs = np.min([t.lows for t in turns], axis=0), np.max([t.highs for t in turns], axis=0)
    window, queue, average = ((float(a), float(b)) for a, b in zip(lows, highs, strict=True))
    falls = [int(turn.decreases) for turn in turns]
    served = sum(float(turn.served) for turn in turns)
    return LoadCycle(
        time / len(turns), window, queue, average, served / (float(net.links[0].capacity) * time),
        (min(falls), max(falls)), len(turns), repeats,
    )  # fmt: skip
