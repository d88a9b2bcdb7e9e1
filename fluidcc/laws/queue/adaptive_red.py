"""RED whose p_max follows the average queue."""

from typing import Any, ClassVar, NamedTuple

from fluidcc import ops
from fluidcc.laws.law import Arrival
from fluidcc.laws.parameters import check_order, choice, param
from fluidcc.laws.queue.red import AbstractRED
from fluidcc.ops import Num


class Adapted(NamedTuple):
    """Memory of adaptive RED."""

    average: Num  # queue [packet]
    p_max: Num


class AbstractAdaptiveRED(AbstractRED):
    """RED that moves p_max by small steps: up above a target of the average, down below.

    Source: Govindaswamy et al. (2012), Fig. 3; the band around the target is that of Floyd,
    Gummadi and Shenker (2001). As p_max is compared before its step, it can pass its limits by one.
    """

    p_max: Num = param(0.1, "p_0", unit="1", doc="p_max at the start", within="(0, 1]")
    interval: Num = param(
        0.5, "D", unit="s", doc="time between two steps of p_max", within="(0, inf)"
    )
    increase: Num = param(
        0.01, "a", unit="1", doc="largest step up; at most a quarter of p_max", within="(0, 1]"
    )
    decrease: Num = param(0.9, "b", unit="1", doc="factor of a step down", within="(0, 1]")
    lowest: Num = param(
        0.01, r"p_{\mathrm{low}}", unit="1", doc="p_max that steps down stop at", within="[0, 1]"
    )
    highest: Num = param(
        0.5, r"p_{\mathrm{high}}", unit="1", doc="p_max that steps up stop at", within="[0, 1]"
    )
    target: str = choice(
        "single", "single", "band",
        doc="average aimed at: midway between the thresholds, or the middle fifth around it",
    )  # fmt: skip

    def __check_init__(self) -> None:
        """Raise ValueError unless min_th < max_th and lowest < highest."""
        super().__check_init__()
        check_order(self, "lowest", "highest")

    def average(self, x: Any, queue: Num) -> Num:
        """The average queue that decides [packet]."""
        return x.average

    def top(self, x: Any) -> Num:
        """The present p_max."""
        return x.p_max

    def aim(self) -> tuple[Num, Num]:
        """Least and greatest average that p_max rests at [packet]."""
        half = 0.1 if self.target == "band" else 0.0
        spread = self.max_th - self.min_th
        return self.min_th + (0.5 - half) * spread, self.min_th + (0.5 + half) * spread

    def tops(self, average: Num) -> tuple[Num, ...]:
        """What p_max may be at the start: in a band any persists, between its limits."""
        if self.target == "single":
            return (self.p_max,)
        low, high = self.aim()
        inside = (average >= low) & (average <= high)
        ends = (ops.where(inside, end, self.p_max) for end in (self.lowest, self.highest))
        return (self.p_max, *ends)

    def turns(self, x: Any, queue: Num) -> tuple[Num, ...]:
        """The ends of what the average may rest at."""
        v = self.average(x, queue)
        low, high = self.aim()
        return (v - low, v - high)

    def step(self, x: Any, share: Num = 1) -> Num:
        """Change of p_max in a `share` of the interval."""
        low, high = self.aim()
        up = share * ops.minimum(self.increase, x.p_max / 4)
        down = x.p_max * (self.decrease**share - 1)
        rising = ops.where(x.p_max < self.highest, ops.minimum(up, 1 - x.p_max), 0.0)
        falling = ops.where(x.p_max > self.lowest, down, 0.0)
        return ops.where(x.average > high, rising, ops.where(x.average < low, falling, 0.0))


class AdaptiveRED(AbstractAdaptiveRED):
    """RED with a step of p_max every interval. Govindaswamy et al. (2012), Fig. 3."""

    name: ClassVar[str] = "adaptive_red"
    source: ClassVar[str] = "govindaswamy2012, Fig. 3; floyd2001"
    period: ClassVar[str] = "interval"
    waits: ClassVar[bool] = True  # as in ns-2: an interval after a step, for the next need of one
    symbols: ClassVar[tuple[str, ...]] = ("v", r"p_{\max}")

    def start(self, average: Num) -> Adapted:
        """Start from an average queue [packet]."""
        return Adapted(average, self.p_max)

    def starts(self, average: Num) -> tuple[Adapted, ...]:
        """Start with each p_max that may persist."""
        return tuple(Adapted(average, top) for top in self.tops(average))

    def on_arrival(self, x: Adapted, seen: Arrival) -> Adapted:
        """Move the average towards the queue found, once a packet."""
        return Adapted(self.moved(x.average, seen), 0.0)

    def on_tick(self, x: Adapted, seen: Arrival) -> Adapted:
        """Step p_max up or down."""
        return Adapted(0.0, self.step(x))
