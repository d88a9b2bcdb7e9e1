"""Two thresholds of packets in queues, as TCP Vegas has them."""

from fluidcc.laws import AbstractWindowLaw, ops, param


class Thresholds(AbstractWindowLaw):
    """Keeps between alpha and beta packets in the queue."""

    name = "thresholds"
    source = "Brakmo and Peterson (1995)"
    reaction = "once_per_rtt"
    recovery = "newreno"
    reads = ("mark", "drop", "delay")
    alpha: float = param(2.0, r"\alpha", unit="packet", doc="fewest queued", within="(0, inf)")
    beta: float = param(4.0, r"\beta", unit="packet", doc="most queued", within="(0, inf)")

    def on_ack(self, s, ack):
        queued = s * ack.delay / ack.rtt
        step = ops.where(queued < self.alpha, 1.0, ops.where(queued > self.beta, -1.0, 0.0))
        return ack.count * step / s

    def on_mark(self, s, ack):
        return -0.5 * s

    def slow_start(self, s):
        return 0
