"""TCP NewReno's window law."""

from typing import ClassVar

from fluidcc.laws.window.polynomial import AbstractTCP


class NewReno(AbstractTCP):
    """Reno's window law with NewReno's recovery from several losses in a window.

    Source: Misra and Ott (2003), eq. 5 and section 2.1; the recovery is RFC 6582.
    """

    name: ClassVar[str] = "newreno"
    source: ClassVar[str] = "misra2003, eq. 5"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "newreno"
