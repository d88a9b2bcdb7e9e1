"""CUBIC's window law."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import Ack, State
from fluidcc.laws.parameters import choice, param, state
from fluidcc.laws.window.hystart import AbstractHyStart
from fluidcc.ops import Num

_SOME = 1e-9  # packets; below it a cubic root has no slope


class CUBIC(AbstractHyStart):
    """Grow with the cube of the time since the last reduction, or as Reno where that is faster.

    Source: RFC 9438, sections 4.2 to 4.7; `beta_ecn` of 0.85 is RFC 8511. The window follows the
    cube in time, where the RFC aims one round trip ahead at each ACK: both are there within a round
    trip. The RFC's limit, half a window more in a round trip, is left out: it binds where round
    trips are of a second. With `hystart` the first slow start is that of RFC 9406.
    """

    name: ClassVar[str] = "cubic"
    source: ClassVar[str] = "rfc9438, sections 4.2 to 4.7; rfc8511; rfc9406"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "sack"
    since = state(
        0.0, "t", unit="s", doc="time of growth since the last reduction", within="[0, inf)"
    )
    top = state(0.0, r"\hat W", unit="packet", doc="window aimed at: W_max", within="[0, inf)")
    prior = state(
        0.0, "W_p", unit="packet", doc="window before the last reduction", within="[0, inf)"
    )
    epoch = state(0.0, "W_0", unit="packet", doc="window after it", within="[0, inf)")
    reno = state(0.0, r"W_{\mathrm{est}}", unit="packet", doc="window of Reno", within="[0, inf)")
    c: Num = param(0.4, "c", unit="packet/s^3", doc="scale of the cube", within="(0, inf)")
    beta: Num = param(
        0.7, r"\beta", unit="1", doc="share of the window that a loss leaves", within="(0, 1)"
    )
    beta_ecn: Num = param(
        0.7, r"\beta_e", unit="1", doc="share that a mark leaves; ABE: 0.85", within="(0, 1)"
    )
    fast_convergence: bool = choice(
        True, doc="windows reduced twice without growing back aim lower: section 4.7"
    )

    def start(self, w: Num) -> State:
        """As after slow start: the time is 0, and all windows are this one (section 4.10)."""
        return super().start(w)._replace(top=w, prior=w, epoch=w, reno=w)

    def on_ack(self, s: State, ack: Ack) -> State:
        """Grow with the larger of the cube and Reno's window: sections 4.2 to 4.5."""
        begins = s.since - (ops.maximum(s.top - s.epoch, _SOME) / self.c) ** (1 / 3)
        slope = ops.where(s.reno < s.prior, 3 * (1 - self.beta) / (1 + self.beta), 1.0)
        grown = slope * ack.count / s.window

        def larger(elapsed: Num, grown: Num) -> Num:
            return ops.maximum(s.top + self.c * (begins + elapsed) ** 3, s.reno + grown)

        window = larger(ack.elapsed, grown) - larger(0.0, 0.0)
        change = self.change(s, window=window, since=ack.elapsed, reno=grown)
        return self.opening(s, ack, change)

    def on_mark(self, s: State, ack: Ack) -> State:
        """Reduce the window as for a loss, or by less: sections 4.6 and 4.7."""
        return self._reduce(s, self.beta_ecn)

    def on_loss(self, s: State, ack: Ack) -> State:
        """Reduce the window to the share beta: sections 4.6 and 4.7."""
        return self._reduce(s, self.beta)

    def _reduce(self, s: State, left: Num) -> State:
        top, below = s.window, left * s.window
        if self.fast_convergence:
            top = ops.where(s.window < s.top, s.window * (1 + self.beta) / 2, s.window)
        return self.change(
            s,
            window=below - s.window,
            since=-s.since,
            top=top - s.top,
            prior=s.window - s.prior,
            epoch=below - s.epoch,
            reno=below - s.reno,
            **self.ended(s),
        )
