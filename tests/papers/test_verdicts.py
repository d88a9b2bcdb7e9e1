"""Kept verdicts and the kept comparison are computed again in part: runs, rules and readings."""

import importlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.bundled import bundled
from fluidcc.bundled.paper_figs.drawing.figure import papers, recipes
from fluidcc.bundled.validation.lab.beside import (
    causes,
    judged,
    level_error,
    medians,
    table,
    with_mean,
)
from fluidcc.bundled.validation.lab.check import BOUNDS
from fluidcc.bundled.validation.lab.experiments import PAPERS, experiments
from fluidcc.bundled.validation.lab.judging import (
    alike,
    all_of,
    least,
    most,
    near,
    ordered,
    searched,
    shown,
)
from fluidcc.bundled.validation.lab.lab import Lab
from fluidcc.bundled.validation.lab.ledger import claims, rules, verdict
from fluidcc.bundled.validation.lab.readings import DEFAULT, joint, questions, readings
from fluidcc.bundled.validation.lab.store import Store
from fluidcc.folders import UNFINISHED

TEXT = (Path(__file__).parents[2] / "docs/papers/verdicts.json").read_text(encoding="utf-8")
KEPT = {row["id"]: row for row in json.loads(TEXT)["claims"]}
AGAIN = {
    "becn": ("BECN-08", "BECN-09"),
    "bmcc": ("BMCC-27", "BMCC-30"),
    "ecn_mod": ("EMOD-03", "EMOD-06"),
    "mark_front": ("MF-05", "MF-12", "MF-15"),
    "rwm": ("RWM-14",),
    "today": ("TODAY-03", "TODAY-04", "TODAY-07"),
    "senders": ("SENDERS-05", "SENDERS-09", "SENDERS-20"),
}


@pytest.mark.parametrize("paper", AGAIN)
def test_verdicts_come_out_as_kept(paper, tmp_path):
    lab = Lab(Store(tmp_path), paper, quick=True)
    for name in AGAIN[paper]:
        found, kept = verdict(lab, name).to_dict(), KEPT[name]
        assert {reading: own["verdict"] for reading, own in found["readings"].items()} == (
            kept["readings"]
        )
        for key in ("verdict", "engine", "reading", "counts", "why"):
            assert found[key] == kept[key], f"{name}: {key}"


def test_what_is_kept_adds_up():
    for row in KEPT.values():
        own = row["readings"]
        assert row["verdict"] == own[row["reading"]]
        ends = {"every": least(own.values()), "some": most(own.values())}
        assert row["counts"] == {"default": own[DEFAULT], "joint": row["verdict"], **ends}


def test_claims_and_bounds_name_each_other():
    named = {(claim, bound.id) for bound in BOUNDS.values() for claim in bound.claims}
    assert named == {(row["id"], name) for row in KEPT.values() for name in row["bounds"]}


# -- What the papers leave open, and the joint reading of each
def test_the_joint_readings_are_these():
    assert {paper: joint(paper) for paper in PAPERS} == {
        "becn": ("once",), "bmcc": ("per_rtt", "senders_too"), "ecn_mod": (),
        "rwm": ("validated",), "mark_front": ("finite", "whole"), "today": (), "senders": (),
    }  # fmt: skip


@pytest.mark.parametrize("paper", PAPERS)
def test_rules_and_questions_name_the_same_readings(paper):
    asked = {name for rule in rules(paper).values() for name in rule.readings}
    assert asked | set(joint(paper)) == set(readings(paper))
    for question in questions(paper).values():
        assert question.asks and question.where and question.readings[0].name == DEFAULT
        assert all(reading.means for reading in question.readings)


# -- The experiments of the papers as data, and the content that names them
@pytest.mark.parametrize("paper", PAPERS)
def test_every_experiment_makes_networks_of_its_paper(paper):
    for quick in (False, True):
        for experiment in experiments(paper, quick=quick).values():
            assert experiment.x and len(experiment.x) == len(experiment.changes)
            assert 0 <= experiment.warmup < experiment.until and experiment.seeds >= 1
            assert experiment.scenario.startswith(PAPERS[paper])
    for experiment in experiments(paper).values():
        for k in {0, len(experiment.x) - 1}:
            assert experiment.net(k).links


@pytest.mark.parametrize("paper", PAPERS)
def test_every_claim_has_one_rule(paper):
    assert set(rules(paper)) == set(claims(paper))


