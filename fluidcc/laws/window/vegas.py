"""TCP Vegas's window law."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractWindowLaw, Ack, State
from fluidcc.laws.parameters import check_order, param
from fluidcc.ops import Num


class Vegas(AbstractWindowLaw):
    """Keep `alpha` to `beta` packets in queues, by a packet more or less in a round trip.

    Source: Brakmo and Peterson (1995), section on congestion avoidance; Low, Peterson and Wang
    (2002) have its equilibrium. The packets in queues are W (R - base) / R, the difference of
    expected and actual rate times the propagation round trip. The packet is spread over the ACKs of
    a round trip; slow start, which doubles in every other one, and the early retransmission are
    left out. The propagation round trip is known exactly, where a sender has the least it met.
    """

    name: ClassVar[str] = "vegas"
    source: ClassVar[str] = "brakmo1995, congestion avoidance; low2002"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "newreno"
    reads: ClassVar[tuple[str, ...]] = ("mark", "drop", "delay")
    alpha: Num = param(
        2.0, r"\alpha", unit="packet", doc="in queues; below, windows grow", within="(0, inf)"
    )
    beta: Num = param(
        4.0, r"\beta", unit="packet", doc="in queues; above, windows shrink", within="(0, inf)"
    )

    def check(self) -> None:
        """Raise ValueError unless alpha <= beta."""
        check_order(self, "alpha", "beta", equal=True)

    def on_ack(self, s: State, ack: Ack) -> State:
        """Grow or shrink by a packet in a round trip, or keep the window between thresholds."""
        queued = s * ack.delay / ack.rtt
        step = ops.where(queued < self.alpha, 1.0, ops.where(queued > self.beta, -1.0, 0.0))
        return ack.count * step / s

    def on_mark(self, s: State, ack: Ack) -> State:
        """Halve the window."""
        return -s / 2

    def slow_start(self, s: State) -> Num:
        """None: windows shrink without a mark, and slow start would undo it."""
        return 0
