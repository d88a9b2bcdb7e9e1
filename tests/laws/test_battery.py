"""What every law must satisfy, found by itself: a new law is tested by being registered.

Reference: the laws module's own statement. A rule is one function for JAX, SymPy and compiled
Python; it returns a change; it never branches on the state in Python.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from law_cases import (
    CASES,
    RULES,
    Case,
    concrete_laws,
    numbers_of,
    packet_forms,
    registered_laws,
)

from fluidcc import ops, symbolic
from fluidcc.laws.law import Arrival
from fluidcc.laws.parameters import infos
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.queue.threshold import Threshold
from fluidcc.laws.registry import LAWS
from fluidcc.laws.window.reno import Reno

each_rule = pytest.mark.parametrize("case", CASES, ids=str)
some_draws = settings(max_examples=25)


def as_floats(results) -> np.ndarray:
    return np.array([float(r) for r in results])


def test_every_concrete_law_is_registered():
    assert concrete_laws() == {*registered_laws(), *packet_forms()}


@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.__name__)
def test_every_abstract_rule_is_examined(kind):
    assert kind.__abstractmethods__ <= set(RULES[kind])


def test_names_are_unique_within_a_kind():
    laws = registered_laws()
    kinds = {(next(k for k in law.__mro__ if k.__name__.startswith("Abstract")), law.name)
             for law in laws}  # fmt: skip
    assert len(kinds) == len(laws)


# -- one definition, three engines ------------------------------------------------------------


@each_rule
@some_draws
@given(data=st.data())
def test_jax_sympy_and_numba_agree(case: Case, data: st.DataObject):
    numbers = data.draw(numbers_of(case))
    by_jax, _ = case.jax(numbers)
    floor = 1e-12 * case.scale(numbers, by_jax)
    for other in (case.sympy, case.numba, case):  # the last: the law itself on plain floats
        error = np.abs(as_floats(other(*numbers)) - by_jax)
        assert (error <= 1e-12 * np.abs(by_jax) + floor).all()


@each_rule
@some_draws
@given(data=st.data())
def test_derivatives_by_jax_and_sympy_agree(case: Case, data: st.DataObject):
    # At a corner of min or max, JAX may give anything between the slopes of both sides.
    numbers = data.draw(numbers_of(case))
    by_jax = case.jax(numbers)[1].ravel()
    by_sympy = np.array([case.sympy_slopes(tie, *numbers) for tie in (0.0, 0.5, 1.0)])
    assert np.isfinite(by_jax).all()
    size = max(case.scale(numbers, np.zeros(1)).max(), np.abs(by_sympy).max(initial=0.0))
    margin = 1e-10 * (np.abs(by_sympy) + size)
    assert (by_jax >= (by_sympy - margin).min(axis=0)).all()
    assert (by_jax <= (by_sympy + margin).max(axis=0)).all()


CORNERED = [Threshold(width=8.0)] + [
    c.law for c in CASES if c.method == "signal" and c.law.kinks(c.law.start(30.0), 30.0)
]


@pytest.mark.parametrize("law", CORNERED, ids=str)
def test_corners_of_marking_are_those_that_the_law_names(law):
    @jax.jit
    @jax.vmap
    @jax.grad
    def slope(v):  # of the marking probability where queue and average are both v
        return law.signal(law.start(v), Arrival(1.0, 0.0, v, 1000.0)).mark + 0.0 * v

    grid = np.arange(0.5, 200.0)  # between the integers where the corners are
    signs = np.sign([law.kinks(law.start(v), v) for v in grid])
    corner = np.any(signs[1:] != signs[:-1], axis=1)
    assert corner.any()
    slopes = slope(grid)
    bends = np.abs(np.diff(slopes)) > 0.5 * np.abs(slopes).max()
    assert not (bends & ~corner).any()
    corners = np.resize(grid[:-1][corner] + 0.5, grid.shape)  # of one shape: one compilation
    left, at, right = (np.asarray(slope(corners + d)) for d in (-1e-9, 0.0, 1e-9))
    assert (at >= np.minimum(left, right) - 1e-12).all()
    assert (at <= np.maximum(left, right) + 1e-12).all()


@each_rule
def test_rules_batch_and_have_finite_gradients(case: Case):
    rows = [_plain_numbers(case, p) for p in (0.0, 1e-9, 0.3, 1.0)]
    slopes, batched = case.batched(np.array(rows))
    assert np.isfinite(slopes).all()
    for row, result in zip(rows, batched, strict=True):
        np.testing.assert_allclose(result, as_floats(case(*row)), rtol=1e-13, atol=1e-15)


def _plain_numbers(case: Case, p: float) -> list[float]:
    """The law's own parameters, probability `p` and moderate numbers elsewhere."""
    usual = {"W": 8.0, "n": 1.0, "R": 0.1, "v": 30.0, "q": 40.0, "C": 1250.0, "s": 1.0, "j": 2.0,
             "f": 0.9, "x": 80.0, r"p_{\max}": 0.1}  # fmt: skip
    event = [
        p if s.name in ("p", "l") else usual.get(s.name, 0.0)
        for s in (*case.rule.state, *case.rule.event)
    ]
    finite = [min(v, 1e6) for v in symbolic.parameter_values(case.owner)]
    return [*event, *finite]


# -- what a rule must be ----------------------------------------------------------------------


def branches_in_python(case: Case) -> str | None:
    """Name of the rule if it decides in Python on a number that an engine traces."""
    try:
        jax.eval_shape(lambda x: [jnp.asarray(r) for r in case(*x)], np.ones(len(case.symbols)))
        case.rule  # noqa: B018
    except (jax.errors.TracerBoolConversionError, TypeError) as error:
        return f"{case} branches on a traced number: {error}"
    return None


