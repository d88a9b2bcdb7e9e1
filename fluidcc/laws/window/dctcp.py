"""The window law of DCTCP."""

from typing import ClassVar, NamedTuple

from fluidcc.laws.law import AbstractWindowLaw, Ack
from fluidcc.laws.parameters import param
from fluidcc.ops import Num


class Estimated(NamedTuple):
    """State of a sender that estimates the share of marked packets."""

    window: Num  # packets
    alpha: Num  # estimated share


class DCTCP(AbstractWindowLaw):
    """TCP that cuts by half of the share of marked packets, once per round trip.

    Source: Alizadeh et al. (2010), eqs 1 and 2; RFC 8257, section 3.3. The rule moves the
    estimate by the factor 1 - g per window of w packets, so by (1 - g)^(n/w) per n packets: its
    fluid pole is -ln(1 - g) per round trip, where Alizadeh et al. (2011) write g.
    """

    name: ClassVar[str] = "dctcp"
    source: ClassVar[str] = "alizadeh2010, eqs 1 and 2; rfc8257, section 3.3"
    symbols: ClassVar[tuple[str, ...]] = ("W", r"\alpha")
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "newreno"
    g: Num = param(1 / 16, "g", unit="1", doc="weight of one window's share", within="(0, 1)")

    def start(self, w: Num) -> Estimated:
        """Window `w` and the estimate 1, as RFC 8257 has it."""
        return Estimated(w, 1.0 + 0.0 * w)

    def window(self, s: Estimated) -> Num:
        """Congestion window [packet]."""
        return s.window

    def with_window(self, s: Estimated, w: Num) -> Estimated:
        """The state `s` with its window replaced by `w`."""
        return s._replace(window=w)

    def on_ack(self, s: Estimated, ack: Ack) -> Estimated:
        """Grow by one packet per window of ACKs, as TCP does."""
        return Estimated(ack.count / s.window, 0.0 * s.alpha)

    def on_mark(self, s: Estimated, ack: Ack) -> Estimated:
        """Cut by alpha/2 of the window: eq. 2."""
        return Estimated(-s.window * s.alpha / 2, 0.0 * s.alpha)

    def on_loss(self, s: Estimated, ack: Ack) -> Estimated:
        """Halve the window, as TCP does."""
        return Estimated(-s.window / 2, 0.0 * s.alpha)

    def observe(self, s: Estimated, ack: Ack) -> Estimated:
        """Move the estimate towards the share of marked packets: eq. 1."""
        moved = 1 - (1 - self.g) ** (ack.count / s.window)
        return Estimated(0.0 * s.window, moved * (ack.marked - s.alpha))
