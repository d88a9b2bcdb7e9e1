"""Senders of one kind in one step: what ACKs, marks and losses do, and what is sent.

Arrays are (n, B). What is heard lies on the path of the packets backwards: `Heard`.
"""

from typing import Any, NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.arrays import jnp
from fluidcc.laws.law import Ack, MarkingPoint, Since
from fluidcc.programs import map_tree
from fluidcc.trains.files import first_files
from fluidcc.trains.layout import Kind, KindNumbers

Array = Any
_NEVER = 1e18  # s
_WHOLE = 1e-6  # packets: a window this near to a whole one lets it go
_AT_ONCE = 2  # most marks that are answered in a step where each counts
_MOST_BACKOFF = 64.0


class SenderState(NamedTuple):
    """Flows of a kind between two steps; counts since the start are in packets."""

    law: Any
    threshold: Array  # of slow start
    sent: Array
    known: Array  # sent, and known to have come or been lost
    lost: Array  # known to be lost
    marks: Array  # heard
    quenched: Array  # losses heard by quenches
    pending: Array  # marks that are still to be answered
    recover: Array  # `sent` at the last reaction
    reacted_at: Array  # s
    dropped: Array  # 1 if that was to a quench for a loss
    repaired_at: Array  # s, end of the recovery
    resent: Array  # `sent` up to which packets of the recovery are sent again
    silent_until: Array  # s, end of a timeout
    backoff: Array
    quiet: Array  # s since the last ACK
    permitted: Array  # packets in flight by the last ACK
    fraction: Array  # of a packet whose ACK is under way, for rules by the packet
    estimate: Array  # of the load
    tick_at: Array  # s
    begin: Array  # s
    need: Array  # packets of the file; never ends for bulk
    got: Array  # of the file, acknowledged
    acked: Array
    timeouts: Array
    reductions: Array
    recoveries: Array
    window_time: Array  # integral of the window while open [packet s]
    open_time: Array
    rtt_sum: Array  # of ACKs [packet s]
    round_trip: Array  # s, measured last
    files: Any


class Heard(NamedTuple):
    """What reaches the senders in a step."""

    known: Array  # packets sent that are now known to have come or been lost, since the start
    lost: Array  # those lost
    marks: Array  # since the start
    quenched: Array  # losses told by quenches, since the start
    load: Array
    rtt: Array  # s
    modified: Array  # probability that an ACK of now was rewritten


def first_sender(kind: Kind, numbers: KindNumbers) -> SenderState:
    """Flows before they start."""
    zero = np.zeros_like(numbers.begin)
    law = map_tree(lambda v: v + zero, numbers.window.start(numbers.initial + zero))
    start = numbers.begin + numbers.opening
    never = zero - _NEVER
    return SenderState(
        law=law,
        threshold=numbers.threshold + zero,
        sent=zero, known=zero, lost=zero, marks=zero, quenched=zero, pending=zero,
        recover=zero - 1.0, reacted_at=never, dropped=zero, repaired_at=never, resent=zero - 1.0,
        silent_until=never, backoff=zero + 1.0, quiet=zero, permitted=zero + _NEVER,
        fraction=zero, estimate=zero,
        tick_at=start if kind.ticks else zero + _NEVER,
        begin=start, need=zero if kind.starts else zero + _NEVER, got=zero,
        acked=zero, timeouts=zero, reductions=zero, recoveries=zero,
        window_time=zero, open_time=zero, rtt_sum=zero, round_trip=numbers.trip + zero,
        files=first_files(kind, numbers, numbers.begin),
    )  # fmt: skip


def _chosen(mask: Array, yes: Any, no: Any) -> Any:
    return map_tree(lambda a, b: jnp.where(mask, a, b), yes, no)


def _added(law: Any, change: Any, mask: Array) -> Any:
    return map_tree(lambda a, d: a + jnp.where(mask, d + 0.0 * a, 0.0), law, change)


