"""Faults of laws are named by the battery, in words of the law."""

import pytest
from faulty_rules import FAULTS, Sound

from fluidcc.battery import verb
from fluidcc.battery.checks import Subject
from fluidcc.battery.report import FAILED, OK


def findings(law):
    subject = Subject(law)
    return {name: verb.finding(name, judge, subject) for name, judge in verb.RULES.items()}


@pytest.mark.parametrize(("law", "check", "words"), FAULTS, ids=lambda v: getattr(v, "name", ""))
def test_each_fault_is_named(law, check, words):
    found = findings(law)[check]
    assert found.verdict == FAILED
    for text in words:
        assert text in found.why, found.why


def test_a_sound_law_has_no_fault():
    assert {f.verdict for f in findings(Sound).values()} <= {OK, "not applicable"}
