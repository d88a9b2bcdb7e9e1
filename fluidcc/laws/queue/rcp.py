"""Links that write the rate of a flow into packets."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractQueueLaw, Arrival, Signal
from fluidcc.laws.parameters import param, state
from fluidcc.ops import Num


class RateControl(AbstractQueueLaw):
    """Writes the time between packets 1/R of one rate R for all flows.

    Source: Dukkipati et al. (2005). In a period T the rate grows by the share
    (T/d) (alpha (C - y) - beta q/d) / C of itself, y being the rate that has come and d the mean
    round trip. Here each packet and the time before it move R by their part of that, so that there
    is no T: the memory is the logarithm of R/C. d is a parameter, as packets do not bring their
    round trips. The link aims at a share `gamma` of C, 1 in the paper, at which rest is
    at the edge of a queue; above 1 it keeps one of alpha (gamma - 1) C d/beta.
    """

    name: ClassVar[str] = "rcp"
    source: ClassVar[str] = "dukkipati2005; balakrishnan2007"
    emits: ClassVar[tuple[str, ...]] = ("mark", "drop", "spacing")
    rate = state(
        -3.0, "r", unit="1", doc="logarithm of the rate over the link's", within="[-10, 0]",
        stops=True,
    )  # fmt: skip
    alpha: Num = param(0.4, r"\alpha", unit="1", doc="weight of the spare rate", within="[0, inf)")
    beta: Num = param(0.226, r"\beta", unit="1", doc="weight of the queue", within="[0, inf)")
    base: Num = param(0.1, "d", unit="s", doc="mean round trip", within="(0, inf)")
    gamma: Num = param(0.95, r"\gamma", unit="1", doc="target utilisation", within="(0, 2)")

    def on_arrival(self, x: Num, seen: Arrival) -> Num:
        """Grow with time, shrink with each packet, and with the queue."""
        full = self.gamma * seen.capacity
        spare = full * seen.elapsed - seen.count * seen.size
        drained = seen.queue / self.base * seen.elapsed
        return (self.alpha * spare - self.beta * drained) / (full * self.base)

    def signal(self, x: Num, seen: Arrival) -> Signal:
        """Write the time between packets of a flow."""
        return Signal(spacing=ops.exp(-x) / seen.capacity)
