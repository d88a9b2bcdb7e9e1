"""Answers of the command line are those that are kept.

All of them take 14 minutes on two cores: `python -m tests.golden.answers`. Here are the quick ones.
"""

import pytest

from tests.golden import answers
from tests.golden.commands import commands

KEPT = answers.kept()
QUICK = [
    c
    for c in commands()
    if c.startswith(("show", "list")) or ("hollot2001/slow" in c and not c.startswith("cycle"))
]


def test_every_command_is_kept():
    assert set(KEPT) == set(commands())


@pytest.mark.parametrize("command", QUICK)
def test_the_answer_is_the_one_that_is_kept(command):
    assert not list(answers.differences(answers.ask(command)[1], KEPT[command]))


def test_what_differs_is_found():
    old = KEPT["stability hollot2001/slow"]
    one = {**old, "json": {"points": [{**old["json"]["points"][0], "gain_margin": 1.0}]}}
    (found,) = answers.differences(one, old)
    assert found.startswith(".json.points[0].gain_margin: 1.0, kept ")
    assert list(answers.differences({**old, "exit": 3}, old)) == [".exit: 3, kept 0"]
