"""Scenarios in and out: bundled files, defaults, exact round trips."""

import itertools
import math
from contextlib import suppress

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scenario_cases import BASE, spoiled
from strategies import networks

import fluidcc
from fluidcc import ScenarioError, Voice, dumps, load, loads, number_at, paths, replace
from fluidcc.bundled import scenarios
from fluidcc.laws import RED, Reno, Web
from fluidcc.laws.parameters import infos
from fluidcc.laws.registry import LAWS
from fluidcc.scenario import parsing
from fluidcc.scenario.build import build
from fluidcc.scenario.network import Change, Start
from fluidcc.scenario.paths import info_at, value_at
from fluidcc.scenario.sender import KINDS, NAMED
from fluidcc.scenario.tables import tables


def same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    return all(
        np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    )


@pytest.mark.parametrize("name", list(scenarios()))
def test_bundled_scenarios_load_and_come_back(name):
    net = load(name)
    assert net.title and net.source.startswith(name.split("/")[0])
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


def test_traffic_beside_the_flows():
    changes = {
        "links.near.cross": "4.5 Mbit/s",
        "links.near.voice": {"arrivals": 2, "holding": "2 min", "most": 500, "codec": "64 kbit/s"},
        "links.far.voice": {"calls": 200, "discipline": "fifo", "process": "modulated", "seed": 3},
        "flows.tcp.traffic": {"law": "web", "file": "12 kB", "idle": "3 s"},
        "flows.tcp.initial": {"window": 1, "slow_start": True},
    }
    net = build(spoiled(changes), "x")
    near, far = net.links
    assert near.cross == 562.5
    assert near.voice == Voice(arrivals=2.0, holding=120.0, most=500.0, codec=64e3)
    assert (far.voice.calls, far.voice.discipline, far.voice.seed) == (200, "fifo", 3)
    assert net.flows[1].traffic == Web(file=12.0, idle=3.0)
    assert net.flows[1].initial.slow_start
    assert same(loads(dumps(net)), net)
    assert build(spoiled({"flows.tcp.traffic": "web"}), "x").flows[1].traffic == Web()


def test_what_changes_in_packet_runs():
    changes = {
        "links.near.random_loss": "0.1 %",
        "links.near.schedule": [
            {"at": "20 s", "capacity": "5 Mbit/s"},
            {"at": 40, "capacity": 1250, "delay": "10 ms"},
        ],
        "links.far.random_loss": 0,
        "flows.mod.stop": "30 s",
        "flows.tcp.start": ["0 s", 2, "2500 ms", 3, 4],
        "flows.tcp.stop": [10, 20, 30, 40, "1 min"],
        "flows.tcp.sender": {"delayed_acks": True, "ack_delay": "40 ms", "byte_counting": 2},
    }
    net = build(spoiled(changes), "x")
    near, far = net.links
    mod, tcp = net.flows
    assert near.random_loss == 0.001 and far.random_loss is None
    assert near.schedule == (Change(20.0, capacity=625.0), Change(40.0, 1250.0, 0.01))
    assert mod.stop == (30.0,) and tcp.stop == (10.0, 20.0, 30.0, 40.0, 60.0)
    assert tcp.start == Start.at(0.0, 2.0, 2.5, 3.0, 4.0)
    assert dict(tcp.sender)["byte_counting"] == 2
    assert same(loads(dumps(net)), net) and loads(dumps(net)) == net
    plain = replace(loads(BASE), {"links.near.random_loss": "2 %", "flows.mod.stop": 9})
    assert plain.links[0].random_loss == 0.02 and plain.flows[0].stop == (9.0,)
    assert replace(plain, {"links.near.random_loss": 0}).links[0].random_loss is None


@pytest.mark.parametrize(
    ("given", "kept"),
    [("4 ms", 0.004), (0, 0.0), (["4 ms", 0.03], [0.004, 0.03]), ([0.03, 0], [0.03, 0.0])],
)
def test_ways_back_are_one_number_or_one_for_each_link(given, kept):
    net = build(spoiled({"flows.mod.reverse_delay": given}), "x")
    assert np.array_equal(net.flows[0].reverse_delay, kept)
    assert np.ndim(net.flows[0].reverse_delay) == np.ndim(kept)
    assert same(loads(dumps(net)), net)
    one = build(spoiled({"flows.tcp.reverse_delay": ["4 ms"]}), "x")
    assert one.flows[1].reverse_delay == 0.004 and same(loads(dumps(one)), one)


@settings(max_examples=50)
@given(networks())
def test_networks_of_any_laws_come_back_exactly(net):
    text = dumps(net)
    assert same(loads(text), net)
    assert dumps(loads(text)) == text


