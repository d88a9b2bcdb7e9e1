"""BBR, versions 1 and 3: a model of the path from delivery rates and round trips.

Version 1 has one estimate of the rate and ignores losses. Version 3 has upper and lower bounds of
rate and flight from losses and marks, and probes for more on a time scale of seconds.
"""

import abc
from typing import Any, ClassVar, NamedTuple

from fluidcc import ops
from fluidcc.laws.law import AbstractWindowLaw, Ack, State, unchanged
from fluidcc.laws.parameters import param, state
from fluidcc.ops import Num

STARTUP, DRAIN = 0.0, 1.0  # of both versions; the others are of one
_CYCLE = 2.0
_PART = 4.0  # round trips: a third of the memory of rates of version 1
_FLAT = 3.0  # round trips without growth by which a path is full
_GROWTH = 1.25  # of the rate in a round trip of start-up, at least
_UNKNOWN = 1e12  # a bound that is not known yet


def _flag(condition: Num) -> Num:
    return ops.where(condition, 1.0, 0.0)


def _is(s: Any, mode: float) -> Num:
    """Whether a phase is this one."""
    return (s.mode > mode - 0.5) & (s.mode < mode + 0.5)


class _Path(NamedTuple):
    """The path after an ACK, and what has just happened."""

    delivered: Num  # packet
    begins: Num  # whether a round trip begins
    round_end: Num  # packets delivered as the round trip began
    expired: Num  # whether the least round trip was too old
    trip: Num  # s, the least since the last probe of it
    age: Num  # s
    full: Num  # packet/s, rate that a path which is not full must exceed by a quarter
    flat: Num  # round trips without such growth


class AbstractBBR(AbstractWindowLaw):
    """Rounds, the least round trip and its probes, and the end of start-up."""

    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "sack"
    draws: ClassVar[tuple[str, ...]] = ("observe",)
    no_mean: ClassVar[str] = "phases and largest rates are not those of mean rates"
    mode = state(0.0, "b", unit="1", doc="phase, by its number", within="[0, 6]")
    time = state(0.0, "t", unit="s", doc="in this phase", within="[0, inf)")
    delivered = state(0.0, "D", unit="packet", doc="acknowledged", within="[0, inf)")
    round_end = state(
        0.0, "D_r", unit="packet", doc="delivered as the round trip began", within="[0, inf)"
    )
    trip = state(1e9, "R_0", unit="s", doc="least round trip", within="[0, inf)")
    age = state(0.0, "t_0", unit="s", doc="of the least round trip", within="[0, inf)")
    full = state(0.0, "r_f", unit="packet/s", doc="rate to outgrow in start-up", within="[0, inf)")
    flat = state(0.0, "k_f", unit="1", doc="round trips without growth", within="[0, inf)")
    low = state(0.0, "b_p", unit="1", doc="1 if a probe of round trips has few packets",
                within="[0, 1]")  # fmt: skip
    left = state(0.0, "t_p", unit="s", doc="left of that probe", within="[0, inf)")
    before = state(0.0, "W_p", unit="packet", doc="window before that probe", within="[0, inf)")
    startup_gain: Num = param(
        2.885, "g_s", unit="1", doc="of the rate in start-up", within="(1, inf)"
    )
    window_gain: Num = param(
        2.0, "g_w", unit="1", doc="window over bandwidth-delay product", within="(1, inf)"
    )
    probe_gain: Num = param(
        1.25, "g_p", unit="1", doc="of the rate in a probe for more", within="(1, 2)"
    )
    probe_interval: Num = param(
        10.0, "T_p", unit="s", doc="age at which a least round trip is probed", within="(0, inf)"
    )
    probe_time: Num = param(0.2, "T_l", unit="s", doc="length of that probe", within="(0, inf)")
    min_window: Num = param(
        4.0, r"W_{\min}", unit="packet", doc="smallest window", within="(0, inf)"
    )

    def _measure(self, s: State, ack: Ack, rate: Num) -> _Path:
        """The path after an ACK; `rate` must grow for the path not to be full."""
        delivered, age = s.delivered + ack.count, s.age + ack.elapsed
        begins = delivered - ack.acked >= s.round_end
        expired = age > self.probe_interval
        fresh = (ack.rtt < s.trip) | expired
        judged = begins & (s.flat < _FLAT)
        grown = rate >= _GROWTH * s.full
        flat = ops.where(judged, ops.where(grown, 0.0, s.flat + 1), s.flat)
        full = ops.where(judged & grown, rate, s.full)
        return _Path(
            delivered=delivered,
            begins=begins,
            round_end=ops.where(begins, delivered, s.round_end),
            expired=expired,
            trip=ops.where(fresh, ack.rtt, s.trip),
            age=ops.where(fresh, 0.0, age),
            full=full,
            flat=flat,
        )

    def _probe(self, s: State, ack: Ack, probing: Num, few: Num) -> tuple[Num, Num, Num]:
        """Whether a probe of the round trip has come down to a `few` packets, the time that is left
        of it, a round trip at least, and whether it ends.
        """
        low = _flag(probing & ((ack.flight <= few) | (s.low > 0.5)))
        span = ops.maximum(self.probe_time, ack.rtt)
        left = ops.where(s.low > 0.5, ops.maximum(s.left - ack.elapsed, 0.0), span)
        return low, left, probing & (s.low > 0.5) & (left <= 0)

    @abc.abstractmethod
    def _move(self, s: State, ack: Ack) -> State:
        """Change by an ACK: measure the path, and move on in the phases."""

    def observe(self, s: State, ack: Ack) -> State:
        """Measure the path, and move on in the phases, at packets and not between them."""
        change = self._move(s, ack)
        return type(change)(*(_flag(ack.count > 0) * v for v in change))

    def on_ack(self, s: State, ack: Ack) -> State:
        """Nothing more than `observe`, which all ACKs meet."""
        return unchanged(s)

    def on_mark(self, s: State, ack: Ack) -> State:
        """Nothing at once."""
        return unchanged(s)

    def slow_start(self, s: State) -> Num:
        """None: the phases have their own start."""
        return 0


