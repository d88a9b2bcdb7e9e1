"""HyStart++: a slow start that ends as round trips grow, for window laws that have it."""

from typing import Any

from fluidcc import ops
from fluidcc.laws.law import AbstractWindowLaw, Ack, State
from fluidcc.laws.parameters import EVENTS, choice, state
from fluidcc.ops import Num

SHORTEST, LONGEST = 0.004, 0.016  # s: MIN_RTT_THRESH and MAX_RTT_THRESH
DIVISOR = 8  # MIN_RTT_DIVISOR
SAMPLES = 8  # N_RTT_SAMPLE
SLOWER = 4  # CSS_GROWTH_DIVISOR
ROUNDS = 5  # CSS_ROUNDS


class AbstractHyStart(AbstractWindowLaw):
    """A window law whose first slow start ends by HyStart++ if `hystart` is true.

    Source: RFC 9406, sections 4.2 and 4.3. Slow start becomes conservative if the shortest round
    trip of a round is longer than that of the round before by an eighth, 4 to 16 ms: the window
    then grows by a quarter as much. After five such rounds it grows by the law alone; if a round
    trip is shorter than the one that was too long, slow start goes on. A mark or a loss ends all
    of it for good. A round ends as a packet is acknowledged that was sent after it began. The fluid
    model has none of it: nothing there moves before a mark or a loss.

    A law of one's own derives from this class, returns `self.opening(s, ack, change)` from `on_ack`
    and adds `**self.ended(s)` to the changes by `on_mark` and `on_loss`.
    """

    age = state(
        0.0, "a", unit="s", doc="time since the round began", within="[0, inf)", when="hystart"
    )
    samples = state(
        0.0, "S", unit="packet", doc="round trips measured in it", within="[0, inf)",
        when="hystart",
    )  # fmt: skip
    lowest = state(
        0.0, "R_1", unit="s", doc="the shortest of them; 0 before the first", within="[0, inf)",
        when="hystart",
    )  # fmt: skip
    last = state(
        0.0, "R_2", unit="s", doc="the shortest of the round before; 0 if there is none",
        within="[0, inf)", when="hystart",
    )  # fmt: skip
    longer = state(
        0.0, "R_3", unit="s", doc="the one that was too long", within="[0, inf)", when="hystart"
    )
    conservative = state(
        0.0, "k", unit="1", doc="rounds of conservative slow start begun; beyond 5 it is over",
        within="[0, 6]", when="hystart",
    )  # fmt: skip
    over = state(
        0.0, "o", unit="1", doc="1 after the first mark or loss", within="[0, 1]", when="hystart"
    )
    hystart: bool = choice(False, doc="the first slow start is HyStart++, RFC 9406", engines=EVENTS)

    def observe(self, s: State, ack: Ack) -> State:
        """Measure rounds and their shortest round trips: RFC 9406, section 4.2."""
        if not self.hystart:
            return super().observe(s, ack)
        age = s.age + ack.elapsed
        ends = age >= ack.rtt  # this packet was sent after the round began
        samples = ops.where(ends, 0.0, s.samples) + ack.count
        before = ops.where(ends, 0.0, s.lowest)
        lowest = ops.where(before > 0, ops.minimum(before, ack.rtt), ack.rtt)
        last = ops.where(ends, s.lowest, s.last)
        rounds = s.conservative + ops.where(ends & (s.conservative > 0), 1.0, 0.0)
        enough = samples >= SAMPLES
        threshold = ops.clip(last / DIVISOR, SHORTEST, LONGEST)
        slows = enough & (rounds < 1) & (last > 0) & (lowest >= last + threshold)
        resumes = enough & (rounds > 0) & (rounds <= ROUNDS) & (lowest < s.longer)
        now = s._replace(
            age=ops.where(ends, 0.0, age),
            samples=samples,
            lowest=lowest,
            last=last,
            longer=ops.where(slows, lowest, s.longer),
            conservative=ops.where(slows, 1.0, ops.where(resumes, 0.0, rounds)),
        )
        acts = (ack.count > 0) & (s.over < 0.5) & (s.conservative <= ROUNDS)
        return type(s)(*(ops.where(acts, b - a, 0.0 * a) for a, b in zip(s, now, strict=True)))

    def slow_start(self, s: State) -> Num:
        """No while it is conservative, and after that."""
        return ops.where(s.conservative > 0, 0, 1) if self.hystart else super().slow_start(s)

    def opening(self, s: State, ack: Ack, change: State) -> State:
        """The change by acknowledgements: of conservative slow start, or else that of the law."""
        if not self.hystart:
            return change
        slow = self.change(s, window=ack.count / SLOWER)
        on = (s.conservative > 0) & (s.conservative <= ROUNDS)
        return type(s)(*(ops.where(on, a, b) for a, b in zip(slow, change, strict=True)))

    def ended(self, s: State) -> dict[str, Any]:
        """Changes by a mark or a loss besides those of the law: HyStart++ is over."""
        if not self.hystart:
            return {}
        names = ("age", "samples", "lowest", "last", "longer", "conservative")
        return {"over": 1.0 - s.over} | {name: -getattr(s, name) for name in names}
