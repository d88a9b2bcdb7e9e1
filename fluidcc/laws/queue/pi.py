"""Proportional-integral marking."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractQueueLaw, Arrival, Signal, State
from fluidcc.laws.parameters import param, state
from fluidcc.ops import Num


class PI(AbstractQueueLaw):
    """Marks by the queue's distance from a reference and by its sum. Hollot et al. (2001), IV.

    The controller K (s/z + 1)/s, sampled by the bilinear rule. The defaults are the published
    design, which prints the weights 1.822e-5 and 1.816e-5 of a sample and of the one before.
    """

    name: ClassVar[str] = "pi"
    source: ClassVar[str] = "hollot2001pi, section IV"
    zero_order_hold: ClassVar[bool] = True
    p = state(0.0, "p", unit="1", doc="marking probability", within="[0, 1]")
    before = state("average", "q_0", unit="packet", doc="queue at the last sample")
    k_pi: Num = param(
        9.64e-6, r"K_{\mathrm{PI}}", unit="1/(packet s)", doc="integral gain",
        within="(0, inf)",
    )  # fmt: skip
    z: Num = param(0.53, "z", unit="rad/s", doc="zero of the controller", within="(0, inf)")
    q_ref: Num = param(
        175.0, r"q_{\mathrm{ref}}", unit="packet", doc="target queue", within="[0, inf)"
    )
    interval: Num = param(1 / 160, "D", unit="s", doc="time between samples", within="(0, inf)")

    def check(self) -> None:
        """Raise ValueError where samples are too rare for the controller's zero."""
        super().check()
        z, interval = self.z, self.interval
        if isinstance(z, float | int) and isinstance(interval, float | int) and z * interval >= 2:
            raise ValueError(
                f"pi needs z * interval < 2, got {z!r} rad/s and {interval!r} s: sample more often"
            )

    @property
    def weights(self) -> tuple[Num, Num]:
        """Weights of a sample and of the one before, by the bilinear rule [1/packet]."""
        middle, half = self.k_pi / self.z, self.k_pi * self.interval / 2
        return middle + half, middle - half

    def period(self) -> Num:
        """Time between samples."""
        return self.interval

    def on_tick(self, x: State, seen: Arrival) -> State:
        """Move p by the errors of this sample and of the last, within [0, 1]."""
        new, old = self.weights
        p = x.p + new * (seen.queue - self.q_ref) - old * (x.before - self.q_ref)
        return self.change(x, p=ops.clip(p, 0.0, 1.0) - x.p, before=seen.queue - x.before)

    def signal(self, x: State, seen: Arrival) -> Signal:
        """Mark with probability p."""
        return Signal(mark=x.p)
