"""Every kind of fault is told with file, key, what was expected, what was got, nearest name."""

import datetime

import pytest
from scenario_cases import REMOVED, spoiled

from fluidcc import ScenarioError, advice, dumps, loads
from fluidcc.scenario.build import build

# changes of the scenario, the key that is at fault if it is another, and what the fault must say
CASES = [
    ({"titel": "x"}, "", "one of title"),
    ({"title": 3}, "", "text, got 3"),
    ({"model": 3}, "", "a table, got 3"),
    ({"model.rates": "akc"}, "", "got \"akc\"; did you mean 'ack'?"),
    ({"links": REMOVED}, "", "at least one table [links.NAME], got nothing"),
    ({"flows": {}}, "", "at least one table [flows.NAME], got none"),
    ({"links.near.capacity": REMOVED}, "", "the link rate [packet/s], got nothing"),
    ({"links.near.capacity": "10 Mbits/s"}, "", "got \"10 Mbits/s\"; did you mean 'Mbit/s'?"),
    ({"links.near.capacity": -5}, "", "a value in (0, inf) packet/s, got -5"),
    ({"links.near.queue": REMOVED}, "", "a table such as"),
    ({"links.near.queue.law": "bleu"}, "", "did you mean 'blue'?"),
    ({"links.near.queue.pmax": 0.1}, "", "did you mean 'p_max'?"),
    ({"links.near.queue.gentle": 1}, "", "true or false, got 1"),
    ({"flows.tcp.n": 1}, "", "a whole number from 2 to 10000"),
    ({"flows.tcp.rtt": {"min": 0.2, "max": 0.1}}, "", "min < max, got 0.2 and 0.1 s"),
    ({"flows.mod.n": []}, "", "at least one number, got an empty list"),
    ({"flows.mod.route": REMOVED}, "", "a list of links out of near, far, got nothing"),
    ({"flows.mod.route": "near"}, "", "a list of names"),
    ({"flows.mod.route": ["near", "near"]}, "", "each link once"),
    ({"flows.mod.window.growth": "none"}, "", 'one of "clean", "all"'),
    ({"flows.mod.rtt": [0.017, 0.1]}, "", "more than the way there, 0.017 s"),
    ({"links.near.delay": 0}, "", "a delay above 0 s, as far follows"),
    ({"flows.mod.window": {"law": "polynomial", "alpha": 1}}, "", "alpha < beta, got 1.0 and 1.0"),
    ({"links.a b": {"capacity": 1, "queue": {"law": "droptail"}}},
     "links", "letters, digits, _ and -"),
    ({"links.near.queue.min_th": 80}, "links.near.queue", "min_th < max_th, got 80.0 and 60.0"),
    ({"flows.tcp.n": {}, "flows.tcp.rtt": 0.1}, "flows.tcp.n", "a number, got a table"),
    ({"flows.tcp.n": [1], "flows.tcp.rtt": 0.1}, "flows.tcp.n", "a number, as rtt is, got [1]"),
    ({"flows.tcp.rtt": {"min": 0.1}}, "flows.tcp.rtt.max", "a round trip [s], got nothing"),
    ({"flows.mod.rtt": [0.1, 0.2, 0.3]}, "flows.mod.n", "a list of 3, as rtt is"),
    ({"flows.mod.route": ["naer"]}, "flows.mod.route[0]", "did you mean 'near'?"),
    ({"flows.mod.start": {"uniform": [1]}}, "flows.mod.start.uniform", "two times"),
    ({"flows.mod.start": {"uniform": [2, 1]}}, "flows.mod.start.uniform", "first <= last"),
    ({"flows.mod.sender": {"min_rtt": 1}}, "flows.mod.sender.min_rtt", "did you mean 'min_rto'?"),
    ({"flows.mod.sender": {"dup_acks": 2.5}}, "flows.mod.sender.dup_acks", "a whole number"),
    ({"flows.mod.feedback": "backward", "flows.mod.window.growth": "clean"},
     "flows.mod.window.growth", '"all", as backward marks no acknowledgement'),
    ({"links.near.initial": {"queue": 91}},
     "links.near.initial.queue", "at most links.near.buffer, 90.0 packet, got 91.0 packet"),
    ({"flows.tcp.initial": {"window": "65 kB"}},
     "flows.tcp.initial.window", "at most flows.tcp.window.max_window, 64.0 packet, got 65.0"),
    ({"links.near.delay": datetime.date(1979, 5, 27)}, "", "got 1979-05-27"),
    ({"flows.mod.start": {}}, "flows.mod.start.uniform", "two times, [first, last], got nothing"),
    ({"flows.mod.route": [["near"]]}, "flows.mod.route[0]", 'got ["near"]'),
    ({"flows.mod.sender": {"min_rto": "61 s"}}, "flows.mod.sender.min_rto", "in [0, 60] s"),
    ({"flows.mod.reverse_delay": [0.01]},
     "", "a number, or a list of 2, one for each link of the route, got [0.01]"),
    ({"flows.mod.reverse_delay": [0.01, "1 m"]},
     "flows.mod.reverse_delay[1]", 'a number in s, or text such as "88 ms", got "1 m"'),
    ({"flows.mod.reverse_delay": 0.07},
     "", "the round trip less the way there, got 0.075 s for far"),
    ({"flows.mod.feedback": "receiver_window", "flows.mod.marking": "plain",
      "flows.mod.reverse_delay": [0.01, 0.064]},
     "flows.mod.reverse_delay[1]", "at most 0.063 s, the round trip less the way"),
    ({"flows.mod.feedback": "receiver_window", "flows.mod.marking": "plain",
      "flows.mod.reverse_delay": [0.02, 0.01]},
     "flows.mod.reverse_delay[1]", "at least 0.02 s, as ACKs pass far first, got"),
    ({"flows.tcp.window.persistence": 0.5},
     "", "a feedback law that has it (receiver_window), not mark_front, got 0.5"),
    ({"flows.mod.window.block": "exact"},
     "", "a reaction that has it (once_per_rtt), not per_mark"),
    ({"flows.tcp.window.loss": "halve_only", "flows.tcp.window.min_rto": 1},
     "flows.tcp.window.min_rto", "a loss closure that has it (recovery, pftk), not halve_only"),
    ({"flows.tcp.feedback": {"law": "receiver_window", "persistence": 1},
      "flows.tcp.window.persistence": 1},
     "flows.tcp.window.persistence", "it once, as flows.tcp.feedback has it too"),
    ({"flows.tcp.feedback": {}}, "flows.tcp.feedback.law", "got nothing"),
    ({"flows.tcp.feedback": "load_factor"}, "", "as newreno knows no load"),
    ({"flows.mod.window": {"law": "bmcc"},
      "flows.mod.marking": "plain",
      "flows.mod.feedback": "mark_tail"},
     "flows.mod.feedback", '"load_factor", as bmcc acts on the load factor, got "mark_tail"'),
    ({"flows.tcp.window": {"law": "becn", "reaction": "refractory"}},
     "flows.tcp.window.reaction", '"pause", or flows.tcp.window.pause = false, got "refractory"'),
    ({"flows.tcp.window": {"law": "becn", "pause": False, "reaction": "pause"}},
     "flows.tcp.window.reaction", 'another than pause, got "pause"'),
    ({"flows.tcp.feedback": "receiver_window", "model.rates": "self_clocked"},
     "model.rates", "as receiver_window of flows.tcp"),
    ({"flows.tcp.traffic": "web", "model.rates": "self_clocked"},
     "model.rates", '"ack" or "mgt", as web of flows.tcp changes the flight, got "self_clocked"'),
    ({"flows.tcp.traffic": {"law": "web", "idle": 0}}, "flows.tcp.traffic.idle", "in (0, inf) s"),
    ({"flows.tcp.traffic": {"law": "bulk", "idle": 1}},
     "flows.tcp.traffic.idle", "a kind of traffic that has it (web), not bulk, got 1"),
    ({"flows.tcp.window.min_window": 70},
     "", "at most flows.tcp.window.max_window, 64.0 packet, got 70.0 packet"),
    ({"links.near.queue": {"law": "threshold", "at": 90}},
     "links.near.queue.at", "less than links.near.buffer, 90.0 packet, got 90.0 packet"),
    ({"links.near.queue": {"law": "blue", "trigger": "loss"}},
     "links.near.queue.threshold", "links.near.buffer, 90.0 packet, as losses trigger, got"),
    ({"links.near.voice": {}}, "", "either calls or arrivals, got neither"),
    ({"links.near.voice": {"calls": 3, "most": 5}}, "", "arrivals, not calls, with most, got 5"),
    ({"links.near.random_loss": "100 %"}, "", 'a value in [0, 1), got "100 %"'),
    ({"links.near.schedule": {"20 s": "5 Mbit/s"}},
     "", 'a list of tables such as { at = "20 s", capacity = "5 Mbit/s" }, got a table'),
    ({"links.near.schedule": [{"capacity": 5}]},
     "links.near.schedule[0].at", "the time of the change [s], got nothing"),
    ({"links.near.schedule": [{"at": "20 s"}]},
     "links.near.schedule[0]", "another capacity or delay, or both, got neither"),
    ({"links.near.schedule": [{"at": 20, "delay": 0}, {"at": "9 s", "delay": 1}]},
     "links.near.schedule[1].at", 'a time after the one before, 20 s, got "9 s"'),
    ({"links.near.schedule": [{"at": 20, "rate": 5}]},
     "links.near.schedule[0].rate", "capacity = \"10 Mbit/s\" of links, got the key 'rate'"),
    ({"flows.tcp.start": [0, 1]},
     "", "one time, or a list of 5, one for each flow, got [0, 1]"),
    ({"flows.tcp.stop": "5 s"}, "", "a time after the start, 5 s, got 5 s"),
    ({"flows.tcp.start": [0, 1, 2, 3, 4], "flows.tcp.stop": [9, 9, 9, 9, 4]},
     "flows.tcp.stop[4]", "a time after the start, 4 s, got 4 s"),
    ({"flows.tcp.stop": 9, "flows.tcp.traffic": "web"},
     "flows.tcp.stop", "none, as files of web end by themselves, got 9"),
    ({"flows.tcp.sender": {"ack_delay": "1 s"}},
     "flows.tcp.sender.ack_delay", 'a value in (0, 0.5] s, got "1 s"'),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "key", "says"), CASES)
