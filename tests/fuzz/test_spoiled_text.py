"""Spoiled scenarios and options are accepted or refused, in time: the first of many.

All are run by `uv run python tests/fuzz/fuzz.py`.
"""

import time

import fuzz
import pytest

from fluidcc import ScenarioError, dumps, load, loads

NET = """
[links.a]
capacity = 1000
queue = { law = "droptail" }
buffer = 100
[flows.b]
n = %s
rtt = %s
window = { law = "reno" }
"""
NINES = "9" * 5000
BOMBS = {
    "lists in lists": ("x = " + "[" * 100_000, "nested too deeply"),
    "tables in tables": ("x = " + "{ a = " * 100_000, "nested too deeply"),
    "dots": ("a." * 100_000 + "b = 1", "names with more than 30 dots"),
    "dots in quotes": ('"a b" . ' * 100_000 + "b = 1", "names with more than 30 dots"),
    "digits": (NET % (NINES, 0.1), "a number of thousands of digits"),
    "hexadecimal digits": (NET % ("0x" + "f" * 20_000, 0.1), "a whole number of 80000 bits"),
    "digits with a unit": (NET % (1, f'"{NINES} s"'), "(5004 characters)"),
    "powers": (NET % ('"9**9**9"', '"9**9**9 s"'), 'got "9**9**9 s"'),
    "exponent": (NET % (1, '"1e400 s"'), 'got "1e400 s"'),
    "long lists": (NET % (f"[{'1,' * 99_999}]", 0.1), "at most 10000 numbers"),
    "many tables": ("".join(f"[links.l{k}]\n" for k in range(30_000)), "at most 1000 tables"),
    "many keys": (
        NET % (1, 0.1) + "".join(f"k{k} = 1\n" for k in range(20_000)),
        "expected fewer than 200 faults, got more",
    ),
    "many round trips": (
        NET % (10_000, "{ min = 1, max = 2 }")
        + "".join(
            f'[flows.f{k}]\nn = 10000\nrtt = {{ min = 1, max = 2 }}\nwindow = {{ law = "reno" }}\n'
            for k in range(20)
        ),
        "at most 100000 round trips in all, got 210000",
    ),
    "long name": (NET % (1, 0.1) + "k" * 100_000 + " = 1", "(100008 characters)"),
    "long text": (f'title = "{"x" * 900_000}"', "text of at most 2000 characters"),
    "large": ("#" * 1_000_001, "at most 1000000 characters, got 1000001"),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_what_would_take_for_ever_is_refused_at_once(kind):
    text, says = BOMBS[kind]
    begun = time.process_time()
    with pytest.raises(ScenarioError) as found:
        loads(text)
    assert time.process_time() - begun < fuzz.LONGEST
    assert says in str(found.value)


def test_as_many_links_and_flows_as_there_may_be():
    links = (f'[links.l{k}]\ncapacity = 1\nqueue = {{ law = "pi" }}\n' for k in range(1000))
    group = '[flows.{}]\nn = 1\nrtt = 1\nroute = ["l7"]\nwindow = {{ law = "reno" }}\n'
    text = "".join([*links, *(group.format(k) for k in range(1000))])
    net = loads(text)
    assert dumps(loads(dumps(net))) == dumps(net)


def test_spoiled_scenarios():
    found = fuzz.scenarios(1500)
    assert found.wrong == [] and min(found.accepted, found.refused) > 100


def test_spoiled_options():
    found = fuzz.options(1000)
    assert found.wrong == [] and min(found.accepted, found.refused) > 100


@pytest.mark.parametrize(
    "text",
    [
        '"links.a.\\n" = 1',  # a key that is no line
        'title = "\\u007f"',  # text that TOML does not take back
        "[links.\"a\\n\"]\ncapacity = 1\nqueue = { law = 'droptail' }",  # a name with a line break
        "n = 1979-05-27T07:32:00Z",
        "title = [[[[1]]], 2]",
    ],
)
def test_finds_of_earlier_runs(text):
    with pytest.raises(ScenarioError) as found:
        loads(text)
    assert all(str(fault).isprintable() for fault in found.value.faults)


@pytest.mark.parametrize("text", ["flow.n=true:true:true", "flow.n=1\nx=2", f"flow.n={NINES}"])
@pytest.mark.parametrize("option", ["--set", "--over"])
def test_options_found_by_earlier_runs(option, text):
    with pytest.raises(ScenarioError):
        fuzz.option(load("hollot2001/slow"), option, text)
