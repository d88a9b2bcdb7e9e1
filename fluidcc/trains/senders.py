"""Senders of one kind in one step: what ACKs, marks and losses do, and what is sent.

Arrays are (n, B). What is heard lies on the path of the packets backwards: `Heard`.
"""

from typing import Any, NamedTuple

from fluidcc.arrays import jnp
from fluidcc.laws.law import WRITTEN, Ack, MarkingPoint, Since
from fluidcc.programs import leaves, map_tree
from fluidcc.trains.layout import Kind, KindNumbers
from fluidcc.trains.state import NEVER, SenderState

Array = Any
_WHOLE = 1e-6  # packets: a window this near to a whole one lets it go
_AT_ONCE = 2  # most marks that are answered in a step where each counts
_FORGETS = 8.0  # back-off beyond which the smoothed round trip is forgotten; ns-2.35


class Heard(NamedTuple):
    """What reaches the senders in a step."""

    known: Array  # packets sent that are now known to have come or been lost, since the start
    lost: Array  # those lost
    marks: Array  # since the start
    quenched: Array  # losses known by quenches, since the start
    written: dict[str, Array]  # numbers in packets
    rtt: Array  # s
    modified: Array  # probability that an ACK of now was rewritten


def select(mask: Array, yes: Any, no: Any) -> Any:
    """The state of a law (n, B), of one or the other by a mask."""
    return map_tree(lambda a, b: jnp.where(mask, a, b), yes, no)


def _added(state: Any, change: Any, mask: Array) -> Any:
    return map_tree(lambda a, d: a + jnp.where(mask, d, 0.0), state, change)


def respond(
    kind: Kind, p: KindNumbers, s: SenderState, heard: Heard, now: Array, step: Array, u: Array
) -> SenderState:
    """Let the laws act on what is heard; `u` are random numbers for each flow."""
    response = _Response(kind, p, s, heard, now, step, u)
    response.observe()
    response.measure()
    response.lose()
    response.signal()
    response.grow()
    response.tick()
    return response.account()


