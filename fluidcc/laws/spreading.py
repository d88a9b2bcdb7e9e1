"""How a queue spreads its signals over packets. Floyd and Jacobson (1993); ns-2."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractMarkSpacing
from fluidcc.ops import Num


class Geometric(AbstractMarkSpacing):
    """Independent choices: gaps between signals are geometric."""

    name: ClassVar[str] = "geometric"
    source: ClassVar[str] = "floyd1993, section 7"

    def rate(self, p: Num) -> Num:
        """Every packet with probability p."""
        return p

    def gap_probability(self, p: Num, gap: Num) -> Num:
        """The same for every packet."""
        return p


class Uniform(AbstractMarkSpacing):
    """Gaps between signals uniform on 1 ... 1/p. Floyd and Jacobson (1993), section 7."""

    name: ClassVar[str] = "uniform"
    source: ClassVar[str] = "floyd1993, section 7"

    def rate(self, p: Num) -> Num:
        """One in (1 + 1/p)/2 packets."""
        return 2 * p / (1 + p)

    def gap_probability(self, p: Num, gap: Num) -> Num:
        """p/(1 - (gap - 1) p) until that reaches 1."""
        left = 1 - (gap - 1) * p
        return ops.where(left > p, p / ops.where(left > p, left, 1.0), 1.0)


class Wait(AbstractMarkSpacing):
    """Gaps between signals uniform on 1/p ... 2/p - 1: ns-2's default (`wait_`)."""

    name: ClassVar[str] = "wait"
    source: ClassVar[str] = "ns2, red.cc"

    def rate(self, p: Num) -> Num:
        """One in (3/p - 1)/2 packets."""
        return 2 * p / (3 - p)

    def gap_probability(self, p: Num, gap: Num) -> Num:
        """0 for the first 1/p packets, then p/(2 - gap p) until that reaches 1."""
        left = 2 - gap * p
        late = ops.where(left > p, p / ops.where(left > p, left, 1.0), 1.0)
        return ops.where(gap * p < 1, 0.0, late)
