"""The adaptive virtual queue."""

import dataclasses
import math
from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractQueueLaw, Arrival, Signal, State
from fluidcc.laws.parameters import EVENTS, param, state
from fluidcc.module import static
from fluidcc.ops import Num


class AVQ(AbstractQueueLaw):
    """Marks what a virtual link of adapted rate would lose. Kunniyur and Srikant (2001), II.

    The memory is the rate of the virtual link as a share of the link's. What arrives above that
    rate is marked: in the mean the virtual queue is full and overflows by that much, which is the
    mark of the paper's analysis. It is exact at equilibrium and for small motions about it, as the
    virtual link is then overloaded at all times. Only packets see the virtual queue drain
    (`follows_queue`): one that has no room in it is marked and does not enter it, which in the long
    run is the same share of packets. Of several that come together the share without room is.
    """

    name: ClassVar[str] = "avq"
    source: ClassVar[str] = "kunniyur2001, section II"
    c = state(1.0, "c", unit="1", doc="rate of the virtual link", within="[0, 1]", stops=True)
    queued = state(0.0, "v", unit="packet", doc="in the virtual queue", when="follows_queue")
    lost = state(
        0.0, "o", unit="1", doc="1 if the last had no room", within="[0, 1]", when="follows_queue"
    )
    alpha: Num = param(0.15, r"\alpha", unit="1/s", doc="pace of the adaptation", within="(0, inf)")
    gamma: Num = param(0.98, r"\gamma", unit="1", doc="target utilisation", within="(0, 1]")
    buffer: Num = param(
        math.inf,
        r"\tilde B",
        unit="packet",
        doc="room of the virtual queue; inf for that of the link",
        engines=EVENTS,
        within="[1, inf]",
    )
    follows_queue: bool = static(False)

    def adapted(self, seen: Arrival) -> Num:
        """Rise with time, fall with each packet: at equilibrium the link is used to its target."""
        return self.alpha * (self.gamma * seen.elapsed - seen.count * seen.size / seen.capacity)

    def on_arrival(self, x: State, seen: Arrival) -> State:
        """Adapt the rate; packet by packet also drain, and take the packet in or lose it."""
        if not self.follows_queue:
            return self.adapted(seen)
        left = ops.maximum(x.queued - x.c * seen.capacity * seen.elapsed, 0.0)
        come = seen.count * seen.size
        room = ops.where(seen.count > 1, self.buffer - left, 0.0)  # one fits as a whole or not
        fits = ops.where(left + come <= self.buffer, come, room)
        rise, fall = (self.adapted(seen._replace(**{k: 0.0})) for k in ("count", "elapsed"))
        c = ops.maximum(ops.minimum(x.c + rise, 1.0) + fall, 0.0)  # up to the link's, then down
        share = (come - fits) / ops.where(come > 0, come, 1.0)
        lost = ops.where(seen.count > 0, share, x.lost)
        return self.change(x, c=c - x.c, queued=left + fits - x.queued, lost=lost - x.lost)

    def signal(self, x: State, seen: Arrival) -> Signal:
        """Mark the share of arrivals above the virtual rate, `seen.elapsed` being a packet's gap;
        packet by packet the one that had no room.
        """
        if self.follows_queue:
            return Signal(mark=x.lost)
        return Signal(mark=ops.clip(1 - x * seen.capacity * seen.elapsed, 0.0, 1.0))

    def in_packets(self, buffer: float) -> "AVQ":
        """Follow the virtual queue, with the room of the link's unless the law has its own.

        Raises ValueError where both are without limit, as nothing would be marked.
        """
        room = buffer if float(self.buffer) == math.inf else self.buffer
        if float(room) == math.inf:
            raise ValueError(
                f"{self.name} marks what a virtual queue has no room for; give the law or the link "
                "a buffer, got inf for both"
            )
        return dataclasses.replace(self, buffer=room, follows_queue=True)
