"""Binomial window laws."""

from typing import ClassVar

from fluidcc.laws.parameters import param
from fluidcc.laws.window.polynomial import AbstractPolynomial
from fluidcc.ops import Num


class Binomial(AbstractPolynomial):
    """+a/w^k per round trip, -b w^l per mark. Bansal and Balakrishnan (2001), eq. 1.

    Per ACK the increase is a/w^(k+1): the polynomial class with c1 = a, alpha = -(k + 1), c2 = b,
    beta = l. (k, l) = (1, 0) is IIAD, (1/2, 1/2) is SQRT, (0, 1) is TCP.
    """

    name: ClassVar[str] = "binomial"
    source: ClassVar[str] = "bansal2001, eq. 1"
    reaction: ClassVar[str] = "per_mark"
    recovery: ClassVar[str] = "newreno"
    a: Num = param(
        1.0, "a", unit="packet", doc="increase per round trip at w = 1", within="(0, inf)"
    )
    b: Num = param(1.0, "b", unit="packet", doc="decrease per mark at w = 1", within="(0, inf)")
    k: Num = param(0.5, "k", unit="1", doc="exponent by which the increase falls", within="[0, 10]")
    l: Num = param(0.5, "l", unit="1", doc="exponent of the decrease", within="[0, 10]")  # noqa: E741

    @property
    def c1(self) -> Num:
        """Increase per ACK at w = 1 [packet]."""
        return self.a

    @property
    def alpha(self) -> Num:
        """Exponent of the increase per ACK."""
        return -(self.k + 1)

    @property
    def c2(self) -> Num:
        """Decrease per mark at w = 1 [packet]."""
        return self.b

    @property
    def beta(self) -> Num:
        """Exponent of the decrease."""
        return self.l
