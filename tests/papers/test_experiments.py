"""The experiments of the papers as data, and the content that names them."""

import json

import pytest

from fluidcc.bundled import bundled
from fluidcc.bundled.paper_figs.drawing.figure import papers, recipes
from fluidcc.bundled.validation.lab.experiments import PAPERS, experiments
from fluidcc.bundled.validation.lab.lab import Lab
from fluidcc.bundled.validation.lab.ledger import claims, rules
from fluidcc.bundled.validation.lab.store import Store

PUBLISHED = {
    "becn": range(2, 24), "bmcc": range(1, 13), "ecn_mod": range(2, 10), "rwm": range(6, 25),
    "mark_front": range(3, 9),
}  # fmt: skip


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
def test_every_published_figure_has_a_function(paper):
    assert list(recipes(paper)) == [str(number) for number in PUBLISHED[paper]]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_claim_has_one_rule(paper):
    assert set(rules(paper)) == set(claims(paper))


def test_the_ledger_is_whole():
    rows = json.loads((bundled("validation") / "claims.json").read_text(encoding="utf-8"))["claims"]
    assert sum(len(claims(paper)) for paper in PAPERS) == len(rows) == 203


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
