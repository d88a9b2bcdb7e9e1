"""The feedback law `mark_front`."""

from typing import ClassVar

from fluidcc.laws.law import AbstractFeedback, Moment


class MarkFront(AbstractFeedback):
    """ECN: marked on leaving the queue, echoed by the receiver."""

    name: ClassVar[str] = "mark_front"
    source: ClassVar[str] = "durresi2001, section 3"
    moment: ClassVar[Moment] = Moment.DEPARTURE
