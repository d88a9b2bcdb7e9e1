"""The window law of LEDBAT."""

from typing import ClassVar

from fluidcc.laws.law import AbstractWindowLaw, Ack, State
from fluidcc.laws.parameters import param
from fluidcc.ops import Num


class LEDBAT(AbstractWindowLaw):
    """Move the window with the distance of the queueing delay from `target`: background transport.

    Source: RFC 6817, sections 2.4.2 and 2.5, with no filter of delays and one gain up and down. The
    RFC allows to go without slow start, as here. The delay is that of the round trip beyond
    propagation, known exactly, where a sender has the forward one beyond the least of ten minutes;
    what limits windows of senders without data is left out.
    """

    name: ClassVar[str] = "ledbat"
    source: ClassVar[str] = "rfc6817, sections 2.4.2 and 2.5"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "newreno"
    reads: ClassVar[tuple[str, ...]] = ("mark", "drop", "delay")
    min_window: Num = param(
        2.0, r"W_{\min}", unit="packet", doc="smallest window", within="(0, inf)"
    )
    target: Num = param(0.1, r"\tau", unit="s", doc="queueing delay aimed at", within="(0, inf)")
    gain: Num = param(
        1.0, "G", unit="packet", doc="most that a window grows by in a round trip", within="(0, 1]"
    )

    def on_ack(self, s: State, ack: Ack) -> State:
        """Grow below the target and shrink above it, by its relative distance: section 2.4.2."""
        return ack.count * self.gain * (1 - ack.delay / self.target) / s

    def on_mark(self, s: State, ack: Ack) -> State:
        """Halve the window."""
        return -s / 2

    def slow_start(self, s: State) -> Num:
        """None: windows shrink without a mark, and slow start would undo it."""
        return 0
