"""The window law of Copa."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractWindowLaw, Ack, State
from fluidcc.laws.parameters import param, state
from fluidcc.ops import Num

_STEADY = 3.0  # round trips in one direction, after which the velocity doubles


class Copa(AbstractWindowLaw):
    """Move the window towards the rate 1/(delta d), faster the longer it moves in one direction.

    Source: Arun and Balakrishnan (2018), section 2.1, in the default mode. The velocity is decided
    upon once in a round trip. Left out are the mode that competes with full buffers, pacing, slow
    start, which the velocity replaces, and the least delay of the last half round trip: this law
    has that of each packet, beyond the propagation round trip, known exactly. A loss changes
    nothing, as the rule does not read it.
    """

    name: ClassVar[str] = "copa"
    source: ClassVar[str] = "arun2018, section 2.1"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "sack"
    reads: ClassVar[tuple[str, ...]] = ("delay",)
    velocity = state(1.0, "v", unit="1", doc="velocity", within="[1, inf)")
    steady = state(
        0.0,
        "k",
        unit="1",
        doc="round trips in one direction: below 0 if down",
        within="(-inf, inf)",
    )
    past = state(0.0, r"\hat W", unit="packet", doc="window a round trip before", within="[0, inf)")
    delta: Num = param(
        0.5, r"\delta_0", unit="1/packet", doc="1 over the packets kept in queues", within="(0, inf)"
    )

    def start(self, w: Num) -> State:
        """As after a round trip without a change."""
        return super().start(w)._replace(past=w)

    def on_ack(self, s: State, ack: Ack) -> State:
        """Grow while the rate is below the target, else shrink, by v/delta in a round trip."""
        queued = s.window * ack.delay / ack.rtt
        step = ops.where(self.delta * queued <= 1, 1.0, -1.0)
        return self.change(s, window=ack.count * step * s.velocity / (self.delta * s.window))

    def on_mark(self, s: State, ack: Ack) -> State:
        """None."""
        return self.change(s)

    def period(self, ack: Ack) -> Num:
        """A round trip."""
        return ack.rtt

    def on_tick(self, s: State, ack: Ack) -> State:
        """Double the velocity if the window has moved in one direction for long, else restart."""
        moved = s.window - s.past
        way = ops.where(moved > 0, 1.0, ops.where(moved < 0, -1.0, 0.0))
        steady = ops.where(way * s.steady > 0, s.steady + way, way)
        doubled = ops.where(way * steady > _STEADY, 2 * s.velocity, s.velocity)
        velocity = ops.where(way * s.steady > 0, doubled, 1.0)
        return self.change(s, velocity=velocity - s.velocity, steady=steady - s.steady, past=moved)

    def slow_start(self, s: State) -> Num:
        """None: windows shrink without a mark, and slow start would undo it."""
        return 0