def respond(
    kind: Kind, p: KindNumbers, s: SenderState, heard: Heard, now: Array, step: Array, u: Array
) -> SenderState:
    """Let the laws act on what is heard."""
    rules, zero = p.window, 0.0 * s.sent
    flight = s.sent - s.known
    acks = jnp.maximum(heard.known - heard.lost - s.acked, 0.0)
    losses = heard.lost - s.lost
    marks = heard.marks - s.marks
    open_ = now >= s.begin
    silent = now < s.silent_until
    after = heard.known > s.recover
    quiet = s.quiet + step
    spoke = acks > 0
    rtt = heard.rtt + zero
    delay = jnp.maximum(rtt - p.trip, 0.0)
    share = jnp.where(spoke, jnp.clip(marks / jnp.where(spoke, acks, 1.0), 0.0, 1.0), 0.0)
    load, estimate = _loads(kind, p, s, heard, acks, marks, u)

    def ack(count: Array, marked: Array) -> Ack:
        return Ack(count, jnp.where(spoke, quiet, 0.0), rtt, load + zero, marked, delay)

    law = s.law
    window = rules.window
    # every ACK
    if kind.capable or kind.loads:
        law = _added(law, rules.observe(law, ack(acks, share)), spoke & ~silent)
    # losses
    lossy = (losses > 0) & ~silent & open_
    repairing = now < s.repaired_at
    fresh = lossy & after
    enough = flight - losses >= p.enough
    late = lossy & (fresh & ~enough)
    if kind.recovery == "reno":
        late = late | (lossy & ~fresh & repairing)
    late = late | (lossy & after & (heard.known <= s.resent))  # of a packet sent again
    base = jnp.minimum(window(law), rules.max_window)
    if kind.integer_windows:
        base = jnp.floor(base)
    at_base = rules.with_window(law, base)
    cut = map_tree(lambda a, d: a + d, at_base, _full(rules.on_loss(at_base, ack(zero, zero)), at_base))
    target = jnp.floor(window(cut)) if kind.integer_windows else window(cut)
    cutting = fresh | (late & after)
    threshold = jnp.where(cutting, jnp.maximum(jnp.floor(target), 2.0), s.threshold)
    least = p.floor
    landed = rules.with_window(cut, jnp.maximum(target, least))
    law = _chosen(cutting, landed, law)
    law = _chosen(late, rules.with_window(law, 1.0 + zero), law)
    repairs = losses * rtt if kind.recovery == "newreno" else rtt
    # a loss in a window that a signal has cut is repaired without another cut
    begins = lossy & ~late & (fresh | ~repairing)
    repaired_at = jnp.where(begins, now + repairs, s.repaired_at)
    if kind.recovery == "newreno":
        repaired_at = jnp.where(lossy & ~begins, repaired_at + repairs, repaired_at)
    backoff = jnp.where(after & spoke, 1.0, s.backoff)
    timer = jnp.maximum(p.min_rto, 2 * rtt) * backoff
    stalled = open_ & ~silent & (jnp.minimum(window(law), rules.max_window) < 1.0) & (flight < 0.5)
    late_all = late | stalled
    silent_until = jnp.where(late_all, now + timer, s.silent_until)
    law = _chosen(stalled, rules.with_window(law, 1.0 + zero), law)
    backoff = jnp.where(late_all, jnp.minimum(backoff * 2, _MOST_BACKOFF), backoff)
    repaired_at = jnp.where(late_all, now, repaired_at)
    recover = jnp.where(cutting | late, s.sent, s.recover)
    resent = jnp.where(fresh & ~late, s.sent + losses, s.resent + losses)
    resent = jnp.where(late_all | (heard.known > resent), -1.0, resent)
    reacted_at, dropped = s.reacted_at, s.dropped
    reductions, recoveries = s.reductions, s.recoveries + jnp.where(fresh & ~late, 1.0, 0.0)
    # marks and quenches
    pending, calm = s.pending, open_ & ~silent & ~late
    if kind.capable or kind.quench:
        told = jnp.where(calm, marks, 0.0)
        if kind.gated:
            since = Since(now - reacted_at, rtt, jnp.where(after, 1.0, 0.0), dropped)
            ready = (p.reaction.ready(since) + zero > 0) & calm & ~cutting
            signals = [(rules.on_mark, told, 0.0)]
            if kind.quench:
                signals.append((rules.on_loss, heard.quenched - s.quenched, 1.0))
            for rule, count, lost in signals:
                law, hit, wanted = _cut(kind, rules, law, rule, ack(zero, 1.0 + zero), (count > 0) & ready, least)
                threshold = jnp.where(hit, jnp.maximum(jnp.floor(wanted), 2.0), threshold)
                recover = jnp.where(hit, s.sent, recover)
                reacted_at = jnp.where(hit, now, reacted_at)
                dropped = jnp.where(hit, lost, dropped)
                reductions = reductions + jnp.where(hit, 1.0, 0.0)
                ready = ready & ~hit
        else:
            pending = pending + told
            for _ in range(_AT_ONCE):
                law, hit, wanted = _cut(kind, rules, law, rules.on_mark, ack(zero, 1.0 + zero), pending > 0, p.floor)
                threshold = jnp.where(hit, window(law), threshold)
                pending = jnp.maximum(pending - 1.0, 0.0)
                reacted_at = jnp.where(hit, now, reacted_at)
                dropped = jnp.where(hit, 0.0, dropped)
                reductions = reductions + jnp.where(hit, 1.0, 0.0)
            if kind.quench:
                quenches = heard.quenched - s.quenched
                hit_ok = calm & after & (quenches > 0)
                law, hit, wanted = _cut(kind, rules, law, rules.on_loss, ack(zero, 1.0 + zero), hit_ok, least)
                threshold = jnp.where(hit, jnp.maximum(jnp.floor(wanted), 2.0), threshold)
                recover = jnp.where(hit, s.sent, recover)
                reacted_at = jnp.where(hit, now, reacted_at)
                dropped = jnp.where(hit, 1.0, dropped)
                reductions = reductions + jnp.where(hit, 1.0, 0.0)
    # growth
    grows = spoke & calm & ~cutting & (now >= repaired_at)
    if kind.sticky and not kind.grow_on_echo:
        grows = grows & (heard.known > recover)
    since = Since(now - reacted_at, rtt, jnp.where(heard.known > recover, 1.0, 0.0), dropped)
    clean = p.reaction.growing(since, zero) + zero
    marked = p.reaction.growing(since, 1.0 + zero) + zero
    tagged = jnp.minimum(marks, acks) if kind.capable and not kind.quench else zero
    count = jnp.where(clean > 0, acks - tagged, 0.0) + jnp.where(marked > 0, tagged, 0.0)
    count = jnp.where(grows, count, 0.0)
    now_window = window(law)
    slow = (now_window < threshold) & (rules.slow_start(law) + zero > 0)
    started = rules.with_window(law, jnp.minimum(now_window + count, jnp.maximum(threshold, now_window) + 1.0))
    grown = _added(law, rules.on_ack(law, ack(count, zero)), count > 0)
    law = _chosen(slow, started, grown)
    # ticks
    tick_at = s.tick_at
    if kind.ticks:
        at_tick = ack(zero, zero)
        due = open_ & (now + step >= tick_at)
        ticked = _added(law, rules.on_tick(law, at_tick), due)
        law = rules.with_window(ticked, jnp.maximum(window(ticked), jnp.where(due, least, 0.0)))
        tick_at = jnp.where(due, jnp.maximum(tick_at, now) + rules.period(at_tick) + zero, tick_at)
    law = rules.bounded(rules.with_window(law, jnp.minimum(window(law), rules.max_window)))
    permitted, fraction = _permit(kind, p, s, heard, acks, rules.max_window, u)
    shown = jnp.where(open_ & (s.need > 0), jnp.minimum(window(law), rules.max_window), 0.0)
    return s._replace(
        law=law, threshold=threshold, known=heard.known, lost=heard.lost, marks=heard.marks,
        quenched=heard.quenched if kind.quench else s.quenched, pending=pending, recover=recover,
        reacted_at=reacted_at, dropped=dropped, repaired_at=repaired_at, resent=resent, silent_until=silent_until,
        backoff=backoff, quiet=jnp.where(spoke, 0.0, quiet), permitted=permitted,
        fraction=fraction, estimate=estimate, tick_at=tick_at, got=s.got + acks,
        acked=s.acked + acks, timeouts=s.timeouts + jnp.where(late_all, 1.0, 0.0),
        reductions=reductions, recoveries=recoveries,
        window_time=s.window_time + step * shown,
        open_time=s.open_time + jnp.where(shown > 0, step, 0.0), rtt_sum=s.rtt_sum + acks * rtt,
        round_trip=jnp.where(spoke, rtt, s.round_trip),
    )  # fmt: skip


