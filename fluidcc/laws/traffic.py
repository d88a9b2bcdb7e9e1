"""What flows have to send: everything at all times, or files with pauses in between."""

from typing import ClassVar

from fluidcc.laws.law import AbstractSource
from fluidcc.laws.parameters import param
from fluidcc.ops import Num


class Bulk(AbstractSource):
    """Always something to send."""

    name: ClassVar[str] = "bulk"
    source: ClassVar[str] = "akujobi2002, section V"

    def ending(self, rate: Num) -> Num:
        """Never."""
        return 0.0

    def beginning(self) -> Num:
        """Never."""
        return 0.0

    def first_window(self) -> Num:
        """Of no meaning."""
        return 1.0


class Web(AbstractSource):
    """Files, one after the other on new connections, with idle times in between.

    The fluid model takes sizes and idle times as exponential with the given means.
    """

    name: ClassVar[str] = "web"
    source: ClassVar[str] = "misra2003, section 4.1"
    starts: ClassVar[bool] = True
    file: Num = param(12.0, "S", unit="packet", doc="mean size of a file", within="(0, inf)")
    idle: Num = param(3.0, r"T_{\mathrm{off}}", unit="s", doc="mean idle time", within="(0, inf)")
    first: Num = param(
        2.0, "W_1", unit="packet", doc="window of a new connection", within="(0, inf)"
    )

    def ending(self, rate: Num) -> Num:
        """A file ends after its packets."""
        return rate / self.file

    def beginning(self) -> Num:
        """An idle time ends after its mean."""
        return 1.0 / self.idle

    def first_window(self) -> Num:
        """Window of a new connection."""
        return self.first
