"""Nothing gets lost: packets, their order, and the accounts of ports and flows."""

import dataclasses

import numpy as np
import pytest
from packet_cases import CASES, dumbbell, finished, flows

from fluidcc.laws.feedback.loss import Loss
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.queue.threshold import Threshold
from fluidcc.laws.window.newreno import NewReno
from fluidcc.network import Start
from fluidcc.packets import records as r
from fluidcc.packets.run import simulate_packets


def _held(simulation, queue):
    """Packets in a port's or wire's queue, in order."""
    index, out = int(queue["head"]), []
    for _ in range(int(queue["count"])):
        out.append(simulation.packets[index])
        index = int(simulation.packets[index]["next"])
    return out


def _sends(simulation, port):
    """Whether a port has a packet of either class in service."""
    place = (int(port["beside"]) - simulation.classes.ctypes.data) // r.CLASS_RECORD.itemsize
    return port["busy"] or (port["beside"] and simulation.classes[place]["busy"])


def _kinds(simulation):
    """Wires by kind."""
    for entity in simulation.entities:
        if entity["kind"] in (r.WIRE, r.RETURN, r.QUENCH, r.ROUTER):
            yield int(entity["kind"]), simulation.wires[entity["index"]]


@pytest.mark.parametrize("elide", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_packets_are_conserved(name, elide):
    simulation = finished(CASES[name], 20.0, elide=elide)
    ports, pool = simulation.ports, simulation.packets
    assert np.all(
        ports["arrivals"] == ports["departures"] + ports["drops"] + ports["count"] + ports["busy"]
    )
    classes = simulation.classes
    assert np.all(
        classes["arrivals"]
        == classes["departures"] + classes["drops"] + classes["count"] + classes["busy"]
    )
    under_way = [p for queues in (ports, classes) for q in queues for p in _held(simulation, q)]
    under_way += [pool[port["serving"]] for port in ports if _sends(simulation, port)]
    wires = list(_kinds(simulation))
    data = under_way + [p for kind, w in wires if kind == r.WIRE for p in _held(simulation, w)]
    others = [p for kind, w in wires if kind != r.WIRE for p in _held(simulation, w)]
    for k, flow in enumerate(simulation.flows):
        present = sum(p["flow"] == k and not p["flags"] & r.REPLY for p in data)
        assert flow["sent"] == flow["received"] + flow["lost"] + present
    free, index = 0, int(simulation.state["free"][0])
    while index >= 0:
        free, index = free + 1, int(pool[index]["next"])
    assert free + len(data) + len(others) == len(pool)


@pytest.mark.parametrize("name", ["ecn", "backward", "front", "ecn_mod"])
def test_order_is_kept_where_nothing_is_lost(name):
    net = CASES[name]
    endless = dataclasses.replace(net.links[0], queue=Threshold(at=10.0), buffer=float("inf"))
    simulation = finished(dataclasses.replace(net, links=(endless,)), 20.0)
    assert simulation.flows["lost"].sum() == 0
    # without a timeout nothing is sent twice, and every packet is the expected one
    once = simulation.flows["timeouts"] == 0
    assert once.any()
    received, expected = simulation.flows["received"], simulation.receivers["expected"]
    assert np.array_equal(received[once], expected[once])
    assert simulation.flows["recoveries"].sum() == 0


def test_a_single_packet_under_way_meets_no_queue():
    group = flows(1, window=NewReno(max_window=1.0), start=Start())
    net = dumbbell(group, Droptail())
    runs = simulate_packets(net, until=30.0, warmup=5.0)
    flow, link = runs.runs[0]["flows"]["flows"], runs.runs[0]["links"]["bottleneck"]
    service = 1 / 12500 + 1 / 1250
    assert flow["delay_mean"] == pytest.approx(0.0021 + 0.0213 + service, rel=1e-9)
    assert flow["delay_jitter"] < 1e-7
    assert flow["rtt_mean"] == pytest.approx(0.0831 + service, rel=1e-9)
    assert link["queue_max"] == 0 and link["system_max"] == 1
    assert link["system_mean"] == pytest.approx(link["utilization"], rel=1e-12)
    assert link["system_var"] == pytest.approx(
        link["utilization"] * (1 - link["utilization"]), rel=1e-9
    )
    # one packet a round trip, within the one that is under way
    assert flow["goodput"] * 25.0 / 8000 == pytest.approx(25.0 / (0.0831 + service), abs=1.0)


def test_a_full_window_keeps_the_link_busy_and_the_queue_constant():
    group = flows(1, window=NewReno(max_window=150.0), start=Start(), feedback=Loss())
    net = dumbbell(group, Droptail(), buffer=float("inf"))
    run = simulate_packets(net, until=30.0, warmup=10.0).runs[0]
    link, flow = run["links"]["bottleneck"], run["flows"]["flows"]
    assert link["utilization"] == 1.0
    # Little's law over the round trip: window = rate x round trip
    assert flow["rtt_mean"] == pytest.approx(150.0 / 1250.0, rel=1e-9)
    assert flow["window_mean"] == pytest.approx(150.0, rel=1e-12)
    without_queue = 0.0831 + 1 / 12500 + 1 / 1250
    assert link["queue_mean"] == pytest.approx(150.0 - 1250.0 * without_queue, abs=1.0)
    assert link["queue_var"] < 1.0


def test_the_buffer_holds_exactly_what_it_says():
    group = flows(3, feedback=Loss())
    link = simulate_packets(dumbbell(group, Droptail(), buffer=25.0), until=20.0).runs[0]["links"]
    assert link["bottleneck"]["queue_max"] == 25.0
    assert link["bottleneck"]["system_max"] == 26.0
    assert link["bottleneck"]["drops"] > 0
