"""CoDel (RFC 8289) as a rate of signals that rises as long as the delay is above the target."""

from fluidcc.laws import AbstractQueueLaw, Signal, ops, param, state


class CoDelRate(AbstractQueueLaw):
    """Signals sqrt(count)/interval times a second once packets have waited too long for a while."""

    name = "codel_rate"
    source = "RFC 8289"
    count = state(0.0, "k", unit="1", doc="signals in this episode", within="[0, inf)")
    above = state(0.0, "a", unit="s", doc="time above the target", within="[0, inf)")
    target: float = param(0.005, r"\tau_0", unit="s", doc="delay accepted", within="(0, inf)")
    interval: float = param(0.1, "I", unit="s", doc="time to react", within="(0, inf)")

    def on_departure(self, x, seen):
        """The time above the target grows; the first packet below it ends the episode."""
        high = seen.sojourn > self.target
        one = ops.minimum(seen.count, 1.0)  # the first of them
        return self.change(
            x,
            above=ops.where(high, seen.elapsed, -one * x.above),
            count=ops.where(high, 0.0, -one * x.count),
        )

    def on_signal(self, x, seen):
        """The next one follows sooner."""
        return self.change(x, count=1.0)

    def signal(self, x, seen):
        """The share of the packets that gives this rate of signals."""
        rate = ops.sqrt(x.count + 1) / self.interval
        p = ops.where(x.above > self.interval, rate / seen.capacity, 0.0)
        return Signal(mark=ops.minimum(p, 1.0))

    def breakpoints(self, x, seen):
        """The delay meets the target; it has been above it for an interval."""
        return (seen.sojourn - self.target, x.above - self.interval)
