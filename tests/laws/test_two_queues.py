"""Two queues of one link: what each has of the transmitter, and how their marks are coupled."""

import dataclasses
import re

import numpy as np
import pytest
from scipy.optimize import brentq

import fluidcc as fc

DUAL = "rfc9332/dualpi2"
CAPACITY, TRIP, N = 40e6 / 8 / 1500, 0.035, 5  # packet/s, s without queue, flows of each group


def reno_beside_cross(rate):
    """Reno flows in the Classic queue, and cross traffic [packet/s] in the one that goes first."""
    net = fc.load(DUAL)
    net = dataclasses.replace(net, flows=net.flows[:1], flow_names=net.flow_names[:1])
    return fc.replace(net, {"links.l4s.cross": rate})


def reno_alone(capacity):
    """The same flows over a link of their own."""
    net = fc.load(DUAL)
    net = dataclasses.replace(
        net, links=net.links[:1], link_names=net.link_names[:1],
        flows=net.flows[:1], flow_names=net.flow_names[:1],
    )  # fmt: skip
    return fc.replace(net, {"link.capacity": capacity})


@pytest.mark.parametrize("rates", ["ack", "self_clocked"])
def test_a_queue_that_goes_first_leaves_a_slower_link(rates):
    """Equilibrium, margins and roots are those of a link of the capacity that is left."""
    choice = {"model.rates": rates}
    shared = fc.replace(reno_beside_cross(0.4 * CAPACITY), choice)
    alone = fc.replace(reno_alone(0.6 * CAPACITY), choice)
    beside, own = fc.equilibrium(shared), fc.equilibrium(alone)
    assert beside.links["classic"].queue == pytest.approx(own.links["classic"].queue, rel=1e-9)
    assert beside.links["classic"].utilization == pytest.approx(0.6)
    assert beside.flows["reno"].window == pytest.approx(own.flows["reno"].window, rel=1e-9)
    one, other = fc.stability(shared), fc.stability(alone)
    assert one.gain_margin == pytest.approx(other.gain_margin, rel=1e-6)
    ours, theirs = (np.sort_complex(found.roots)[-3:] for found in (one, other))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_trajectories_are_those_of_the_link_that_is_left():
    shared, alone = reno_beside_cross(0.4 * CAPACITY), reno_alone(0.6 * CAPACITY)
    runs = [fc.simulate(net, until=4.0) for net in (shared, alone)]
    queues = [run.links["classic"].queue for run in runs]
    assert np.ptp(queues[1]) > 5
    np.testing.assert_allclose(queues[0], queues[1], atol=1e-4)


def closed_form(k):
    """Rates [packet/s] of Reno in a queue of 15 ms, and DCTCP beside it; marks p^2 and k p."""

    def windows(p):
        reno = brentq(lambda w: 2 - w * (1 - (1 - p**2) ** w), 1.0, 1e6)
        mark = k * p
        return reno, brentq(lambda w: 2 * (1 - mark) - w * mark * (1 - (1 - mark) ** w), 0.1, 1e6)

    def excess(p):
        reno, scalable = windows(p)
        return N * (reno / (TRIP + 0.015) + scalable / TRIP) - CAPACITY

    reno, scalable = windows(brentq(excess, 1e-3, 0.9 / k))
    return reno / (TRIP + 0.015), scalable / TRIP


@pytest.mark.parametrize("k", [1.19, 2.0])
def test_rates_in_two_queues_are_those_of_the_closed_form(k):
    found = fc.equilibrium(fc.replace(fc.load(DUAL), {"flows.scalable.marking.k": k}))
    rates = [float(found.flows[name].rate[0]) for name in ("reno", "scalable")]
    assert rates == pytest.approx(closed_form(k), rel=1e-9)
    assert found.links["l4s"].queue == 0
    assert found.links["classic"].queueing_delay == pytest.approx(0.015)
    assert found.flows["scalable"].queueing_delay[0] == 0


def fractions(run):
    """Shares of marked packets in the two queues."""
    return tuple(float(run.mean["links"][name]["mark_fraction"]) for name in ("classic", "l4s"))


@pytest.mark.parametrize("simulate", [fc.simulate_packets, fc.simulate_trains])
@pytest.mark.parametrize("k", [1.0, 2.0])
def test_marks_are_coupled(simulate, k):
    """The share of marks in one queue is k times the root of that in the other: k p and p^2."""
    changes = {
        "flows.scalable.marking.k": k, "links.l4s.queue.at": 1.0, "links.classic.capacity": 10_000,
        "links.classic.queue.alpha": 0.016, "links.classic.queue.beta": 0.32,  # slower: p is steady
        "flows.reno.n": 15, "flows.scalable.n": 15,
    }  # fmt: skip
    runs = simulate(fc.replace(fc.load(DUAL), changes), until=60.0, warmup=20.0, seeds=(1, 2))
    classic, l4s = fractions(runs)
    assert l4s == pytest.approx(k * np.sqrt(classic), rel=0.03)  # p varies


