"""Marking above a queue length."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractQueueLaw, Arrival, Signal, State
from fluidcc.laws.parameters import EVENTS, choice, param
from fluidcc.ops import Num


class Threshold(AbstractQueueLaw):
    """Marks every packet above a queue length, or over a ramp of some width.

    Source: Durresi et al. (2001), section 2. The paper says "exceeds"; whether the packet in
    service and the packet judged belong to the queue it leaves open. A ramp that ends below 1 is
    the marking of switches for DCQCN. Zhu et al. (2016), equation 1.
    """

    name: ClassVar[str] = "threshold"
    source: ClassVar[str] = "durresi2001, section 2; zhu2016, equation 1"
    at: Num = param(10.0, "T", unit="packet", doc="queue where marking starts", within="[0, inf)")
    width: Num = param(
        0.0, r"\Delta", unit="packet", doc="width of the ramp; 0 is a step", within="[0, inf)"
    )
    top: Num = param(
        1.0, r"p_{\max}", unit="1", doc="probability at the end of the ramp; 1 beyond",
        within="(0, 1]",
    )  # fmt: skip
    when: str = choice("exceeds", "exceeds", "reaches", doc="queue > at, or queue >= at")
    counts: str = choice(
        "system", "system", "waiting",
        doc="the packet in service and the one judged count, or only those waiting", engines=EVENTS,
    )  # fmt: skip

    @property
    def counts_service(self) -> bool:
        """As chosen."""
        return self.counts == "system"

    def signal(self, x: State, seen: Arrival) -> Signal:
        """Mark above the threshold; with a width, with a probability that rises over it."""
        above = seen.queue > self.at if self.when == "exceeds" else seen.queue >= self.at
        step = ops.where(above, 1.0, 0.0)
        some = ops.where(self.width > 0, self.width, 1.0)  # the unused branch must not divide by 0
        rise = ops.clip((seen.queue - self.at) / some, 0.0, 1.0)
        beyond = ops.where(seen.queue >= self.at + self.width, 1.0, 0.0)
        ramp = ops.maximum(self.top * rise, beyond)
        return Signal(mark=ops.where(self.width > 0, ramp, step))

    def breakpoints(self, x: State, seen: Arrival) -> tuple[Num, ...]:
        """Both ends of the ramp, which are one for a step."""
        return (seen.queue - self.at, seen.queue - self.at - self.width)

    def is_discontinuous(self) -> bool:
        """A step jumps, as does a ramp that ends below 1."""
        return bool((self.width == 0) | (self.top < 1))
