"""The compiled hooks of the packet engine do what the rules of the laws say."""

import ctypes
import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from law_cases import CASES, Case

from fluidcc.check.strategies import numbers_of
from fluidcc.laws import symbolic
from fluidcc.laws.law import (
    AbstractEstimator,
    AbstractMarking,
    AbstractQueueLaw,
    AbstractReaction,
    AbstractWindowLaw,
    Ack,
    Arrival,
)
from fluidcc.laws.symbolic import parameter_symbols
from fluidcc.laws.window.bmcc import BMCC
from fluidcc.laws.window.reno import Reno
from fluidcc.packets.engine import records as r
from fluidcc.packets.hooks import law_hooks, queue_state, window_memory

_KINDS = (
    AbstractWindowLaw | AbstractQueueLaw | AbstractReaction | AbstractMarking | AbstractEstimator
)
some_draws = settings(max_examples=10)


def called(address: int, block: np.ndarray) -> np.ndarray:
    """The block after a call of the hook at an address."""
    pointer = ctypes.POINTER(ctypes.c_double)
    after = block.copy()
    ctypes.CFUNCTYPE(ctypes.c_int64, pointer)(address)(after.ctypes.data_as(pointer))
    return after


def drawn(case: Case, data: st.DataObject) -> tuple:
    """Numbers for a rule, and the law with its share of them as parameters."""
    numbers = data.draw(numbers_of(case))
    names = list(parameter_symbols(case.owner))
    values = numbers[len(numbers) - len(names) :]
    law = dataclasses.replace(case.owner, **dict(zip(names, values, strict=True)))
    return numbers, law


def of_kind(*methods: str, kinds: Any = _KINDS) -> pytest.MarkDecorator:
    cases = [c for c in CASES if c.method in methods and isinstance(c.law, kinds)]
    return pytest.mark.parametrize("case", cases, ids=str)


@of_kind("on_ack", "on_mark", "on_loss", "observe", "on_tick", kinds=AbstractWindowLaw)
@some_draws
@given(data=st.data())
def test_window_hooks(case: Case, data: st.DataObject):
    numbers, law = drawn(case, data)
    size = len(case.rule.state)
    w, *memory = numbers[:size]
    told = Ack(*numbers[size : size + len(Ack._fields)])._replace(count=1.0)
    hooks = law_hooks("window", law, state=window_memory(law))
    event = [r.W_WINDOW, r.W_ELAPSED, r.W_RTT, r.W_MARKED, r.W_LOAD]
    hooks.block[event] = w, told.elapsed, told.rtt, told.marked, told.load
    hooks.block[r.W_STATE : r.W_STATE + size - 1] = memory
    after = called(hooks.addresses.get(case.method, 0), hooks.block)
    found = [after[r.W_WINDOW], *after[r.W_STATE : r.W_STATE + size - 1]]
    changes = case.sympy(w, *memory, *told, *numbers[size + len(Ack._fields) :])
    expected = [old + change for old, change in zip((w, *memory), changes, strict=True)]
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12 * w)
    if case.method == "on_mark":
        changed = sum(map(abs, changes))
        assert after[r.W_CHANGED] == pytest.approx(changed, rel=1e-9, abs=1e-12 * w)


@pytest.mark.parametrize(
    ("law", "period", "slow"),
    [
        (Reno(), None, None),
        (BMCC(), 0.2, 0.0),
        (BMCC(md="per_rtt"), 0.07, 0.0),
        (BMCC(needs_mark=True), None, 0.0),
        (BMCC(fallback=True), 0.2, 1.0),
    ],
)
def test_answers_of_window_laws(law, period, slow):
    """What is always so has no hook."""
    hooks = law_hooks("window", law, state=window_memory(law))
    hooks.block[[r.W_WINDOW, r.W_RTT]] = 20.0, 0.07
    if window_memory(law):
        hooks.block[r.W_STATE] = 1.0  # in the fallback
    answers = (
        (hooks.addresses["period"], r.W_PERIOD, period),
        (hooks.addresses["slow_start"], r.W_SLOW, slow),
    )
    for hook, slot, expected in answers:
        assert (called(hook, hooks.block)[slot] if hook else None) == expected


