"""My law: what it is for, and who proposed it."""

from fluidcc.laws import AbstractWindowLaw, param


class MyLaw(AbstractWindowLaw):
    """Adds `a` packets in a round trip, and gives up a share `b` of the window at a mark."""

    name = "my_law"  # in a scenario: window = { law = "my_law" }
    source = "author (year), equation"
    reaction = "once_per_rtt"  # the marks that count: per_mark, once_per_rtt, refractory or pause
    recovery = "newreno"  # how the packet sender repairs losses: reno, newreno or sack

    # A parameter has a default, a symbol in LaTeX, a unit ("1" for a pure number), a meaning and a
    # range. Scenarios set it by its name: window = { law = "my_law", b = 0.2 }.
    # Symbols that are taken: TAKEN_SYMBOLS.
    a: float = param(1.0, "a", unit="packet", doc="growth per round trip", within="(0, inf)")
    b: float = param(0.5, "b", unit="1", doc="share given up at a mark", within="(0, 1)")

    # A law that remembers a number besides the window declares it, for example
    #     alpha = state(1.0, r"\alpha", unit="1", doc="share of marks", within="[0, 1]")
    # Then the window is s.window and the number s.alpha, and rules return
    # self.change(s, window=..., alpha=...).

    def on_ack(self, s, ack):
        """The change of the window s [packet] by ack.count clean acknowledgements."""
        # It is the change, not the new window, and 0 for no packets in no time. Functions come
        # from `ops` (from fluidcc.laws import ops): ops.where(s > 10, yes, no) in place of `if`.
        return ack.count * self.a / s

    def on_mark(self, s, ack):
        """The change by one mark that counts; on_loss does the same unless it is written too."""
        return -self.b * s

    # Other rules, if the law needs them: on_loss, observe, slow_start, period and on_tick.
