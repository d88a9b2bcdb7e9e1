"""Senders that remember more than their window, and signals decided on the way back."""

import ctypes
import dataclasses

import numpy as np
import pytest
from packet_cases import RandomMarks, dumbbell, finished, flows, known_marks, red

from fluidcc.laws.feedback.receiver_window import ReceiverWindow
from fluidcc.laws.marking import Geometric
from fluidcc.laws.queue.threshold import Threshold
from fluidcc.laws.window.dctcp import DCTCP
from fluidcc.laws.window.newreno import NewReno
from fluidcc.packets.run import simulate_packets
from fluidcc.scenario.network import LinkInitial


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
    [
        (16.0, 1.0, ()),
        (14.0, 0.45, (("choice_arms", False), ("mark_below", 0.05))),
    ],
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
