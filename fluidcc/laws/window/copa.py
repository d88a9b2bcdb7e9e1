"""The window law of Copa."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractWindowLaw, Ack, State
from fluidcc.laws.parameters import choice, param, state
from fluidcc.ops import Num

_STEADY = 3.0  # round trips in one direction, after which the velocity doubles


class Copa(AbstractWindowLaw):
    """Move the window towards the rate 1/(delta d), faster the longer it moves in one direction.

    Source: Arun and Balakrishnan (2018), section 2.1, in the default mode. The velocity is decided
    upon at ticks a round trip apart. The paper's d is the least queueing delay of the last half
    round trip: here it is that of each packet, or with `standing` the least since the last tick,
    half a round trip in the mean. The propagation round trip is known exactly. Left out are the
    mode that competes with full buffers, pacing, and slow start, which the velocity replaces. No
    loss or mark changes the window.
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
    least = state(
        0.0, r"\check d", unit="s", doc="least queueing delay since the last tick",
        within="[0, inf)", when="standing",
    )  # fmt: skip
    delta: Num = param(
        0.5,
        r"\delta_0",
        unit="1/packet",
        doc="1 over the packets kept in queues",
        within="(0, inf)",
    )
    standing: bool = choice(
        False, doc="judge by the least delay since the last tick, not by each one"
    )

    def start(self, w: Num) -> State:
        """As after a round trip without a change."""
        return super().start(w)._replace(past=w)

    def on_ack(self, s: State, ack: Ack) -> State:
        """Grow while the rate is at most the target, else shrink, by v/delta in a round trip."""
        delay = s.least if self.standing else ack.delay
        round_trip = ack.rtt - ack.delay + delay
        step = ops.where(self.delta * s.window * delay <= round_trip, 1.0, -1.0)
        return self.change(s, window=ack.count * step * s.velocity / (self.delta * s.window))

    def on_mark(self, s: State, ack: Ack) -> State:
        """None."""
        return self.change(s)

    def observe(self, s: State, ack: Ack) -> State:
        """Keep the least delay."""
        if not self.standing:
            return self.change(s)
        return self.change(
            s, least=ops.minimum(ack.count, 1.0) * ops.minimum(ack.delay - s.least, 0.0)
        )

    def period(self, ack: Ack) -> Num:
        """A round trip."""
        return ack.rtt

    def on_tick(self, s: State, ack: Ack) -> State:
        """Double the velocity if the window has moved in one direction for long, or begin anew."""
        moved = s.window - s.past
        way = ops.where(moved > 0, 1.0, ops.where(moved < 0, -1.0, 0.0))
        steady = ops.where(way * s.steady > 0, s.steady + way, way)
        doubled = ops.where(way * steady > _STEADY, 2 * s.velocity, s.velocity)
        velocity = ops.where(way * s.steady > 0, doubled, 1.0)
        change = self.change(
            s, velocity=velocity - s.velocity, steady=steady - s.steady, past=moved
        )
        return change._replace(least=ack.delay - s.least) if self.standing else change

    def slow_start(self, s: State) -> Num:
        """None: windows shrink without a mark, and slow start would undo it."""
        return 0
