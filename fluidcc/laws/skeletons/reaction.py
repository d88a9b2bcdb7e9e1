"""My law: what it is for, and who proposed it."""

from fluidcc.laws import AbstractReaction, Shares, ops, param


class MyLaw(AbstractReaction):
    """Ignores marks for `trips` round trips after a reaction."""

    name = "my_law"  # in a scenario: window = { law = "newreno", reaction = "my_law" }
    source = "author (year), equation"

    # A parameter has a default, a symbol in LaTeX, a unit ("1" for a pure number), a meaning and a
    # range.
    # Symbols that are taken: TAKEN_SYMBOLS.
    trips: float = param(1.0, "k", unit="1", doc="round trips without one", within="(0, inf)")

    def ready(self, since):
        """May the sender react to this mark? 1 or 0."""
        return ops.where(since.time > self.trips * since.round_trip, 1, 0)

    def growing(self, since, marked):
        """May the window grow on this acknowledgement? 1 or 0."""
        return 1

    def shares(self, p, w, rtt):
        """The means of both for marks of probability p and w packets in a round trip rtt [s]."""
        # After a reaction trips * w packets pass, and 1/p more up to the next mark.
        return Shares(growing=1.0, reacting=p / (1 + self.trips * w * p))
