"""What the fluid model says against itself, beside packets of the same laws."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

import fluidcc as fc
from fluidcc import laws
from fluidcc.analysis.validity import validity_warnings
from fluidcc.scenario.network import Start

TEXT = """
[links.l]
capacity = 1250
buffer = 150
queue = {{ law = "red", min_th = 25, max_th = 75, p_max = {p_max}, w_q = 0.002, gentle = true }}
[flows.f]
n = {n}
rtt = "{rtt}"
window = {{ law = {law} }}
feedback = "{feedback}"
"""


def network(n=20, rtt="80 ms", p_max=0.1, law='"newreno"', feedback="mark_tail"):
    """Flows over gentle RED."""
    return fc.loads(TEXT.format(n=n, rtt=rtt, p_max=p_max, law=law, feedback=feedback))


def told(**values):
    """The reasons for one network."""
    return validity_warnings(fc.equilibrium(network(**values)))


ECHOES = {"window": laws.NewReno(max_window=1e4), "reaction": laws.OncePerRTT()}


def held_by_pi(**flows):
    """PI holds the queue, so that both engines have windows of 15 packets at their own marks."""
    link = fc.Link(
        queue=laws.PI(q_ref=87.5, k_pi=2.41e-6), capacity=1875.0, packet_size=500.0, delay=0.09,
        buffer=400.0,
    )  # fmt: skip
    group = fc.Flows(
        n=np.array([30.0]), rtt=np.array([0.2]), access_delay=0.01, start=Start(0.0, 5.0), **flows
    )
    return fc.Network(links=(link,), flows=(group,))


def marks(net, closure="population"):
    """Marks or losses at equilibrium."""
    found = fc.equilibrium(dataclasses.replace(net, closure=closure))
    assert found.status == "regular"
    # a flight of 15.4 packets, to which the population adds the half packet that is not sent
    assert found.flows["flows"].window[0] == pytest.approx(15.7, abs=0.4)
    return found.links["bottleneck"].mark_probability


@pytest.mark.parametrize(
    "flows",
    [
        ECHOES,
        {"window": laws.BECN(), "feedback": laws.Backward(), "reaction": laws.Pause()},
        {"window": laws.ECNMod(), "reaction": laws.PerMark()},
    ],
    ids=["echoes", "pause", "every mark"],
)
def test_the_population_needs_as_many_marks_as_packets(flows):
    net = held_by_pi(**flows)
    runs = fc.simulate_packets(net, until=160.0, warmup=60.0, seeds=(1, 2))
    seen = runs.mean["links"]["bottleneck"]["mark_fraction"]
    assert marks(net) == pytest.approx(seen, rel=0.05)
    assert marks(net, "mean") > 1.05 * seen


@pytest.mark.parametrize(
    "changes",
    [
        {"sender": (("grow_on_echo", True),)},
        {"sender": (("echo", "packet"),)},
        {"reaction": laws.PerMark()},
    ],
)
def test_windows_that_grow_on_echoes_need_more_marks(changes):
    """The mean knows no standstill: it has less too many where windows do not stand still."""
    still, moving = held_by_pi(**ECHOES), held_by_pi(**{**ECHOES, **changes})
    excess = [marks(net, "mean") / marks(net) - 1 for net in (still, moving)]
    assert 0 < excess[1] < excess[0] / 2


@pytest.mark.parametrize(
    ("values", "wrong"),
    [({"n": 30, "rtt": "200 ms", "p_max": 0.2}, False), ({}, True)],
    ids=["large windows", "small windows"],
)
def test_a_queue_that_too_many_marks_make_too_long_is_told(values, wrong):
    net = network(**values)
    rest, runs = fc.equilibrium(net), fc.simulate_packets(net, until=100.0, warmup=20.0)
    reasons = " ".join(validity_warnings(rest))
    error = rest.links["l"].queue / runs.mean["links"]["l"]["number_in_system_mean"] - 1
    assert ("% too high" in reasons) == (error > 0.1) == wrong


def test_an_empty_queue_is_one_of_the_mean_alone():
    (reason,) = told(n=1, law='"newreno", max_window = 90')
    assert "the queue is empty at a utilization of 0.9" in reason
    (reason,) = validity_warnings(
        fc.equilibrium(fc.load("kunniyur2001/avq"))
    )  # it marks nevertheless
    assert "the queue is empty at a utilization of 0.98" in reason


@pytest.mark.parametrize(
    ("scenario", "link", "wrong"),
    [("govindaswamy2012/ared_ecn", "ingress", True), ("hollot2001/pi", "bottleneck", False)],
)
def test_a_law_that_turns_round_within_the_noise_of_windows_is_told(scenario, link, wrong):
    """Adaptive RED rests on the edge of its target range; PI rests where nothing turns."""
    net = fc.load(scenario)
    rest, runs = (
        fc.equilibrium(net),
        fc.simulate_packets(net, until=60.0, warmup=20.0, seeds=(1, 2)),
    )
    error = runs.mean["links"][link]["number_in_system_mean"] / rest.links[link].queue - 1
    told = any("adapts up on one side" in reason for reason in validity_warnings(rest))
    assert told == (abs(error) > 0.1) == wrong


def test_the_jump_to_dropping_is_told():
    text = TEXT.replace("gentle = true", "gentle = false")
    net = fc.loads(text.format(n=60, rtt="80 ms", p_max=0.1, law='"newreno"', feedback="mark_tail"))
    rest = fc.equilibrium(net)
    assert (
        rest.status == "discontinuity" and "every packet is dropped" in validity_warnings(rest)[0]
    )


def test_marks_that_last_for_part_of_a_round_trip_are_told():
    """46.5 of 91.5 packets: the front's marks end after the propagation delay."""
    net = fc.load("durresi2001/slow_start_front")
    reasons = validity_warnings(fc.equilibrium(net))
    assert any("marks for 0.51 of a round trip" in reason for reason in reasons)


def test_a_trajectory_that_swings_or_loses_everything_is_told():
    time = np.linspace(0.0, 40.0, 401)
    swing = SimpleNamespace(queue=50.0 * (1 + np.sin(time)), drop_fraction=0.0 * time)
    rest = fc.equilibrium(network(n=30, rtt="200 ms", p_max=0.2))
    (unstable,) = validity_warnings(rest)
    assert "the loop is unstable" in unstable
    _, reason = validity_warnings(
        rest, SimpleNamespace(time=time, links={"l": swing}, net=rest.net)
    )
    assert "oscillates, with a standard deviation" in reason
    still = SimpleNamespace(
        queue=50.0 + 0 * time, drop_fraction=np.where(np.sin(time) > 0.9, 1.0, 0.0)
    )
    _, reason = validity_warnings(
        rest, SimpleNamespace(time=time, links={"l": still}, net=rest.net)
    )
    assert "the fluid model loses most packets" in reason
