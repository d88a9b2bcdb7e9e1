"""Ages of what a sender sees, worked out by hand for routes of one and two links."""

import jax.numpy as jnp
import numpy as np
import pytest

from fluidcc.laws.feedback.backward import Backward
from fluidcc.laws.feedback.loss import Loss
from fluidcc.laws.feedback.mark_front import MarkFront
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.window.reno import Reno
from fluidcc.model.delays import Past, State, ages
from fluidcc.scenario.network import Flows, Link, Network

RTT = np.array([0.1, 0.2])  # s
QUEUES = (jnp.asarray(20.0), jnp.asarray(30.0))  # packets; waits of 0.02 and 0.06 s
TOTAL = RTT + 0.08
LINKS = (Link(Droptail(), capacity=1000.0, delay=0.01), Link(Droptail(), capacity=500.0))


def two_links(feedback=MarkTail(), **more) -> Network:  # noqa: B008
    flows = Flows(Reno(), n=jnp.ones(2), rtt=jnp.array(RTT), route=(0, 1), feedback=feedback,
                  **{"access_delay": 0.005} | more)  # fmt: skip
    return Network(LINKS, (flows,), link_names=("near", "far"))


def ages_of(net: Network, queues=QUEUES) -> Past:
    windows = tuple(jnp.full(np.shape(f.rtt), 4.0) for f in net.flows)
    return ages(net, State(windows, queues, ((),) * len(net.links)))


def assert_ages(found, *expected) -> None:
    for age, value in zip(found, expected, strict=True):
        assert age.shape == (2,)
        np.testing.assert_allclose(age, np.broadcast_to(value, 2), rtol=1e-14)


FORWARD = (0.005, 0.005 + 0.02 + 0.01)  # access; then the wait and the delay of the first link
SIGNAL_AGES = [
    (MarkTail(), {}, (TOTAL - FORWARD[0], TOTAL - FORWARD[1])),
    (Loss(), {}, (TOTAL - FORWARD[0], TOTAL - FORWARD[1])),
    (MarkFront(), {}, (TOTAL - FORWARD[0] - 0.02, TOTAL - FORWARD[1] - 0.06)),
    (Backward(), {}, (0.005, 0.015)),
    (Backward(), {"reverse_delay": 0.03}, (0.03, 0.04)),
    (Backward(), {"reverse_delay": np.array([0.03, 0.01])}, (0.03, 0.01)),
]


@pytest.mark.parametrize(("feedback", "more", "expected"), SIGNAL_AGES)
def test_age_of_signals(feedback, more, expected):
    found = ages_of(two_links(feedback, **more)).heard[0]
    assert_ages([signal.mark for signal in found], *expected)
    assert_ages([signal.drop for signal in found], *expected)


@pytest.mark.parametrize("feedback", [MarkTail(), MarkFront(), Loss()])
def test_acks_carry_signals_for_a_round_trip(feedback):
    found = ages_of(two_links(feedback))
    assert_ages(found.carried[0], TOTAL, TOTAL)
    assert_ages([found.acked[0]], TOTAL)


@pytest.mark.parametrize(
    ("more", "reverse"),
    [
        ({}, (0.005, 0.015)),
        ({"reverse_delay": 0.03}, (0.03, 0.04)),
        ({"reverse_delay": np.array([0.03, 0.01])}, (0.03, 0.01)),
    ],
)
def test_quenches_tell_of_packets_sent_before_they_left(more, reverse):
    found = ages_of(two_links(Backward(), **more))
    assert_ages(found.carried[0], reverse[0] + FORWARD[0], reverse[1] + FORWARD[1])
    assert_ages([found.acked[0]], TOTAL)


def test_packets_enter_a_queue_after_the_way_there():
    found = ages_of(two_links())
    assert_ages(found.arriving[0], *FORWARD)
    assert_ages(found.paces[0], TOTAL - FORWARD[0], TOTAL - FORWARD[1])


def test_packets_entered_the_links_before_a_wait_and_a_delay_ago():
    first, second = ages_of(two_links()).passed[0]
    assert first == ()
    assert_ages([second[0].pace, second[0].signal.drop], 0.03, 0.03)
