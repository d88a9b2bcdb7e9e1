"""The bounds of Durresi et al. (2001), section 4, on the queue of one connection in slow start."""

import importlib
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

VALIDATION = Path(__file__).parents[2] / "validation"


@pytest.fixture(scope="module")
def attack():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(VALIDATION))
        yield importlib.import_module("mark_front")


def case_of(attack, marks, *given):
    """A case with marks at the tail, or at the front as transmissions `start` or `end`."""
    when = "start" if marks == "tail" else marks
    return attack.Case(marks != "tail", *given, when=when)


theta = st.integers(1, 60)
on_lattice = st.integers(1, 40).map(float)
off_lattice = st.tuples(st.integers(0, 40), st.floats(0.05, 0.95)).map(sum)
access = st.one_of(st.just(math.inf), st.floats(2.0, 20.0))


@settings(max_examples=40, deadline=None)
@given(theta=theta, pipe=on_lattice | off_lattice, access=access)
def test_mark_tail_keeps_the_system_below_its_bound(attack, theta, pipe, access):
    """2 T + r d - 1, where T is reached by the system with the packet judged, and r contains the
    transmission times; the access link brings packets at least as fast as slow start sends them.
    """
    found = attack.peak(attack.Case(False, theta, pipe, access))
    assert attack.excess(found, 0, waiting=False, own=True) <= 1e-9


@settings(max_examples=40, deadline=None)
@given(theta=theta, pipe=off_lattice, access=access)
def test_mark_front_keeps_what_waits_below_its_bound(attack, theta, pipe, access):
    """T + r d under the same reading, for packets that wait and do not all come and go at once."""
    found = attack.peak(attack.Case(True, theta, pipe, access))
    assert attack.excess(found, 0, waiting=True, own=True) <= 1e-9


@settings(max_examples=25, deadline=None)
@given(theta=theta, pipe=off_lattice, access=access)
def test_marks_as_transmissions_end_keep_the_system_below_the_bound(attack, theta, pipe, access):
    """T + r d for the whole system, where it is to exceed T with the packet judged; or to reach T,
    and r has the transmission time of the access link alone, which is the same.
    """
    found = attack.peak(attack.Case(True, theta, pipe, access, when="end"))
    assert attack.excess(found, 1, waiting=False, own=True) <= 1e-9


def test_all_bounds_are_met(attack):
    """No smaller bounds would do."""
    tail = attack.peak(attack.Case(False, 4, 2.0))
    assert attack.excess(tail, 0, waiting=False, own=True) == 0
    front = attack.peak(attack.Case(True, 4, 1.0))
    assert attack.excess(front, 0, waiting=True, own=True) == 0
    end = attack.peak(attack.Case(True, 9, 2.0, when="end"))
    assert attack.excess(end, 0, waiting=False, own=False) == 0


@pytest.mark.parametrize(
    ("marks", "theta", "pipe", "access", "waiting", "own", "largest"),
    [
        ("tail", 4, 2.0, math.inf, False, False, 10),  # r without transmission times
        ("tail", 76, 7.95, 1.2, False, True, 191),  # a slow access link
        ("start", 2, 0.5, math.inf, True, False, 3),
        ("start", 5, 2.0, math.inf, True, True, 9),  # arrivals and departures at the same instants
        ("start", 2, 0.5, math.inf, False, True, 4),  # the packet in service counts
        ("end", 7, 2.0, math.inf, False, False, 10),  # arrivals and departures at the same instants
        ("end", 4, 0.5, 2.0, False, False, 5),  # r without the access link's transmission time
        ("end", 25, 5.69, 1.5, False, True, 36),  # a slow access link
    ],
)
def test_other_readings_have_counterexamples(
    attack, marks, theta, pipe, access, waiting, own, largest
):
    """The smallest networks found on which a reading of the text is wrong."""
    found = attack.peak(case_of(attack, marks, theta, pipe, access))
    assert (found.waiting if waiting else found.system) == largest
    assert attack.excess(found, 0, waiting=waiting, own=own) > 0.4


@pytest.mark.parametrize("marks", ["tail", "start", "end"])
def test_threshold_of_full_use_is_above_the_published_one(attack, marks):
    """T = r d - 1 leaves the link idle at times; three to six packets more do not."""
    case = case_of(attack, marks, 19, 20.3)
    assert attack.utilization(case) < 1 - 1e-6
    assert 3 <= attack.least_threshold(case) - (case.pipe - 1) <= 6
