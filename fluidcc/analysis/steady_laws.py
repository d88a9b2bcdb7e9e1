"""Steady states of laws by themselves: memory and signal of a queue law at a given queue or for a
given signal, and senders under given signals.

The backlog of a link is one number: from 0 on it is the queue of a busy link [packet]; below 0 the
queue is empty, and it is the utilization less 1: -0.3 is an empty queue at a utilization of 70 %.

At the equilibrium of a sender the drift of the window changes sign, and everything else that it
remembers follows from the window. If a link's load factor settles at a jump of the sender's rule,
the drifts on both sides count with their shares of the time (Filippov).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.analysis.bisection import find_zero
from fluidcc.laws.law import ALWAYS, Signal
from fluidcc.laws.load_code import Exact
from fluidcc.model.rates import (
    Sender,
    arrival_rate,
    deciding_rate,
    emit_signal,
    growing_rate,
    scaled,
    sender_change,
    sending_rate,
    start_sender,
    starts_slowly,
    summed,
)
from fluidcc.ops import Num
from fluidcc.programs import (
    compiled,
    flatten,
    jacobian,
    jvp,
    leaves,
    map_tree,
    pseudo_inverse,
    ravel,
    repeat,
    unflatten,
    write_out,
)
from fluidcc.scenario.network import Flows, Link

LARGEST_WINDOW = 1e7  # packets, if the law has no cap
SMALLEST_WINDOW = 1e-6  # packets, if windows fall without end

_LONG = 1e12  # s of arrivals after which averages are steady
_ROUNDS = 400  # of ticks, or of ever more ticks at once
_EVEN = 2.0**-600  # logarithm of the share of equal changes; not 0, as quotients have it
_MOST_TICKS = 2.0**54  # the last of more moves is less than the rounding error of their sum
_STEPS = 20
_LEAST_KEPT = 1e-6  # of the arrivals; keeps their rate finite where all are lost
_SAME = 1e-14  # difference of two marking probabilities that are the same
_ASIDE = 1e-9  # relative distance to either side of a backlog
_TURNS = 12  # of Newton's method for the memories of a sender
_STILL = 4e-15  # step of a memory that counts as none
_RARE = 1e-30  # probability of a signal in the limit of none


def queue_at(backlog: Num) -> Num:
    """The queue [packet]."""
    return ops.maximum(backlog, 0.0)


def offered_rate(link: Link, backlog: Num, lost: Num = 0.0) -> Num:
    """The rate that arrives [packet/s]; at a busy link the share `lost` of it does not get in."""
    busy = link.capacity / ops.maximum(1 - lost, _LEAST_KEPT)
    return ops.where(backlog < 0, link.capacity * (1 + backlog), busy)


def neighbour(backlog: Num, side: Num) -> Num:
    """The next backlog below this one (`side` -1) or above it (1)."""
    return backlog + side * _ASIDE * (1 + abs(backlog))


def tick_change(link: Link, x: Any, backlog: Num) -> Any:
    """Change at a tick."""
    return link.queue.on_tick(x, link.arrival(0.0, 0.0, queue_at(backlog)))


def after_arrivals(link: Link, x: Any, backlog: Num, time: Num = _LONG, lost: Num = 0.0) -> Any:
    """Memory after `time` seconds of packets at the rate of the backlog; without ticks or signals.

    The share `lost` of them, at a full buffer, arrives beyond that rate.
    """
    law, queue = link.queue, queue_at(backlog)
    rate = deciding_rate(link, queue, offered_rate(link, backlog, lost))
    new = summed(x, law.move_memory(x, link.arrival(rate * time, time, queue, rate)))
    if law.limits is None:
        return new
    low, high = law.limits
    return map_tree(ops.clip, new, low, high)


@np.errstate(all="ignore")
def steady_memory(link: Link, backlog: Num, start: int = 0, lost: Num = 0.0) -> Any:
    """Memory of a queue law after endless time at a backlog, from one of the law's starts.

    The share `lost` of the arrivals, at a full buffer, does not get in.

    Arrivals without end first; then periods of arrivals with a tick, until nothing moves or all
    that moves is beyond any bound. The memory is the one that the next tick finds.
    """
    law = link.queue
    starts = law.initial_states(queue_at(backlog))
    first = starts[min(start, len(starts) - 1)]
    x = map_tree(lambda v: v + 0.0 * (backlog + lost), first)
    if not leaves(x):
        return x
    x = after_arrivals(link, x, backlog, lost=lost)
    between = law.period()
    if between is None:
        return x
    return after_arrivals(link, _ticked(link, x, backlog, lost), backlog, between, lost)


def _over_period(link: Link, backlog: Num, lost: Num, x: Any) -> Any:
    """Change of a memory over a period of arrivals with a tick at its end."""
    due = after_arrivals(link, x, backlog, link.queue.period(), lost)
    after = summed(due, tick_change(link, due, backlog))
    return map_tree(lambda a, b: a - b, after, x)


class _Ticked(NamedTuple):
    """Numbers of a memory (k, ...); the change of each over the next period, and the logarithm of
    the share that it is of the one before; how many periods to skip next, and the factor by which
    they have grown.
    """

    memory: Num
    move: Num
    rate: Num
    ticks: Num
    growth: Num


def _ends(link: Link) -> Num:
    """The range in which the rules keep each number of a memory (k, 2); infinite without ends."""
    ranges: Any = [field.info.within for field in link.queue.states.values()]
    ends = [(each, *each.ends) for each in ranges]
    return np.array([(a if a in e else -math.inf, b if b in e else math.inf) for e, a, b in ends])


def _skip(changes: Callable[[Num], Num], ends: Num, now: _Ticked) -> _Ticked:
    """Skip many periods at once, as long as the change after them is the predicted one; the last
    one before a number reaches an end of its range is not skipped.
    """
    x, move, rate, ticks, growth = now
    (low, high), share = ends, ops.expm1(rate)
    way = (ops.where(move > 0, high, low) - x) / move
    meets = (way > 0) & (way * share > -1)
    last = ops.where(meets, ops.floor(ops.log1p(way * share) / rate) - 1.0, math.inf)
    ticks = ops.minimum(ticks, ops.maximum(last.min(axis=0), 1.0))
    grown = ops.expm1(ticks * rate)
    there = ops.clip(x + move * (grown / share), low, high)
    found, due = changes(there), move * (1.0 + grown)
    same = abs(found - due) <= 1e-6 * abs(due) + 1e-15 * abs(there)
    fine = same.all(axis=0) | (ticks <= 1.0)
    share = found / move
    steady = (move * found > 0) & (abs(share - 1.0) > 1e-9)
    rates = ops.where(steady, ops.log(share) / ticks, _EVEN)
    x, move, rate = (ops.where(fine, *pair) for pair in ((there, x), (found, move), (rates, rate)))
    growth = ops.where(fine, 2.0 * growth, 0.5)
    ticks = ops.minimum(ops.floor(ticks * ops.where(fine, growth, 0.25)), _MOST_TICKS)
    return _Ticked(x, move, rate, ops.maximum(ticks, 1.0), growth)


def _ticked(link: Link, x: Any, backlog: Num, lost: Num) -> Any:
    """The memory after endless periods, as averages and multiplied probabilities move.

    If each change is the same share of the one before, many together are the sum of a geometric
    series. Their number grows by ever larger factors as long as the change after them is the
    predicted one; else it is divided by four, and stays when the prediction is right again. It ends
    before a number reaches an end of its range.
    """
    change = write_out(_over_period, (link, backlog, lost), (x,))
    none = np.zeros(np.broadcast_shapes(*map(np.shape, (*leaves(x), *change(*leaves(x))))))
    ends = _ends(link).T.reshape((2, -1, *none.ndim * (1,)))

    def changes(numbers: Num) -> Num:
        return ops.stack([none + v for v in change(*numbers)])

    def moving(carry: tuple) -> Num:
        count, now = carry
        return (count < _ROUNDS) & (now.move != 0).any()

    def go(carry: tuple) -> tuple:
        return carry[0] + 1, _skip(changes, ends, carry[1])

    first = ops.stack([none + v for v in leaves(x)])
    start = _Ticked(first, changes(first), _EVEN + 0.0 * first, none + 1.0, none + 2.0)
    return unflatten(x, list(repeat(moving, go, (0, start))[1].memory))


def signal_of(link: Link, x: Any, backlog: Num, lost: Num = 0.0) -> Signal:
    """Signal of a link with this memory, shapes ()."""
    return emit_signal(link, x, queue_at(backlog), offered_rate(link, backlog, lost))


def steady_signal(link: Link, backlog: Num, start: int = 0, lost: Num = 0.0) -> Signal:
    """Signal of a link after endless time at a backlog; the share `lost` does not get in."""
    return signal_of(link, steady_memory(link, backlog, start, lost), backlog, lost)


@np.errstate(all="ignore")
def jump_distances(link: Link, backlogs: Num, *, start: int) -> tuple[Num, ...]:
    """Functions of two backlogs (2,), or those of P networks (2, P, 1), next to linear, that are
    zero where the steady signal of a link may jump between them: its breakpoints, and the moves of
    a memory half-way.
    """
    x = steady_memory(link, backlogs, start)
    halfway = map_tree(lambda ends: _towards(*np.broadcast_to(ends, np.shape(backlogs))), x)
    if link.queue.period() is None:
        moves = leaves(
            arrival_rate(link, halfway, queue_at(backlogs), offered_rate(link, backlogs))
        )
    else:  # a second period, as a first one may find memories of the queue before
        once = summed(halfway, _over_period(link, backlogs, 0.0, halfway))
        moves = leaves(_over_period(link, backlogs, 0.0, once))
    seen = link.arrival(0.0, 0.0, queue_at(backlogs))
    return (*link.queue.breakpoints(x, seen), *moves)


def _towards(first: Num, second: Num) -> Num:
    """A number half-way between two, or near the first if the second is very far."""
    return first + np.clip(0.5 * (second - first), -1 - abs(first), 1 + abs(first))


class HeldMemory(NamedTuple):
    """A memory that gives a signal at a backlog."""

    memory: Any
    found: Num  # whether there is one
    smooth: Num  # whether the ticks leave it alone on both sides of the backlog
    sliding: Num  # whether they move it on both sides


@compiled
def memory_with_signal(link: Link, backlog: Num, signal: Signal, lost: Num) -> HeldMemory:
    """The memory with which a link marks, or drops, as `signal` at a backlog, while the share
    `lost` of the arrivals does not get in.

    Arrivals leave it alone; whether ticks do as well decides if the backlog is an equilibrium, a
    sliding one, where ticks move the signal up on one side and down on the other, or the end of
    many equilibria, where they move it on one side alone.
    """
    first, shape = ravel(steady_memory(link, backlog, lost=lost))

    def off_by(x: Any) -> Num:
        given = signal_of(link, x, backlog, lost)
        fields = (*ALWAYS, *link.queue.written)
        return sum(getattr(given, k) - getattr(signal, k) for k in fields)

    def residual(v: Num) -> Num:
        x = shape(v)
        still = arrival_rate(link, x, queue_at(backlog), offered_rate(link, backlog, lost))
        off = off_by(x)
        return ops.concatenate([flatten(still), ops.ravel(off)])

    def improve(carry: tuple) -> tuple:
        step, _, v = carry
        new = v - pseudo_inverse(jacobian(residual, v)) @ residual(v)
        return step + 1, ops.anywhere(new != v), new

    def unfinished(carry: tuple) -> Num:
        return (carry[0] < _STEPS) & carry[1]

    x = shape(repeat(unfinished, improve, (0, np.True_, first))[2])
    found = abs(off_by(x)) < _SAME
    if link.queue.period() is None:
        return HeldMemory(x, found, np.True_, np.False_)

    size = 1 + abs(flatten(x))
    backlogs = (neighbour(backlog, -1), backlog, neighbour(backlog, 1))
    ticks = [
        ravel(tick_change(link, after_arrivals(link, x, there, lost=lost), there))[0]
        for there in backlogs
    ]
    ticks = ops.stack([change / size for change in ticks])
    moved = (abs(ticks) >= 1e-6).any(axis=1)
    return HeldMemory(x, found, ~ops.anywhere(moved), moved[0] & moved[2])


class WeightedSignal(NamedTuple):
    """A signal that flows receive for a share of the time."""

    share: Num
    signal: Signal


def past_slow_start(flows: Flows, window: Num) -> Sender:
    """Senders with a window (m,) [packet], none of them in slow start."""
    s = start_sender(flows, window)
    return s._replace(slow=0.0 * window) if starts_slowly(flows) else s


def _drift(
    flows: Flows, cases: list[WeightedSignal], rtt: Num, s: Sender, *, growth_on_all_acks: bool
) -> Sender:
    """Mean change of senders per second whose packets are all as old as their rate."""
    parts = []
    for share, signal in cases:
        rate = sending_rate(flows, s, signal, rtt)
        growing = growing_rate(flows, s, signal, rate, rtt)
        change = sender_change(
            flows, s, growth=rate if growth_on_all_acks else growing, acks=rate,
            carried=rate, signal=signal, rtt=rtt, ticks=True,
        )  # fmt: skip
        parts.append(scaled(share, change))
    return summed(*parts)


def _growth(
    flows: Flows, cases: list[WeightedSignal], rtt: Num, window: Num,
    *, own: tuple[int, ...], growth_on_all_acks: bool,
) -> tuple[Num, list[Num]]:  # fmt: skip
    """Mean change of a window [packet/s] past slow start, and of its sender's memories `own`."""
    s = past_slow_start(flows, window)
    change = _drift(flows, cases, rtt, s, growth_on_all_acks=growth_on_all_acks)
    return flows.window.window(change.law), [leaves(change)[k] for k in own]


