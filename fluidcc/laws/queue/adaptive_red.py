"""RED whose p_max follows the average queue."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import Arrival, State
from fluidcc.laws.parameters import check_order, choice, param, state
from fluidcc.laws.queue.red import AbstractRED
from fluidcc.ops import Num


class AbstractAdaptiveRED(AbstractRED):
    """RED that moves p_max by small steps: up above a target of the average, down below.

    Source: Govindaswamy et al. (2012), Fig. 3; the band around the target is that of Floyd,
    Gummadi and Shenker (2001). As p_max is compared before its step, it can pass its limits by one.
    """

    p = state("p_max", r"p_{\max}", unit="1", doc="present p_max", within="[0, 1]")
    p_max: Num = param(
        0.1, "p_0", unit="1", doc="initial marking probability at max_th", within="(0, 1]"
    )
    interval: Num = param(
        0.5, "D", unit="s", doc="time between two steps of p_max", within="(0, inf)"
    )
    increase: Num = param(
        0.01, "a", unit="1", doc="largest step up of p_max; at most a quarter of it",
        within="(0, 1]",
    )  # fmt: skip
    decrease: Num = param(0.9, "b", unit="1", doc="factor of p_max in a step down", within="(0, 1]")
    lowest: Num = param(
        0.01, r"p_{\mathrm{low}}", unit="1", doc="lower bound of p_max", within="[0, 1]"
    )
    highest: Num = param(
        0.5, r"p_{\mathrm{high}}", unit="1", doc="upper bound of p_max", within="[0, 1]"
    )
    target: str = choice(
        "single", "single", "band",
        doc="average aimed at: midway between the thresholds, or the middle fifth around it",
    )  # fmt: skip

    def check(self) -> None:
        """Raise ValueError unless min_th < max_th and lowest < highest."""
        super().check()
        check_order(self, "lowest", "highest")

    def top(self, x: State) -> Num:
        """The present p_max."""
        return x.p

    def aim(self) -> tuple[Num, Num]:
        """Least and greatest average at which p_max is constant [packet]."""
        half = 0.1 if self.target == "band" else 0.0
        spread = self.max_th - self.min_th
        return self.min_th + (0.5 - half) * spread, self.min_th + (0.5 + half) * spread

    def initial_states(self, average: Num) -> tuple[State, ...]:
        """Starts of p_max: in a band any persists, between its limits."""
        first = self.start(average)
        if self.target == "single":
            return (first,)
        low, high = self.aim()
        inside = (average >= low) & (average <= high)
        ends = (ops.where(inside, end, self.p_max) for end in (self.lowest, self.highest))
        return (first, *(first._replace(p=end) for end in ends))

    def switching_points(self, x: State, seen: Arrival) -> tuple[Num, ...]:
        """Range of averages at which p_max may be in equilibrium."""
        v = self.average(x, seen.queue)
        low, high = self.aim()
        return (v - low, v - high)

    def step(self, x: State, share: Num = 1) -> Num:
        """Change of p_max in a `share` of the interval."""
        low, high = self.aim()
        up = share * ops.minimum(self.increase, x.p / 4)
        down = x.p * (self.decrease**share - 1)
        rising = ops.where(x.p < self.highest, ops.minimum(up, 1 - x.p), 0.0)
        falling = ops.where(x.p > self.lowest, down, 0.0)
        return ops.where(x.v > high, rising, ops.where(x.v < low, falling, 0.0))


class AdaptiveRED(AbstractAdaptiveRED):
    """RED with a step of p_max every interval. Govindaswamy et al. (2012), Fig. 3."""

    name: ClassVar[str] = "adaptive_red"
    source: ClassVar[str] = "govindaswamy2012, Fig. 3; floyd2001"
    waits: ClassVar[bool] = True  # as in ns-2: an interval after a step, for the next need of one

    def on_arrival(self, x: State, seen: Arrival) -> State:
        """Move the average towards the queue found, once a packet."""
        return self.change(x, v=self.moved(x.v, seen))

    def period(self) -> Num:
        """Time between steps."""
        return self.interval

    def on_tick(self, x: State, seen: Arrival) -> State:
        """Step p_max up or down."""
        return self.change(x, p=self.step(x))
