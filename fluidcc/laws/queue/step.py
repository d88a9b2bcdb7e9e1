"""Marking of packets that have waited longer than a time."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractQueueLaw, Arrival, Signal, State
from fluidcc.laws.parameters import param
from fluidcc.ops import Num


class Step(AbstractQueueLaw):
    """Marks every packet that leaves after more than a time in the queue, or over a ramp of some
    width. RFC 9332, section 2.4: the native marking of the L4S queue, 1 ms in Linux; its A.1 has a
    ramp from 0.8 to 1.2 ms.

    A packet that leaves nothing behind is not marked: on a slow link it has waited for others.
    """

    name: ClassVar[str] = "step"
    source: ClassVar[str] = "rfc9332, appendix A"
    at: Num = param(0.001, r"\tau_0", unit="s", doc="time in the queue", within="(0, inf)")
    width: Num = param(
        0.0, r"\Delta", unit="s", doc="width of the ramp; 0 is a step", within="[0, inf)"
    )

    def on_departure(self, x: State, seen: Arrival) -> State:
        """Nothing: packets are decided upon as they leave."""
        return ()

    def signal(self, x: State, seen: Arrival) -> Signal:
        """Mark above the time; with a width, with a probability that rises over it."""
        above = seen.sojourn - self.at
        step = ops.where(above > 0, 1.0, 0.0)
        some = ops.where(self.width > 0, self.width, 1.0)  # the unused branch must not divide by 0
        rise = ops.where(self.width > 0, ops.clip(above / some, 0.0, 1.0), step)
        return Signal(mark=ops.where(seen.queue >= 1, rise, 0.0))

    def breakpoints(self, x: State, seen: Arrival) -> tuple[Num, ...]:
        """Both ends of the ramp, which are one for a step, and the queue of one packet."""
        above = seen.sojourn - self.at
        return (above * seen.capacity, (above - self.width) * seen.capacity, seen.queue - 1)

    def is_discontinuous(self) -> bool:
        """A step jumps."""
        return bool(self.width == 0)
