"""Parameters by path: read, set, traced by JAX, refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scenario_cases import BASE

from fluidcc.errors import ScenarioError
from fluidcc.scenario import info_at, load, loads, number_at, paths, replace
from fluidcc.scenario.paths import value_at

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


def test_spread_round_trips_are_spread_anew():
    net = replace(NET, {"flows.tcp.n": 3})
    assert np.allclose(net.flows[1].rtt, [0.06, 0.08, 0.1])
    assert np.array_equal(net.flows[1].n, np.ones(3))


def test_choices_and_laws_can_be_set():
    net = replace(NET, {"model.rates": "mgt", "links.near.queue.spreading": "wait"})
    assert net.rates == "mgt" and net.links[0].queue.spreading.name == "wait"
    net = replace(NET, {"links.near.queue": {"law": "threshold", "at": 30}})
    assert net.links[0].queue.name == "threshold" and net.links[0].queue.at == 30.0
    net = replace(NET, {"flows.tcp.window.c1": 0.1, "flows.tcp.window.law": "ecn_mod"})
    assert net.flows[1].window.c1 == 0.1 and net.flows[1].reaction.name == "per_mark"
    net = replace(NET, {"flows.mod.window.reaction": "once_per_rtt"})
    assert net.flows[0].reaction.growth == "all"


def test_numbers_leave_the_structure_alone():
    changes = {"links.near.queue.w_q": 0.5, "flows.mod.rtt": [0.2, 0.3], "links.near.delay": 1e-3}
    before, after = jax.tree.structure(NET), jax.tree.structure(replace(NET, changes))
    assert before == after


def test_the_only_link_and_group_have_short_names():
    net = load("hollot2001/slow")
    assert number_at(net, "link.queue.min_th") == 150.0
    assert replace(net, {"flow.n": 40}).flows[0].n[0] == 40.0
    with pytest.raises(ScenarioError):
        number_at(NET, "link.queue.min_th")


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
    ],
)
def test_wrong_paths_are_told_with_the_nearest(path, close):
    with pytest.raises(ScenarioError) as error:
        replace(NET, {path: 1})
    assert close in error.value.faults[0].nearest


@pytest.mark.parametrize("path", ["foo", "title", "xyzzy.zzz"])
def test_a_path_like_no_other_is_told_with_the_closest_too(path):
    with pytest.raises(ScenarioError) as error:
        replace(NET, {path: 1})
    assert error.value.faults[0].nearest
    with pytest.raises(ScenarioError):
        jax.jit(lambda x: replace(NET, {path: x}).links[0].capacity)(1.0)


def test_all_wrong_values_are_told_at_once():
    with pytest.raises(ScenarioError) as error:
        replace(
            NET, {"links.near.delay": "1 kB", "flows.tcp.n": 0, "model.rates": "x"}, where="here"
        )
    keys = {f.key for f in error.value.faults}
    assert keys == {"links.near.delay", "flows.tcp.n", "model.rates"}
    assert all(f.where == "here" for f in error.value.faults)


def test_traced_values_go_to_their_place():
    def capacity_and_flows(c, n):
        net = replace(NET, {"links.near.capacity": c, "flows.mod.n": n})
        return net.links[0].capacity * 2 + jnp.sum(net.flows[0].n * jnp.array([1.0, 10.0]))

    value, slopes = jax.jit(jax.value_and_grad(capacity_and_flows, (0, 1)))(100.0, 14.0)
    assert value == 200.0 + 6.0 + 80.0
    assert np.allclose(slopes, (2.0, 43.0 / 7.0))


@pytest.mark.parametrize("path", ["model.rates", "flows.mod.reverse_delay", "links.near.queue.wq"])
def test_traced_values_need_a_number_to_replace(path):
    with pytest.raises(ScenarioError):
        jax.jit(lambda x: replace(NET, {path: x}).links[0].capacity)(1.0)


def test_parameters_have_units():
    assert info_at(NET, "links.near.queue.w_q").symbol == "w_q"
    assert info_at(NET, "flows.tcp.rtt.min").unit == "s"
    assert info_at(NET, "flows.tcp.window.max_window").unit == "packet"
    assert info_at(NET, "model.rates") is None
    assert value_at(NET, "links.near.buffer", "90 kB") == 90.0
    assert value_at(NET, "links.near.queue.law", "red") == "red"
    with pytest.raises(ScenarioError, match="a number in s"):
        value_at(NET, "links.near.delay", "3 kB")


def test_words_are_no_numbers():
    with pytest.raises(ScenarioError, match=r"the path of a number, got \[\"near\"\]"):
        number_at(NET, "flows.tcp.route")
