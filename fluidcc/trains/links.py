"""A link in one step: its queue law sees what arrives, signals are dealt to flows, packets leave.

Arrays over flows are (N, B) for all flows that cross the link, those of the link itself (B).
"""

from typing import Any, NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.arrays import jnp
from fluidcc.laws.law import Arrival
from fluidcc.programs import leaves, map_tree
from fluidcc.trains.layout import Port, PortNumbers
from fluidcc.trains.records import PortRecord, locate, read, write

Array = Any
_WHOLE = 1e-9  # packets: counts are whole up to this


class PortState(NamedTuple):
    """A link between two steps; counts since the start are in packets."""

    law: Any
    gap: Array  # packets since the last signal
    armed: Array
    tick_at: Array  # s
    accepted: Array  # by work
    served: Array
    numbers: Array  # accepted, by number
    left: Array  # served, by number
    voice: Array  # packets of voice that wait in a queue of their own
    offered: Array  # packets by number, with those dropped
    marked: Array
    dropped: Array
    area: Array  # integral of the packets that wait [packet s]
    squares: Array
    system: Array  # integral of those in the system
    system_squares: Array
    used: Array  # by voice of its own queue, in packets
    calls: Array
    talkers: Array


_TERMS = 24  # of a Poisson distribution


def poisson(mean: Array, u: Array) -> Array:
    """A Poisson number for a uniform one; of a large mean by its normal quantile."""
    chance, below, count = jnp.exp(-mean), jnp.exp(-mean), 0.0 * mean
    for k in range(1, _TERMS):
        count = count + jnp.where(u > below, 1.0, 0.0)
        chance = chance * mean / k
        below = below + chance
    logit = jnp.log(u / (1 - u))  # quantile of the logistic, of the same spread
    large = jnp.floor(jnp.maximum(mean + jnp.sqrt(3 * mean) / np.pi * logit, 0.0) + 0.5)
    return jnp.where(mean < _TERMS / 4, count, large)


class Offer(NamedTuple):
    """What comes to a link in a step."""

    flows: Array  # (N, B) packets of each flow
    work: Array  # (B) packets of anything else
    number: Array  # (B) the same by number
    voice: Array  # (B) packets for the queue of voice
    tagged: Array  # (B) of the other packets those that may be marked, by number
    mapped: Array  # (N, B) 1 for flows with a probability of their own
    maps: bool  # whether its first flows have a probability of their own
    chances: Any  # function of the link's probability to theirs (N, B)
    capable: Array  # (N, 1) 1 for flows that are marked, 0 for those whose packets are dropped
    entry: Array  # (N, 1) 1 for flows whose packets are judged as they enter
    below: Array  # (N, 1) probability from which chosen packets are dropped
    least: Array
    arms: Array


def first_port(numbers: PortNumbers, calls: Any, talkers: Any) -> PortState:
    """A link before the first step, with its calls (B)."""
    zero = np.zeros_like(calls)
    law = map_tree(lambda v: v + zero, numbers.start)
    first = (numbers.period[0] + numbers.period[1]) / 2
    return PortState(law, zero, zero, zero + first, *([zero] * 13), calls, talkers)


def talk(numbers: PortNumbers, s: PortState, step: Array, u: Array) -> tuple[PortState, Array]:
    """Calls and talkers after a step, and the packets (B) of those who talk in it.

    Each of the four changes happens at most once in a step on average.
    """
    v, zero = numbers.voice, 0.0 * s.calls
    comes = jnp.floor(step * v.arrivals + zero + u[0])
    ends = jnp.minimum(jnp.floor(step * s.calls / v.holding + u[1]), s.calls)
    starts = jnp.floor(step * (s.calls - s.talkers) / v.silence + u[2])
    stops = jnp.floor(step * s.talkers / v.talk + u[3])
    share = jnp.where(s.calls > 0, s.talkers / jnp.maximum(s.calls, 1.0), 0.0)
    # a new call talks as often as others; one that ends was talking as often
    begun = comes * jnp.where(u[1] < v.active, 1.0, 0.0)
    hung = ends * jnp.where(u[2] < share, 1.0, 0.0)
    calls = jnp.minimum(s.calls + comes - ends, v.most)
    talkers = jnp.clip(s.talkers + starts - stops + begun - hung, 0.0, calls)
    return s._replace(calls=calls, talkers=talkers), talkers * v.packets * step


def deal(amounts: Array, u: Array) -> Array:
    """Whole numbers (N, B) near `amounts`, whose sum is near theirs: systematic sampling by `u`."""
    ends = jnp.cumsum(amounts, axis=0) + u[None]
    return jnp.floor(ends) - jnp.floor(ends - amounts)


def _add(state: Any, change: Any) -> Any:
    return map_tree(lambda a, b: a + b, state, change)


class _Judged(NamedTuple):
    """What a queue law said in a step."""

    state: Any
    gap: Array
    armed: Array
    signals: Array  # that fall on the packets of the step, if they are spaced
    chance: Array  # of a packet, else
    drop: Array  # of a packet, by force
    mark: Array  # long-run probability


