"""The window law of High Precision Congestion Control."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractWindowLaw, Ack, State
from fluidcc.laws.parameters import param, state
from fluidcc.ops import Num

_IDLE = 1e-3  # least load that windows are divided by


class HPCC(AbstractWindowLaw):
    """Move the window to W_c eta/U + W_AI, U being the average of the load of the busiest link.

    Source: Li et al. (2019), algorithm 1, and its code for ns-3. Below the target utilisation eta,
    and for `stages` round trips at most, the window is W_c + W_AI instead. W_c takes the window
    once in a round trip. U is averaged over the base round trip T, which is a parameter here as at
    the link, the same for all flows. Windows are not paced, and `max_window` stands for the rate of
    the host's own link.
    """

    name: ClassVar[str] = "hpcc"
    source: ClassVar[str] = "li2019, algorithm 1"
    tried_in: ClassVar[str] = "li2019/incast"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "sack"
    reads: ClassVar[tuple[str, ...]] = ("mark", "drop", "load")
    reference = state(
        0.0, "W_c", unit="packet", doc="window of the last round trip", within="[0, inf)"
    )
    used = state(0.0, "U", unit="1", doc="average load of the busiest link", within="[0, inf)")
    stage = state(0.0, "k", unit="1", doc="additive increases in a row", within="[0, inf)")
    eta: Num = param(0.95, r"\eta", unit="1", doc="target utilisation", within="(0, 1)")
    w_ai: Num = param(
        0.1, r"W_{\mathrm{AI}}", unit="packet", doc="additive increase", within="[0, inf)"
    )
    stages: Num = param(
        5.0, r"k_{\max}", unit="1", doc="additive increases in a row at most", within="[0, inf)"
    )
    base: Num = param(13e-6, "T", unit="s", doc="base round trip", within="(0, inf)")

    def start(self, w: Num) -> State:
        """A window that is its own reference."""
        return super().start(w)._replace(reference=w)

    def is_multiplicative(self, s: State, used: Num) -> Num:
        """Whether the load, and not `w_ai` alone, moves the window."""
        return (used >= self.eta) | (s.stage >= self.stages)

    def on_ack(self, s: State, ack: Ack) -> State:
        """Average the load by the time since the last acknowledgement, and move to the window that
        it asks for, at once.
        """
        moved = ops.minimum(ack.elapsed / self.base, 1.0) * (ack.load - s.used)
        used = s.used + moved
        scaled = s.reference * self.eta / ops.maximum(used, _IDLE)
        begin = ops.where(self.is_multiplicative(s, used), scaled, s.reference)
        window = ops.minimum(begin + self.w_ai, self.max_window)
        change = ops.minimum(ack.count, 1.0) * (window - s.window)
        return self.change(s, window=change, used=moved)

    def on_mark(self, s: State, ack: Ack) -> State:
        """Halve the window and its reference."""
        return self.change(s, window=-s.window / 2, reference=s.window / 2 - s.reference)

    def slow_start(self, s: State) -> Num:
        """None: the load moves windows of every size."""
        return 0

    def period(self, ack: Ack) -> Num | None:
        """A round trip."""
        return ack.rtt

    def on_tick(self, s: State, ack: Ack) -> State:
        """Take the window for reference, and count additive increases in a row."""
        stage = ops.where(self.is_multiplicative(s, s.used), -s.stage, 1.0)
        return self.change(s, reference=s.window - s.reference, stage=stage)
