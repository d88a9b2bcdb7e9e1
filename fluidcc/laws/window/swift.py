"""The window law of Swift."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractWindowLaw, Ack, State
from fluidcc.laws.parameters import check_order, param
from fluidcc.ops import Num

_UNLIMITED = 1e6  # times a window in a round trip


class Swift(AbstractWindowLaw):
    """Grow below a target delay, shrink above it once in a round trip; small windows have more.

    Source: Kumar et al. (2020), algorithm 1 and section 3.5, by the simulator of csg-htsim,
    `swift.cpp`. The target there is of the whole round trip, with a part for each hop; here it is
    of the queueing delay, so that hops and propagation are in neither. Windows shrink at ticks a
    round trip apart, the paper's at the first ACK beyond the target, a round trip after the last
    decrease. Windows below a packet pace their packets, one in 1/W round trips.
    """

    name: ClassVar[str] = "swift"
    source: ClassVar[str] = "kumar2020, algorithm 1 and section 3.5"
    tried_in: ClassVar[str] = "kumar2020/incast"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "sack"
    reads: ClassVar[tuple[str, ...]] = ("mark", "drop", "delay")
    min_window: Num = param(
        0.01, r"W_{\min}", unit="packet", doc="smallest window", within="(0, inf)"
    )
    base: Num = param(
        20e-6, r"\tau_0", unit="s", doc="target of windows of fs_max or more", within="(0, inf)"
    )
    fs_range: Num = param(
        100e-6, r"\rho", unit="s", doc="more of it at windows of fs_min or less", within="[0, inf)"
    )
    fs_min: Num = param(
        0.1, r"W_l", unit="packet", doc="window of the largest target", within="(0, inf)"
    )
    fs_max: Num = param(
        100.0, r"W_h", unit="packet", doc="window of the least target", within="(0, inf)"
    )
    ai: Num = param(
        1.0, "a", unit="packet", doc="growth of a window in a round trip", within="(0, inf)"
    )
    beta: Num = param(
        0.8, r"\beta", unit="1", doc="decrease by the share beyond the target", within="(0, 1]"
    )
    max_mdf: Num = param(
        0.5, r"m_{\max}", unit="1", doc="largest share lost in a round trip", within="(0, 1)"
    )

    def check(self) -> None:
        """Raise ValueError unless fs_min < fs_max."""
        check_order(self, "fs_min", "fs_max")

    def target(self, w: Num) -> Num:
        """Queueing delay aimed at [s] with a window of `w` packets: flow scaling."""
        ends = self.fs_min**-0.5 - self.fs_max**-0.5
        scaled = self.fs_range * (w**-0.5 - self.fs_max**-0.5) / ends
        return self.base + ops.clip(scaled, 0.0, self.fs_range)

    def on_ack(self, s: State, ack: Ack) -> State:
        """Grow below the target: by `ai` in a round trip, or for a packet if they are rarer."""
        grown = ack.count * self.ai / ops.maximum(s, 1.0)
        return ops.where(ack.delay < self.target(s), grown, 0.0)

    def pacing(self, s: State, ack: Ack) -> Num:
        """Next to no limit, but of windows below a packet."""
        return ops.where(s < 1, 1.0, _UNLIMITED) * s / ack.rtt

    def on_mark(self, s: State, ack: Ack) -> State:
        """Lose the largest share, as the paper has it for losses."""
        return -self.max_mdf * s

    def period(self, ack: Ack) -> Num:
        """A round trip."""
        return ack.rtt

    def on_tick(self, s: State, ack: Ack) -> State:
        """Shrink by the share of the round trip that is beyond the target."""
        beyond = ops.maximum(ack.delay - self.target(s), 0.0) / ack.rtt
        return -s * ops.minimum(self.beta * beyond, self.max_mdf)

    def slow_start(self, s: State) -> Num:
        """None: windows shrink without a mark, and slow start would undo it."""
        return 0
