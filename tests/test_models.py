"""The bundled scenarios and their cards: they load, belong together, and say what the laws say.

`python tests/test_models.py` rewrites the equations of the cards.
"""

import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.bundled import scenarios
from fluidcc.laws import Sessions
from fluidcc.model.fluid import as_fluid
from fluidcc.scenario.files import bibliography

MODELS = Path(__file__).parents[1] / "models"
KEYS = sorted(folder.name for folder in MODELS.iterdir() if folder.is_dir())
NAMES = sorted(scenarios())
EQUATIONS = re.compile(r"(<!-- equations of (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


@cache
def loaded(name: str) -> fc.Network:
    return fc.load(name)


def card(key: str) -> Path:
    return MODELS / key / f"{key}.md"


def with_equations(text: str) -> str:
    """A card with its equations made anew from the laws."""

    def block(found: re.Match[str]) -> str:
        return f"{found[1]}```math\n{fc.latex(loaded(found[2]))}\n```\n{found[3]}"

    return EQUATIONS.sub(block, text)


def body(name: str) -> list[str]:
    """A scenario as one line per value, without its title."""
    lines = fc.dumps(loaded(name)).splitlines()
    return [line for line in lines if not line.startswith(("title", "#"))]


def differing(one: str, other: str) -> set[str]:
    """Keys whose lines differ between two scenarios."""
    changed = set(body(one)) ^ set(body(other))
    return {line.split("=")[0].strip() for line in changed}


@pytest.mark.parametrize("key", KEYS)
def test_card_names_every_scenario_of_its_folder(key):
    text = card(key).read_text(encoding="utf-8")
    assert key in bibliography()
    assert text.startswith(f"# {key}: ")
    told = set(re.findall(r"`(?:[a-z]+\d+/)?(\w+)`", text))
    missing = [n for n in NAMES if n.startswith(f"{key}/") and n.split("/")[1] not in told]
    assert not missing


@pytest.mark.parametrize("key", KEYS)
def test_equations_of_a_card_are_those_of_the_laws(key):
    text = card(key).read_text(encoding="utf-8")
    assert with_equations(text) == text, "run python tests/test_models.py to write them anew"


@pytest.mark.parametrize("key", ["akujobi2002", "qazi2010", "govindaswamy2012", "durresi2001"])
def test_every_number_of_a_scenario_says_where_it_comes_from(key):
    value = re.compile(r'^(\w+)\s*= (?:"?-?\d|\[\d)')
    for file in sorted((MODELS / key).glob("*.toml")):
        lines = file.read_text(encoding="utf-8").splitlines()
        bare = [line for line in lines if value.match(line) and "#" not in line]
        assert not [line for line in bare if not line.startswith("n ")], file.name


@pytest.mark.parametrize(
    ("w_q", "stable"), [(0.0023, True), (0.0024, False), (0.082, False), (0.084, True)]
)
def test_aggressive_flows_are_unstable_between_two_filters(w_q, stable):
    net = fc.replace(loaded("misra2003/aggressive"), {"link.queue.w_q": w_q})
    found = fc.stability(net)
    assert found.certified and found.stable == stable


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("durresi2001/") and "tail" in n])
def test_tail_and_front_differ_in_the_feedback_alone(name):
    front = name.replace("tail", "front")
    assert differing(name, front) == {"feedback", "window"}  # which has the feedback's `when`
    pairs = zip(loaded(name).flows, loaded(front).flows, strict=True)
    assert all(tail.window == other.window for tail, other in pairs)


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("akujobi2002/") and "250" in n])
def test_satellite_twins_differ_in_delays_and_load_alone(name):
    assert differing(name, name.removesuffix("_250ms")) <= {"delay", "rtt", "n"}
    for flows in loaded(name).flows:
        assert float(flows.rtt[0]) == pytest.approx(2 * (0.002 + 0.25 + 0.002))


@pytest.mark.parametrize("key", ["red", "ared", "blue"])
def test_three_ways_to_signal_differ_in_the_feedback_alone(key):
    name = f"govindaswamy2012/{key}"
    assert differing(name, f"{name}_ecn") == {"feedback"}
    # the window table also has the feedback's `persistence`
    freeze = {"queue"} if key == "blue" else set()  # random freeze times with RWM
    assert differing(name, f"{name}_rwm") == {"feedback", "window"} | freeze
    assert loaded(name).flows[0].window == loaded(f"{name}_rwm").flows[0].window


@pytest.mark.parametrize(
    "name", [n for n in NAMES if n.startswith("qazi2010/") and "three" not in n]
)
def test_buffers_hold_the_bandwidth_delay_product(name):
    net = loaded(name)
    longest = max(float(np.max(flows.rtt)) for flows in net.flows)
    assert float(net.links[0].buffer) == pytest.approx(float(net.links[0].capacity) * longest)
    (bottleneck,) = as_fluid(net).links
    assert float(bottleneck.cross) == pytest.approx(float(bottleneck.capacity) / 10)


def test_web_sources_send_what_table_1_asks_for():
    sessions, pages, objects, packets = 2.0, 10, 3, 12  # sessions per second; pages of each
    net = loaded("akujobi2002/web_ecn")
    assert net.flows[1].traffic == Sessions()
    web = as_fluid(net).flows[1]
    traffic: Any = web.traffic
    asked = float(web.n[0]) / float(traffic.idle) * float(traffic.file)
    assert asked == pytest.approx(sessions * pages * objects * packets)
    assert float(web.n[0]) == sessions * 9 * 10 * objects  # Little: 9 gaps of 10 s between pages


def test_web_files_are_those_of_a_cut_pareto():
    traffic: Any = loaded("misra2003/web_mod").flows[0].traffic
    largest = 60e6
    mean = 1000 * (1 + math.log(largest / 1000))  # shape 1, from 1 kB
    assert float(traffic.file) == pytest.approx(mean / 1000, rel=0.01)
    assert float(traffic.idle) == 1.5 / (1.5 - 1)  # shape 1.5, from 1 s


def test_voice_leaves_what_the_reduced_link_has():
    link = loaded("misra2003/persistent_mod").links[0]
    assert link.voice is not None
    left = link.voice.left(link.capacity, link.voice.mean(link.packet_size))
    reduced = loaded("misra2003/besteffort").links[0].capacity
    assert float(left) == pytest.approx(float(reduced), rel=1e-3)  # a few calls are refused


if __name__ == "__main__":
    for key in KEYS:
        text = card(key).read_text(encoding="utf-8")
        card(key).write_text(with_equations(text), encoding="utf-8")
