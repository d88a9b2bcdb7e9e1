"""Selective acknowledgements: packet by packet as ns-2 sends, scoreboards, lost ACKs."""

import json
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from packet_cases import RandomMarks, both_ways, events, finished, known_marks, listed

from fluidcc import Flows, Link, Network, laws, simulate_packets
from fluidcc.packets.engine import records as r
from fluidcc.scenario.network import Start

TRACES = Path(__file__).parents[2] / "validation" / "ns2" / "g_traces.json"
RECORDS = json.loads(TRACES.read_text())
AGENTS = {"Sack1": laws.SACK, "Newreno": laws.NewReno}


class RandomDrops(laws.AbstractQueueLaw):
    """Drops and marks every packet with the same probabilities, whatever the queue."""

    name: ClassVar[str] = "random_drops"
    source: ClassVar[str] = "test"
    p: float = laws.param(0.01, "p", unit="1", doc="probability to drop", within="[0, 1]")
    mark: float = laws.param(0.0, "m", unit="1", doc="probability to mark", within="[0, 1]")

    def signal(self, x, seen):
        return laws.Signal(drop=self.p, mark=self.mark)


def one_flow(params) -> Network:
    """The network of the recorded traces; marks count the packets that are not dropped."""
    drops = params["drops"]
    left = np.setdiff1d(np.arange(20_000), drops)
    rate = params["access_mbps"] * 1e6
    group = Flows(
        window=AGENTS[params["agent"]](max_window=60.0),
        n=np.array([1.0]),
        rtt=np.array([2 * 0.0230137 + 3 * 320 / 8e10 + 8000 / 8e10]),
        reaction=laws.OncePerRTT(),
        feedback=laws.MarkTail() if params["marks"] else laws.Loss(),
        access_delay=0.002,
        access_capacity=rate / 8000,
        start=Start(),
        sender=(("tick", 0.001),),
    )
    queue = listed(drops, left[params["marks"]].tolist())
    link = Link(queue=queue, capacity=7.31e6 / 8000, packet_size=1000.0, delay=0.0200137)
    return Network(links=(link,), flows=(group,))


def sends(net: Network, until: float) -> list[tuple[float, int]]:
    """Times and sequence numbers of the packets that the first flow sends."""
    out, seen = [], 0
    for simulation in events(net, until):
        sent = int(simulation.flows["sent"][0])
        if sent > seen:
            data = simulation.packets[simulation.packets["flags"] & r.ACK == 0]
            for number in range(seen, sent):  # those of this event have not moved on yet
                (packet,) = data[(data["identity"] == number) & (data["sent"] > 0) | (number == 0)][
                    :1
                ]
                out.append((float(simulation.state["now"][0]), int(packet["sequence"])))
            seen = sent
    return out


@pytest.mark.parametrize("record", RECORDS, ids=[k["scenario"] for k in RECORDS])
def test_every_packet_is_sent_when_ns2_sends_it(record):
    """Losses, marks, recoveries and timeouts of one flow; ns-2 prints six digits."""
    found = sends(one_flow(record["params"]), record["params"]["T_s"])
    times, numbers = np.array(record["sends"]).T
    assert [number for _, number in found] == numbers.astype(int).tolist()
    assert np.allclose([time for time, _ in found], times, rtol=0, atol=2e-5)
    assert len(numbers) > len(set(numbers)) + 10  # retransmissions


def test_a_burst_of_losses_is_repaired_in_two_round_trips():
    """NewReno needs a round trip for each of the twelve."""
    lost = list(range(300, 324, 2))
    durations = {}
    for law in (laws.SACK(max_window=40.0), laws.NewReno(max_window=40.0)):
        slow = (("min_rto", 3.0),)
        net = known_marks(listed(lost), law, feedback=laws.Loss(), rtt=np.array([0.1]), sender=slow)
        times = {}
        for time, number in sends(net, 5.0):
            times.setdefault(number, []).append(time)
        again = [t[1] for t in times.values() if len(t) > 1]
        assert len(again) == len(lost)  # nothing else is sent twice
        durations[law.name] = max(again) - min(again)
    assert durations["sack"] < 0.21
    assert durations["newreno"] > 11 * 0.1 - 1e-6


def test_sack_without_losses_is_newreno():
    net = [
        known_marks(RandomMarks(p=0.02), law(max_window=60.0)) for law in (laws.SACK, laws.NewReno)
    ]
    runs = [simulate_packets(k, until=60.0, seeds=(1, 2)) for k in net]
    assert runs[0].runs == runs[1].runs
    assert runs[0].mean["flows"]["flows"]["window_reductions"] > 20


LOSSY = {"window": laws.SACK(max_window=100.0), "feedback": laws.Loss()}


def test_lost_acks_are_survived():
    runs = [
        simulate_packets(both_ways(**LOSSY), until=60.0, warmup=5.0, seeds=(1, 2), elide=elide)
        for elide in (True, False)
    ]
    assert runs[0].runs == runs[1].runs
    simulation = finished(both_ways(**LOSSY), 60.0)
    assert simulation.flows["acks_lost"].sum() > 100
    assert min(runs[0].mean["flows"]["a"]["flow_goodput"]) > 1e5  # bit/s


@pytest.mark.parametrize("law", [laws.SACK, laws.NewReno, laws.Reno])
def test_the_receivers_window_is_honoured(law):
    """No new packet goes beyond what the last ACK permits, in recovery or outside."""
    queue = RandomDrops(p=0.02, mark=0.3)
    net = known_marks(
        queue, law(max_window=12.0), feedback=laws.ReceiverWindow(), rtt=np.array([0.05])
    )
    highest, smallest = 0, 99
    for simulation in events(net, 40.0, seed=3):
        flow = simulation.flows[0]
        if flow["highest_sent"] > highest:
            highest = int(flow["highest_sent"])
            assert highest <= flow["acked"] + int(flow["advertised"])
            smallest = min(smallest, int(flow["advertised"]))
    assert smallest < 10 and simulation.flows["recoveries"][0] > 10 and highest > 1000
