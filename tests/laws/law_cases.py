"""Every rule of every law as a function of plain numbers, found by walking the package."""

import dataclasses
import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numba
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


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """One rule of one law; `window` is the window law that a marking law is asked about."""

    law: Any
    method: str
    window: Any = None

    def __str__(self) -> str:
        choices = [
            f"{f.name}={getattr(getattr(self.law, f.name), 'name', getattr(self.law, f.name))}"
            for f in dataclasses.fields(self.law)
            if f.name not in symbolic.parameter_symbols(self.law)
            and getattr(self.law, f.name) != getattr(type(self.law)(), f.name)
        ]
        if self.window is not None:
            choices.append(self.window.name)
        return ".".join([self.law.name, self.method]) + "".join(f"[{c}]" for c in choices)

    @property
    def owner(self) -> Any:
        """The law whose parameters the rule depends on."""
        return self.law if self.window is None else self.window

    @functools.cached_property
    def rule(self) -> symbolic.Rule:
        if self.window is not None:
            return symbolic.marking_rule(self.law, self.window)
        return symbolic.rule(self.law, self.method)

    @property
    def symbols(self) -> tuple[sp.Symbol, ...]:
        return (*self.rule.state, *self.rule.event, *self.rule.parameters)

    def __call__(self, *numbers: Any) -> tuple:
        """Results for numbers in the order of `symbols`, computed by the law itself."""
        names = tuple(symbolic.parameter_symbols(self.owner))
        first = len(numbers) - len(names)
        owner = dataclasses.replace(self.owner, **dict(zip(names, numbers[first:], strict=True)))
        if self.window is not None:
            return (self.law.probability(numbers[0], owner),)
        arguments = _records(owner, self.method, numbers[:first])
        results = getattr(owner, self.method)(*arguments)
        return results if isinstance(results, tuple) else (results,)

    @functools.cached_property
    def jax(self) -> Callable[..., Any]:
        """The rule compiled by JAX: an array of results from an array of numbers."""

        def results(numbers: Any) -> Any:
            return jnp.stack([jnp.asarray(r, float) for r in self(*numbers)])

        return jax.jit(results)

    @functools.cached_property
    def jacobian(self) -> Callable[..., Any]:
        return jax.jit(jax.jacfwd(self.jax))

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

    @property
    def scale(self) -> Callable[[list[float]], float]:
        """Size of the numbers that the result is a difference of; 0 where it is none."""
        if isinstance(self.law, AbstractWindowLaw):
            return lambda numbers: 0.0
        if self.method == "on_arrival":
            return lambda numbers: max(numbers[0], numbers[3])  # average and queue
        return lambda numbers: 1.0  # probabilities


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
    if isinstance(law, AbstractWindowLaw):
        return numbers[0], Ack(*numbers[1:])
    if isinstance(law, AbstractQueueLaw):
        remembers = law.start(0.0) != ()
        state, event = (numbers[0], numbers[1:]) if remembers else ((), numbers)
        fields = len(Arrival._fields)
        return state, Arrival(*event[:fields]), *event[fields:]
    if isinstance(law, AbstractReaction) and method != "shares":
        return Since(*numbers[:3]), *numbers[3:]
    if isinstance(law, AbstractFeedback):
        return (Signal(*numbers),)
    return numbers


def _found() -> Iterator[Case]:
    for kind, methods in RULES.items():
        for law in (law for law in registered_laws() if issubclass(law, kind)):
            if kind is AbstractMarking:
                windows = [w for w in registered_laws() if issubclass(w, AbstractPolynomial)]
                yield from (Case(law(), "probability", w()) for w in windows)
                continue
            for method in methods:
                seen = set()
                for variant in variants(law):
                    case = Case(variant, method)
                    if case.rule.results and case.rule not in seen:  # a choice may not matter
                        seen.add(case.rule)
                        yield case


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
}
"""Ranges of what states and events tell, by symbol."""


@st.composite
def numbers_of(draw: st.DrawFn, case: Case) -> list[float]:
    """Numbers in the order of the case's symbols; queues often lie on a threshold of the law."""
    parameters = draw(parameters_of(case.owner))
    packets = [
        v for k, v in parameters.items() if isinstance(case.owner, AbstractQueueLaw)
        and case.owner.__dataclass_fields__[k].metadata["info"].unit == "packet"
    ]  # fmt: skip
    corners = [0.0, *packets, *(2 * v for v in packets), sum(packets)]
    queue = st.one_of(st.sampled_from(corners), logarithmic(1e-2, 1e3))
    events = [
        draw(queue if s.name in ("q", "v") else _EVENT[s.name])
        for s in (*case.rule.state, *case.rule.event)
    ]
    return [*events, *parameters.values()]
