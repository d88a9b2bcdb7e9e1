"""Laws with one fault each, which the battery must name; files that cannot be read are texts."""

import random
from typing import NamedTuple

import jax
import numpy as np
import sympy as sp

from fluidcc.laws import AbstractMarking, AbstractQueueLaw, AbstractWindowLaw, Signal, ops, param
from fluidcc.laws.window.reno import Reno

CALLS: list[float] = []
OTHER = Reno(max_window=50.0)


class AbstractSound(AbstractWindowLaw):
    """Nothing is wrong with this."""

    source = "tests"
    reaction = "once_per_rtt"
    recovery = "newreno"
    b: float = param(0.5, "b", unit="1", doc="share given up", within="(0, 1)")

    def on_ack(self, s, ack):
        return ack.count / s

    def on_mark(self, s, ack):
        return -self.b * s


class BranchOnState(AbstractSound):
    name = "branch_on_state"

    def on_ack(self, s, ack):
        if s > 10:
            return ack.count / s
        return 2 * ack.count / s


class Raises(AbstractSound):
    name = "raises"

    def on_mark(self, s, ack):
        return self.b * s


class NewWindow(AbstractSound):
    name = "new_window"

    def on_mark(self, s, ack):
        return (1 - self.b) * s


class NewWindowOnAck(AbstractSound):
    name = "new_window_on_ack"

    def on_ack(self, s, ack):
        return s + ack.count / s


class ForgotCount(AbstractSound):
    name = "forgot_count"

    def on_ack(self, s, ack):
        return 1 / s


class Root(AbstractQueueLaw):
    name = "root"
    source = "tests"
    at: float = param(30.0, "T", unit="packet", doc="queue marked for certain", within="(0, inf)")

    def signal(self, x, seen):
        return Signal(mark=ops.minimum(ops.sqrt(seen.queue / self.at), 1.0))


class ReadsMore(AbstractSound):
    name = "reads_more"

    def on_ack(self, s, ack):
        return ack.count / (s + ack.queue)


class ReadsOther(AbstractSound):
    name = "reads_other"

    def on_ack(self, s, ack):
        return ack.count * OTHER.max_window / 50.0 / s


class Random(AbstractSound):
    name = "random"

    def on_mark(self, s, ack):
        return -s * random.random()


class Remembers(AbstractSound):
    name = "remembers"

    def on_mark(self, s, ack):
        CALLS.append(1.0)
        return -self.b * s


class Assigns(AbstractSound):
    name = "assigns"

    def on_mark(self, s, ack):
        self.last = s
        return -self.b * s


class Nothing(AbstractSound):
    name = "nothing"

    def on_mark(self, s, ack):
        self.b * s


class Pair(AbstractSound):
    name = "pair"

    def on_ack(self, s, ack):
        return ack.count / s, 0.0


class BareProbability(AbstractQueueLaw):
    name = "bare_probability"
    source = "tests"

    def signal(self, x, seen):
        return ops.clip(seen.queue / 100, 0.0, 1.0)


class WrongSlope(AbstractSound):
    name = "wrong_slope"

    def on_mark(self, s, ack):
        held = s if isinstance(s, sp.Basic | float) else jax.lax.stop_gradient(s)
        return -self.b * held


class WithNumPy(AbstractSound):
    name = "with_numpy"

    def on_mark(self, s, ack):
        return float(-self.b * np.sqrt(s))


class TooLikely(AbstractQueueLaw):
    name = "too_likely"
    source = "tests"

    def signal(self, x, seen):
        return Signal(mark=seen.queue / 100)


class UnstatedCorner(AbstractQueueLaw):
    name = "unstated_corner"
    source = "tests"

    def signal(self, x, seen):
        return Signal(mark=ops.clip((seen.queue - 20) / 100, 0.0, 1.0))


class OnePacketAtATime(AbstractQueueLaw):
    name = "one_packet"
    source = "tests"
    w: float = param(0.1, "w", unit="1", doc="weight of a sample", within="(0, 1)")

    def start(self, average):
        return average

    def average(self, x, queue):
        return x

    def on_arrival(self, x, seen):
        return seen.count * self.w * (seen.queue - x)

    def signal(self, x, seen):
        return Signal(mark=ops.clip(x / 1000, 0.0, 1.0))

    def kinks(self, x, queue):
        return (x - 1000,)


class Ticking(NamedTuple):
    p: float


class NotHeld(AbstractQueueLaw):
    name = "not_held"
    source = "tests"
    symbols = ("p",)
    period = "interval"
    interval: float = param(0.1, "D", unit="s", doc="between ticks", within="(0, inf)")

    def start(self, average):
        return Ticking(0.0)

    def on_tick(self, x, seen):
        return Ticking(0.01 * (seen.queue - 20.0))

    def signal(self, x, seen):
        return Signal(mark=x.p)


class BranchOnProbability(AbstractMarking):
    name = "branch_on_probability"
    source = "tests"

    def probability(self, p, window):
        return p / 2 if p > 0.5 else p


FAULTS: list[tuple[type, str, tuple[str, ...]]] = [
    (BranchOnState, "branches", ("on_ack (line", "`if s > 10:`", "ops.where(condition, yes, no)")),
    (BranchOnProbability, "branches", ("probability", "p > 0.5", "ops.where(condition, yes, no)")),
    (Raises, "direction", ("on_mark", "raises the window", "windows grow without bound")),
    (NewWindow, "direction", ("on_mark", "raises the window", "returns the change, here -")),
    (NewWindowOnAck, "no event", ("on_ack", "without packets or time", "the new state")),
    (ForgotCount, "no event", ("on_ack", "`ack.count * ...`")),
    (Root, "derivatives", ("signal at", "q = 0", "slope in q is not finite", "guard")),
    (ReadsMore, "results", ("`return ack.count / (s + ack.queue)`", "reads 'queue', but Ack tells",
                            "count, elapsed, rtt, load, marked")),
    (ReadsOther, "results", ("reads OTHER", "make them parameters of this law")),
    (Random, "results", ("on_mark", "for the same numbers", "chance belongs to the engine")),
    (Remembers, "results", ("on_mark", "changes CALLS outside of its state")),
    (Assigns, "results", ("`self.last = s`", "a law keeps nothing itself")),
    (Nothing, "results", ("returns nothing: is `return` missing?",)),
    (Pair, "results", ("returns (0.125, 0.0), expected a change", "one number")),
    (BareProbability, "results", ("returns 0.4, expected a Signal(mark=..., drop=...",)),
    (WrongSlope, "derivatives", ("the slope in W is 0 by JAX, -", "by SymPy")),
    (WithNumPy, "branches", ("on_mark (line", "np.sqrt(s)", "takes floats alone", "`ops`")),
    (TooLikely, "probabilities", ("signal at q = ", "no probability")),
    (UnstatedCorner, "declarations", ("bends between queues of 19.5 and 20.5", "kinks()")),
    (OnePacketAtATime, "parts", ("on_arrival", "all at once", "(1 - (1 - w) ** seen.count)")),
    (NotHeld, "declarations", ("held = False", "write `held = True`")),
    (NotHeld, "probabilities", ("on_tick", "takes p to", "ops.clip(new, 0.0, 1.0) - old")),
]  # fmt: skip
"""The law, the check that fails, and what it has to say."""
