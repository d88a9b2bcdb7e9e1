"""What the load factor of a BMCC router tells, Qazi et al. (2010), eq. 1."""

import math
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import sympy as sp

from fluidcc.laws.law import Ack, Arrival
from fluidcc.laws.queue.load_factor import Load, LoadFactor
from fluidcc.laws.window.bmcc import BMCC
from fluidcc.ops import Num

from ...lab.bound import (
    AbstractBound,
    Definitions,
    Identity,
    Judged,
    Point,
    Range,
    at_least,
    at_most,
)
from .growth import Loaded

_LAW, _QUEUE = BMCC(), LoadFactor()


class Standing(NamedTuple):
    """A link at full load with a standing queue [packet]."""

    queue: float
    capacity: float
    gamma: float


class StandingQueue(AbstractBound):
    """Whether a standing queue alone tells overload."""

    id: ClassVar[str] = "bmcc.standing_queue"
    source: ClassVar[str] = "qazi2010, eq. 1 and section 4.2"
    claims: ClassVar[tuple[str, ...]] = ("BMCC-25",)
    statement: ClassVar[str] = "at full load any standing queue keeps the load factor above 1"
    hypotheses: ClassVar[tuple[str, ...]] = ("target utilisation at most 1",)
    engine: ClassVar[str] = "rules"
    quick: ClassVar[int] = 60

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """Any queue, link and target."""
        return {
            "queue": Range(0.01, 1e4, 1.0, "log"),
            "capacity": Range(100.0, 1e5, 1000.0, "log"),
            "gamma": Range(0.5, 1.0, 1.0),
        }

    def subject(self, point: Point, definitions: Definitions) -> Standing:
        """A link with a standing queue."""
        return Standing(**point)

    def judge(self, subject: Standing, measured: None, definitions: Definitions) -> Judged:
        """The next sample."""
        return at_least(float(_sample(*subject)), 1.0)

    def derivation(self) -> tuple[Identity, ...]:
        """The sample at full load, and the queue at which it is u."""
        queue, capacity, gamma = sp.symbols("q C gamma", positive=True)
        period, weight = sp.symbols("t_p k1", positive=True)
        law = LoadFactor(t_p=period, kappa_1=weight, gamma=gamma)
        sample = _sample(queue, capacity, gamma, law)
        told = (1 + weight * queue / (capacity * period)) / gamma
        u = sp.Symbol("u", positive=True)
        needed = sp.solve(sp.Eq(sample, u), queue)[0]
        return (
            Identity("load factor at full load", sample, told),
            Identity("queue of the load u", needed,
                     (gamma * u - 1) * capacity * period / weight),
        )  # fmt: skip


def _sample(queue: Num, capacity: Num, gamma: Num, law: LoadFactor | None = None) -> Num:
    """The load factor of one period at full load with that queue."""
    law = LoadFactor(gamma=gamma) if law is None else law
    memory = Load(capacity * law.t_p, queue, 0)
    change = law.on_tick(memory, Arrival(0, 0, queue, capacity))
    return memory.factor + change.factor


class OnlyBMCC(AbstractBound):
    """Who backs off between full load and 120 %."""

    id: ClassVar[str] = "bmcc.only_bmcc_backs_off"
    source: ClassVar[str] = "qazi2010, section 4.2.2"
    claims: ClassVar[tuple[str, ...]] = ("BMCC-27",)
    statement: ClassVar[str] = "from 100 % to 120 % BMCC senders back off, SACK is not marked"
    engine: ClassVar[str] = "rules"
    quick: ClassVar[int] = 60

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """Loads in that range."""
        return {"load": Range(1.0, math.nextafter(1.2, 0.0), 1.0)}

    def subject(self, point: Point, definitions: Definitions) -> Loaded:
        """A load."""
        return Loaded(point["load"])

    def judge(self, subject: Loaded, measured: None, definitions: Definitions) -> Judged:
        """Marks, and windows that do not fall: none."""
        memory = Load(0.0, 0.0, subject.load)
        marked = float(_QUEUE.signal(memory, Arrival(1.0, 0.0, 0.0, 1.0)).mark)
        told = Ack(1.0, 0.0, 0.1, subject.load)
        stays = float(_LAW.on_tick(10.0, told)) >= 0
        return at_most(marked + stays, 0.0)
