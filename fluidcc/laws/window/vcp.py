"""The window law of the Variable-structure congestion Control Protocol."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractWindowLaw, Ack, State
from fluidcc.laws.parameters import choice, param, state
from fluidcc.ops import Num

_MOST_PERIODS = 50.0  # in one round trip; a larger power may overflow
_MOST_LOST = 0.5  # of a window in t_p, by the fluid model at overload; with usual gains 0.25


class VCP(AbstractWindowLaw):
    """Multiplicative increase at low, additive at high load, decrease at overload.

    Source: Xia et al. (2005), and the sender of their code for ns-2. Routers code the load factor
    by two bits, low, high or overload: senders act on nothing else, so that the code is theirs
    here. Growth is that of a round trip of t_p whatever the measured one is. After a decrease
    comes at least one period without, for the load to be measured anew; their sender grows in the
    last round trip of that pause, here it waits. Without `coded` senders act on the load factor
    itself, by both increases at a time: the fluid model of the paper.
    """

    name: ClassVar[str] = "vcp"
    source: ClassVar[str] = "xia2005"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "reno"
    reads: ClassVar[tuple[str, ...]] = ("mark", "drop", "load")
    wait = state(
        0.0, r"\sigma", unit="1", doc="1 in the period after a decrease", within="[0, 1]",
        when="coded",
    )  # fmt: skip
    t_p: Num = param(
        0.2, r"t_\rho", unit="s", doc="sampling period of the routers", within="(0, inf)"
    )
    xi: Num = param(
        0.0625, r"\xi_0", unit="1", doc="multiplicative increase in t_p at low load",
        within="(0, inf)",
    )  # fmt: skip
    alpha: Num = param(
        1.0, r"\alpha", unit="packet", doc="additive increase in t_p", within="[0, inf)"
    )
    beta: Num = param(0.875, r"\beta", unit="1", doc="window share kept", within="(0, 1)")
    high: Num = param(0.8, r"\rho_1", unit="1", doc="least load called high", within="(0, 1)")
    coded: bool = choice(True, doc="act on the two bits, not on the load factor itself")

    def _multiplied(self, w: Num, gain: Num, ack: Ack) -> Num:
        """Growth of the window by a gain in t_p, for the time since the last ACK; a gap longer
        than a round trip, as after a timeout, counts as one round trip.
        """
        periods = ops.minimum(ack.elapsed, ack.rtt) / self.t_p
        return w * ((1 + gain) ** ops.minimum(periods, _MOST_PERIODS) - 1)

    def _added(self, ack: Ack) -> Num:
        """Additive growth, equal in rate for all round trips."""
        return self.alpha * ops.minimum(ack.elapsed, ack.rtt) * ack.rtt / self.t_p**2

    def on_ack(self, s: State, ack: Ack) -> State:
        """Grow by the class of the load; without the code by xi at `high` and below, and less
        above it.
        """
        w = self.window(s)
        if self.coded:
            rising = self._multiplied(w, self.xi, ack)
            grown = ops.where(ack.load < self.high, rising, self._added(ack))
            return self.change(s, window=ops.where(ack.load > 1, 0.0, grown))
        load = ops.maximum(ack.load, self.high)
        gain = self.xi * self.high / (1 - self.high) * (1 - load) / load
        gain = ops.maximum(gain, -_MOST_LOST)
        return self._multiplied(w, gain, ack) + self._added(ack)

    def on_mark(self, s: State, ack: Ack) -> State:
        """Halve the window."""
        return self.change(s, window=-self.window(s) / 2)

    def slow_start(self, s: State) -> Num:
        """None: the multiplicative increase takes its place."""
        return 0

    def period(self, ack: Ack) -> Num | None:
        """Time between decreases [s]; None without the code."""
        return self.t_p if self.coded else None

    def on_tick(self, s: State, ack: Ack) -> State:
        """Decrease at overload, unless the period before began with a decrease."""
        if not self.coded:
            return self.change(s)
        cut = ops.where((ack.load > 1) & (s.wait < 0.5), 1.0, 0.0)
        return self.change(s, window=cut * (self.beta - 1) * s.window, wait=cut - s.wait)
