"""PI2: a proportional-integral controller of the queueing delay whose output is squared."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractQueueLaw, Arrival, Signal, State
from fluidcc.laws.parameters import param, state
from fluidcc.ops import Num


class PI2(AbstractQueueLaw):
    """Marks with the square of p; each tick moves p by the delay and by its growth.

    RFC 9332, appendix A, for the Classic queue. The defaults are those of Linux's
    sch_dualpi2: 41/256 and 819/256 a second, each 16 ms.
    """

    name: ClassVar[str] = "pi2"
    source: ClassVar[str] = "rfc9332, appendix A"
    zero_order_hold: ClassVar[bool] = True
    p = state(0.0, "p'", unit="1", doc="probability before it is squared", within="[0, 1]")
    delay = state(0.0, r"\tau", unit="s", doc="delay at the last tick", within="[0, inf)")
    target: Num = param(0.015, r"\tau_0", unit="s", doc="delay aimed at", within="(0, inf)")
    alpha: Num = param(41 / 256, r"\alpha", unit="1/s", doc="gain of the delay", within="(0, inf)")
    beta: Num = param(819 / 256, r"\beta", unit="1/s", doc="gain of its growth", within="(0, inf)")
    interval: Num = param(0.016, "D", unit="s", doc="time between ticks", within="(0, inf)")

    def period(self) -> Num:
        """Time between ticks."""
        return self.interval

    def on_tick(self, x: State, seen: Arrival) -> State:
        """Move p by the delay and by its growth, within [0, 1]."""
        delay = seen.sojourn
        p = x.p + self.alpha * (delay - self.target) + self.beta * (delay - x.delay)
        return self.change(x, p=ops.clip(p, 0.0, 1.0) - x.p, delay=delay - x.delay)

    def signal(self, x: State, seen: Arrival) -> Signal:
        """Mark with probability p squared."""
        return Signal(mark=x.p**2)
