"""A law of one's own whose rules go with time: growth and memory are by the second."""

from typing import NamedTuple

from fluidcc.laws import AbstractWindowLaw, ops, param


class Paced(NamedTuple):
    """State of a paced sender."""

    window: float  # packets
    heard: float  # mean share of marks


class Pacer(AbstractWindowLaw):
    """Adds a packet every so often, and gives up more the more marks there were of late."""

    name = "pacer"
    source = "an example of rules that go with time"
    symbols = ("W", r"\mu")
    reaction = "once_per_rtt"
    recovery = "newreno"
    pace: float = param(20.0, "a", unit="packet/s", doc="growth", within="(0, inf)")
    memory: float = param(0.5, "T_m", unit="s", doc="memory of marks", within="(0, inf)")
    share: float = param(0.3, "b", unit="1", doc="share given up at least", within="(0, 0.5)")

    def start(self, w):
        """Window `w`, without a mark."""
        return Paced(w, 0.0 * w)

    def window(self, s):
        """The window."""
        return s.window

    def with_window(self, s, w):
        """Another window."""
        return s._replace(window=w)

    def on_ack(self, s, ack):
        """Grow with time, not with packets; a gap longer than a round trip counts as one."""
        return Paced(self.pace * ops.minimum(ack.elapsed, ack.rtt), 0.0 * s.heard)

    def on_mark(self, s, ack):
        """Give up a share that rises with the marks of late."""
        return Paced(-(self.share + (0.5 - self.share) * s.heard) * s.window, 0.0 * s.heard)

    def observe(self, s, ack):
        """Remember the share of marks."""
        moved = 1 - ops.exp(-ack.elapsed / self.memory)
        return Paced(0.0 * s.window, moved * (ack.marked - s.heard))
