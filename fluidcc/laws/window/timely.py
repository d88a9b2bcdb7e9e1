"""TIMELY, congestion control by gradients of the round trip, as published and as patched."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractWindowLaw, Ack, State
from fluidcc.laws.parameters import check_order, choice, param, state
from fluidcc.ops import Num


class TIMELY(AbstractWindowLaw):
    """Raise a rate while the delay falls, and lower it by the slope of its growth.

    Source: Mittal et al. (2015), algorithm 1, without hyperactive increase; Zhu et al. (2016),
    section 4, for the mean and for the patch, which weighs increase and decrease by the slope and
    decreases by the delay itself. The sender goes by rate: the window is the rate times the
    propagation round trip, and limits no flight. Delays are those of queues, as in the model of Zhu
    et al. Packets judge a delay once a segment, or in a least round trip if that is longer; in the
    mean the delay before is that of a packet such an interval earlier.
    """

    name: ClassVar[str] = "timely"
    source: ClassVar[str] = "mittal2015, algorithm 1; zhu2016, section 4"
    tried_in: ClassVar[str] = "zhu2016/timely"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "newreno"
    reads: ClassVar[tuple[str, ...]] = ("mark", "drop", "delay", "earlier", "propagation", "rate")
    rate_based: ClassVar[bool] = True
    min_window: Num = param(
        0.01, r"W_{\min}", unit="packet", doc="smallest rate times round trip", within="(0, inf)"
    )
    slope = state(0.0, "g", unit="1", doc="mean growth of the delay over the least round trip",
                  within="(-inf, inf)")  # fmt: skip
    low: Num = param(
        50e-6, r"\delta_-", unit="s", doc="delay below which rates rise", within="(0, inf)"
    )
    high: Num = param(
        500e-6, r"\delta_+", unit="s", doc="delay above which rates fall", within="(0, inf)"
    )
    least: Num = param(
        20e-6, "D", unit="s", doc="least round trip, which slopes refer to", within="(0, inf)"
    )
    segment: Num = param(
        16.0, "S", unit="packet", doc="packets from one decision to the next", within="[1, inf)"
    )
    increase: Num = param(1250.0, "A", unit="packet/s", doc="rise of the rate", within="(0, inf)")
    weight: Num = param(
        0.875, r"\alpha", unit="1", doc="of a difference in the slope", within="(0, 1]"
    )
    beta: Num = param(0.8, r"\beta", unit="1", doc="share of a decrease", within="(0, 1)")
    patched: bool = choice(False, doc="decrease by the delay, weighted by its slope")

    def check(self) -> None:
        """Raise ValueError unless low < high."""
        check_order(self, "low", "high")

    def pacing(self, s: State, ack: Ack) -> Num:
        """The rate."""
        return s.window / ack.propagation

    def on_ack(self, s: State, ack: Ack) -> State:
        """A part of a decision, of which there is one in a segment or a least round trip."""
        part = ack.count / ops.maximum(self.segment, ack.rate * self.least)
        return self.change(
            s,
            window=part * self._decide(s, ack, s.slope),
            slope=part * self._tilt(s, ack.delay - ack.earlier),
        )

    def lookback(self, s: State, ack: Ack) -> Num:
        """The time of a segment, or the least round trip if that is longer."""
        return ops.maximum(self.segment / self.pacing(s, ack), self.least)

    def _tilt(self, s: State, growth: Num) -> Num:
        """The change of the slope by one decision, after a growth of the delay."""
        return self.weight * (growth / self.least - s.slope)

    def _decide(self, s: State, ack: Ack, slope: Num) -> Num:
        """The change of the window by one decision at a slope."""
        delay, rise = ack.delay, self.increase * ack.propagation
        if self.patched:
            falling = ops.clip(2 * slope + 0.5, 0.0, 1.0)
            error = (delay - self.low) / self.low
            inside = (1 - falling) * rise - falling * self.beta * error * s.window
        else:
            inside = ops.where(slope > 0, -slope * self.beta * s.window, rise)
        late = self.high / ops.maximum(delay, self.high)
        above = -self.beta * (1 - late) * s.window
        return ops.where(delay < self.low, rise, ops.where(delay > self.high, above, inside))

    def on_mark(self, s: State, ack: Ack) -> State:
        """Halve the rate; the law is for links that do not mark."""
        return self.change(s, window=-s.window / 2)

    def slow_start(self, s: State) -> Num:
        """None: senders begin at the rate of their line."""
        return 0

    def in_packets(self) -> "TIMELY":
        """With a counter of packets."""
        return _ByPackets.with_parameters_of(self)


class _ByPackets(TIMELY):
    """The rules for single packets."""

    reads: ClassVar[tuple[str, ...]] = ("mark", "drop", "delay", "propagation")
    last = state(0.0, r"\hat\delta", unit="s", within="[0, inf)")
    packets = state(0.0, "b", unit="packet", within="[0, inf)")
    since = state(0.0, "t_b", unit="s", within="[0, inf)")

    def on_ack(self, s: State, ack: Ack) -> State:
        """Count packets, and decide as a segment ends."""
        packets, since = s.packets + ack.count, s.since + ack.elapsed
        ends = (packets >= self.segment) & (since >= self.least)
        tilt = self._tilt(s, ack.delay - s.last)
        return self.change(
            s,
            window=ops.where(ends, self._decide(s, ack, s.slope + tilt), 0.0),
            slope=ops.where(ends, tilt, 0.0),
            last=ops.where(ends, ack.delay - s.last, 0.0),
            packets=ops.where(ends, 0.0, packets) - s.packets,
            since=ops.where(ends, 0.0, since) - s.since,
        )
