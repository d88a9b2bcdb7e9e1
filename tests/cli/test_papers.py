"""Figures and claims of the papers from the command line."""

import csv
import json
import re
import shlex
from pathlib import Path

import pytest

from fluidcc.bundled.validation.lab.experiments import experiments
from fluidcc.bundled.validation.lab.judging import VERDICTS
from fluidcc.bundled.validation.lab.lab import Lab
from fluidcc.bundled.validation.lab.store import Store


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder of results that the tests here share."""
    return str(tmp_path_factory.mktemp("results"))


def test_a_figure_has_its_files_and_says_what_agrees(run, tmp_path, results):
    code, out, _ = run("figures", "mark_front/3", "--quick", "--out", "figs", "--results", results)
    assert code == 0
    assert "mark_front/3" in out and "MF-07" in out
    folder = tmp_path / "figs" / "mark_front"
    assert {f.name for f in folder.iterdir()} == {"fig3.pdf", "fig3.png", "fig3.csv"}
    lines = (folder / "fig3.csv").read_text().splitlines()
    told = [line for line in lines if line.startswith("#")]
    assert any("seeds 1 to" in line for line in told) and any("MF-07" in line for line in told)
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert {row["curve"] for row in rows if row["engine"] == "packets"} == {
        "mark-tail", "mark-front",
    }  # fmt: skip
    assert all(float(row["y"]) > 0 and float(row["ci95"]) >= 0 for row in rows if row["ci95"])


def test_the_command_of_an_experiment_gives_its_numbers(run, results):
    command = shlex.split(experiments("mark_front", quick=True)["ten_leo_front"].command(1))
    code, out, _ = run(*command[1:], "--json")
    kept = Lab(Store(Path(results)), "mark_front", quick=True).packets("ten_leo_front")
    path = "links.bottleneck.queue_max"
    mine = [one["links"]["bottleneck"]["queue_max"] for one in json.loads(out)["runs"]]
    assert code == 0 and command[0] == "fluidcc"
    assert mine == kept.values(path)[1].tolist()


@pytest.mark.slow
def test_the_report_leads_from_claims_to_equations(run, tmp_path, results):
    """Every claim of a paper, and its page. Two minutes."""
    code, out, _ = run(
        "validate", "mark_front", "--json", "--report", "r.html", "--results", results
    )
    rows = json.loads(out)["claims"]
    assert code == 0 and len(rows) == 27
    for row in rows:
        assert {"id", "verdict", "engine", "expected", "value", "unit", "why"} <= row.keys()
        assert row["verdict"] in VERDICTS and row["why"]
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    for row in rows:
        assert f'id="{row["id"]}"' in page
        assert all(f'id="exp-{name}"' in page for name in row["experiments"])
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(re.findall(r'id="([^"]+)"', page))
    searches = re.findall(r"<code>(fluidcc check-bounds [^<]+)</code>", page)
    assert len(searches) == sum(len(row["bounds"]) for row in rows) > 5
    (delay,) = (command for command in searches if command.endswith("mark_front.delay"))
    assert "marks at the front are heard" in run(*shlex.split(delay)[1:])[1].replace("\n", " ")
    assert page.count("data:image/png;base64") == 6 and page.count("<math") > 10
    assert "http" not in page.replace("http://www.w3.org/1998/Math/MathML", "")
