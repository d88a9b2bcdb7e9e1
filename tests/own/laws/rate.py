"""A sender with a rate: additive increase in packets per second, and a cut on a mark."""

from fluidcc.laws import AbstractWindowLaw, param, state


class Rate(AbstractWindowLaw):
    """The window is what the rate sends in a round trip."""

    name = "rate"
    source = "AIMD on the rate"
    reaction = "once_per_rtt"
    recovery = "newreno"
    rate = state(1.0, "r", unit="packet/s", doc="sending rate", within="[0, inf)")
    a: float = param(50.0, "a", unit="packet/s^2", doc="growth of the rate", within="(0, inf)")
    b: float = param(0.5, "b", unit="1", doc="share given up", within="(0, 1)")

    def on_ack(self, s, ack):
        return self.change(
            s,
            rate=self.a * ack.elapsed,
            window=ack.count * (s.rate * ack.rtt - s.window) / s.window,
        )

    def on_mark(self, s, ack):
        return self.change(s, rate=-self.b * s.rate)

    def slow_start(self, s):
        return 0
