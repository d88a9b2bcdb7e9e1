"""Every rule of a law as a function of plain numbers, for each engine that computes with it, and
numbers to try it with: Hypothesis strategies from the ranges of parameters and events.
"""

import contextlib
import dataclasses
import functools
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from random import Random
from types import MappingProxyType
from typing import Any

import numba
import numpy as np
import sympy as sp
from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from fluidcc.arrays import jax, jnp
from fluidcc.check.draws import BACKEND
from fluidcc.dual import Dual
from fluidcc.executables import compile_for_few
from fluidcc.laws import symbolic
from fluidcc.laws.law import (
    RECOVERIES,
    RULES,
    AbstractFeedback,
    AbstractLossClosure,
    AbstractMarking,
    AbstractQueueLaw,
    AbstractReaction,
    AbstractRemembering,
    AbstractWindowLaw,
    Ack,
    Arrival,
    Law,
    Signal,
    Since,
)
from fluidcc.laws.parameters import Info, infos, numeric_parameters
from fluidcc.laws.registry import LAWS, kind_of
from fluidcc.laws.window.polynomial import AbstractPolynomial
from fluidcc.recording import Recorded, Tape

_ROWS = 4  # of numbers at a time: one shape, so that a rule is compiled once
_OPTIONAL = ("on_arrival", "on_departure", "on_signal", "observe", "on_tick")


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """One rule of one law; `window` is the window law that a marking law is called with, and
    `recovery` the sender's that a loss closure is called with.
    """

    law: Any
    method: str
    window: Any = None
    recovery: str = ""

    def __str__(self) -> str:
        choices = [
            f"{f.name}={getattr(getattr(self.law, f.name), 'name', getattr(self.law, f.name))}"
            for f in dataclasses.fields(self.law)
            if f.name not in symbolic.parameter_symbols(self.law)
            and getattr(self.law, f.name) != getattr(type(self.law)(), f.name)
        ]
        if self.window is not None:
            choices.append(self.window.name)
        if self.recovery:
            choices.append(self.recovery)
        return ".".join([self.law.name, self.method]) + "".join(f"[{c}]" for c in choices)

    @property
    def owners(self) -> tuple[Any, ...]:
        """The laws whose parameters the rule depends on."""
        return (self.law,) if self.window is None else (self.law, self.window)

    @functools.cached_property
    def asked(self) -> symbolic.Rule:
        """The rule's symbols; it is not called."""
        return symbolic.asked(self.law, self.method, self.window)

    @functools.cached_property
    def rule(self) -> symbolic.Rule:
        """The rule in SymPy."""
        return symbolic.rule(self.law, self.method, self.window, recovery=self.recovery)

    @property
    def symbols(self) -> tuple[sp.Symbol, ...]:
        """Symbols of the state, of the event and of the parameters."""
        return (*self.asked.state, *self.asked.event, *self.asked.parameters)

    @functools.cached_property
    def used(self) -> set[Any]:
        """Symbols that the results depend on."""
        return set().union(*(r.free_symbols for r in self.rule.results))

    @functools.cached_property
    def recorded(self) -> tuple[list[tuple[str, str]], list[str | float]]:
        """The rule as operations on its numbers, by name, and its results; SymPy takes much longer
        to make its expressions.
        """
        tape = Tape()
        with np.errstate(all="ignore"):
            answer = self.answer(*(tape.input(1.0) for _ in self.symbols))
        results = answer if isinstance(answer, tuple) else () if answer is None else (answer,)
        needed = tape.needed(results)
        made = [(v.name, text) for text, v in tape.operations.items() if v.name in needed]
        return made, [r.name if isinstance(r, Recorded) else float(r) for r in results]

    def answer(self, *numbers: Any) -> Any:
        """The return value of the rule itself for numbers in the order of `symbols`."""
        first = len(self.symbols) - len(self.asked.parameters)
        values = iter(numbers[first:])
        law, *window = (
            dataclasses.replace(one, **{name: next(values) for name in numeric_parameters(one)})
            for one in self.owners
        )
        if window:
            return law.probability(numbers[0], *window)
        arguments = _records(law, self.method, numbers[:first])
        words = (self.recovery,) if self.recovery else ()
        return getattr(law, self.method)(*arguments, *words)

    def __call__(self, *numbers: Any) -> tuple:
        """The same as a flat tuple of numbers."""
        results = self.answer(*numbers)
        return results if isinstance(results, tuple) else (results,)

    @functools.cached_property
    def batched(self) -> Callable[..., Any]:
        """The rule compiled by JAX: slopes and results (rows, ...) of numbers (rows, ...)."""

        def results(numbers: Any) -> tuple[Any, Any]:
            values = jnp.stack([jnp.asarray(r, float) for r in self(*numbers)])
            return values, values

        like = jax.ShapeDtypeStruct((_ROWS, len(self.symbols)), float)
        return compile_for_few(jax.vmap(jax.jacfwd(results, has_aux=True)), like)

    def jax(self, numbers: list[float]) -> tuple[np.ndarray, np.ndarray]:
        """Results (k,) and their slopes (k, number of symbols) by JAX."""
        slopes, results = self.batched(np.tile(numbers, (_ROWS, 1)))
        return np.asarray(results)[0], np.asarray(slopes)[0]

    @functools.cached_property
    def sympy(self) -> Callable[..., tuple]:
        """The rule's SymPy expressions as a function of floats."""
        return _function(self.symbols, list(self.rule.results), ["math"])

    @functools.cached_property
    def numba(self) -> Callable[..., tuple]:
        """The same, compiled by numba."""
        return numba.njit(self.sympy)

    @functools.cached_property
    def sympy_slopes(self) -> Callable[..., tuple]:
        """Derivatives by SymPy, result by result, as a function of a float and the numbers.

        The float is the slope of max(0, x) at x = 0, which no definition fixes.
        """
        tie = sp.Symbol("tie")
        slopes = [sp.diff(r, s) for r in self.rule.results for s in self.symbols]
        with sp.evaluate(False):
            chosen = [s.replace(sp.Heaviside, lambda x, _: _STEP(x, tie)) for s in slopes]
        return _function((tie, *self.symbols), chosen, [{"step": _step}, "math"])

    def sizes(self, numbers: list[float]) -> np.ndarray:
        """Sizes of all terms that each result comes from: times the unit roundoff, a bound on its
        rounding errors (Higham, 2002, section 3.3: running error analysis).
        """
        results = self(*(_Sized(v, abs(v), 1, wide=False) for v in numbers))
        return np.array([abs(float(getattr(r, "slope", r))) for r in results])