class _Response:
    """The response of the senders of a kind in one step: `s` is what they have come to."""

    def __init__(
        self, kind: Kind, p: KindNumbers, s: SenderState, heard: Heard, now: Array, step: Array,
        u: Array,
    ) -> None:  # fmt: skip
        self.kind, self.p, self.s, self.heard, self.now, self.step = kind, p, s, heard, now, step
        self.rules, self.zero = p.window, jnp.zeros_like(s.sent)
        self.flight = s.sent - s.known
        self.acks = jnp.maximum(heard.known - heard.lost - s.acked, 0.0)
        self.losses, self.marks = heard.lost - s.lost, heard.marks - s.marks
        self.open, self.silent = now >= s.begin, now < s.silent_until
        self.after = heard.known > s.recover  # packets sent after the last reaction are known of
        self.quiet, self.spoke = s.quiet + step, self.acks > 0
        self.rtt = heard.rtt + self.zero
        load, estimate = _loads(kind, p, s, heard, self.acks, self.marks, u)
        self.written = heard.written | ({"load": load} if kind.loads else {})
        permitted, fraction = _permit(kind, p, s, heard, self.acks, u)
        self.place = u[-kind.count :]  # of a loss among what is heard, for files
        extremes = self._extremes() if kind.measures else ()
        self.s = s._replace(
            estimate=estimate, permitted=permitted, fraction=fraction, extremes=extremes
        )

    def _extremes(self) -> tuple[Array, ...]:
        """Extremes of the round trip after these ACKs, as `SenderState` has them."""
        least, greatest, least_before, greatest_before, until = self.s.extremes
        over, rtt = self.now >= until, self.rtt
        least_before = jnp.where(over, least, least_before)
        greatest_before = jnp.where(over, greatest, greatest_before)
        least, greatest = jnp.where(over, NEVER, least), jnp.where(over, 0.0, greatest)
        least = jnp.where(self.spoke, jnp.minimum(least, rtt), least)
        greatest = jnp.where(self.spoke, jnp.maximum(greatest, rtt), greatest)
        until = jnp.where(over, self.now + min(self.rules.memory / 2, NEVER), until)
        return least, greatest, least_before, greatest_before, until

    def _ack(self, count: Array, marked: Array) -> Ack:
        """Acknowledgements as the rules see them."""
        elapsed = jnp.where(self.spoke, self.quiet, 0.0)
        delay = jnp.maximum(self.rtt - self.p.trip, 0.0)
        numbers = {name: self.written.get(name, 0.0) + self.zero for name in WRITTEN}
        ack = Ack(
            count, elapsed, self.rtt, marked=marked, delay=delay, one_way=delay,
            propagation=self.p.trip + self.zero, **numbers,
        )  # fmt: skip
        if not self.s.extremes:
            return ack
        now, before = self.s.extremes[:2], self.s.extremes[2:4]
        least, greatest = jnp.minimum(now[0], before[0]), jnp.maximum(now[1], before[1])
        return ack._replace(
            least_rtt=jnp.where(least < NEVER, least, self.rtt),
            greatest_rtt=jnp.where(greatest > 0, greatest, self.rtt),
        )

    def _since(self, later: Array) -> Since:
        """The time since the last reaction; `later` where packets sent after it are known of."""
        time, span = self.now - self.s.reacted_at, self.rtt
        rounds = self.rules.rounds(self._ack(self.zero, self.zero))
        if not isinstance(rounds, int):
            span = self.rtt / rounds
            later = later & (time >= span)
        return Since(time, span, jnp.where(later, 1.0, 0.0), self.s.dropped)

    def _window(self) -> Array:
        """Windows, of which the receivers' are no smaller."""
        return jnp.minimum(self.rules.window(self.s.law), self.rules.max_window)

    def _duplicates(self) -> Array:
        """Duplicate ACKs for a lost packet: of those behind it, of those that ACKs before it let
        go, and of the new ones of limited transmit, which the window allows, one more for each
        duplicate, and the receiver. RFC 3042.
        """
        s, acks, most = self.s, self.acks, self.p.limited
        window = jnp.floor(self._window() + _WHOLE)
        allowed = jnp.minimum(window + most, s.permitted) - self.flight
        limited = jnp.clip(allowed, 0.0, most)
        if not self.kind.starts:  # there is always more to send
            return self.flight - self.losses + limited
        left = s.need - s.got - self.flight
        before = jnp.floor((acks + 1) * self.place)  # of those that come with it
        new = jnp.clip(left, 0.0, before + limited)
        return s.sent - self.heard.known + acks - before + new

    def _is_repairing(self) -> Array:
        """Whether a recovery is under way: by SACK, until all that was sent again is known of."""
        if self.kind.recovery == "sack":
            return (self.heard.known <= self.s.resent) & (self.s.repaired_at >= NEVER)
        return self.now + 0.5 * self.step < self.s.repaired_at

    def observe(self) -> None:
        """Learn from all ACKs."""
        if self.kind.observes:
            marked = self.marks / jnp.where(self.spoke, self.acks, 1.0)
            ack = self._ack(self.acks, jnp.where(self.spoke, jnp.clip(marked, 0.0, 1.0), 0.0))
            change = self.rules.observe(self.s.law, ack)
            self.s = self.s._replace(law=_added(self.s.law, change, self.spoke & ~self.silent))

    def measure(self) -> None:
        """Smooth the round trip, once in each, of packets that are not sent again. Karn and
        Partridge (1987).
        """
        s = self.s
        timed = self.spoke & self.open & (self.heard.known > jnp.maximum(s.timed, s.resent))
        s = take_sample(self.p, s, timed, self.rtt, self.now)
        ends = timed
        if self.kind.gated:  # at a window of 1 marks keep the back-off
            ends = timed & ~((s.at_one > 0) & self._is_echoed())
        self.s = s._replace(
            timed=jnp.where(timed, s.sent, s.timed), backoff=jnp.where(ends, 1.0, s.backoff)
        )

    def _is_echoed(self) -> Array:
        """Whether ACKs carry marks."""
        return (self.marks > 0) & (self.kind.capable and not self.kind.quench)

    def _expiry(self, recovered_at: Array) -> Array:
        """Time at which the timer expires. It runs from the last new ACK, in Reno not before the
        end of a recovery, or from the sending of the lost packet.
        """
        s, p = self.s, self.p
        span = jnp.minimum(jnp.maximum(s.timeout, p.min_rto) * s.backoff, p.max_rto)
        waited = jnp.where(self.spoke, 0.0, jnp.minimum(self.quiet, self.rtt))
        waited = jnp.where(self.heard.known <= s.resent, self.rtt, waited)  # ACKs are duplicates
        start = self.now - waited
        if self.kind.recovery == "reno":
            start = jnp.maximum(start, recovered_at)
        return start + jnp.maximum(span, 2 * p.tick)

    def lose(self) -> None:
        """Find losses: by duplicate ACKs, and recover, or by the timer."""
        kind, s, zero, none = self.kind, self.s, self.zero, self._ack(self.zero, self.zero)
        lossy = (self.losses > 0) & ~self.silent & self.open
        sack, repairing = kind.recovery == "sack", self._is_repairing()
        fresh, signalled = lossy & self.after, s.signalled > 0
        # a loss in a window that a signal has cut is repaired without another cut
        found = fresh | (lossy & ~repairing & signalled)
        late = found & (self._duplicates() < self.p.enough)
        late = late | (fresh & (self.heard.known <= s.resent))  # of one that is sent again
        recovers = fresh & ~late
        cut, target, _ = self._cut(self.rules.on_loss, none)
        recovered_at = s.repaired_at
        if kind.recovery == "reno":  # a second loss waits for the timer, and cuts once more
            twice = found & ~late & (self.losses > 1.5)
            recovered_at = jnp.where(twice, self.now + self.rtt, recovered_at)
            self.s = s._replace(law=select(twice & fresh, cut, s.law))
            target = self._cut(self.rules.on_loss, none)[1]
            late = late | twice | (lossy & ~fresh & ~signalled & (s.backoff < 2))
            signalled = signalled & ~twice
        law = select(fresh, cut, s.law)
        law = select(late, self.rules.with_window(law, 1.0 + zero), law)
        self.s = s._replace(law=law)
        permitted = _largest_flight(kind, self.rules, self.s.law)
        stalled = (permitted - s.missing < 1.0) & (self.flight < 0.5)
        stalled = stalled & self.open & ~self.silent
        lacks = stalled & (s.missing > 0)
        expires, begins = late | stalled, found & ~late
        repairs = self.losses * self.rtt if kind.recovery == "newreno" else self.rtt
        repaired_at = jnp.where(begins, self.now + repairs, s.repaired_at)
        if kind.recovery == "newreno":
            repaired_at = jnp.where(lossy & ~begins & repairing, repaired_at + repairs, repaired_at)
        if sack:
            repaired_at = jnp.where(begins, NEVER, s.repaired_at)
        # what is sent again waits for the timer if it is lost once more, as does the first packet
        # after it, whose duplicate ACKs could be those of a packet that was sent again in vain
        first = 0.0 if sack else self.p.unrepaired
        resent = jnp.where(begins, s.sent + first, s.resent)
        resent = jnp.where(expires, s.sent + s.missing + self.p.unrepaired, resent) + self.losses
        resent = jnp.where(self.heard.known > resent, -1.0, resent)
        missing = s.missing
        if sack:  # as under way count those not repaired yet, first of all that is sent now
            left = jnp.minimum(s.missing + self.losses, resent - self.heard.known)
            missing = jnp.where((repaired_at >= NEVER) & ~expires & (resent >= 0), left, 0.0)
        # after a signal the timer cuts no more; with nothing under way it does not back off
        counted = (late & ~signalled) | lacks
        backoff = jnp.where(late | lacks, 2 * s.backoff, s.backoff)
        self.s = self.s._replace(
            law=select(stalled, self.rules.with_window(law, 1.0 + zero), law),
            threshold=jnp.where(recovers | counted, _threshold(target), s.threshold),
            recover=jnp.where(fresh | late, s.sent, s.recover),
            repaired_at=jnp.where(expires, self.now, repaired_at),
            resent=resent, missing=missing, backoff=backoff,
            silent_until=jnp.where(expires, self._expiry(recovered_at), s.silent_until),
            smoothed=jnp.where(backoff > _FORGETS, 0.0, s.smoothed),
            timeouts=s.timeouts + jnp.where(counted, 1.0, 0.0),
            recoveries=s.recoveries + jnp.where(recovers, 1.0, 0.0),
        )  # fmt: skip
        if kind.capable or kind.quench:
            self.s = self.s._replace(signalled=jnp.where(found | expires, 0.0, s.signalled))
        self.fresh, self.calm = fresh, self.open & ~self.silent & ~late

    def signal(self) -> None:
        """React to marks and quenches, as the reaction has it."""
        kind, marked = self.kind, self._ack(self.zero, 1.0 + self.zero)
        if not (kind.capable or kind.quench):
            return
        rules, marks = self.rules, jnp.where(self.calm, self.marks, 0.0)
        quenched = self.heard.quenched - self.s.quenched if kind.quench else self.zero
        if kind.gated:
            since = self._since(self.after)
            ready = (self.p.reaction.ready(since) + self.zero > 0) & self.calm & ~self.fresh
            hit = self._react(rules.on_mark, marked, (marks > 0) & ready, 0.0)
            if kind.quench:
                self._react(rules.on_loss, marked, (quenched > 0) & ready & ~hit, 1.0)
            return
        pending = self.s.pending + marks
        for _ in range(_AT_ONCE):
            hit = self._react(rules.on_mark, marked, pending > 0, 0.0, once=False)
            pending = jnp.maximum(pending - 1.0, 0.0)
        self.s = self.s._replace(pending=pending)
        if kind.quench:
            self._react(rules.on_loss, marked, self.calm & self.after & (quenched > 0), 1.0)

    def _cut(self, rule: Any, ack: Ack) -> tuple[Any, Array, Array]:
        """The laws after a signal, the windows that it aims at, and whether it changes anything."""
        rules, whole = self.rules, self.kind.integer_windows
        base = jnp.floor(self._window()) if whole else self._window()
        before = rules.with_window(self.s.law, base)
        change = rule(before, ack)
        after = map_tree(lambda a, d: a + d, before, change)
        target = jnp.floor(rules.window(after)) if whole else rules.window(after)
        moves = sum(jnp.abs(d) for d in leaves(change)) > 0
        return rules.with_window(after, jnp.maximum(target, self.p.floor)), target, moves

    def _react(self, rule: Any, ack: Ack, mask: Array, dropped: float, once: bool = True) -> Array:
        """React to a signal where it counts; `once` in a window, or to each. Who has reacted."""
        s, recover, signalled = self.s, self.s.recover, self.s.signalled
        cut, target, moves = self._cut(rule, ack)
        hit = mask & moves
        backoff, at_one = s.backoff, s.at_one
        if once:  # at a window of 1 the timer backs off instead. RFC 3168, 6.1.2
            one = jnp.where(self._window() <= 1, 1.0, 0.0)
            backoff = jnp.where(hit & (one > 0) & (at_one > 0), 2 * backoff, backoff)
            at_one = jnp.where(hit, one, at_one)
            anew = hit & ~self._is_repairing() if self.kind.quench else hit
            recover = jnp.where(anew, s.sent, recover)
            signalled = jnp.where(anew, 1.0, signalled)
        law = select(hit, cut, s.law)
        threshold = _threshold(target) if once else self.rules.window(law)
        self.s = s._replace(
            law=law,
            threshold=jnp.where(hit, threshold, s.threshold),
            recover=recover, signalled=signalled,
            reacted_at=jnp.where(hit, self.now, s.reacted_at),
            dropped=jnp.where(hit, dropped, s.dropped) if self.kind.quench else s.dropped,
            reductions=s.reductions + jnp.where(hit, 1.0, 0.0),
            backoff=backoff, at_one=at_one,
        )  # fmt: skip
        return hit

    def grow(self) -> None:
        """Grow on ACKs that the reaction lets through, by slow start or by the law."""
        kind, s, rules, zero = self.kind, self.s, self.rules, self.zero
        later = self.heard.known > s.recover
        since = self._since(later)
        grows = self.spoke & self.calm & ~self.fresh & ~self._is_repairing()
        if kind.sticky and not kind.grow_on_echo:
            grows = grows & later
        clean, marked = (self.p.reaction.growing(since, m + zero) + zero for m in (0.0, 1.0))
        tagged = jnp.minimum(self.marks, self.acks) if kind.capable and not kind.quench else zero
        count = jnp.where(clean > 0, self.acks - tagged, 0.0) + jnp.where(marked > 0, tagged, 0.0)
        count = jnp.where(grows, count, 0.0)
        if kind.growth != 1:
            count = kind.growth * count
        window = rules.window(s.law)
        slow = (window < s.threshold) & (rules.slow_start(s.law) + zero > 0)
        most = jnp.maximum(s.threshold, window) + 1.0
        started = rules.with_window(s.law, jnp.minimum(window + count, most))
        # each ACK meets what those before it have made of the law: half of them in the mean
        ack, some = self._ack(count, zero), count > 0
        before = 0.5 * jnp.maximum(1 - 1 / jnp.maximum(count, 1.0), 0.0)
        middle = map_tree(lambda a, d: a + before * d, s.law, rules.on_ack(s.law, ack))
        grown = _added(s.law, rules.on_ack(middle, ack), some)
        self.s = s._replace(law=select(slow, started, grown))

    def tick(self) -> None:
        """Perform the ticks of the window law that are due."""
        if not self.kind.ticks:
            return
        s, rules, ack = self.s, self.rules, self._ack(self.zero, self.zero)
        due = self.open & (self.now + self.step >= s.tick_at)
        law = _added(s.law, rules.on_tick(s.law, ack), due)
        window = jnp.maximum(rules.window(law), jnp.where(due, self.p.floor, 0.0))
        following = jnp.maximum(s.tick_at, self.now) + rules.period(ack) + self.zero
        tick_at = jnp.where(due, following, s.tick_at)
        self.s = s._replace(law=rules.with_window(law, window), tick_at=tick_at)

    def account(self) -> SenderState:
        """The senders after the step."""
        rules, s, heard, acks = self.rules, self.s, self.heard, self.acks
        law = rules.bounded(rules.with_window(s.law, self._window()))
        begun = self.open
        if self.kind.starts:  # from its first SYN on, whose window is one packet
            asked = (s.files.connects_at >= NEVER) | (s.backoff > 1)
            begun = (s.need > 0) & asked
            round_trip = jnp.where(self.spoke, self.rtt, s.round_trip)
            s = s._replace(got=s.got + acks, round_trip=round_trip)
        if self.kind.quench:
            s = s._replace(quenched=heard.quenched)
        if self.kind.paced:
            more = self.step * rules.pacing(law, self._ack(self.zero, self.zero))
            s = s._replace(paced=jnp.minimum(s.paced, 1.0) + jnp.where(self.open, more, 0.0))
        shown = jnp.where(begun, jnp.where(self.open, rules.window(law), 1.0), 0.0)
        return s._replace(
            law=law, at_one=jnp.where(self.spoke & ~self._is_echoed(), 0.0, s.at_one),
            known=heard.known, lost=heard.lost, marks=heard.marks,
            quiet=jnp.where(self.spoke, 0.0, self.quiet), acked=s.acked + acks,
            window_time=s.window_time + self.step * shown,
            open_time=s.open_time + jnp.where(shown > 0, self.step, 0.0),
            rtt_sum=s.rtt_sum + acks * self.rtt,
        )  # fmt: skip


