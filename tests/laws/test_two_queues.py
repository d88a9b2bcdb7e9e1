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
    """Cross traffic of half as much again as the link, and some in the other queue, which has a
    tenth of it, or three.
    """
    for weight in (0.9, 0.7):
        own = {"links.l4s.weight": weight, "links.classic.cross": 0.4 * CAPACITY}
        net = fc.replace(reno_beside_cross(1.5 * CAPACITY), own)
        runs = simulate(net, until=60.0, warmup=10.0, seeds=(1,))
        used = [float(runs.mean["links"][k]["utilization"]) for k in ("classic", "l4s")]
        assert used == pytest.approx([1 - weight, weight], abs=0.01)


@pytest.mark.parametrize("simulate", [fc.simulate_packets, fc.simulate_trains])
@pytest.mark.parametrize("shift", [0.01, 0.05])
def test_the_queue_behind_waits_longer_by_the_shift_when_both_are_overloaded(simulate, shift):
    """Time-shifted FIFO; each has its share of what comes."""
    own = {"links.l4s.shift": shift, "links.classic.cross": 0.3 * CAPACITY}
    net = fc.replace(reno_beside_cross(0.9 * CAPACITY), own)
    runs = simulate(net, until=60.0, warmup=10.0, seeds=(1,))
    delay, used = (
        [float(runs.mean["links"][k][key]) for k in ("classic", "l4s")]
        for key in ("queueing_delay_mean", "utilization")
    )
    late = 1.5e-3 if simulate is fc.simulate_trains else 1 / CAPACITY  # a step and a half, a packet
    assert delay[0] - delay[1] == pytest.approx(shift, abs=late)
    assert delay[1] == pytest.approx(1000 / (0.7 * CAPACITY), rel=0.01)  # its buffer is full
    assert used == pytest.approx([0.3, 0.7], abs=0.01)


@pytest.mark.parametrize("simulate", [fc.simulate_packets, fc.simulate_trains])
def test_within_the_shift_a_queue_always_goes_first(simulate):
    """As the mean has it; packets and trains are those of a large weight, to their intervals."""
    net = fc.load(DUAL)
    shifted = fc.replace(net, {"links.l4s.shift": "50 ms"})
    heavy = fc.replace(net, {"links.l4s.weight": 0.999})
    assert fc.equilibrium(shifted).links == fc.equilibrium(net).links
    assert fc.stability(shifted).gain_margin == fc.stability(net).gain_margin
    run, other = (
        simulate(each, until=60.0, warmup=20.0, seeds=range(1, 5)) for each in (shifted, heavy)
    )
    for name, least in (("classic", 0.01), ("l4s", 0.05)):
        mean, beside = (each.mean["links"][name] for each in (run, other))
        for key in ("queueing_delay_mean", "utilization"):
            room = least * mean[key] + run.ci95["links"][name][key] + other.ci95["links"][name][key]
            assert beside[key] == pytest.approx(mean[key], abs=room), (name, key)
    assert run.mean["links"]["classic"]["queueing_delay_mean"] == pytest.approx(0.015, rel=0.03)


def test_the_mean_says_where_the_shift_is_too_short():
    """Packets serve the Classic queue first once it waits longer by the shift; means do not."""
    net = fc.replace(fc.load(DUAL), {"links.l4s.shift": "10 ms"})
    said = "links.classic waits 0.015 s longer than links.l4s, more than its shift of 0.01 s"
    found = fc.equilibrium(net)
    assert found.status == "undetermined" and found.message.startswith(said)
    assert "links.classic waits" in fc.simulate(net, until=2.0).message
    assert "waits" not in fc.simulate(fc.replace(net, {"links.l4s.shift": 1}), until=2.0).message
    runs = fc.simulate_packets(net, until=40.0, warmup=10.0, seeds=(1,))
    delay = [float(runs.mean["links"][k]["queueing_delay_mean"]) for k in ("classic", "l4s")]
    assert delay[0] == pytest.approx(0.015, rel=0.05) and 0.003 < delay[1] < 0.006