class BBR(AbstractBBR):
    """Send at the largest delivery rate of ten round trips, with two bandwidth-delay products.

    Source: Cardwell et al. (2017); draft-cardwell-iccrg-bbr-congestion-control-00 for the rules.
    Start-up multiplies the rate until it has grown by less than a quarter in three round trips, a
    drain empties the queue that this has made, and a cycle of eight least round trips probes with
    5/4 of the rate and 3/4 after it. Each `probe_interval` without a new least round trip four
    packets are under way for `probe_time`. A loss ends a probe for more, once it has lasted a least
    round trip; else losses and marks change nothing. Largest rates are kept
    for 9 to 12 round trips, in three parts; extra packets for aggregated ACKs, and the rules for
    application limits and policers, are left out.
    """

    name: ClassVar[str] = "bbr"
    source: ClassVar[str] = "cardwell2017"
    reads: ClassVar[tuple[str, ...]] = ("acked", "rate", "lost", "flight")
    phase = state(8.0, "k", unit="1", doc="of the cycle: drain, six at the rate, probe",
                  within="[1, 9)")  # fmt: skip
    turn = state(0.0, "k_r", unit="1", doc="round trips of the newest rates", within="[0, inf)")
    first = state(0.0, "r_0", unit="packet/s", doc="largest of the newest", within="[0, inf)")
    second = state(0.0, "r_1", unit="packet/s", doc="largest before them", within="[0, inf)")
    third = state(0.0, "r_2", unit="packet/s", doc="largest before those", within="[0, inf)")

    def pacing(self, s: State, ack: Ack) -> Num:
        """The estimated rate times the gain of the phase; before, a window in a round trip."""
        rate = ops.maximum(s.first, ops.maximum(s.second, s.third))
        cycle = ops.where(s.phase < 1.5, 2 - self.probe_gain, 1.0)
        cycle = ops.where(s.phase > 7.5, self.probe_gain, cycle)
        gain = ops.where(s.mode < 2.5, cycle, 1.0)
        gain = ops.where(s.mode < 1.5, 1 / self.startup_gain, gain)
        gain = ops.where(s.mode < 0.5, self.startup_gain, gain)
        return gain * ops.where(rate > 0, rate, s.window / ack.rtt)

    def _move(self, s: State, ack: Ack) -> State:
        random: Any = ack.random
        turns = s.turn >= _PART
        first = ops.maximum(ops.where(turns, 0.0, s.first), ack.rate)
        second, third = ops.where(turns, s.first, s.second), ops.where(turns, s.second, s.third)
        rate = ops.maximum(first, ops.maximum(second, third))
        path = self._measure(s, ack, rate)
        product, filled = rate * path.trip, path.flat >= _FLAT
        drained = ack.flight <= product
        time = s.time + ack.elapsed
        over = time >= path.trip
        probed = over & ((ack.flight >= self.probe_gain * product) | (ack.lost > 0))
        calm = over | ((s.phase < 1.5) & drained)
        cycling = _is(s, _CYCLE)
        advances = cycling & (((s.phase > 7.5) & probed) | ((s.phase < 7.5) & calm))
        phase = ops.where(advances, ops.where(s.phase > 7.5, 1.0, s.phase + 1), s.phase)
        enters = _is(s, DRAIN) & drained
        probes, probing = path.expired & (s.mode < 2.5), s.mode > 2.5
        low, left, leaves = self._probe(s, ack, probing, self.min_window)
        mode = ops.where((s.mode < 0.5) & filled, DRAIN, s.mode)
        mode = ops.where(enters, _CYCLE, mode)
        mode = ops.where(leaves, ops.where(filled, _CYCLE, STARTUP), mode)
        gain = ops.where(filled, self.window_gain, self.startup_gain)
        target, grown = ops.maximum(gain * product, self.min_window), s.window + ack.count
        opening = ops.where(s.window < target, grown, s.window)
        window = ops.where(filled, ops.minimum(grown, target), opening)
        window = ops.where(probes | probing, self.min_window, window)
        window = ops.where(leaves, ops.maximum(s.before, window), window)
        return self.change(
            s,
            window=ops.maximum(window, self.min_window) - s.window,
            mode=ops.where(probes, 3.0, mode) - s.mode,
            time=ops.where(enters | leaves | advances, 0.0, time) - s.time,
            phase=_flag(enters | leaves) * (1.5 + 7 * random - phase) + phase - s.phase,
            turn=ops.where(turns, 0.0, s.turn) + _flag(path.begins) - s.turn,
            first=first - s.first,
            second=second - s.second,
            third=third - s.third,
            low=low - s.low,
            left=left - s.left,
            before=ops.where(probes, s.window, s.before) - s.before,
            delivered=ack.count,
            round_end=path.round_end - s.round_end,
            trip=path.trip - s.trip,
            age=ops.where(leaves, 0.0, path.age) - s.age,
            full=path.full - s.full,
            flat=path.flat - s.flat,
        )


