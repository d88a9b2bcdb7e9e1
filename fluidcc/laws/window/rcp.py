"""The window law of the Rate Control Protocol."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractWindowLaw, Ack, State
from fluidcc.ops import Num

_SHORTEST = 1e-12  # s, between packets that nothing holds back


class RCP(AbstractWindowLaw):
    """Send at the rate that the links write into packets: a round trip of it is the window.

    Source: Dukkipati et al. (2005). Their senders space packets by the rate; here a window has what
    the rate sends in the measured round trip, and ACKs space them. Before a link has written a rate
    the window stays as it is.
    """

    name: ClassVar[str] = "rcp"
    source: ClassVar[str] = "dukkipati2005"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "sack"
    reads: ClassVar[tuple[str, ...]] = ("mark", "drop", "spacing")

    def on_ack(self, s: State, ack: Ack) -> State:
        """Take the rate at one acknowledgement."""
        told = ack.rtt / ops.maximum(ack.spacing, _SHORTEST)
        window = ops.minimum(told, self.max_window)
        return ops.where(ack.spacing > 0, ops.minimum(ack.count, 1.0) * (window - s), 0.0)

    def on_mark(self, s: State, ack: Ack) -> State:
        """Nothing: the rate is that of the links."""
        return 0.0 * s

    def slow_start(self, s: State) -> Num:
        """None: a flow begins with the rate of the links."""
        return 0
