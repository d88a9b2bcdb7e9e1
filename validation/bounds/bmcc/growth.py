"""How loads and windows grow and fall by the rules of BMCC, Qazi et al. (2010)."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import sympy as sp

from fluidcc.laws.law import Ack
from fluidcc.laws.window.bmcc import BMCC
from fluidcc.ops import Num

from ...lab.bound import (
    ROUNDING,
    AbstractBound,
    Definitions,
    Identity,
    Judged,
    Point,
    Range,
    at_most,
    every,
    within,
)

_LAW = BMCC()
_BELOW = math.nextafter(1.0, 0.0)
SAMPLED, CONTINUOUS = "sampled once per t_p", "known at once"
CODED, EVERY = "eta_0 and above", "any load"
_MOMENT = 1e-4  # of t_p


def after(load: Num, elapsed: Num, *, law: BMCC = _LAW) -> Num:
    """The load after senders grew for `elapsed` seconds by what it was, at fixed round trips."""
    return load * (1 + law.on_ack(1.0, Ack(0.0, elapsed, elapsed, load)))


def _mild_symbols() -> tuple[BMCC, Any]:
    """The law with symbols, and a load between eta_0 and eta."""
    low, more, gap = sp.symbols("a b c", positive=True)
    law = BMCC(
        t_p=sp.Symbol("t_p", positive=True), kappa_2=sp.Symbol("k2", positive=True),
        lowest=low, mild=low + more + gap,
    )  # fmt: skip
    return law, low + more


class Loaded(NamedTuple):
    """A link's load factor, and turns of growth."""

    load: float
    steps: float = 1.0


class IncreaseMap(AbstractBound):
    """The load during multiplicative increase."""

    id: ClassVar[str] = "bmcc.increase_map"
    source: ClassVar[str] = "qazi2010, eqs 2 and 3"
    claims: ClassVar[tuple[str, ...]] = ("BMCC-06",)
    statement: ClassVar[str] = "the load comes to 1 - (1 - k2)^k (1 - f0) after k periods"
    hypotheses: ClassVar[tuple[str, ...]] = (
        "one bottleneck, all flows BMCC", "round trips do not change",
    )  # fmt: skip
    engine: ClassVar[str] = "rules"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType({"loads": (EVERY, CODED)})
    networks: ClassVar[tuple[str, ...]] = ("loads",)
    readings: ClassVar[tuple[Mapping[str, str], ...]] = every(axes)
    quick: ClassVar[int] = 120

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """Loads below eta."""
        low = float(_LAW.lowest) if definitions["loads"] == CODED else 0.01
        return {
            "load": Range(low, float(_LAW.mild) - 1e-9, low),
            "steps": Range(1.0, 8.0, 1.0, "whole"),
        }

    def subject(self, point: Point, definitions: Definitions) -> Loaded:
        """A load and how often it grows."""
        return Loaded(point["load"], point["steps"])

    def judge(self, subject: Loaded, measured: None, definitions: Definitions) -> Judged:
        """Compare the rules, turn by turn, with the formula; as far as increase is mild."""
        load = subject.load
        for _ in range(int(subject.steps)):
            if load >= float(_LAW.mild):
                return Judged(1.0, load, float("nan"))
            load = after(load, float(_LAW.t_p))
        share = (1 - float(_LAW.kappa_2)) ** subject.steps
        return within(load, 1 - share * (1 - subject.load), ROUNDING)

    def derivation(self) -> tuple[Identity, ...]:
        """One period, and the formula from one period to the next."""
        law, load = _mild_symbols()
        gain = law.kappa_2
        one = after(load, law.t_p, law=law)
        f = sp.Symbol("f", positive=True)
        return (Identity("one period", one.subs(law.lowest, f - sp.Symbol("b", positive=True)),
                         f + gain * (1 - f)),)  # fmt: skip


class Concave(AbstractBound):
    """Whether the growth slows down."""

    id: ClassVar[str] = "bmcc.concave"
    source: ClassVar[str] = "qazi2010, section 3.3, after eq. 2"
    claims: ClassVar[tuple[str, ...]] = ("BMCC-06",)
    statement: ClassVar[str] = "during multiplicative increase the load grows less each time"
    hypotheses: ClassVar[tuple[str, ...]] = IncreaseMap.hypotheses
    engine: ClassVar[str] = "rules"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {"feedback": (SAMPLED, CONTINUOUS), "loads": (EVERY, CODED)}
    )
    networks: ClassVar[tuple[str, ...]] = ("feedback", "loads")
    readings: ClassVar[tuple[Mapping[str, str], ...]] = (
        {"feedback": SAMPLED, "loads": EVERY},
        {"feedback": SAMPLED, "loads": CODED},
        {"feedback": CONTINUOUS, "loads": CODED},
    )
    quick: ClassVar[int] = 120

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """Loads from which two turns stay below eta."""
        low = float(_LAW.lowest) if definitions["loads"] == CODED else 0.01
        return {"load": Range(low, 0.6, low)}

    def subject(self, point: Point, definitions: Definitions) -> Loaded:
        """A load, and the length of a turn in periods."""
        return Loaded(point["load"], 1.0 if definitions["feedback"] == SAMPLED else _MOMENT)

    def judge(self, subject: Loaded, measured: None, definitions: Definitions) -> Judged:
        """The second of two increments over the first."""
        elapsed, loads = subject.steps * float(_LAW.t_p), [subject.load]
        for _ in range(2):
            if loads[-1] >= float(_LAW.mild):
                return Judged(1.0, 0.0, float("nan"))
            loads.append(after(loads[-1], elapsed))
        return at_most((loads[2] - loads[1]) / (loads[1] - loads[0]), 1.0)

    def derivation(self) -> tuple[Identity, ...]:
        """The second difference of the sampled load, in the part of it that is free."""
        f, gain = sp.symbols("f k2", positive=True)

        def step(load: Any) -> Any:
            return load + gain * (1 - load)  # `bmcc.increase_map`

        second = step(step(f)) - 2 * step(f) + f
        return (Identity("second difference, sampled", second, -(gain**2) * (1 - f)),)


