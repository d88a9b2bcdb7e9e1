"""A queue law that writes two numbers into packets, and a window law that acts on both."""

from fluidcc.laws import AbstractWindowLaw, RateControl, ops, param


class RateAndQueue(RateControl):
    """The rate of RCP as the time between packets, and the queue in round trips as the load."""

    name = "rate_and_queue"
    source = "an example"
    emits = ("mark", "drop", "load", "spacing")

    def signal(self, x, seen):
        """Write both; neither mark nor drop."""
        return super().signal(x, seen)._replace(load=seen.queue / (seen.capacity * self.base))


class BelowRate(AbstractWindowLaw):
    """Sends at the rate of the links, less a share for each round trip of queue."""

    name = "below_rate"
    source = "an example"
    reaction = "once_per_rtt"
    recovery = "sack"
    reads = ("mark", "drop", "load", "spacing")
    k: float = param(1.0, "k", unit="1", doc="share for a round trip of queue", within="[0, 100]")
    gain: float = param(
        0.5, r"\gamma", unit="1", doc="share made good in a round trip", within="(0, 1]"
    )

    def on_ack(self, s, ack):
        """Move towards the window of that rate by `gain` in a round trip."""
        rate = ops.maximum(1 - self.k * ack.load, 0.0) / ops.maximum(ack.spacing, 1e-12)
        missing = ops.minimum(rate * ack.rtt, self.max_window) - s
        return ops.where(ack.spacing > 0, self.gain * ack.elapsed / ack.rtt * missing, 0.0)

    def on_mark(self, s, ack):
        """Halve the window."""
        return -s / 2

    def slow_start(self, s):
        """None: the links say how fast a flow begins."""
        return 0
