"""What is computed by processes: in turn, given up when unwanted, ended at last."""

import asyncio
import functools
import json
import os
import signal
import time

import pytest

from fluidcc import Fault, ScenarioError
from fluidcc.explore import jobs
from fluidcc.explore.jobs import Worker


@pytest.fixture(scope="module")
def worker():
    jobs.prepare()
    return Worker()


async def collect(worker, work, structure="one"):
    answers = [answer async for answer in worker.answers(work, structure)]
    return [(word, json.loads(text)) for word, text in answers if word]


def told_by(worker, work, structure="one"):
    return asyncio.run(collect(worker, work, structure))


def answer(progress):
    progress(0.5)
    return {"answer": 42}


def process(progress):
    return os.getpid()


def endless(progress, tells):
    progress(0.25)
    while True:
        time.sleep(0.01)
        if tells:
            progress(0.5)


def fail(progress, fault):
    raise fault()


def die(progress):
    os.kill(os.getpid(), signal.SIGKILL)


async def abandon(worker, work):
    """Ask, and leave when it has begun."""
    answers = worker.answers(work, "one")
    async for word, text in answers:
        if (word, text) == ("share", "0.25"):
            break
    await answers.aclose()


def test_answers_end_with_the_result(worker):
    expected = [("share", 0.0), ("share", 0.5), ("result", {"answer": 42})]
    assert told_by(worker, answer) == expected


@pytest.mark.parametrize("tells", [True, False])
def test_what_nobody_waits_for_ends_and_the_next_begins(worker, monkeypatch, tells):
    monkeypatch.setattr(jobs, "_GRACE", 60.0 if tells else 0.2)
    before = told_by(worker, process)[-1]
    asyncio.run(abandon(worker, functools.partial(endless, tells=tells)))
    after = told_by(worker, process)[-1]
    assert (after == before) == tells  # what tells of its progress keeps its process


def test_a_process_that_dies_is_told_and_replaced(worker):
    assert "has died" in told_by(worker, die)[-1][1]["error"]
    assert told_by(worker, answer)[-1] == ("result", {"answer": 42})


@pytest.mark.parametrize(
    ("fault", "values", "told"),
    [
        (ScenarioError, [[Fault("", "n", "more", "less")]], "n: expected more, got less"),
        (ValueError, ["no flows"], "no flows"),
        (MemoryError, [], "there is not enough memory for this: take fewer flows"),
        (KeyError, ["secret"], "a fault of fluidcc itself (KeyError); see the terminal"),
    ],
)
def test_faults_are_told_and_tracebacks_are_not(worker, fault, values, told):
    word, line = told_by(worker, functools.partial(fail, fault=functools.partial(fault, *values)))[
        -1
    ]
    assert word == "error" and line["error"].startswith(told)
