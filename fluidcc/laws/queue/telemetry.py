"""Links that write their load into every packet."""

from typing import ClassVar

from fluidcc.laws.law import AbstractQueueLaw, Arrival, Signal, State, rate_weights
from fluidcc.laws.parameters import param, state
from fluidcc.ops import Num


class Telemetry(AbstractQueueLaw):
    """Writes the load q/(C T) + y/C into packets that leave: of the queue and the rate sent.

    Source: Li et al. (2019), section 3 and algorithm 1: the queue, the bytes sent and the time are
    in the packet, and the sender computes the rate from two of its packets. Here the link has the
    rate, averaged over `interval`, for which the time between two packets of a flow is apt. The
    lesser of the queues that two packets in a row left is not taken.
    """

    name: ClassVar[str] = "telemetry"
    source: ClassVar[str] = "li2019, section 3 and algorithm 1"
    tried_in: ClassVar[str] = "li2019/incast"
    emits: ClassVar[tuple[str, ...]] = ("mark", "drop", "load")
    sent = state(0.0, "y", unit="packet/s", doc="rate at which packets leave", within="[0, inf)")
    base: Num = param(
        13e-6, "T", unit="s", doc="base round trip, the senders' one", within="(0, inf)"
    )
    interval: Num = param(
        1e-6, r"\tau", unit="s", doc="time over which the rate is averaged", within="(0, inf)"
    )

    def on_departure(self, x: State, seen: Arrival) -> State:
        """Average the rate: count packets by their size over the time since the one before."""
        weight, faded = rate_weights(seen.elapsed, self.interval)
        return weight * seen.count * seen.size - faded * x

    def signal(self, x: State, seen: Arrival) -> Signal:
        """Write the load; neither mark nor drop."""
        return Signal(load=seen.queue / (seen.capacity * self.base) + x / seen.capacity)
