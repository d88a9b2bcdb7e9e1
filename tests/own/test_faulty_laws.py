"""Faults of laws are named by the battery, in words of the law."""

import pytest
from faulty_rules import FAULTS, BranchOnProbability

from fluidcc.check import verb
from fluidcc.check.checks import RULES, Subject
from fluidcc.check.report import FAILED


def findings(law, *names):
    """What some checks find, after those that say which rules others can work with."""
    subject, wanted = Subject(law), {"results", "branches", *names}
    judges = {name: judge for name, judge in RULES.items() if name in wanted}
    return {name: verb.finding(name, judge, subject) for name, judge in judges.items()}


@pytest.mark.parametrize(("law", "check", "words"), FAULTS, ids=lambda v: getattr(v, "name", ""))
def test_each_fault_is_named(law, check, words):
    found = findings(law, check)[check]
    assert found.verdict == FAILED
    for text in words:
        assert text in found.why, found.why


def test_a_rule_that_cannot_be_traced_fails_no_other_check():
    found = findings(BranchOnProbability, *RULES)
    assert [name for name, f in found.items() if f.verdict == FAILED] == ["branches"]
