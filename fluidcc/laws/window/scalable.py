"""The window law of Scalable TCP."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractWindowLaw, Ack
from fluidcc.laws.parameters import param
from fluidcc.ops import Num


class Scalable(AbstractWindowLaw):
    """+a for each ACK, -b w for a loss: as many round trips between losses at every rate.

    Source: Kelly (2003); up to low_window, his legacy window, it is TCP.
    """

    name: ClassVar[str] = "scalable"
    source: ClassVar[str] = "kelly2003"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "sack"
    a: Num = param(0.01, "a", unit="packet", doc="growth by one ACK", within="(0, 1]")
    b: Num = param(
        0.125, "b", unit="1", doc="share of the window that a loss takes", within="(0, 1)"
    )
    low_window: Num = param(16.0, "W_l", unit="packet", doc="TCP up to here", within="[0, inf)")

    def on_ack(self, s: Num, ack: Ack) -> Num:
        """Grow by a for each acknowledged packet."""
        return ack.count * ops.where(s > self.low_window, self.a, 1 / s)

    def on_mark(self, s: Num, ack: Ack) -> Num:
        """Shrink by b w, at a loss as at a mark."""
        return -ops.where(s > self.low_window, self.b, 0.5) * s
