"""The feedback law `explicit`."""

from typing import ClassVar

from fluidcc.laws.law import WRITTEN, AbstractFeedback, MarkingPoint


class Explicit(AbstractFeedback):
    """All that links write into packets as numbers, beside marks; the receiver sends it back.

    Source: the congestion header of Katabi, Handley and Rohrs (2002) and the rate of Dukkipati et
    al. (2005). Of each number the largest on the path stays. Written as the packet enters a queue.
    """

    name: ClassVar[str] = "explicit"
    source: ClassVar[str] = "dukkipati2005"
    marking_point: ClassVar[MarkingPoint] = MarkingPoint.ENTRY
    carries: ClassVar[tuple[str, ...]] = ("mark", "drop", *WRITTEN)
