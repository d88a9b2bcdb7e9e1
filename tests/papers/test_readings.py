"""What the papers leave open, and the joint reading of each."""

import pytest

from fluidcc.bundled.validation.lab.experiments import PAPERS
from fluidcc.bundled.validation.lab.ledger import rules
from fluidcc.bundled.validation.lab.readings import (
    DEFAULT,
    joint,
    questions,
    readings,
)


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
