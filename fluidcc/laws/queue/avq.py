"""The adaptive virtual queue."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractQueueLaw, Arrival, Signal
from fluidcc.laws.parameters import param
from fluidcc.ops import Num


class AVQ(AbstractQueueLaw):
    """Marks what a virtual link of adapted rate would lose. Kunniyur and Srikant (2001), II.

    The memory is the rate of the virtual link as a share of the link's. What arrives above that
    rate is marked: the overflow of a full virtual queue in the mean.
    """

    name: ClassVar[str] = "avq"
    source: ClassVar[str] = "kunniyur2001, section II"
    symbols: ClassVar[tuple[str, ...]] = ("c",)
    limits: ClassVar[tuple[float, float]] = (0.0, 1.0)
    alpha: Num = param(0.15, r"\alpha", unit="1/s", doc="pace of the adaptation", within="(0, inf)")
    gamma: Num = param(0.98, r"\gamma", unit="1", doc="target utilisation", within="(0, 1]")

    def start(self, average: Num) -> Num:
        """Start with a virtual link as fast as the link."""
        return 1.0

    def on_arrival(self, x: Num, seen: Arrival) -> Num:
        """Rise with time, fall with each packet: at rest the link is used to its target."""
        return self.alpha * (self.gamma * seen.elapsed - seen.count / seen.capacity)

    def signal(self, x: Num, seen: Arrival) -> Signal:
        """Mark the share of arrivals above the virtual rate; `seen.elapsed` is a packet's gap."""
        return Signal(mark=ops.clip(1 - x * seen.capacity * seen.elapsed, 0.0, 1.0))