@each_rule
def test_no_python_branch_on_numbers(case: Case):
    fault = branches_in_python(case)
    assert fault is None, fault


class Branching(Reno):
    name: ClassVar[str] = "branching"

    def on_mark(self, s, ack):
        return -s / 2 if s > 2 else 0.0 * s


def test_a_branching_rule_is_named():
    fault = branches_in_python(Case(Branching(), "on_mark"))
    assert fault is not None and fault.startswith("branching.on_mark")
    assert branches_in_python(Case(Branching(), "on_ack")) is None


REGULAR = [c for c in CASES if c.method in ("on_ack", "observe", "on_arrival")]
few_draws = settings(max_examples=10)


def with_event(case: Case, numbers: list[float], **event: float) -> list[float]:
    """The numbers with some of those that the event tells replaced, by symbol."""
    return [event.get(s.name, v) for s, v in zip(case.symbols, numbers, strict=True)]


@pytest.mark.parametrize("case", REGULAR, ids=str)
@few_draws
@given(data=st.data())
def test_nothing_changes_without_packets_and_time(case: Case, data: st.DataObject):
    numbers = with_event(case, data.draw(numbers_of(case)), n=0.0, e=0.0)
    assert (as_floats(case(*numbers)) == 0.0).all()


ARRIVALS = [c for c in REGULAR if c.method == "on_arrival" and type(c.law) in registered_laws()]
"""Without those of packet forms, which count whole packets."""


@pytest.mark.parametrize("case", ARRIVALS, ids=str)
@few_draws
@given(data=st.data())
def test_arrivals_add_up(case: Case, data: st.DataObject):
    numbers, size = data.draw(numbers_of(case)), len(case.rule.state)
    n, m = (data.draw(st.floats(0.0, 50.0)) for _ in "nm")
    e, f = (data.draw(st.floats(0.0, 1.0)) for _ in "ef")
    first = as_floats(case(*with_event(case, numbers, n=n, e=e)))
    between = [*(numbers[:size] + first), *numbers[size:]]
    then = as_floats(case(*with_event(case, between, n=m, e=f)))
    both = as_floats(case(*with_event(case, numbers, n=n + m, e=e + f)))
    scale = case.scale(numbers, both) + np.abs(first) + np.abs(then)
    np.testing.assert_array_less(np.abs(first + then - both), 1e-12 * scale + 1e-300)


SHARES = ("p", r"p_{\max}", "c", r"\alpha", r"\sigma")
"""Symbols of the numbers of a state that are probabilities or shares."""
SHARE_KEEPERS = [
    c for c in CASES if c.method in ("on_tick", "observe", "on_mark", "on_loss")
    and any(s.name in SHARES for s in c.rule.state)
]  # fmt: skip


@pytest.mark.parametrize("case", SHARE_KEEPERS, ids=str)
@few_draws
@given(data=st.data())
def test_probabilities_and_shares_of_a_state_stay_such(case: Case, data: st.DataObject):
    numbers = with_event(case, data.draw(numbers_of(case)), n=1.0)
    for k, (symbol, change) in enumerate(zip(case.rule.state, case(*numbers), strict=True)):
        if symbol.name in SHARES:
            assert -1e-15 <= numbers[k] + change <= 1 + 1e-15


@pytest.mark.parametrize("kind", LAWS["queue"].values(), ids=lambda k: k.name)
def test_what_queue_laws_declare_is_so(kind):
    law = kind()
    said, arrival = symbolic.rule(law, "signal"), symbolic.rule(law, "on_arrival")
    told = set().union(*(r.free_symbols for r in said.results))
    still = {s for s, change in zip(arrival.state, arrival.results, strict=True) if change.is_zero}
    fixed = told <= still | set(said.parameters)
    assert law.held == (bool(told) and fixed and law.period is not None)
    assert law.loads == (not said.results[-1].is_zero)
    moved = symbolic.rule(law, "on_tick").results
    assert (law.period is None) == all(r.is_zero for r in moved)
    assert law.period is None or infos(law)[law.period].unit == "s"
    assert len(law.symbols) >= len(said.state)


PROBABILITIES = [
    c for c in CASES if c.method in ("signal", "chance", "shares", "ready", "growing", "rate",
                                     "probability")
]  # fmt: skip


@pytest.mark.parametrize("case", PROBABILITIES, ids=str)
@some_draws
@given(data=st.data())
def test_probabilities_lie_in_the_unit_interval(case: Case, data: st.DataObject):
    numbers = data.draw(numbers_of(case))
    assume(case.method != "shares" or numbers[1] >= 1)  # a block has at least one ACK
    results = as_floats(case.sympy(*numbers))[:2]  # not the load factor of a signal
    assert ((results >= 0) & (results <= 1 + 1e-12)).all()


def test_the_arithmetic_takes_symbols_arrays_and_floats():
    x = sp.Symbol("x")
    for value, kind in ((0.5, float), (jnp.asarray(0.5), jax.Array), (x, sp.Basic)):
        for function in (ops.exp, ops.expm1, ops.sqrt, lambda a: ops.clip(a, 0.0, 0.25)):
            assert isinstance(function(value), kind)
    assert ops.slope(lambda k: (k**2 + 3 * k, 1.0), 1.0) == (3.0, 0.0)
    assert ops.slope(lambda k: x * ops.exp(k), x) == x
    assert Droptail().start(3.0) == ()
