"""Packet runs against values known exactly: sawtooth, zero drift, marking rates."""

import dataclasses

import numpy as np
import pytest
from packet_cases import (
    EveryNth,
    RandomMarks,
    dumbbell,
    finished,
    flows,
    known_marks,
    red,
)

from fluidcc.laws.feedback.backward import Backward
from fluidcc.laws.feedback.mark_front import MarkFront
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.marking import EqualWindow
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.queue.threshold import Threshold
from fluidcc.laws.reaction import PerMark, Refractory
from fluidcc.laws.spreading import Geometric, Uniform, Wait
from fluidcc.laws.window.ecn_mod import ECNMod
from fluidcc.laws.window.newreno import NewReno
from fluidcc.laws.window.polynomial import Polynomial
from fluidcc.laws.window.reno import Reno
from fluidcc.packets.run import simulate_packets
from fluidcc.scenario.network import Link, LinkInitial, Network, Start

ANY_QUEUE = (("choice_waiting", 0), ("choice_arms", False))


@pytest.mark.parametrize("packets", [600.0, 6000.0])
def test_sawtooth_of_regular_marks(packets):
    """Half to full window in cycles of n packets: W_max = sqrt(8n/3), mean 3/4 of it."""
    net = known_marks(EveryNth(n=packets), Reno(), reaction=PerMark(growth="all"))
    runs = simulate_packets(net, until=3000.0, warmup=300.0)
    flow, link = runs.runs[0]["flows"]["flows"], runs.runs[0]["links"]["bottleneck"]
    largest = np.sqrt(8 * packets / 3)
    # the round trip after a cut grows by 2 instead of 1: an error of order 1/W_max
    assert flow["window_mean"] == pytest.approx(0.75 * largest, rel=2 / largest)
    assert link["marks"] == pytest.approx(link["arrivals"] / packets, abs=1.0)
    assert flow["reactions"] == pytest.approx(link["marks"], abs=1.0)


@pytest.mark.parametrize(
    ("c1", "c2", "p"), [(0.5, 0.125, 0.05), (1.0, 0.25, 0.02), (0.25, 0.125, 0.01)]
)
def test_mean_window_of_the_polynomial_law(c1, c2, p):
    """alpha = 0, beta = 1 under independent marks: (c1/c2)(1-p)/p over packets, exactly."""
    law = Polynomial(c1=c1, alpha=0.0, c2=c2, beta=1.0)
    net = known_marks(RandomMarks(p=p), law, reaction=PerMark(), sender=(("initial_ssthresh", 20),))
    runs = simulate_packets(net, until=500.0, warmup=50.0, seeds=range(1, 9))
    mean, width = (x["flows"]["flows"]["window_seen"] for x in (runs.mean, runs.ci95))
    expected = c1 / c2 * (1 - p) / p
    assert abs(mean - expected) < 2 * width
    assert width < 0.03 * expected


@pytest.mark.parametrize("spreading", [Geometric(), Uniform(), Wait()], ids=lambda s: s.name)
@pytest.mark.parametrize("p", [0.02, 0.1])
def test_long_run_rate_of_each_spreading(spreading, p):
    """RED with an average that stands still marks at the rate that the law states."""
    above = p * (1 + 1e-9)  # the rules step where gap x p is whole: keep off that edge
    queue = red(min_th=0.0, max_th=10.0, p_max=2 * above, w_q=1e-15, spreading=spreading)
    net = dumbbell(flows(4, sender=ANY_QUEUE), queue, initial=LinkInitial(average=5.0))
    runs = simulate_packets(net, until=200.0, seeds=range(1, 7))
    mean, width = (x["links"]["bottleneck"]["mark_fraction"] for x in (runs.mean, runs.ci95))
    assert abs(mean - spreading.rate(p)) < 2 * width
    assert width < 0.05 * mean


def test_equal_window_marks_by_equation_7():
    p, law = 0.04, ECNMod(c1=0.125)
    net = known_marks(RandomMarks(p=p), law, reaction=PerMark(), marking=EqualWindow())
    runs = simulate_packets(net, until=400.0, warmup=20.0, seeds=range(1, 5))
    mean, width = (x["flows"]["flows"]["mark_fraction"] for x in (runs.mean, runs.ci95))
    expected = 1 / (1 + 0.125 / 0.125 * np.sqrt(2 * (1 - p) / p))
    assert abs(mean - expected) < 2 * width
    assert width < 0.05 * mean


