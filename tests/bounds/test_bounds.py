"""Bounds of papers: derivations, verdicts for exact definitions, counterexamples that run."""

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.bundled.validation.bounds.one_connection import (
    ANY,
    END,
    FRONT,
    ONE,
    PROPAGATION,
    TAIL,
    WHOLE,
    connection,
)
from fluidcc.bundled.validation.lab.bound import ROUNDING, Range, at_most
from fluidcc.bundled.validation.lab.check import BOUNDS
from fluidcc.bundled.validation.lab.search import attack
from fluidcc.scenario.files import bibliography, keys

IDENTITIES = [(name, step) for name, bound in BOUNDS.items() for step in bound.derivation()]


@pytest.mark.parametrize(("name", "step"), IDENTITIES, ids=lambda v: getattr(v, "words", v))
def test_derivations_follow_from_the_laws(name, step):
    assert step.holds and str(step).startswith(step.words)


@pytest.mark.parametrize("bound", BOUNDS.values(), ids=list(BOUNDS))
def test_every_bound_is_described(bound):
    assert bound.statement and bound.engine in ("packets", "fluid", "rules")
    assert all(part in bibliography() for part in keys(bound.source))
    assert set(bound.judged) <= set(bound.axes)
    for reading in bound.readings:
        assert all(value in bound.axes[axis] for axis, value in reading.items())


# -- the search
SUM = dataclasses.replace(
    BOUNDS["bmcc.standing_queue"], id="sum",
    ranges=lambda definitions: {"x": Range(0.0, 60.0, 0.0), "y": Range(0.0, 60.0, 0.0, "whole")},
    judge=lambda point, measured, definitions: at_most(sum(point.values()), 100.0),
)  # fmt: skip
"""x + y is at most 100 for x below 60 and whole y below 60: the smallest case has sum 101."""


def test_the_search_finds_the_worst_and_the_smallest():
    (found,) = attack(SUM, [{}], budget=150, seed=1)
    assert found.largest is not None and found.smallest is not None
    assert found.largest.judged.excess > 10
    assert 0 < found.smallest.judged.excess < found.largest.judged.excess
    assert found.smallest.judged.excess < 5


# -- verdicts
RULES = [
    ("bmcc.increase_map", ("violated", "holds")),
    ("bmcc.concave", ("violated", "holds", "violated")),
    ("bmcc.same_growth", ("holds",)),
    ("bmcc.fastest_growth", ("holds", "violated")),
    ("bmcc.return_time", ("holds",)),
    ("bmcc.standing_queue", ("holds",)),
    ("bmcc.only_bmcc_backs_off", ("holds",)),
    ("ecn_mod.bounded_window", ("holds", "violated", "violated")),
    ("ecn_mod.marks_per_round_trip", ("violated", "holds", "violated")),
    ("ecn_mod.window_above_one", ("holds",)),
    ("mark_front.delay", ("violated", "holds")),
    ("becn.sooner", ("violated", "violated", "holds", "holds")),
]


@pytest.mark.parametrize(("name", "verdicts"), RULES, ids=[name for name, _ in RULES])
def test_verdicts_on_rules(name, verdicts):
    report = fc.check_bound(name, budget=60)
    assert tuple(reading.verdict for reading in report.readings) == verdicts
    for reading in report.readings:
        assert reading.worst is not None
        assert (reading.worst.excess > ROUNDING) == (reading.verdict == "violated")
    assert report.verdict == verdicts[0]


def test_marks_per_round_trip_fall_below_the_stated_range_at_its_own_lower_end():
    report = fc.check_bound("ecn_mod.marks_per_round_trip")
    assert report.worst is not None and report.worst.scenario["c1"] == 0.025
    assert report.worst.value == pytest.approx(0.2 * (1 - report.worst.scenario["p"]), rel=1e-9)


def test_equal_windows_are_equal_at_zero_drift_alone():
    bound = BOUNDS["ecn_mod.equal_windows"]
    subject = bound.subject({"c1": 0.0625, "p": 0.1}, {})
    measured = bound.measure(subject)
    assert measured.mod["over ACKs"] == pytest.approx(measured.mod["zero drift"], rel=0.02)
    judged = {
        (tcp, average): bound.judge(subject, measured, {"tcp": tcp, "average": average})
        for tcp in bound.axes["tcp"]
        for average in bound.axes["average"]
    }
    assert judged["a halving per mark", "zero drift"].value == pytest.approx(1.0, abs=1e-9)
    assert judged["one halving per round trip", "over ACKs"].value < 0.95


# -- slow start of whole packets
CANONICAL = {"marks": TAIL, "when": "reaches", "round_trip": WHOLE}


def test_slow_start_holds_for_the_reading_that_makes_it_true():
    report = fc.check_bound("mark_front.slow_start", definitions=CANONICAL, budget=40)
    assert report.verdict == "holds"
    front = {"marks": FRONT, "when": "reaches", "round_trip": WHOLE, "queue": "waiting"}
    assert fc.check_bound("mark_front.slow_start", definitions=front, budget=10).readings


