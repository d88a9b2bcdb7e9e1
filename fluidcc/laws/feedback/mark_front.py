"""The feedback law `mark_front`."""

from typing import ClassVar

from fluidcc.laws.law import AbstractFeedback, MarkingPoint
from fluidcc.laws.parameters import EVENTS, choice


class MarkFront(AbstractFeedback):
    """ECN: marked on leaving the queue, echoed by the receiver.

    A packet leaves as its transmission starts, or as that ends: by a packet time later, and by what
    has come in the meantime. In the fluid model packets take no time, and both are one.
    """

    name: ClassVar[str] = "mark_front"
    source: ClassVar[str] = "durresi2001, section 3"
    when: str = choice(
        "start",
        "start",
        "end",
        doc="marked as the transmission starts, or as it ends",
        engines=EVENTS,
    )

    @property
    def marking_point(self) -> MarkingPoint:
        """At either end of the transmission."""
        return MarkingPoint.TRANSMITTED if self.when == "end" else MarkingPoint.DEPARTURE
