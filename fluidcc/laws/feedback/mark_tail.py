"""The feedback law `mark_tail`."""

from typing import ClassVar

from fluidcc.laws.law import AbstractFeedback, MarkingPoint


class MarkTail(AbstractFeedback):
    """ECN: marked on entering the queue, echoed by the receiver."""

    name: ClassVar[str] = "mark_tail"
    source: ClassVar[str] = "durresi2001, section 3"
    marking_point: ClassVar[MarkingPoint] = MarkingPoint.ENTRY
