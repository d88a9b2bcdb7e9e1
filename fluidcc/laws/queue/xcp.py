"""Links that share out an aggregate feedback among the packets of their flows."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractQueueLaw, Arrival, Signal, State, rate_weights
from fluidcc.laws.parameters import param, state
from fluidcc.ops import Num

_LEAST = 1e-9  # of flows, and packet/s: with fewer there is nobody to give feedback to


class ExplicitControl(AbstractQueueLaw):
    """Writes by how much each flow is to raise its rate, and by which share to lower it.

    Source: Katabi, Handley and Rohrs (2002), section 3.5. The efficiency controller wants the
    aggregate phi/d = alpha (C - y) - beta q/d more [packet/s] after a mean round trip d. The
    fairness controller gives what is positive to all flows alike, what is negative by their rates,
    and shuffles gamma y of the traffic. For both it sums over the packets that come: the spacing
    that senders write into them, round trip over window, sums up to the time for each flow, so that
    its sum per second is the number of flows. The draft of the protocol (draft-falk-xcp-spec) has
    this spacing in its header in place of the window. Here the sums are averaged over `interval`
    and each packet finds their present value; the paper takes those of the last d, and the least
    queue of that time. d is a parameter. The link aims at a share `target` of C, 1 in the
    paper, at which rest is at the edge of a queue; above 1 it keeps one of
    alpha (target - 1) C d/beta.
    """

    name: ClassVar[str] = "xcp"
    source: ClassVar[str] = "katabi2002, section 3.5"
    emits: ClassVar[tuple[str, ...]] = ("mark", "drop", "positive", "negative")
    reads: ClassVar[tuple[str, ...]] = ("spacing",)
    rate = state(0.0, "y", unit="packet/s", doc="rate at which packets come", within="[0, inf)")
    number = state(0.0, "N", unit="1", doc="flows that they come from", within="[0, inf)")
    part = state(0.0, "v", unit="1", doc="of the interval that has been seen", within="[0, 1]")
    alpha: Num = param(0.4, r"\alpha", unit="1", doc="weight of the spare rate", within="[0, inf)")
    beta: Num = param(0.226, r"\beta", unit="1", doc="weight of the queue", within="[0, inf)")
    gamma: Num = param(
        0.1, r"\gamma", unit="1", doc="share of the traffic that is shuffled", within="[0, 1]"
    )
    base: Num = param(0.1, "d", unit="s", doc="mean round trip", within="(0, inf)")
    interval: Num = param(
        0.1, r"\tau", unit="s", doc="time over which sums are averaged", within="(0, inf)"
    )
    target: Num = param(0.95, r"\rho", unit="1", doc="target utilisation", within="(0, 2)")

    def on_arrival(self, x: State, seen: Arrival) -> State:
        """Average the packets, by their size, and their spacings over the time before them."""
        weight, faded = rate_weights(seen.elapsed, self.interval)
        return self.change(
            x, rate=weight * seen.count * seen.size - faded * x.rate,
            number=weight * seen.count * seen.spacing - faded * x.number, part=faded * (1 - x.part),
        )  # fmt: skip

    def signal(self, x: State, seen: Arrival) -> Signal:
        """Write the feedback of a packet; none before an average is known."""
        part = ops.maximum(x.part, _LEAST)
        rate, number = (ops.maximum(v / part, _LEAST) for v in (x.rate, x.number))
        wanted = self.alpha * (self.target * seen.capacity - rate)
        spare = wanted - self.beta * seen.queue / self.base
        lacking, size = ops.maximum(-spare, 0.0), ops.maximum(spare, -spare)
        shuffled = ops.maximum(self.gamma * rate - size, 0.0)
        more, less = shuffled + ops.maximum(spare, 0.0), shuffled + lacking
        shared = ops.where(number > _LEAST, more / (self.base * number), 0.0)
        return Signal(positive=shared, negative=less / (self.base * rate))
