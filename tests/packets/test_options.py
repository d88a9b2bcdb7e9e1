"""Sender options: profiles, faults, and that every one of them does something."""

import dataclasses

import pytest
from packet_cases import dumbbell, flows, red

from fluidcc.laws.feedback.backward import Backward
from fluidcc.laws.feedback.loss import Loss
from fluidcc.laws.feedback.receiver_window import ReceiverWindow
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.reaction import Pause
from fluidcc.packets.run import simulate_packets
from fluidcc.scenario.network import Network
from fluidcc.scenario.sender_options import (
    PROFILES,
    SenderError,
    SenderOptions,
    fields,
    sender_options,
)

# a value other than the default, and what shows its effect: losses, marks, replies that pass links,
# windows that the receiver holds back
EFFECTS = {
    "tick": (0.1, "loss"),
    "min_rto": (1.0, "loss"),
    "max_rto": (0.25, "loss"),
    "initial_rto": (0.03, "loss"),
    "initial_window": (10.0, "ecn"),
    "initial_ssthresh": (4.0, "ecn"),
    "syn": (False, "ecn"),
    "syn_size": (900.0, "ecn"),
    "ack_size": (500.0, "back"),
    "quench_size": (1500.0, "back"),
    "dup_acks": (2, "loss"),
    "limited_transmit": (False, "loss"),
    "one_fast_retransmit": (False, "loss"),
    "integer_windows": (True, "ecn"),
    "window_validation": (True, "held"),
    "partial_deflation": (False, "loss"),
    "partial_timer_once": (False, "loss"),
    "recovery_burst": (1, "loss"),
    "recovery": ("reno", "loss"),
    "echo": ("packet", "ecn"),
    "grow_on_echo": (True, "ecn"),
    "overhead": (0.001, "ecn"),
    "choice_waiting": (8, "ecn"),
    "choice_arms": (False, "ecn"),
    "mark_below": (0.02, "ecn"),
}


def _runs(kind, **options):
    sender, given = tuple(options.items()), {}
    if kind == "loss":
        given = {"feedback": Loss()}
    elif kind == "back":
        given = {"feedback": Backward(), "reaction": Pause()}
    elif kind == "held":
        given = {"feedback": ReceiverWindow()}
    group = flows(12, sender=sender, **given)
    net = dumbbell(group, red(), buffer=20.0)
    if kind == "back":  # quenches of the second router and ACKs pass the third link
        first = dataclasses.replace(net.links[0], queue=Droptail(), capacity=2000.0, buffer=500.0)
        links = (first, *net.links, dataclasses.replace(first, capacity=100.0))
        group = dataclasses.replace(group, route=(0, 1), reverse_route=(2,))
        net = Network(links=links, flows=(group,), link_names=("first", "red", "back"))
    return simulate_packets(net, until=30.0).runs


@pytest.fixture(scope="module")
def plain():
    return {kind: _runs(kind) for kind in ("loss", "ecn", "back", "held")}


def test_every_option_is_tried():
    assert set(EFFECTS) == set(fields()) - {"profile"}


@pytest.mark.parametrize("name", EFFECTS)
def test_option_does_something(name, plain):
    value, kind = EFFECTS[name]
    assert getattr(SenderOptions(), name) != value
    assert _runs(kind, **{name: value}) != plain[kind]


def test_a_profile_is_its_options():
    older = sender_options({"profile": "ns-2.1b8a"})
    changed = PROFILES["ns-2.1b8a"]
    assert all(getattr(older, k) == v for k, v in changed.items())
    assert sender_options({"profile": "ns-2.1b8a", "min_rto": 0.5}).min_rto == 0.5
    assert _runs("loss", profile="ns-2.1b8a") == _runs("loss", **changed)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"min_rtt": 1.0}, "did you mean 'min_rto'"),
        ({"tick": 0.0}, r"sender.tick: expected a number in \[1e-06, 10\] s, got 0.0"),
        ({"syn": 1}, "sender.syn: expected true or false, got 1"),
        ({"dup_acks": 2.5}, "sender.dup_acks: expected a whole number, got 2.5"),
        ({"profile": "ns-3"}, "sender.profile: expected one of ns-2.35, ns-2.1b8a, got 'ns-3'"),
        ({"tick": True}, "sender.tick: expected a number"),
    ],
)
def test_faults_are_named(given, said):
    with pytest.raises(SenderError, match=said):
        sender_options(given)
