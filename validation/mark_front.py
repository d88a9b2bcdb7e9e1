"""The bounds of the mark-front paper under attack, packet by packet.

    python validation/mark_front.py [--samples N]

Durresi et al. (2001), section 4, for one connection in slow start over a link of d packets per
second with a fixed round trip r: the queue stays below 2 T + r d - 1 with marks at the tail and
below T + r d with marks at the front; and T = r d - 1 is the least threshold of full use. The text
leaves open which packets the threshold and the queue count, what r contains, and whether marks at
the front are made as a transmission starts or as it ends, so every reading is tried. All readings
of the threshold come down to one number: theta, the least count of the system (waiting, in service,
and the packet judged) at which a packet is marked; T = theta - shift.

For each reading: on how many of the random networks the bound is exceeded, by how much at most,
and the smallest network on which it is. Everything takes about a minute and a half on one core.

What was found, with an access link of at least 2 d: with r that contains the transmission times,
both bounds hold and are met, the first for theta and the whole system, the second, where
transmissions start with the mark, for theta and what waits. Where they end with it, the largest
system is two packets less: theta + r d, r containing the transmission time of the access link
alone. That is the published bound for the whole system, with the paper's fixed r where the access
link takes no time. Where packets come and go at the same instants, marks at the front may let one
packet more wait. In a slower access link the packets of slow start pile up, and all bounds break.
"""

import argparse
import dataclasses
import math
import sys

import numpy as np
from fluidcc.bundled.validation.bounds.mark_front.full_use import utilization as busy
from fluidcc.bundled.validation.bounds.mark_front.networks import (
    END,
    FRONT,
    GROWS,
    ONE,
    RATE,
    TAIL,
    TWO,
    connection,
)
from fluidcc.bundled.validation.bounds.mark_front.slow_start import peak as longest
from fluidcc.bundled.validation.bounds.mark_front.slow_start import published

from fluidcc.scenario.network import Network

ACCESS = (math.inf, 10.0, 2.0, 1.5, 1.2, 1.05)  # in bottleneck rates
READINGS = (
    "the system with the packet judged reaches T",
    "the same exceeds T, or the system without it, or what waits and it, reach T",
    "the system without it, or what waits and it, exceed T, or what waits reaches T",
    "what waits exceeds T",
)
MARKS = (
    {"front": False},
    {"front": True},  # as the transmission starts
    {"front": True, "when": "end"},
)
_ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True)
class Case:
    """One network: the canonical threshold, and r d without any transmission time."""

    front: bool
    theta: int
    pipe: float
    access: float = math.inf  # bottleneck rates
    first: float = 1.0  # window of the first data
    grow: bool = False  # windows grow on marked ACKs
    flows: int = 1
    spread: float = 0.0  # round trips differ by this share
    when: str = "start"  # of the transmission: the moment of marks at the front

    @property
    def marks(self) -> str:
        """Where marks are set."""
        if not self.front:
            return TAIL
        return END if self.when == "end" else FRONT

    @property
    def service(self) -> float:
        """Transmission time of the access link, in packet times of the bottleneck."""
        return 1.0 / self.access


@dataclasses.dataclass(frozen=True)
class Peak:
    """What a run found."""

    case: Case
    system: float  # largest count of the system
    waiting: float  # largest count of waiting packets


def network(case: Case) -> Network:
    """The network of a case."""
    sender = GROWS if case.grow else TWO if case.first > 1 else ONE
    definitions = {"marks": case.marks, "when": "reaches", "counts": "system", "sender": sender}
    net = connection(float(case.theta), case.pipe, case.access, definitions)
    rtt = case.pipe / RATE * (1 + case.spread * np.arange(case.flows))
    flows = dataclasses.replace(net.flows[0], n=np.ones(case.flows), rtt=rtt)
    return dataclasses.replace(net, flows=(flows,))


def peak(case: Case) -> Peak:
    """Largest queues from the first packet until slow start is long over."""
    return Peak(case, *longest(network(case)))


def bound(case: Case, shift: int, *, pipe: float) -> float:
    """The published bound for T = theta - shift and r d = pipe."""
    return float(published(case.marks, case.theta - shift, pipe))


def excess(found: Peak, shift: int, *, waiting: bool, own: bool) -> float:
    """By how much the queue exceeds the bound, if it counts `waiting` packets only and r contains
    the packet's `own` transmission times.
    """
    case = found.case
    pipe = case.pipe + (1 + case.service if own else 0.0)
    return (found.waiting if waiting else found.system) - bound(case, shift, pipe=pipe)


def cases(samples: int, rng: np.random.Generator, **fixed: object) -> list[Case]:
    """Random networks, half of them on the lattice of packet times, and all the small ones."""
    out = []
    for k in range(samples):
        pipe = rng.uniform(0.5, 80.0)
        pipe = float(round(pipe) + 1) if k % 2 else float(pipe)
        out.append(Case(theta=int(rng.integers(1, 120)), pipe=pipe, **fixed))  # type: ignore[arg-type]
    small = [(t, p) for t in range(1, 5) for p in (0.5, 1.0, 1.5, 2.0, 3.0, 4.5)]
    return out + [Case(theta=t, pipe=p, **fixed) for t, p in small]  # type: ignore[arg-type]


