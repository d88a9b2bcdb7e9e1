"""Reactions: which congestion signals count for a sender, as a rule per packet and its mean; and
the effect of losses in the fluid model: indications, recovery, timeouts.
"""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractLossClosure, AbstractReaction, Lost, Shares, Since
from fluidcc.laws.parameters import choice, param
from fluidcc.ops import Num

_ALMOST_ONE = 1 - 1e-12  # at 1, (1 - p)^w has no slope for w < 1, and timeouts never end


def any_of(w: Num, p: Num) -> Num:
    """Probability that at least one of `w` packets is hit, each with probability `p`."""
    return -ops.expm1(w * ops.log1p(-ops.minimum(p, _ALMOST_ONE)))


def none_of(w: Num, p: Num) -> Num:
    """Probability that none of `w` packets is hit, each with probability `p`."""
    return ops.exp(w * ops.log1p(-ops.minimum(p, _ALMOST_ONE)))


def _clean_share(growth: str, p: Num) -> Num:
    return 1 - p if growth == "clean" else 1.0


def _grows(growth: str, marked: Num) -> Num:
    return 1 - marked if growth == "clean" else 1


class PerMark(AbstractReaction):
    """Every mark counts. Misra and Ott (2003), eq. 1."""

    name: ClassVar[str] = "per_mark"
    source: ClassVar[str] = "misra2003, eq. 1"
    growth: str = choice("clean", "clean", "all", doc="ACKs that let the window grow")

    def shares(self, p: Num, w: Num, rtt: Num) -> Shares:
        """All marks, and growth on the unmarked ACKs (or all)."""
        return Shares(_clean_share(self.growth, p), p)

    def ready(self, since: Since) -> Num:
        """Always."""
        return 1

    def growing(self, since: Since, marked: Num) -> Num:
        """On unmarked ACKs (or all)."""
        return _grows(self.growth, marked)


class OncePerRTT(AbstractReaction):
    """At most one reaction per window of data. RFC 3168, 6.1.2.

    The mean counts blocks of w ACKs in which at least one is marked. Marks are independent
    (`exact`), or their number is Poisson; under `round_chain` the window grows only in blocks
    without a mark. The packet rule is one for all three.
    """

    name: ClassVar[str] = "once_per_rtt"
    source: ClassVar[str] = "rfc3168, section 6.1.2"
    growth: str = choice("all", "all", "clean", doc="ACKs that let the window grow")
    block: str = choice(
        "exact",
        "exact",
        "poisson",
        "round_chain",
        doc="how a window of ACKs is counted",
        engines=("fluid",),
    )

    def shares(self, p: Num, w: Num, rtt: Num) -> Shares:
        """One reaction in a block of w ACKs with a mark."""
        some = -ops.expm1(-p * w) if self.block == "poisson" else any_of(w, p)
        grown = 1 - some if self.block == "round_chain" else _clean_share(self.growth, p)
        return Shares(grown, some / w)

    def ready(self, since: Since) -> Num:
        """Once a packet sent after the last reaction is acknowledged."""
        return since.window

    def growing(self, since: Since, marked: Num) -> Num:
        """On all ACKs (or the unmarked)."""
        return _grows(self.growth, marked)


class Refractory(AbstractReaction):
    """Ignore signals for one round trip after a reaction: a renewal process with dead time."""

    name: ClassVar[str] = "refractory"
    source: ClassVar[str] = "akujobi2002, section IV.B"
    growth: str = choice("all", "all", "clean", doc="ACKs that let the window grow")

    def shares(self, p: Num, w: Num, rtt: Num) -> Shares:
        """One reaction in w + 1/p ACKs."""
        return Shares(_clean_share(self.growth, p), p / (1 + w * p))

    def ready(self, since: Since) -> Num:
        """After one round trip."""
        return ops.where(since.time > since.round_trip, 1, 0)

    def growing(self, since: Since, marked: Num) -> Num:
        """On all ACKs (or the unmarked)."""
        return _grows(self.growth, marked)


class OncePerInterval(AbstractReaction):
    """At most one reaction in an `interval`, as receivers of DCQCN send notifications.

    The mean is that of a pause after each reaction, or counts intervals in which at least one
    packet is marked (`blocks`), as Zhu et al. (2016) have it. The packet rule is one for both.
    """

    name: ClassVar[str] = "once_per_interval"
    source: ClassVar[str] = "zhu2015, section 3; zhu2016, equations 3 to 5"
    interval: Num = param(
        50e-6, r"\tau", unit="s", doc="time between reactions, at least", within="(0, inf)"
    )
    count: str = choice(
        "pauses", "pauses", "blocks", doc="how intervals are counted", engines=("fluid",)
    )

    def shares(self, p: Num, w: Num, rtt: Num) -> Shares:
        """One reaction in an interval and the packets until the next mark, or in a block."""
        packets = self.interval * w / rtt
        if self.count == "blocks":
            return Shares(1.0, any_of(packets, p) / packets)
        return Shares(1.0, p / (1 + packets * p))

    def ready(self, since: Since) -> Num:
        """After the interval."""
        return ops.where(since.time >= self.interval, 1, 0)

    def growing(self, since: Since, marked: Num) -> Num:
        """On all ACKs."""
        return 1


class Pause(AbstractReaction):
    """Ignore signals for one round trip after a reaction, without growth if a mark caused it.

    Enhanced BECN: one bit of a quench gives whether its packet was marked or dropped.
    """

    name: ClassVar[str] = "pause"
    source: ClassVar[str] = "akujobi2002, section IV.B"

    def shares(self, p: Num, w: Num, rtt: Num) -> Shares:
        """Both by the share of time outside pauses."""
        return Shares(1 / (1 + w * p), p / (1 + w * p))

    def ready(self, since: Since) -> Num:
        """After one round trip."""
        return ops.where(since.time > since.round_trip, 1, 0)

    def growing(self, since: Since, marked: Num) -> Num:
        """After one round trip, or at once after a quench for a drop, on every ACK."""
        return ops.where(since.dropped > 0, 1, ops.where(since.time > since.round_trip, 1, 0))


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
