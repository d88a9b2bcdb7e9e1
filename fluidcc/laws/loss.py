"""What losses mean to a sender in the fluid model: indications, recovery, timeouts."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractLossClosure, Lost
from fluidcc.laws.parameters import param
from fluidcc.ops import Num

_ALMOST_ONE = 1 - 1e-12  # (1 - l)^w has no slope at l = 1 for w < 1


def indications(drop: Num, w: Num, acks: Num) -> Num:
    """Windows with a loss per second: at most one loss indication per round trip."""
    return acks * (1 - (1 - ops.minimum(drop, _ALMOST_ONE)) ** w) / w


class Recovery(AbstractLossClosure):
    """Fast recovery, or a timeout where the window is too small for three duplicate ACKs.

    An indication is a timeout with probability min(1, 3/w), Misra, Gong and Towsley (2000), IV.
    A sender in recovery does nothing else: its other changes run for the rest of the time.
    """

    name: ClassVar[str] = "recovery"
    source: ClassVar[str] = "misra2000, section 4"
    min_rto: Num = param(
        0.2, r"\mathrm{RTO}_{\min}", unit="s", doc="least retransmission timeout", within="(0, inf)"
    )

    def lost(self, drop: Num, w: Num, rtt: Num, acks: Num, recovery: str) -> Lost:
        """Indications, a share min(1, 3/w) of them timeouts."""
        found = indications(drop, w, acks)
        timeout = ops.minimum(3.0 / w, 1.0)
        trips = 1.0
        if recovery == "newreno":  # one lost packet a round trip
            safe = ops.maximum(drop, 1e-6)
            trips = safe * w / (1 - (1 - ops.minimum(safe, _ALMOST_ONE)) ** w)
        double = drop * (1 + drop * (2 + drop * (4 + drop * (8 + drop * (16 + drop * 32)))))
        wait = ops.maximum(self.min_rto, 2 * rtt) * (1 + double)
        busy = found * ((1 - timeout) * trips * rtt + timeout * wait)
        return Lost(found * (1 - timeout), found * timeout, 1 / (1 + busy))


class HalveOnly(AbstractLossClosure):
    """One decrease for each window with a loss, and no time lost."""

    name: ClassVar[str] = "halve_only"
    source: ClassVar[str] = "misra2003, section 2.1"

    def lost(self, drop: Num, w: Num, rtt: Num, acks: Num, recovery: str) -> Lost:
        """Indications, none of them a timeout."""
        return Lost(indications(drop, w, acks), 0.0, 1.0)
