"""Links that write the rate of a flow into packets."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractQueueLaw, Arrival, Signal, State
from fluidcc.laws.parameters import param, state
from fluidcc.ops import Num


class RateControl(AbstractQueueLaw):
    """Writes the time between packets 1/R, of one rate R for all flows, moved once a period.

    Source: Dukkipati et al. (2005): R grows by the share (T/d) (alpha (C - y) - beta q/d) / C of
    itself, y being the rate that has come and d the mean round trip, here a parameter as packets
    do not bring theirs. `gamma` C stands for C if less is aimed at. R stays between a share of the
    link's rate and all of it.
    """

    name: ClassVar[str] = "rcp"
    source: ClassVar[str] = "dukkipati2005; balakrishnan2007"
    emits: ClassVar[tuple[str, ...]] = ("mark", "drop", "spacing")
    zero_order_hold: ClassVar[bool] = False
    arrived = state(0.0, r"\lambda", unit="packet", doc="packets of this period", within="[0, inf)")
    share = state("first", "r", unit="1", doc="rate of a flow over the link's", within="[0, 1]")
    alpha: Num = param(0.4, r"\alpha", unit="1", doc="weight of the spare rate", within="[0, inf)")
    beta: Num = param(1.0, r"\beta", unit="1", doc="weight of the queue", within="[0, inf)")
    base: Num = param(0.1, "d", unit="s", doc="mean round trip", within="(0, inf)")
    interval: Num = param(0.01, "T", unit="s", doc="time between steps", within="(0, inf)")
    gamma: Num = param(1.0, r"\gamma", unit="1", doc="target utilisation", within="(0, 1]")
    least: Num = param(0.001, "r_0", unit="1", doc="least share of the rate", within="(0, 1)")
    first: Num = param(0.05, "r_1", unit="1", doc="share that links begin with", within="(0, 1]")

    def period(self) -> Num:
        """Time between steps."""
        return self.interval

    def on_arrival(self, x: State, seen: Arrival) -> State:
        """Count arrivals by their size."""
        return self.change(x, arrived=seen.count * seen.size)

    def on_tick(self, x: State, seen: Arrival) -> State:
        """Move the rate by what was spare in the period that ends, and by the queue."""
        full = self.gamma * seen.capacity
        spare = self.alpha * (full - x.arrived / self.interval)
        step = self.interval / self.base * (spare - self.beta * seen.queue / self.base) / full
        share = ops.clip(x.share * (1 + step), self.least, 1.0)
        return self.change(x, arrived=-x.arrived, share=share - x.share)

    def signal(self, x: State, seen: Arrival) -> Signal:
        """Write the time between packets of a flow."""
        return Signal(spacing=1 / (x.share * seen.capacity))
