"""Every kind of fault is told with file, key, what was expected, what was got, nearest name."""

import pytest
from scenario_cases import REMOVED, spoiled

from fluidcc.errors import ScenarioError
from fluidcc.laws.registry import LAWS
from fluidcc.scenario import load, loads
from fluidcc.scenario.build import build
from fluidcc.scenario.laws import PLANNED, PLANNED_KEYS

# key of the fault, what its line must say, and the changes that cause it
CASES = [
    ("titel", "one of title", {"titel": "x"}),
    ("title", "text, got 3", {"title": 3}),
    ("model", "a table, got 3", {"model": 3}),
    ("model.rates", "got \"akc\"; did you mean 'ack'?", {"model__rates": "akc"}),
    ("model.rate", "did you mean 'rates'?", {"model__rate": "ack"}),
    ("links", "at least one table [links.NAME], got nothing", {"links": REMOVED}),
    ("flows", "at least one table [flows.NAME], got none", {"flows": {}}),
    ("links", "letters, digits, _ and -", {"links__a b": {"capacity": 1, "queue": {"law": "droptail"}}}),
    ("links.near", "a table, got 3", {"links__near": 3}),
    ("links.near.capacity", "the link rate [packet/s], got nothing", {"links__near__capacity": REMOVED}),
    ("links.near.capacity", "got \"10 Mbits/s\"; did you mean 'Mbit/s'?", {"links__near__capacity": "10 Mbits/s"}),
    ("links.near.capacity", "a value in (0, inf) packet/s, got -5", {"links__near__capacity": -5}),
    ("links.near.capcity", "did you mean 'capacity'?", {"links__near__capcity": 5}),
    ("links.near.packet_size", 'such as "1000 B", got "1 s"', {"links__near__packet_size": "1 s"}),
    ("links.near.delay", "a value in [0, inf) s, got \"-1 ms\"", {"links__near__delay": "-1 ms"}),
    ("links.near.buffer", "got \"9 kBit\"; did you mean 'kbit'?", {"links__near__buffer": "9 kBit"}),
    ("links.near.queue", "a table such as", {"links__near__queue": "red"}),
    ("links.near.queue", "a table such as", {"links__near__queue": REMOVED}),
    ("links.near.queue.law", "got nothing", {"links__near__queue__law": REMOVED}),
    ("links.near.queue.law", "did you mean 'red'?", {"links__near__queue__law": "rde"}),
    ("links.near.queue.pmax", "did you mean 'p_max'?", {"links__near__queue__pmax": 0.1}),
    ("links.near.queue.p_max", "a value in (0, 1], got 1.5", {"links__near__queue__p_max": 1.5}),
    ("links.near.queue.gentle", "true or false, got 1", {"links__near__queue__gentle": 1}),
    ("links.near.queue.spreading", "did you mean 'wait'?", {"links__near__queue__spreading": "wai"}),
    ("links.near.queue", "min_th < max_th, got 80.0 and 60.0 packets", {"links__near__queue__min_th": 80}),
    ("links.near.initial.queue", "a value in [0, inf) packet", {"links__near__initial": {"queue": -1}}),
    ("links.near.initial.avrage", "did you mean 'average'?", {"links__near__initial": {"avrage": 1}}),
    ("flows.tcp.n", "the number of flows, got nothing", {"flows__tcp__n": REMOVED}),
    ("flows.tcp.rtt", "the propagation delay, both ways [s], got nothing", {"flows__tcp__rtt": REMOVED}),
    ("flows.tcp.n", "a whole number from 2 to 10000", {"flows__tcp__n": 1}),
    ("flows.tcp.n", "a whole number from 2 to 10000", {"flows__tcp__n": [2, 3]}),
    ("flows.tcp.n", "a number, got a table", {"flows__tcp__n": {}, "flows__tcp__rtt": 0.1}),
    ("flows.tcp.n", "a number, as rtt is, got [1]", {"flows__tcp__n": [1], "flows__tcp__rtt": 0.1}),
    ("flows.tcp.rtt.max", "a round trip [s], got nothing", {"flows__tcp__rtt": {"min": 0.1}}),
    ("flows.tcp.rtt", "min < max, got 0.2 and 0.1 s", {"flows__tcp__rtt": {"min": 0.2, "max": 0.1}}),
    ("flows.mod.rtt[1]", "a number in s", {"flows__mod__rtt": [0.1, "x"]}),
    ("flows.mod.n", "a list of 3, as rtt is", {"flows__mod__rtt": [0.1, 0.2, 0.3]}),
    ("flows.mod.n", "at least one number, got an empty list", {"flows__mod__n": []}),
    ("flows.mod.route", "a list of links out of near, far, got nothing", {"flows__mod__route": REMOVED}),
    ("flows.mod.route", "a list of names", {"flows__mod__route": "near"}),
    ("flows.mod.route[0]", "did you mean 'near'?", {"flows__mod__route": ["naer"]}),
    ("flows.mod.route", "each link once", {"flows__mod__route": ["near", "near"]}),
    ("flows.mod.window", "a table such as", {"flows__mod__window": REMOVED}),
    ("flows.mod.window.law", "did you mean 'ecn_mod'?", {"flows__mod__window__law": "ecn-mod"}),
    ("flows.mod.window.c1", "a value in (0, inf) packet, got 0", {"flows__mod__window__c1": 0}),
    ("flows.mod.window.reaction", "did you mean 'per_mark'?", {"flows__mod__window__reaction": "per_marks"}),
    ("flows.mod.window.growth", 'one of "clean", "all"', {"flows__mod__window__growth": "none"}),
    ("flows.mod.marking", "did you mean 'equal_window'?", {"flows__mod__marking": "equal_windows"}),
    ("flows.mod.feedback", "did you mean 'mark_tail'?", {"flows__mod__feedback": "marktail"}),
    ("flows.mod.access_delay", "a number in s", {"flows__mod__access_delay": "2 kB"}),
    ("flows.mod.acess_delay", "did you mean 'access_delay'?", {"flows__mod__acess_delay": 0.1}),
    ("flows.mod.access_capacity", "a value in (0, inf]", {"flows__mod__access_capacity": 0}),
    ("flows.mod.start", "a value in [0, inf) s", {"flows__mod__start": "-1 s"}),
    ("flows.mod.start.uniform", "two times", {"flows__mod__start": {"uniform": [1]}}),
    ("flows.mod.start.uniform", "first <= last", {"flows__mod__start": {"uniform": [2, 1]}}),
    ("flows.mod.initial.window", "a value in (0, inf) packet", {"flows__mod__initial": {"window": 0}}),
    ("flows.mod.sender.min_rtt", "did you mean 'min_rto'?", {"flows__mod__sender": {"min_rtt": 1}}),
    ("flows.mod.sender.tick", "a number in s", {"flows__mod__sender": {"tick": "x"}}),
    ("flows.mod.sender.dup_acks", "a whole number", {"flows__mod__sender": {"dup_acks": 2.5}}),
    ("flows.mod.sender.syn", "true or false", {"flows__mod__sender": {"syn": "no"}}),
    # what must fit together
    ("flows.mod.rtt", "more than the way there, 0.017 s", {"flows__mod__rtt": [0.017, 0.1]}),
    ("links.near.delay", "a delay above 0 s, as far follows", {"links__near__delay": 0}),
    ("flows.mod.window.growth", '"all", as backward marks no acknowledgement', {"flows__mod__feedback": "backward"}),
    ("flows.mod.window", "alpha < beta, got 1.0 and 1.0", {"flows__mod__window": {"law": "polynomial", "alpha": 1}}),
]  # fmt: skip