def _full(change: Any, like: Any) -> Any:
    return map_tree(lambda d, a: d + 0.0 * a, change, like)


def _cut(kind: Kind, rules: Any, law: Any, rule: Any, ack: Ack, mask: Array, least: Array) -> Any:
    """The law after a signal, if it changes by it; whether it did; and the window it aimed at."""
    base = jnp.minimum(rules.window(law), rules.max_window)
    if kind.integer_windows:
        base = jnp.floor(base)
    at_base = rules.with_window(law, base)
    change = _full(rule(at_base, ack), at_base)
    moves = sum(jnp.abs(d) for d in _leaves(change)) > 0
    after = map_tree(lambda a, d: a + d, at_base, change)
    target = rules.window(after)
    if kind.integer_windows:
        target = jnp.floor(target)
    hit = mask & moves
    return _chosen(hit, rules.with_window(after, jnp.maximum(target, least)), law), hit, target


def _leaves(tree: Any) -> list[Any]:
    from fluidcc.programs import leaves

    return leaves(tree)


def _loads(
    kind: Kind, p: KindNumbers, s: SenderState, heard: Heard, acks: Array, marks: Array, u: Array
) -> tuple[Array, Array]:
    """The load factor that a sender knows, and the receiver's estimate."""
    if not kind.loads:
        return 0.0 * s.sent, s.estimate
    load = heard.load + 0.0 * s.sent
    if not kind.decodes:
        return load, jnp.where(acks > 0, load, s.estimate)
    estimate = s.estimate
    for j in range(kind.decodes):
        hashed = u[j * kind.count : (j + 1) * kind.count]
        moved = estimate + p.estimator.decode(estimate, hashed, load)
        estimate = jnp.where(acks > j, moved, estimate)
    known = p.estimator.known_load(estimate, load)
    if kind.tells:  # the sender reacts to the mark itself by the estimate before it
        most = estimate + p.estimator.decode(estimate, 1.0 + 0.0 * estimate, _NEVER + 0.0 * load)
        estimate = jnp.where(marks > 0, most, estimate)
    return known, estimate


