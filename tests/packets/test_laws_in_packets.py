"""Packet runs against values known exactly: sawtooth, zero drift, marking rates."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from packet_cases import (
    EveryNth,
    RandomMarks,
    dumbbell,
    finished,
    flows,
    known_marks,
    queue_memory,
    red,
    still,
)
from scipy import stats

from fluidcc import Link, Network, laws, simulate_packets, window_distribution
from fluidcc.scenario.network import LinkInitial, Start

ANY_QUEUE = (("choice_waiting", 0), ("choice_arms", False))


@pytest.mark.parametrize("packets", [600.0, 6000.0])
def test_sawtooth_of_regular_marks(packets):
    """Half to full window in cycles of n packets: W_max = sqrt(8n/3), mean 3/4 of it."""
    net = known_marks(EveryNth(n=packets), laws.Reno(), reaction=laws.PerMark(growth="all"))
    runs = simulate_packets(net, until=3000.0, warmup=300.0)
    flow, link = runs.runs[0]["flows"]["flows"], runs.runs[0]["links"]["bottleneck"]
    largest = np.sqrt(8 * packets / 3)
    # the round trip after a cut grows by 2 instead of 1: an error of order 1/W_max
    assert flow["window_mean"] == pytest.approx(0.75 * largest, rel=2 / largest)
    assert link["marks"] == pytest.approx(link["arrivals"] / packets, abs=1.0)
    assert flow["window_reductions"] == pytest.approx(link["marks"], abs=1.0)


@pytest.mark.parametrize(
    ("c1", "c2", "p"), [(0.5, 0.125, 0.05), (1.0, 0.25, 0.02), (0.25, 0.125, 0.01)]
)
def test_mean_window_of_the_polynomial_law(c1, c2, p):
    """alpha = 0, beta = 1 under independent marks: (c1/c2)(1-p)/p over packets, exactly."""
    law = laws.Polynomial(c1=c1, alpha=0.0, c2=c2, beta=1.0)
    net = known_marks(
        RandomMarks(p=p), law, reaction=laws.PerMark(), sender=(("initial_ssthresh", 20),)
    )
    runs = simulate_packets(net, until=500.0, warmup=50.0, seeds=range(1, 9))
    mean, width = (x["flows"]["flows"]["window_per_packet"] for x in (runs.mean, runs.ci95))
    expected = c1 / c2 * (1 - p) / p
    assert abs(mean - expected) < 2 * width
    assert width < 0.03 * expected


@pytest.mark.parametrize(
    "spreading", [laws.Geometric(), laws.Uniform(), laws.Wait()], ids=lambda s: s.name
)
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
    p, law = 0.04, laws.ECNMod(c1=0.125)
    net = known_marks(RandomMarks(p=p), law, reaction=laws.PerMark(), marking=laws.EqualWindow())
    runs = simulate_packets(net, until=400.0, warmup=20.0, seeds=range(1, 5))
    mean, width = (x["flows"]["flows"]["mark_fraction"] for x in (runs.mean, runs.ci95))
    expected = 1 / (1 + 0.125 / 0.125 * np.sqrt(2 * (1 - p) / p))
    assert abs(mean - expected) < 2 * width
    assert width < 0.05 * mean


@pytest.mark.parametrize("feedback", [laws.MarkTail(), laws.MarkFront()], ids=lambda f: f.name)
def test_threshold_marks_all_packets_or_none(feedback):
    """A window that stands still, 20 packets on the way and 40 in the system.

    The window law's floor equals its cap, so that marks change nothing.
    """
    for at, fraction in ((38.0, 1.0), (42.0, 0.0)):
        law = laws.Threshold(at=at, when="reaches")
        net = still(WINDOW, law, {"feedback": feedback})
        link = simulate_packets(net, until=20.0, warmup=5.0).runs[0]["links"]["bottleneck"]
        assert link["queue_var"] < 1.0
        assert link["mark_fraction"] == fraction


@pytest.mark.parametrize("told_by", [0, 1])
def test_every_router_has_its_own_way_back(told_by):
    """The first reaction comes by the way back from the router that quenches, no other."""
    silent = Link(laws.Droptail(), capacity=1e6, packet_size=1000.0, delay=0.01)
    links = [silent, silent]
    links[told_by] = dataclasses.replace(silent, queue=EveryNth(n=500.0))

    def first_reaction(back):
        group = flows(
            1, window=laws.Reno(), reaction=laws.PerMark(growth="all"), feedback=laws.Backward(),
            route=(0, 1), access_capacity=float("inf"), rtt=np.array([0.1]),
            start=Start(), reverse_delay=back,
        )  # fmt: skip
        net = Network(tuple(links), (group,), link_names=("first", "second"))
        early, late = 0.0, 3.0
        while late - early > 1e-6:
            middle = 0.5 * (early + late)
            reacted = finished(net, middle).flows["window_reductions"][0] > 0
            early, late = (early, middle) if reacted else (middle, late)
        return late

    expected = {0.02: (0.02, 0.03), (0.05, 0.031): (0.05, 0.031), (0.0, 0.07): (0.0, 0.07)}
    times = [first_reaction(np.array(b) if isinstance(b, tuple) else b) for b in expected]
    found = np.array(times) - times[0] + 0.02 + 0.01 * told_by
    np.testing.assert_allclose(found, [ways[told_by] for ways in expected.values()], atol=5e-6)


def test_refractory_reactions_are_a_round_trip_apart():
    """Under marks on every packet there is one reaction per round trip, or fewer."""
    law = laws.Polynomial(c1=0.2, alpha=0.0, c2=0.5, beta=1.0, max_window=50.0)
    net = known_marks(
        RandomMarks(p=0.5), law, reaction=laws.Refractory(), sender=(("initial_ssthresh", 10),)
    )
    flow = simulate_packets(net, until=200.0, warmup=20.0).runs[0]["flows"]["flows"]
    rounds = 180.0 / flow["rtt_mean"]
    assert 0.5 * rounds < flow["window_reductions"] <= rounds + 1


# -- Ticks of queue laws, where the queue stands still and the outcome is known
WINDOW = 60.0
WAITING = WINDOW - 20 - 1  # with one in service
SETTLED = 5.0  # s


def memory(queue, until, *, count, seed=1, **link):
    """Numbers that the first link's law remembers at a time."""
    return queue_memory(finished(still(WINDOW, queue, **link), until, seed=seed), count)


