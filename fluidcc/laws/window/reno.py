"""TCP Reno's window law."""

from typing import ClassVar

from fluidcc.laws.window.polynomial import AbstractPolynomial


class Reno(AbstractPolynomial):
    """TCP: 1/w per ACK, half the window per signal. Misra and Ott (2003), eq. 5."""

    name: ClassVar[str] = "reno"
    source: ClassVar[str] = "misra2003, eq. 5"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "reno"
    c1: ClassVar[int] = 1
    alpha: ClassVar[int] = -1
    c2: ClassVar[float] = 0.5
    beta: ClassVar[int] = 1