def test_a_fault_names_file_key_expected_and_got(changes, key, says):
    with pytest.raises(ScenarioError) as error:
        build(spoiled(changes), "study.toml")
    (line,) = map(str, error.value.faults)
    key = key or next(iter(changes))
    assert line.startswith(f"study.toml: {key}: expected ") and says in line


def test_values_that_do_not_fit_together_are_told_beside_values_out_of_range():
    changes = {
        "links.near.queue.p_max": 2, "links.near.queue.min_th": 75, "links.near.queue.max_th": 25,
        "links.near.initial": {"queue": 91}, "links.far.capacity": 0, "flows.mod.n": 0,
        "flows.mod.feedback": "backward", "flows.mod.window.growth": "clean",
        "flows.tcp.rtt": {"min": 0.005, "max": 0.1},
    }  # fmt: skip
    with pytest.raises(ScenarioError) as error:
        build(spoiled(changes), "study.toml")
    assert [f.key for f in error.value.faults] == [
        "links.near.queue.p_max", "links.near.queue", "links.near.initial.queue",
        "links.far.capacity", "flows.mod.window.growth", "flows.mod.n", "flows.tcp.rtt",
    ]  # fmt: skip
    assert "min_th < max_th, got 75.0 and 25.0" in str(error.value)


def test_a_window_limited_below_the_default_of_the_first_one_is_no_fault():
    raw = spoiled({"flows.tcp.window.max_window": 1, "flows.tcp.initial": REMOVED})
    net = build(raw, "study.toml")
    assert loads(dumps(net)).flows[1].window.max_window == 1.0


