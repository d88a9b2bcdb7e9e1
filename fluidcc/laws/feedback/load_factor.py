"""The feedback law `load_factor`."""

from typing import ClassVar

from fluidcc.laws.law import AbstractFeedback, MarkingPoint


class LoadFactorFeedback(AbstractFeedback):
    """The load factor of the busiest link, coded over packets and echoed; (11) marks as well.

    Source: Qazi, Znati and Andrew, section 3.2. Stamped as the packet enters the queue.
    """

    name: ClassVar[str] = "load_factor"
    source: ClassVar[str] = "qazi2010, section 3.2"
    marking_point: ClassVar[MarkingPoint] = MarkingPoint.ENTRY
    carries: ClassVar[tuple[str, ...]] = ("mark", "drop", "load")
