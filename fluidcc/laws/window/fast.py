"""FAST TCP's window law."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractWindowLaw, Ack, State
from fluidcc.laws.parameters import param
from fluidcc.ops import Num


class FAST(AbstractWindowLaw):
    """Move the window to `alpha` packets in queues, by a share of what is missing.

    Source: Wei, Jin, Low and Hegde (2006), the periodic update of the window: in a period it
    becomes min(2 W, (1 - gamma) W + gamma (W base / R + alpha)). Here the period is a round trip,
    over which the change is spread evenly. The propagation round trip is known exactly, and the
    delay is that of each packet, where the sender has the least and an average of those it met.
    """

    name: ClassVar[str] = "fast"
    source: ClassVar[str] = "wei2006, the periodic update; wang2005"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "sack"
    reads: ClassVar[tuple[str, ...]] = ("mark", "drop", "delay")
    alpha: Num = param(
        20.0, r"\alpha", unit="packet", doc="packets kept in queues", within="(0, inf)"
    )
    gamma: Num = param(
        0.5,
        r"\gamma",
        unit="1",
        doc="share of what is missing made good in a round trip",
        within="(0, inf)",
    )

    def on_ack(self, s: State, ack: Ack) -> State:
        """Move towards `alpha` packets in queues, at most to twice the window in a round trip."""
        missing = self.alpha - s * ack.delay / ack.rtt
        return ack.elapsed / ack.rtt * ops.minimum(self.gamma * missing, s)

    def on_mark(self, s: State, ack: Ack) -> State:
        """Halve the window."""
        return -s / 2

    def slow_start(self, s: State) -> Num:
        """None: the rule itself doubles small windows, and shrinks them below a threshold."""
        return 0
