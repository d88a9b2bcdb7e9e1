"""Random early detection."""

import abc
from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractMarkSpacing, AbstractQueueLaw, Arrival, Signal, State
from fluidcc.laws.marking import Geometric, spacing
from fluidcc.laws.parameters import check_order, choice, param, state
from fluidcc.ops import Num


def ramp(v: Num, low: Num, high: Num, top: Num) -> Num:
    """0 below `low`, linear to `top` at `high`, `top` above."""
    return top * ops.clip((v - low) / (high - low), 0.0, 1.0)


class AbstractRED(AbstractQueueLaw):
    """Marks by an average of the queue, whatever else is remembered. Floyd and Jacobson (1993).

    Without `gentle`, packets are dropped above max_th; with it, the probability rises from p_max
    to 1 between max_th and 2 max_th, and packets are dropped above that (Misra and Ott, 3.1).
    There ACKs are marked for certain (Govindaswamy et al., 2012, section 3).
    """

    v = state("average", "v", unit="packet", doc="average queue")
    min_th: Num = param(
        25.0, r"q_{\min}", unit="packet", doc="lower threshold of the average queue",
        within="[0, inf)",
    )  # fmt: skip
    max_th: Num = param(
        75.0, r"q_{\max}", unit="packet", doc="upper threshold of the average queue",
        within="(0, inf)",
    )  # fmt: skip
    p_max: Num = param(
        0.1, r"p_{\max}", unit="1", doc="marking probability at max_th", within="(0, 1]"
    )
    w_q: Num = param(
        0.002, "w_q", unit="1", doc="weight of one sample in the average", within="(0, 1)"
    )
    gentle: bool = choice(False, doc="p rises to 1 between max_th and 2 max_th")
    bytes: bool = choice(
        False, doc="queue in bytes, p in proportion to the packet's size", engines=("packets",)
    )
    pole: str = choice(
        "capacity",
        "capacity",
        "arrivals",
        doc="rate at which the average is updated",
        engines=("fluid",),
    )
    spreading: AbstractMarkSpacing = spacing(Geometric)

    def check(self) -> None:
        """Raise ValueError unless min_th < max_th."""
        super().check()
        check_order(self, "min_th", "max_th")

    @property
    def by_bytes(self) -> bool:
        """As chosen."""
        return self.bytes

    def average(self, x: State, queue: Num) -> Num:
        """The average queue that decides [packet]."""
        return x.v if len(self.states) > 1 else x

    @abc.abstractmethod
    def top(self, x: State) -> Num:
        """Marking probability at max_th."""

    def sampling_rate(self, offered: Num, capacity: Num) -> Num:
        """Count arrivals at the link rate, which also gives RED's decay in idle times."""
        return capacity if self.pole == "capacity" else offered

    def moved(self, v: Num, seen: Arrival) -> Num:
        """Change of the average `v` towards the queue found, once a packet."""
        return (1 - (1 - self.w_q) ** seen.count) * (seen.queue - v)

    def base(self, x: State, seen: Arrival) -> Num:
        """Probability p_b before spreading."""
        v, top = self.average(x, seen.queue), self.top(x)
        p = ramp(v, self.min_th, self.max_th, top)
        if self.gentle:
            p = p + ramp(v, self.max_th, 2 * self.max_th, 1 - top)
        return ops.minimum(p * seen.size, 1.0) if self.bytes else p

    def sure(self, x: State, seen: Arrival, below: Num) -> Num:
        """1, for bytes in proportion to the size, above the last threshold; `below` up to it."""
        last = 2 * self.max_th if self.gentle else self.max_th
        share = ops.minimum(seen.size, 1.0) if self.bytes else 1.0
        return ops.where(self.average(x, seen.queue) > last, share, below)

    def signal(self, x: State, seen: Arrival) -> Signal:
        """Mark by the average; above its last threshold mark and drop everything."""
        mark = self.spreading.rate(self.base(x, seen))
        return Signal(self.sure(x, seen, mark), self.sure(x, seen, 0.0))

    def gap_probability(self, x: State, seen: Arrival, gap: Num) -> Num:
        """Probability of a signal for packet `gap` after the last."""
        return self.sure(x, seen, self.spreading.gap_probability(self.base(x, seen), gap))

    def breakpoints(self, x: State, seen: Arrival) -> tuple[Num, ...]:
        """The thresholds of the average."""
        v = self.average(x, seen.queue)
        corners: tuple[Num, ...] = (v - self.min_th, v - self.max_th)
        return (*corners, v - 2 * self.max_th) if self.gentle else corners

    def is_discontinuous(self) -> bool:
        """Above max_th everything is dropped, unless the law is gentle."""
        return not self.gentle


class RED(AbstractRED):
    """Marks by an average of the queue up to a fixed p_max. Floyd and Jacobson (1993)."""

    name: ClassVar[str] = "red"
    source: ClassVar[str] = "floyd1993; misra2003, section 3.1"

    def top(self, x: Num) -> Num:
        """Return p_max."""
        return self.p_max

    def on_arrival(self, x: Num, seen: Arrival) -> Num:
        """Move the average towards the queue found, once a packet."""
        return self.moved(x, seen)
