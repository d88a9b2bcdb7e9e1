"""Parameters by path: read, set, traced by JAX, refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from scenario_cases import BASE
from strategies import networks

from fluidcc import ScenarioError, loads, number_at, paths, replace
from fluidcc.scenario.paths import info_at, value_at
from fluidcc.scenario.tables import tables

NET = loads(BASE)


@pytest.mark.parametrize(
    ("path", "value", "number"),
    [
        ("links.near.queue.w_q", 1e-4, 1e-4),
        ("links.near.capacity", "20 Mbit/s", 2500.0),
        ("links.far.buffer", 100, 100.0),
        ("flows.mod.access_delay", "1 ms", 0.001),
        ("flows.mod.reverse_delay", "1 ms", 0.001),
        ("flows.mod.n", [1, 2], 3.0),
        ("flows.tcp.n", 40, 40.0),
        ("flows.tcp.rtt.max", "200 ms", 0.2),
        ("flows.tcp.window.max_window", 30, 30.0),
        ("flows.tcp.sender.tick", 0.1, 0.1),
        ("flows.tcp.initial.window", 3, 3.0),
    ],
)
def test_what_is_set_is_what_stands_there(path, value, number):
    net = replace(NET, {path: value})
    assert number_at(net, path) == number
    same = [p for p in paths(NET) if p != path and p in paths(net)]
    for other in same:
        try:
            before = number_at(NET, other)
        except ScenarioError:
            continue
        assert number_at(net, other) == before


def test_choices_and_laws_can_be_set():
    net = replace(NET, {"model.rates": "mgt", "links.near.queue.spreading": "wait"})
    assert net.rates == "mgt" and net.links[0].queue.spreading.name == "wait"
    net = replace(NET, {"links.near.queue": {"law": "threshold", "at": 30}})
    assert net.links[0].queue.name == "threshold" and net.links[0].queue.at == 30.0
    net = replace(NET, {"flows.tcp.window.c1": 0.1, "flows.tcp.window.law": "ecn_mod"})
    assert net.flows[1].window.c1 == 0.1 and net.flows[1].reaction.name == "per_mark"
    net = replace(NET, {"flows.mod.window.reaction": "once_per_rtt"})
    assert net.flows[0].reaction.growth == "all"


RICH = replace(
    NET,
    {
        "links.near.voice": {"calls": 200},
        "links.far.voice": {"arrivals": 2.0, "most": 500},
        "flows.mod.feedback": {"law": "receiver_window", "persistence": 0.5},
        "flows.tcp.traffic.law": "web",
        "flows.tcp.traffic.idle": "4 s",
    },
)


@pytest.mark.parametrize(
    ("path", "value", "number", "unit"),
    [
        ("links.near.cross", "4 Mbit/s", 500.0, "packet/s"),
        ("links.near.voice.calls", 100, 100.0, "1"),
        ("links.near.voice.codec", "32 kbit/s", 32e3, "bit/s"),
        ("links.far.voice.arrivals", 3, 3.0, "1/s"),
        ("links.far.voice.holding", "2 min", 120.0, "s"),
        ("links.far.voice.most", 30, 30.0, "1"),
        ("flows.mod.window.persistence", 1, 1.0, "1"),
        ("flows.mod.window.min_rto", "1 s", 1.0, "s"),
        ("flows.tcp.traffic.idle", "1 s", 1.0, "s"),
        ("flows.tcp.traffic.file", "5 kB", 5.0, "packet"),
    ],
)
def test_parameters_of_further_laws_have_paths(path, value, number, unit):
    assert path in paths(RICH)
    net = replace(RICH, {path: value})
    assert number_at(net, path) == number == value_at(RICH, path, value)
    described = info_at(RICH, path)
    assert described is not None and described.unit == unit
    assert jax.tree.structure(net) == jax.tree.structure(RICH)
    traced = jax.jit(lambda x: replace(RICH, {path: x}))(number)
    for a, b in zip(jax.tree.leaves(net), jax.tree.leaves(traced), strict=True):
        assert np.array_equal(a, b)


@settings(max_examples=10)
@given(networks())
def test_setting_a_value_to_itself_changes_nothing(net):
    for path in paths(net):
        here = tables(net)
        for part in path.split("."):
            here = here.get(part)
            if here is None:
                break
        if here is None or path.endswith((".law", ".reaction", ".loss", ".feedback")):
            continue  # has no value, or begins a law anew
        again = replace(net, {path: here})
        assert jax.tree.structure(again) == jax.tree.structure(net), path
        leaves = zip(jax.tree.leaves(again), jax.tree.leaves(net), strict=True)
        assert all(np.array_equal(a, b) for a, b in leaves), path


@pytest.mark.parametrize(
    ("path", "close"),
    [
        ("links.near.queue.wq", "links.near.queue.w_q"),
        ("flows.mod.window.c3", "flows.mod.window.c1"),
        ("link.near.queue.w_q", "links.near.queue.w_q"),
        ("queue.p_max", "links.near.queue.p_max"),
        ("flows.modd.n", "flows.mod.n"),
        ("model.rate", "model.rates"),
        ("flows.mod.q", "flows.mod.n"),
        ("flows.mood.window.law", "flows.mod.window.law"),
    ],
)
def test_wrong_paths_are_told_with_the_nearest(path, close):
    with pytest.raises(ScenarioError) as error:
        replace(NET, {path: 1})
    assert close in error.value.faults[0].nearest


def test_traced_values_go_to_their_place():
    def capacity_and_flows(c, n):
        net = replace(NET, {"links.near.capacity": c, "flows.mod.n": n})
        return net.links[0].capacity * 2 + jnp.sum(net.flows[0].n * jnp.array([1.0, 10.0]))

    value, slopes = jax.jit(jax.value_and_grad(capacity_and_flows, (0, 1)))(100.0, 14.0)
    assert value == 200.0 + 6.0 + 80.0
    assert np.allclose(slopes, (2.0, 43.0 / 7.0))


def test_ways_back_change_between_one_number_and_one_for_each_link():
    path = "flows.mod.reverse_delay"
    listed = replace(NET, {path: ["1 ms", 0.02]})
    assert listed.flows[0].reverse_delay.tolist() == [0.001, 0.02]
    assert replace(listed, {path: "3 ms"}).flows[0].reverse_delay == 0.003
    assert float(jax.jit(lambda x: replace(listed, {path: x}).flows[0].reverse_delay)(0.1)) == 0.1
    swapped = jax.jit(lambda x: replace(listed, {path: x}).flows[0].reverse_delay)
    assert swapped(np.array([0.02, 0.01])).tolist() == [0.02, 0.01]


def test_parameters_have_units():
    assert info_at(NET, "links.near.queue.w_q").symbol == "w_q"
    assert info_at(NET, "flows.tcp.rtt.min").unit == "s"
    assert info_at(NET, "flows.tcp.window.max_window").unit == "packet"
    assert info_at(NET, "model.rates") is None
    assert value_at(NET, "links.near.buffer", "90 kB") == 90.0
    assert value_at(NET, "links.near.queue.law", "red") == "red"
    with pytest.raises(ScenarioError, match="a number in s"):
        value_at(NET, "links.near.delay", "3 kB")