_DOWN, _CRUISE, _REFILL, _UP, _PROBE_RTT = 2.0, 3.0, 4.0, 5.0, 6.0
_MEMORY = 10.0  # s, of the least round trip
_MOST_TURNS = 63.0  # round trips between two probes for more


class BBR3(AbstractBBR):
    """BBR with bounds from losses and marks: cruise below the flight that was too much, and probe.

    Source: draft-ietf-ccwg-bbr-06, with the response to marks of Linux, version 3. A probe for more
    follows after 2 to 3 s, or as many round trips as the path holds packets, 63 at most: a round
    trip that refills the pipe, then 5/4 of the rate until more than `loss_threshold` of a flight is
    lost or the rate has stopped to grow; then a phase of `down_gain` until the queue and the
    headroom are free. A probe after one that lost too much stops at that flight, and goes beyond it
    a round trip later if that was safe. Losses at other times lower short-term bounds of rate and
    flight to `beta`, marks that of the flight by their share. Version 2 is `down_gain` 0.75,
    `up_window_gain` 2, `up_limit` 1.25, `startup_gain` 2.89 and `margin` 1. Aggregated ACKs and
    application limits are left out.
    """

    name: ClassVar[str] = "bbr3"
    source: ClassVar[str] = "cardwell2026"
    reads: ClassVar[tuple[str, ...]] = ("mark", "acked", "rate", "flight", "lost")
    newest = state(0.0, "r_0", unit="packet/s", doc="largest rate of a cycle", within="[0, inf)")
    oldest = state(0.0, "r_1", unit="packet/s", doc="of the cycle before", within="[0, inf)")
    most_rate = state(
        _UNKNOWN, r"\bar r", unit="packet/s", doc="short-term bound", within="[0, inf)"
    )
    most_flight = state(
        _UNKNOWN, r"\bar F", unit="packet", doc="short-term bound", within="[0, inf)"
    )
    long_flight = state(
        _UNKNOWN, r"\hat F", unit="packet", doc="long-term bound", within="[0, inf)"
    )
    least = state(1e9, "R_m", unit="s", doc="least round trip of 10 s", within="[0, inf)")
    least_age = state(0.0, "t_m", unit="s", doc="its age", within="[0, inf)")
    sampled = state(0.0, "b_s", unit="1", doc="1 if ACKs answer a probe for more", within="[0, 1]")
    stopping = state(0.0, "b_e", unit="1", doc="1 in the round trip after it", within="[0, 1]")
    high = state(0.0, "b_h", unit="1", doc="1 if the last one lost too much", within="[0, 1]")
    careful = state(0.0, "b_c", unit="1", doc="1 if it stopped at the bound", within="[0, 1]")
    wait = state(3.0, "t_w", unit="s", doc="left until the next probe for more", within="[0, inf)")
    turns = state(0.0, "k_r", unit="1", doc="round trips since the last probe", within="[0, inf)")
    rise = state(1.0, "a", unit="packet", doc="growth of the bound in a round trip",
                 within="[1, inf)")  # fmt: skip
    marks = state(0.0, "M", unit="packet", doc="marks of this round trip", within="[0, inf)")
    alpha = state(1.0, r"\alpha", unit="1", doc="share of marks", within="[0, 1]")
    startup_gain: Num = param(
        2.77, "g_s", unit="1", doc="of the rate in start-up", within="(1, inf)"
    )
    probe_interval: Num = param(
        5.0, "T_p", unit="s", doc="age at which a least round trip is probed", within="(0, inf)"
    )
    drain_gain: Num = param(0.5, "g_d", unit="1", doc="of the rate in the drain", within="(0, 1)")
    down_gain: Num = param(0.9, "g_-", unit="1", doc="of the rate after a probe", within="(0, 1)")
    up_window_gain: Num = param(
        2.25, "g_+", unit="1", doc="of the window in a probe", within="(1, inf)"
    )
    up_limit: Num = param(
        float("inf"), "c", unit="1", doc="flight over bandwidth-delay product that ends a probe",
        within="(1, inf]",
    )  # fmt: skip
    margin: Num = param(0.99, r"\mu", unit="1", doc="of the pace", within="(0, 1]")
    loss_threshold: Num = param(
        0.02, r"\theta", unit="1", doc="share of a flight that may be lost", within="(0, 1)"
    )
    beta: Num = param(0.7, r"\beta", unit="1", doc="factor of a cut", within="(0, 1)")
    headroom: Num = param(0.15, "h", unit="1", doc="of the flight left to others", within="[0, 1)")
    mark_threshold: Num = param(
        0.5, r"\theta_m", unit="1", doc="share of marks that ends a probe", within="(0, 1]"
    )
    mark_factor: Num = param(
        1 / 3, r"\epsilon", unit="1", doc="cut of the flight per share of marks", within="[0, 1]"
    )

    def pacing(self, s: State, ack: Ack) -> Num:
        """The bounded rate times the gain of the phase; before, a window in a round trip."""
        rate = ops.minimum(ops.maximum(s.newest, s.oldest), s.most_rate)
        gain = ops.where(_is(s, _UP), self.probe_gain, 1.0)
        gain = ops.where(s.mode < 2.5, self.down_gain, gain)
        gain = ops.where(s.mode < 1.5, self.drain_gain, gain)
        gain = ops.where(s.mode < 0.5, self.startup_gain, gain)
        return self.margin * gain * ops.where(rate > 0, rate, s.window / ack.rtt)

    def _move(self, s: State, ack: Ack) -> State:
        random: Any = ack.random
        path = self._measure(s, ack, ack.rate)
        begins = path.begins
        starting, draining, up = s.mode < 0.5, _is(s, DRAIN), _is(s, _UP)
        down, cruising, refilling = _is(s, _DOWN), _is(s, _CRUISE), _is(s, _REFILL)
        probing = s.mode > 5.5
        least_age = s.least_age + ack.elapsed
        renewed = (path.trip < s.least) | (least_age > _MEMORY)
        least = ops.where(renewed, path.trip, s.least)
        # the end of a probe's samples: a round trip after it
        over = (s.stopping > 0.5) & begins
        advances = over & (s.mode > 1.5) & ops.logical_not(probing)
        newest = ops.maximum(s.newest, ack.rate)
        largest = ops.maximum(newest, s.oldest)
        pipe, product = largest * least, ops.minimum(largest, s.most_rate) * least
        # signals
        sent = ack.acked + ack.lost  # in flight as this packet was sent
        marks = s.marks + ack.marked * ack.count
        share = ops.minimum(marks / ops.maximum(ack.acked, 1.0), 1.0)
        alpha = ops.where(begins, s.alpha + (share - s.alpha) / 16, s.alpha)
        too_much = (ack.lost > self.loss_threshold * sent) | (
            begins & (share > self.mark_threshold)
        )
        heavy, fills = too_much & (s.sampled > 0.5), too_much & starting & begins
        # bounds
        limited = (s.window >= s.long_flight) & (ack.flight >= s.window - 2)
        bounded = up & limited & ops.logical_not(too_much)
        grown = s.long_flight + ops.where(bounded, ack.count * s.rise / s.window, 0.0)
        raised = ops.where(too_much | starting, s.long_flight, ops.maximum(grown, sent))
        safe = ops.maximum(sent, self.beta * ops.minimum(product, s.window))
        long_flight = ops.where(heavy, safe, raised)
        long_flight = ops.where(fills, ops.maximum(product, ack.acked), long_flight)
        calm = begins & ops.logical_not(starting | refilling | up)
        most_rate, bound = (
            ops.minimum(s.most_rate, largest),
            ops.minimum(s.most_flight, s.window),
        )
        lossy, marked = calm & (ack.lost > 0), calm & (share > 0)
        most_rate = ops.where(lossy, ops.maximum(ack.rate, self.beta * most_rate), s.most_rate)
        cut = ops.maximum(ack.acked, self.beta * bound)
        most_flight = ops.where(lossy, cut, s.most_flight)
        eased = (1 - alpha * self.mark_factor) * bound
        most_flight = ops.where(marked, ops.minimum(most_flight, eased), most_flight)
        # phases
        ends = starting & ((path.flat >= _FLAT) | fills)
        turns = s.turns + _flag(begins)
        drains = draining & ((ack.flight <= product) | (turns > _FLAT))
        clear = (ack.flight <= pipe) & (ack.flight <= (1 - self.headroom) * long_flight)
        wait = ops.maximum(s.wait - ack.elapsed, 0.0)
        due = (wait <= 0) | (turns >= ops.minimum(ops.minimum(product, s.window), _MOST_TURNS))
        again = advances & (s.careful > 0.5) & (s.high < 0.5) & ops.logical_not(heavy)
        refills = ((down | cruising) & due) | again
        rises = refilling & begins
        time = s.time + ack.elapsed
        reached = up & (s.high > 0.5) & (ack.flight >= s.long_flight)
        enough = (time > least) & (ack.flight >= self.up_limit * pipe)
        flat = (path.flat >= _FLAT) & ops.logical_not(bounded)
        falls = up & (heavy | reached | enough | flat)
        probes = path.expired & ops.logical_not(probing)
        few = ops.maximum(0.5 * product, self.min_window)
        low, left, leaves = self._probe(s, ack, probing, few)
        goes_down = falls | drains | leaves
        mode = ops.where(ends, DRAIN, s.mode)
        mode = ops.where((down & clear) | leaves, _CRUISE, mode)
        mode = ops.where(refills, _REFILL, mode)
        mode = ops.where(rises, _UP, mode)
        mode = ops.where(falls | drains, _DOWN, mode)
        mode = ops.where(probes, _PROBE_RTT, mode)
        moves = goes_down | refills | rises | probes
        forgets = refills | leaves
        # window
        gain = ops.where(up, self.up_window_gain, self.window_gain)
        target, opened = ops.maximum(gain * product, self.min_window), s.window + ack.count
        opening = ops.where(s.window < target, opened, s.window)
        window = ops.where(starting & ops.logical_not(ends), opening, ops.minimum(opened, target))
        kept = ops.where(cruising | probing, 1 - self.headroom, 1.0)
        window = ops.minimum(ops.minimum(window, kept * long_flight), most_flight)
        window = ops.where(probes | probing, ops.minimum(window, few), window)
        window = ops.where(leaves, ops.maximum(s.before, window), window)
        rise = ops.where(bounded & begins, ops.minimum(2 * s.rise, 1e9), s.rise)
        high = ops.where(heavy, 1.0, ops.where(falls, 0.0, s.high))
        return self.change(
            s,
            window=ops.maximum(window, self.min_window) - s.window,
            mode=mode - s.mode,
            time=ops.where(moves, 0.0, time) - s.time,
            newest=ops.where(advances, 0.0, newest) - s.newest,
            oldest=ops.where(advances, newest, s.oldest) - s.oldest,
            most_rate=ops.where(forgets, _UNKNOWN, most_rate) - s.most_rate,
            most_flight=ops.where(forgets, _UNKNOWN, most_flight) - s.most_flight,
            long_flight=long_flight - s.long_flight,
            least=least - s.least,
            least_age=ops.where(renewed, path.age, least_age) - s.least_age,
            sampled=ops.where(rises, 1.0, ops.where(over | heavy, 0.0, s.sampled)) - s.sampled,
            stopping=ops.where(goes_down | probes, 1.0, ops.where(over | moves, 0.0, s.stopping))
            - s.stopping,
            high=high - s.high,
            careful=ops.where(refills, 0.0, ops.where(reached, 1.0, s.careful)) - s.careful,
            wait=_flag(goes_down) * (2 + random - wait) + wait - s.wait,
            turns=ops.where(goes_down | ends, 0.0, turns) - s.turns,
            rise=ops.where(rises, 1.0, rise) - s.rise,
            marks=ops.where(begins, 0.0, marks) - s.marks,
            alpha=alpha - s.alpha,
            low=low - s.low,
            left=left - s.left,
            before=ops.where(probes, s.window, s.before) - s.before,
            delivered=ack.count,
            round_end=ops.where(moves, path.delivered, path.round_end) - s.round_end,
            trip=path.trip - s.trip,
            age=ops.where(leaves, 0.0, path.age) - s.age,
            full=ops.where(rises | bounded, ack.rate, path.full) - s.full,
            flat=ops.where(rises | bounded, 0.0, ops.where(ends, _FLAT, path.flat)) - s.flat,
        )
