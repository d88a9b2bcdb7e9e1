"""The adaptive virtual queue."""

import math
from typing import ClassVar, NamedTuple

from fluidcc import ops
from fluidcc.laws.law import AbstractQueueLaw, Arrival, Signal
from fluidcc.laws.parameters import param
from fluidcc.ops import Num


class AVQ(AbstractQueueLaw):
    """Marks what a virtual link of adapted rate would lose. Kunniyur and Srikant (2001), II.

    The memory is the rate of the virtual link as a share of the link's. What arrives above that
    rate is marked: in the mean the virtual queue is full and overflows by that much, which is the
    mark of the paper's own analysis. It is exact at rest and for small motions about it, as the
    virtual link is then overloaded at all times; only packets see the virtual queue drain.
    """

    name: ClassVar[str] = "avq"
    source: ClassVar[str] = "kunniyur2001, section II"
    symbols: ClassVar[tuple[str, ...]] = ("c",)
    limits: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    alpha: Num = param(0.15, r"\alpha", unit="1/s", doc="pace of the adaptation", within="(0, inf)")
    gamma: Num = param(0.98, r"\gamma", unit="1", doc="target utilisation", within="(0, 1]")
    buffer: Num = param(
        math.inf,
        r"\tilde B",
        unit="packet",
        doc="packets: room of the virtual queue; inf for that of the link",
        within="[1, inf]",
    )

    def start(self, average: Num) -> Num:
        """Start with a virtual link as fast as the link."""
        return 1.0

    def on_arrival(self, x: Num, seen: Arrival) -> Num:
        """Rise with time, fall with each packet: at rest the link is used to its target."""
        return self.alpha * (self.gamma * seen.elapsed - seen.count * seen.size / seen.capacity)

    def signal(self, x: Num, seen: Arrival) -> Signal:
        """Mark the share of arrivals above the virtual rate; `seen.elapsed` is a packet's gap."""
        return Signal(mark=ops.clip(1 - x * seen.capacity * seen.elapsed, 0.0, 1.0))

    def in_packets(self, buffer: float) -> "VirtualQueue":
        """The virtual queue itself, with the room of the link's unless the law has its own.

        Raises ValueError where both are without limit, as nothing would be marked.
        """
        room = buffer if float(self.buffer) == math.inf else self.buffer
        if float(room) == math.inf:
            raise ValueError(
                f"{self.name} marks what a virtual queue has no room for; give the law or the link "
                "a buffer, got inf for both"
            )
        return VirtualQueue(alpha=self.alpha, gamma=self.gamma, buffer=room)


class Virtual(NamedTuple):
    """Memory of a virtual queue."""

    share: Num  # rate of the virtual link, of the link's
    queue: Num  # mean packets
    lost: Num  # 1 if the last packet had no room, else 0


class VirtualQueue(AVQ):
    """The adaptive virtual queue packet by packet. Kunniyur and Srikant (2001), II.

    A packet that has no room in the virtual queue is marked and does not enter it. The share of
    packets marked in the long run is the mark of `AVQ` while more arrives than the virtual link
    carries.
    """

    symbols: ClassVar[tuple[str, ...]] = ("c", "v", "o")
    limits: ClassVar[tuple[float, float] | None] = None

    def start(self, average: Num) -> Virtual:
        """Start with an empty virtual queue."""
        return Virtual(super().start(average), 0.0, 0.0)

    def on_arrival(self, x: Virtual, seen: Arrival) -> Virtual:
        """Drain, take the packet in or lose it, adapt the rate: up to the link's, then down."""
        left = ops.maximum(x.queue - x.share * seen.capacity * seen.elapsed, 0.0)
        filled = left + seen.count * seen.size
        fits = filled <= self.buffer
        rise = super().on_arrival(x.share, seen._replace(count=0.0))
        fall = super().on_arrival(x.share, seen._replace(elapsed=0.0))
        share = ops.maximum(ops.minimum(x.share + rise, 1.0) + fall, 0.0)
        lost = ops.where(seen.count > 0, ops.where(fits, 0.0, 1.0), x.lost)
        return Virtual(share - x.share, ops.where(fits, filled, left) - x.queue, lost - x.lost)

    def signal(self, x: Virtual, seen: Arrival) -> Signal:
        """Mark the packet that had no room."""
        return Signal(mark=x.lost)

    def in_packets(self, buffer: float) -> "VirtualQueue":
        """Stay as it is."""
        return self