@pytest.mark.parametrize("law", [law for laws in LAWS.values() for law in laws.values()])
def test_every_law_can_be_chosen_and_comes_back(law):
    """The random networks need not reach each of them."""

    @settings(max_examples=2)
    @given(networks(law))
    def check(net):
        owners = [*net.links, *net.flows, *(link.queue for link in net.links)]
        assume(any(type(v) is law for owner in owners for v in vars(owner).values()))
        assert same(loads(dumps(net)), net)

    check()


def test_no_two_laws_of_a_window_table_share_a_name():
    for chosen in itertools.product(*(LAWS[kind].values() for kind in KINDS)):
        names = [name for law in chosen for name in infos(law)]
        assert len({"law", *NAMED, *names}) == 1 + len(NAMED) + len(names)


# -- Quantities in text: known values, round trips, refusals
@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("88 ms", "s", 0.088), ("3 us", "s", 3e-6), ("2 min", "s", 120.0), (0.25, "s", 0.25),
        ("1.5 kB", "B", 1500.0), ("12 kbit", "B", 1500.0), ("1 KiB", "B", 1024.0),
        ("10 Mbit/s", "packet/s", 1250.0), ("10 Mbps", "packet/s", 1250.0),
        ("1.25 MB/s", "packet/s", 1250.0), ("1250 packet/s", "packet/s", 1250.0),
        ("150 packets", "packet", 150.0), ("90 kB", "packet", 90.0), ("10 %", "1", 0.1),
        ("64 kbit/s", "bit/s", 64e3), ("8 kB/s", "bit/s", 64e3), ("inf", "packet", math.inf),
    ],
)  # fmt: skip
def test_reads_the_exact_value(text, unit, value):
    assert parsing.read(text, unit, packet_size=1000.0) == value


@pytest.mark.parametrize(
    ("value", "unit", "close"),
    [
        ("10 Mbits/s", "packet/s", ("Mbit/s",)), ("5 mss", "s", ("ms",)), ("5 ms", "packet", ()),
        ("5 kB", "s", ()), ("fast", "s", ()), ("10", "s", ("10 s",)), ("0,5 ms", "s", ("0.5 ms",)),
        (True, "s", ()), (None, "s", ()), (math.nan, "s", ()), ("8 packet/s", "bit/s", ()),
        ("64 kbits/s", "bit/s", ("kbit/s",)), (10**400, "s", ()), ("1e999999999 s", "s", ()),
    ],
)  # fmt: skip
def test_refuses_other_quantities(value, unit, close):
    with pytest.raises(parsing.UnitError, match=r"a number") as error:
        parsing.read(value, unit, packet_size=1000.0)
    assert error.value.nearest == close


def test_bytes_need_a_packet_size():
    with pytest.raises(parsing.UnitError):
        parsing.read("90 kB", "packet")


@given(st.floats(1e-9, 1e12), st.sampled_from(["s", "B", "packet", "packet/s"]))
def test_a_number_with_its_own_unit_is_itself(value, unit):
    assert parsing.read(f"{value!r} {unit}", unit) == value


@given(st.integers(1, 10**9), st.sampled_from([("kB", 1000), ("KiB", 1024), ("MB", 10**6)]))
def test_sizes_become_packets_exactly(count, named):
    name, size = named
    assert parsing.read(f"{count} {name}", "packet", packet_size=float(size)) == count


# -- Parameters by path: read, set, traced by JAX, refused
NET = loads(BASE)


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


def numbers(net):
    """All numbers of a network by path."""
    found = {}
    for path in paths(net):
        with suppress(ScenarioError):
            found[path] = number_at(net, path)
    return found


STRUCTURAL = ("flows.mod.reverse_delay", "flows.mod.n", "flows.tcp.n", "flows.tcp.sender.tick")
"""Numbers that change the structure, are part of it, or stand for several."""


