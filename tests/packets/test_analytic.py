"""Queues of Poisson traffic beside the closed forms of queueing theory.

One class of packets, independent of everything: M/D/1, M/M/1 and M/M/1/K. For first come, first
served, the packets in the system are the Poisson arrivals during one sojourn, which gives their
variance by the moments of the waiting time (Pollaczek and Khinchine).
"""

import math

import numpy as np
import pytest
from packet_cases import dumbbell, finished, flows, within

from fluidcc import simulate_packets
from fluidcc.laws import Droptail, Threshold
from fluidcc.scenario.network import Start

RATE = 1250.0  # packet/s
SILENT = flows(1, start=Start(1e9, 1e9))


def poisson(load, sizes, **changes):
    given = {"cross": load * RATE, "cross_sizes": sizes, "buffer": math.inf, "capacity": RATE}
    return dumbbell(SILENT, Droptail(), **(given | changes))


def moments(load, sizes):
    """Means and variance of the packets that wait and that are there, with exact sums."""
    service = 1 / RATE
    raw = {"constant": (1, 1, 1), "exponential": (1, 2, 6)}[sizes]
    first, second, third = (m * service ** (k + 1) for k, m in enumerate(raw))
    rate = load * RATE
    wait = rate * second / (2 * (1 - load))
    wait_square = 2 * wait**2 + rate * third / (3 * (1 - load))
    stay, stay_square = wait + first, wait_square + 2 * wait * first + second
    mean = rate * stay
    queue = rate * wait
    return {
        "queue_mean": queue,
        "queue_var": rate**2 * wait_square + queue - queue**2,
        "number_in_system_mean": mean,
        "number_in_system_var": rate**2 * stay_square + mean - mean**2,
        "utilization": load,
    }


@pytest.mark.parametrize("load", [0.3, 0.8])
@pytest.mark.parametrize("sizes", ["constant", "exponential"])
def test_poisson_packets_queue_as_they_must(sizes, load):
    runs = simulate_packets(poisson(load, sizes), until=320.0, warmup=20.0, seeds=range(16))
    for name, exact in moments(load, sizes).items():
        assert within(runs, name, exact), name
        assert runs.ci95["links"]["bottleneck"][name] < 0.1 * exact, name


@pytest.mark.parametrize(("load", "buffer"), [(0.9, 8), (1.5, 3)])
def test_a_finite_buffer_loses_what_theory_says(load, buffer):
    net = poisson(load, "exponential", buffer=float(buffer))
    runs = simulate_packets(net, until=210.0, warmup=10.0, seeds=range(12))
    weights = load ** np.arange(buffer + 2)  # one more is in service
    chances = weights / weights.sum()
    exact = {
        "drop_fraction": chances[-1],
        "number_in_system_mean": chances @ np.arange(buffer + 2),
        "utilization": 1 - chances[0],
    }
    for name, value in exact.items():
        assert within(runs, name, value), name
    assert runs.mean["links"]["bottleneck"]["queue_max"] == buffer


def test_delays_of_datagrams_obey_littles_law():
    net = poisson(0.7, "exponential", delay=0.05)
    simulation = finished(net, 200.0)
    port, traffic = simulation.ports[0], simulation.flows[1]
    stayed = traffic["delay_sum"] - 0.05 * traffic["received"]
    present = port["area"] + (200.0 - port["idle"])
    # but for those that are still there
    assert stayed == pytest.approx(present, rel=0.01)
    assert traffic["received"] == port["departures"]


def test_cross_traffic_is_poisson_and_does_not_depend_on_the_flows():
    alone = finished(poisson(0.5, "exponential"), 300.0)
    net = dumbbell(
        flows(5), Threshold(at=20.0), cross=0.5 * RATE, cross_sizes="exponential", buffer=math.inf
    )
    beside = finished(net, 300.0)
    sent = [s.flows[len(s.plan.flows)]["sent"] for s in (alone, beside)]
    assert sent[0] == sent[1]
    assert abs(sent[0] - 150 * RATE) < 4 * math.sqrt(150 * RATE)
    counts = [finished(poisson(0.5, "constant"), 4.0, seed=k).flows[1]["sent"] for k in range(300)]
    expected = 2 * RATE
    assert abs(np.mean(counts) - expected) < 4 * math.sqrt(expected / 300)
    assert np.var(counts) == pytest.approx(expected, rel=4 * math.sqrt(2 / 300))
