"""Marks of packets: the probability of a group of flows, given that of the link, and how a queue
spreads its signals over packets. Floyd and Jacobson (1993); ns-2.
"""

import dataclasses
from typing import Any, ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractMarking, AbstractMarkSpacing, AbstractWindowLaw
from fluidcc.laws.parameters import Info, param
from fluidcc.laws.window.polynomial import AbstractPolynomial
from fluidcc.ops import Num


class Plain(AbstractMarking):
    """The link's own probability."""

    name: ClassVar[str] = "plain"
    source: ClassVar[str] = "floyd1993"

    def probability(self, p: Num, window: AbstractWindowLaw) -> Num:
        """Leave p as it is."""
        return p


class EqualWindow(AbstractMarking):
    """The probability that gives a law the zero-drift window of TCP. Misra and Ott (2003), eq. 7.

    The paper states it for alpha = 0, beta = 1; the condition behind it, equal windows by eq. 4,
    gives it for the whole polynomial class. TCP itself is mapped to p.
    """

    name: ClassVar[str] = "equal_window"
    source: ClassVar[str] = "misra2003, eq. 7"

    def probability(self, p: Num, window: AbstractWindowLaw) -> Num:
        """1/(1 + (c2/c1) (2(1-p)/p)^((beta-alpha)/2)); raises TypeError for other classes."""
        if not isinstance(window, AbstractPolynomial):
            raise TypeError(f"equal_window needs a polynomial window law, got {window.name}")
        power = (window.beta - window.alpha) / 2
        inside = ops.where(p > 0, ops.where(p < 1, p, 0.5), 0.5)  # powers have no slope at 0
        odds = window.c2 / window.c1 * (2 * (1 - inside) / inside) ** power
        return ops.where(p > 0, ops.where(p < 1, 1 / (1 + odds), 1.0), 0.0)


class Coupled(AbstractMarking):
    """The probability of scalable senders where the link's is the square: k p' beside p'^2.

    RFC 9332, section 2.1, after De Schepper et al. (2016). The queue law's signal is that of
    Classic senders.
    """

    name: ClassVar[str] = "coupled"
    source: ClassVar[str] = "rfc9332, section 2.1"
    k: Num = param(2.0, r"k_{\mathrm{L}}", unit="1", doc="coupling factor", within="(0, inf)")

    def probability(self, p: Num, window: AbstractWindowLaw) -> Num:
        """The root of p times the coupling factor, at most 1."""
        inside = ops.where(p > 0, p, 1.0)  # a root has no slope at 0
        return ops.where(p > 0, ops.minimum(self.k * ops.sqrt(inside), 1.0), 0.0)


def spacing(default: type[AbstractMarkSpacing]) -> Any:
    """The field of a queue law that has how its signals are spread over packets."""
    info = Info("", "", "how signals are spread over packets", None)
    return dataclasses.field(default_factory=default, metadata={"info": info})


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


class Accumulated(AbstractMarkSpacing):
    """No signal until the probabilities since the last have a sum of 0.85, one for sure at 8.5."""

    name: ClassVar[str] = "accumulated"
    source: ClassVar[str] = "rfc8033, section 5.4"

    def rate(self, p: Num) -> Num:
        """One in 1.85/p - 0.85 packets: to one packet, by which 0.85/p is rounded up."""
        return p / (1.85 - 0.85 * p)

    def gap_probability(self, p: Num, gap: Num) -> Num:
        """0, then p, then 1, by the sum."""
        return ops.where(gap * p < 0.85, 0.0, ops.where(gap * p < 8.5, p, 1.0))
