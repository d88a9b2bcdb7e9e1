"""Voice calls in packets: how many there are, what they send, and what it does to the flows."""

import math

import numpy as np
import pytest
from packet_cases import dumbbell, finished, flows, within
from scipy import stats

from fluidcc.analysis.equilibrium import equilibrium
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.queue.threshold import Threshold
from fluidcc.laws.voice import Voice, erlang_blocking
from fluidcc.packets.plan import PacketError
from fluidcc.packets.run import simulate_packets
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
