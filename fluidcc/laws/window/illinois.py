"""The window law of TCP-Illinois."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractWindowLaw, Ack
from fluidcc.laws.parameters import check_order, param
from fluidcc.ops import Num

LOW, EARLY, LATE = 0.01, 0.1, 0.8
"""Shares of the largest delay: up to the first, growth is fastest; cuts rise between the others."""


class Illinois(AbstractWindowLaw):
    """TCP whose growth falls, and whose cut rises, with the queueing delay.

    Source: Liu, Basar and Srikant (2008); constants are those of Linux, `tcp_illinois.c`. The
    growth is harmonic between `alpha_max` and `alpha_min`, the cut linear. The largest queueing
    delay is a parameter and the propagation round trip is known exactly, where a sender has the
    largest and the least round trip that it met; the delay is that of each packet, where it
    averages over a round trip; and growth is fastest at once, where it waits for five short ones.
    """

    name: ClassVar[str] = "illinois"
    source: ClassVar[str] = "liu2008"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "sack"
    reads: ClassVar[tuple[str, ...]] = ("mark", "drop", "delay")
    alpha_min: Num = param(
        0.3, r"\alpha_{\min}", unit="packet", doc="growth in a round trip at the largest delay",
        within="(0, inf)",
    )  # fmt: skip
    alpha_max: Num = param(
        10.0, r"\alpha_{\max}", unit="packet", doc="growth in a round trip at none",
        within="(0, inf)",
    )  # fmt: skip
    beta_min: Num = param(
        0.125, r"\beta_{\min}", unit="1", doc="share of the window that a loss takes at short ones",
        within="(0, 1)",
    )  # fmt: skip
    beta_max: Num = param(
        0.5, r"\beta_{\max}", unit="1", doc="share that it takes at long ones", within="(0, 1)"
    )
    largest: Num = param(
        0.1, "d_m", unit="s", doc="largest queueing delay: that of a full buffer", within="(0, inf)"
    )
    low_window: Num = param(15.0, "W_l", unit="packet", doc="TCP below it", within="[0, inf)")

    def check(self) -> None:
        """Raise ValueError unless the smallest values are below the largest ones."""
        super().check()
        check_order(self, "alpha_min", "alpha_max", equal=True)
        check_order(self, "beta_min", "beta_max", equal=True)

    def increase(self, delay: Num) -> Num:
        """Growth in a round trip [packet] at a queueing delay [s]. Shape of the delay."""
        height = ops.clip((delay / self.largest - LOW) / (1 - LOW), 0.0, 1.0)
        return 1 / ((1 - height) / self.alpha_max + height / self.alpha_min)

    def decrease(self, delay: Num) -> Num:
        """Share of the window that a loss takes at a queueing delay [s]. Shape of the delay."""
        height = ops.clip((delay / self.largest - EARLY) / (LATE - EARLY), 0.0, 1.0)
        return self.beta_min + height * (self.beta_max - self.beta_min)

    def on_ack(self, s: Num, ack: Ack) -> Num:
        """Grow by the increase in a round trip."""
        return ack.count / s * ops.where(s < self.low_window, 1.0, self.increase(ack.delay))

    def on_mark(self, s: Num, ack: Ack) -> Num:
        """Shrink by the decrease, at a loss as at a mark."""
        return -s * ops.where(s < self.low_window, 0.5, self.decrease(ack.delay))
