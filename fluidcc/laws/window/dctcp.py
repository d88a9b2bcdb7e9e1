"""The window law of DCTCP."""

from typing import ClassVar

from fluidcc.laws.law import AbstractWindowLaw, Ack, State
from fluidcc.laws.parameters import param, state
from fluidcc.ops import Num


class DCTCP(AbstractWindowLaw):
    """TCP that cuts by half of the share of marked packets, once per round trip.

    Source: Alizadeh et al. (2010), eqs 1 and 2; RFC 8257, section 3.3. The rule moves the
    estimate by the factor 1 - g per window of w packets, so by (1 - g)^(n/w) per n packets: its
    fluid pole is -ln(1 - g) per round trip, where Alizadeh et al. (2011) write g.
    """

    name: ClassVar[str] = "dctcp"
    source: ClassVar[str] = "alizadeh2010, eqs 1 and 2; rfc8257, section 3.3"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "newreno"
    alpha = state(  # from 1, as RFC 8257 has it
        1.0, r"\alpha", unit="1", doc="estimated share of marked packets", within="[0, 1]"
    )
    g: Num = param(
        1 / 16, "g", unit="1", doc="weight of one window's share of marks", within="(0, 1)"
    )

    def on_ack(self, s: State, ack: Ack) -> State:
        """Grow by one packet per window of ACKs, as TCP does, with as many rounds to each."""
        return self.change(s, window=ack.count * self.rounds(ack) ** 2 / s.window)

    def on_mark(self, s: State, ack: Ack) -> State:
        """Cut by alpha/2 of the window: eq. 2."""
        return self.change(s, window=-s.window * s.alpha / 2)

    def on_loss(self, s: State, ack: Ack) -> State:
        """Halve the window, as TCP does."""
        return self.change(s, window=-s.window / 2)

    def observe(self, s: State, ack: Ack) -> State:
        """Move the estimate towards the share of marked packets: eq. 1, once in a round."""
        moved = 1 - (1 - self.g) ** (ack.count * self.rounds(ack) / s.window)
        return self.change(s, alpha=moved * (ack.marked - s.alpha))
