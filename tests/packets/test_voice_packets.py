"""Voice calls in packets: how many there are, what they send, and what it does to the flows."""

import dataclasses
import math

import numpy as np
import pytest
from packet_cases import dumbbell, finished, flows, red, within
from scipy import stats

from fluidcc import load
from fluidcc.analysis.equilibrium import equilibrium
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.queue.threshold import Threshold
from fluidcc.laws.voice import Voice, erlang_blocking, present_calls
from fluidcc.packets.engine import records as r
from fluidcc.packets.layout import traffic
from fluidcc.packets.layout.plan import PacketError, plan
from fluidcc.packets.run import simulate_packets
from fluidcc.quantities import units
from fluidcc.scenario.network import Start

SIZE = 1000.0  # B
SILENT = flows(1, start=Start(1e9, 1e9))


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


@pytest.mark.parametrize(("mean", "most"), [(3.0, math.inf), (200.0, math.inf), (30.0, 25.0)])
def test_calls_at_a_random_instant_are_poisson_within_their_limit(mean, most):
    grid = (np.arange(4000) + 0.5) / 4000
    found = np.array([present_calls(float(u), mean, most) for u in grid])
    assert np.all(np.diff(found) >= 0) and found[-1] <= most
    levels = np.arange(found[-1])
    exact = stats.poisson.cdf(levels, mean) / stats.poisson.cdf(most, mean)
    share = [(found <= k).mean() for k in levels]
    np.testing.assert_allclose(share, exact, atol=1 / 4000)
    assert present_calls(0.5, 0.0, most) == 0


def test_a_call_that_never_pauses_sends_a_packet_every_frame():
    voice = Voice(calls=40.0, holding=1e9, active=1.0, frame=0.025, overhead=0.2)
    simulation = finished(link(voice), 10.0)
    present = simulation.voices[0]["present"]
    assert simulation.flows[1]["sent"] == 400 * present > 0
    assert simulation.flows[1]["received"] >= 400 * present - 1
    assert plan(link(voice)).background[0].size == 240


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


def test_calls_do_not_depend_on_the_flows():
    voice = Voice(arrivals=5.0, holding=10.0, most=60)
    accounts = []
    for group in (SILENT, flows(6), dataclasses.replace(flows(2), access_delay=0.01)):
        for discipline in ("wfq", "fifo"):
            calls = dataclasses.replace(voice, discipline=discipline)
            simulation = finished(dumbbell(group, red(), voice=calls), 30.0)
            told = simulation.voices[0]
            sent = int(simulation.flows[len(simulation.plan.flows)]["sent"])
            names = ("offered", "refused", "present", "calls_begun", "calls_time")
            accounts.append([sent, *(float(told[n]) for n in names)])
    assert all(a == accounts[0] for a in accounts)


def test_packets_do_not_depend_on_what_is_the_fluid_models():
    voice = Voice(calls=60.0)
    other = dataclasses.replace(voice, process="modulated", seed=7)
    runs = [simulate_packets(dumbbell(flows(2), red(), voice=v), until=5.0) for v in (voice, other)]
    assert runs[0].runs == runs[1].runs


def test_room_for_calls_grows_where_it_was_too_small(monkeypatch):
    net = dumbbell(flows(2), red(), voice=Voice(calls=30.0, holding=3.0))
    enough = simulate_packets(net, until=20.0, seeds=(3,))
    monkeypatch.setattr(traffic, "_DEVIATIONS", -3)
    monkeypatch.setattr(traffic, "_SPARE", 0)
    assert simulate_packets(net, until=20.0, seeds=(3,)).runs == enough.runs


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


def test_queues_without_limit_grow_as_far_as_they_need():
    net = dumbbell(SILENT, Droptail(), cross=3000.0, buffer=math.inf)
    run = simulate_packets(net, until=10.0).runs[0]["links"]["bottleneck"]
    assert run["drops"] == 0 and run["queue_max"] == pytest.approx(17500, rel=0.05)


def test_delays_of_voice_are_those_of_the_link():
    """Calls alone on a fast link meet no one: propagation and one transmission."""
    voice = Voice(calls=1.5, holding=1e9)
    net = link(voice, capacity=1e6, delay=0.03)
    run = simulate_packets(net, until=20.0, seeds=(2,)).runs[0]["links"]["bottleneck"]
    assert run["voice_delay_mean"] == pytest.approx(0.03 + 160 / 1e9, rel=1e-7)
    assert run["voice_delay_jitter"] < 1e-6 and run["voice_delay_difference"] < 1e-6


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


@pytest.mark.parametrize("name", ["persistent_mod_full", "fifo_mixed"])
def test_bundled_scenarios_carry_voice(name):
    runs = simulate_packets(load(f"misra2003/{name}"), until=4.0, warmup=1.0)
    told = runs.runs[0]["links"]["bottleneck"]
    assert 100 < told["voice_calls"] <= 240 and told["utilization"] > 0.8
    # over 3 s the share of 200 calls that talk has a deviation of 6 %
    assert told["voice_rate"] == pytest.approx(24.8e3 * told["voice_calls"], rel=0.25)


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


def test_voice_in_one_queue_is_marked_in_vain_and_lost_where_it_is_full():
    """It counts like all packets for the queue law; only a full queue loses its packets."""
    voice = Voice(calls=60.0, discipline="fifo")
    net = dumbbell(flows(6), Threshold(at=20.0), voice=voice, buffer=math.inf)
    simulation = finished(net, 40.0)
    traffic, port = simulation.flows[6], simulation.ports[0]
    assert traffic["marked"] > 0 and traffic["lost"] == 0
    assert port["arrivals"] == simulation.flows["sent"].sum() - _before(simulation)
    full = dataclasses.replace(net.links[0], queue=Droptail(), buffer=8.0)
    simulation = finished(dataclasses.replace(net, links=(full,)), 40.0)
    assert simulation.flows[6]["lost"] > 0
    assert simulation.ports[0]["drops"] == simulation.flows["lost"].sum()


def _before(simulation):
    """Packets that are still on their way to the link."""
    port = simulation.plan.flows[0].access_delay
    assert port > 0
    wires = [simulation.wires[e["index"]] for e in simulation.entities if e["kind"] == r.WIRE]
    return sum(int(w["count"]) for w in wires)


def test_links_without_voice_have_no_such_metrics():
    voice = Voice(calls=10.0)
    net = dumbbell(flows(1), Droptail(), voice=voice)
    two = dataclasses.replace(
        net,
        links=(net.links[0], dataclasses.replace(net.links[0], voice=None)),
        link_names=("one", "two"),
        flows=(dataclasses.replace(net.flows[0], route=(0, 1)),),
    )
    data = simulate_packets(two, until=2.0).to_dataset()
    voiced = {m: u for m, u in units("packets", "links").items() if m.startswith("voice_")}
    for name, unit in voiced.items():
        assert data[f"link_{name}"].attrs["units"] == unit
        assert np.isnan(data[f"link_{name}"].sel(link="two")).all()
    assert data["link_voice_rate"].sel(link="one") > 0
    plain = simulate_packets(dumbbell(flows(1), Droptail()), until=2.0).to_dataset()
    assert not any("voice" in str(name) for name in plain)
