"""Scalable TCP (Kelly, 2003)."""

from fluidcc.laws import AbstractWindowLaw, ops, param


class Scalable(AbstractWindowLaw):
    """Grows by a fixed share a packet, gives up an eighth; TCP below 16 packets."""

    name = "scalable"
    source = "Kelly (2003)"
    reaction = "once_per_rtt"
    recovery = "sack"
    a: float = param(0.01, "a", unit="packet", doc="growth by one ACK", within="(0, 1]")
    b: float = param(0.125, "b", unit="1", doc="share given up", within="(0, 1)")
    w_low: float = param(16.0, "W_l", unit="packet", doc="TCP up to here", within="(0, inf)")

    def on_ack(self, s, ack):
        return ack.count * ops.where(s > self.w_low, self.a, 1 / s)

    def on_mark(self, s, ack):
        return -ops.where(s > self.w_low, self.b, 0.5) * s
