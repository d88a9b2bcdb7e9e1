"""Results 1 to 3 of Durresi et al. (2001) in the fluid model, where they are equalities."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import sympy as sp

from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.queue.threshold import Threshold
from fluidcc.laws.reaction import OncePerRTT
from fluidcc.laws.window.reno import Reno
from fluidcc.scenario.network import Flows, FlowsInitial, Link, Network

from ...lab.bound import (
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
from .full_use import exact, optimal
from .networks import (
    FRONT,
    HYPOTHESES,
    RATE,
    TAIL,
    feedback,
    numbers,
    obstacle,
)
from .slow_start import published

_STEP = 0.01  # of a round trip
_MESH_ERROR = 0.002  # of C T: what a step of the mesh lets by

BUSY = 1 / np.log(2) - 1
"""Least T/(C T_0) for which the link has been busy for a round trip T_0 at the crossing."""

LATE, ALL = "T of 0.443 r d or more", "any T"
CLOSED, PRINTED = "the fluid's closed form", "r d - 1"


def fluid(marks: str, threshold: float, pipe: float, count: float = 1.0) -> Network:
    """`count` connections as self-clocked fluid, in slow start."""
    flows = Flows(
        Reno(), n=np.array([count]), rtt=np.array([pipe / RATE]), reaction=OncePerRTT(),
        feedback=feedback(marks), initial=FlowsInitial(window=1.0, slow_start=True),
    )  # fmt: skip
    link = Link(Threshold(at=threshold), capacity=RATE, packet_size=1000.0)
    return Network((link,), (flows,), rates="self_clocked", delay="fifo", source="durresi2001")


def marks_of(net: Network) -> str:
    """Where a network sets its marks; both moments of the front are one in the fluid."""
    return TAIL if isinstance(net.flows[0].feedback, MarkTail) else FRONT


class FluidSlowStart(AbstractBound):
    """The longest queue of slow start in the fluid."""

    id: ClassVar[str] = "mark_front.fluid_slow_start"
    source: ClassVar[str] = "durresi2001, section 4, results 1 and 2"
    statement: ClassVar[str] = (
        "in the fluid the queue of slow start is at most 2 T + r d (tail), T + r d (front)"
    )
    hypotheses: ClassVar[tuple[str, ...]] = HYPOTHESES
    engine: ClassVar[str] = "fluid"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {"marks": (TAIL, FRONT), "thresholds": (ALL, LATE)}
    )
    networks: ClassVar[tuple[str, ...]] = ("marks", "thresholds")
    readings: ClassVar[tuple[Mapping[str, str], ...]] = ({"marks": TAIL}, {"marks": FRONT})
    quick: ClassVar[int] = 6
    reached: ClassVar[float] = 2 * _MESH_ERROR
    asked: ClassVar[bool] = True

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """Thresholds as shares of the pipe."""
        low = BUSY if definitions["thresholds"] == LATE else 0.1
        return {"share": Range(low, 3.0, 1.0, "log"), "pipe": Range(20.0, 60.0, 40.0, "log")}

    def subject(self, point: Point, definitions: Definitions) -> Network:
        """One connection."""
        return fluid(definitions["marks"], point["share"] * point["pipe"], point["pipe"])

    def measure(self, subject: Network) -> float:
        """The longest queue of the trajectory [packet]."""
        from fluidcc.dde.located import Located
        from fluidcc.model.simulate import simulate

        known, rate = numbers(subject), float(subject.links[0].capacity)
        until = (np.log2(known.threshold + known.propagation) + 4) * known.propagation / rate
        until += 2 * known.threshold / rate
        step = _STEP * known.propagation / rate
        points = np.linspace(0.0, until, int(8 / _STEP))
        run = simulate(subject, until=until, points=points, mesh=Located(step=step))
        return float(np.max(run.links[subject.link_names[0]].queue))

    def judge(self, subject: Network, measured: float, definitions: Definitions) -> Judged:
        """Compare with the fluid's bound, up to what the mesh lets by, as shares of r d."""
        known = numbers(subject)
        limit = published(definitions["marks"], known.threshold, known.propagation)
        limit += 1 if definitions["marks"] == TAIL else 0
        missed = (measured - limit) / known.propagation - _MESH_ERROR
        return Judged(float(limit), measured, float(missed))

    def obstacle(self, net: Network) -> str:
        """It speaks of self-clocked fluid that begins in slow start."""
        if net.rates != "self_clocked" or not net.flows[0].initial.slow_start:
            return "it speaks of self-clocked fluid that begins in slow start"
        return obstacle(net)

    def found_in(self, net: Network) -> Definitions:
        """Where marks are set, and whether the threshold is late."""
        known = numbers(net)
        late = known.threshold >= BUSY * known.propagation
        return {"marks": marks_of(net), "thresholds": LATE if late else ALL}

    def derivation(self) -> tuple[Identity, ...]:
        """The queue that a doubling a round trip leaves after the first busy one, in C T."""
        time = sp.Symbol("t", positive=True)
        queue = sp.integrate(2**time - 1, (time, 0, 1))
        return (Identity("least T of equality, in C T", queue, 1 / sp.log(2) - 1),)


