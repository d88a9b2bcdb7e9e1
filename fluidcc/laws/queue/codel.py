"""CoDel: signals at ever shorter times while the delay stays above a target."""

import dataclasses
from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractQueueLaw, Arrival, Signal, State
from fluidcc.laws.parameters import choice, param, state
from fluidcc.module import static
from fluidcc.ops import Num

_RECENT = 16.0  # intervals after the last signal in which a new episode goes on where it was
_MOMENT = 1e-9  # s: `above` of the first packet above the target, which is more than 0


class CoDel(AbstractQueueLaw):
    """Signals once the delay of leaving packets has been above the target for an interval; the next
    follows after interval / sqrt(count). RFC 8289, sections 3 to 5.

    An episode of signals ends with the first packet below the target, or that leaves no more than
    one behind. The next one has two signals less than that to its credit, if it is near. In the
    mean signals come at the rate sqrt(count) / interval, without the one that an episode begins
    with; packets get theirs at the RFC's times (`by_packet`).
    """

    name: ClassVar[str] = "codel"
    source: ClassVar[str] = "rfc8289, sections 3 to 5"
    above = state(0.0, "a", unit="s", doc="time above the target", within="[0, inf)")
    count = state(0.0, "k", unit="1", doc="signals in this episode", within="[0, inf)")
    credit = state(0.0, "b", unit="1", doc="signals in the one before", within="[0, inf)")
    ended = state(0.0, r"b_1", unit="1", doc="signals in the one that ended", within="[0, inf)")
    left = state(0.0, r"\ell", unit="s", doc="time to the next signal")
    target: Num = param(0.005, r"\tau_0", unit="s", doc="delay accepted", within="(0, inf)")
    interval: Num = param(0.1, "I", unit="s", doc="time above it that counts", within="(0, inf)")
    ecn: bool = choice(True, doc="mark packets in place of dropping them")
    by_packet: bool = static(False)

    def spacing(self, x: State) -> Num:
        """Time from the next signal to the one after it: the RFC's control law [s]."""
        count = ops.maximum(x.credit - 2, 0.0) + x.count + 1
        return self.interval / ops.sqrt(ops.maximum(count, 0.5))  # a step may overshoot 1

    def on_departure(self, x: State, seen: Arrival) -> State:
        """Count the time above the target; the first packet below it ends the episode."""
        one, after = ops.minimum(seen.count, 1.0), x.above + seen.elapsed
        high = (seen.sojourn >= self.target) & (seen.queue > 1)
        lasts = high & (after >= self.interval)
        recent = seen.elapsed - x.left < _RECENT * self.interval
        kept = ops.where(recent, x.ended, 0.0)
        if self.by_packet:
            longer = ops.where(x.above > 0, seen.elapsed, _MOMENT * one)
            begins = lasts & (x.above < self.interval)
            left = ops.where(begins, -x.left, -seen.elapsed)
        else:
            longer, left = seen.elapsed, -seen.elapsed - ops.where(lasts, x.left * one, 0.0)
        above = ops.where(high, longer, -x.above * one)
        count = ops.where(high, 0.0, -x.count)
        credit = ops.where(high, ops.where(lasts, kept, 0.0), -x.credit)
        ended = ops.where(high, ops.where(lasts, 0.0, kept) - x.ended, x.count)
        return self.change(
            x, above=above, count=count * one, credit=credit * one, ended=ended * one, left=left
        )

    def on_signal(self, x: State, seen: Arrival) -> State:
        """Count it, and set the time of the next one."""
        return self.change(x, count=1.0, left=self.spacing(x))

    def signal(self, x: State, seen: Arrival) -> Signal:
        """Mark a packet, or drop it without ECN: one that is due, or in the mean the share that
        gives the rate of signals.
        """
        on = x.above >= self.interval
        if self.by_packet:
            share = ops.where(on & (x.left <= 0), 1 / ops.maximum(seen.count, 1.0), 0.0)
        else:
            share = ops.where(on, ops.minimum(seen.elapsed / self.spacing(x), 1.0), 0.0)
        return Signal(mark=share) if self.ecn else Signal(drop=share)

    def breakpoints(self, x: State, seen: Arrival) -> tuple[Num, ...]:
        """The delay meets the target; it has been above it for an interval."""
        return (seen.sojourn - self.target, x.above - self.interval)

    def in_packets(self, buffer: float) -> "CoDel":
        """Signal at the times that the law sets."""
        return dataclasses.replace(self, by_packet=True)