@pytest.mark.parametrize(("key", "says", "changes"), CASES)
def test_a_fault_names_file_key_expected_and_got(key, says, changes):
    with pytest.raises(ScenarioError) as error:
        build(spoiled(**changes), "study.toml")
    lines = [str(f) for f in error.value.faults]
    assert [line for line in lines if line.startswith(f"study.toml: {key}: ") and says in line]
    assert len(lines) == 1, lines


def test_equal_window_needs_a_polynomial_law():
    from fluidcc.laws.law import AbstractWindowLaw

    class Other(AbstractWindowLaw):
        name = "other"
        source = "misra2003"
        reaction = "per_mark"
        recovery = "newreno"

        def on_ack(self, s, ack):
            return ack.count * 1.0

        def on_mark(self, s, ack):
            return -s / 2

    laws = {**LAWS, "window": {**LAWS["window"], "other": Other}}
    raw = spoiled(flows__mod__window={"law": "other"})
    with pytest.raises(ScenarioError, match="as equal_window needs a polynomial window law"):
        build(raw, "study.toml", laws)
    raw["flows"]["mod"]["marking"] = "plain"
    assert build(raw, "study.toml", laws).flows[0].window.name == "other"


@pytest.mark.parametrize("kind", ["window", "queue"])
def test_laws_and_keys_of_later_versions_are_told_apart_from_mistakes(kind):
    table = {"window": "flows__mod__window", "queue": "links__near__queue"}[kind]
    for law in PLANNED[kind]:
        with pytest.raises(ScenarioError, match="not available yet"):
            build(spoiled(**{f"{table}__law": law}), "study.toml")
    for key in PLANNED_KEYS[kind]:
        with pytest.raises(ScenarioError, match="not available yet") as error:
            build(spoiled(**{f"{table}__{key}": 1}), "study.toml")
        assert len(error.value.faults) == 1


def test_all_faults_come_at_once():
    changes = {k: v for _, _, case in CASES[:1] + CASES[9:12] for k, v in case.items()}
    changes |= {"flows__tcp__n": REMOVED, "flows__mod__window__law": "x", "model__rates": 3}
    with pytest.raises(ScenarioError) as error:
        build(spoiled(**changes), "study.toml")
    keys = [f.key for f in error.value.faults]
    assert keys == [
        "titel", "model.rates", "links.near.capacity", "flows.mod.window.law", "flows.tcp.n",
    ]  # fmt: skip
    assert str(error.value).splitlines() == [str(f) for f in error.value.faults]


def test_text_that_is_no_toml_is_told_with_its_line():
    with pytest.raises(ScenarioError, match=r"bad\.toml: line 2, column \d+: expected TOML"):
        loads("title = 'x'\nn = = 3", where="bad.toml")


def test_unknown_scenarios_are_told_with_the_nearest(tmp_path):
    with pytest.raises(ScenarioError, match="did you mean 'misra2003/mixed'"):
        load("misra2003/mixd")
    with pytest.raises(ScenarioError, match="did you mean 'hollot2001/slow'"):
        load("slow")
    with pytest.raises(ScenarioError, match="readable text file"):
        load(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"title = '\xe9'")
    with pytest.raises(ScenarioError, match=r"no UTF-8 text"):
        load(tmp_path / "latin.toml")
