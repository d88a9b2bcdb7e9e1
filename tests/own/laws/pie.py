"""PIE: RFC 8033 without its burst allowance."""

from fluidcc.laws import AbstractQueueLaw, Signal, ops, param, state


class PIE(AbstractQueueLaw):
    """Moves the probability by the delay and its growth, in steps that fall with it."""

    name = "pie"
    source = "RFC 8033, section 4.2"
    p = state(0.0, "p", unit="1", doc="probability", within="[0, 1]")
    delay = state(0.0, r"\tau", unit="s", doc="at the last tick", within="[0, inf)")
    period = "interval"
    zero_order_hold = True
    target: float = param(0.015, r"\tau_0", unit="s", doc="delay aimed at", within="(0, inf)")
    alpha: float = param(0.125, r"\alpha", unit="1/s", doc="gain of the delay", within="(0, inf)")
    beta: float = param(1.25, r"\beta", unit="1/s", doc="gain of its growth", within="(0, inf)")
    interval: float = param(0.015, "D", unit="s", doc="time between ticks", within="(0, inf)")

    def on_tick(self, x, seen):
        delay = seen.queue / seen.capacity
        step = self.alpha * (delay - self.target) + self.beta * (delay - x.delay)
        scale = 1.0
        for bound, share in ((0.1, 2), (1e-2, 8), (1e-3, 32), (1e-4, 128), (1e-5, 512)):
            scale = ops.where(x.p < bound, 1 / share, scale)
        step = ops.where(x.p > 0.1, ops.minimum(step * scale, 0.02), step * scale)
        moved = ops.where((delay <= 0) & (x.delay <= 0), 0.98 * x.p, x.p + step)
        return self.change(x, p=ops.clip(moved, 0.0, 1.0) - x.p, delay=delay - x.delay)

    def signal(self, x, seen):
        return Signal(mark=x.p)
