"""Effect of losses on a sender in the fluid model: indications, recovery, timeouts."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractLossClosure, Lost
from fluidcc.laws.parameters import param
from fluidcc.laws.reaction import any_of
from fluidcc.ops import Num

_ALMOST_ONE = 1 - 1e-12  # at probability 1 a timeout never ends
_SOME_LOSS = 1e-12  # windows are unbounded without


def indications(drop: Num, w: Num, acks: Num) -> Num:
    """Loss indications per second: windows with a loss, at most one per round trip."""
    return acks * any_of(w, drop) / w


def backed_off(drop: Num) -> Num:
    """Mean length of a series of timeouts, in units of the first.

    Each repair is lost again with probability `drop`; the timer doubles up to 64 times the first.
    Padhye et al. (2000).
    """
    lost = ops.minimum(drop, _ALMOST_ONE)
    series = 1 + lost * (1 + lost * (2 + lost * (4 + lost * (8 + lost * (16 + lost * 32)))))
    return series / (1 - lost)


class AbstractTimer(AbstractLossClosure):
    """A closure with a retransmission timer of two round trips, `min_rto` at least."""

    min_rto: Num = param(
        0.2, r"\mathrm{RTO}_{\min}", unit="s", doc="least retransmission timeout", within="(0, inf)"
    )

    def timer(self, rtt: Num) -> Num:
        """First retransmission timeout [s]."""
        return ops.maximum(self.min_rto, 2 * rtt)


class Recovery(AbstractTimer):
    """Fast recovery, or a timeout where the window is too small for three duplicate ACKs.

    An indication is a timeout with probability min(1, 3/w), Misra, Gong and Towsley (2000), IV.
    Recovery takes one round trip, under NewReno one for each lost packet. A sender in recovery
    does nothing else: its other changes apply only in the remaining share of time.
    """

    name: ClassVar[str] = "recovery"
    source: ClassVar[str] = "misra2000, section 4; padhye2000"

    def lost(self, drop: Num, w: Num, rtt: Num, acks: Num, recovery: str) -> Lost:
        """Indications, a share min(1, 3/w) of them timeouts."""
        found = indications(drop, w, acks)
        timeout = ops.minimum(3.0 / w, 1.0)
        repairs = acks * drop if recovery == "newreno" else found  # round trips per second
        waiting = timeout * found * self.timer(rtt) * backed_off(drop)
        busy = (1 - timeout) * repairs * rtt + waiting
        return Lost(found * (1 - timeout), found * timeout, 1 / (1 + busy))


class HalveOnly(AbstractLossClosure):
    """One decrease for each window with a loss, and no time lost."""

    name: ClassVar[str] = "halve_only"
    source: ClassVar[str] = "misra2003, section 2.1"

    def lost(self, drop: Num, w: Num, rtt: Num, acks: Num, recovery: str) -> Lost:
        """Indications, none of them a timeout."""
        return Lost(indications(drop, w, acks), 0.0, 1.0)


class PFTK(AbstractTimer):
    """The long-run throughput of TCP Reno: for equilibria only, not for transients.

    Padhye et al. (2000), the approximate model, with one ACK per packet.
    """

    name: ClassVar[str] = "pftk"
    source: ClassVar[str] = "padhye2000, approximate model"

    def lost(self, drop: Num, w: Num, rtt: Num, acks: Num, recovery: str) -> Lost:
        """Raise ValueError: the formula knows no indications."""
        raise ValueError(
            "loss 'pftk' gives windows at equilibrium only; simulations need 'recovery' or "
            "'halve_only'"
        )

    def window(self, drop: Num, rtt: Num) -> Num:
        """Throughput times round trip [packet]."""
        p = ops.maximum(drop, _SOME_LOSS)
        timeouts = ops.minimum(1.0, 3 * ops.sqrt(3 * p / 8)) * p * (1 + 32 * p**2)
        return 1 / (ops.sqrt(2 * p / 3) + self.timer(rtt) / rtt * timeouts)
