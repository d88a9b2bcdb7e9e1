"""The feedback law `backward`."""

from typing import ClassVar

from fluidcc.laws.law import AbstractFeedback, MarkingPoint


class Backward(AbstractFeedback):
    """Backward ECN: the router notifies the source itself, by source quench."""

    name: ClassVar[str] = "backward"
    source: ClassVar[str] = "akujobi2002, section III"
    marking_point: ClassVar[MarkingPoint] = MarkingPoint.ENTRY
    quench: ClassVar[bool] = True
