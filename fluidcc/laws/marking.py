"""Marking probability of a group of flows, given the probability p of the link."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractMarking, AbstractWindowLaw
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