def _memories(flows: Flows, s: Sender) -> tuple[int, ...]:
    """Indices of the numbers of senders that `with_window` leaves alone: it returns them as they
    are, the same objects.
    """
    other = s._replace(law=flows.window.with_window(s.law, flows.window.window(s.law) + 1.0))
    pairs = enumerate(zip(leaves(s), leaves(other), strict=True))
    return tuple(k for k, (before, after) in pairs if before is after)


def _drift_and_slopes(
    flows: Flows, cases: list[WeightedSignal], rtt: Num, s: Sender,
    *, own: tuple[int, ...], growth_on_all_acks: bool,
) -> tuple[Sender, list[Num]]:  # fmt: skip
    """The mean change of senders, and the derivative of that of each memory `own` by itself."""
    numbers = leaves(s)

    def drift(k: int, v: Num) -> Sender:
        moved = unflatten(s, [*numbers[:k], v, *numbers[k + 1 :]])
        return _drift(flows, cases, rtt, moved, growth_on_all_acks=growth_on_all_acks)

    def slope_of(k: int) -> Num:
        return jvp(lambda v: leaves(drift(k, v))[k], numbers[k], ops.ones_like(numbers[k]))[1]

    return drift(0, numbers[0]), [slope_of(k) for k in own]


def _settle(
    flows: Flows,
    window: Num,
    own: tuple[int, ...],
    cases: list[WeightedSignal],
    drift_of: Callable[..., tuple],
) -> tuple[Sender, Sender]:
    """Senders with this window (m,) whose memories `own` are steady, and their change per second.

    Steps of Newton's method for all memories at once, each by its own slope: most drift linearly
    towards their value, and follow each other in a chain at the most.
    """
    s = past_slow_start(flows, window)
    none = 0.0 * (window + cases[0].signal.mark)
    first = [none + v for v in leaves(s)]

    def numbers(values: Num) -> list[Num]:
        return [values[own.index(k)] if k in own else v for k, v in enumerate(first)]

    def step(carry: tuple) -> tuple:
        turn, _, values, _ = carry
        found = [none + v for v in drift_of(*numbers(values))]
        slopes, drift = ops.stack(found[len(first) :]), ops.stack([found[k] for k in own])
        stable = slopes < 0
        move = ops.where(stable, drift / ops.where(stable, slopes, -1.0), 0.0)
        still = ops.everywhere(abs(move) <= _STILL * (1.0 + abs(values)))
        return turn + 1, still, ops.where(still, values, values - move), found[: len(first)]

    def unsettled(carry: tuple) -> Num:
        return (carry[0] < _TURNS) & ~carry[1]

    start = 0, np.False_, ops.stack([first[k] for k in own]), first
    values, drift = repeat(unsettled, step, start)[2:]
    return unflatten(s, numbers(values)), unflatten(s, drift)