def _permit(kind: Kind, p: KindNumbers, s: SenderState, heard: Heard, acks: Array, most: Array, u: Array) -> tuple[Array, Array]:
    """Packets that the last whole ACK permits in flight, and the part of a packet after it."""
    reached = s.fraction + acks
    whole = jnp.floor(reached)
    if kind.marking_point is not MarkingPoint.REVERSE:
        return s.permitted, reached - whole
    hit = jnp.where(u[: kind.count] < heard.modified, 1.0, 0.0)
    window = jnp.minimum(p.window.window(s.law), most)
    permitted = p.feedback.advertised_window(most + 0.0 * window, hit)
    return jnp.where(whole >= 1, permitted, s.permitted), reached - whole


def send(kind: Kind, p: KindNumbers, s: SenderState, now: Array, step: Array) -> tuple[SenderState, Array]:
    """What the windows let go in a step (n, B), and the senders after it."""
    window = jnp.floor(jnp.minimum(p.window.window(s.law), p.window.max_window) + _WHOLE)
    room = jnp.minimum(window, s.permitted) - (s.sent - s.known)
    if kind.starts:
        room = jnp.minimum(room, s.need - s.got - (s.sent - s.known))
    room = jnp.minimum(room, p.access * step)
    go = (now >= s.begin) & (now >= s.silent_until)
    sent = jnp.where(go, jnp.maximum(room, 0.0), 0.0)
    return s._replace(sent=s.sent + sent), sent
