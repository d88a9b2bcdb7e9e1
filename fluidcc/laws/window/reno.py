"""TCP Reno's window law."""

from typing import ClassVar

from fluidcc.laws.window.polynomial import AbstractTCP


class Reno(AbstractTCP):
    """TCP: 1/w per ACK, half the window per signal. Misra and Ott (2003), eq. 5."""

    name: ClassVar[str] = "reno"
    source: ClassVar[str] = "misra2003, eq. 5"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "reno"
