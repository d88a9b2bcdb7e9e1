"""The window law of HighSpeed TCP."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractWindowLaw, Ack
from fluidcc.laws.parameters import check_order, param
from fluidcc.ops import Num


class HighSpeed(AbstractWindowLaw):
    """TCP up to low_window; in larger windows faster growth and smaller cuts.

    Source: RFC 3649, sections 5 and 7, in the continuous form of appendix B. Windows beyond
    high_window are cut by high_decrease and follow the same response function. Limited slow start
    (RFC 3742) is left out.
    """

    name: ClassVar[str] = "highspeed"
    source: ClassVar[str] = "rfc3649, sections 5 and 7"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "sack"
    low_window: Num = param(38.0, "W_l", unit="packet", doc="TCP up to here", within="[2, inf)")
    high_window: Num = param(
        83000.0, "W_h", unit="packet", doc="mean window at high_p", within="(2, inf)"
    )
    low_p: Num = param(
        1e-3, "p_l", unit="1", doc="share of lost packets at low_window", within="(0, 1)"
    )
    high_p: Num = param(
        1e-7, "p_h", unit="1", doc="share of lost packets at high_window", within="(0, 1)"
    )
    high_decrease: Num = param(
        0.1, "b_h", unit="1", doc="share of the window given up at high_window", within="(0, 0.5]"
    )

    def check(self) -> None:
        """Raise ValueError unless larger windows mean fewer losses."""
        super().check()
        check_order(self, "low_window", "high_window")
        check_order(self, "high_p", "low_p")

    def increase(self, w: Num) -> Num:
        """a(w) [packet]: growth of the window w in a round trip. Shape of w. Section 7."""
        p = self.low_p * (self.high_p / self.low_p) ** self._height(w)
        b = self.decrease(w)
        grown = ops.maximum(w, self.low_window) ** 2 * p * 2 * b / (2 - b)
        return ops.where(w > self.low_window, ops.maximum(grown, 1.0), 1.0)

    def decrease(self, w: Num) -> Num:
        """b(w): share of the window w that a loss takes. Shape of w. Section 7."""
        return 0.5 - (0.5 - self.high_decrease) * ops.minimum(self._height(w), 1.0)

    def on_ack(self, s: Num, ack: Ack) -> Num:
        """Grow by a(w)/w for each acknowledged packet."""
        return ack.count * self.increase(s) / s

    def on_mark(self, s: Num, ack: Ack) -> Num:
        """Shrink by b(w) w, at a loss as at a mark."""
        return -self.decrease(s) * s

    def _height(self, w: Num) -> Num:
        """Place of w between the two windows by its logarithm: 0 at low_window and below."""
        over = ops.log(ops.maximum(w, self.low_window) / self.low_window)
        return over / ops.log(self.high_window / self.low_window)
