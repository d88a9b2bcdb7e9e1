"""The window law of Binary Marking Congestion Control."""

from typing import ClassVar, NamedTuple

from fluidcc import ops
from fluidcc.laws.law import AbstractWindowLaw, Ack, State
from fluidcc.laws.parameters import choice, param
from fluidcc.laws.window.sack import SACK
from fluidcc.ops import Num

_TCP = SACK()
_MOST_PERIODS = 50.0  # in one round trip; a larger power may overflow


class Mode(NamedTuple):
    """State of a sender that may fall back to TCP."""

    window: Num  # packets
    sack: Num  # 1 in the fallback, else 0; its mean in the fluid model


class BMCC(AbstractWindowLaw):
    """Multiplicative, then additive increase by the load factor; one decrease per period.

    Source: Qazi, Znati and Andrew, section 3.3, eqs 2-6. A load factor below `lowest`, or none,
    counts as `lowest`; one above `highest` as `highest`. Its T is the measured round trip. The
    decrease comes once per t_p, for which rates become equal; `md = "per_rtt"` is eq. 5 by the
    letter. With `needs_mark` (section 5.2) only (11) marks make the sender decrease, by the load
    factor that it knows of. With `fallback` (section 5.3) a mark or a loss below full load makes
    it a TCP sender, without a decrease, until it hears of full load.
    """

    name: ClassVar[str] = "bmcc"
    source: ClassVar[str] = "qazi2010, section 3.3"
    symbols: ClassVar[tuple[str, ...]] = ("W", r"\sigma")
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "sack"
    loads: ClassVar[bool] = True
    t_p: Num = param(0.2, "t_p", unit="s", doc="sampling period of the routers", within="(0, inf)")
    lowest: Num = param(0.15, r"\eta_0", unit="1", doc="least load factor", within="(0, 1)")
    mild: Num = param(
        0.75, r"\eta", unit="1", doc="where the increase turns additive", within="(0, 1)"
    )
    highest: Num = param(1.2, "u", unit="1", doc="largest load factor", within="(1, inf)")
    kappa_2: Num = param(
        0.35, r"\kappa_2", unit="1", doc="gain of the multiplicative increase", within="(0, 1)"
    )
    beta_min: Num = param(
        0.65, r"\beta_{\min}", unit="1", doc="share kept at the largest load", within="(0, 1)"
    )
    beta_max: Num = param(
        0.875, r"\beta_{\max}", unit="1", doc="share kept at full load", within="(0, 1)"
    )
    md: str = choice("per_tp", "per_tp", "per_rtt", doc="how often the window decreases")
    needs_mark: bool = choice(False, doc="decrease for (11) marks alone")
    fallback: bool = choice(False, doc="turn into TCP at signs of other routers")

    def __check_init__(self) -> None:
        """Raise ValueError unless lowest < mild and beta_min <= beta_max."""
        super().__check_init__()
        for low, high, fine in (
            ("lowest", "mild", lambda a, b: a < b),
            ("beta_min", "beta_max", lambda a, b: a <= b),
        ):
            a, b = getattr(self, low), getattr(self, high)
            if isinstance(a, float | int) and isinstance(b, float | int) and not fine(a, b):
                raise ValueError(f"bmcc needs {low} below {high}, got {a!r} and {b!r}")

    def start(self, w: Num) -> State:
        """State with window `w`, not in the fallback."""
        return Mode(w, 0.0 * w) if self.fallback else w

    def window(self, s: State) -> Num:
        """Congestion window [packet]."""
        return s.window if self.fallback else s

    def with_window(self, s: State, w: Num) -> State:
        """The state `s` with its window replaced by `w`."""
        return s._replace(window=w) if self.fallback else w

    def bounded(self, s: State) -> State:
        """The state with its mode within [0, 1]."""
        return s._replace(sack=ops.clip(s.sack, 0.0, 1.0)) if self.fallback else s

    def kept(self, load: Num) -> Num:
        """Share of the window that a decrease keeps at a load factor of 1 or more: eq. 6."""
        f = ops.clip(load, 1.0, self.highest)
        return self.beta_max - (self.beta_max - self.beta_min) * (f - 1) / (self.highest - 1)

    def _decrease(self, w: Num, load: Num) -> Num:
        """Change of the window by eq. 5; none below full load."""
        return ops.where(load < 1, 0.0, (self.kept(load) - 1) * w)

    def _mixed(self, s: State, own: Num, tcp: Num) -> State:
        """Change of the window that is `own`, and `tcp` in the fallback."""
        return Mode((1 - s.sack) * own + s.sack * tcp, 0.0 * s.sack) if self.fallback else own

    def _signalled(self, s: State, load: Num, own: Num, tcp: Num) -> State:
        """Change on a mark or a loss; below full load it is the sign of another router."""
        if not self.fallback:
            return own
        known = ops.where(load < 1, 0.0, (1 - s.sack) * own)
        return Mode(known + s.sack * tcp, ops.where(load < 1, 1 - s.sack, 0.0))

    def on_ack(self, s: State, ack: Ack) -> State:
        """Grow by eq. 3 at low and eq. 4 at high load, for the time since the last ACK.

        A gap longer than a round trip, as after a timeout, counts as one round trip.
        """
        w, time = self.window(s), ops.minimum(ack.elapsed, ack.rtt)
        f = ops.clip(ack.load, self.lowest, self.mild)
        factor = 1 + self.kappa_2 * (1 - f) / f
        rising = w * (factor ** ops.minimum(time / self.t_p, _MOST_PERIODS) - 1)
        probing = time * ack.rtt / self.t_p**2
        own = ops.where(ack.load < self.mild, rising, ops.where(ack.load < 1, probing, 0.0))
        return self._mixed(s, own, _TCP.on_ack(w, ack))

    def on_mark(self, s: State, ack: Ack) -> State:
        """Decrease: a (11) mark says the largest load, or only "now" under `needs_mark`.

        Where the load is known to be that large, the marks are its code and the ticks decrease.
        """
        w = self.window(s)
        own = ops.where(ack.load < self.highest, (self.beta_min - 1) * w, 0.0 * w)
        if self.needs_mark:
            own = self._decrease(w, ack.load)
        return self._signalled(s, ack.load, own, _TCP.on_mark(w, ack))

    def on_loss(self, s: State, ack: Ack) -> State:
        """Halve the window."""
        w = self.window(s)
        return self._signalled(s, ack.load, -w / 2, _TCP.on_loss(w, ack))

    def observe(self, s: State, ack: Ack) -> State:
        """Leave the fallback on hearing of full load."""
        if not self.fallback:
            return 0.0 * s
        return Mode(0.0 * s.window, ops.where(ack.load < 1, 0.0, -ack.count * s.sack))

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
        return self._mixed(s, self._decrease(w, ack.load), 0.0 * w)
