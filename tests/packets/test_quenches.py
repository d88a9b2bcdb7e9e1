"""Source quenches for marked and for dropped packets, and what senders make of them."""

import ctypes
import dataclasses

import numpy as np
import pytest
from packet_cases import RandomMarks, dumbbell, events, finished, flows, known_marks, listed, red

from fluidcc import simulate_packets
from fluidcc.laws import (
    BECN,
    DCTCP,
    SACK,
    Backward,
    Geometric,
    Loss,
    NewReno,
    Pause,
    PerMark,
    ReceiverWindow,
    Threshold,
)
from fluidcc.scenario.network import LinkInitial

RTT, REVERSE = 0.1, 0.03
QUENCHED = {"feedback": Backward(), "reverse_delay": REVERSE, "reaction": Pause()}
# no slow start, so that windows move by the law alone
SLOW = (("initial_ssthresh", 2.0), ("initial_window", 20.0))


def quiet(queue, **changes):
    """One flow over a fast link with 20 packets in flight at first."""
    window = changes.pop("window", BECN(max_window=60.0))
    changes = QUENCHED | {"sender": SLOW} | changes
    return known_marks(queue, window, rtt=np.array([RTT]), **changes)


def windows(net, until):
    """Times and values of the first flow's window as it changes, and of its signals."""
    out, seen = [], 0.0
    for simulation in events(net, until):
        if simulation.flows["window"][0] != seen:
            seen = float(simulation.flows["window"][0])
            out.append((float(simulation.state["now"][0]), seen))
    return np.array(out), simulation.flows[0]


def first_cut(changes):
    """When a window first shrinks, to which share, and when it next grows."""
    k = int(np.argmax(np.diff(changes[:, 1]) < 0)) + 1
    return changes[k, 0], changes[k, 1] / changes[k - 1, 1], changes[k + 1, 0]


@pytest.mark.parametrize("kind", ["marks", "drops"])
def test_one_bit_tells_drops_from_marks(kind):
    """Both halve the window when the quench arrives; only a mark holds it for a round trip."""
    changes, flow = windows(quiet(listed(**{kind: [300]})), 4.0)
    sent, share, grows = first_cut(changes)
    assert share == pytest.approx(0.5, abs=1e-12)
    # packet 300 is the first of a window, and passed the router on its way
    assert flow["source_quenches"] == flow["window_reductions"] == 1
    assert flow["recoveries"] == 0 and flow["timeouts"] == 0
    if kind == "marks":
        assert grows - sent > RTT
    else:
        assert grows - sent < 0.9 * RTT
    assert (np.diff(changes[:, 1]) < 0).sum() == 1  # duplicate ACKs repair and cut no more


def test_the_quench_comes_before_the_duplicate_acks():
    times = {}
    for feedback in (Backward(), Loss()):
        changes, flow = windows(quiet(listed(drops=[300]), feedback=feedback), 4.0)
        times[feedback.name], _, _ = first_cut(changes)
        assert flow["lost"] == 1 and flow["acked"] > 600
    # the way there is what is left of a round trip when ACKs take as long back as quenches
    assert times["loss"] - times["backward"] == pytest.approx(RTT - 0.0021 - REVERSE, abs=2e-3)


@pytest.mark.parametrize("reaction", [Pause(), PerMark(growth="all")], ids=["once", "each"])
@pytest.mark.parametrize("law", [BECN, SACK])
def test_drops_in_one_window_are_one_loss(reaction, law):
    """Nine drops: nine quenches, one cut, and a repair without a timeout."""
    drops = list(range(300, 318, 2))
    slow = (*SLOW, ("min_rto", 3.0))
    net = quiet(listed(drops=drops), window=law(max_window=60.0), reaction=reaction, sender=slow)
    changes, flow = windows(net, 6.0)
    assert flow["source_quenches"] == 9 and flow["window_reductions"] == 1
    assert flow["recoveries"] == 0 and flow["timeouts"] == 0
    assert (np.diff(changes[:, 1]) < -1).sum() == 1
    assert flow["sent"] - flow["highest_sent"] - 1 >= 9 and flow["acked"] > 700


def test_quenches_are_counted_against_all_replies():
    group = flows(20, window=BECN(max_window=100.0), **(QUENCHED | {"reverse_delay": None}))
    net = dumbbell(group, red(p_max=0.02), buffer=20.0)
    simulation = finished(net, 60.0)
    (port,) = simulation.ports[simulation.ports["arrive"] != 0]
    told = int(simulation.flows["source_quenches"].sum())
    lost = int(simulation.flows["lost"].sum())
    assert lost > 100 and told == port["marks"] + lost  # connection requests get through here
    flow = simulate_packets(net, until=60.0).runs[0]["flows"]["flows"]
    assert flow["source_quenches"] == told
    acks = int(simulation.flows["acks"].sum())
    assert flow["quench_fraction"] == pytest.approx(told / (told + acks), rel=1e-12)


