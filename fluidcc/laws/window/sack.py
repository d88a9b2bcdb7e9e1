"""The window law of TCP with selective acknowledgements."""

from typing import ClassVar

from fluidcc.laws.window.polynomial import AbstractTCP


class SACK(AbstractTCP):
    """Reno's window law with a recovery that repairs all losses of a window in one round trip.

    Source: Misra and Ott (2003), eq. 5; the recovery is RFC 6675.
    """

    name: ClassVar[str] = "sack"
    source: ClassVar[str] = "misra2003, eq. 5; rfc6675"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "sack"
