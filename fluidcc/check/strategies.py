"""Numbers to try a rule with: Hypothesis strategies from the ranges of parameters and events."""

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType
from typing import Any

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from fluidcc.check.cases import Case
from fluidcc.laws.law import (
    AbstractFeedback,
    AbstractQueueLaw,
    AbstractRemembering,
    AbstractWindowLaw,
)
from fluidcc.laws.parameters import Info, numeric_parameters

DRAWS, SEED = 25, 2026

_ALL: Any = tuple(HealthCheck)
_SETTINGS = settings(
    max_examples=DRAWS, database=None, deadline=None, phases=(Phase.generate, Phase.shrink),
    suppress_health_check=_ALL, report_multiple_bugs=False,
)  # fmt: skip
_WIDEST = 1e3  # stands for an infinite end
_QUEUES = ("q", "v", "q_0", r"q_{\mathrm{av}}")
_LOADS = ("f", r"\hat f")

Numbers = st.SearchStrategy[float]


def falsify(drawn: st.SearchStrategy[Any], why: Callable[[Any], str | None]) -> str | None:
    """The fault of the simplest of `DRAWS` examples that has one; None if none has."""
    try:
        example = find(drawn, lambda x: why(x) is not None, settings=_SETTINGS, random=Random(SEED))
    except NoSuchExample:
        return None
    return why(example)


def logarithmic(low: float, high: float) -> Numbers:
    """Numbers of [low, high], all decades alike, at least 2 % apart or equal."""
    exponents = st.integers(math.ceil(100 * math.log10(low)), math.floor(100 * math.log10(high)))
    return exponents.map(lambda k: min(max(10 ** (k / 100), low), high))


def _or(*values: float, general: Numbers) -> Numbers:
    return st.one_of(st.sampled_from(values), general)


SHARE = _or(0.0, 1.0, general=st.one_of(logarithmic(1e-12, 1.0), st.floats(0.01, 0.99)))
_FLAG = st.sampled_from((0.0, 1.0))
_OTHER = _or(0.0, general=logarithmic(1e-3, 1e2))  # of a memory of which nothing is known

EVENT: Mapping[str, Numbers] = MappingProxyType(
    {
        "W": logarithmic(1e-2, 1e4),
        "n": _or(0.0, 1.0, general=logarithmic(1e-3, 1e3)),
        "e": _or(0.0, general=logarithmic(1e-6, 10.0)),
        "R": logarithmic(1e-3, 10.0),
        "t": _or(0.0, general=logarithmic(1e-3, 100.0)),
        "C": logarithmic(1.0, 1e6),
        "s": logarithmic(1e-2, 2.0),
        "j": st.integers(1, 1000).map(float),
        "x": logarithmic(1e-3, 1e6),
        "U": _or(0.0, general=st.floats(0.01, 0.99)),
        "h": _or(0.0, 0.25, 0.5, general=st.floats(0.01, 0.99)),
        r"\lambda": _or(0.0, general=logarithmic(1e-2, 1e4)),
        r"\mu": _or(0.0, general=logarithmic(1e-3, 1e4)),
        **dict.fromkeys(("p", "l"), SHARE),
        **dict.fromkeys(("m", "y", "d"), _FLAG),
    }
)
"""Numbers of states and events, by symbol."""


@functools.cache
def inside(info: Info) -> Numbers:
    """Numbers of a parameter's range, its closed ends among them."""
    within: Any = info.within
    low, high = (max(-_WIDEST, min(end, _WIDEST)) for end in within.ends)
    ends = [end for end in within.ends if end in within and math.isfinite(end)]
    if low < 0 or high - low < 1e-6 * high:
        values = st.integers(0, 200).map(lambda k: low + k * (high - low) / 200)
    elif high == _WIDEST:
        values = logarithmic(max(low, 1e-3), _WIDEST)
    else:
        values = logarithmic(max(low, 1e-6 * high), high * (1 - 1e-6))
    values = values.filter(lambda v: v in within)
    return _or(*ends, general=values) if ends else values


@st.composite
def accepted(draw: st.DrawFn, law: Any, each: Mapping[str, st.SearchStrategy[Any]]) -> dict:
    """Values of parameters that a law accepts together; its own if few fit."""
    for _ in range(6):
        values = {name: draw(numbers) for name, numbers in each.items()}
        with contextlib.suppress(ValueError):
            dataclasses.replace(law, **values)
            return values
    return {name: getattr(law, name) for name in each}


@st.composite
def numbers_of(draw: st.DrawFn, case: Case) -> list[float]:
    """Numbers in the order of the case's symbols; queues and loads often lie on a corner."""
    described = numeric_parameters(case.owner)
    each = {name: inside(info) for name, info in described.items()}
    parameters: dict[str, float] = draw(accepted(case.owner, each))
    packets = [
        v for k, v in parameters.items()
        if isinstance(case.owner, AbstractQueueLaw) and math.isfinite(v)
        and described[k].unit == "packet"
    ]  # fmt: skip
    corners = (0.0, *packets, *(2 * v for v in packets), sum(packets))
    bends = (parameters[k] for k in ("lowest", "mild", "highest") if k in parameters)
    queue = _or(*corners, general=logarithmic(1e-2, 1e3))
    load = _or(0.0, 1.0, *bends, general=st.floats(0.01, 2.0))
    known = {**EVENT, **dict.fromkeys(_QUEUES, queue), **dict.fromkeys(_LOADS, load)}
    if isinstance(case.law, AbstractWindowLaw):
        known["m"] = SHARE  # of several packets
    if isinstance(case.law, AbstractFeedback):
        known["W"] = logarithmic(1.1, 1e4)  # below it a window is no flight of packets
    if isinstance(case.law, AbstractRemembering):
        known |= {f.info.symbol: SHARE for f in case.law.states.values() if f.is_share}
    symbols = (*case.asked.state, *case.asked.event)
    return [*(draw(known.get(s.name, _OTHER)) for s in symbols), *parameters.values()]