def _side(case: Case) -> str:
    return f"{case.when if case.front else 'tail':6}"


def bounds(samples: int) -> None:
    """Print the verdict on both bounds for every reading and every speed of the access link."""
    rng = np.random.default_rng(1)
    for k, words in enumerate(READINGS):
        print(f"shift {k}: {words}")
    print(
        "\nEach cell: networks on which the bound is exceeded, and the largest excess in packets.\n"
        f"{'marks':6}{'access':>6}{'first':>6}{'grow':>6}  {'queue':8}{'r':6}"
        + "".join(f"{f'shift {k}':>17}" for k in range(len(READINGS)))
        + "  smallest network that exceeds it (shift 0)"
    )
    for marks in MARKS:
        senders = [(a, 1.0, False) for a in ACCESS]
        for access, first, grow in [*senders, (math.inf, 2.0, False), (math.inf, 1.0, True)]:
            kind = {**marks, "access": access, "first": first, "grow": grow}
            found = [peak(case) for case in cases(samples, rng, **kind)]
            for waiting in (False, True):
                for own in (False, True):
                    print(_line(found, waiting=waiting, own=own), flush=True)


def _line(found: list[Peak], *, waiting: bool, own: bool) -> str:
    """One kind of network under one reading of queue and round trip."""
    case = found[0].case
    text = f"{_side(case)}{case.access:6g}{case.first:6g}{case.grow!s:>6}  "
    text += f"{'waiting' if waiting else 'system':8}{'own' if own else 'fixed':6}"
    for shift in range(len(READINGS)):
        fit = [p for p in found if p.case.theta >= shift]
        over = [excess(p, shift, waiting=waiting, own=own) for p in fit]
        cell = f"{sum(e > _ROUNDING for e in over)}/{len(over)} {max(over):+.2f}"
        text += f"{cell:>17}"
    beyond = [p for p in found if excess(p, 0, waiting=waiting, own=own) > _ROUNDING]
    if not beyond:
        return text
    least = min(beyond, key=lambda p: p.case.theta + p.case.pipe)
    queue = least.waiting if waiting else least.system
    return f"{text}  T {least.case.theta}, rd {least.case.pipe:g}: {queue:g}"


def utilization(case: Case) -> float:
    """Share of time that the link is busy in congestion avoidance, after four cycles at least."""
    return busy(network(case))


def least_threshold(case: Case) -> int:
    """The least theta of full use, by bisection: more never leaves the link idle."""
    low, high = 0, math.ceil(case.pipe) + 8
    while high - low > 1:
        middle = (low + high) // 2
        used = utilization(dataclasses.replace(case, theta=middle)) > 1 - _ROUNDING
        low, high = (low, middle) if used else (middle, high)
    return high


def optimal(samples: int) -> None:
    """Print how far the least threshold of full use is from r d - 1, and what is used with that."""
    rng = np.random.default_rng(2)
    print("\nleast theta of full use, less r d - 1 (fixed r), and the use of the link with r d - 1")
    for marks in MARKS:
        for access in (math.inf, 2.0):
            gaps, used = [], []
            for pipe in rng.uniform(3.0, 40.0, samples):
                case = Case(theta=1, pipe=float(pipe), access=access, **marks)  # type: ignore[arg-type]
                gaps.append((least_threshold(case) - (pipe - 1), pipe))
                used.append(utilization(dataclasses.replace(case, theta=math.ceil(pipe - 1))))
            low, high = min(gaps), max(gaps)
            print(
                f"{_side(case)} access {access:g}: from {low[0]:.2f} "
                f"(rd {low[1]:.2f}) to {high[0]:.2f} (rd {high[1]:.2f}); use {min(used):.4f} to "
                f"{max(used):.4f}",
                flush=True,
            )


def several(samples: int) -> None:
    """Print how the bounds, which speak of one connection, fare with several."""
    rng = np.random.default_rng(3)
    print("\nseveral connections at once: largest queue over the bound for one (canonical reading)")
    for marks in MARKS:
        for flows, spread in ((2, 0.0), (10, 0.0), (10, 0.1)):
            kind = {**marks, "flows": flows, "spread": spread}
            found = [peak(case) for case in cases(samples, rng, **kind)]
            ratio = [p.system / max(bound(p.case, 0, pipe=p.case.pipe), 1.0) for p in found]
            over = sum(r > 1 for r in ratio)
            print(
                f"{_side(found[0].case)} {flows:3d} flows, round trips spread by {spread:g}: "
                f"exceeded {over}/{len(found)}, at most {max(ratio):.2f} times",
                flush=True,
            )


def main() -> int:
    """Print everything."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=60, help="random networks of each kind")
    given = parser.parse_args()
    bounds(given.samples)
    optimal(max(given.samples // 6, 3))
    several(max(given.samples // 3, 3))
    return 0


if __name__ == "__main__":
    sys.exit(main())
