"""Queues of Poisson traffic beside the closed forms of queueing theory.

One class of packets, independent of everything: M/D/1, M/M/1 and M/M/1/K. For first come, first
served, the packets in the system are the Poisson arrivals during one sojourn, which gives their
variance by the moments of the waiting time (Pollaczek and Khinchine).
"""

import math

import numpy as np
import pytest
from packet_cases import by_definition, dumbbell, finished, flows, watched, within
from scipy import stats
from scipy.optimize import brentq

from fluidcc import Voice, equilibrium, simulate_packets
from fluidcc.laws import Droptail, NewReno, Threshold
from fluidcc.laws.voice import erlang_blocking
from fluidcc.packets.plan import PacketError
from fluidcc.quantities import PERCENTILES
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


BIN = 2.0**-8  # width of the bins of delays over their lower end


def waits_at_most(t, load):
    """Probability that a packet of an M/D/1 queue waits at most `t` services: Erlang (1909)."""
    terms = (
        (load * (k - t)) ** k / math.factorial(k) * math.exp(-load * (k - t))
        for k in range(int(t) + 1)
    )
    return (1 - load) * math.fsum(terms)


def waiting(sizes, load, share):
    """Time that a share of all packets waits at most."""
    if share <= 1 - load:
        return 0.0
    if sizes == "exponential":  # more than t with probability load exp(-(1 - load) t)
        return math.log(load / (1 - share)) / (1 - load) / RATE
    return brentq(lambda t: waits_at_most(t, load) - share, 1e-9, 40.0) / RATE


def staying(sizes, load, share):
    """Time from arrival to departure that a share of all packets takes at most."""
    if sizes == "exponential":
        return -math.log(1 - share) / (1 - load) / RATE
    return waiting(sizes, load, share) + 1 / RATE


@pytest.mark.parametrize(
    ("sizes", "load"), [("constant", 0.3), ("constant", 0.7), ("exponential", 0.7)]
)
def test_percentiles_of_the_queueing_delay_are_those_of_queueing_theory(sizes, load):
    runs = simulate_packets(poisson(load, sizes), until=320.0, warmup=20.0, seeds=range(16))
    mean, half = (p["links"]["bottleneck"] for p in (runs.mean, runs.ci95))
    exact = {name: staying(sizes, load, share) for name, share in PERCENTILES.items()}
    exact["mean"] = moments(load, sizes)["queue_mean"] / (load * RATE) + 1 / RATE
    for name, value in exact.items():
        metric = f"queueing_delay_{name}"
        bin_width = 0.0 if name == "mean" else BIN * value
        assert abs(mean[metric] - value) <= 1.5 * half[metric] + bin_width, name
        assert half[metric] < 0.1 * value or value == 0, name


def test_percentiles_of_round_trips_are_those_of_the_queue_that_they_meet():
    """A lone packet, once in 0.8 s, meets an M/M/1 queue as it is at any instant."""
    lone = flows(1, window=NewReno(max_window=1.0), rtt=np.array([0.8]), start=Start())
    load = 0.7
    net = dumbbell(
        lone, Droptail(), cross=load * RATE, cross_sizes="exponential", buffer=math.inf,
        capacity=RATE,
    )  # fmt: skip
    runs = simulate_packets(net, until=1600.0, warmup=1.0, seeds=range(12))
    without_queue = 0.8 + 1 / 12500 + 1 / RATE
    for name, share in PERCENTILES.items():
        exact = without_queue + waiting("exponential", load + 1 / 0.8 / RATE, share)
        mean, half = (p["flows"]["flows"][f"rtt_{name}"] for p in (runs.mean, runs.ci95))
        assert abs(mean - exact) < 1.5 * half + BIN * exact, name


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


# -- Voice calls in packets: how many there are, what they send, and what it does to the flows
SIZE = 1000.0  # B


def link(voice, **changes):
    given = {"capacity": 1e5, "buffer": math.inf}
    return dumbbell(SILENT, Droptail(), voice=voice, **(given | changes))


@pytest.mark.parametrize(
    "voice",
    [
        Voice(calls=80.0, holding=4.0),
        Voice(arrivals=10.0, holding=5.0, most=45, active=0.6, talk=0.4, overhead=0.25),
        Voice(arrivals=3.0, holding=2.0, most=3, frame=0.01, codec=32e3),
        Voice(calls=12.0, holding=3.0, active=1.0),
    ],
)
def test_calls_and_their_rate_have_the_means_of_theory(voice):
    runs = simulate_packets(link(voice), until=200.0, seeds=range(10))
    assert within(runs, "voice_calls", float(voice.carried()))
    assert within(runs, "voice_rate", 8 * SIZE * float(voice.mean(SIZE)))
    if math.isfinite(voice.most):
        refused = float(erlang_blocking(float(voice.offered()), float(voice.most)))
        assert within(runs, "voice_refused_fraction", refused)
    assert runs.mean["links"]["bottleneck"]["voice_loss_fraction"] == 0


