"""The queue that only drops when it is full."""

from typing import ClassVar

from fluidcc.laws.law import AbstractQueueLaw, Arrival, Signal, State


class Droptail(AbstractQueueLaw):
    """Says nothing; the full buffer drops."""

    name: ClassVar[str] = "droptail"
    source: ClassVar[str] = "durresi2001, section 2"

    def signal(self, x: State, seen: Arrival) -> Signal:
        """Say nothing, whatever the queue."""
        return Signal()
