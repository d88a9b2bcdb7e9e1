"""Cycles from the settled end of simulations: what it tells, and how long it is."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from analysis_cases import hollot

import fluidcc as fc
from fluidcc.analysis.cycles import simulated as taken
from fluidcc.analysis.cycles.multipliers import NoMultipliersError
from fluidcc.analysis.cycles.result import Label
from fluidcc.analysis.cycles.simulated import alike_joined
from fluidcc.analysis.cycles.subjects import steady
from fluidcc.model.network_mesh import uniform_mesh
from fluidcc.scenario.network import Start


def settled(time, course):
    """What one queue tells."""
    labels = [Label("links", "l", "queue"), Label("links", "l", "average")]
    return taken.settled_cycle(time, np.column_stack([course, course]), labels, "because")


def at_the_end_of(net):
    """What a simulation of 80 s tells."""
    run = fc.simulate(net, until=80.0, points=np.linspace(0.0, 80.0, 8001))
    values = taken.values_of(run.links, run.flows)
    return taken.settled_cycle(run.time, values, taken.labels_of(net), "because")[0]


def test_a_settled_simulation_tells_the_same_cycle_and_a_decaying_one_none():
    """What stands for a cycle where collocation cannot."""
    exact = fc.cycle(hollot(w_q=0.005))
    found, still = (at_the_end_of(hollot(w_q=w_q)) for w_q in (0.005, 5e-5))
    assert (found.status, found.stable, found.floquet) == ("simulated", None, ())
    assert found.period == pytest.approx(exact.period, rel=1e-3) and "because" in found.message
    assert 0 < found.spread < 1e-3 and "periods, equal to" in found.message
    ends = exact.links["bottleneck"].queue
    assert found.links["bottleneck"].queue == pytest.approx(ends, rel=2e-3)
    assert still.status == "none" and ("dies away" in still.message or "rest" in still.message)


@pytest.mark.parametrize(
    ("course", "status"),
    [
        (lambda t: 30 + np.sin(2 * np.pi * t / 7), "simulated"),
        (lambda t: 30 + np.exp(-t / 20) * np.sin(2 * np.pi * t / 7), "none"),
        (lambda t: 30 - 10 * np.exp(-t / 30), "none"),
        (lambda t: 30 + 0 * t, "none"),
        (lambda t: 30 + t / 10, "incomplete"),
        (lambda t: 30 + 10 * np.cos(2 * np.pi * t / 80), "incomplete"),
        (lambda t: 30 - 10 * np.cos(2 * np.pi * t / 40), "incomplete"),
    ],
    ids=["repeats", "dies away", "comes to rest", "rests", "goes on", "turns once", "repeats once"],
)
def test_what_the_end_of_a_simulation_tells(course, status):
    time = np.linspace(0.0, 100.0, 2001)
    found, _ = settled(time, course(time))
    assert found.status == status and "because" in found.message
    assert (found.period == pytest.approx(7.0, rel=1e-3)) == (status == "simulated")


def test_a_cycle_of_two_turns_is_one_period():
    """Rises 6 s and 8 s apart in turn."""
    time = np.linspace(0.0, 200.0, 8001)
    turn = time % 14
    course = 30 + np.where(turn < 6, np.sin(np.pi * turn / 3), np.sin(np.pi * (turn - 6) / 4))
    found, done = settled(time, course)
    assert (found.status, done) == ("simulated", True) and "after 2 rises" in found.message
    assert found.period == pytest.approx(14.0, rel=1e-3) and found.spread < 1e-3


def waves(gaps):
    """Times and values of a queue that rises through its middle after each gap but the last."""
    starts = np.cumsum(gaps)
    time = np.linspace(0.0, 0.98 * starts[-1], 8001)
    course = 30 + np.sin(2 * np.pi * np.interp(time, [0.0, *starts], np.arange(len(gaps) + 1)))
    return time, course


ORDER = np.arange(62)
UNEVEN_GAPS = {
    f"jitter {seed}": 1 + 0.005 * np.random.default_rng(seed).standard_normal(62)
    for seed in range(5)
} | {"quasi-periodic": 1 + 0.006 * np.sin(2 * np.pi * 0.618 * ORDER)}


@pytest.mark.parametrize("gaps", UNEVEN_GAPS.values(), ids=UNEVEN_GAPS)
def test_gaps_that_do_not_come_back_are_no_period_doubling(gaps):
    """Sums of more gaps are more even, but none comes back."""
    found, done = settled(*waves(gaps))
    assert (found.status, done) == ("simulated", False) and "rises" not in found.message
    starts, end = np.cumsum(gaps), 0.98 * np.sum(gaps)
    late = np.diff(starts[(starts > end / 2 + 0.5) & (starts < end)])  # after a trough
    assert found.period == pytest.approx(np.mean(late), rel=1e-4)
    assert found.spread == pytest.approx(np.ptp(late) / np.mean(late), abs=2e-4)


def test_gaps_that_come_back_are_one_with_jitter_too():
    """Jitter of 0.5 % does not make a period of 2 gaps one of 4 or 6, whose sums are more even."""
    jitter = 1 + 0.005 * np.random.default_rng(1).standard_normal(62)
    found, _ = settled(*waves(np.where(ORDER % 2, 6.0, 8.0) * jitter))
    assert "after 2 rises" in found.message and found.period == pytest.approx(14.0, rel=5e-3)
    deep = np.resize([6.0, 8.0, 6.3, 8.2], 62)
    found, _ = settled(*waves(deep))
    assert "after 4 rises" in found.message and found.period == pytest.approx(28.5, rel=1e-3)


def test_what_repeats_in_part_has_no_spread():
    """The gaps, from 0.94 to 1.06 s, are not the period told."""
    gaps = 1 + 0.06 * np.sin(2 * np.pi * 0.618 * ORDER)
    found, done = settled(*waves(gaps))
    assert (found.status, done) == ("simulated", False) and "in part" in found.message
    assert found.period is not None and found.spread is found.to_dict()["spread"] is None


@pytest.mark.parametrize(("trips", "ends"), [(7.0, [100]), (250.0, [100, 400, 1600, 3000])])
def test_simulations_last_as_long_as_their_period_needs(monkeypatch, trips, ends):
    """The period is given in round trips; slow ones pass for a transient at first."""
    net, lengths = hollot(), []
    trip = float(net.flows[0].rtt[0])

    def simulated(net, *, until, points, mesh):
        lengths.append(until / trip)
        course = 30 + np.sin(2 * np.pi * points / (trips * trip))
        link = SimpleNamespace(queue=course, average=course)
        windows = SimpleNamespace(window=course[:, None])
        return SimpleNamespace(
            time=points,
            links={"bottleneck": link},
            flows={"flows": windows},
            status=taken.Status.ok,
        )

    def refused(*_, **__):
        raise NoMultipliersError("not today")

    monkeypatch.setattr(taken, "simulate", simulated)
    monkeypatch.setattr(taken, "multipliers_of_run", refused)
    found = taken.from_network(net, "because")
    assert lengths == pytest.approx(ends)
    assert (found.status, found.period) == ("simulated", pytest.approx(trips * trip, rel=1e-5))
    assert "not settled" not in found.message and found.spread < 1e-4
    assert found.floquet == () and "no multipliers: not today" in found.message


def in_two_groups():
    """Flows of one kind in two groups, of which one starts later and the other has more."""
    net = hollot(w_q=0.005)
    first = dataclasses.replace(net.flows[0], n=np.array([40.0]))
    second = dataclasses.replace(first, n=np.array([20.0]), start=Start(2.0, 2.0))
    return dataclasses.replace(
        net, flows=(first, second), flow_names=("first", "second"), delay="fifo"
    )


def test_groups_that_are_alike_are_joined():
    net = steady(in_two_groups())
    one, place = alike_joined(net)
    assert (place, one.flow_names) == ((0, 0), ("first",))
    assert one.flows[0].n == pytest.approx([60.0])
    other = dataclasses.replace(net.flows[1], rtt=np.array([0.3]))
    apart = dataclasses.replace(net, flows=(net.flows[0], other))
    assert alike_joined(apart) == (apart, (0, 1))


@pytest.mark.slow
def test_groups_that_are_alike_end_in_the_cycle_in_which_they_move_as_one():
    """A minute."""
    net = in_two_groups()
    found = fc.cycle(net)
    assert found.floquet[0] == pytest.approx(1.0, abs=1e-5) and found.stable
    assert found.status == "simulated" and "2 groups of flows that are alike" in found.message
    assert found.flows["first"] == found.flows["second"]
    points = np.linspace(0.0, 60.0, 12001)
    run = fc.simulate(net, until=60.0, points=points, mesh=uniform_mesh(net))
    seen = fc.oscillation(run.time, run.links["bottleneck"].queue, after=40.0)
    assert found.period == pytest.approx(seen.period, rel=1e-3)
    ends = found.links["bottleneck"].queue
    assert ends == pytest.approx((seen.lowest, seen.highest), rel=2e-3)
