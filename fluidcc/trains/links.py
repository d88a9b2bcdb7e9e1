"""A link in one step: its queue law sees what arrives, signals are dealt to flows, packets leave.

Arrays over flows are (N, B) for all flows that cross the link, those of the link itself (B).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.arrays import jnp
from fluidcc.laws.law import MarkingPoint, Signal
from fluidcc.programs import leaves, map_tree
from fluidcc.trains.layout import Port, PortNumbers, draws_of_law
from fluidcc.trains.rings import between, last, locate, write
from fluidcc.trains.state import PortRecord, PortState, Run

Array = Any
_WHOLE = 1e-9  # packets: counts are whole up to this
_TINY = 1e-12
_ALMOST_ONE = 1 - 1e-12
_PARTS = {  # of a transmission that have passed when a law is asked
    MarkingPoint.DEPARTURE: 0.0,
    MarkingPoint.REVERSE: 0.5,
    MarkingPoint.TRANSMITTED: 1.0,
}


_TERMS = 24  # of a Poisson distribution
_MOST_MEAN, _DOUBLINGS = 40.0, 4  # 1 - exp(-40) is 1


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
    pace: Any  # (N, B) ACKs that let them go, if the law is asked packet by packet
    work: Array  # (B) small packets, ACKs and SYNs
    number: Array  # (B) the same by number
    loose: Array  # (B) packets without congestion control, by number
    loose_work: Array
    voice: Array  # (B) packets for the queue of voice
    mapped: Array  # (N, B) 1 for flows with a probability of their own
    maps: bool  # whether any of them has
    chances: Any  # function of the link's probability to theirs (N, B)
    capable: Array  # (N, 1) 1 for flows that are marked, 0 for those whose packets are dropped
    entry: Array  # (N, 1) 1 for flows whose packets are judged as they enter
    below: Array  # (N, 1) probability from which chosen packets are dropped
    least: Array
    arms: Array


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


def _any_of(mean: Array) -> Array:
    """Probability that a Poisson number of a mean is not 0: 1 - exp(-mean) to nine digits, by the
    Pade approximant [3/3] for a sixteenth of the mean and four doublings, as loops vectorise.
    """
    y = jnp.minimum(mean, _MOST_MEAN) / 2.0**_DOUBLINGS
    chance = y * (1 + y * y * (1 / 60)) / (1 + 0.5 * y + y * y * (0.1 + y * (1 / 120)))
    for _ in range(_DOUBLINGS):
        chance = chance * (2 - chance)
    return chance


def draw_signals(chance: Array, count: Array, u: Array) -> Array:
    """Whole numbers of signals among `count` packets, of mean `chance * count`: first whether there
    is any, as of independent ones, then how many.
    """
    chance = jnp.minimum(chance, _ALMOST_ONE)
    any_of = jnp.maximum(_any_of(-count * jnp.log1p(-chance)), _TINY)
    return jnp.where(u < any_of, jnp.floor((chance * count + u) / any_of + _WHOLE), 0.0)


def _add(state: Any, change: Any) -> Any:
    return map_tree(lambda a, b: a + b, state, change)


def _see(port: Port, queue: Array, part: float) -> Array:
    """Packets that a law sees after a part of a transmission, if `queue` are left to serve in the
    mean: one more waits at its end than at its beginning.

    Packets that arrive find as many as those that leave let stand: the queue as a transmission
    begins, half a packet less than its mean over time, if the link is always busy.
    """
    waits = jnp.maximum(queue - 1.0 + part, 0.0)
    return waits + jnp.minimum(queue, 1.0) if port.counts_service else waits


class _Judged(NamedTuple):
    """What a queue law has said in a part of a step, or in the parts so far."""

    state: Any
    gap: Array  # packets since the last signal
    armed: Array
    queue: Array
    signals: Array  # that fall on the packets, if they are spaced
    chance: Array  # of a packet, else
    drop: Array  # of a packet, by force
    mark: Array  # long-run probability


def _singly(port: Port, offer: Offer, step: Array, total: Array) -> Iterator[tuple[Array, Array]]:
    """The packets of a step one by one, or in parts of a few, each with the time [s] it took.

    They come flow by flow, as fast as ACKs let them go: what a window grows by comes at once.
    """
    flows, pace, ends = offer.flows, offer.pace, jnp.cumsum(offer.flows, axis=0)
    others = jnp.maximum(total - ends[-1], 0.0)
    whole, size = jnp.sum(pace, axis=0) + others, jnp.maximum(total / port.blocks, 1.0)
    all_of = jnp.maximum(jnp.where(whole > 0, whole, total), _TINY)
    end, time = 0.0 * total, 0.0 * total
    for j in range(1, port.blocks + 1):
        begin, before, end = end, time, jnp.minimum(size * j, total)
        come = jnp.where(ends < end[None], pace, jnp.clip(end[None] - ends + flows, 0.0, pace))
        come = jnp.sum(come, axis=0) + jnp.clip(end - ends[-1], 0.0, others)
        time = step * jnp.where(whole > 0, come, end) / all_of
        if j == port.blocks:
            time = step + 0.0 * total
        yield end - begin, time - before


def _within(flows: Array, parts: list[tuple[Array, Array]], signals: list[Array]) -> Array:
    """Signals (N, B) that fall on each flow, in the mean, of `signals` (B) up to each part."""
    ends, begin, own = jnp.cumsum(flows, axis=0), 0.0 * signals[0], 0.0 * flows
    for (part, _), before, after in zip(parts, signals, signals[1:], strict=False):
        share = (after - before) / jnp.where(part > 0, part, 1.0)
        first, last = (jnp.clip(v - begin[None], 0.0, part[None]) for v in (ends - flows, ends))
        own, begin = own + (last - first) * share[None], begin + part
    return own


class _Judge:
    """A queue law that sees the arrivals of a step a packet or a few at a time, of a mean size."""

    def __init__(
        self, port: Port, numbers: PortNumbers, offer: Offer, step: Array, total: Array,
        size: Array, whole: Array,
    ) -> None:  # fmt: skip
        self._port, self._numbers, self._offer, self._size = port, numbers, offer, size
        even = [(total / port.blocks, step / port.blocks)] * port.blocks
        self.parts = list(_singly(port, offer, step, total)) if port.single else even
        self._capacity = numbers.capacity + 0.0 * total
        shared = port.beside >= 0 or port.after >= 0
        self._rate = whole / step if shared else self._capacity

    def see(self, before: _Judged, part: Array, span: Array, u: Array) -> _Judged:
        """What the law has said after one more part, of `part` packets in `span` [s]; `u` is a
        random number (B).
        """
        port, law, capacity = self._port, self._numbers.law, self._capacity
        served, x = self._rate * span, before.state
        found = jnp.maximum(before.queue + (part - served) / 2, 0.0)
        if port.averages:  # an idle link counts as small packets that find it empty
            idle = jnp.maximum(served - part - found, 0.0)
            small = self._numbers.arrival(idle, 0 * idle, 0 * idle, capacity, 0 * idle)
            x = _add(x, law.on_arrival(x, small))
        seen = _see(port, found, 0.0) + (1.0 if port.counts_service else 0.0)
        arrival = self._numbers.arrival(part, span + 0 * part, seen, capacity, self._size)
        x = _add(x, law.on_arrival(x, arrival))
        one = self._numbers.arrival(1 + 0 * part, span / ops.maximum(part, _TINY), seen, capacity)
        said = law.signal(x, one)
        mark, forced = said.mark + 0 * part, said.drop + 0 * part
        chooses = (mark > 0) | (forced > 0)
        if port.averages:
            chooses = chooses & (seen >= self._offer.least)
        mark, forced = (jnp.where(chooses, v, 0.0) for v in (mark, forced))
        gap, armed, chance = before.gap + part, before.armed, mark
        if port.spaced:
            middle = jnp.maximum(gap - part / 2, 1.0)
            chance = jnp.where(chooses, law.gap_probability(x, one, middle) + 0 * part, 0.0)
        chance = jnp.where(forced < 1, jnp.clip(chance, 0.0, 1.0), 0.0)
        if port.averages:  # the first after the average has crossed its threshold is not chosen
            arming = chooses & (armed == 0) & (self._offer.arms > 0)
            chance, gap = jnp.where(arming, 0.0, chance), jnp.where(arming, 1.0, gap)
            armed = jnp.where(chooses, 1.0, 0.0)
        signals = before.signals
        if port.spaced:
            hit = u < chance * part
            # others follow at the long-run rate among the packets that are left
            left = jnp.maximum(part - 1 / jnp.maximum(chance, _TINY), 0.0)
            signals = signals + jnp.where(hit, 1 + jnp.floor(mark * left + u), 0.0)
            gap = jnp.where(hit, part / 2, gap)
        if law.heeds_signals:
            told, change = signals - before.signals + forced * part, law.on_signal(x, one)
            x = _add(x, map_tree(lambda v: told * v, change))
        queue = jnp.maximum(before.queue + part * (1 - forced) - served, 0.0)
        gap, count = jnp.where(forced > 0, 0.0, gap), port.blocks
        return _Judged(
            x, gap, armed, queue, signals, before.chance + chance / count,
            before.drop + forced / count, before.mark + mark / count,
        )  # fmt: skip


def _tick(
    port: Port, numbers: PortNumbers, s: PortState, number: Array, present: Array, now: Array,
    step: Array, sojourn: Array, u: Array,
) -> PortState:  # fmt: skip
    """Perform the ticks of a queue law that are due, after a step in which `number` packets came
    and `present` are at the link.

    One that would have changed nothing waits for a packet, which finds those before it, or until
    the link is idle.
    """
    law, (low, high) = numbers.law, numbers.period
    queue, x, at = jnp.maximum(s.accepted - s.served, 0.0), s.law, s.tick_at
    if port.waits:
        overdue = at < now
        found = jnp.where(overdue, jnp.maximum(present - 1.0, 0.0), present)
        seen = found if port.counts_service else jnp.maximum(found - 1.0, 0.0)
        ready = ~overdue | (number > 0) | (present <= 0)
    else:
        seen, ready = _see(port, queue, 0.5), True
    one, capacity = 1 + 0 * queue, numbers.capacity + 0 * queue
    arrival = numbers.arrival(one, 0 * queue, seen, capacity)
    if port.beside >= 0 or port.after >= 0:  # its rate is not its own
        arrival = arrival._replace(sojourn=sojourn)
    for _ in range(port.ticks):
        due = ready & (now + step >= at)
        moved = map_tree(
            lambda d, due=due: jnp.where(due, d + 0 * queue, 0.0), law.on_tick(x, arrival)
        )
        acts = due & (sum(jnp.abs(v) for v in leaves(moved)) > 0) if port.waits else due
        following = jnp.maximum(at, now) if port.waits else at
        x, at = _add(x, moved), jnp.where(acts, following + low + (high - low) * u, at)
    return s._replace(law=x, tick_at=at)


class Leaving(NamedTuple):
    """Packets (B) that leave a link in a step, and how many of them its law marks or drops."""

    number: Array
    marked: Array
    dropped: Array


class Outcome(NamedTuple):
    """A link after a step, without the marks and losses of packets that leave."""

    state: PortState
    record: PortRecord
    marks: Array  # (N, B) of packets that entered
    leaving: Leaving | tuple[()]


def _voice(
    port: Port, numbers: PortNumbers, s: PortState, offer: Offer, room: Array, wanted: Array
) -> tuple[Array, Array]:
    """Work that is left for the flows of `room`, and the voice that waits after the step."""
    if not port.second:
        return room, s.voice
    queued = s.voice + offer.voice
    voice = jnp.minimum(queued, jnp.maximum(numbers.share * room, room - wanted))
    return room - voice, jnp.minimum(queued - voice, numbers.drain)


def _choose(
    port: Port, numbers: PortNumbers, s: PortState, offer: Offer, step: Array, number: Array,
    queue: Array, whole: Array, u: Array,
) -> tuple[PortState, Array, Array, Array]:  # fmt: skip
    """The link after its law has seen what arrives; marks and losses (N, B) by it, and the share
    (B) of all packets that it drops.
    """
    work = jnp.sum(offer.flows, axis=0) + offer.work + offer.loose_work
    size = jnp.where(number > 0, work / jnp.where(number > 0, number, 1.0), 1.0)
    judge, zero = _Judge(port, numbers, offer, step, number, size, whole), 0.0 * queue
    judged = _Judged(s.law, s.gap, s.armed, queue, zero, zero, zero, zero)
    reached = [judged.signals]
    for j, (part, span) in enumerate(judge.parts):
        judged = judge.see(judged, part, span, u[j if port.spaced else 0])
        reached.append(judged.signals)
    s = s._replace(law=judged.state, gap=judged.gap, armed=judged.armed)
    each = u[-port.flows :]
    share = judged.signals / jnp.where(number > 0, number, 1.0)
    if port.spaced:
        pool = jnp.where(offer.mapped > 0, 0.0, offer.flows * share[None])
        if port.single:
            pool = _within(offer.flows, judge.parts, reached)
        chosen = deal(pool, u[port.blocks])
        if port.each:
            own = jnp.where(offer.mapped > 0, offer.flows, 0.0)
            chosen = chosen + draw_signals(offer.chances(judged.mark), own, each)
    else:
        own = judged.chance[None]
        if offer.maps:
            own = jnp.where(offer.mapped > 0, offer.chances(judged.mark), own)
        chosen = draw_signals(own, offer.flows, each)
    chosen = chosen * offer.entry
    marks = chosen * offer.capable * jnp.where(judged.mark[None] < offer.below, 1.0, 0.0)
    others = share if port.spaced else judged.chance
    s = s._replace(marked=s.marked + offer.loose * others)
    if port.each:
        forced = draw_signals(judged.drop[None], offer.flows, 1 - each)
    else:
        forced = deal(judged.drop[None] * offer.flows, u[port.blocks])
    return s, jnp.where(forced > 0, 0.0, marks), chosen - marks + forced, judged.drop


def pass_through(
    port: Port, numbers: PortNumbers, s: PortState, record: PortRecord, offer: Offer,
    k: Array, now: Array, step: Array, whole: Array, ahead: Any, u: Array,
) -> Outcome:  # fmt: skip
    """One step of a link that can serve `whole` packets in it; `u` are its random numbers. The head
    of a queue that goes first waits since `ahead` steps.
    """
    arriving, queue = jnp.sum(offer.flows, axis=0), s.accepted - s.served
    total = arriving + offer.work + offer.loose_work
    number = arriving + offer.number + offer.loose
    by_number = _held(port, s)
    whole = whole + 0.0 * queue
    room, voice = _voice(port, numbers, s, offer, whole, queue + total)
    room = room + s.shed if port.departs else room
    marks = losses = jnp.zeros_like(offer.flows)
    dropped, taken = 0.0 * queue, draws_of_law(port)
    if port.signals and not port.departs:
        own = u[:taken]
        s, marks, losses, dropped = _choose(
            port, numbers, s, offer, step, number, by_number, whole, own
        )
    if port.lossy:
        p = numbers.random_loss + 0.0 * queue
        forced = draw_signals(p[None], offer.flows, u[taken : taken + port.flows])
        losses, marks = losses + forced, jnp.where(forced > 0, 0.0, marks)
        dropped = dropped + (1 - dropped) * p
    if port.finite:
        over = by_number + number - room - (numbers.buffer + 1.0)
        over = jnp.ceil(jnp.maximum(over, 0.0) - _WHOLE)
        share = over / jnp.where(number > 0, number, 1.0)
        forced = deal(offer.flows * share[None], u[-1 - (port.ticks > 0)])
        losses, marks = losses + forced, jnp.where(forced > 0, 0.0, marks)
        s = s._replace(full=jnp.minimum(share, 1.0))
        dropped = jnp.minimum(dropped + share, 1.0)
    cut = jnp.minimum(losses, offer.flows)
    kept, passed = jnp.sum(offer.flows - cut, axis=0), 1 - dropped
    lost, entered = jnp.sum(cut, axis=0) + offer.loose * dropped, 1.0
    if port.counted:
        size = offer.work / jnp.where(offer.number > 0, offer.number, 1.0)
        entry = jnp.max(offer.entry) if port.signals else 0.0
        entered = 1 - chance_of_loss(port, numbers, s, step, size, offer.least, entry)
        lost = lost + offer.number * (1 - entered)
    s = s._replace(
        accepted=s.accepted + kept + offer.work * entered + offer.loose_work * passed,
        numbers=s.numbers + kept + offer.number * entered + offer.loose * passed,
        voice=voice, offered=s.offered + number, dropped=s.dropped + lost,
        used=s.used + whole - room,
    )  # fmt: skip
    served, before, leaving = jnp.minimum(s.accepted, s.served + room), s, ()
    busy = (served - s.served) / jnp.maximum(room, _TINY)  # share of the step
    s, record = _serve(port, s._replace(served=served), record, k)
    if port.signals and port.departs:
        s, leaving = _judge_leaving(port, numbers, before, s, record, k, step, u)
    if port.signals or port.finite or port.lossy:
        record = record._replace(lost=write(record.lost, k, last(record.lost, k) + cut))
    if port.written:
        said = _say(numbers, s, s.accepted - s.served, step)
        rings = zip(port.written, record.written, strict=True)
        rings = (write(ring, k, getattr(said, name) + 0.0 * queue) for name, ring in rings)
        record = record._replace(written=tuple(rings))
    present = s.numbers - jnp.floor(s.left + _WHOLE)
    waits = jnp.maximum(present - 1.0, 0.0)
    s = s._replace(
        area=s.area + step * waits, squares=s.squares + step * waits**2,
        # one at a time was there in a step that leaves none
        system=s.system + step * jnp.maximum(present, busy),
        system_squares=s.system_squares + step * jnp.maximum(present**2, busy),
    )  # fmt: skip
    if port.ticks:
        longest = jnp.maximum(waited(record, k + 1), ahead) * step
        s = _tick(port, numbers, s, number, present, now, step, longest, u[-1])
    return Outcome(s, record, marks, leaving)


def _judge_leaving(
    port: Port, numbers: PortNumbers, before: PortState, s: PortState, record: PortRecord,
    k: Array, step: Array, u: Array,
) -> tuple[PortState, Leaving]:  # fmt: skip
    """The link after its law has seen the packets of a step leave, one or a few at a time, and its
    signals to them.

    What they have waited and leave behind moves evenly from that of the first to the last one's.
    """
    law, capacity, x = numbers.law, numbers.capacity + 0.0 * s.left, s.law
    whole = jnp.floor(s.left + _WHOLE) - jnp.floor(before.left + _WHOLE)
    size = jnp.maximum(jnp.ceil(whole / port.blocks), 1.0)
    waits = [_held(port, before), _held(port, s)]
    ages = [waited(record, row) for row in (k, k + 1)]
    marked = dropped = end = part_of = 0.0 * whole
    for j in range(1, port.blocks + 1):
        begin, end, time = end, jnp.minimum(size * j, whole), part_of
        part_of = jnp.where(whole > 0, end / jnp.maximum(whole, 1.0), float(j == port.blocks))
        part, span = end - begin, step * (part_of - time)
        sojourn, queue = (a + (b - a) * part_of for a, b in (ages, waits))
        sojourn = jnp.maximum(sojourn * step - 1 / capacity, 0.0)
        seen = numbers.arrival(part, span, queue, capacity, 1.0 + 0.0 * part, sojourn)
        x = _add(x, law.on_departure(x, seen))
        said = law.signal(x, seen)
        hits = jnp.floor(jnp.minimum(said.mark, 1.0) * part + u[j - 1])
        lost = jnp.floor(jnp.minimum(said.drop, 1.0) * part + 1 - u[j - 1])
        if law.heeds_signals:
            told, change = hits + lost, law.on_signal(x, seen)
            x = _add(x, map_tree(lambda v, n=told: n * v, change))
        marked, dropped = marked + hits, dropped + lost
    return s._replace(law=x), Leaving(whole, marked, dropped)


def waited(record: PortRecord, k: Array) -> Array:
    """Steps that the head of a queue has waited (B) at the beginning of step k."""
    return (k - 1).astype(float) - last(record.place, k)


def room_of(
    port: Port, link: int, numbers: PortNumbers, step: Array, run: Run, served: Array
) -> Array:
    """Packets (B) that a link can serve in a step: of a shared transmitter, what the queue that is
    `served` first leaves, or all but what waits beside it, by its weight at least; by a shift, all
    until the head beside it has waited longer by this time.
    """
    whole = numbers.capacity * step
    if port.after >= 0:
        return jnp.maximum(whole - served, 0.0)
    if port.beside < 0:
        return whole
    behind, least = run.ports[port.beside], numbers.weight
    if port.shifts:
        own, other = (waited(run.record.ports[j], run.k) * step for j in (link, port.beside))
        least = jnp.where(own + numbers.shift >= other, 1.0, 0.0)
    return jnp.maximum(least * whole, whole - (behind.accepted - behind.served))


def _serve(port: Port, s: PortState, record: PortRecord, k: Array) -> tuple[PortState, PortRecord]:
    """Find when what leaves now has come, first in, first out."""
    ring, empty = write(record.accepted, k, s.accepted), s.accepted - s.served <= _WHOLE
    place = jnp.where(empty, k.astype(float), locate(ring, k, s.served))
    record = record._replace(accepted=ring, place=write(record.place, k, place))
    if not port.counted:
        return s._replace(left=s.served), record
    ring = write(record.number, k, s.numbers)
    left = jnp.where(empty, s.numbers, between(ring, place[None])[0])
    return s._replace(left=left), record._replace(number=ring)


def _say(numbers: PortNumbers, s: PortState, queue: Array, step: Array, size: Any = 1.0) -> Signal:
    """The signal to a packet of a size, in packets of the link, that sees `queue` of them."""
    zero = 0.0 * queue
    seen = numbers.arrival(1.0 + zero, step + zero, queue, numbers.capacity + zero, size + zero)
    return numbers.law.signal(s.law, seen)


def _held(port: Port, s: PortState) -> Array:
    """Packets (B) that are left to serve, by number."""
    return s.numbers - s.left if port.counted else s.accepted - s.served


def chance_of_loss(
    port: Port, numbers: PortNumbers, s: PortState, step: Array, size: Any, least: Any, entry: Any
) -> Array:
    """Probability (B) that a packet without ECN, of a size in packets of the link, is lost there.

    The law may choose it if `entry` is 1 and, for a law with an average, `least` packets wait.
    """
    kept = 1 - s.full
    if port.lossy:
        kept = kept * (1 - numbers.random_loss)
    if port.signals and not port.departs:
        seen = _see(port, _held(port, s), 0.5)
        said = _say(numbers, s, seen, step, size)
        enough = seen >= (least if port.averages else 0.0)
        kept = kept * (1 - said.drop) * (1 - jnp.where(enough, entry * said.mark, 0.0))
    return 1 - kept


def chance_of_leaving(
    port: Port, numbers: PortNumbers, s: PortState, step: Array, point: MarkingPoint, arms: Any
) -> Array:
    """Probability (B) of a mark for a packet that leaves, or an ACK that passes the router.

    If a law with an average `arms`, it is none until an arrival could have been chosen.
    """
    queue = _see(port, _held(port, s), _PARTS[point])
    said = _say(numbers, s, queue, step)
    if not port.averages:
        return said.mark + 0.0 * queue
    return jnp.where((s.armed > 0) | (said.drop >= 1) | (arms < 0.5), said.mark, 0.0)


def rewrite(
    port: Port, numbers: PortNumbers, s: PortState, record: PortRecord, before: Array, k: Array,
    step: Array, arms: Any,
) -> tuple[PortState, PortRecord]:  # fmt: skip
    """Record the probability of a signal to ACKs that pass the router now, as many as packets were
    served since `before`.
    """
    chance = chance_of_leaving(port, numbers, s, step, MarkingPoint.REVERSE, arms)
    s = s._replace(marked=s.marked + chance * (s.served - before))
    return s, record._replace(chance=write(record.chance, k, chance))
