"""The bounds of Durresi et al. (2001), section 4, on one connection, network by network."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.bundled.validation.bounds.one_connection import (
    END,
    FRONT,
    ONE,
    PROPAGATION,
    TAIL,
    WHOLE,
    connection,
)


def judged(bound, marks, threshold, pipe, access=math.inf, when="reaches", **definitions):
    """The value and the excess of a bound on one connection, under definitions left open."""
    own = {"marks": marks, "when": when, "counts": "system", "sender": ONE}
    report = fc.check_bound(bound, connection(float(threshold), pipe, access, own))
    (found,) = (r for r in report.readings if definitions.items() <= dict(r.definitions).items())
    return found.worst.value, found.worst.excess


def queue(*network, queue, round_trip=WHOLE, **how):
    return judged("mark_front.slow_start", *network, queue=queue, round_trip=round_trip, **how)


thresholds = st.integers(1, 60)
on_lattice = st.integers(1, 40).map(float)
off_lattice = st.tuples(st.integers(0, 40), st.floats(0.05, 0.95)).map(sum)
accesses = st.one_of(st.just(math.inf), st.floats(2.0, 20.0))


@settings(max_examples=40, deadline=None)
@given(at=thresholds, pipe=on_lattice | off_lattice, access=accesses)
def test_mark_tail_keeps_the_system_below_its_bound(at, pipe, access):
    """2 T + r d - 1, where T is reached by the system with the packet judged, and r contains the
    transmission times; the access link brings packets at least as fast as slow start sends them.
    """
    assert queue(TAIL, at, pipe, access, queue="system")[1] <= 1e-9


@settings(max_examples=40, deadline=None)
@given(at=thresholds, pipe=off_lattice, access=accesses)
def test_mark_front_keeps_what_waits_below_its_bound(at, pipe, access):
    """T + r d under the same reading, for packets that wait and do not all come and go at once."""
    assert queue(FRONT, at, pipe, access, queue="waiting")[1] <= 1e-9


@settings(max_examples=25, deadline=None)
@given(at=thresholds, pipe=off_lattice, access=accesses)
def test_marks_as_transmissions_end_keep_the_system_below_the_bound(at, pipe, access):
    """T + r d for the whole system, where it is to exceed T with the packet judged."""
    assert queue(END, at, pipe, access, when="exceeds", queue="system")[1] <= 1e-9


def test_all_bounds_are_met():
    """No smaller bounds would do."""
    assert queue(TAIL, 4, 2.0, queue="system")[1] == 0
    assert queue(FRONT, 4, 1.0, queue="waiting")[1] == 0
    assert queue(END, 9, 2.0, queue="system", round_trip=PROPAGATION)[1] == 0


@pytest.mark.parametrize(
    ("marks", "at", "pipe", "access", "counted", "round_trip", "largest"),
    [
        (TAIL, 4, 2.0, math.inf, "system", PROPAGATION, 10),  # r without transmission times
        (TAIL, 76, 7.95, 1.2, "system", WHOLE, 191),  # a slow access link
        (FRONT, 2, 0.5, math.inf, "waiting", PROPAGATION, 3),
        (FRONT, 5, 2.0, math.inf, "waiting", WHOLE, 9),  # come and go at the same instants
        (FRONT, 2, 0.5, math.inf, "system", WHOLE, 4),  # the packet in service counts
        (END, 7, 2.0, math.inf, "system", PROPAGATION, 10),  # come and go at the same instants
        (END, 4, 0.5, 2.0, "system", PROPAGATION, 5),  # r without the access link's transmission
        (END, 25, 5.69, 1.5, "system", WHOLE, 36),  # a slow access link
    ],
)
def test_other_readings_have_counterexamples(marks, at, pipe, access, counted, round_trip, largest):
    """The smallest networks found on which a reading of the text is wrong."""
    value, excess = queue(marks, at, pipe, access, queue=counted, round_trip=round_trip)
    assert value == largest and excess > 0.4


@pytest.mark.parametrize("marks", [TAIL, FRONT, END])
def test_threshold_of_full_use_is_above_the_published_one(marks):
    """T = r d - 1 leaves the link idle at times; three to six packets more do not."""
    idle = {at: judged("mark_front.full_use", marks, at, 20.3)[1] for at in (20, 22, 26)}
    assert idle[20] > 0 and idle[22] > 0 and idle[26] <= 0
