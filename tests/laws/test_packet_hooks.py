"""The compiled hooks of the packet engine do what the rules of the laws say."""

import ctypes
import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from law_cases import CASES, Case, numbers_of

from fluidcc.laws.law import (
    AbstractMarking,
    AbstractQueueLaw,
    AbstractReaction,
    AbstractWindowLaw,
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
    return pytest.mark.parametrize("case", cases, ids=str)


@of_kind("on_ack", "on_mark", "on_loss")
@some_draws
@given(data=st.data())
def test_window_hooks(case: Case, data: st.DataObject):
    numbers, law = drawn(case, data)
    w, _, elapsed, rtt = numbers[:4]
    hooks = window_hooks(law)
    hooks.block[[r.W_WINDOW, r.W_ELAPSED, r.W_RTT]] = w, elapsed, rtt
    found = called(getattr(hooks, case.method), hooks.block)[r.W_WINDOW]
    (change,) = case.sympy(w, 1.0, elapsed, rtt, *numbers[4:])
    assert found == pytest.approx(w + change, rel=1e-12, abs=1e-12 * w)


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
    remembers = len(case.rule.state)
    *arrival, gap = numbers[remembers : len(case.rule.state) + len(case.rule.event)]
    average = numbers[0] if remembers else 0.0
    hooks = queue_hooks(law, average)
    if not hooks.say:  # a law that never says anything has no hooks
        assert case.sympy(*numbers) == (0.0,)
        return
    event = [r.Q_COUNT, r.Q_ELAPSED, r.Q_QUEUE, r.Q_CAPACITY, r.Q_SIZE, r.Q_GAP]
    hooks.block[event] = *arrival, gap
    said = called(hooks.say, hooks.block)
    assert said[r.Q_CHANCE] == pytest.approx(float(case.sympy(*numbers)[0]), rel=1e-12)
    if remembers:
        many = Arrival(*arrival)
        scale = 1e-12 * max(average, many.queue)
        for hook, seen in ((hooks.update, many), (hooks.arrive, many._replace(count=1.0))):
            found = called(hook, hooks.block)[r.Q_CHANCE + 1]
            expected = average + law.on_arrival(average, seen)
            assert found == pytest.approx(expected, rel=1e-12, abs=scale)
