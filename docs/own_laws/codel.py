"""CoDel (RFC 8289) as a rate of signals that rises with the time above the target."""

from fluidcc.laws import AbstractQueueLaw, Signal, ops, param, state


class CoDel(AbstractQueueLaw):
    """Signals sqrt(count)/interval times a second while the delay is above the target."""

    name = "codel"
    source = "RFC 8289"
    count = state(0.0, "k", unit="1", doc="signals in this episode", within="[0, inf)")
    above = state(0.0, "a", unit="s", doc="time above the target", within="[0, inf)")
    target: float = param(0.005, r"\tau_0", unit="s", doc="delay accepted", within="(0, inf)")
    interval: float = param(0.1, "I", unit="s", doc="time to react", within="(0, inf)")

    def on_arrival(self, x, seen):
        """The time above the target grows, then the count; both fall back below it."""
        high = seen.queue / seen.capacity > self.target
        dropping = high & (x.above > self.interval)
        ramp = seen.elapsed * ops.sqrt(ops.maximum(x.count, 1.0)) / self.interval
        back = 1 - ops.exp(-seen.elapsed / self.interval)
        return self.change(
            x,
            above=ops.where(high, seen.elapsed, -x.above * back),
            count=ops.where(dropping, ramp, -x.count * back),
        )

    def signal(self, x, seen):
        """The share of the packets that gives this rate of signals."""
        rate = ops.sqrt(ops.maximum(x.count, 1e-9)) / self.interval
        high = seen.queue / seen.capacity > self.target
        p = ops.where(high & (x.above > self.interval), rate / seen.capacity, 0.0)
        return Signal(mark=ops.clip(p, 0.0, 1.0))

    def breakpoints(self, x, seen):
        """Signals begin when the delay has been above the target for an interval."""
        return (x.above - self.interval,)
