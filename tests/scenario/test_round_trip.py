"""Scenarios in and out: bundled files, defaults, exact round trips."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenario_cases import BASE, spoiled

from fluidcc.bundled import scenarios
from fluidcc.network import Start
from fluidcc.scenario import dumps, load, loads, paths
from fluidcc.scenario.build import build


def same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    return all(
        np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    )


@pytest.mark.parametrize("name", list(scenarios()))
def test_bundled_scenarios_load_and_come_back(name):
    net = load(name)
    assert net.title and net.source == name.split("/")[0]
    assert same(loads(dumps(net)), net)


def test_values_are_si_with_packets():
    net = loads(BASE)
    near, far = net.links
    mod, tcp = net.flows
    assert (near.capacity, near.buffer, near.delay) == (1250.0, 90.0, 0.005)
    assert (far.capacity, far.buffer, far.packet_size) == (2500.0, np.inf, 1000.0)
    assert mod.route == (0, 1) and mod.access_delay == 0.002 and mod.reverse_delay is None
    assert np.array_equal(mod.n, [3, 4]) and np.array_equal(mod.rtt, [0.08, 0.12])
    assert np.array_equal(tcp.n, np.ones(5))
    assert np.allclose(tcp.rtt, [0.06, 0.07, 0.08, 0.09, 0.1], rtol=1e-15)
    assert tcp.rtt[0] == 0.06 and tcp.rtt[-1] == 0.1
    assert tcp.access_capacity == 12500.0 and tcp.window.max_window == 64.0
    assert tcp.start == Start(0.0, 5.0) and tcp.initial.window == 5.0
    assert dict(tcp.sender) == {"profile": "ns-2.35", "initial_window": 4.0}
    assert tcp.access_delay is None


def test_reactions_follow_the_law_unless_given():
    net = loads(BASE)
    reactions = [(f.reaction.name, f.reaction.growth) for f in net.flows]
    assert reactions == [("per_mark", "clean"), ("once_per_rtt", "all")]
    other = build(spoiled({"flows.mod.window.reaction": "refractory"}), "x")
    assert (other.flows[0].reaction.name, other.flows[0].reaction.growth) == ("refractory", "all")


def test_an_access_delay_of_zero_is_none():
    assert build(spoiled({"flows.mod.access_delay": 0}), "x").flows[0].access_delay is None


def test_every_path_has_its_value_in_the_text():
    net = loads(BASE)
    text = dumps(net)
    for path in paths(net):
        key = path.split(".")[-1]
        assert key in text or key.endswith("_delay")


@given(
    capacity=st.floats(1.0, 1e7),
    delay=st.floats(0.0, 1e-2, exclude_min=True),
    buffer=st.one_of(st.just(float("inf")), st.floats(1.0, 1e6)),
    p_max=st.floats(0.0, 1.0, exclude_min=True),
    rtt=st.lists(st.floats(0.04, 10.0), min_size=1, max_size=4),
)
def test_any_numbers_come_back_exactly(capacity, delay, buffer, p_max, rtt):
    changes = {
        "links.near.capacity": capacity,
        "links.near.delay": delay,
        "links.near.buffer": buffer,
        "links.near.queue.p_max": p_max,
        "flows.mod.rtt": rtt,
        "flows.mod.n": [1.5] * len(rtt),
    }
    net = build(spoiled(changes), "x")
    assert same(loads(dumps(net)), net)
