"""Calls in threads: one of each program goes first, and what it cannot do none can."""

import threading

import jax
import pytest

from fluidcc import memory
from fluidcc.analysis.batch.threads import in_threads
from fluidcc.model.simulate_batch import compiling_once


def run_all(calls, threads):
    """What pairs of a program and a function give."""
    programs, functions = zip(*calls, strict=True)
    return dict(compiling_once(programs, lambda k: functions[k](), threads))


def meets(barrier, value):
    """A call that returns when another one is there too."""

    def run():
        barrier.wait(timeout=60)
        return value

    return run


def test_the_first_of_each_program_go_together_and_afterwards_all():
    program, other = object(), object()
    both, ended, seen = threading.Barrier(2), [], []

    def first():
        both.wait(timeout=60)
        ended.append(1)
        return "a"

    def second():
        seen.append(bool(ended))
        return "b"

    calls = [(program, first), (program, second), (other, meets(both, "c"))]
    assert run_all(calls, 2) == {0: "a", 1: "b", 2: "c"}
    assert seen == [True]
    again = [(program, meets(both, k)) for k in range(2)]  # nothing is left to compile
    assert run_all(again, 2) == {0: 0, 1: 1}


def test_what_the_first_of_a_program_cannot_do_none_of_it_does():
    program, ran = object(), []

    def first():
        raise ValueError("no such kernel")

    calls = [(program, first), (program, lambda: ran.append(1)), (None, lambda: 3)]
    found = run_all(calls, 2)
    assert found[2] == 3 and not ran
    assert str(found[0]) == str(found[1]) == "no such kernel"
    assert run_all([(program, lambda: 4)], 1) == {0: 4}  # it is tried again


def test_other_errors_end_all():
    def broken():
        raise RuntimeError("out of order")

    with pytest.raises(RuntimeError, match="out of order"):
        run_all([(object(), broken), (object(), lambda: 1)], 1)


def test_threads_compute_on_the_device_that_was_chosen():
    def called():
        calls = [(object(), memory.chosen), (object(), memory.chosen)]
        return [*run_all(calls, 2).values(), *in_threads(lambda part: memory.chosen(), 3, 1)]

    here = jax.devices()[0]
    with jax.default_device(here):
        assert called() == [here] * 5
    assert called() == [None] * 5