def test_the_ledger_is_whole():
    rows = json.loads((bundled("validation") / "claims.json").read_text(encoding="utf-8"))["claims"]
    assert sum(len(claims(paper)) for paper in PAPERS) == len(rows) == 247


@pytest.mark.parametrize("paper", papers())
def test_what_figures_and_rules_need_exists(paper, tmp_path):
    lab = Lab(Store(tmp_path), paper)
    for recipe in recipes(paper).values():
        assert recipe.about, f"{recipe.name} has no caption"
        for name in recipe.needs:
            assert lab.experiment(name).x
    if paper in PAPERS:
        for rule in rules(paper).values():
            assert all("/" in name for name in rule.experiments(lab))


# -- The table of the fluid model beside the packets, as a run over all scenarios lef
def test_every_scenario_is_in_it_with_every_link():
    rows = table()
    assert {row.scenario for row in rows} == set(with_mean())
    assert all(row.unit and row.span.endswith(" s") for row in rows)


def test_where_the_model_says_nothing_against_itself_it_keeps_to_its_goals():
    inside = [row for row in table() if not row.validity_warnings]
    found = medians(inside)
    assert len({row.scenario for row in inside}) >= 4
    assert found["goodput"][0] <= 0.05 and found["queue"][0] <= 0.10
    for kind, goal in (("goodput", 0.05), ("queue", 0.10)):  # not in the median alone
        assert all(abs(r.difference) <= goal for r in inside if r.kind == kind and r.compares)


def test_a_scenario_comes_out_as_kept(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "validation"))
    script = importlib.import_module("compare_all")
    name = "hollot2001/pi"
    record = script.judge(name)
    assert "error" not in record, record["error"]
    found = record["rows"]
    kept = {row.quantity: row for row in table() if row.scenario == name}
    assert set(kept) == {row["name"] for row in found}
    for row in found:
        own = kept[row["name"]]
        assert row["packets"] == (own.packets and pytest.approx(own.packets, rel=1e-4))
        assert (row["mean"] if row["fluid"] is None else row["fluid"]) == (
            own.fluid and pytest.approx(own.fluid, rel=1e-3)
        )

    script.write_table([record], tmp_path / "all.csv")
    for row, own in zip(found, table(tmp_path / "all.csv"), strict=True):
        assert (own.quantity, own.level) == (row["name"], record["level"])
        for level in ("population", "trains", "trains_ci95", "recommended"):
            assert getattr(own, level) == (row[level] and pytest.approx(row[level], rel=1e-4))
    said = "\n".join(script.summary([record]))
    assert "no level below packets applies: 0 scenarios" in said and "recommended" in said


def test_a_refused_number_is_a_miss_of_a_level(tmp_path):
    """Three links by hand: one is right, one is refused, one has less than a packet."""
    heads = "scenario,from_s,until_s,status,quantity,unit,mean,population,trains,fluid,"
    heads += "packets,ci95,trains_ci95,difference,recommended,level,level_reason,refused,"
    lines = [
        f"one,1,2,regular,links.{name}.{kind},packet,,,{value},,{seen},,,,{value},trains,,,"
        for name, kind, value, seen in (
            ("a", "queue", 10.5, 10), ("a", "queue_std", 1.1, 2), ("b", "queue", "", 20),
            ("c", "queue", 5, 0.5), ("c", "queue_std", 5, 2), ("b", "queue_std", 3, 3),
        )
    ]  # fmt: skip
    (tmp_path / "all.csv").write_text("\n".join([heads + "validity_warnings", *lines]))
    rows = table(tmp_path / "all.csv")
    assert [row.quantity for row in judged(rows, "queue")] == ["links.a.queue", "links.b.queue"]
    queue = level_error(judged(rows, "queue"), "recommended", 0.1)
    assert queue is not None and queue.median == pytest.approx(0.05) and queue[1:] == (0.5, 1, 2)
    spread = level_error(judged(rows, "queue_std"), "trains", 0.2)
    assert spread is not None and spread.median == pytest.approx(0.225) and spread.within == 0.5
    assert level_error(judged(rows, "period"), "trains", 0.1) is None


def test_causes_have_neither_places_nor_numbers_and_cover_what_is_outside():
    rows = table()
    found = causes(rows)
    assert not any(c.isdigit() for cause in found for c in cause)
    assert not any("links." in cause or "flows." in cause for cause in found)
    outside = {row.scenario for row in rows if row.validity_warnings}
    assert {row.scenario for own in found.values() for row in own} == outside
    counts = [len({row.scenario for row in own}) for own in found.values()]
    assert counts == sorted(counts, reverse=True) and counts[0] > counts[-1]