def test_a_run_begins_as_it_goes_on():
    """Calls and talkers of the first tenth of a second have the means of any."""
    voice = Voice(calls=50.0, holding=100.0)
    runs = simulate_packets(link(voice), until=0.1, seeds=range(200))
    assert within(runs, "voice_calls", 50.0)
    assert within(runs, "voice_rate", 8 * SIZE * float(voice.mean(SIZE)))


def test_talkers_are_on_and_off_for_exponential_times():
    """The number of packets of many calls in a span has the variance of on-off sources."""
    voice = Voice(calls=2000.0, holding=1e9, talk=0.4, active=0.4)
    counts = []
    for seed in range(60):
        runs = finished(link(voice, capacity=1e6), 1.0, seed=seed)
        counts.append(runs.flows[1]["sent"] / runs.voices[0]["present"])
    # covariance of the state: a (1 - a) e^(-t/tau), 1/tau = 1/talk + 1/pause, over 1 s
    tau = 1 / (1 / 0.4 + 1 / 0.6)
    spread = 0.24 * 2 * tau * (1 - tau * (1 - math.exp(-1 / tau)))
    exact = spread * 50**2 / 2000
    ratio = np.var(counts, ddof=1) / exact
    low, high = stats.chi2.ppf([5e-4, 1 - 5e-4], 59) / 59
    assert low < ratio < high * 1.02  # frames add the variance of a phase


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"voice": Voice(calls=1e9)}, "links.bottleneck.voice: calls at a time: expected at most"),
        ({"voice": Voice(calls=1.0, codec=1e15)}, "bytes in a packet by codec and frame"),
        ({"voice": Voice(calls=1.0, frame=1e-5)}, "codec and frame: at least 1, got 0.08"),
        ({"voice": Voice(calls=1.0, frame=1e-12, codec=1e14)}, "1 / frame: expected at most"),
        ({"voice": Voice(calls=1.0, talk=1e-300)}, "active / talk: expected at most"),
        ({"voice": Voice(calls=1.0, holding=1e-300)}, "arriving calls per second: expected"),
        ({"cross": 1e300}, "links.bottleneck.cross in packet/s: expected at most"),
        ({"cross": 1.0, "packet_size": 999.5}, "packet_size in B: expected a whole number"),
        ({"cross": 1.0, "packet_size": 1e9}, "packet_size in B: expected at most 10000000, got"),
    ],
)
def test_what_no_run_can_hold_is_refused(changes, says):
    with pytest.raises(PacketError, match=says):
        simulate_packets(dumbbell(SILENT, Droptail(), **changes), until=1.0)


def test_flows_have_what_the_fluid_model_leaves_them():
    """Their rate at rest beside mean calls, and that of packets beside calls at random."""
    voice = Voice(arrivals=30.0, holding=4.0, most=150, frame=0.03)
    net = dumbbell(flows(8), Threshold(at=100.0), voice=voice, buffer=math.inf)
    left = float(voice.left(1250.0, voice.mean(SIZE)))
    rest = equilibrium(net)
    assert 8 * float(rest.flows["flows"].rate[0]) == pytest.approx(left, rel=1e-6)
    runs = simulate_packets(net, until=120.0, warmup=20.0, seeds=range(10))
    parts = (part["flows"]["flows"] for part in (runs.mean, runs.ci95))
    mean, half = (8 * part["goodput"] / (8 * SIZE) for part in parts)
    assert abs(mean - left) < 2 * half + 2e-3 * left
    assert half < 0.02 * left


def test_fair_queueing_shelters_voice_from_the_flows():
    delays = {}
    for discipline in ("wfq", "fifo"):
        voice = Voice(calls=60.0, discipline=discipline)
        net = dumbbell(flows(6), Threshold(at=20.0), voice=voice, buffer=math.inf)
        run = simulate_packets(net, until=40.0, warmup=5.0).runs[0]
        told = run["links"]["bottleneck"]
        delays[discipline] = told["voice_delay_mean"] - 0.0213
        assert told["voice_loss_fraction"] == 0
    assert delays["wfq"] < 2 * 0.0008 < delays["fifo"]


# -- Two classes by self-clocked fair queueing, beside its definition and its bounds
BYTES = 1.25e6  # byte/s
VOICE, FLOWS = 0, 1


def mixed(calls, cross, *, buffer=40.0, **changes):
    """Voice calls and cross traffic, in a class each."""
    voice = Voice(calls=calls, holding=20.0, **changes)
    return dumbbell(
        SILENT, Droptail(), cross=cross, cross_sizes="exponential", voice=voice, buffer=buffer
    )


def watch(net, until):
    """Arrivals and services of a run, voice first."""
    return watched(net, until, lambda run: [run.voice_ports[0], 0])


@pytest.mark.parametrize(("calls", "cross", "share"), [(450.0, 1500.0, 0.8), (150.0, 700.0, 0.3)])
def test_services_are_those_of_the_definition(calls, cross, share):
    arrivals, services = watch(mixed(calls, cross, share=share), 5.0)
    expected = by_definition(arrivals, (share, 1 - share), BYTES)
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
    went = [t + size / BYTES for t, c, size in services if c == VOICE]
    longest = max(b - a for a, b in zip(came, went, strict=False))
    size = max(size for _, c, size in services if c == FLOWS)
    assert longest <= drain + 2 * size / BYTES
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
