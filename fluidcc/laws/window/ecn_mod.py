"""The window law of ECN-mod."""

from typing import ClassVar

from fluidcc.laws.parameters import param
from fluidcc.laws.window.polynomial import AbstractPolynomial
from fluidcc.ops import Num


class ECNMod(AbstractPolynomial):
    """+c1 per clean ACK, -c2 w per mark, and every mark counts. Misra and Ott (2003), eq. 6.

    The paper's range of c1, (0.025, 0.625) at c2 = 1/8, keeps the marks per round trip between
    1/5 and 5; its figures use 0.0625, 0.125 and 0.25.
    """

    name: ClassVar[str] = "ecn_mod"
    source: ClassVar[str] = "misra2003, eq. 6"
    reaction: ClassVar[str] = "per_mark"
    recovery: ClassVar[str] = "newreno"
    alpha: ClassVar[int] = 0
    beta: ClassVar[int] = 1
    c1: Num = param(0.0625, "c_1", unit="packet", doc="increase per clean ACK", within="(0, inf)")
    c2: Num = param(
        0.125, "c_2", unit="1", doc="share of the window lost per mark", within="(0, 1)"
    )
