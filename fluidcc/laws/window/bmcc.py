"""The window law of Binary Marking Congestion Control."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractWindowLaw, Ack, State
from fluidcc.laws.load_code import AbstractLoadCode
from fluidcc.laws.parameters import choice, param, state
from fluidcc.laws.window.sack import SACK
from fluidcc.ops import Num

_TCP = SACK()
_MOST_PERIODS = 50.0  # in one round trip; a larger power may overflow


class BMCC(AbstractLoadCode, AbstractWindowLaw):
    """Multiplicative, then additive increase by the load factor; one decrease per period.

    Source: Qazi, Znati and Andrew, section 3.3, eqs 2-6. No load factor counts as `lowest`. Its T
    is the measured round trip. The decrease comes once per t_p, for which rates become equal;
    `md = "per_rtt"` is eq. 5 by the letter. With `needs_mark` (section 5.2) only (11) marks make
    the sender decrease, by the load factor that it knows of. With `fallback` (section 5.3) a mark
    or a loss below full load makes it a TCP sender, without a decrease, until it learns of full
    load.
    """

    name: ClassVar[str] = "bmcc"
    source: ClassVar[str] = "qazi2010, section 3.3"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "sack"
    reads: ClassVar[tuple[str, ...]] = ("mark", "drop", "load")
    sack = state(
        0.0, r"\sigma", unit="1", doc="1 in the fallback, else 0", within="[0, 1]", when="fallback"
    )
    t_p: Num = param(0.2, "t_p", unit="s", doc="sampling period of the routers", within="(0, inf)")
    kappa_2: Num = param(
        0.35, r"\kappa_2", unit="1", doc="gain of the multiplicative increase", within="(0, 1)"
    )
    beta_min: Num = param(
        0.65, r"\beta_{\min}", unit="1", doc="window share kept at the largest load",
        within="(0, 1)",
    )  # fmt: skip
    beta_max: Num = param(
        0.875, r"\beta_{\max}", unit="1", doc="window share kept at full load", within="(0, 1)"
    )
    md: str = choice("per_tp", "per_tp", "per_rtt", doc="how often the window decreases")
    needs_mark: bool = choice(False, doc="decrease for (11) marks alone")
    fallback: bool = choice(False, doc="turn into TCP at signs of other routers")

    def check(self) -> None:
        """Raise ValueError unless lowest < mild and beta_min <= beta_max."""
        super().check()
        a, b = self.beta_min, self.beta_max
        if isinstance(a, float | int) and isinstance(b, float | int) and a > b:
            raise ValueError(f"bmcc needs beta_min below beta_max, got {a!r} and {b!r}")

    def kept(self, load: Num) -> Num:
        """Share of the window that a decrease keeps at a load factor of 1 or more: eq. 6."""
        f = ops.clip(load, 1.0, self.highest)
        return self.beta_max - (self.beta_max - self.beta_min) * (f - 1) / (self.highest - 1)

    def _decrease(self, w: Num, load: Num) -> Num:
        """Change of the window by eq. 5; none below full load."""
        return ops.where(load < 1, 0.0, (self.kept(load) - 1) * w)

    def _mix(self, s: State, bmcc: Num, tcp: Num) -> State:
        """Change of the window: `bmcc` by its rules, `tcp` in the fallback."""
        return self.change(s, window=(1 - s.sack) * bmcc + s.sack * tcp) if self.fallback else bmcc

    def _on_signal(self, s: State, load: Num, bmcc: Num, tcp: Num) -> State:
        """Change on a mark or a loss; below full load it is the sign of another router."""
        if not self.fallback:
            return bmcc
        known = ops.where(load < 1, 0.0, (1 - s.sack) * bmcc)
        fallen = ops.where(load < 1, 1 - s.sack, 0.0)
        return self.change(s, window=known + s.sack * tcp, sack=fallen)

    def on_ack(self, s: State, ack: Ack) -> State:
        """Grow by eq. 3 at low and eq. 4 at high load, for the time since the last ACK.

        A gap longer than a round trip, as after a timeout, counts as one round trip.
        """
        w, time = self.window(s), ops.minimum(ack.elapsed, ack.rtt)
        f = ops.clip(ack.load, self.lowest, self.mild)
        factor = 1 + self.kappa_2 * (1 - f) / f
        rising = w * (factor ** ops.minimum(time / self.t_p, _MOST_PERIODS) - 1)
        probing = time * ack.rtt / self.t_p**2
        bmcc = ops.where(ack.load < self.mild, rising, ops.where(ack.load < 1, probing, 0.0))
        return self._mix(s, bmcc, _TCP.on_ack(w, ack))

    def on_mark(self, s: State, ack: Ack) -> State:
        """Decrease: a (11) mark codes the largest load, or only "now" under `needs_mark`.

        If the load is known to be that large, the marks are its code and the ticks decrease.
        """
        w = self.window(s)
        bmcc = ops.where(ack.load < self.highest, (self.beta_min - 1) * w, 0.0 * w)
        if self.needs_mark:
            bmcc = self._decrease(w, ack.load)
        return self._on_signal(s, ack.load, bmcc, _TCP.on_mark(w, ack))

    def on_loss(self, s: State, ack: Ack) -> State:
        """Halve the window."""
        w = self.window(s)
        return self._on_signal(s, ack.load, -w / 2, _TCP.on_loss(w, ack))

    def observe(self, s: State, ack: Ack) -> State:
        """Leave the fallback at full load."""
        if not self.fallback:
            return 0.0 * s
        return self.change(s, sack=ops.where(ack.load < 1, 0.0, -ack.count * s.sack))

    def slow_start(self, s: State) -> Num:
        """In the fallback: otherwise eq. 3 takes its place, at the start and after timeouts."""
        return s.sack if self.fallback else 0

    @property
    def marks_tell_load(self) -> bool:
        """Unless marks may come from other routers, or from adaptive RED in the same one."""
        return not (self.needs_mark or self.fallback)

    def period(self, ack: Ack) -> Num | None:
        """Time between decreases [s]; None under `needs_mark`."""
        if self.needs_mark:
            return None
        return ack.rtt if self.md == "per_rtt" else self.t_p

    def on_tick(self, s: State, ack: Ack) -> State:
        """Decrease by eq. 5 at overload."""
        w = self.window(s)
        return self._mix(s, self._decrease(w, ack.load), 0.0 * w)
