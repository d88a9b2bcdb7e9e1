"""A queue law of one probability, for which windows have known means."""

from typing import Any, ClassVar

from fluidcc.laws.law import AbstractQueueLaw, Signal
from fluidcc.laws.parameters import param


class Constant(AbstractQueueLaw):
    """Marks or drops packets with one probability."""

    name: ClassVar[str] = "constant"
    source: ClassVar[str] = "test"
    p: float = param(0.0, "p", unit="1", doc="probability of a mark", within="[0, 1]")
    d: float = param(0.0, "d", unit="1", doc="probability of a loss", within="[0, 1]")

    def signal(self, x: Any, seen: Any) -> Signal:
        """The same to all packets."""
        return Signal(self.p + 0.0 * seen.queue, self.d + 0.0 * seen.queue)