@pytest.mark.parametrize("feedback", [MarkTail(), MarkFront()], ids=lambda f: f.name)
def test_threshold_marks_all_packets_or_none(feedback):
    """A window that stands still, 20 packets on the way and 40 in the system.

    The window law's floor equals its cap, so that marks change nothing.
    """
    for at, fraction in ((38.0, 1.0), (42.0, 0.0)):
        group = flows(
            1, window=NewReno(max_window=60.0, min_window=60.0), rtt=np.array([20 / 1250]),
            start=Start(), access_delay=0.001, feedback=feedback, access_capacity=float("inf"),
        )  # fmt: skip
        net = dumbbell(group, Threshold(at=at, when="reaches"), delay=0.001, buffer=float("inf"))
        link = simulate_packets(net, until=20.0, warmup=5.0).runs[0]["links"]["bottleneck"]
        assert link["queue_var"] < 1.0
        assert link["mark_fraction"] == fraction


def test_quenches_reach_the_source_after_the_reverse_delay():
    net = known_marks(
        EveryNth(n=500.0), Reno(), reaction=PerMark(growth="all"), feedback=Backward()
    )
    flow = simulate_packets(net, until=300.0).runs[0]["flows"]["flows"]
    assert flow["quenches"] > 100
    assert flow["reactions"] == pytest.approx(flow["quenches"], abs=1.0)
    # the cut comes 98 ms earlier than by the ACK, which is a round trip of growth: 1 packet
    by_ack = known_marks(EveryNth(n=500.0), Reno(), reaction=PerMark(growth="all"))
    slow = simulate_packets(by_ack, until=300.0).runs[0]["flows"]["flows"]
    assert 0.3 < slow["window_mean"] - flow["window_mean"] + 1.0 < 2.5


@pytest.mark.parametrize("told_by", [0, 1])
def test_every_router_has_its_own_way_back(told_by):
    """The first reaction comes by the way back from the router that quenches, no other."""
    silent = Link(Droptail(), capacity=1e6, packet_size=1000.0, delay=0.01)
    links = [silent, silent]
    links[told_by] = dataclasses.replace(silent, queue=EveryNth(n=500.0))

    def first_reaction(back):
        group = flows(
            1, window=Reno(), reaction=PerMark(growth="all"), feedback=Backward(), route=(0, 1),
            access_capacity=float("inf"), rtt=np.array([0.1]), start=Start(), reverse_delay=back,
        )  # fmt: skip
        net = Network(tuple(links), (group,), link_names=("first", "second"))
        early, late = 0.0, 3.0
        while late - early > 1e-6:
            middle = 0.5 * (early + late)
            reacted = finished(net, middle).flows["reactions"][0] > 0
            early, late = (early, middle) if reacted else (middle, late)
        return late

    expected = {0.02: (0.02, 0.03), (0.05, 0.031): (0.05, 0.031), (0.0, 0.07): (0.0, 0.07)}
    times = [first_reaction(np.array(b) if isinstance(b, tuple) else b) for b in expected]
    found = np.array(times) - times[0] + 0.02 + 0.01 * told_by
    np.testing.assert_allclose(found, [ways[told_by] for ways in expected.values()], atol=5e-6)


def test_refractory_reactions_are_a_round_trip_apart():
    """Under marks on every packet there is one reaction per round trip, or fewer."""
    law = Polynomial(c1=0.2, alpha=0.0, c2=0.5, beta=1.0, max_window=50.0)
    net = known_marks(
        RandomMarks(p=0.5), law, reaction=Refractory(), sender=(("initial_ssthresh", 10),)
    )
    flow = simulate_packets(net, until=200.0, warmup=20.0).runs[0]["flows"]["flows"]
    rounds = 180.0 / flow["rtt_mean"]
    assert 0.5 * rounds < flow["reactions"] <= rounds + 1
