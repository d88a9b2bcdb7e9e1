"""How senders come to know the load factor of their route."""

from typing import ClassVar

from fluidcc.laws.law import AbstractEstimator
from fluidcc.ops import Num


class Exact(AbstractEstimator):
    """The load factor itself, as old as the packet that brings it."""

    name: ClassVar[str] = "exact"
    source: ClassVar[str] = "qazi2010, eq. 1"

    def decode(self, estimate: Num, hashed: Num, load: Num) -> Num:
        """Take the load at once."""
        return load - estimate

    def mean(self, estimate: Num, load: Num) -> Num:
        """Take the load at once."""
        return load - estimate
