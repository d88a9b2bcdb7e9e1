"""The feedback law `loss`."""

from typing import ClassVar

from fluidcc.laws.law import AbstractFeedback, MarkingPoint, Signal


class Loss(AbstractFeedback):
    """No ECN: what would be a mark is a loss, seen by duplicate ACKs. Misra and Ott (2003), 3."""

    name: ClassVar[str] = "loss"
    source: ClassVar[str] = "misra2003, section 3"
    marking_point: ClassVar[MarkingPoint] = MarkingPoint.ENTRY

    def interpret(self, signal: Signal) -> Signal:
        """Turn marks into losses."""
        return signal._replace(mark=0.0, drop=signal.either)