@pytest.mark.parametrize("simulate", [fc.simulate_packets, fc.simulate_trains])
def test_an_overload_of_the_queue_that_goes_first_moves_p(simulate):
    """p' follows the longer delay of both: RFC 9332, appendix A.2. One flow of four packets at most
    waits for less than the target, behind cross traffic below and above what the link carries.
    """
    few = {"flows.reno.n": 1, "flows.reno.window.max_window": 4, "flows.reno.initial.window": 4}
    marked = []
    for load in (0.5, 1.2):
        net = fc.replace(reno_beside_cross(load * CAPACITY), few)
        runs = simulate(net, until=30.0, warmup=10.0, seeds=(1,))
        assert runs.mean["links"]["classic"]["queueing_delay_mean"] < 0.015 / 2
        marked.append(fractions(runs)[0])
    assert marked == [0.0, 1.0]


def test_mean_windows_see_the_longer_delay():
    """A queue of 300 packets that goes first, and none behind: p' after the tick at 16 ms."""
    net = fc.replace(fc.load(DUAL), {"links.l4s.initial.queue": 300})
    run = fc.simulate(net, until=0.1)
    at = np.searchsorted(run.time, 0.0165)
    delay = np.interp(0.016, run.time, run.links["l4s"].queueing_delay)
    law = net.links[0].queue
    expected = law.alpha * (delay - law.target) + law.beta * delay
    assert delay > 0.07 and run.links["classic"].queueing_delay[at] == 0
    assert run.links["classic"].mark_probability[at] == pytest.approx(expected**2, rel=1e-3)


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
        ("weight = 0.9", "weight = 0.9\nshift = 0.05", "links.l4s.shift: expected weight or shift"),
        ("weight = 0.9", "shift = -1", "links.l4s.shift: expected a value in [0, inf)"),
        ("[links.l4s]", "shift = 1\n[links.l4s]", "links.classic.shift: expected it with beside"),
        ("weight = 0.9", "tshift = 0.05", "did you mean 'shift'"),
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
    shifted = fc.replace(net, {"links.l4s.shift": "50 ms"})  # in the place of the weight
    assert "shift = 0.05" in fc.dumps(shifted) and "weight" not in fc.dumps(shifted)
    assert fc.dumps(fc.loads(fc.dumps(shifted))) == fc.dumps(shifted)
    assert fc.dumps(fc.replace(shifted, {"links.l4s.weight": 0.9})) == fc.dumps(net)


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


def test_flows_beside_a_queue_that_nothing_enters_have_the_link_alone():
    net = fc.load(DUAL)
    both = dataclasses.replace(net, flows=net.flows[1:], flow_names=net.flow_names[1:])
    alone = dataclasses.replace(
        both, links=(dataclasses.replace(net.links[1], beside=None, weight=None),),
        link_names=("l4s",), flows=(dataclasses.replace(net.flows[1], route=(0,)),),
    )  # fmt: skip
    beside, own = fc.equilibrium(both), fc.equilibrium(alone)
    assert beside.status == own.status == "discontinuity"
    assert beside.links["l4s"].queue == pytest.approx(own.links["l4s"].queue, rel=1e-12)
    assert float(beside.links["classic"].queue) == 0.0
    warned = fc.compare(both, until=4.0, seeds=[1]).validity_warnings
    assert not any("weight" in line for line in warned)


@pytest.mark.parametrize("law", ["red", "pi", "threshold"])
def test_a_law_that_counts_packets_behind_another_queue_has_no_mean(law):
    """Mean windows would show it twice the packets that half of a link has."""
    net = fc.replace(fc.load(DUAL), {"links.classic.queue": law})
    rest = fc.equilibrium(net)
    assert rest.status == "undetermined"
    assert f"links.classic.queue: {law} counts packets" in rest.message
    assert "not to be trusted" in str(fc.simulate(net, until=0.5))
    alone = fc.replace(fc.load("hollot2001/slow"), {"link.queue": law})
    assert "counts packets" not in fc.equilibrium(alone).message