@np.errstate(all="ignore")
def steady_sender(
    flows: Flows,
    cases: list[WeightedSignal],
    rtt: Num,
    *,
    growth_on_all_acks: bool,
    window: Num | None = None,
    near: tuple[Num, Num] | None = None,
    highest: bool = False,
) -> Sender:
    """Senders at equilibrium under signals `cases` at a round trip (m,) [s].

    With `growth_on_all_acks` windows grow on marked ACKs too (the rates of `mgt`). With a `window`
    (m,) [packet] they have that one, and their other memories are steady. `near` are windows
    between which theirs probably are. Of windows that all neither grow nor fall they have the
    smallest, or the `highest`.
    """
    if flows.estimator.remembers:  # at equilibrium the estimate is the load, whatever its code
        exact = dataclasses.replace(flows, estimator=Exact())
        s = steady_sender(
            exact, cases, rtt, growth_on_all_acks=growth_on_all_acks, window=window, near=near,
            highest=highest,
        )  # fmt: skip
        return s._replace(estimate=cases[0].signal.load + 0.0 * rtt)
    law = flows.window
    own = _memories(flows, past_slow_start(flows, rtt))
    if own:
        cases = [WeightedSignal(c.share, _heard(c.signal)) for c in cases]

    options: Any = {"growth_on_all_acks": growth_on_all_acks}

    def settling(cases: list[WeightedSignal]) -> Callable[[Num], tuple[Sender, Sender]]:
        like = past_slow_start(flows, rtt)
        drift_of = write_out(_drift_and_slopes, (flows, cases, rtt), (like,), own=own, **options)
        return lambda window: _settle(flows, window, own, cases, drift_of)

    def resting(cases: list[WeightedSignal]) -> Callable[[Num], tuple[Num | None, bool]]:
        """The change of a window, if all other memories are steady as they start; and if so."""
        rates_at = write_out(_growth, (flows, cases, rtt), (rtt,), own=own, **options)

        def change(window: Num) -> tuple[Num | None, bool]:
            if own and ops.traced(window):
                return None, False
            growth, *moves = rates_at(window)
            return growth, not any(ops.anywhere(move != 0) for move in moves)

        return change

    def growth_under(cases: list[WeightedSignal], at_rest: Any) -> Callable[[Num], Num]:
        """The change of a window, given its logarithm, if all other memories are steady."""
        settle, rest = functools.cache(functools.partial(settling, cases)), True

        def growth(log_window: Num) -> Num:
            nonlocal rest
            window = ops.exp(log_window)
            if rest:
                change, rest = at_rest(window)
                if rest:
                    return change
            return law.window(settle()(window)[1].law)

        return growth

    at_rest = functools.cache(functools.partial(resting, cases))

    def sender(window: Num) -> Sender:
        rest = not own or at_rest()(window)[1]
        return past_slow_start(flows, window) if rest else settling(cases)(window)[0]

    if window is not None:
        return sender(window)
    known = flows.loss.window(cases[0].signal.drop, rtt)
    if known is not None:
        return sender(ops.minimum(known, law.max_window))
    none = 0.0 * cases[0].signal.mark
    most = ops.where(law.max_window == math.inf, LARGEST_WINDOW, law.max_window)
    low, high = (end + none for end in (math.log(SMALLEST_WINDOW), ops.log(most)))
    ends = None if near is None else (ops.log(near[0]), ops.log(near[1]))
    falling = growth_under(cases, at_rest())

    def rising(log_window: Num) -> Num:
        growth = falling(log_window)
        return ops.where(growth == 0, 1.0, growth)

    found = find_zero(rising if highest else falling, low, high, ends)
    window = ops.where(found == high, most, ops.exp(found))  # it grows up to its cap
    floor = law.min_window  # above 1 it is enforced; below, only timeouts slow a sender
    window = ops.where(floor > 1, ops.maximum(window, floor), window)
    if flows.feedback.written and law.written:  # a number may drive windows to their floor
        floor = ops.log(law.min_window + none)
        unmarked = [
            WeightedSignal(c.share, per_flow(c.signal._replace(mark=0.0, drop=0.0), rtt))
            for c in cases
        ]
        falls = growth_under(unmarked, resting(unmarked))(floor) <= 0
        window = ops.where(falls, ops.maximum(window, law.min_window), window)
    return sender(window)


