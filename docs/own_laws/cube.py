"""The cube of CUBIC: the window follows the time since the last reduction (RFC 9438)."""

from fluidcc.laws import AbstractWindowLaw, ops, param, state


class Cube(AbstractWindowLaw):
    """W(t) = C (t - K)^3 + W_max, without the region in which CUBIC is as slow as Reno."""

    name = "cube"
    source = "Xu, Ha, Rhee, Goel and Eggert (2023), RFC 9438, sections 4.2 and 4.6"
    reaction = "once_per_rtt"
    recovery = "sack"
    since = state(0.0, "t", unit="s", doc="time since the reduction", within="[0, inf)")
    last = state(10.0, r"W_l", unit="packet", doc="window before it", within="[0, inf)")
    c: float = param(0.4, "C", unit="packet/s^3", doc="scale of the growth", within="(0, inf)")
    beta: float = param(0.7, r"\beta", unit="1", doc="share kept", within="(0, 1)")

    def on_ack(self, s, ack):
        """The growth of the curve in the ack.elapsed seconds since the last acknowledgement."""
        k = (ops.maximum(s.last, 1e-3) * (1 - self.beta) / self.c) ** (1 / 3)
        x = s.since - k
        growth = self.c * ((x + ack.elapsed) ** 3 - x**3)
        return self.change(s, window=growth, since=ack.elapsed)

    def on_mark(self, s, ack):
        """Keep the share beta, remember the window, and begin a new curve."""
        return self.change(
            s, window=-(1 - self.beta) * s.window, since=-s.since, last=s.window - s.last
        )
