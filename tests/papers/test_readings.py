"""What the papers leave open, and the joint reading of each."""

import pytest

from fluidcc.bundled.validation.lab.experiments import PAPERS, experiments
from fluidcc.bundled.validation.lab.lab import Lab
from fluidcc.bundled.validation.lab.ledger import rules, tally
from fluidcc.bundled.validation.lab.readings import (
    DEFAULT,
    Question,
    Reading,
    joint,
    meaning,
    questions,
    readings,
)
from fluidcc.bundled.validation.lab.store import Store


def _question(*departures):
    names = (DEFAULT, "first", "second")
    made = (Reading(n, n, ("IV.A: so",) * d) for n, d in zip(names, departures, strict=True))
    return Question("q", "what", "IV", tuple(made))


@pytest.mark.parametrize(
    ("departures", "chosen"),
    [((0, 0, 0), DEFAULT), ((1, 1, 1), DEFAULT), ((1, 0, 0), "first"), ((2, 1, 0), "second")],
)
def test_the_fewest_departures_are_chosen_and_a_tie_goes_to_the_default(departures, chosen):
    assert _question(*departures).chosen.name == chosen


def test_the_joint_readings_are_these():
    assert {paper: joint(paper) for paper in PAPERS} == {
        "becn": ("once",), "bmcc": ("per_rtt", "senders_too"), "ecn_mod": (),
        "rwm": ("validated",), "mark_front": ("finite", "whole"),
    }  # fmt: skip


@pytest.mark.parametrize("paper", PAPERS)
def test_rules_and_questions_name_the_same_readings(paper):
    asked = {name for rule in rules(paper).values() for name in rule.readings}
    assert asked | set(joint(paper)) == set(readings(paper))
    for question in questions(paper).values():
        assert question.asks and question.where and question.readings[0].name == DEFAULT
        assert all(reading.means for reading in question.readings)


@pytest.mark.parametrize("paper", PAPERS)
def test_experiments_have_no_reading_that_is_not_explained(paper):
    for name, experiment in experiments(paper).items():
        assert ("@" in name) == bool(experiment.reading)


def test_what_the_joint_reading_changes_in_several_ways_is_one_experiment(tmp_path):
    lab = Lab(Store(tmp_path), "bmcc")
    both = lab.under("per_rtt+senders_too")
    changed = both.experiment("shorter_period")
    assert changed.name == "bmcc/shorter_period@per_rtt+senders_too"
    law = changed.net(2).flows[0].window
    assert (law.md, float(law.t_p)) == ("per_rtt", 0.05)
    assert both.experiment("three_flows").name == "bmcc/three_flows@per_rtt"
    assert both.experiment("two_droptail").name == "bmcc/two_droptail"
    means = [meaning("bmcc", name) for name in ("per_rtt", "senders_too")]
    assert meaning("bmcc", "per_rtt+senders_too") == " and ".join(means)


def test_claims_are_counted_by_ways_to_read_and_by_their_verdicts():
    row = {"default": "reproduced", "joint": "contradicted", "every": "contradicted"}
    rows = [
        {"verdict": "contradicted", "counts": row | {"some": "reproduced"}},
        {"verdict": "by_definition", "counts": dict.fromkeys((*row, "some"), "by_definition")},
    ]
    found = tally(rows)
    assert list(found.values())[:5] == [2, 1, 0, 0, 1]
    assert (found["by definition"], found["contradicted"]) == (1, 1)
