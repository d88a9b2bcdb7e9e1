"""The window law of TCP Westwood."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractWindowLaw, Ack, State
from fluidcc.laws.parameters import param, state
from fluidcc.ops import Num


class Westwood(AbstractWindowLaw):
    """TCP that after a loss has as many packets under way as its bandwidth fills without a queue.

    Source: Mascolo, Casetti, Gerla, Sanadidi and Wang (2001), with the estimate of Westwood+,
    Grieco and Mascolo (2004): a low-pass filter over one sample of the bandwidth in each round
    trip. Here a sample is the window over the round trip, which is acknowledged in it, and its
    weight is spread over ACKs. The propagation round trip is known exactly, where a sender has the
    least that it met.
    """

    name: ClassVar[str] = "westwood"
    source: ClassVar[str] = "mascolo2001; grieco2004"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "newreno"
    reads: ClassVar[tuple[str, ...]] = ("mark", "drop", "delay")
    bandwidth = state(0.0, "b", unit="packet/s", doc="estimated bandwidth", within="[0, inf)")
    g: Num = param(1 / 8, "g", unit="1", doc="weight of one round trip's sample", within="(0, 1)")

    def on_ack(self, s: State, ack: Ack) -> State:
        """Grow by one packet in a round trip, as TCP does."""
        return self.change(s, window=ack.count / s.window)

    def on_mark(self, s: State, ack: Ack) -> State:
        """Shrink to the bandwidth times the propagation round trip, if that is less."""
        filled = s.bandwidth * (ack.rtt - ack.delay)
        return self.change(s, window=ops.minimum(filled - s.window, 0.0))

    def observe(self, s: State, ack: Ack) -> State:
        """Move the estimate towards the window over the round trip."""
        moved = 1 - (1 - self.g) ** (ack.count / s.window)
        return self.change(s, bandwidth=moved * (s.window / ack.rtt - s.bandwidth))
