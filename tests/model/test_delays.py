"""Ages of what a sender sees, worked out by hand for routes of one and two links."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from fluidcc.laws.feedback.backward import Backward
from fluidcc.laws.feedback.loss import Loss
from fluidcc.laws.feedback.mark_front import MarkFront
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.law import Signal
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.window.reno import Reno
from fluidcc.model.delays import (
    Passed,
    Past,
    State,
    ages,
    explicit_way,
    make_wire,
    picks,
    round_trip,
)
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
    assert found.carried[0] == (None, None)  # the acknowledged packets themselves
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
    found = ages_of(dataclasses.replace(two_links(), rates="self_clocked"))
    assert_ages(found.paces[0], TOTAL - FORWARD[0], TOTAL - FORWARD[1])


def test_packets_entered_the_links_before_a_wait_and_a_delay_ago():
    first, second = ages_of(two_links()).passed[0]
    assert first == ()
    assert_ages([second[0].pace, second[0].signal.drop], 0.03, 0.03)


def test_sources_at_the_link_see_nothing_late_on_the_way():
    found = ages_of(two_links(access_delay=None))
    assert found.arriving[0][0] is None
    assert_ages(found.arriving[0][1:], 0.03)


def test_tail_and_front_differ_by_the_queueing_delay():
    tail, front = (ages_of(two_links(f)).heard[0] for f in (MarkTail(), MarkFront()))
    np.testing.assert_allclose(tail[0].mark - front[0].mark, 0.02, rtol=1e-12)
    np.testing.assert_allclose(tail[1].mark - front[1].mark, 0.06, rtol=1e-12)


def test_age_at_the_front_ignores_the_queue_itself():
    flows = Flows(Reno(), n=jnp.ones(2), rtt=jnp.array(RTT), feedback=MarkFront())
    net = Network(LINKS[:1], (flows,))
    for queue in (0.0, 50.0):
        assert_ages([ages_of(net, (jnp.asarray(queue),)).heard[0][0].mark], RTT)


@pytest.mark.parametrize(
    ("feedback", "slopes"),
    [(MarkTail(), (1e-3, 2e-3)), (MarkFront(), (0.0, 2e-3)), (Backward(), (0.0, 0.0))],
)
def test_slope_of_the_age_in_the_queues(feedback, slopes):
    # the signal of the first link: its own queue delays what it says at entry, the second both
    net = two_links(feedback)
    by_queue = jax.jacfwd(lambda q: ages_of(net, q).heard[0][0].mark)(QUEUES)
    for slope, expected in zip(by_queue, slopes, strict=True):
        np.testing.assert_allclose(slope, expected, rtol=1e-14, atol=1e-18)


def test_round_trip_includes_every_queue_of_the_route():
    net = two_links()
    np.testing.assert_allclose(round_trip(net, net.flows[0], QUEUES), TOTAL, rtol=1e-15)
    way = explicit_way(net, net.flows[0], QUEUES)
    for trip, wait in zip(way.trips, (0.02, 0.06), strict=True):
        np.testing.assert_allclose(trip.round_trip, TOTAL, rtol=1e-15)
        np.testing.assert_allclose(trip.queueing, wait, rtol=1e-15)


def test_picks_find_their_numbers_on_the_wire():
    # two groups of 2 and 3 round trips, the second on the far link only
    groups = (
        Flows(Reno(), n=jnp.ones(2), rtt=jnp.array(RTT), route=(0, 1)),
        Flows(Reno(), n=jnp.ones(3), rtt=jnp.array([0.1, 0.2, 0.3]), route=(1,)),
    )
    net = Network(
        LINKS, groups, rates="self_clocked", link_names=("near", "far"),
        flow_names=("long", "short"),
    )  # fmt: skip
    near, far = Signal(0.1, 0.2), Signal(0.3, 0.4)
    rates = (jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0, 5.0]))
    u = ravel_pytree(make_wire(net, rates, (near, far), (0.5, 0.6)))[0]
    seen = jax.tree.map(lambda index: u[index], picks(net))

    def both(*numbers):
        return tuple(np.full(2, v) for v in numbers)

    def probabilities(signal, size):
        return Signal(*(np.full(size, v) for v in signal[:2]), None, None)

    expected = Past(
        acked=rates,
        carried=((None, None), (None,)),
        heard=(
            (probabilities(near, 2), probabilities(far, 2)),
            (probabilities(far, 3),),
        ),
        arriving=((None, rates[0]), (None,)),
        passed=(((), (Passed(probabilities(near, 2), np.full(2, 0.5)),)), ((),)),
        paces=(both(0.5, 0.6), (np.full(3, 0.6),)),
    )
    jax.tree.map(np.testing.assert_array_equal, seen, expected)
    assert jax.tree.structure(seen) == jax.tree.structure(ages_of(net))