# -- Senders that remember more than their window, and signals decided on the way back
def estimates(simulation):
    """What the flows of a DCTCP group remember: their estimated shares of marks."""
    return [ctypes.c_double.from_address(int(a)).value for a in simulation.flows["memory"]]


def test_dctcp_forgets_by_a_factor_per_window():
    """Without marks the estimate is (1 - g)^(ACKs/window), for a window that stands still."""
    law = DCTCP(max_window=20.0, min_window=20.0)
    net = known_marks(RandomMarks(p=0.0), law, sender=(("initial_window", 20.0), ("syn", False)))
    simulation = finished(net, 3.0)
    acks = int(simulation.flows["acks"][0])
    assert acks > 500
    assert estimates(simulation)[0] == pytest.approx((15 / 16) ** (acks / 20.0), rel=1e-9)


@pytest.mark.parametrize("p", [0.05, 0.4])
def test_dctcp_estimates_the_share_of_marks_packet_by_packet(p):
    """A mean of the last 16 windows of 40 packets, of which each tells its own mark."""
    law = DCTCP(max_window=40.0, min_window=40.0)
    simulation = [finished(known_marks(RandomMarks(p=p), law), 60.0, seed=s) for s in range(1, 9)]
    found = np.array([estimates(run)[0] for run in simulation])
    # an average with weight w = g/40 a packet has variance p (1 - p) w/2
    spread = np.sqrt(p * (1 - p) / (16 * 40 * 2) / len(found))
    assert abs(found.mean() - p) < 4 * spread


def test_dctcp_with_an_estimate_that_never_moves_is_tcp():
    """The estimate begins at 1; TCP must hear each packet's own mark for the same run."""
    queue = Threshold(at=10.0)
    still = flows(4, window=DCTCP(g=1e-300, max_window=100.0))
    tcp = flows(4, window=NewReno(max_window=100.0), sender=(("echo", "packet"),))
    runs = [simulate_packets(dumbbell(g, queue), until=30.0, seeds=(1, 2)) for g in (still, tcp)]
    assert runs[0].runs == runs[1].runs
    assert runs[0].mean["flows"]["flows"]["window_reductions"] > 10


@pytest.mark.parametrize("p", [0.0, 0.1, 1 / 3, 0.7])
def test_permitted_flight_is_the_mean_that_the_law_states(p):
    """Flight after each ACK max(1, w - run of modified ACKs): Little's law gives its mean."""
    law, window = ReceiverWindow(), 20.0
    net = known_marks(RandomMarks(p=p), NewReno(max_window=window), feedback=law)
    runs = simulate_packets(net, until=400.0, warmup=20.0, seeds=range(1, 7))
    flow, width = runs.mean["flows"]["flows"], runs.ci95["flows"]["flows"]["goodput"]
    flight = flow["goodput"] / 8000.0 * flow["rtt_mean"]
    error = width / 8000.0 * flow["rtt_mean"]
    assert abs(flight - float(law.flight_size(window, p))) < 2 * error + 1e-3
    assert error < 0.15
    assert flow["window_reductions"] == 0 and flow["loss_fraction"] == 0.0


@pytest.mark.parametrize(
    ("average", "p", "options"),
    [(16.0, 1.0, ()), (14.0, 0.45, (("choice_arms", False), ("mark_below", 0.05)))],
    ids=["above max_th", "between the thresholds"],
)
def test_acks_are_modified_by_an_average_that_stands_still(average, p, options):
    """Above max_th all of them, before any packet had to wait; ACKs are never dropped instead."""
    law = red(p_max=0.5, w_q=1e-13, spreading=Geometric())
    feedback, window = ReceiverWindow(), 20.0
    net = known_marks(law, NewReno(max_window=window), feedback=feedback, sender=options)
    (link,) = net.links
    link = dataclasses.replace(link, initial=LinkInitial(average=average))
    net = dataclasses.replace(net, links=(link,))
    runs = simulate_packets(net, until=200.0, warmup=20.0, seeds=range(1, 5))
    flow, width = runs.mean["flows"]["flows"], runs.ci95["flows"]["flows"]["goodput"]
    flight, error = (v / 8000.0 * flow["rtt_mean"] for v in (flow["goodput"], width))
    assert abs(flight - float(feedback.flight_size(window, p))) < 2 * error + 1e-3
    assert error < 0.05 * (window - flight) and flow["timeouts"] == 0
