"""DCQCN, congestion control by rates for lossless Ethernet."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractWindowLaw, Ack, State
from fluidcc.laws.parameters import param, state
from fluidcc.laws.reaction import any_of, none_of
from fluidcc.ops import Num

_FEWEST = 1e-3  # packets of a timer: far fewer than one
_RARE = 1e-5  # share of marks, below which means are those at it


class DCQCN(AbstractWindowLaw):
    """Cut a rate by a share that follows the marks, recover half-way to a target, then raise that.

    Source: Zhu et al. (2015), sections 3 and 4; Zhu et al. (2016), equations 3 to 5, for the mean.
    The sender goes by rate: the window is the current rate times the propagation round trip, and
    limits no flight. Packets count bytes and run two timers, which a mark resets, each of them a
    step of recovery or, after `steps` of them, of increase; hyper increase is left out. Their mean
    follows from independent marks, and not from mean counters.
    """

    name: ClassVar[str] = "dcqcn"
    source: ClassVar[str] = "zhu2015, sections 3 and 4; zhu2016, equations 3 to 5"
    tried_in: ClassVar[str] = "zhu2016/dcqcn"
    reaction: ClassVar[str] = "once_per_interval"
    recovery: ClassVar[str] = "newreno"
    reads: ClassVar[tuple[str, ...]] = ("mark", "drop", "propagation", "rate")
    rate_based: ClassVar[bool] = True
    min_window: Num = param(
        0.01, r"W_{\min}", unit="packet", doc="smallest rate times round trip", within="(0, inf)"
    )
    target = state(0.0, "W_T", unit="packet", doc="target rate", within="[0, inf)")
    alpha = state(1.0, r"\alpha", unit="1", doc="share of marks", within="[0, 1]")
    g: Num = param(1 / 256, "g", unit="1", doc="weight of a mark in alpha", within="(0, 1)")
    alpha_timer: Num = param(
        55e-6, r"\tau'", unit="s", doc="time without marks after which alpha falls",
        within="(0, inf)",
    )  # fmt: skip
    timer: Num = param(
        55e-6, "T", unit="s", doc="time from one increase to the next", within="(0, inf)"
    )
    byte_counter: Num = param(
        10000.0, "B", unit="packet", doc="packets from one increase to the next", within="(0, inf)"
    )
    steps: Num = param(
        5.0, "K", unit="1", doc="steps of recovery before the target rises", within="[1, inf)"
    )
    increase: Num = param(
        5000.0, "A", unit="packet/s", doc="rise of the target rate", within="(0, inf)"
    )

    def start(self, w: Num) -> State:
        """At the target, with alpha 1."""
        return self.state_of(w, w, 1.0 + 0.0 * w)

    def pacing(self, s: State, ack: Ack) -> Num:
        """The current rate."""
        return s.window / ack.propagation

    def on_ack(self, s: State, ack: Ack) -> State:
        """Mean steps of the timer and of the byte counter, and mean of alpha."""
        p, timed = ops.maximum(ack.marked, _RARE), ack.rate * self.timer
        by_bytes, by_time = self._steps(p, self.byte_counter), self._steps(p, timed)
        raising = by_bytes * none_of(self.steps * self.byte_counter, p)
        raising = raising + by_time * none_of(self.steps * timed, p)
        some = any_of(ack.rate * self.alpha_timer, p)
        return self.change(
            s,
            window=ack.count * (by_bytes + by_time) * (s.target - s.window) / 2,
            target=ack.count * raising * self.increase * ack.propagation,
            alpha=ack.elapsed * self.g / self.alpha_timer * (some - s.alpha),
        )

    def _steps(self, p: Num, packets: Num) -> Num:
        """Mean steps, per packet, of a counter that a mark resets: each of so many packets."""
        packets = ops.maximum(packets, _FEWEST)
        return p * none_of(packets, p) / any_of(packets, p)

    def on_mark(self, s: State, ack: Ack) -> State:
        """Cut the rate by alpha/2, from which it recovers to where it was."""
        return self.change(s, window=-s.window * s.alpha / 2, target=s.window - s.target)

    def slow_start(self, s: State) -> Num:
        """None: senders begin at the rate of their line."""
        return 0

    def in_packets(self) -> "DCQCN":
        """With timers and counters."""
        return _ByPackets.with_parameters_of(self)


class _ByPackets(DCQCN):
    """The rules for single packets."""

    reads: ClassVar[tuple[str, ...]] = ("mark", "drop", "propagation")
    since_mark = state(0.0, "t_{\\alpha}", unit="s", within="[0, inf)")
    since_step = state(0.0, "t_T", unit="s", within="[0, inf)")
    packets = state(0.0, "b", unit="packet", within="[0, inf)")
    times = state(0.0, "k_T", unit="1", within="[0, inf)")
    counts = state(0.0, "k_B", unit="1", within="[0, inf)")

    def start(self, w: Num) -> State:
        """At the target, with alpha 1."""
        zero = 0.0 * w
        return self.state_of(w, w, 1.0 + zero, zero, zero, zero, zero, zero)

    def on_ack(self, s: State, ack: Ack) -> State:
        """Run the timers and the counter, and take the steps that are due."""
        calm, time = s.since_mark + ack.elapsed, s.since_step + ack.elapsed
        packets = s.packets + ack.count
        falls, by_time = calm >= self.alpha_timer, time >= self.timer
        by_bytes = packets >= self.byte_counter
        times = s.times + ops.where(by_time, 1.0, 0.0)
        counts = s.counts + ops.where(by_bytes, 1.0, 0.0)
        due, late = by_time | by_bytes, ops.maximum(times, counts) > self.steps
        rise = ops.where(due & late, self.increase * ack.propagation, 0.0)
        rise = ops.minimum(rise, ops.maximum(self.max_window - s.target, 0.0))
        half = (s.target + rise - s.window) / 2
        return self.change(
            s,
            window=ops.where(due, half, 0.0),
            target=rise,
            alpha=ops.where(falls, -self.g * s.alpha, 0.0),
            since_mark=ops.where(falls, 0.0, calm) - s.since_mark,
            since_step=ops.where(by_time, 0.0, time) - s.since_step,
            packets=ops.where(by_bytes, 0.0, packets) - s.packets,
            times=times - s.times,
            counts=counts - s.counts,
        )

    def on_mark(self, s: State, ack: Ack) -> State:
        """Cut the rate, raise alpha, and begin timers and counters anew."""
        return self.change(
            s,
            window=-s.window * s.alpha / 2,
            target=s.window - s.target,
            alpha=self.g * (1 - s.alpha),
            since_mark=-s.since_mark,
            since_step=-s.since_step,
            packets=-s.packets,
            times=-s.times,
            counts=-s.counts,
        )
