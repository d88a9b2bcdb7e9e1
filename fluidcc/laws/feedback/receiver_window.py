"""The feedback law `receiver_window`."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractFeedback, MarkingPoint
from fluidcc.laws.parameters import param
from fluidcc.ops import Num

_TINY = 1e-100  # log(p) has no slope at p = 0
_ALMOST_ONE = 1 - 1e-15  # the sum of powers is 0/0 at p = 1
_LEAST_ROOM = 1e-12  # packets


class ReceiverWindow(AbstractFeedback):
    """A router on the way back puts one packet in the window field of an ACK.

    Source: Govindaswamy, Zaruba and Balasekaran (2012), section 3. A field of 0 stays as it is.
    """

    name: ClassVar[str] = "receiver_window"
    source: ClassVar[str] = "govindaswamy2012, section 3"
    marking_point: ClassVar[MarkingPoint] = MarkingPoint.REVERSE
    carries: ClassVar[tuple[str, ...]] = ("drop",)
    persistence: Num = param(
        0.0,
        r"\rho",
        unit="1",
        doc="weight of the largest cut by a modified ACK; 0 is one packet of flight, 1 all but one",
        engines=("fluid",),
        within="[0, 1]",
    )

    def advertised_window(self, w: Num, marked: Num) -> Num:
        """One packet at most where the ACK is modified."""
        return ops.where(marked > 0, ops.minimum(w, 1.0), w)

    def flight_size(self, w: Num, mark: Num) -> Num:
        """Mean flight w - d p (1 - p^((w-1)/d))/(1-p), each modified ACK costing d packets.

        The flight cannot shrink by more than the packet that left, and the next clean ACK restores
        it, so that a run of k modified ACKs leaves max(1, w - k): d = 1, exact for whole w and
        independent modification. The other end, d = w - 1, is the mean (1 - p) w + p of the
        permitted window. Between them d = 1 + persistence (w - 2).
        """
        room = ops.maximum(w - 1, _LEAST_ROOM)
        cost = 1 + self.persistence * (room - 1)
        log = ops.log(ops.clip(mark, _TINY, _ALMOST_ONE))
        powers = ops.expm1(room / cost * log) / ops.expm1(log)  # 1 + p + p^2 + ...
        return w - cost * mark * powers