def _judge(port: Port, numbers: PortNumbers, s: PortState, offer: Offer, step: Array,
           total: Array, queue: Array, u: Array) -> _Judged:  # fmt: skip
    """Let the queue law see the arrivals of a step, in parts."""
    law, x = numbers.law, s.law
    part, span = total / port.blocks, step / port.blocks
    gap, armed = s.gap, s.armed
    signals = chance = drop = mark = 0.0 * gap
    capacity = numbers.capacity + 0.0 * gap
    for j in range(port.blocks):
        found = jnp.maximum(queue + (part - capacity * span) / 2, 0.0)
        waiting = jnp.maximum(found - 0.5, 0.0)
        seen_queue = found + 1.0 if port.counts_service else waiting
        if port.averages:
            idle = jnp.maximum(capacity * span - part - found, 0.0)
            pause = Arrival(idle, 0.0 * idle, 0.0 * idle, capacity, 0.0 * idle)
            x = _add(x, law.on_arrival(x, pause))
        x = _add(x, law.on_arrival(x, Arrival(part, span + 0.0 * part, seen_queue, capacity)))
        one = Arrival(1.0 + 0.0 * part, span / ops.maximum(part, 1e-12), seen_queue, capacity)
        said = law.signal(x, one)
        long_run, forced = said.mark + 0.0 * gap, said.drop + 0.0 * gap
        chooses = (long_run > 0) | (forced > 0)
        if port.averages:
            chooses = chooses & (waiting >= offer.least)
        forced = jnp.where(chooses, forced, 0.0)
        gap = gap + part
        p = long_run
        if port.spaced:
            p = law.gap_probability(x, one, jnp.maximum(gap - part / 2, 1.0)) + 0.0 * gap
        p = jnp.clip(p, 0.0, 1.0)
        p = jnp.where(chooses & (forced < 1), p, 0.0)
        if port.averages:
            arming = chooses & (armed == 0) & (offer.arms > 0)
            p = jnp.where(arming, 0.0, p)
            gap = jnp.where(arming, 1.0, gap)
            armed = jnp.where(chooses, 1.0, 0.0)
        if port.spaced:
            first = jnp.where(u[j] < p * part, 1.0, 0.0)
            # after the first signal others follow at the long-run rate, if many packets are left
            more = jnp.floor(first * long_run * jnp.maximum(part - 1 / jnp.maximum(p, 1e-12), 0.0) + u[j])
            several = first + jnp.where(part > 1, more, 0.0)
            signals = signals + several
            gap = jnp.where(first > 0, part / 2, gap)
        gap = jnp.where(forced > 0, 0.0, gap)
        queue = jnp.maximum(queue + part * (1 - forced) - capacity * span, 0.0)
        chance = chance + p / port.blocks
        drop = drop + forced / port.blocks
        mark = mark + jnp.where(chooses, long_run, 0.0) / port.blocks
    return _Judged(x, gap, armed, signals, chance, drop, mark)


def _tick(port: Port, numbers: PortNumbers, s: PortState, now: Array, step: Array, u: Array) -> PortState:
    """Perform the ticks of a queue law that are due."""
    law, low, high = numbers.law, *numbers.period
    queue = jnp.maximum(s.accepted - s.served, 0.0)
    seen = queue if port.counts_service else jnp.maximum(queue - 0.5, 0.0)
    one = 1.0 + 0.0 * queue
    x, at = s.law, s.tick_at
    for _ in range(port.ticks):
        change = law.on_tick(x, Arrival(one, one * 0.0, seen, numbers.capacity + 0.0 * queue))
        due = now + step >= at
        moved = map_tree(lambda d: jnp.where(due, d + 0.0 * queue, 0.0), change)
        if port.waits:
            acts = due & (sum(jnp.abs(v) for v in leaves(moved)) > 0)
        else:
            acts = due
        x = _add(x, moved)
        following = jnp.maximum(at, now) if port.waits else at
        at = jnp.where(acts, following + low + (high - low) * u, at)
    return s._replace(law=x, tick_at=at)


class Outcome(NamedTuple):
    """A link after a step, without the marks of packets that leave."""

    state: PortState
    record: PortRecord
    marks: Array  # (N, B) of packets that entered


def _voice(port: Port, numbers: PortNumbers, s: PortState, offer: Offer, room: Array, wanted: Array) -> tuple[Array, Array]:
    """Work that is left for the flows of `room`, and the voice that waits after the step."""
    if not port.second:
        return room, s.voice
    waiting = s.voice + offer.voice
    voice = jnp.minimum(waiting, jnp.maximum(numbers.share * room, room - wanted))
    left = jnp.minimum(waiting - voice, numbers.drain)
    return room - voice, left


