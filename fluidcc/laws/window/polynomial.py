"""The polynomial class of window laws."""

from typing import TYPE_CHECKING, Any, ClassVar

from fluidcc.laws.law import AbstractWindowLaw, Ack
from fluidcc.laws.parameters import check_order, param
from fluidcc.ops import Num


class AbstractPolynomial(AbstractWindowLaw):
    """+c1 w^alpha per clean ACK, -c2 w^beta per mark, half the window per loss.

    Source: Misra and Ott (2003), eqs 1-3; losses as in TCP (section 3).
    """

    if TYPE_CHECKING:  # fields, properties or constants of the laws below
        c1: ClassVar[Any]
        alpha: ClassVar[Any]
        c2: ClassVar[Any]
        beta: ClassVar[Any]

    def on_ack(self, s: Num, ack: Ack) -> Num:
        """Grow by c1 w^alpha for each acknowledged packet."""
        return ack.count * self.c1 * s**self.alpha

    def on_mark(self, s: Num, ack: Ack) -> Num:
        """Shrink by c2 w^beta."""
        return -self.c2 * s**self.beta

    def on_loss(self, s: Num, ack: Ack) -> Num:
        """Halve the window, as TCP does."""
        return -s / 2


class AbstractTCP(AbstractPolynomial):
    """TCP's member of the class: 1/w per ACK, half the window per signal.

    Source: Misra and Ott (2003), eq. 5.
    """

    c1: ClassVar[int] = 1
    alpha: ClassVar[int] = -1
    c2: ClassVar[float] = 0.5
    beta: ClassVar[int] = 1


class Polynomial(AbstractPolynomial):
    """The polynomial class with its four parameters free. Misra and Ott (2003), eq. 3."""

    name: ClassVar[str] = "polynomial"
    source: ClassVar[str] = "misra2003, eqs 1-3"
    reaction: ClassVar[str] = "per_mark"
    recovery: ClassVar[str] = "newreno"
    c1: Num = param(
        1.0, "c_1", unit="packet", doc="increase per clean ACK at w = 1", within="(0, inf)"
    )
    alpha: Num = param(
        -1.0, r"\alpha", unit="1", doc="exponent of the increase", within="[-10, 10]"
    )
    c2: Num = param(0.5, "c_2", unit="packet", doc="decrease per mark at w = 1", within="(0, inf)")
    beta: Num = param(
        1.0, r"\beta", unit="1", doc="exponent of the decrease; above alpha", within="[-10, 10]"
    )

    def check(self) -> None:
        """Raise ValueError unless alpha < beta: otherwise windows grow without bound."""
        super().check()
        check_order(self, "alpha", "beta")
