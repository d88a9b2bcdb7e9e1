"""What every law must satisfy, found by itself: a new law is tested by being registered.

A rule is one function for JAX, SymPy and compiled Python; it returns a change; it never branches on
the state in Python. What judges is the battery of the package, which `fluidcc check-law` runs too;
Hypothesis draws the numbers here.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import fluidcc.laws
from fluidcc import ops
from fluidcc.check import assertions, checks
from fluidcc.check.cases import RULES, Case, cases_of, distinct, numbers_of
from fluidcc.check.checks import Subject, in_parts
from fluidcc.laws import Droptail, Threshold
from fluidcc.laws.law import Arrival, Law
from fluidcc.laws.registry import LAWS
from fluidcc.programs import slope


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


def _found() -> Iterator[Case]:
    """Each rule of each law with each of its choices made otherwise, unless the choice does not
    matter; a rule inherited from a law examined before only with the usual choices.
    """
    known, seen = set(), set()
    for kind in RULES:
        for law in (law for law in registered_laws() + packet_forms() if issubclass(law, kind)):
            yield from distinct(cases_of(law, known), seen)


CASES = list(_found())


each_rule = pytest.mark.parametrize("case", CASES, ids=str)


def test_every_concrete_law_is_registered():
    forms = {type(law().in_packets()) for law in LAWS["window"].values()}
    assert concrete_laws() == {*registered_laws(), *packet_forms(), *forms}


@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.__name__)
def test_every_abstract_rule_is_examined(kind):
    assert kind.__abstractmethods__ <= set(RULES[kind])


def test_names_are_unique_within_a_kind():
    laws = registered_laws()
    kinds = {(next(k for k in law.__mro__ if k.__name__.startswith("Abstract")), law.name)
             for law in laws}  # fmt: skip
    assert len(kinds) == len(laws)


@each_rule
@settings(max_examples=25)
@given(data=st.data())
def test_one_definition_holds_in_three_engines(case: Case, data: st.DataObject):
    """JAX, SymPy and Numba agree, in values and derivatives; whatever else numbers can show."""
    judges = [assertions.engines_agree]
    if not getattr(case.law, "no_mean", ""):  # else nothing takes a slope
        judges.append(assertions.derivatives_agree)
    if case.method in assertions.REGULAR:
        judges.append(assertions.still_without_events)
    if case.method in ("on_mark", "on_loss"):
        judges.append(assertions.never_raises_the_window)
    if assertions.has_probability(case):
        judges.append(assertions.is_probability)
    numbers = data.draw(numbers_of(case))
    assert [fault for judge in judges if (fault := judge(case, numbers))] == []


FOUND = Arrival(1.0, 0.0, 30.0, 1000.0)
CORNERED = [Threshold(width=8.0)] + [
    c.law for c in CASES if c.method == "signal" and c.law.breakpoints(c.law.start(30.0), FOUND)
]


@pytest.mark.parametrize("law", CORNERED, ids=str)
def test_corners_of_marking_are_those_that_the_law_names(law):
    assert list(checks.corners(law)) == []
    found = [FOUND._replace(queue=v, sojourn=v / 1000) for v in np.arange(0.5, 200.0)]
    signs = np.sign([law.breakpoints(law.start(v.queue), v) for v in found])
    assert np.any(signs[1:] != signs[:-1])  # else there was none to look at


@each_rule
def test_rules_are_what_a_rule_must_be(case: Case):
    """They batch, return what they should, and decide by `ops` alone."""
    for judge in (assertions.batches, assertions.returns_what_it_should, assertions.decides_by_ops):
        assert judge(case) is None


ARRIVALS = [c for c in CASES if c.method == "on_arrival" and type(c.law) in registered_laws()]
"""Without those of packet forms, which count whole packets."""


@pytest.mark.parametrize("case", ARRIVALS, ids=str)
@settings(max_examples=10)
@given(data=st.data())
def test_arrivals_add_up(case: Case, data: st.DataObject):
    assert assertions.adds_up(case, data.draw(in_parts(case))) is None


@pytest.mark.parametrize("kind", LAWS["queue"].values(), ids=lambda k: k.name)
def test_what_queue_laws_declare_is_so(kind):
    assert list(checks.declared(kind())) == []


@pytest.mark.parametrize("law", registered_laws(), ids=lambda law: law.name)
def test_what_a_law_says_of_itself_is_in_order(law):
    """Parameters out of range, symbols and LaTeX, by the checks of the report."""
    subject = Subject(law)
    for check in (checks.ranges, checks.symbols, checks.latex):
        faults, _ = check(subject)
        assert not faults


def test_the_arithmetic_takes_symbols_arrays_and_floats():
    x = sp.Symbol("x")
    for value, kind in ((0.5, float), (jnp.asarray(0.5), jax.Array), (x, sp.Basic)):
        for function in (ops.exp, ops.expm1, ops.sqrt, lambda a: ops.clip(a, 0.0, 0.25)):
            assert isinstance(function(value), kind)
    for value in (0.5, np.array(0.5), jnp.asarray(0.5)):
        for least, chosen in ((0.0, 2.0), (1.0, 3.0)):
            no = ops.logical_not(value > least)
            assert float(ops.where(no, 3.0, 2.0)) == float(ops.where(no | no, 3.0, 2.0)) == chosen
    assert ops.logical_not(x > 1) == (x <= 1)
    assert slope(lambda k: (k**2 + 3 * k, 1.0), 1.0) == (3.0, 0.0)
    assert slope(lambda k: x * ops.exp(k), x) == x
    assert Droptail().start(3.0) == ()