@of_kind("decode")
@some_draws
@given(data=st.data())
def test_estimator_hooks(case: Case, data: st.DataObject):
    numbers, law = drawn(case, data)
    addresses, block = law_hooks("estimator", law)
    block[[r.E_ESTIMATE, r.E_HASHED, r.E_LOAD]] = numbers[:3]
    block[r.E_PARAMETERS :] = numbers[3:]
    (change,) = case.sympy(*numbers)
    found = called(addresses["decode"], block)[r.E_ESTIMATE]
    assert found == pytest.approx(numbers[0] + change, rel=1e-12, abs=1e-12)


@of_kind("ready", "growing")
@some_draws
@given(data=st.data())
def test_reaction_hooks(case: Case, data: st.DataObject):
    numbers, law = drawn(case, data)
    hooks = law_hooks("reaction", law)
    hooks.block[r.R_TIME : r.R_TIME + len(numbers)] = numbers
    address = hooks.addresses.get(case.method, 0)  # none for what is always so
    found = called(address, hooks.block)[r.R_RESULT] if address else 1.0
    assert found == case.sympy(*numbers)[0]


@of_kind("probability")
@some_draws
@given(data=st.data())
def test_marking_hooks(case: Case, data: st.DataObject):
    numbers, window = drawn(case, data)
    addresses, block = law_hooks("marking", case.law, window)
    address = addresses["marking"]
    block[r.M_PROBABILITY] = numbers[0]
    found = called(address, block)[r.M_PROBABILITY] if address else numbers[0]
    assert found == pytest.approx(float(case.sympy(*numbers)[0]), rel=1e-12)


@of_kind("chance")
@some_draws
@given(data=st.data())
def test_queue_hooks(case: Case, data: st.DataObject):
    numbers, law = drawn(case, data)
    size, fields = len(case.rule.state), len(Arrival._fields)
    state, arrival, gap = numbers[:size], numbers[size : size + fields], numbers[size + fields]
    hooks, seen = law_hooks("queue", law, state=queue_state(law, 0.0)), Arrival(*arrival)
    if not hooks.addresses["signal"]:  # a law that never says anything has no hooks
        assert case.sympy(*numbers) == (0.0,)
        return
    event = [r.Q_COUNT, r.Q_ELAPSED, r.Q_QUEUE, r.Q_CAPACITY, r.Q_SIZE, r.Q_GAP]
    hooks.block[event] = *arrival, gap
    places = slice(r.Q_STATE, r.Q_STATE + size)
    hooks.block[places] = state
    said = called(hooks.addresses["signal"], hooks.block)
    assert said[r.Q_CHANCE] == pytest.approx(float(case.sympy(*numbers)[0]), rel=1e-12)
    x = symbolic.state_symbols(law)
    x = law.state_of(*state)
    assert said[r.Q_LOAD] == (law.signal(x, seen).load if law.loads else 0.0)
    rules = [
        (hooks.addresses["update"], law.on_arrival(x, seen)),
        (hooks.addresses["arrive"], law.on_arrival(x, seen._replace(count=1.0))),
        *([(hooks.addresses["tick"], law.on_tick(x, seen))] if hooks.addresses["tick"] else []),
    ]
    for hook, change in rules:
        change = change if isinstance(change, tuple) else (change,)
        expected = np.add(state, change)
        if law.limits is not None:
            expected = np.clip(expected, *law.limits)
        scale = 1e-12 * max(seen.queue, 1.0, *state) if state else 0.0
        assert called(hook, hooks.block)[places] == pytest.approx(expected, rel=1e-12, abs=scale)
