"""Reactions: which congestion signals count for a sender, as a rule per packet and its mean."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractReaction, Shares, Since
from fluidcc.laws.parameters import choice
from fluidcc.ops import Num

_ALMOST_ONE = 1 - 1e-12  # (1 - p)^w has no slope at p = 1 for w < 1


def any_of(w: Num, p: Num) -> Num:
    """Probability that at least one of `w` packets is hit, each with probability `p`."""
    return -ops.expm1(w * ops.log1p(-ops.minimum(p, _ALMOST_ONE)))


def _clean_share(growth: str, p: Num) -> Num:
    return 1 - p if growth == "clean" else 1.0


def _grows(growth: str, marked: Num) -> Num:
    return 1 - marked if growth == "clean" else 1


class PerMark(AbstractReaction):
    """Every mark counts. Misra and Ott (2003), eq. 1."""

    name: ClassVar[str] = "per_mark"
    source: ClassVar[str] = "misra2003, eq. 1"
    growth: str = choice("clean", "clean", "all", doc="ACKs that let the window grow")

    def shares(self, p: Num, w: Num) -> Shares:
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
        "exact", "exact", "poisson", "round_chain", doc="fluid: how a window of ACKs is counted"
    )

    def shares(self, p: Num, w: Num) -> Shares:
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

    def shares(self, p: Num, w: Num) -> Shares:
        """One reaction in w + 1/p ACKs."""
        return Shares(_clean_share(self.growth, p), p / (1 + w * p))

    def ready(self, since: Since) -> Num:
        """After one round trip."""
        return ops.where(since.time > since.round_trip, 1, 0)

    def growing(self, since: Since, marked: Num) -> Num:
        """On all ACKs (or the unmarked)."""
        return _grows(self.growth, marked)


class Pause(AbstractReaction):
    """Ignore signals for one round trip after a reaction, without growth if a mark caused it.

    Enhanced BECN: one bit of a quench gives whether its packet was marked or dropped.
    """

    name: ClassVar[str] = "pause"
    source: ClassVar[str] = "akujobi2002, section IV.B"

    def shares(self, p: Num, w: Num) -> Shares:
        """Both by the share of time outside pauses."""
        return Shares(1 / (1 + w * p), p / (1 + w * p))

    def ready(self, since: Since) -> Num:
        """After one round trip."""
        return ops.where(since.time > since.round_trip, 1, 0)

    def growing(self, since: Since, marked: Num) -> Num:
        """After one round trip, or at once after a quench for a drop, on every ACK."""
        return ops.where(since.dropped > 0, 1, ops.where(since.time > since.round_trip, 1, 0))
