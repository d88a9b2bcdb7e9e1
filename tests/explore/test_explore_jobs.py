"""Longer work: in turn, given up when unwanted."""

import asyncio
import json
import threading

import pytest

from fluidcc.errors import Fault, ScenarioError
from fluidcc.explore.jobs import Worker


async def collect(lines):
    return [json.loads(line) async for line in lines]


def test_lines_end_with_the_result():
    def work(progress):
        progress(0.5)
        return {"answer": 42}

    lines = asyncio.run(collect(Worker().lines(work)))
    assert lines == [{"share": 0.0}, {"share": 0.5}, {"result": {"answer": 42}}]


def test_what_nobody_waits_for_is_given_up_and_the_next_begins():
    begun, go, after = threading.Event(), threading.Event(), []

    def endless(progress):
        begun.set()
        go.wait(10)
        progress(0.5)
        after.append("not given up")

    async def run():
        worker = Worker()
        first = worker.lines(endless)
        assert json.loads(await anext(first)) == {"share": 0.0}
        assert begun.wait(10)
        await first.aclose()
        go.set()
        return await collect(worker.lines(lambda progress: {"next": True}))

    assert asyncio.run(run())[-1] == {"result": {"next": True}}
    assert not after


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (ScenarioError([Fault("", "flow.n", "more", "less")]), "flow.n: expected more, got less"),
        (ValueError("no flows"), "no flows"),
        (
            MemoryError(),
            "there is not enough memory for this: take fewer flows, or a shorter run",
        ),
        (KeyError("secret"), "a fault of fluidcc itself (KeyError); the terminal tells more"),
    ],
)
def test_faults_are_told_and_tracebacks_are_not(fault, told):
    def work(progress):
        raise fault

    assert asyncio.run(collect(Worker().lines(work)))[-1]["error"] == told
