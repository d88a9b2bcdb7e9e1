"""The rules of a sender under steady signals: growth, reactions, and what they do to its flight.

Time is in round trips. Packets in flight are the whole packets of the window: after a reaction
nothing is sent until ACKs have brought the flight down to the new window.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from fluidcc import ops
from fluidcc.analysis.steady_laws import past_slow_start
from fluidcc.laws.law import Ack, Signal, Since
from fluidcc.laws.reaction import any_of, backed_off
from fluidcc.model.rates import acknowledgement, marks_seen
from fluidcc.ops import Num
from fluidcc.programs import map_tree, slope
from fluidcc.scenario.network import Flows, growth_per_packet, stands_still
from fluidcc.scenario.sender import sender_options

_DUPLICATES = 3.0  # ACKs that begin fast recovery
_CRITICAL = 2.0  # packets of a recovery that nothing repairs: the repair, the first one after it
_LEAST = 1e-9  # packets in flight
_EARLY = Since(time=0.5, round_trip=1.0, window=0.0)  # less than a round trip after it
_LATE = Since(time=1e9, round_trip=1.0, window=1.0)  # long after it


class Reaction(NamedTuple):
    """Reactions of one kind, at the windows of a grid (M, B): how many per round trip of listening,
    the window left, and the time until the sender listens again [round trips]. Until then the
    window has its mean `window`, and ACKs come as given; during `silence` the flight falls evenly
    from `before` to `after`.

    If the sender listens at once, the time is 0, and during `silence` the flight is above that of
    the window left.
    """

    rate: Num
    landing: Num
    dwell: Num
    silence: Num
    before: Num
    after: Num
    window: Num
    acks: Num

    @property
    def flight(self) -> Num:
        """Integral of the flight until the sender listens again."""
        fallen = (self.before - self.after) * self.silence / 2
        return fallen + self.after * self.dwell


def share_taken(reactions: tuple[Num, ...], kinds: tuple[Reaction, ...], flight: Num) -> Num:
    """Share of a mean flight that reactions take away, by how many there are of each kind."""
    pairs = zip(reactions, kinds, strict=True)
    fallen: Any = sum(
        (met * ops.maximum(kind.before - kind.after, 0.0)).sum(axis=0) for met, kind in pairs
    )
    return fallen / flight


def listens_at_once(flows: Flows) -> bool:
    """Whether senders react again less than a round trip after a reaction: to each mark."""
    return float(flows.reaction.ready(_EARLY)) > 0


class Sending:
    """The rules of a sender under signals at round trips [s], both (1, B), for windows (M, B) that
    stand for intervals of a width (M, B) or (1, B).
    """

    def __init__(self, flows: Flows, signal: Signal, rtt: Num, width: Num) -> None:
        self.flows, self.signal, self.rtt, self.width = flows, signal, rtt, width
        self.law, self.mark = flows.window, marks_seen(flows, signal)
        options = sender_options(flows.sender)
        self._whole_cuts = options.integer_windows
        self._least_timer = options.min_rto
        self._others = 1.0 if options.limited_transmit else _DUPLICATES

    @property
    def clean(self) -> Num:
        """Share of the ACKs of a sender that listens on which its window may grow."""
        return (1 - self.mark) * self.growing(_LATE, 0.0)

    def state(self, w: Num) -> Any:
        """The law's state with this window, as it begins."""
        return past_slow_start(self.flows, w).law

    def _ack(self, state: Any) -> Ack:
        """One acknowledgement to a sender whose law has this state."""
        s = past_slow_start(self.flows, self.law.window(state))._replace(law=state)
        return acknowledgement(self.flows, s, self.signal, self.rtt)

    def grow(self, state: Any, count: Num, elapsed: Num) -> Any:
        """Change of the law's state by growth, for `count` ACKs and `elapsed` seconds."""
        one = self._ack(state)
        if (share := growth_per_packet(self.flows)) != 1:
            count = share * count
        return slope(
            lambda k: self.law.on_ack(state, one._replace(count=count * k, elapsed=elapsed * k)),
            state, *one,
        )  # fmt: skip

    def acks(self, flight: Num, grown: Num) -> Num:
        """ACKs in a round trip of listening: the flight a round trip ago."""
        return ops.maximum(flight - 0.5 * grown, 0.5 * flight)

    def reacted(self, state: Any, *, lost: bool) -> Any:
        """The law's state after a reaction that meets this one."""
        one = self._ack(state)
        change = self.law.on_loss(state, one) if lost else self.law.on_mark(state, one)
        return map_tree(lambda a, b: a + b, state, change)

    def whole(self, w: Num) -> Num:
        """Whole packets of windows, their mean over the intervals."""

        def below(w: Num) -> Num:  # the integral over all smaller windows
            whole = ops.floor(w)
            return whole * (w - whole) + whole * (whole - 1) / 2

        return (below(w + self.width / 2) - below(w - self.width / 2)) / self.width

    def flight(self, w: Num) -> Num:
        """Packets in flight."""
        size = self.flows.feedback.flight_size(w, self.signal.mark)
        return ops.maximum(self.whole(size), ops.clip(size, _LEAST, 1.0))

    def flight_left(self, w: Num) -> Num:
        """Packets in flight of windows that cuts leave; whole windows are at the end of theirs."""
        return self.flight(w + self.width / 2 if self._whole_cuts else w)

    def growth(self, w: Num) -> tuple[Num, Num]:
        """Growth on an ACK that lets a window grow, and in a round trip whatever ACKs come.

        ACKs take steps; the growth is that of the smooth course through them, to second order.
        """

        def grown(w: Num, count: float, elapsed: float) -> Num:
            return self.law.window(self.grow(self.state(w), count, elapsed))

        step = grown(w, 1.0, 0.0)
        return 1.5 * step - 0.5 * grown(w + step, 1.0, 0.0), grown(w, 0.0, 1.0) * self.rtt

    def cut(self, w: Num, *, lost: bool) -> Num:
        """The window left by a reaction to a loss or to a mark."""
        if self._whole_cuts:
            w = self.whole(w)
        left = self.law.window(self.reacted(self.state(w), lost=lost))
        left = ops.clip(left, self.law.min_window, self.law.max_window)
        return ops.maximum(self.whole(left), self.law.min_window) if self._whole_cuts else left

    def drift(self, w: Num) -> Num:
        """Mean change of a window on an ACK, if all are listened to."""
        growing = self.clean * self.growth(w)[0]
        return growing + self.mark * (self.cut(w, lost=False) - w)

    def window_after(self, w: Num, acks: Num) -> Num:
        """The mean window after some ACKs, if all are listened to: by the midpoint rule."""
        middle = ops.maximum(w + 0.5 * acks * self.drift(w), self.law.min_window)
        return w + acks * self.drift(middle)

    def growing(self, since: Since, marked: float) -> Num:
        """Whether a window may grow on an ACK."""
        return self.flows.reaction.growing(since, marked)

    def reactions(self, w: Num) -> tuple[Num, Num, tuple[Reaction, ...]]:
        """ACKs and growth [packet] per round trip of listening, and the reactions."""
        flight, (by_ack, by_time) = self.flight(w), self.growth(w)
        clean = self.clean
        acks = self.acks(flight, clean * by_ack * flight + by_time)
        growth = ops.where(w < self.law.max_window, acks * clean * by_ack + by_time, 0.0)
        return acks, growth, (self._marks(w, acks), *self._losses(w, acks))

    def _marks(self, w: Num, acks: Num) -> Reaction:
        left = self.cut(w, lost=False)
        quiet = stands_still(self.flows)
        if not quiet and not self.flows.feedback.quench:  # the ACK with the mark may let it grow
            left = left + self.growing(_LATE, 1.0) * self.growth(left)[0]
        if not listens_at_once(self.flows):
            shares = (self.growing(_EARLY, marked) for marked in (0.0, 1.0))
            clean, marked = (0.0, 0.0) if quiet else shares
            growing = (1 - self.mark) * clean + self.mark * marked
            return self._deaf(w, left, acks * self.mark, growing, 0.0)
        before, after = self.flight(w), self.flight_left(left)
        extra = ops.maximum(before - after, 0.0)  # in flight, beyond windows like this one
        landing = ops.clip(self.window_after(left, extra), self.law.min_window, w)
        none = 0.0 * w
        return Reaction(acks * self.mark, landing, none, extra / before, before, after, none, extra)

    def _deaf(self, w: Num, left: Num, rate: Num, growing: Num, repairs: Num) -> Reaction:
        """Reactions after which nothing counts until the first packet sent after them, and after
        the repairs of further losses, is acknowledged; a share of the ACKs lets the window grow.
        """
        before, after = self.flight(w), self.flight_left(left)
        silence = ops.maximum(before - after, 0.0) / before  # until as many ACKs have come
        heard = ops.maximum(before - 1, 0.0)
        left = left + growing * heard * self.growth(left)[0]
        early = silence * after / 2  # ACKs come in the part of each round trip without silence
        return Reaction(
            rate=rate,
            landing=ops.clip(self.window_after(left, early), self.law.min_window, w),
            dwell=1 + silence + repairs,
            silence=silence,
            before=before,
            after=after,
            window=left,
            acks=heard + repairs * after + early,
        )

    def _losses(self, w: Num, acks: Num) -> tuple[Reaction, ...]:
        """Losses repaired by fast recovery, and those that end in a timeout with slow start."""
        lost = self.signal.drop
        if not (ops.traced(lost) or ops.anywhere(lost > 0)):
            return ()
        left, before = self.cut(w, lost=True), self.flight(w)
        others, rate = ops.maximum(before - 1, 0.0), acks * lost
        timer = None if self.flows.feedback.quench else self.flows.loss.timer(self.rtt)
        if timer is None:
            return (self._deaf(w, left, rate, 0.0, 0.0),)
        by_parts = self.law.recovery == "newreno"
        few = ops.clip(self._others + 1.5 - w, 0.0, 1.0)  # too few duplicate ACKs
        critical = _CRITICAL + (others if self.law.recovery == "reno" else 0.0)
        late = few + (1 - few) * any_of(critical, lost)
        fast = self._deaf(w, left, rate * (1 - late), 0.0, others * lost if by_parts else 0.0)
        begun = ops.maximum(left, 1.0)
        opening, sent = ops.log(begun) / math.log(2.0), (begun - 1) / math.log(2.0)
        waiting = ops.maximum(timer, self._least_timer) / self.rtt * backed_off(lost)
        dwell = 1 + waiting + opening  # what is in flight is acknowledged first
        after = sent / (waiting + opening + 0.5)  # mean over the time after it
        slow = Reaction(
            rate=rate * late,
            landing=left,
            dwell=dwell,
            silence=1.0 + 0.0 * w,
            before=before,
            after=after,
            window=(left + waiting + sent) / dwell,
            acks=before + sent,
        )
        return fast, slow
