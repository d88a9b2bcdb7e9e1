"""The window law of TCP Prague."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import Ack
from fluidcc.laws.parameters import param
from fluidcc.laws.window.dctcp import DCTCP
from fluidcc.ops import Num


class Prague(DCTCP):
    """DCTCP whose rounds last `target` at least, so that the rate does not depend on shorter trips.

    Source: draft-briscoe-iccrg-prague-congestion-control-04, section 2.4; Linux, `tcp_prague.c` of
    L4STeam, v0.6. The share of marks moves, and the window is cut, at most once in max(R, target).
    Unmarked ACKs add one packet in a round to the packets of a round, R over target of which are
    the window: (R/target)^2 packets in a round trip. Linux does so after 500 round trips, paces
    packets, and moves the window by a packet at a time: this law does so from the start, at once.
    """

    name: ClassVar[str] = "prague"
    source: ClassVar[str] = "prague2024, section 2.4"
    growth: ClassVar[str] = "clean"
    min_window: Num = param(
        2.0, r"W_{\min}", unit="packet", doc="smallest window", within="(0, inf)"
    )
    target: Num = param(
        0.025, "R_0", unit="s", doc="round trip whose rate shorter ones have", within="(0, inf)"
    )

    def rounds(self, ack: Ack) -> Num:
        """The part of a round that a round trip is."""
        return ack.rtt / ops.maximum(ack.rtt, self.target)
