"""Random early detection."""

from typing import Any, ClassVar

import equinox as eqx

from fluidcc import ops
from fluidcc.laws.law import AbstractQueueLaw, AbstractSpreading, Arrival, Signal
from fluidcc.laws.parameters import Info, choice, param
from fluidcc.laws.queue.ramp import ramp
from fluidcc.laws.spreading import Geometric
from fluidcc.ops import Num

_SPREADING = Info("", "", "how signals are spread over packets", None)


class RED(AbstractQueueLaw):
    """Marks by an average of the queue. Floyd and Jacobson (1993).

    Without `gentle`, packets are dropped above max_th; with it, the probability rises from p_max
    to 1 between max_th and 2 max_th, and packets are dropped above that (Misra and Ott, 3.1).
    """

    name: ClassVar[str] = "red"
    source: ClassVar[str] = "floyd1993; misra2003, section 3.1"
    min_th: Num = param(
        25.0, r"q_{\min}", unit="packet", doc="average where marking starts", within="[0, inf)"
    )
    max_th: Num = param(
        75.0, r"q_{\max}", unit="packet", doc="average where it reaches p_max", within="(0, inf)"
    )
    p_max: Num = param(
        0.1, r"p_{\max}", unit="1", doc="marking probability at max_th", within="(0, 1]"
    )
    w_q: Num = param(
        0.002, "w_q", unit="1", doc="weight of one sample in the average", within="(0, 1)"
    )
    gentle: bool = choice(False, doc="p rises to 1 between max_th and 2 max_th")
    bytes: bool = choice(False, doc="packets: queue in bytes, p in proportion to the packet's size")
    pole: str = choice(
        "capacity", "capacity", "arrivals", doc="fluid: rate at which the average is updated"
    )
    spreading: AbstractSpreading = eqx.field(
        default_factory=Geometric, metadata={"info": _SPREADING}
    )

    def __check_init__(self) -> None:
        """Raise ValueError unless min_th < max_th."""
        super().__check_init__()
        low, high = self.min_th, self.max_th
        if isinstance(low, float | int) and isinstance(high, float | int) and low >= high:
            raise ValueError(f"red needs min_th < max_th, got {low!r} and {high!r} packets")

    def start(self, average: Num) -> Num:
        """Start from an average queue [packet]."""
        return average

    def average(self, x: Num, queue: Num) -> Num:
        """The average queue that decides [packet]."""
        return x

    def counted(self, offered: Num, capacity: Num) -> Num:
        """Count arrivals at the link rate, which also gives RED's decay in idle times."""
        return capacity if self.pole == "capacity" else offered

    def on_arrival(self, x: Num, seen: Arrival) -> Num:
        """Move the average towards the queue found, once a packet."""
        return (1 - (1 - self.w_q) ** seen.count) * (seen.queue - x)

    def base(self, v: Num) -> Num:
        """Probability p_b before spreading, for an average of `v` packets."""
        low = ramp(v, self.min_th, self.max_th, self.p_max)
        if not self.gentle:
            return low
        return low + ramp(v, self.max_th, 2 * self.max_th, 1 - self.p_max)

    def signal(self, x: Num, seen: Arrival) -> Signal:
        """Mark by the average; drop above its last threshold."""
        last = 2 * self.max_th if self.gentle else self.max_th
        mark = self.spreading.rate(self._sized(self.base(x), seen))
        return Signal(mark=mark, drop=ops.where(x > last, 1.0, 0.0))

    def chance(self, x: Num, seen: Arrival, gap: Num) -> Num:
        """Probability of a signal for packet `gap` after the last."""
        return self.spreading.chance(self._sized(self.base(x), seen), gap)

    def kinks(self, x: Num, queue: Num) -> tuple[Num, ...]:
        """The thresholds of the average."""
        corners: tuple[Any, ...] = (x - self.min_th, x - self.max_th)
        return (*corners, x - 2 * self.max_th) if self.gentle else corners

    def _sized(self, p: Num, seen: Arrival) -> Num:
        return ops.minimum(p * seen.size, 1.0) if self.bytes else p
