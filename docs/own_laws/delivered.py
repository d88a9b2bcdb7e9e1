"""A paced law by what is delivered: BBR's idea without its probes."""

from fluidcc.laws import AbstractWindowLaw, param


class Delivered(AbstractWindowLaw):
    """The window is what the path delivers in the least round trip, and `kept` packets more."""

    name = "delivered"
    source = "an example"
    reaction = "once_per_rtt"
    recovery = "newreno"
    reads = ("mark", "drop", "rate", "least_rtt")  # ack.rate and ack.least_rtt are measured
    kept: float = param(4.0, r"\alpha", unit="packet", doc="packets in queues", within="(0, 1e6)")
    pace: float = param(1.2, "g", unit="1", doc="pace over the delivery rate", within="(1, 10)")

    def on_ack(self, s, ack):
        """Come to the window that is wanted, within a round trip."""
        return ack.count * (ack.rate * ack.least_rtt + self.kept - s) / s

    def pacing(self, s, ack):
        """Rate at which packets may go [packet/s]."""
        return self.pace * s / ack.rtt

    def on_mark(self, s, ack):
        """Halve the window."""
        return -s / 2

    def slow_start(self, s):
        """No: the window shrinks without a mark."""
        return 0
