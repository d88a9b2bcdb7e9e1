"""Routers that send their load factor."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractQueueLaw, Arrival, Signal, State
from fluidcc.laws.parameters import param, state
from fluidcc.ops import Num

_SLOWNESS = 8  # time constant of the average queue, in sampling periods (Qazi et al., 3.1)


class AbstractLoadFactor(AbstractQueueLaw):
    """Samples the load of a link once a period and holds it. Qazi et al. (2010), eq. 1."""

    emits: ClassVar[tuple[str, ...]] = ("mark", "drop", "load")
    arrived = state(0.0, r"\lambda", unit="packet", doc="mean packets since the last sample")
    slow = state("average", r"q_{\mathrm{av}}", unit="packet", doc="average queue")
    factor = state(0.0, "f", unit="1", doc="load factor of the last sample", within="[0, inf)")
    t_p: Num = param(0.2, "t_p", unit="s", doc="sampling period", within="(0, inf)")
    kappa_1: Num = param(
        0.75, r"\kappa_1", unit="1", doc="weight of the queue in the load", within="[0, inf)"
    )
    gamma: Num = param(1.0, r"\gamma", unit="1", doc="target utilisation", within="(0, 1]")

    def period(self) -> Num:
        """The sampling period."""
        return self.t_p

    def on_arrival(self, x: State, seen: Arrival) -> State:
        """Change on arrivals: count them by their size, and move the slow average of the queue."""
        fading = 1 - ops.exp(-seen.elapsed / (_SLOWNESS * self.t_p))
        slow = fading * (seen.queue - x.slow)
        return self.change(x, arrived=seen.count * seen.size, slow=slow)

    def on_tick(self, x: State, seen: Arrival) -> State:
        """Change at a tick: the load of the period that ends."""
        demand = x.arrived + self.kappa_1 * x.slow
        factor = demand / (self.gamma * seen.capacity * self.t_p)
        return self.change(x, arrived=-x.arrived, factor=factor - x.factor)


class LoadFactor(AbstractLoadFactor):
    """Tells the load factor; marks every packet from the largest one that can be coded.

    Source: Qazi et al. (2010), eq. 1 and section 3.2. Until the first sample the load is 0.
    """

    name: ClassVar[str] = "load_factor"
    source: ClassVar[str] = "qazi2010, eq. 1"
    zero_order_hold: ClassVar[bool] = True
    highest: Num = param(
        1.2, "u", unit="1", doc="load factor from which packets are marked", within="(1, inf]"
    )

    def average(self, x: State, queue: Num) -> Num:
        """The slow average queue [packet]."""
        return x.slow

    def signal(self, x: State, seen: Arrival) -> Signal:
        """Tell the last sample; mark where it cannot be coded."""
        return Signal(mark=ops.where(x.factor >= self.highest, 1.0, 0.0), load=x.factor)
