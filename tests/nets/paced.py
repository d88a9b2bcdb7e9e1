"""A law of one's own whose rules go with time: growth and memory are by the second."""

from fluidcc.laws import AbstractWindowLaw, ops, param, state


class Pacer(AbstractWindowLaw):
    """Adds a packet every so often, and gives up more the more marks there were of late."""

    name = "pacer"
    source = "an example of rules that go with time"
    reaction = "once_per_rtt"
    recovery = "newreno"
    heard = state(0.0, r"\mu", unit="1", doc="mean share of marks", within="[0, 1]")
    pace: float = param(20.0, "a", unit="packet/s", doc="growth", within="(0, inf)")
    memory: float = param(0.5, "T_m", unit="s", doc="memory of marks", within="(0, inf)")
    share: float = param(0.3, "b", unit="1", doc="share given up at least", within="(0, 0.5)")

    def on_ack(self, s, ack):
        """Grow with time, not with packets; a gap longer than a round trip counts as one."""
        return self.change(s, window=self.pace * ops.minimum(ack.elapsed, ack.rtt))

    def on_mark(self, s, ack):
        """Give up a share that rises with the marks of late."""
        share = self.share + (0.5 - self.share) * s.heard
        return self.change(s, window=-share * s.window)

    def observe(self, s, ack):
        """Remember the share of marks."""
        moved = 1 - ops.exp(-ack.elapsed / self.memory)
        return self.change(s, heard=moved * (ack.marked - s.heard))