class _Sized(Dual):
    """A number with the sizes of the terms that it comes from in the place of a slope."""

    __slots__ = ()

    def chain(self, value: Any, factor: Any) -> Dual:
        """A function of this number, which adds its own value to the sizes."""
        return _Sized(value, abs(factor) * self.slope + abs(value), 1, wide=False)

    def _join(self, other: Any, value: Any, factors: tuple[Any, Any]) -> Dual:
        pairs = zip((self, other), factors, strict=True)
        parts = (abs(factor) * each.slope for each, factor in pairs if isinstance(each, Dual))
        return _Sized(value, sum(parts, abs(value)), 1, wide=False)


_STEP = sp.Function("step")


def _step(x: float, tie: float) -> float:
    """1 for positive, 0 for negative numbers, `tie` for numbers that are 0 to round-off."""
    return tie if abs(x) < 1e-12 else float(x > 0)


def _function(symbols: tuple, results: list, modules: list) -> Callable[..., Any]:
    """Function of floats; symbols get names of Python here, as SymPy would simplify to do so."""
    names = {s: sp.Symbol(f"z{i}") for i, s in enumerate(symbols)}
    with sp.evaluate(False):
        renamed = [r.xreplace(names) for r in results]
    return sp.lambdify(list(names.values()), tuple(renamed), modules, cse=True)


def _records(law: Any, method: str, numbers: tuple) -> tuple:
    """Arguments of a rule from flat numbers: state first, then the event."""
    if isinstance(law, AbstractWindowLaw | AbstractQueueLaw):
        record = Ack if isinstance(law, AbstractWindowLaw) else Arrival
        size, fields = len(law.fields), len(record._fields)
        state, event = law.state_of(*numbers[:size]), numbers[size:]
        return state, record(*event[:fields]), *event[fields:]
    if isinstance(law, AbstractReaction) and method != "shares":
        fields = len(Since._fields)
        return Since(*numbers[:fields]), *numbers[fields:]
    if isinstance(law, AbstractFeedback) and method == "interpret":
        return (Signal(*numbers),)
    return numbers