def pass_through(
    port: Port, numbers: PortNumbers, s: PortState, record: PortRecord, offer: Offer,
    k: Array, now: Array, step: Array, u: Array,
) -> Outcome:  # fmt: skip
    """One step of a link; `u` are its random numbers."""
    arriving = jnp.sum(offer.flows, axis=0)
    total = arriving + offer.work
    number = arriving + offer.number
    queue = s.accepted - s.served
    waiting_number = s.numbers - s.left if port.counted else queue
    room, voice = _voice(port, numbers, s, offer, numbers.capacity * step + 0.0 * queue, queue + total)
    zeros = jnp.zeros_like(offer.flows)
    marks = losses = zeros
    share = jnp.where(number > 0, 1 / jnp.where(number > 0, number, 1.0), 0.0)
    chance = drop = mark = 0.0 * queue
    taken = 0
    if port.signals:
        judged = _judge(port, numbers, s, offer, step, number, waiting_number, u)
        taken = port.blocks + 1 if port.spaced else 0
        s = s._replace(law=judged.state, gap=judged.gap, armed=judged.armed)
        chance, drop, mark = judged.chance, judged.drop, judged.mark
        each = u[taken : taken + port.flows]
        if port.spaced:
            share_of = judged.signals * share
            pool = jnp.where(offer.mapped > 0, 0.0, offer.flows * share_of[None])
            chosen = deal(pool, u[taken - 1])
            own = offer.chances(mark) * offer.flows * offer.mapped
            chosen = chosen + jnp.floor(own + each)
        else:
            own = jnp.where(offer.mapped > 0, offer.chances(mark), chance[None])
            chosen = jnp.floor(own * offer.flows + each)
        chosen = chosen * offer.entry
        spared = offer.capable * jnp.where(mark[None] < offer.below, 1.0, 0.0)
        marks = chosen * spared
        first = offer.chances(mark)[0] if offer.maps else (chance + judged.signals * share)
        s = s._replace(marked=s.marked + offer.tagged * first)
        losses = chosen - marks + jnp.floor(drop[None] * offer.flows + each)
        taken += port.flows
    if port.finite:
        over = waiting_number + number - room - (numbers.buffer + 1.0)
        over = jnp.ceil(jnp.maximum(over, 0.0) - _WHOLE)
        forced = deal(offer.flows * (over * share)[None], u[taken])
        losses = losses + forced
        marks = jnp.where(forced > 0, 0.0, marks)
    cut = jnp.minimum(losses, offer.flows)
    kept = jnp.sum(offer.flows - cut, axis=0)
    accepted = s.accepted + kept + offer.work
    served = jnp.minimum(accepted, s.served + room)
    numbers_now = s.numbers + kept + offer.number
    out_of = accepted - served
    ring = write(record.accepted, k, accepted)
    place = jnp.where(out_of <= _WHOLE, k.astype(float), locate(ring, k, served))
    rings = record._replace(accepted=ring, place=write(record.place, k, place))
    left = numbers_now
    if port.counted:
        by_number = write(record.number, k, numbers_now)
        low = jnp.floor(place)[None]
        a, b = read(by_number, low)[0], read(by_number, low + 1)[0]
        inside = a + (place - low[0]) * (b - a)
        left = jnp.where(out_of <= _WHOLE, numbers_now, inside)
        rings = rings._replace(number=by_number)
    left = left if port.counted else served
    held = numbers_now - left if port.counted else out_of
    if port.signals or port.finite:
        lost = read_last(record.lost, k) + cut
        rings = rings._replace(lost=write(record.lost, k, lost))
    if port.loads:
        told = probability_of(numbers.law.signal, s, numbers, held, step)
        rings = rings._replace(load=write(record.load, k, told.load + 0.0 * queue))
    present = numbers_now - jnp.floor(left + _WHOLE)
    waiting = jnp.maximum(present - 1.0, 0.0)
    s = s._replace(
        accepted=accepted, served=served, numbers=numbers_now, left=left,
        voice=voice,
        offered=s.offered + number,
        dropped=s.dropped + jnp.sum(cut, axis=0),
        area=s.area + step * waiting, squares=s.squares + step * waiting**2,
        system=s.system + step * present, system_squares=s.system_squares + step * present**2,
        used=s.used + (numbers.capacity * step - room),
    )  # fmt: skip
    if port.ticks:
        s = _tick(port, numbers, s, now, step, u[-1])
    return Outcome(s, rings, marks)


def read_last(ring: Array, k: Array) -> Array:
    """The row before step k."""
    from fluidcc.arrays import lax

    return lax.dynamic_index_in_dim(ring, (k - 1) % ring.shape[0], 0, keepdims=False)


def probability_of(signal: Any, s: PortState, numbers: PortNumbers, queue: Array, step: Array) -> Any:
    """The signal to a packet that sees `queue` packets."""
    zero = 0.0 * queue
    return signal(s.law, Arrival(1.0 + zero, step + zero, queue, numbers.capacity + zero))


def rewrite(
    port: Port, numbers: PortNumbers, s: PortState, record: PortRecord, before: Array, k: Array, step: Array
) -> tuple[PortState, PortRecord]:
    """Record the probability of a signal to ACKs that pass the router now, as many as packets were
    served since `before`.
    """
    held = s.numbers - s.left if port.counted else s.accepted - s.served
    queue = held if port.counts_service else jnp.maximum(held - 0.5, 0.0)
    chance = probability_of(numbers.law.signal, s, numbers, queue, step).mark + 0.0 * queue
    s = s._replace(marked=s.marked + chance * (s.served - before))
    return s, record._replace(chance=write(record.chance, k, chance))