def test_pi_adds_its_error_at_every_sample():
    law = laws.PI(q_ref=9.0, interval=0.01, k_pi=1e-4)
    (first, before), (second, _) = (memory(law, t, count=2) for t in (SETTLED, 25.005))
    assert before == pytest.approx(WAITING, abs=1.0)
    # with equal queues each sample adds K_PI x interval x error
    samples = round((25.0 - SETTLED) / 0.01)
    expected = samples * 1e-4 * 0.01 * (WAITING - 9.0)
    assert second - first == pytest.approx(expected, rel=0.02)
    marks = simulate_packets(still(WINDOW, law), until=25.0, warmup=SETTLED).runs[0]["links"][
        "bottleneck"
    ]
    mean = (first + second) / 2
    spread = np.sqrt(mean / marks["arrivals"])
    assert abs(marks["mark_fraction"] - mean) < 4 * spread


def _steps(p, up):
    """p_max of adaptive RED over its steps, by the paper's figure."""
    while True:
        yield p
        if up:
            p += min(0.01, p / 4) if p < 0.5 else 0.0
        else:
            p *= 0.9 if p > 0.01 else 1.0


@pytest.mark.parametrize(("start", "up"), [(0.02, True), (0.4, False), (0.495, True)])
def test_adaptive_red_steps_every_interval(start, up):
    low, high = (10.0, 50.0) if up else (30.0, 70.0)
    law = laws.AdaptiveRED(min_th=low, max_th=high, p_max=start, w_q=0.5, interval=0.5)
    queue = LinkInitial(average=WAITING)
    average, p_max = memory(law, 20.25, count=2, initial=queue)
    assert average == pytest.approx(WAITING, abs=1.0)
    ticks = 40  # the first may see the queue before it has filled
    near = list(itertools.islice(_steps(start, up), ticks - 1, ticks + 1))
    assert min(abs(p_max - p) for p in near) < 1e-12


def test_random_freeze_times_have_their_mean():
    law = laws.BLUE(
        threshold=30.0, freeze_time=0.05, increase=0.0002, decrease=0.0002, random_freeze=True
    )
    steps = [memory(law, 50.0, count=1, seed=s)[0] / 0.0002 for s in range(1, 7)]
    # renewals of mean F and variance F^2/3: 1000 +- sqrt(1000/3)
    assert np.mean(steps) == pytest.approx(1000.0, abs=3 * np.sqrt(1000 / 3 / 6) + 2)
    assert np.std(steps, ddof=1) > 4.0


STATIONARY = {
    "ecn_mod": (laws.ECNMod(max_window=1000.0), laws.PerMark(), False, 0.01),
    "once": (laws.NewReno(max_window=1000.0), laws.OncePerRTT(), True, 0.002),
}


@pytest.mark.parametrize("case", STATIONARY)
def test_packets_have_the_mean_window_of_the_stationary_law(case):
    law, reaction, quiet, p = STATIONARY[case]
    found = window_distribution(law, p, reaction=reaction, quiet=quiet)
    net = known_marks(RandomMarks(p=p), law, reaction=reaction)
    runs = simulate_packets(net, until=2000.0, warmup=100.0, seeds=range(1, 7))
    (name,) = runs.mean["flows"]
    mean, half = (part["flows"][name]["window_mean"] for part in (runs.mean, runs.ci95))
    wide = stats.t.ppf(1 - 5e-5, 5) / stats.t.ppf(0.975, 5)
    assert math.isclose(mean, found.window_mean, abs_tol=wide * half)
