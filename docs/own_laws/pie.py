"""PIE: a controller of the queueing delay that drops, or marks (RFC 8033)."""

from fluidcc.laws import AbstractQueueLaw, Signal, choice, ops, param, state


class PIE(AbstractQueueLaw):
    """Each tick moves p by the delay and by its growth, in steps that shrink with p."""

    name = "pie"
    source = "Pan, Natarajan, Baker and White (2017), RFC 8033, section 4.2"
    p = state(0.0, "p", unit="1", doc="probability to drop or mark", within="[0, 1]")
    delay = state(0.0, r"\tau", unit="s", doc="at the last tick", within="[0, inf)")
    zero_order_hold = True  # the signal changes at ticks alone
    target: float = param(0.015, r"\tau_0", unit="s", doc="delay aimed at", within="(0, inf)")
    alpha: float = param(0.125, r"\alpha", unit="1/s", doc="gain of the delay", within="(0, inf)")
    beta: float = param(1.25, r"\beta", unit="1/s", doc="gain of its growth", within="(0, inf)")
    interval: float = param(0.015, "D", unit="s", doc="time between ticks", within="(0, inf)")
    ecn: bool = choice(False, doc="mark packets in place of dropping them (section 5.1)")

    def period(self):
        """Time between ticks [s]."""
        return self.interval

    def share(self, p):
        """The part of the gains that is used: the smaller p, the smaller."""
        part = 1.0
        for below, smaller in ((0.1, 2), (1e-2, 8), (1e-3, 32), (1e-4, 128), (1e-5, 512)):
            part = ops.where(p < below, 1 / smaller, part)
        return part

    def on_tick(self, x, seen):
        """Change of the memory x at a tick."""
        delay = seen.queue / seen.capacity
        step = self.alpha * (delay - self.target) + self.beta * (delay - x.delay)
        moved = ops.clip(x.p + self.share(x.p) * step, 0.0, 1.0)
        return self.change(x, p=moved - x.p, delay=delay - x.delay)

    def signal(self, x, seen):
        """Drop a packet with probability p, or mark it."""
        return Signal(mark=x.p) if self.ecn else Signal(drop=x.p)