class Growth(NamedTuple):
    """A load and two round trips [s]."""

    load: float
    short: float
    long: float


class SameGrowth(AbstractBound):
    """Whether growth depends on the round trip."""

    id: ClassVar[str] = "bmcc.same_growth"
    source: ClassVar[str] = "qazi2010, eq. 3"
    claims: ClassVar[tuple[str, ...]] = ("BMCC-07",)
    statement: ClassVar[str] = "in equal times windows grow by equal factors at all round trips"
    hypotheses: ClassVar[tuple[str, ...]] = ("the same load is known to all",)
    engine: ClassVar[str] = "rules"
    quick: ClassVar[int] = 120

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """Any two round trips."""
        trip = Range(0.001, 3.0, 0.1, "log")
        return {"load": Range(0.01, 0.74, 0.15), "short": trip, "long": trip}

    def subject(self, point: Point, definitions: Definitions) -> Growth:
        """A load and two round trips."""
        return Growth(point["load"], point["short"], point["long"])

    def judge(self, subject: Growth, measured: None, definitions: Definitions) -> Judged:
        """Factors of both senders in one period, an ACK after each hundredth of a round trip."""
        factors = [self._factor(subject.load, rtt) for rtt in (subject.short, subject.long)]
        return within(factors[0] / factors[1], 1.0, 1e-9)

    @staticmethod
    def _factor(load: float, rtt: float) -> float:
        gap = rtt / 100
        one = 1 + _LAW.on_ack(1.0, Ack(1.0, gap, rtt, load))
        return float(one) ** (float(_LAW.t_p) / gap)


class Factor(AbstractBound):
    """The fastest growth."""

    id: ClassVar[str] = "bmcc.fastest_growth"
    source: ClassVar[str] = "qazi2010, section 4.1.1"
    claims: ClassVar[tuple[str, ...]] = ("BMCC-16",)
    statement: ClassVar[str] = "over routers that tell no load windows grow threefold in t_p"
    engine: ClassVar[str] = "rules"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {"threefold": ("at most", "to 0.1 %")}
    )
    readings: ClassVar[tuple[Mapping[str, str], ...]] = every(axes)
    quick: ClassVar[int] = 60

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """No load, or any that counts as eta_0."""
        return {"load": Range(0.0, float(_LAW.lowest), float(_LAW.lowest))}

    def subject(self, point: Point, definitions: Definitions) -> Loaded:
        """The load that the sender knows."""
        return Loaded(point["load"])

    def judge(self, subject: Loaded, measured: None, definitions: Definitions) -> Judged:
        """The growth in one period."""
        period = float(_LAW.t_p)
        factor = 1 + _LAW.on_ack(1.0, Ack(1.0, period, period, subject.load))
        if definitions["threefold"] == "at most":
            return at_most(factor, 3.0)
        return within(factor, 3.0, 0.003)


class Probing(NamedTuple):
    """n flows of one round trip [s] at a link after a decrease at full load."""

    n: float
    rtt: float
    capacity: float
    load: float


class ReturnTime(AbstractBound):
    """How long full load takes to come back."""

    id: ClassVar[str] = "bmcc.return_time"
    source: ClassVar[str] = "qazi2010, eqs 4 to 6"
    statement: ClassVar[str] = "after a decrease of all, n flows are back after C (1-beta) t_p^2/n"
    hypotheses: ClassVar[tuple[str, ...]] = (
        "decreases at one instant, once", "round trips do not change", "target utilisation 1",
    )  # fmt: skip
    engine: ClassVar[str] = "rules"
    quick: ClassVar[int] = 60

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """Any link."""
        return {
            "n": Range(1.0, 100.0, 1.0, "whole"),
            "rtt": Range(0.01, 1.0, 0.2, "log"),
            "capacity": Range(100.0, 1e5, 1000.0, "log"),
            "load": Range(1.0, 1.5, 1.0),
        }

    def subject(self, point: Point, definitions: Definitions) -> Probing:
        """Flows and a link."""
        return Probing(**point)

    def judge(self, subject: Probing, measured: None, definitions: Definitions) -> Judged:
        """Decrease by the rule, and add up what ACKs bring until the load is back."""
        n, rtt, capacity, load = subject
        window = capacity * rtt / n
        kept = float(_LAW.kept(load))
        low = window + float(_LAW.on_tick(window, Ack(1.0, 0.0, rtt, load)))
        each = float(_LAW.on_ack(low, Ack(1.0, rtt / 10, rtt, _BELOW)))
        time = (window - low) / each * rtt / 10
        target = capacity * (1 - kept) * float(_LAW.t_p) ** 2 / n
        return within(time / target, 1.0, ROUNDING)

    def derivation(self) -> tuple[Identity, ...]:
        """The rate of each flow grows by 1/t_p^2 per second, whatever its round trip."""
        rtt, time, low, b = sp.symbols("R e a b", positive=True)
        law = BMCC(t_p=sp.Symbol("t_p", positive=True), lowest=low, mild=1 - low - b)
        grown = law.on_ack(1.0, Ack(0, sp.Min(time, rtt), rtt, 1 - low))
        slope = sp.diff(grown.subs(sp.Min(time, rtt), time), time) / rtt
        return (Identity("growth of a rate", slope, 1 / law.t_p**2),)