def test_all_faults_come_at_once():
    changes = {"titel": "x", "model.rates": 3, "links.near.capacity": "fast"}
    changes |= {"flows.mod.window.law": "x", "flows.tcp.n": REMOVED}
    with pytest.raises(ScenarioError) as error:
        build(spoiled(changes), "study.toml")
    keys = [f.key for f in error.value.faults]
    assert keys == list(changes)
    assert str(error.value).splitlines() == [str(f) for f in error.value.faults]


# -- What is odd about a network without being wrong, one sentence each
BMCC = {
    "flows.mod.window": {"law": "bmcc"},
    "flows.mod.marking": "plain",
    "flows.mod.feedback": "load_factor",
}
ROUTER = BMCC | {"links.near.queue": {"law": "load_factor"}}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (BMCC, ["flows.mod: no link of its route sends a load factor, so bmcc takes the least "]),
        (ROUTER, []),
        (ROUTER | {"flows.mod.window": {"law": "bmcc", "t_p": 0.1}},
         ["flows.mod: t_p of bmcc is 0.1 s, that of load_factor of links.near is 0.2 s"]),
        (ROUTER | {"flows.mod.estimator": {"law": "adpm", "mild": 0.8, "highest": 1.3}},
         ["flows.mod: mild of bmcc is 0.75, that of adpm is 0.8",
          "flows.mod: highest of bmcc is 1.2, that of adpm is 1.3"]),
        ({"flows.tcp.window": {"law": "becn"}},
         ["flows.tcp: becn is made for source quenches, and mark_front has none"]),
        ({"links.near.cross": 1249.0}, []),
        ({"links.near.cross": 1250.0},
         ["links.near: traffic that no signal slows comes at 1250 packet/s and leaves nothing"]),
        ({"links.near.voice": {"calls": 322}}, []),  # 998.2 of 1000 packet/s
        ({"links.near.voice": {"calls": 323}, "links.near.cross": 250.0},
         ["is above their share", "comes at 250 packet/s and leaves nothing of 250 packet/s"]),
        ({"links.near.voice": {"calls": 404, "discipline": "fifo"}},
         ["links.near: traffic that no signal slows comes at 1252.4 packet/s"]),
    ],
)  # fmt: skip
def test_one_sentence_for_each_thing(changes, says):
    found = advice(build(spoiled(changes), "x"))
    assert len(found) == len(says)
    assert all(part in line for part, line in zip(says, found, strict=True))
