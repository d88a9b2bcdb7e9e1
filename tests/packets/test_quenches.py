"""Source quenches for marked and for dropped packets, and what senders make of them."""

import numpy as np
import pytest
from packet_cases import dumbbell, finished, flows, known_marks, listed, red

from fluidcc.laws.feedback.backward import Backward
from fluidcc.laws.feedback.loss import Loss
from fluidcc.laws.reaction import Pause, PerMark
from fluidcc.laws.window.becn import BECN
from fluidcc.laws.window.sack import SACK
from fluidcc.packets.build import Simulation
from fluidcc.packets.engine import records as r
from fluidcc.packets.hooks import entry_points
from fluidcc.packets.plan import plan
from fluidcc.packets.run import simulate_packets

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
    advance, _ = entry_points()
    simulation, out, seen = Simulation(plan(net), 1, True, scale=8), [], 0.0
    while advance(simulation.address, until, 1) == r.MORE:
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
