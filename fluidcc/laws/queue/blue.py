"""Marking by losses and idle times."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractQueueLaw, Arrival, Signal
from fluidcc.laws.parameters import EVENTS, choice, param, state
from fluidcc.ops import Num

_FULL = 1 - 1e-9  # a buffer filled up to round-off is full


class BLUE(AbstractQueueLaw):
    """Steps p up when the queue is long or full, down when it is empty; else p is constant.

    Source: Feng et al. (2002), section III; Govindaswamy et al. (2012), section 2.4, whose text
    has the threshold and whose Fig. 4 has losses. A step is taken at most once per freeze time; the
    fluid model looks once per freeze time.
    """

    name: ClassVar[str] = "blue"
    source: ClassVar[str] = "feng2002, section III; govindaswamy2012, section 2.4"
    zero_order_hold: ClassVar[bool] = True
    waits: ClassVar[bool] = True
    p = state(0.0, "p", unit="1", doc="marking probability", within="[0, 1]")
    increase: Num = param(0.02, "d_1", unit="1", doc="step up of the probability", within="(0, 1]")
    decrease: Num = param(
        0.002, "d_2", unit="1", doc="step down of the probability", within="(0, 1]"
    )
    threshold: Num = param(
        50.0, "L", unit="packet", doc="threshold of a long queue; the buffer, if losses trigger",
        within="(0, inf)",
    )  # fmt: skip
    freeze_time: Num = param(0.1, "F", unit="s", doc="least time between steps", within="(0, inf)")
    trigger: str = choice(
        "queue", "queue", "loss", doc="steps up: by a queue above the threshold, or reaching it"
    )
    random_freeze: bool = choice(
        False, doc="freeze times drawn uniformly between 0 and twice their mean", engines=EVENTS
    )

    def period(self) -> Num:
        """The mean freeze time."""
        return self.freeze_time

    def tick_interval(self) -> tuple[Num, Num]:
        """Freeze times around their mean, or that alone."""
        mean = self.freeze_time
        return (0.0, 2 * mean) if self.random_freeze else (mean, mean)

    @property
    def counts_service(self) -> bool:
        """The link is idle when no packet is in service either."""
        return True

    def initial_states(self, average: Num) -> tuple[Num, ...]:
        """Between its steps any p may persist: from no marks, and from all."""
        return (0.0, 1.0)

    def on_tick(self, x: Num, seen: Arrival) -> Num:
        """Step p, within [0, 1]."""
        full = seen.queue >= _FULL * self.threshold
        long = seen.queue > self.threshold if self.trigger == "queue" else full
        step = ops.where(long, self.increase, ops.where(seen.queue > 0, 0.0, -self.decrease))
        return ops.clip(x + step, 0.0, 1.0) - x

    def signal(self, x: Num, seen: Arrival) -> Signal:
        """Mark with probability p."""
        return Signal(mark=x)