# -- Runs are done once, kept, and taken up again after whatever ended them
NAME = "becn/competing_ecn"
POINTS = 9


def kept(folder):
    """The results that a folder holds, by name."""
    files = (file for file in folder.glob("*.json") if not file.name.startswith(UNFINISHED))
    return {file.name: file.read_bytes() for file in files}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of an experiment that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    seen = []
    Lab(Store(folder), "becn", quick=True).perform([NAME], progress=seen.append)
    assert seen == sorted(seen) and seen[-1] == pytest.approx(1.0)
    assert len(kept(folder)) == POINTS
    return folder


def test_runs_are_those_of_the_packet_simulator(whole):
    runs = Lab(Store(whole), "becn", quick=True).packets("competing_ecn")
    experiment = runs.experiment
    alone = fc.simulate_packets(
        experiment.net(2), until=experiment.until, warmup=experiment.warmup, seeds=(1, 2)
    )
    path = "links.bottleneck.queue_mean"
    assert runs.values(path).shape == (POINTS, experiment.seeds)
    expected = [run["links"]["bottleneck"]["queue_mean"] for run in alone.runs]
    np.testing.assert_array_equal(runs.values(path)[2, :2], expected)
    np.testing.assert_array_equal(runs.at(16, path), runs.values(path)[2])
    flows = runs.each("flows.ecn.flow_goodput")
    assert flows[0].shape == (experiment.seeds, 4)
    np.testing.assert_allclose(flows[0].mean(axis=1), runs.at(8, "flows.ecn.goodput"))


def test_what_is_kept_is_not_run_again(whole):
    before = {file: file.stat().st_mtime_ns for file in whole.iterdir()}
    lab = Lab(Store(whole), "becn", quick=True)
    shares: list[float] = []
    lab.perform([NAME], progress=shares.append)
    assert shares == [1.0]  # nothing was run
    lab.packets("competing_ecn")
    assert {file: file.stat().st_mtime_ns for file in whole.iterdir()} == before


def test_an_interrupt_keeps_what_is_finished(whole, tmp_path):
    def stop(share):
        raise KeyboardInterrupt

    lab = Lab(Store(tmp_path), "becn", quick=True)
    with pytest.raises(KeyboardInterrupt):
        lab.perform([NAME], progress=stop)
    assert 0 < len(kept(tmp_path)) < POINTS
    lab.perform([NAME])
    assert kept(tmp_path) == kept(whole)


def test_a_killed_process_and_a_damaged_file_lose_nothing(whole, tmp_path):
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from fluidcc.bundled.validation.lab.lab import Lab\n"
        "from fluidcc.bundled.validation.lab.store import Store\n"
        f"Lab(Store(Path(sys.argv[1])), 'becn', quick=True).perform(['{NAME}'])\n"
    )
    run = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
    while len(kept(tmp_path)) < 2:
        assert run.poll() is None
        time.sleep(0.02)
    run.send_signal(signal.SIGKILL)
    run.wait()
    damaged = tmp_path / min(kept(tmp_path))
    damaged.write_bytes(damaged.read_bytes()[:100])
    lab = Lab(Store(tmp_path), "becn", quick=True)
    lab.perform([NAME])
    lab.packets("competing_ecn")
    assert kept(tmp_path) == kept(whole)


# -- The rules by which claims are judged, on samples whose verdict is known
RNG = np.random.default_rng(7)


def around(mean, spread=1.0, shape=(20,)):
    """Samples whose mean and standard deviation are exactly these along the last axis."""
    raw = RNG.normal(size=shape)
    raw -= raw.mean(axis=-1, keepdims=True)
    raw /= raw.std(axis=-1, ddof=1, keepdims=True)
    return np.asarray(mean)[..., None] * np.ones(shape) + spread * raw


