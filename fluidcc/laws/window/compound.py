"""Compound TCP's window law."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractWindowLaw, Ack, State
from fluidcc.laws.parameters import param, state
from fluidcc.ops import Num


class Compound(AbstractWindowLaw):
    """A window of two parts: TCP's, and one by the delay that makes the sum grow by alpha w^k.

    Source: Tan, Song, Zhang and Sridharan (2006); draft-sridharan-tcpm-ctcp-02. In a round trip the
    part by the delay grows by alpha w^k - 1 while fewer than `gamma` packets, w (R - base)/R, are
    in queues, and else shrinks by `zeta` times that number. Both are spread over ACKs. The
    propagation round trip is known exactly, where a sender has the least it met, and `gamma` is
    constant, where the draft adapts it.
    """

    name: ClassVar[str] = "compound"
    source: ClassVar[str] = "tan2006; sridharan2008"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "sack"
    reads: ClassVar[tuple[str, ...]] = ("mark", "drop", "delay")
    by_delay = state(
        0.0, "D", unit="packet", doc="part of the window by the delay", within="[0, inf)"
    )
    alpha: Num = param(
        0.125, r"\alpha", unit="packet", doc="growth in a round trip at w = 1", within="(0, inf)"
    )
    beta: Num = param(
        0.5, r"\beta", unit="1", doc="share of the window that a loss takes", within="(0, 0.5]"
    )
    k: Num = param(0.75, "k", unit="1", doc="exponent of the growth", within="[0, 1]")
    zeta: Num = param(
        1.0, r"\zeta", unit="1", doc="packets given up for each in queues", within="[0, inf)"
    )
    gamma: Num = param(
        30.0, r"\gamma", unit="packet", doc="in queues; from there it shrinks", within="(0, inf)"
    )
    low_window: Num = param(38.0, "W_l", unit="packet", doc="TCP up to here", within="[0, inf)")

    def on_ack(self, s: State, ack: Ack) -> State:
        """Grow as TCP; the part by the delay grows beside it, or shrinks down to 0."""
        w, queued = s.window, s.window * ack.delay / ack.rtt
        faster = ops.where(w > self.low_window, self.alpha * w**self.k - 1, 0.0)
        grown = ack.count / w * ops.maximum(faster, 0.0)
        shrunk = ops.minimum(ack.count / w * self.zeta * queued, s.by_delay)
        change = ops.where(queued < self.gamma, grown, -shrunk)
        return self.change(s, window=ack.count / w + change, by_delay=change)

    def on_mark(self, s: State, ack: Ack) -> State:
        """Keep 1 - beta of the window, half of TCP's part with it."""
        kept = (1 - self.beta) * s.window
        tcp = (s.window - ops.minimum(s.by_delay, s.window)) / 2
        return self.change(s, window=kept - s.window, by_delay=kept - tcp - s.by_delay)

    def observe(self, s: State, ack: Ack) -> State:
        """Give up what the window does not hold: all but a packet after a timeout."""
        excess = ops.maximum(s.by_delay - s.window, 0.0)
        return self.change(s, by_delay=-ops.minimum(ack.count, 1.0) * excess)