class FluidFullUse(AbstractBound):
    """The least threshold of full use in the fluid, from the laws' own cycle."""

    id: ClassVar[str] = "mark_front.fluid_full_use"
    source: ClassVar[str] = "durresi2001, section 4, result 3"
    statement: ClassVar[str] = "in the fluid the queue just does not run empty at the least T"
    hypotheses: ClassVar[tuple[str, ...]] = (
        "flows that halve together, once each time that the queue is above T", "self-clocked fluid",
    )  # fmt: skip
    engine: ClassVar[str] = "fluid"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {"marks": (TAIL, FRONT), "threshold": (PRINTED, CLOSED)}
    )
    networks: ClassVar[tuple[str, ...]] = ("marks", "threshold")
    readings: ClassVar[tuple[Mapping[str, str], ...]] = every(axes)
    quick: ClassVar[int] = 15
    reached: ClassVar[float] = 1e-6

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """Pipes, and flows that share them."""
        flows = Range(1.0, 4.0, 1.0, "whole")
        return {"pipe": Range(8.0, 400.0, 10.0, "log", grid=1.0), "count": flows}

    def subject(self, point: Point, definitions: Definitions) -> Network:
        """Flows over a link with that threshold."""
        marks, pipe, count = definitions["marks"], point["pipe"], point["count"]
        if definitions["threshold"] == CLOSED:
            return fluid(marks, float(exact(marks, pipe, count)), pipe, count)
        return fluid(marks, float(optimal(pipe)), pipe, count)

    def measure(self, subject: Network) -> float:
        """The least queue of the cycle, below 0 where it would run empty [packet]."""
        from fluidcc.analysis.relay import relay_cycle

        return relay_cycle(subject, one_reaction=True).queue[0]

    def judge(self, subject: Network, measured: float, definitions: Definitions) -> Judged:
        """The queue must just not run empty."""
        if definitions["threshold"] == CLOSED:
            return within(measured, 0.0, 1e-6)
        return at_most(-measured, 0.0)

    def obstacle(self, net: Network) -> str:
        """It needs the very threshold that it names."""
        return "it speaks of the thresholds r d - 1 and that of its closed form"

    def derivation(self) -> tuple[Identity, ...]:
        """The closed form less r d - 1, for one flow and long pipes."""
        pipe = sp.Symbol("P", positive=True)
        out = []
        for marks, rest in ((TAIL, sp.Integer(0)), (FRONT, sp.Rational(1, 2))):
            gap = sp.limit(exact(marks, pipe, sp.Integer(1)) - optimal(pipe), pipe, sp.oo)
            words = f"least T less (r d - 1) for long pipes, one flow, marks at the {marks}"
            out.append(Identity(words, gap, rest))
        return tuple(out)