def has_dead_zone(flows: Flows, cases: list[WeightedSignal], rtt: Num, s: Sender) -> Num:
    """Whether windows just above those of senders at equilibrium neither grow nor fall either."""
    window = flows.window.window(s.law) * (1 + _ASIDE)
    above = s._replace(law=flows.window.with_window(s.law, window))
    change = _drift(flows, cases, rtt, above, growth_on_all_acks=False)
    return ops.anywhere(flows.window.window(change.law) == 0)


def _heard(signal: Signal) -> Signal:
    """A signal with next to no marks and drops in place of none: the memory of the last one is
    that of its limit, not the one that senders start with.
    """
    rare = {name: ops.maximum(getattr(signal, name), _RARE) for name in ("mark", "drop")}
    return signal._replace(**rare)


def per_flow(signal: Signal, rtt: Num) -> Signal:
    """A signal in the shape of the round trips (m,), or with several numbers of each (n, m)."""
    shape = np.broadcast_shapes(np.shape(rtt), *map(np.shape, signal))
    return Signal(*(ops.broadcast_to(v, shape) for v in signal))


def source_rate(flows: Flows, s: Sender, cases: list[WeightedSignal], rtt: Num) -> Num:
    """Mean rate of one source (m,) [packet/s]; sources without a file send nothing."""
    rate: Any = sum(share * sending_rate(flows, s, signal, rtt) for share, signal in cases)
    return s.active * rate if flows.traffic.starts else rate
