"""Two classes by self-clocked fair queueing, beside its definition and its bounds.

Source: Golestani (1994). The definition tags every packet at its arrival by the virtual time then,
the tag of the packet in service; the engine keeps the tags of the heads only.
"""

import heapq
import math

import numpy as np
import pytest
from packet_cases import dumbbell, flows

from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.queue.threshold import Threshold
from fluidcc.laws.voice import Voice
from fluidcc.packets.build import Simulation
from fluidcc.packets.hooks import entry_points
from fluidcc.packets.plan import plan
from fluidcc.packets.run import simulate_packets
from fluidcc.scenario.network import Start

SILENT = flows(1, start=Start(1e9, 1e9))
RATE = 1.25e6  # byte/s
VOICE, FLOWS = 0, 1


def mixed(calls, cross, *, buffer=40.0, **changes):
    """Voice calls and cross traffic, in a class each."""
    voice = Voice(calls=calls, holding=20.0, **changes)
    return dumbbell(
        SILENT, Droptail(), cross=cross, cross_sizes="exponential", voice=voice, buffer=buffer
    )


def watch(net, until):
    """Arrivals (time, class, size) and services (start, class, size) of a run, event by event."""
    advance, _ = entry_points()
    simulation = Simulation(plan(net), 3, True)
    port, beside, pool = simulation.ports[0], simulation.classes[0], simulation.packets
    arrivals, services = [], []
    seen, started = [0, 0], -1.0
    while advance(simulation.address, until, 1) < 0:
        now = float(simulation.state["now"][0])
        for c, queue in ((VOICE, beside), (FLOWS, port)):
            taken = int(queue["arrivals"] - queue["drops"])
            if taken > seen[c]:  # the one that came is the tail, or in service at once
                index = int(queue["tail"] if queue["count"] else port["serving"])
                arrivals.append((now, c, int(pool[index]["size"])))
                seen[c] = taken
        if (port["busy"] or beside["busy"]) and float(port["started"]) > started:
            started = float(port["started"])
            size = int(pool[int(port["serving"])]["size"])
            services.append((started, FLOWS if port["busy"] else VOICE, size))
    return arrivals, services


def by_definition(arrivals, weights):
    """Services of packets under SCFQ with a tag for every packet, as they are defined."""
    services, queue, last, virtual, free = [], [], [0.0, 0.0], 0.0, 0.0
    coming = iter([*enumerate(arrivals), (len(arrivals), (math.inf, 0, 0))])
    k, (time, c, size) = next(coming)
    while queue or time < math.inf:
        now = free if queue else max(free, time)
        while time <= now:  # who comes as another goes is there for the choice
            if not queue and time > free:  # the line has been idle
                last, virtual = [0.0, 0.0], 0.0
            last[c] = max(last[c], virtual) + size / weights[c]
            heapq.heappush(queue, (last[c], c, k, size))
            k, (time, c, size) = next(coming)
        virtual, c_next, _, size_next = heapq.heappop(queue)
        services.append((now, c_next, size_next))
        free = now + size_next / RATE
    return services


@pytest.mark.parametrize(("calls", "cross", "share"), [(450.0, 1500.0, 0.8), (150.0, 700.0, 0.3)])
def test_services_are_those_of_the_definition(calls, cross, share):
    arrivals, services = watch(mixed(calls, cross, share=share), 5.0)
    expected = by_definition(arrivals, (share, 1 - share))
    assert len(services) > 5000 and len({c for _, c, _ in services}) == 2
    assert [(c, size) for _, c, size in services] == [
        (c, size) for _, c, size in expected[: len(services)]
    ]
    starts = np.array([[t for t, _, _ in s[: len(services)]] for s in (services, expected)])
    np.testing.assert_allclose(starts[0], starts[1], rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("share", [0.8, 0.3])
def test_services_of_greedy_classes_differ_by_no_more_than_golestani_says(share):
    """Normalised services over any span differ by at most a largest packet of each class."""
    _, services = watch(mixed(1200.0, 2500.0, share=share, drain=0.05), 5.0)
    weights = (share, 1 - share)
    services = [s for s in services if s[0] > 0.5]  # by then both classes are backlogged
    lead = np.cumsum([(size if c == VOICE else -size) / weights[c] for _, c, size in services])
    largest = [max(size for _, c, size in services if c == k) for k in (VOICE, FLOWS)]
    bound = largest[VOICE] / share + largest[FLOWS] / (1 - share)
    assert np.ptp(np.concatenate([[0.0], lead])) <= bound * (1 + 1e-12)
    sent = [sum(size for _, c, size in services if c == k) for k in (VOICE, FLOWS)]
    assert sent[VOICE] / sum(sent) == pytest.approx(share, abs=bound / sum(sent))


@pytest.mark.parametrize("calls", [300.0, 1200.0])
def test_voice_waits_no_longer_than_its_bound(calls):
    """Its queue at its weight, one packet of the flows that is due first, and one in service."""
    drain = 0.01
    arrivals, services = watch(mixed(calls, 2500.0, share=0.6, drain=drain), 5.0)
    came = [t for t, c, _ in arrivals if c == VOICE]
    went = [t + size / RATE for t, c, size in services if c == VOICE]
    longest = max(b - a for a, b in zip(came, went, strict=False))
    size = max(size for _, c, size in services if c == FLOWS)
    assert longest <= drain + 2 * size / RATE
    if calls == 1200.0:
        assert longest > drain  # the queue is full at times


def test_the_line_rests_only_when_nothing_waits():
    """How long it is busy does not depend on the order of service."""
    idle = {}
    for discipline in ("wfq", "fifo"):
        net = mixed(150.0, 600.0, discipline=discipline, drain=math.inf, buffer=math.inf)
        run = simulate_packets(net, until=40.0).runs[0]["links"]["bottleneck"]
        assert run["drops"] == 0 and run["voice_loss_fraction"] == 0
        idle[discipline] = 1 - run["utilization"]
    assert 0.01 < idle["wfq"] == pytest.approx(idle["fifo"], rel=1e-9)


def test_greedy_flows_have_what_voice_leaves_and_their_share_at_least():
    for calls, bound in ((100.0, None), (1000.0, 0.2)):
        voice = Voice(calls=calls, holding=20.0)
        net = dumbbell(flows(8), Threshold(at=100.0), voice=voice, buffer=math.inf)
        runs = simulate_packets(net, until=60.0, warmup=10.0, seeds=(1, 2, 3))
        for run in runs.runs:
            link, flow = run["links"]["bottleneck"], run["flows"]["flows"]
            assert link["utilization_left"] > 0.98
            sent = 8 * flow["goodput"] / 1e7
            assert sent == pytest.approx(link["utilization"] - link["voice_rate"] / 1e7, abs=2e-3)
            if bound:
                assert sent == pytest.approx(bound, abs=2e-3)
