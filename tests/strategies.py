"""Hypothesis strategies from the metadata of parameters."""

import dataclasses
import math
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from fluidcc.laws.law import Law
from fluidcc.laws.parameters import Info, infos

_WIDEST = 1e3  # stands for an infinite end


def logarithmic(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers of [low, high], all decades alike, at least 2 % apart or equal."""
    exponents = st.integers(math.ceil(100 * math.log10(low)), math.floor(100 * math.log10(high)))
    return exponents.map(lambda k: min(max(10 ** (k / 100), low), high))


def inside(info: Info) -> st.SearchStrategy[float]:
    """Numbers of a parameter's range, its closed ends among them."""
    assert info.within is not None
    low, high = (max(-_WIDEST, min(end, _WIDEST)) for end in info.within.ends)
    ends = [end for end in info.within.ends if end in info.within and math.isfinite(end)]
    if low < 0:
        values = st.integers(-100, 100).map(lambda k: (low + high) / 2 + k * (high - low) / 200)
    elif high == _WIDEST:
        values = logarithmic(1e-3, _WIDEST)
    else:
        values = logarithmic(1e-6 * high, high * (1 - 1e-6))
    values = values.filter(lambda v: v in info.within)
    return st.one_of(values, st.sampled_from(ends)) if ends else values


@st.composite
def parameters_of(draw: st.DrawFn, law: Law) -> dict[str, float]:
    """Values of a law's numeric parameters within their ranges, that the law accepts together."""
    values = {name: draw(inside(i)) for name, i in infos(law).items() if i.within is not None}
    try:
        dataclasses.replace(law, **values)
    except ValueError:
        assume(False)
    return values


def variants(law: type[Law]) -> list[Any]:
    """The law as it is by default, with each of its choices made otherwise, and with all so."""
    default = law()
    others: dict[str, list[Any]] = {}
    for name, info in infos(law).items():
        value = getattr(default, name)
        if isinstance(value, bool):
            others[name] = [not value]
        elif info.choices:
            others[name] = [c for c in info.choices if c != value]
        elif isinstance(value, Law):
            kinds = type(value).__mro__[1].__subclasses__()
            others[name] = [k() for k in kinds if k is not type(value)]
    single = [dataclasses.replace(default, **{name: v}) for name, vs in others.items() for v in vs]
    if len(others) < 2:
        return [default, *single]
    every = dataclasses.replace(default, **{name: vs[-1] for name, vs in others.items()})
    return [default, *single, every]
