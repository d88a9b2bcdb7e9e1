"""CUBIC with a target for each acknowledgement: RFC 9438."""

from fluidcc.laws import AbstractWindowLaw, ops, param, state


class Cubic(AbstractWindowLaw):
    """Window along a cubic in the time since the last reduction."""

    name = "cubic_target"
    source = "RFC 9438"
    reaction = "once_per_rtt"
    recovery = "sack"
    w_max = state(10.0, r"\hat W", unit="packet", doc="window before the last reduction")
    epoch = state(0.0, "E", unit="s", doc="time since the last reduction")
    c: float = param(0.4, "c", unit="packet/s^3", doc="scale of the growth", within="(0, inf)")
    beta: float = param(0.7, r"\beta", unit="1", doc="share kept", within="(0, 1)")

    def on_ack(self, s, ack):
        k = (s.w_max * (1 - self.beta) / self.c) ** (1 / 3)
        t = s.epoch + ack.rtt
        target = self.c * (t - k) ** 3 + s.w_max
        target = ops.clip(target, s.window, 1.5 * s.window)
        a = 3 * (1 - self.beta) / (1 + self.beta)
        reno = self.beta * s.w_max + a * s.epoch / ack.rtt
        grow = ops.maximum(target, reno) - s.window
        return self.change(
            s, window=ack.count * ops.maximum(grow, 0.0) / s.window, epoch=ack.elapsed
        )

    def on_mark(self, s, ack):
        return self.change(
            s, window=-(1 - self.beta) * s.window, w_max=s.window - s.w_max, epoch=-s.epoch
        )
