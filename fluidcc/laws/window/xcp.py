"""The window law of the explicit Control Protocol."""

from typing import ClassVar

from fluidcc.laws.law import AbstractWindowLaw, Ack, State
from fluidcc.ops import Num


class XCP(AbstractWindowLaw):
    """Grow by the feedback that a link writes into packets: positive R^2/W - negative R for each.

    Source: Katabi, Handley and Rohrs (2002), sections 3.2 and 3.5, R being the round trip and W the
    window. There links have both from the packet, here the sender takes those of now. After a loss
    it halves its window, as TCP.
    """

    name: ClassVar[str] = "xcp"
    source: ClassVar[str] = "katabi2002, section 3.2"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "sack"
    reads: ClassVar[tuple[str, ...]] = ("mark", "drop", "positive", "negative")

    def on_ack(self, s: State, ack: Ack) -> State:
        """Take the feedback of one packet."""
        return ack.count * ack.rtt * (ack.positive * ack.rtt / s - ack.negative)

    def on_mark(self, s: State, ack: Ack) -> State:
        """Halve; links of XCP do not mark."""
        return -0.5 * s

    def slow_start(self, s: State) -> Num:
        """None: a flow grows by the feedback alone."""
        return 0