def take_sample(p: KindNumbers, s: SenderState, mask: Array, rtt: Array, now: Array) -> SenderState:
    """Smooth a round trip where the mask is, in whole ticks of the clock of each sender, and find
    the timeout. Jacobson (1988), in integers as in ns-2.35.
    """
    clock = now / p.tick + p.phase
    ticks = jnp.maximum(jnp.floor(clock) - jnp.floor(clock - rtt / p.tick), 1.0)
    error, first = ticks - jnp.floor(s.smoothed / 8), s.smoothed <= 0
    spread = jnp.maximum(s.deviation + jnp.abs(error) - jnp.floor(s.deviation / 4), 1.0)
    smoothed = jnp.where(first, 8 * ticks, jnp.maximum(s.smoothed + error, 1.0))
    deviation = jnp.where(first, 2 * ticks, spread)
    return s._replace(
        smoothed=jnp.where(mask, smoothed, s.smoothed),
        deviation=jnp.where(mask, deviation, s.deviation),
        timeout=jnp.where(mask, (deviation + jnp.floor(smoothed / 8)) * p.tick, s.timeout),
    )


def _threshold(target: Array) -> Array:
    """Slow-start threshold after a cut: whole packets, at least 2. ns-2.35."""
    return jnp.maximum(jnp.floor(target), 2.0)