@pytest.mark.parametrize(
    ("theirs", "mean", "neutral", "verdict"),
    [
        (43.0, 40.0, 0.0, "reproduced"),  # within 10 %, with its interval
        (43.0, 39.3, 0.0, "ordering_only"),  # within, but the end of its interval is not
        (43.0, 30.0, 0.0, "ordering_only"),
        (43.0, -30.0, 0.0, "contradicted"),
        (43.0, 0.1, 0.0, "not_reproduced"),  # no effect to be seen
        (43.0, 30.0, None, "not_reproduced"),  # no direction
        ([30.0, 50.0], 29.7, 0.0, "reproduced"),  # its interval reaches into the range
        ([30.0, 50.0], 29.0, 0.0, "ordering_only"),  # a range is its own tolerance
        ([30.0, 50.0], 60.0, 0.0, "ordering_only"),
        (-8.0, -3.0, 0.0, "ordering_only"),
    ],
)
def test_a_printed_number(theirs, mean, neutral, verdict):
    found = near(theirs, around(mean), of="effect", neutral=neutral, unit="%")
    assert found.verdict == verdict
    assert found.value == pytest.approx(mean)
    # Student's t for 20 samples of standard deviation 1
    assert found.half == pytest.approx(2.0930240544 / np.sqrt(20))


def test_an_interval_that_has_the_number_reproduces_it_if_it_is_tight():
    assert near(1.2, around(1.0, 0.5)).verdict == "reproduced"
    assert near(1.3, around(1.0, 0.5)).verdict == "not_reproduced"
    assert near(1.2, around(1.0, 4.0)).verdict == "not_reproduced"
    wide = around(100.0, 40.0)  # +- 19: more than the tolerance of a queue
    assert near(115.0, wide, of="queue").verdict == "not_reproduced"
    assert near(102.0, around(100.0, 8.0), of="queue").verdict == "reproduced"


def test_one_run_is_never_significant():
    assert near(43.0, [10.0], neutral=0.0).verdict == "not_reproduced"
    assert ordered(np.ones((9, 1)), 2 * np.ones((9, 1))).verdict == "not_reproduced"
    model = np.ones((3, 1))
    assert ordered(model, 2 * model, engine="fluid").verdict == "reproduced"


@pytest.mark.parametrize(
    ("gaps", "verdict"),
    [
        ([2.0, 3.0, 4.0], "reproduced"),
        ([2.0, 3.0, 0.1], "reproduced"),  # a point that is not significant
        ([2.0, 3.0, -2.0], "not_reproduced"),
        ([-2.0, -3.0, 0.1], "contradicted"),
        ([0.1, 0.1, 2.0], "not_reproduced"),
    ],
)
def test_an_order_over_points(gaps, verdict):
    less = around(np.full(3, 10.0), 0.0, (3, 20))
    found = ordered(less, less + around(np.array(gaps), 1.0, (3, 20)), x=[1, 2, 3])
    assert found.verdict == verdict
    assert found.value == pytest.approx(np.mean(gaps))


def test_quantities_that_are_alike():
    one = around(np.array([100.0, 100.0, 100.0]), 0.1, (3, 5))
    for shares, said in (
        ([1.01, 1.02, 1.09], "reproduced"),
        ([1.01, 1.02, 1.2], "not_reproduced"),
        ([1.2, 1.3, 0.8], "contradicted"),
    ):
        assert alike(one * np.array(shares)[:, None], one, x=[1, 2, 3]).verdict == said


def test_the_worst_part_decides():
    good = shown(True, "fine", engine="analytic")
    bad = shown(False, "wrong", engine="packets", otherwise="not_reproduced")
    both = all_of(good, bad)
    assert (both.verdict, both.engine) == ("not_reproduced", "analytic+packets")
    assert both.why == "fine; wrong"


def test_a_decrease_has_a_size():
    before = around(np.array([0.997]), 1e-4, (1, 20))
    slight, clear = before - 0.007, before - 0.02
    assert ordered(slight, before).verdict == "reproduced"
    found = ordered(slight, before, size=0.01)
    assert found.verdict == "not_reproduced" and "less than 1 % apart" in found.why
    assert ordered(clear, before, size=0.01).verdict == "reproduced"
    assert ordered(before, slight).verdict == "contradicted"
    assert ordered(before, slight, size=0.01).verdict == "not_reproduced"
    assert ordered(before, clear, size=0.01).verdict == "contradicted"


@pytest.mark.parametrize(
    ("held", "verdict"),
    [
        (["holds", "holds"], "reproduced"),
        (["holds", "violated"], "not_reproduced"),
        (["violated", "violated"], "contradicted"),
    ],
)
def test_a_search_decides(held, verdict):
    entries = [
        {
            "statement": "at most 3", "verdict": said, "largest_excess": 1.0,
            "definitions": {"marks": "tail"}, "worst": {"value": 4.0, "bound": 3.0},
        }
        for said in held
    ]  # fmt: skip
    found = searched(entries, "packets", "packets")
    assert found.verdict == verdict and "marks: tail" in found.why
