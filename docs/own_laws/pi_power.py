"""A proportional-integral controller of the queueing delay whose output has a power."""

from fluidcc.laws import AbstractQueueLaw, Signal, ops, param, state


class PIPower(AbstractQueueLaw):
    """Marks with a power of p; each tick moves p by the delay and by its growth."""

    name = "pi_power"
    source = "De Schepper, Briscoe and White (2023), RFC 9332, appendix A, for a power of 2"
    p = state(0.0, "p", unit="1", doc="before it is squared", within="[0, 1]")
    delay = state(0.0, r"\tau", unit="s", doc="at the last tick", within="[0, inf)")
    zero_order_hold = True  # the signal changes at ticks alone
    target: float = param(0.015, r"\tau_0", unit="s", doc="delay aimed at", within="(0, inf)")
    alpha: float = param(0.16, r"\alpha", unit="1/s", doc="gain of the delay", within="(0, inf)")
    beta: float = param(3.2, r"\beta", unit="1/s", doc="gain of its growth", within="(0, inf)")
    interval: float = param(0.016, "D", unit="s", doc="time between ticks", within="(0, inf)")
    power: float = param(2.0, "u", unit="1", doc="power of p", within="[1, inf)")

    def period(self):
        """Time between ticks [s]."""
        return self.interval

    def on_tick(self, x, seen):
        """Change of the memory x at a tick."""
        delay = seen.sojourn
        moved = x.p + self.alpha * (delay - self.target) + self.beta * (delay - x.delay)
        return self.change(x, p=ops.clip(moved, 0.0, 1.0) - x.p, delay=delay - x.delay)

    def signal(self, x, seen):
        """Signal of the queue to a packet."""
        return Signal(mark=x.p**self.power)
