"""Window laws, each with other methods than on_ack and on_mark."""

from fluidcc.laws import AbstractHyStart, AbstractWindowLaw, ops, param, state


class KeepQueued(AbstractWindowLaw):
    """By the queueing delay, as FAST TCP does: keeps `kept` packets of each flow in queues."""

    name = "keep_queued"
    source = "Wei, Jin, Low and Hegde (2006), FAST TCP, eq. 5"
    reaction = "once_per_rtt"
    recovery = "newreno"
    reads = ("mark", "drop", "delay")  # ack.delay besides the usual two
    kept: float = param(4.0, r"\alpha", unit="packet", doc="packets in queues", within="(0, 1e6)")
    gain: float = param(
        0.5, r"\gamma", unit="1", doc="share made good in a round trip", within="(0, 1]"
    )

    def on_ack(self, s, ack):
        """Change in ack.elapsed seconds: `gain` of the missing packets per round trip."""
        queued = s * ack.delay / ack.rtt
        return ack.elapsed * self.gain * (self.kept - queued) / ack.rtt

    def on_mark(self, s, ack):
        """Halve the window."""
        return -s / 2

    def slow_start(self, s):
        """No: the window shrinks without a mark, and slow start would undo it."""
        return 0


class SteadyRate(AbstractWindowLaw):
    """By the rate: the same growth in packet/s per second for all round trips."""

    name = "steady_rate"
    source = "an example"
    reaction = "per_mark"
    recovery = "newreno"
    a: float = param(20.0, "a", unit="packet/s^2", doc="growth of the rate", within="(0, inf)")
    b: float = param(0.5, "b", unit="1", doc="share given up at a mark", within="(0, 1)")

    def on_ack(self, s, ack):
        """A rate of s / ack.rtt grows by `a` a second, so the window by a times the round trip."""
        return ack.elapsed * self.a * ack.rtt

    def on_mark(self, s, ack):
        """Give up a share of the window, and so of the rate."""
        return -self.b * s


class Rounds(AbstractWindowLaw):
    """By rounds: counts acknowledgements and marks, and acts once a round trip."""

    name = "rounds"
    source = "an example"
    reaction = "per_mark"
    recovery = "newreno"
    acked = state(0.0, "A", unit="packet", doc="acknowledged in this round", within="[0, inf)")
    marks = state(0.0, "M", unit="packet", doc="marked in this round", within="[0, inf)")

    def observe(self, s, ack):
        """Count every acknowledgement, also those on which the window may not grow."""
        return self.change(s, acked=ack.count, marks=ack.count * ack.marked)

    def period(self, ack):
        """Time between ticks [s]: a round trip."""
        return ack.rtt

    def on_tick(self, s, ack):
        """A packet more, half of the share of marks less; begin to count anew."""
        share = s.marks / ops.maximum(s.acked, 1.0)
        return self.change(s, window=1 - s.window * share / 2, acked=-s.acked, marks=-s.marks)

    def on_ack(self, s, ack):
        """Nothing: ticks do all."""
        return self.change(s)

    def on_mark(self, s, ack):
        """Nothing: observe has counted the mark."""
        return self.change(s)

    def on_loss(self, s, ack):
        """Halve the window."""
        return self.change(s, window=-s.window / 2)


class Seldom(AbstractWindowLaw):
    """By rounds that last a time: Reno that is cut once in `least` at most."""

    name = "seldom"
    source = "an example"
    reaction = "once_per_rtt"
    growth = "clean"
    recovery = "newreno"
    least: float = param(0.5, "T", unit="s", doc="least time between cuts", within="(0, inf)")

    def rounds(self, ack):
        """The part of a round that a round trip is: a round lasts `least`, or a round trip."""
        return ack.rtt / ops.maximum(ack.rtt, self.least)

    def on_ack(self, s, ack):
        """Grow by one packet in a round trip."""
        return ack.count / s

    def on_mark(self, s, ack):
        """Halve the window."""
        return -s / 2


class Opening(AbstractHyStart):
    """By rounds of packets: Reno whose first slow start may be HyStart++."""

    name = "opening"
    source = "RFC 9406"
    reaction = "once_per_rtt"
    recovery = "newreno"

    def on_ack(self, s, ack):
        """Grow by one packet in a round trip; by more in conservative slow start."""
        return self.opening(s, ack, self.change(s, window=ack.count / self.window(s)))

    def on_mark(self, s, ack):
        """Halve the window; HyStart++ is over."""
        return self.change(s, window=-self.window(s) / 2, **self.ended(s))


class MeasuredVegas(AbstractWindowLaw):
    """By the least round trip that the sender itself has measured: Vegas, 2 to 4 packets."""

    name = "measured_vegas"
    source = "Brakmo and Peterson (1995)"
    reaction = "once_per_rtt"
    recovery = "newreno"
    reads = ("mark", "drop", "least_rtt")
    memory = 10.0  # s, of the least round trip; the default is inf

    def on_ack(self, s, ack):
        """A packet more or less in a round trip."""
        queued = s * (ack.rtt - ack.least_rtt) / ack.rtt
        step = ops.where(queued < 2.0, 1.0, ops.where(queued > 4.0, -1.0, 0.0))
        return ack.count * step / s

    def on_mark(self, s, ack):
        """Halve the window."""
        return -s / 2

    def slow_start(self, s):
        """No: the window shrinks without a mark."""
        return 0
