"""Every rule of every law as a function of plain numbers, found by walking the package."""

import dataclasses
import functools
import importlib
import inspect
import math
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numba
import numpy as np
import sympy as sp
from hypothesis import strategies as st
from strategies import logarithmic, parameters_of, variants

import fluidcc.laws
from fluidcc import symbolic
from fluidcc.laws.law import (
    AbstractFeedback,
    AbstractMarking,
    AbstractQueueLaw,
    AbstractReaction,
    AbstractWindowLaw,
    Ack,
    Arrival,
    Law,
    Signal,
    Since,
)
from fluidcc.laws.registry import LAWS
from fluidcc.laws.window.polynomial import AbstractPolynomial

ROWS = 4  # of numbers at a time: one shape, so that a rule is compiled once

RULES = {**symbolic.RULES, AbstractMarking: ("probability",)}


def concrete_laws() -> set[type[Law]]:
    """Classes of the package that can be made into a law, registered or not."""
    for module in pkgutil.walk_packages(fluidcc.laws.__path__, "fluidcc.laws."):
        importlib.import_module(module.name)

    def below(parent: type) -> Iterator[type]:
        for child in parent.__subclasses__():
            yield child
            yield from below(child)

    return {
        law
        for law in below(Law)
        if law.__module__.startswith("fluidcc.laws.") and not inspect.isabstract(law)
        and "Abstract" not in law.__name__
    }  # fmt: skip


def registered_laws() -> list[type[Law]]:
    return [law for kind in LAWS.values() for law in kind.values()]


def packet_forms() -> list[type[Law]]:
    """Laws that packets meet in the place of registered ones."""
    forms = [type(law().in_packets(60.0)) for law in LAWS["queue"].values()]
    return [form for form in forms if form not in LAWS["queue"].values()]


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """One rule of one law; `window` is the window law that a marking law is asked about, and
    `recovery` the sender's that a loss closure is asked about.
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
    def owner(self) -> Any:
        """The law whose parameters the rule depends on."""
        return self.law if self.window is None else self.window

    @functools.cached_property
    def rule(self) -> symbolic.Rule:
        if self.window is not None:
            return symbolic.marking_rule(self.law, self.window)
        return symbolic.rule(self.law, self.method, recovery=self.recovery)

    @property
    def symbols(self) -> tuple[sp.Symbol, ...]:
        return (*self.rule.state, *self.rule.event, *self.rule.parameters)

    @functools.cached_property
    def used(self) -> set[Any]:
        """Symbols that the results depend on."""
        return set().union(*(r.free_symbols for r in self.rule.results))

    def __call__(self, *numbers: Any) -> tuple:
        """Results for numbers in the order of `symbols`, computed by the law itself."""
        names = tuple(symbolic.parameter_symbols(self.owner))
        first = len(numbers) - len(names)
        owner = dataclasses.replace(self.owner, **dict(zip(names, numbers[first:], strict=True)))
        if self.window is not None:
            return (self.law.probability(numbers[0], owner),)
        arguments = _records(owner, self.method, numbers[:first])
        words = (self.recovery,) if self.recovery else ()
        results = getattr(owner, self.method)(*arguments, *words)
        return results if isinstance(results, tuple) else (results,)

    @functools.cached_property
    def batched(self) -> Callable[..., Any]:
        """The rule compiled by JAX: slopes and results (ROWS, ...) of numbers (ROWS, ...)."""

        def results(numbers: Any) -> tuple[Any, Any]:
            found = jnp.stack([jnp.asarray(r, float) for r in self(*numbers)])
            return found, found

        return jax.jit(jax.vmap(jax.jacfwd(results, has_aux=True)))

    def jax(self, numbers: list[float]) -> tuple[np.ndarray, np.ndarray]:
        """Results (k,) and their slopes (k, number of symbols) by JAX."""
        slopes, results = self.batched(np.tile(numbers, (ROWS, 1)))
        return np.asarray(results)[0], np.asarray(slopes)[0]

    @functools.cached_property
    def sympy(self) -> Callable[..., tuple]:
        """The rule's SymPy expressions as a function of floats."""
        return _function(self.symbols, list(self.rule.results), ["math"])

    @functools.cached_property
    def numba(self) -> Callable[..., tuple]:
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

    def scale(self, numbers: list[float], results: Any) -> np.ndarray:
        """Sizes of the numbers that results are differences of; 0 where they are none."""
        state, found = np.array(numbers[: len(self.rule.state)]), np.abs(results)
        event = {s.name: v for s, v in zip(self.symbols, numbers, strict=True)}
        if isinstance(self.law, AbstractWindowLaw):  # with time, to another power of the window
            powers = self.method == "on_ack" and any(s.name == "e" for s in self.used)
            return np.where(np.arange(found.size) == 0, powers * event["W"], 1.0)
        if self.method == "on_arrival":
            return np.maximum(state, event["q"])
        if self.method == "on_tick":
            return np.maximum(state, 1.0) + found
        if self.method == "lost":
            return np.full(found.shape, event["x"])
        if self.method in ("hears", "permit", "sending", "decode", "mean", "window"):
            return np.full(found.shape, max(1.0, *map(abs, event.values())))
        return np.ones(found.shape)  # probabilities


_STEP = sp.Function("step")


def _step(x: float, tie: float) -> float:
    """1 for positive, 0 for negative numbers, `tie` for what may be 0 but for round-off."""
    return tie if abs(x) < 1e-12 else float(x > 0)


def _function(symbols: tuple, results: list, modules: list) -> Callable[..., Any]:
    """Function of floats; symbols get names of Python here, as SymPy would simplify to do so."""
    names = {s: sp.Symbol(f"z{i}") for i, s in enumerate(symbols)}
    with sp.evaluate(False):
        renamed = [r.xreplace(names) for r in results]
    return sp.lambdify(list(names.values()), tuple(renamed), modules)