@pytest.mark.parametrize("simulate", [fc.simulate_packets, fc.simulate_trains])
def test_a_queue_has_its_weight_however_much_comes_beside_it(simulate):
    """Cross traffic of half as much again as the link: the others have a tenth of it, or three."""
    for weight in (0.9, 0.7):
        net = fc.replace(reno_beside_cross(1.5 * CAPACITY), {"links.l4s.weight": weight})
        runs = simulate(net, until=60.0, warmup=10.0, seeds=(1,))
        used = [float(runs.mean["links"][k]["utilization"]) for k in ("classic", "l4s")]
        assert used == pytest.approx([1 - weight, weight], abs=0.01)


def test_packets_that_go_first_wait_for_one_packet_at_most():
    """Below its weight, a queue that goes first waits for the packet in service and its own."""
    runs = fc.simulate_packets(
        reno_beside_cross(0.3 * CAPACITY), until=60.0, warmup=10.0, seeds=(1,)
    )
    delay = {k: float(runs.mean["links"][k]["queueing_delay_mean"]) for k in ("classic", "l4s")}
    # M/D/1 of load 0.3, with the rest of a packet of the other queue, which has 0.7 of the time
    expected = (1 + (0.3 / 2 + 0.7 / 2) / (1 - 0.3)) / CAPACITY
    assert delay["l4s"] == pytest.approx(expected, rel=0.05) and delay["classic"] > 0.01


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('beside = "classic"', 'beside = "classics"', "did you mean 'classic'"),
        (
            'beside = "classic"',
            'beside = "classic"\ncapacity = 5',
            "none, as it is that of links.cl",
        ),
        (
            'beside = "classic"',
            'beside = "classic"\ndelay = "1 ms"',
            "none, as it is that of links.",
        ),
        ('beside = "classic"', 'beside = "l4s"', "expected one of"),
        ("weight = 0.9", "weight = 1.5", "expected a value in (0, 1)"),
        ("weight = 0.9", "wait = 0.9", "links.l4s.wait"),
        (
            '"mark_tail"\nmarking = { law = "co',
            '"loss"\nmarking = { law = "co',
            'expected "mark_tail" or',
        ),
    ],
)
def test_what_does_not_fit_beside_a_queue_is_refused(old, new, said):
    text = fc.dumps(fc.load(DUAL))
    assert old in text
    with pytest.raises(fc.ScenarioError, match=re.escape(said)):
        fc.loads(text.replace(old, new))


def test_a_network_of_two_queues_is_what_its_text_says():
    net = fc.load(DUAL)
    again = fc.loads(fc.dumps(net))
    assert fc.dumps(again) == fc.dumps(net)
    assert "links.l4s.capacity" not in fc.paths(net)
    faster = fc.replace(net, {"links.classic.capacity": 2000})
    assert faster.links["l4s"].capacity == 2000


def test_derivatives_are_those_of_the_closed_form():
    """Of the packets in the Classic queue, and of its share of the link, by the coupling."""
    objectives = ("links.classic.queue", "links.classic.utilization")
    found = [fc.gradient(fc.load(DUAL), of, ["flows.scalable.marking.k"]) for of in objectives]
    step = 1e-4
    high, low = (N * closed_form(2 + side)[0] / CAPACITY for side in (step, -step))
    slope = (high - low) / (2 * step)
    values = [one.derivatives["flows.scalable.marking.k"] for one in found]
    assert values == pytest.approx([0.015 * CAPACITY * slope, slope], rel=1e-4)


@pytest.mark.parametrize("simulate", [fc.simulate_packets, fc.simulate_trains])
def test_a_step_in_time_is_one_in_packets_of_that_time(simulate):
    """DCTCP over 40 packets, and over the time that these take: counted in the one as they come, in
    the other as they leave.
    """
    net = fc.load("alizadeh2010/dctcp")
    capacity = fc.number_at(net, "link.capacity")
    step = fc.replace(net, {"link.queue.law": "step", "link.queue.at": 40 / capacity})
    queues = [fc.equilibrium(each).links["bottleneck"].queue for each in (net, step)]
    assert queues == pytest.approx([40, 40])
    runs = [simulate(each, until=0.2, warmup=0.05, seeds=(1,)) for each in (net, step)]
    found = [run.mean["links"]["bottleneck"] for run in runs]
    assert found[1]["queue_mean"] == pytest.approx(found[0]["queue_mean"], rel=0.1)
    assert found[1]["mark_fraction"] == pytest.approx(found[0]["mark_fraction"], rel=0.06)


@pytest.mark.parametrize("when", ["start", "end"])
def test_marks_are_coupled_as_packets_leave(when):
    """As their transmission begins, or ends, as at their entry."""
    front = {"flows.scalable.feedback": "mark_front", "flows.scalable.window.when": when}
    nets = [fc.replace(fc.load(DUAL), changes) for changes in ({}, front)]
    runs = [fc.simulate_packets(net, until=40.0, warmup=10.0, seeds=(1,)) for net in nets]
    entering, leaving = (fractions(run)[1] for run in runs)
    assert leaving == pytest.approx(entering, rel=0.1)
