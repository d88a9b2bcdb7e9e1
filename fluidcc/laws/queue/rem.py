"""Random exponential marking."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractQueueLaw, Arrival, Signal, State
from fluidcc.laws.parameters import param, state
from fluidcc.ops import Num


class REM(AbstractQueueLaw):
    """Marks exponentially in a price that matches rate and clears the queue.

    Source: Athuraliya et al. (2001): the growth of the queue stands for the excess of the rate.
    The defaults are those of the authors' code for ns-2.
    """

    name: ClassVar[str] = "rem"
    source: ClassVar[str] = "athuraliya2001; ns2, rem.cc"
    zero_order_hold: ClassVar[bool] = True
    price = state(0.0, r"\mu", unit="1", doc="price of the link", within="[0, inf)")
    before = state("average", "q_0", unit="packet", doc="queue at the last sample")
    gamma: Num = param(
        0.001, r"\gamma", unit="1/packet", doc="step of the price", within="(0, inf)"
    )
    alpha: Num = param(
        0.1, r"\alpha", unit="1", doc="weight of the queue beside the rate", within="(0, 1]"
    )
    phi: Num = param(1.001, r"\phi", unit="1", doc="base of the marking", within="(1, inf)")
    q_ref: Num = param(
        20.0, r"q_{\mathrm{ref}}", unit="packet", doc="target queue", within="[0, inf)"
    )
    interval: Num = param(0.002, "D", unit="s", doc="time between samples", within="(0, inf)")

    def period(self) -> Num:
        """Time between samples."""
        return self.interval

    def on_tick(self, x: State, seen: Arrival) -> State:
        """Move the price by backlog and growth of the queue, not below 0."""
        growth = seen.queue - x.before
        price = x.price + self.gamma * (self.alpha * (x.before - self.q_ref) + growth)
        return self.change(x, price=ops.maximum(price, 0.0) - x.price, before=growth)

    def signal(self, x: State, seen: Arrival) -> Signal:
        """Mark with probability 1 - phi^(-price)."""
        return Signal(mark=-ops.expm1(-x.price * ops.log(self.phi)))