@pytest.mark.parametrize(
    ("path", "value", "number", "unit"),
    [
        ("links.near.queue.w_q", 1e-4, 1e-4, "1"),
        ("links.near.capacity", "20 Mbit/s", 2500.0, "packet/s"),
        ("links.near.cross", "4 Mbit/s", 500.0, "packet/s"),
        ("links.near.voice.calls", 100, 100.0, "1"),
        ("links.near.voice.codec", "32 kbit/s", 32e3, "bit/s"),
        ("links.far.buffer", 100, 100.0, "packet"),
        ("links.far.voice.arrivals", 3, 3.0, "1/s"),
        ("links.far.voice.holding", "2 min", 120.0, "s"),
        ("flows.mod.access_delay", "1 ms", 0.001, "s"),
        ("flows.mod.reverse_delay", "1 ms", 0.001, "s"),
        ("flows.mod.n", [1, 2], 3.0, "1"),
        ("flows.mod.window.persistence", 1, 1.0, "1"),
        ("flows.mod.window.min_rto", "1 s", 1.0, "s"),
        ("flows.tcp.n", 40, 40.0, "1"),
        ("flows.tcp.rtt.max", "200 ms", 0.2, "s"),
        ("flows.tcp.window.max_window", 30, 30.0, "packet"),
        ("flows.tcp.sender.tick", 0.1, 0.1, None),
        ("flows.tcp.initial.window", 3, 3.0, "packet"),
        ("flows.tcp.traffic.file", "5 kB", 5.0, "packet"),
    ],
)
def test_what_is_set_is_what_stands_there(path, value, number, unit):
    net = replace(RICH, {path: value})
    assert number_at(net, path) == number
    assert numbers(net) == numbers(RICH) | {path: number}
    info = info_at(RICH, path)
    assert (info and info.unit) == unit
    if path in STRUCTURAL:
        return
    assert value_at(RICH, path, value) == number
    assert jax.tree.structure(net) == jax.tree.structure(RICH)
    traced = jax.jit(lambda x: replace(RICH, {path: x}))(number)
    for a, b in zip(jax.tree.leaves(net), jax.tree.leaves(traced), strict=True):
        assert np.array_equal(a, b)


def test_choices_and_laws_can_be_set():
    net = replace(NET, {"model.rates": "mgt", "links.near.queue.spreading": "wait"})
    assert net.rates == "mgt" and net.links[0].queue.spreading.name == "wait"
    net = replace(NET, {"links.near.queue": {"law": "threshold", "at": 30}})
    assert net.links[0].queue.name == "threshold" and net.links[0].queue.at == 30.0
    net = replace(NET, {"flows.tcp.window.c1": 0.1, "flows.tcp.window.law": "ecn_mod"})
    assert net.flows[1].window.c1 == 0.1 and net.flows[1].reaction.name == "per_mark"
    net = replace(NET, {"flows.mod.window.reaction": "once_per_rtt"})
    assert net.flows[0].reaction.growth == "all"


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


@pytest.mark.parametrize("key", ["capacity", "delay", "packet_size"])
def test_traced_numbers_of_a_transmitter_go_to_both_its_queues(key):
    net, path = load("prague2024/dualpi2"), f"links.classic.{key}"
    value = 0.9 * number_at(net, path)
    traced = jax.jit(lambda x: replace(net, {path: x}))(value)
    expected = replace(net, {path: value})
    for one, other in zip(traced.links, expected.links, strict=True):
        assert float(getattr(one, key)) == getattr(other, key) == pytest.approx(value)


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


def test_text_stands_for_quantities_in_python_as_in_a_file():
    """A link, a group, a range and a run made from text are those made from numbers."""
    link = fluidcc.Link(RED(), capacity="12 Mbit/s", delay="5 ms", buffer="90 kB",
                   packet_size="1500 B")  # fmt: skip
    assert (link.capacity, link.delay, link.buffer) == (1000.0, 0.005, 60.0)
    flows = fluidcc.Flows(Reno(), n=10, rtt=["80 ms", "0.1 s"])
    assert flows.rtt.tolist() == [0.08, 0.1]
    net = fluidcc.load("hollot2001/slow")
    texts = fluidcc.sweep(net, {"link.delay": ["10 ms", "20 ms"]}, fluidcc.equilibrium)
    assert texts.axes["link.delay"] == (0.01, 0.02)
    runs = [
        fluidcc.simulate_packets(net, until=u, warmup=w) for u, w in ((3, 0.5), ("3 s", "500 ms"))
    ]
    assert runs[0].runs == runs[1].runs and runs[1].warmup == 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda net: fluidcc.simulate(net, until="5"), "until: .* got '5'; did you mean '5 s'"),
        (
            lambda net: fluidcc.simulate_packets(net, until="5 s", warmup="1 B"),
            "warmup: .* got '1 B'",
        ),
        (lambda net: fluidcc.compare(net, until="soon"), "until: expected a number in s"),
        (
            lambda net: fluidcc.simulate_trains(net, until=5, step="x"),
            "step: expected a number in s",
        ),
        (lambda net: fluidcc.Link(RED(), capacity="5 ms"), "link.capacity: .* got '5 ms'"),
        (lambda net: fluidcc.Flows(Reno(), n=1, rtt=1, access_capacity="10 Mbit/s"), "bits need"),
        (lambda net: RED(min_th="5 packet"), "red.min_th: expected a number, got '5 packet'"),
    ],
)
def test_text_that_is_no_such_quantity_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(fluidcc.load("hollot2001/slow"))