def _loads(
    kind: Kind, p: KindNumbers, s: SenderState, heard: Heard, acks: Array, marks: Array, u: Array
) -> tuple[Array, Array]:
    """The load factor that a sender knows, and the receiver's estimate."""
    if not kind.loads:
        return jnp.zeros_like(s.sent), s.estimate
    load = heard.written["load"] + jnp.zeros_like(s.sent)
    if not kind.decodes:
        return load, jnp.where(acks > 0, load, s.estimate)
    estimate = s.estimate
    for j in range(kind.decodes):
        hashed = u[j * kind.count : (j + 1) * kind.count]
        moved = estimate + p.estimator.decode(estimate, hashed, load)
        estimate = jnp.where(acks > j, moved, estimate)
    known = p.estimator.known_load(estimate, load)
    if kind.tells:  # the sender reacts to the mark itself by the estimate before it
        most = estimate + p.estimator.decode(estimate, 1.0 + 0.0 * estimate, NEVER + 0.0 * load)
        estimate = jnp.where(marks > 0, most, estimate)
    return known, estimate


def _permit(
    kind: Kind, p: KindNumbers, s: SenderState, heard: Heard, acks: Array, u: Array
) -> tuple[Array, Array]:
    """Packets that the last whole ACK permits in flight, and the part of a packet after it."""
    if kind.marking_point is not MarkingPoint.REVERSE:
        return s.permitted, s.fraction
    reached = s.fraction + acks
    whole = jnp.floor(reached)
    hit = jnp.where(u[: kind.count] < heard.modified, 1.0, 0.0)
    permitted = p.feedback.advertised_window(p.window.max_window + 0.0 * s.sent, hit)
    return jnp.where(whole >= 1, permitted, s.permitted), reached - whole


def send(kind: Kind, p: KindNumbers, s: SenderState, now: Array, step: Array) -> SenderState:
    """The senders after what their windows let go in a step."""
    window = jnp.floor(_largest_flight(kind, p.window, s.law) + _WHOLE)
    room = jnp.minimum(window, s.permitted) - (s.sent - s.known) - s.missing
    if kind.starts:
        room = jnp.minimum(room, s.need - s.got - (s.sent - s.known))
    room = jnp.minimum(room, p.access * step)
    if kind.paced:
        room = jnp.minimum(room, jnp.floor(s.paced + _WHOLE))
    go = (now >= s.begin) & (now >= s.silent_until)
    sent = jnp.where(go, jnp.maximum(room, 0.0), 0.0)
    return s._replace(sent=s.sent + sent, paced=s.paced - sent if kind.paced else ())


def _largest_flight(kind: Kind, rules: Any, law: Any) -> Array:
    """Packets in flight that a law permits: its window, if paced one at least, if by rate any."""
    window = jnp.minimum(rules.window(law), rules.max_window)
    if kind.rate_based:
        return NEVER + 0.0 * window
    return jnp.maximum(window, 1.0) if kind.paced else window
