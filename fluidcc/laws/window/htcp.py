"""The window law of H-TCP."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractWindowLaw, Ack, State
from fluidcc.laws.parameters import check_order, param, state
from fluidcc.ops import Num


class HTCP(AbstractWindowLaw):
    """TCP whose growth rises with the time since the last reaction, and which empties the queue.

    Source: Leith and Shorten (2004), draft-leith-tcp-htcp-06. A reaction leaves R_min/R_max of the
    window, in which the round trip at the reaction stands for R_max, and that of propagation, known
    exactly, for R_min: a sender has the largest and the least that it met. The time counts while
    windows grow. Left out: the scaling by round trips, and the half that is left if the throughput
    changed by a fifth.
    """

    name: ClassVar[str] = "htcp"
    source: ClassVar[str] = "leith2004; leith2008"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "sack"
    reads: ClassVar[tuple[str, ...]] = ("mark", "drop", "delay")
    since = state(
        0.0, r"\Delta", unit="s", doc="time of growth since the last reaction", within="[0, inf)"
    )
    left = state(
        "beta_min", r"\beta", unit="1", doc="share of the window that it left", within="[0, 1]"
    )
    wait: Num = param(1.0, r"\Delta_L", unit="s", doc="time of growth as TCP's", within="[0, inf)")
    beta_min: Num = param(
        0.5, r"\beta_{\min}", unit="1", doc="smallest share that a loss leaves", within="(0, 1)"
    )
    beta_max: Num = param(
        0.8, r"\beta_{\max}", unit="1", doc="largest share that a loss leaves", within="(0, 1)"
    )

    def check(self) -> None:
        """Raise ValueError unless beta_min <= beta_max."""
        super().check()
        check_order(self, "beta_min", "beta_max", equal=True)

    def increase(self, since: Num) -> Num:
        """Growth in a round trip [packet], of a sender that halves, this long [s] after a
        reaction. Shape of the time.
        """
        beyond = ops.maximum(since - self.wait, 0.0)
        return 1 + 10 * beyond + (beyond / 2) ** 2

    def on_ack(self, s: State, ack: Ack) -> State:
        """Grow by 2 (1 - beta) alpha in a round trip: as fast as is made good for the cut."""
        grown = 2 * (1 - s.left) * self.increase(s.since)
        return self.change(s, window=ack.count * grown / s.window, since=ack.elapsed)

    def on_mark(self, s: State, ack: Ack) -> State:
        """Leave the share of the round trip that is propagation, within bounds."""
        left = ops.clip(1 - ack.delay / ack.rtt, self.beta_min, self.beta_max)
        return self.change(s, window=(left - 1) * s.window, since=-s.since, left=left - s.left)
