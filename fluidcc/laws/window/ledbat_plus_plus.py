"""The window law of LEDBAT++."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import Ack, State
from fluidcc.laws.parameters import param
from fluidcc.laws.window.ledbat import LEDBAT
from fluidcc.ops import Num


class LEDBATPlusPlus(LEDBAT):
    """LEDBAT with additive increase and multiplicative decrease, so that windows become equal.

    Source: draft-irtf-iccrg-ledbat-plus-plus-01, sections 4.2, 4.3 and 4.5. Its gain is 1 over
    min(16, ceil(2 target / base)), with the propagation round trip: `gain` is to be set to it. The
    changes of a round trip are spread over its ACKs. Slow start scaled by the gain is left out, and
    so are the slowdowns, which find the propagation round trip: here it is known.
    """

    name: ClassVar[str] = "ledbat_plus_plus"
    source: ClassVar[str] = "ledbat2020, sections 4.2, 4.3 and 4.5"
    target: Num = param(0.06, r"\tau", unit="s", doc="queueing delay aimed at", within="(0, inf)")
    gain: Num = param(
        1 / 16, "G", unit="packet", doc="growth of a window in a round trip", within="(0, 1]"
    )
    c: Num = param(
        1.0, "c", unit="1", doc="share lost in a round trip at twice the target", within="(0, inf)"
    )

    def on_ack(self, s: State, ack: Ack) -> State:
        """Grow by the gain, less a share of the window beyond the target, half of it at most."""
        beyond = ops.maximum(ack.delay / self.target - 1, 0.0)
        return ack.count * ops.maximum(self.gain / s - self.c * beyond, -1 / 2)
