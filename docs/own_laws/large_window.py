"""HighSpeed TCP (RFC 3649), in round numbers."""

from fluidcc.laws import AbstractWindowLaw, check_order, ops, param


class LargeWindow(AbstractWindowLaw):
    """TCP up to w_low packets; beyond it grows faster and gives up less the larger it is."""

    name = "large_window"
    source = "Floyd (2003), RFC 3649, section 7"
    reaction = "once_per_rtt"  # which marks count: at most one a round trip
    recovery = "sack"  # how the packet sender repairs losses
    w_low: float = param(38.0, r"W_l", unit="packet", doc="TCP up to here", within="[2, inf)")
    w_high: float = param(83e3, r"W_h", unit="packet", doc="where b_high is", within="(2, inf)")
    b_high: float = param(0.1, r"b_h", unit="1", doc="share given up there", within="(0, 0.5)")

    def check(self):
        """Refuse parameters that do not fit together."""
        check_order(self, "w_low", "w_high")

    def share(self, w):
        """b(w): from 1/2 at w_low to b_high at w_high, by the logarithm of w."""
        x = ops.log(ops.maximum(w, self.w_low) / self.w_low) / ops.log(self.w_high / self.w_low)
        return ops.maximum(0.5 - (0.5 - self.b_high) * x, self.b_high)

    def on_ack(self, s, ack):
        """Change of the window s on clean ACKs of ack.count packets: a(w)/w for each."""
        b = self.share(s)
        gain = 2 * 0.078 * s**0.8 * b / (2 - b)  # a(w): RFC 3649 has p = 0.078/w^1.2
        return ack.count * ops.where(s > self.w_low, gain, 1.0) / s

    def on_mark(self, s, ack):
        """Change of the window on one mark that counts; on a loss the same."""
        return -self.share(s) * s
