"""The list of keys is what is read, and a concept spelt elsewhere is answered with its spelling."""

import json
import re
from pathlib import Path

import pytest
from scenario_cases import spoiled

from fluidcc import ScenarioError, load, replace
from fluidcc.laws.parameters import ENGINES
from fluidcc.laws.registry import LAWS
from fluidcc.scenario.build import build
from fluidcc.scenario.keys import ELSEWHERE, RUN, keys, spelling_of

PATHS = {key.path for key in keys()}
TABLES = {
    "title": "", "model.closure": "model", "links.X.capacity": "links.near",
    "links.X.initial.queue": "links.near.initial", "links.X.voice.codec": "links.near.voice",
    "flows.X.n": "flows.tcp", "flows.X.initial.window": "flows.tcp.initial",
    "flows.X.sender.tick": "flows.tcp.sender",
}  # fmt: skip
"""A key of each table, and the table in the scenario of tests."""


def fault_of(path):
    """The only fault of a scenario with one more key, or the first one at it."""
    with pytest.raises(ScenarioError) as error:
        build(spoiled({path: 1}), "")
    return next(fault for fault in error.value.faults if fault.key == path)


@pytest.mark.parametrize(("key", "table"), TABLES.items())
def test_the_list_of_keys_has_those_that_are_read(key, table):
    place = key.rpartition(".")[0]
    own = {path.rpartition(".")[2] for path in PATHS if path.rpartition(".")[0] == place}
    fault = fault_of(f"{table}.qqq".lstrip("."))
    read = fault.expected.removeprefix("one of ").split(", ")
    assert own | ({"model", "links", "flows"} if not place else set()) == set(read)


def test_every_key_has_a_meaning_and_known_engines():
    for key in keys():
        assert key.meaning and key.within and set(key.engines) <= set(ENGINES), key
        assert list(key.engines) == [engine for engine in ENGINES if engine in key.engines]


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("flow.feedback", "ecn", 'feedback = "mark_tail" for ECN'),
        ("flow.window.law", "tcp", 'window = { law = "newreno" }'),
        ("flow.window.law", "hstcp", 'window = { law = "highspeed" }'),
        ("flow.window.law", "veno", "`fluidcc new-law window FILE`"),
        ("flow.window.law", "bbr2", "down_gain = 0.75"),
        ("link.queue.law", "fq_codel", "fair = true"),
        ("link.queue.law", "tail_drop", 'law = "droptail"'),
        ("flow.delay", "5 ms", 'rtt = "80 ms" of flows'),
        ("flow.cca", "reno", 'window = { law = "newreno" }'),
        ("flow.pacing", True, "windows are sent as acknowledgements return"),
        ("link.ber", 1e-6, 'random_loss = "1 %"'),
        ("flow.start", "random", '{ uniform = ["0 s", "5 s"] }'),
        ("link.buffer", "infinite", "buffer = inf"),
        ("flow.traffic", "ftp", 'traffic = "bulk"'),
        ("flow.tcp_congestion_control", "reno", 'window = { law = "newreno" }'),
        ("flow.SndBufSize", 64, "max_window = 64"),
        ("flow.window.law", "ns3::TcpNewReno", '"newreno"'),
        ("link.queue.law", "FqCoDelQueueDisc", "fair = true"),
        ("link.queue.min", 5, "min_th = 25"),
        ("link.queue.LInterm", 50, "p_max = 0.1"),
        ("link.capacity", [1, 2], 'schedule = [{ at = "20 s", capacity = ... }] of links'),
    ],
)
def test_laws_and_keys_by_the_names_of_others_are_answered(path, value, says):
    with pytest.raises(ScenarioError) as caught:
        replace(load("hollot2001/slow"), {path: value})
    (fault,) = caught.value.faults
    assert says in fault.expected and not fault.nearest


@pytest.mark.parametrize(
    ("path", "value", "close"),
    [
        ("link.capacity", "10 Mb/s", "Mbit/s"),
        ("link.capacity", "10M", "Mbit/s"),
        ("link.delay", "5 milliseconds", "ms"),
        ("flow.n", "10", "10"),
        ("flow.route", "bottleneck", '["bottleneck"]'),
        ("link.queue", {"type": "red"}, 'law = "red"'),
    ],
)
def test_values_that_are_spelt_otherwise_have_the_nearest_valid_one(path, value, close):
    with pytest.raises(ScenarioError) as caught:
        replace(load("hollot2001/slow"), {path: value})
    assert caught.value.faults[0].nearest == (close,)


def test_the_name_of_a_law_stands_for_the_law_with_its_defaults():
    net = replace(load("hollot2001/slow"), {"link.queue": "droptail", "flow.window": "sack"})
    assert (net.links[0].queue.name, net.flows["tcp"].window.name) == ("droptail", "sack")


def test_laws_that_are_recommended_exist():
    given = re.findall(r'([a-z]+)=\S* .*?law = "([a-z_]+)"', "\n".join(
        f"{name} {spelling}" for name, (_, spelling) in ELSEWHERE.items() if "=" in name
    ))  # fmt: skip
    files = {file.stem for file in (Path(__file__).parents[2] / "docs/own_laws").glob("*.py")}
    assert given and all(law in LAWS[kind] or law in files for kind, law in given)


@pytest.mark.parametrize("concept", ELSEWHERE)
def test_a_concept_spelt_elsewhere_is_answered_with_its_spelling(concept):
    target, spelling = ELSEWHERE[concept]
    assert target in PATHS and target.split(".")[2] in spelling
    assert concept not in RUN
    assert not any(path.endswith(f".{concept}") for path in PATHS if path.count(".") == 2)


def test_the_answer_stands_in_the_message():
    assert str(fault_of("flows.tcp.ecn")).startswith(
        'flows.tcp.ecn: expected feedback = "mark_tail" of flows for ECN'
    )
    assert "random_loss = " in fault_of("links.near.loss").expected
    assert 'law = "sack"' in fault_of("flows.tcp.sack").expected
    assert fault_of("links.near.queue_disc").nearest == ()  # but its spelling
    assert "capacity = " in fault_of("links.near.bandwidth").expected
    assert "[links.X.queue]" in fault_of("links.near.min_th").expected  # one level too high
    assert "--until 60" in spelling_of("duration")
    with pytest.raises(ScenarioError, match="red"):
        replace(load("hollot2001/slow"), {"link.aqm": "red"})
    assert fault_of("model.rate").nearest == ("rates",)
    assert fault_of("flows.tcp.sender.min_rtt").nearest == ("min_rto",)


def test_the_command_lists_them(run):
    code, out, _ = run("list", "keys", "--json", heavy=False)
    listed = json.loads(out)["keys"]
    assert code == 0 and {key["path"] for key in listed} == PATHS
    code, out, _ = run("list", "keys", heavy=False)
    assert code == 0 and "initial_ssthresh" in out and "population, trains, packets" in out
