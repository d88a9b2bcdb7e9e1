"""Numbers to try a rule with, from the ranges of parameters and of what events tell.

The ranges are data, from which other generators of numbers can be made.
"""

import contextlib
import dataclasses
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from fluidcc.check.cases import Case
from fluidcc.laws.law import AbstractFeedback, AbstractQueueLaw, AbstractWindowLaw, Law
from fluidcc.laws.parameters import Info, infos

_WIDEST = 1e3  # stands for an infinite end


class Decades(NamedTuple):
    """Numbers of [low, high], all decades alike."""

    low: float
    high: float


class Even(NamedTuple):
    """Numbers of [low, high], evenly."""

    low: float
    high: float


class Whole(NamedTuple):
    """Whole numbers of [low, high]."""

    low: int
    high: int


class Among(NamedTuple):
    """One of a few numbers."""

    values: tuple[float, ...]


Range = Decades | Even | Whole | Among
Ranges = tuple[Range, ...]
"""Alternatives, each as likely as the others."""

SHARE: Ranges = (Among((0.0, 1.0)), Decades(1e-12, 1.0), Even(0.01, 0.99))
_QUEUES = ("q", "v", "q_0", r"q_{\mathrm{av}}")
_LOADS = ("f", r"\hat f")
_OTHER: Ranges = (Among((0.0,)), Decades(1e-3, 1e2))
"""Numbers of a memory that nothing is known of but that they are not negative."""

EVENT: Mapping[str, Ranges] = MappingProxyType(
    {
        "W": (Decades(1e-2, 1e4),),
        "n": (Among((0.0,)), Among((1.0,)), Decades(1e-3, 1e3)),
        "e": (Among((0.0,)), Decades(1e-6, 10.0)),
        "R": (Decades(1e-3, 10.0),),
        "t": (Among((0.0,)), Decades(1e-3, 100.0)),
        "C": (Decades(1.0, 1e6),),
        "s": (Decades(1e-2, 2.0),),
        "j": (Whole(1, 1000),),
        "p": SHARE,
        "l": SHARE,
        "m": (Among((0.0, 1.0)),),
        "y": (Among((0.0, 1.0)),),
        "d": (Among((0.0, 1.0)),),
        "x": (Decades(1e-3, 1e6),),
        "U": (Among((0.0,)), Even(0.01, 0.99)),
        "h": (Among((0.0, 0.25, 0.5)), Even(0.01, 0.99)),
        r"\lambda": (Among((0.0,)), Decades(1e-2, 1e4)),
        r"\mu": (Among((0.0,)), Decades(1e-3, 1e4)),
        r"p_{\max}": SHARE,
        r"\alpha": SHARE,
        r"\sigma": SHARE,
        "c": SHARE,
        "o": (Among((0.0, 1.0)),),
    }
)
"""Ranges of what states and events tell, by symbol."""


def parameter_ranges(info: Info) -> Ranges:
    """Numbers of a parameter's range, its closed ends among them."""
    assert info.within is not None
    low, high = (max(-_WIDEST, min(end, _WIDEST)) for end in info.within.ends)
    ends = tuple(e for e in info.within.ends if e in info.within and math.isfinite(e))
    if low < 0 or high - low < 1e-6 * high:
        inside: Range = Even(low, high)
    elif high == _WIDEST:
        inside = Decades(max(low, 1e-3), _WIDEST)
    else:
        inside = Decades(max(low, 1e-6 * high), high * (1 - 1e-6))
    return (inside, Among(ends)) if ends else (inside,)


def event_ranges(case: Case, parameters: Mapping[str, float]) -> list[Ranges]:
    """Ranges of the numbers of state and event; queues and loads often lie on a corner."""
    packets = [
        v for k, v in parameters.items()
        if isinstance(case.owner, AbstractQueueLaw) and math.isfinite(v)
        and infos(case.owner)[k].unit == "packet"
    ]  # fmt: skip
    corners = (0.0, *packets, *(2 * v for v in packets), sum(packets))
    bends = (parameters[k] for k in ("lowest", "mild", "highest") if k in parameters)
    queue: Ranges = (Among(corners), Decades(1e-2, 1e3))
    load: Ranges = (Among((0.0, 1.0, *bends)), Even(0.01, 2.0))
    known = {**EVENT, **dict.fromkeys(_QUEUES, queue), **dict.fromkeys(_LOADS, load)}
    if isinstance(case.law, AbstractWindowLaw):
        known["m"] = SHARE  # of several packets
    if isinstance(case.law, AbstractFeedback):
        known["W"] = (Decades(1.1, 1e4),)  # below it a window is no flight of packets
    return [known.get(s.name, _OTHER) for s in (*case.asked.state, *case.asked.event)]


def fitting(law: Law, values: Mapping[str, float]) -> bool:
    """Whether the law accepts these parameters together."""
    with contextlib.suppress(ValueError):
        dataclasses.replace(law, **values)
        return True
    return False


def _one(rng: np.random.Generator, ranges: Ranges) -> float:
    chosen = ranges[rng.integers(len(ranges))]
    match chosen:
        case Among(values):
            return float(values[rng.integers(len(values))])
        case Whole(low, high):
            return float(rng.integers(low, high + 1))
        case Decades(low, high):
            drawn = 10 ** rng.uniform(math.log10(low), math.log10(high))
            return float(min(max(drawn, low), high))
        case Even(low, high):
            return float(rng.uniform(low, high))


def drawn_parameters(law: Any, rng: np.random.Generator) -> dict[str, float]:
    """Values of a law's numeric parameters within their ranges, that it accepts together.

    Where few draws fit together, those of the law itself.
    """
    described = {name: info for name, info in infos(law).items() if info.within is not None}
    for _ in range(20):
        values = {name: _one(rng, parameter_ranges(info)) for name, info in described.items()}
        inside = all(v in (described[name].within or ()) for name, v in values.items())
        if inside and fitting(law, values):
            return values
    return {name: float(getattr(law, name)) for name in described}


def drawn_numbers(case: Case, rng: np.random.Generator) -> list[float]:
    """Numbers in the order of the case's symbols."""
    parameters = drawn_parameters(case.owner, rng)
    events = [_one(rng, ranges) for ranges in event_ranges(case, parameters)]
    return [*events, *parameters.values()]


def draws(case: Case, count: int, seed: int) -> Sequence[list[float]]:
    """Several lists of numbers, the same whenever they are asked for."""
    rng = np.random.default_rng([seed, *map(ord, str(case))])
    return [drawn_numbers(case, rng) for _ in range(count)]
