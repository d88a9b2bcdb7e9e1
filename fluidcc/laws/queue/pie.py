"""PIE: a proportional-integral controller of the queueing delay with gains that follow p."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractMarkSpacing, AbstractQueueLaw, Arrival, Signal, State
from fluidcc.laws.marking import Accumulated, spacing
from fluidcc.laws.parameters import choice, param, state
from fluidcc.ops import Num

_GAINS = ((0.1, 2), (1e-2, 8), (1e-3, 32), (1e-4, 128), (1e-5, 512), (1e-6, 2048))
"""Below each probability the gains are divided so. RFC 8033, section 4.2."""


class PIE(AbstractQueueLaw):
    """Each tick moves p by the delay and by its growth, in steps that shrink with p. RFC 8033.

    Bursts after idle times pass, as do packets that find fewer than two, or a delay of less than
    half the target. The delay is that of the queue at the tick.
    """

    name: ClassVar[str] = "pie"
    source: ClassVar[str] = "rfc8033, sections 4 and 5"
    p = state(0.0, "p", unit="1", doc="probability to mark or drop", within="[0, 1]")
    delay = state(0.0, r"\tau", unit="s", doc="delay at the last tick", within="[0, inf)")
    burst = state("max_burst", "b", unit="s", doc="time left without signals", within="[0, inf)")
    target: Num = param(0.015, r"\tau_0", unit="s", doc="delay aimed at", within="(0, inf)")
    alpha: Num = param(0.125, r"\alpha", unit="1/s", doc="gain of the delay", within="(0, inf)")
    beta: Num = param(1.25, r"\beta", unit="1/s", doc="gain of its growth", within="(0, inf)")
    interval: Num = param(0.015, "D", unit="s", doc="time between ticks", within="(0, inf)")
    max_burst: Num = param(
        0.15, r"b_{\max}", unit="s", doc="time without signals after an idle one",
        within="[0, inf)",
    )  # fmt: skip
    long_delay: Num = param(
        0.25, r"\tau_1", unit="s", doc="delay beyond which p grows by 0.02 more at a tick",
        within="(0, inf]",
    )  # fmt: skip
    ecn: bool = choice(True, doc="mark packets in place of dropping them")
    spreading: AbstractMarkSpacing = spacing(Accumulated)

    def period(self) -> Num:
        """Time between ticks."""
        return self.interval

    def on_tick(self, x: State, seen: Arrival) -> State:
        """Move p by the delay and by its growth; forget it when the queue stays empty."""
        delay, part = seen.sojourn, 1.0
        for below, divisor in _GAINS:
            part = ops.where(x.p < below, 1 / divisor, part)
        step = part * (self.alpha * (delay - self.target) + self.beta * (delay - x.delay))
        step = ops.where(x.p < 0.1, step, ops.minimum(step, 0.02))
        step = ops.where(delay > self.long_delay, step + 0.02, step)
        p = ops.clip(x.p + step, 0.0, 1.0)
        p = ops.where((delay > 0) | (x.delay > 0), p, 0.98 * p)
        short = ops.maximum(delay, x.delay) < self.target / 2
        left = ops.maximum(x.burst - self.interval, 0.0)
        burst = ops.where(short & (p <= 0), self.max_burst, left)
        return self.change(x, p=p - x.p, delay=delay - x.delay, burst=burst - x.burst)

    def _allowed(self, x: State, seen: Arrival, probability: Num) -> Num:
        """The probability, or 0 where packets pass."""
        low = (x.delay < self.target / 2) & (x.p < 0.2)
        return ops.where((x.burst > 0) | low | (seen.queue < 2), 0.0, probability)

    def signal(self, x: State, seen: Arrival) -> Signal:
        """Mark a packet, or drop it without ECN."""
        rate = self._allowed(x, seen, self.spreading.rate(x.p))
        return Signal(mark=rate) if self.ecn else Signal(drop=rate)

    def gap_probability(self, x: State, seen: Arrival, gap: Num) -> Num:
        """None until the probabilities since the last signal have a sum of 0.85."""
        if not self.ecn:
            return 0.0 * x.p
        return self._allowed(x, seen, self.spreading.gap_probability(x.p, gap))

    def breakpoints(self, x: State, seen: Arrival) -> tuple[Num, ...]:
        """Where signals begin or end."""
        return (x.delay - self.target / 2, x.p - 0.2, seen.queue - 2)