def _records(law: Any, method: str, numbers: tuple) -> tuple:
    """Arguments of a rule from flat numbers: state first, then the event."""
    if isinstance(law, AbstractWindowLaw | AbstractQueueLaw):
        record = Ack if isinstance(law, AbstractWindowLaw) else Arrival
        like, fields = law.start(1.0), len(record._fields)
        size = len(like) if isinstance(like, tuple) else 1
        state = numbers[0] if size else ()
        if hasattr(like, "_fields"):
            state = type(like)(*numbers[:size])
        event = numbers[size:]
        return state, record(*event[:fields]), *event[fields:]
    if isinstance(law, AbstractReaction) and method != "shares":
        fields = len(Since._fields)
        return Since(*numbers[:fields]), *numbers[fields:]
    if isinstance(law, AbstractFeedback) and method == "hears":
        return (Signal(*numbers),)
    return numbers


def _found() -> Iterator[Case]:
    """Each rule of each law with each of its choices made otherwise, unless the choice does not
    matter; a rule inherited from a law examined before only with the usual choices.
    """
    known: set[Any] = set()
    seen: set[Any] = set()
    for kind, methods in RULES.items():
        for law in (law for law in registered_laws() + packet_forms() if issubclass(law, kind)):
            if kind is AbstractMarking:
                windows = [w for w in registered_laws() if issubclass(w, AbstractPolynomial)]
                yield from (Case(law(), "probability", w()) for w in windows)
                continue
            for method in methods:
                code = getattr(law, method)
                choices = [law()] if code in known else variants(law)
                known.add(code)
                for case in _cases(choices, method):
                    if (code, case.rule) not in seen and not _silent(case):
                        seen.add((code, case.rule))
                        yield case


def _cases(choices: list, method: str) -> Iterator[Case]:
    """A rule of laws that differ in their choices."""
    for variant in choices:
        if method != "lost":
            yield Case(variant, method)
        elif variant.window(0.1, 0.1) is None:  # else the law knows windows at rest only
            yield from (Case(variant, method, recovery=way) for way in RECOVERIES)


def _silent(case: Case) -> bool:
    """Whether nothing ever happens by a rule."""
    optional = case.method in ("on_arrival", "observe", "on_tick")
    return not case.rule.results or (optional and all(r.is_zero for r in case.rule.results))


RECOVERIES = ("reno", "newreno", "sack")
CASES = list(_found())

_SHARE = st.one_of(st.sampled_from([0.0, 1.0]), logarithmic(1e-12, 1.0), st.floats(0.01, 0.99))
_EVENT = {
    "W": logarithmic(1e-2, 1e4),
    "n": st.one_of(st.just(0.0), st.just(1.0), logarithmic(1e-3, 1e3)),
    "e": st.one_of(st.just(0.0), logarithmic(1e-6, 10.0)),
    "R": logarithmic(1e-3, 10.0),
    "t": st.one_of(st.just(0.0), logarithmic(1e-3, 100.0)),
    "C": logarithmic(1.0, 1e6),
    "s": logarithmic(1e-2, 2.0),
    "j": st.integers(1, 1000).map(float),
    "p": _SHARE,
    "l": _SHARE,
    "m": st.sampled_from([0.0, 1.0]),
    "y": st.sampled_from([0.0, 1.0]),
    "d": st.sampled_from([0.0, 1.0]),
    "x": logarithmic(1e-3, 1e6),
    "U": st.one_of(st.just(0.0), st.floats(0.01, 0.99)),
    "h": st.one_of(st.sampled_from([0.0, 0.25, 0.5]), st.floats(0.01, 0.99)),
    r"\lambda": st.one_of(st.just(0.0), logarithmic(1e-2, 1e4)),
    r"\mu": st.one_of(st.just(0.0), logarithmic(1e-3, 1e4)),
    r"p_{\max}": _SHARE,
    r"\alpha": _SHARE,
    r"\sigma": _SHARE,
    "c": _SHARE,
    "o": st.sampled_from([0.0, 1.0]),
}
"""Ranges of what states and events tell, by symbol."""
_QUEUES = ("q", "v", "q_0", r"q_{\mathrm{av}}")
_LOADS = ("f", r"\hat f")


@st.composite
def numbers_of(draw: st.DrawFn, case: Case) -> list[float]:
    """Numbers in the order of the case's symbols; queues and loads often lie on a corner."""
    parameters = draw(parameters_of(case.owner))
    packets = [
        v for k, v in parameters.items()
        if isinstance(case.owner, AbstractQueueLaw) and math.isfinite(v)
        and case.owner.__dataclass_fields__[k].metadata["info"].unit == "packet"
    ]  # fmt: skip
    corners = [0.0, *packets, *(2 * v for v in packets), sum(packets)]
    queue = st.one_of(st.sampled_from(corners), logarithmic(1e-2, 1e3))
    bends = [parameters[k] for k in ("lowest", "mild", "highest") if k in parameters]
    load = st.one_of(st.sampled_from([0.0, 1.0, *bends]), st.floats(0.01, 2.0))
    ranges = _EVENT | dict.fromkeys(_QUEUES, queue) | dict.fromkeys(_LOADS, load)
    if isinstance(case.law, AbstractWindowLaw):
        ranges["m"] = _SHARE  # of several packets
    if isinstance(case.law, AbstractFeedback):
        ranges["W"] = logarithmic(1.1, 1e4)  # below it a window is no flight of packets
    events = [draw(ranges[s.name]) for s in (*case.rule.state, *case.rule.event)]
    return [*events, *parameters.values()]
