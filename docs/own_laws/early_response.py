"""Early response by chance: a sender that answers delay as RED would mark."""

from fluidcc.laws import AbstractWindowLaw, ops, param


class EarlyResponse(AbstractWindowLaw):
    """At each acknowledgement the window is cut with a probability that grows with the delay."""

    name = "early_response"
    source = "Bhandarkar, Reddy, Zhang and Loguinov (2007), PERT, without its pause of a round trip"
    reaction = "once_per_rtt"
    recovery = "newreno"
    reads = ("mark", "drop", "delay")
    draws = ("on_ack",)  # the rules that read ack.random
    low: float = param(0.005, "T_1", unit="s", doc="delay of the first cuts", within="[0, inf)")
    slope: float = param(
        2.0, "b", unit="1/s", doc="growth of the chance with the delay", within="(0, inf)"
    )
    cut: float = param(0.35, r"\beta", unit="1", doc="share given up by a cut", within="(0, 1)")

    def on_ack(self, s, ack):
        """Grow by a packet in a round trip; cut by chance."""
        chance = ack.count * ops.clip(self.slope * (ack.delay - self.low), 0.0, 1.0)
        return ack.count / s - ops.where(ack.random < chance, self.cut * s, 0.0)

    def on_mark(self, s, ack):
        """Halve the window."""
        return -s / 2

    def slow_start(self, s):
        """No: cuts by delay do not set its threshold."""
        return 0
