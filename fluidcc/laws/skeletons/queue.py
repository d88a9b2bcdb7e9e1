"""My law: what it is for, and who proposed it."""

from fluidcc.laws import AbstractQueueLaw, Signal, ops, param, state


class MyLaw(AbstractQueueLaw):
    """Marks with a probability that grows with the average queue."""

    name = "my_law"  # in a scenario: queue = { law = "my_law" }
    source = "author (year), equation"

    # A number that the law remembers: where it starts (a number, the name of a parameter, or
    # "average"), its symbol in LaTeX, unit, meaning and range. It is `x` below; of several numbers
    # each is x.NAME, and rules return self.change(x, NAME=...).
    v = state("average", "v", unit="packet", doc="average queue", within="[0, inf)")

    # A parameter has a default, a symbol, a unit ("1" for a pure number), a meaning and a range.
    # Scenarios set it by its name: queue = { law = "my_law", least = 10 }.
    # Symbols that are taken: TAKEN_SYMBOLS.
    least: float = param(5.0, "q_0", unit="packet", doc="average without marks", within="[0, inf)")
    slope: float = param(5e-4, "k", unit="1/packet", doc="marks per packet", within="(0, inf)")
    weight: float = param(0.002, "w", unit="1", doc="of a packet in the average", within="(0, 1)")

    def on_arrival(self, x, seen):
        """The change of the memory by seen.count packets that found seen.queue packets."""
        # Ten packets at once change it as ten one after another.
        return (1 - (1 - self.weight) ** seen.count) * (seen.queue - x)

    def signal(self, x, seen):
        """The probability to mark a packet; drop=... is that to drop it."""
        return Signal(mark=ops.clip(self.slope * (x - self.least), 0.0, 1.0))

    def breakpoints(self, x, seen):
        """Numbers that are 0 where the signal has a corner or a jump."""
        return (x - self.least, self.slope * (x - self.least) - 1)

    def average(self, x, queue):
        """The average queue that results show."""
        return x

    # A law with a timer has period(self), the time between ticks [s], and on_tick(self, x, seen),
    # the change at one; zero_order_hold = True if the signal changes at ticks alone.