def variants(law: Any) -> list[Any]:
    """The law as it is by default, with each of its choices made otherwise, and with all so."""
    default = law()
    others: dict[str, list[Any]] = {}
    for name, info in infos(law).items():
        value = getattr(default, name)
        if isinstance(value, bool):
            others[name] = [not value]
        elif len(info.choices) > 1:
            others[name] = [c for c in info.choices if c != value]
        elif isinstance(value, Law):
            alike: Any = LAWS[kind_of(type(value))].values()
            others[name] = [k() for k in alike if k is not type(value)]
    single = [dataclasses.replace(default, **{name: v}) for name, vs in others.items() for v in vs]
    if len(others) < 2:
        return [default, *single]
    every = dataclasses.replace(default, **{name: vs[-1] for name, vs in others.items()})
    return [default, *single, every]


def cases_of(law: Any, known: set[Any] | None = None) -> Iterator[Case]:
    """Each rule of a law with each of its choices made otherwise; nothing is called.

    A rule whose code is in `known`, to which all are added, comes with the usual choices alone.
    """
    known, default = set() if known is None else known, law()
    kind = next(kind for kind in RULES if issubclass(law, kind))
    if kind is AbstractMarking:
        known_windows: Any = LAWS["window"].values()
        windows = (window() for window in known_windows)
        polynomial = (w for w in windows if isinstance(w, AbstractPolynomial))
        yield from (Case(default, "probability", w) for w in polynomial)
        return
    for method in RULES[kind]:
        code = getattr(law, method)
        choices = [default] if code in known else variants(law)
        known.add(code)
        for variant in choices:
            if not isinstance(variant, AbstractLossClosure) or method != "lost":
                yield Case(variant, method)
            elif variant.window(0.1, 0.1) is None:  # else the law knows windows at equilibrium only
                yield from (Case(variant, method, recovery=name) for name in RECOVERIES)


def distinct(cases: Iterator[Case], seen: set[Any] | None = None) -> Iterator[Case]:
    """Cases that change something, without those of the same code and the same formulas."""
    seen = set() if seen is None else seen
    for case in cases:
        if case.window is None:
            key = (getattr(type(case.law), case.method), case.symbols, repr(case.recorded))
            if key in seen or _silent(case):
                continue
            seen.add(key)
        yield case


def _silent(case: Case) -> bool:
    """Whether a rule never changes anything."""
    _, results = case.recorded
    return not results or (case.method in _OPTIONAL and all(r == 0 for r in results))


DRAWS, SEED = 25, 2026

_ALL: Any = tuple(HealthCheck)
_SETTINGS = settings(
    backend=BACKEND, max_examples=DRAWS, database=None, deadline=None,
    phases=(Phase.generate, Phase.shrink), suppress_health_check=_ALL, report_multiple_bugs=False,
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
_SIGNED = st.one_of(_OTHER, _OTHER.map(operator.neg))

EVENT: Mapping[str, Numbers] = MappingProxyType(
    {
        "W": logarithmic(1e-2, 1e4),
        "n": _or(0.0, 1.0, general=logarithmic(1e-3, 1e3)),
        "e": _or(0.0, general=logarithmic(1e-6, 10.0)),
        "R": logarithmic(1e-3, 10.0),
        "t": _or(0.0, general=logarithmic(1e-3, 100.0)),
        r"\theta": _or(0.0, general=logarithmic(1e-5, 10.0)),
        "C": logarithmic(1.0, 1e6),
        "B": logarithmic(1.0, 1e4),
        r"\xi": _or(0.0, general=st.floats(0.01, 0.99)),
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
    drawn = []
    for one in case.owners:
        described = numeric_parameters(one)
        each = {name: inside(info) for name, info in described.items()}
        drawn.append(draw(accepted(one, each)))
    parameters: dict[str, float] = drawn[0]
    packets = [
        v for k, v in parameters.items()
        if isinstance(case.law, AbstractQueueLaw) and math.isfinite(v)
        and numeric_parameters(case.law)[k].unit == "packet"
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
        for info, share in ((f.info, f.is_share) for f in case.law.states.values()):
            if share or (info.within is not None and info.within.ends[0] > 0):
                known[info.symbol] = SHARE if share else inside(info)
    known |= {s.name: _SIGNED for s in case.asked.state if not s.is_nonnegative}
    symbols = (*case.asked.state, *case.asked.event)
    return [
        *(draw(known.get(s.name, _OTHER)) for s in symbols),
        *(v for own in drawn for v in own.values()),
    ]
