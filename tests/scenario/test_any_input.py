"""Whatever a scenario holds, it is a network or a list of faults."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenario_cases import spoiled

from fluidcc.errors import ScenarioError
from fluidcc.laws.registry import LAWS
from fluidcc.scenario.build import build
from fluidcc.scenario.files import dumps, loads


def _paths(table, prefix=""):
    for key, value in table.items():
        yield f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _paths(value, f"{prefix}{key}.")


LEAVES = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.booleans(),
    st.text(max_size=8),
    st.sampled_from(["5 ms", "10 Mbit/s", "1e400 s", "inf", "-inf", "nan", "0 B", "1/0 s"]),
    st.dates(),
)
NAMES = st.sampled_from([name for laws in LAWS.values() for name in laws])
VALUE = st.one_of(
    LEAVES,
    NAMES,
    st.lists(LEAVES, max_size=3),
    st.dictionaries(st.sampled_from(["law", "min", "max", "uniform", "x"]), LEAVES, max_size=3),
    st.dictionaries(st.just("law"), NAMES, min_size=1),
)
EVERY_KIND = {
    "links.near.cross": 100,
    "links.near.voice": {"calls": 20, "share": 0.5, "seed": 2},
    "links.far.voice": {"arrivals": 1, "most": 500, "codec": "64 kbit/s", "process": "modulated"},
    "flows.tcp.feedback": {"law": "receiver_window", "persistence": 1},
    "flows.tcp.traffic": {"law": "web", "file": "12 kB", "idle": "3 s"},
    "flows.tcp.estimator": "exact",
    "flows.tcp.initial": {"window": 2, "slow_start": True},
    "flows.tcp.window": {"law": "sack", "loss": "pftk", "min_rto": "1 s", "block": "poisson"},
}


@settings(max_examples=300)
@given(path=st.sampled_from(sorted(_paths(spoiled(EVERY_KIND)))), value=VALUE)
def test_whatever_a_file_holds_is_a_network_or_a_list_of_faults(path, value):
    raw = spoiled(EVERY_KIND)
    *inner, last = path.split(".")
    here = raw
    for part in inner:
        here = here[part]
    here[last] = value
    try:
        net = build(raw, "study.toml")
    except ScenarioError as error:
        assert all(fault.where == "study.toml" for fault in error.faults)
        assert "\n" not in str(error.faults[0])
    else:
        assert loads(dumps(net)) is not None


@settings(max_examples=100)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
def test_whatever_text_there_is_gives_faults_only(text):
    with pytest.raises(ScenarioError):
        loads(text)
