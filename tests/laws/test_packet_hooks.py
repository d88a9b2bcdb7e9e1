"""The compiled hooks of the packet engine do what the rules of the laws say."""

import ctypes
import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from law_cases import CASES, Case, numbers_of

from fluidcc import symbolic
from fluidcc.laws.law import (
    AbstractMarking,
    AbstractQueueLaw,
    AbstractReaction,
    AbstractWindowLaw,
    Ack,
    Arrival,
)
from fluidcc.packets import records as r
from fluidcc.packets.compile import marking_hook, queue_hooks, reaction_hooks, window_hooks
from fluidcc.symbolic import parameter_symbols

_KINDS = AbstractWindowLaw | AbstractQueueLaw | AbstractReaction | AbstractMarking
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


def of_kind(*methods: str) -> pytest.MarkDecorator:
    cases = [c for c in CASES if c.method in methods and isinstance(c.law, _KINDS)]
    cases = [c for c in cases if not (isinstance(c.law, AbstractWindowLaw) and c.law.loads)]
    return pytest.mark.parametrize("case", cases, ids=str)


@of_kind("on_ack", "on_mark", "on_loss", "observe")
@some_draws
@given(data=st.data())
def test_window_hooks(case: Case, data: st.DataObject):
    numbers, law = drawn(case, data)
    size = len(case.rule.state)
    w, *memory = numbers[:size]
    told = Ack(*numbers[size : size + len(Ack._fields)])._replace(count=1.0, load=0.0)
    hooks = window_hooks(law)
    event = [r.W_WINDOW, r.W_ELAPSED, r.W_RTT, r.W_MARKED]
    hooks.block[event] = w, told.elapsed, told.rtt, told.marked
    hooks.block[r.W_STATE : r.W_STATE + size - 1] = memory
    after = called(getattr(hooks, case.method), hooks.block)
    found = [after[r.W_WINDOW], *after[r.W_STATE : r.W_STATE + size - 1]]
    changes = case.sympy(w, *memory, *told, *numbers[size + len(Ack._fields) :])
    expected = [old + change for old, change in zip((w, *memory), changes, strict=True)]
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12 * w)


@of_kind("ready", "growing")
@some_draws
@given(data=st.data())
def test_reaction_hooks(case: Case, data: st.DataObject):
    numbers, law = drawn(case, data)
    hooks = reaction_hooks(law)
    hooks.block[r.R_TIME : r.R_TIME + len(numbers)] = numbers
    found = called(getattr(hooks, case.method), hooks.block)[r.R_RESULT]
    assert found == case.sympy(*numbers)[0]


@of_kind("probability")
@some_draws
@given(data=st.data())
def test_marking_hooks(case: Case, data: st.DataObject):
    numbers, window = drawn(case, data)
    address, block = marking_hook(case.law, window)
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
    hooks, seen = queue_hooks(law, 0.0), Arrival(*arrival)
    if not hooks.say:  # a law that never says anything has no hooks
        assert case.sympy(*numbers) == (0.0,)
        return
    event = [r.Q_COUNT, r.Q_ELAPSED, r.Q_QUEUE, r.Q_CAPACITY, r.Q_SIZE, r.Q_GAP]
    hooks.block[event] = *arrival, gap
    places = slice(r.Q_STATE, r.Q_STATE + size)
    hooks.block[places] = state
    said = called(hooks.say, hooks.block)
    assert said[r.Q_CHANCE] == pytest.approx(float(case.sympy(*numbers)[0]), rel=1e-12)
    x = symbolic.state_symbols(law)
    x = type(x)(*state) if isinstance(x, tuple) else state[0]
    rules = [
        (hooks.update, law.on_arrival(x, seen)),
        (hooks.arrive, law.on_arrival(x, seen._replace(count=1.0))),
        *([(hooks.tick, law.on_tick(x, seen))] if hooks.tick else []),
    ]
    for hook, change in rules:
        change = change if isinstance(change, tuple) else (change,)
        expected = np.add(state, change)
        if law.limits is not None:
            expected = np.clip(expected, *law.limits)
        scale = 1e-12 * max(seen.queue, 1.0, *state) if state else 0.0
        assert called(hook, hooks.block)[places] == pytest.approx(expected, rel=1e-12, abs=scale)