@pytest.mark.parametrize(
    "definitions",
    [
        {"marks": TAIL},  # the words: exceeds, the whole system
        {"marks": FRONT},
        {**CANONICAL, "access": ANY},
    ],
    ids=["tail", "front", "slow access"],
)
def test_counterexamples_of_slow_start_run_as_scenarios(definitions):
    report = fc.check_bound("mark_front.slow_start", definitions=definitions, budget=120)
    assert report.verdict == "violated" and not report.tight
    assert report.worst is not None and report.worst.text is not None
    net = fc.loads(report.worst.text)
    again = fc.check_bound("mark_front.slow_start", net)
    same = [
        r for r in again.readings if dict(r.definitions) == dict(report.readings[0].definitions)
    ]
    assert [r.verdict for r in same] == ["violated"]
    assert same[0].worst is not None and same[0].worst.value == report.worst.value


def test_least_threshold_of_full_use_is_not_enough():
    report = fc.check_bound("mark_front.full_use", definitions={"marks": TAIL}, budget=6)
    assert report.verdict == "violated"
    needed = {"marks": TAIL, "side": "less leaves it idle at times"}
    assert fc.check_bound("mark_front.full_use", definitions=needed, budget=4).verdict == "holds"


# -- networks, faults, command line
def test_a_network_settles_its_definitions():
    net = fc.load("durresi2001/slow_start_front")
    report = fc.check_bound("mark_front.slow_start", net)
    first = report.readings[0].definitions
    assert (first["marks"], first["when"], first["counts"]) == ("front", "exceeds", "system")
    assert len(report.readings) == 6 and report.verdict in ("holds", "violated")
    assert report.to_dict()["bounds"][0]["worst"]["scenario"]["links"]


@pytest.mark.parametrize(
    ("name", "scenario", "why"),
    [
        ("mark_front.slow_start", "durresi2001/ten_tail_59ms", "one connection, not of 10"),
        ("mark_front.slow_start", "misra2003/mixed", "above a threshold, not of red"),
        ("rwm.average_queue", "misra2003/mixed", "RED that modifies ACKs"),
        ("bmcc.concave", "misra2003/mixed", "rules alone"),
    ],
)
def test_bounds_that_say_nothing_tell_why(name, scenario, why):
    report = fc.check_bound(name, fc.load(scenario))
    assert report.verdict == "not applicable" and why in report.message
    assert report.to_dict()["not_applicable"] == [{"id": name, "why": report.message}]
    assert why in repr(report)


@pytest.mark.parametrize(
    ("name", "definitions", "word"),
    [
        ("mark_front.slow_strat", None, "did you mean 'mark_front.slow_start'"),
        ("mark_front.slow_start", {"mark": "tail"}, "did you mean 'marks'"),
        ("mark_front.slow_start", {"marks": "head"}, "one of tail, front"),
    ],
)
def test_faults(name, definitions, word):
    with pytest.raises(fc.ScenarioError, match=word):
        fc.check_bound(name, definitions=definitions)


# -- Bounds judged by packet runs: BMCC starved by SACK, and drops that do harm
# -- BMCC and SACK
@pytest.mark.parametrize("figure", ["without ECN (figure 7)", "with ECN (figure 8)"])
def test_sack_starves_bmcc_at_a_full_target_and_not_at_a_lower_one(figure):
    bound = BOUNDS["bmcc.starved_by_sack"]
    paper = bound.defined({"sack": figure})
    nets = {gamma: bound.subject({"gamma": gamma}, paper) for gamma in (0.8, 0.98, 1.0)}
    seen = {gamma: bound.measure(net) for gamma, net in nets.items()}

    def missed(gamma, definitions):
        return bound.judge(nets[gamma], seen[gamma], definitions).excess

    assert missed(1.0, paper) < 0 and missed(0.98, paper) < 0 < missed(0.8, paper)
    assert seen[0.8].flight > 4 * seen[1.0].flight


def test_a_router_of_the_paper_is_found_to_be_one():
    report = fc.check_bound("bmcc.starved_by_sack", fc.load("qazi2010/mix_bmcc_router_ecn"))
    assert len(report.readings) == 2 and report.verdict == "holds"
    assert report.readings[0].definitions["sack"].startswith("with ECN")
    assert report.readings[0].definitions["network"].startswith("the paper's: 40 ms")
    other = fc.check_bound("bmcc.starved_by_sack", fc.load("qazi2010/two_bmcc_router"))
    assert "beside bulk SACK flows" in other.message


# -- drops
EXPIRIES = "half of timer expiries and fast recoveries together are expiries"
IDLE = "utilisation 0.05 below that of the same flows told by marks"


def test_drops_do_harm_below_10_percent_and_need_not_from_15_percent_on():
    """Fast recoveries are still the most up to 10 %, and in some networks beyond 15 %."""
    report = fc.check_bound("ecn_mod.drops_do_harm")
    found = {tuple(r.definitions.values()): r for r in report.readings}
    below, above = "none up to 10 %", "some from 15 % on"
    verdicts = {key: reading.verdict for key, reading in found.items()}
    assert verdicts[below, EXPIRIES] == "holds"
    assert verdicts[above, EXPIRIES] == "violated"
    assert verdicts[below, IDLE] == verdicts[above, IDLE] == "violated"
    worst = found[above, EXPIRIES].worst
    assert worst is not None and worst.text is not None
    means = fc.simulate_packets(fc.loads(worst.text), until=100, warmup=30, seeds=(2, 3)).mean
    flows = means["flows"]["tcp"]
    assert means["links"]["bottleneck"]["drop_fraction"] > 0.15
    assert 0.4 < flows["timeouts"] / (flows["timeouts"] + flows["recoveries"]) < 0.5
    (step,) = report.derivation
    assert step == "TCP's window at one loss in nine packets: 4"


# -- The bounds of Durresi et al. (2001), section 4, on one connection, network by network
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
