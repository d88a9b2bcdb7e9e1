"""Longer work, one at a time in a thread of its own, told of as it goes, given up when unwanted."""

import asyncio
import gc
import logging
import queue
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from fluidcc.errors import ScenarioError
from fluidcc.results import to_json

Progress = Callable[[float], None]
Work = Callable[[Progress], dict[str, Any]]

_BEAT = 0.5
"""Seconds between lines while nothing happens."""

_log = logging.getLogger("fluidcc.explore")


_COMPILED = 3.0
"""Seconds after which work has probably compiled something."""


def spare_the_collector() -> None:
    """What was compiled stays: the collector need not walk through it in the midst of an answer."""
    gc.collect()
    gc.freeze()


class _Unwanted(Exception):
    """Nobody waits for the answer any more."""


class _Job:
    """One piece of work, and the lines that it has told so far."""

    def __init__(self, work: Work, loop: asyncio.AbstractEventLoop) -> None:
        self._work, self._loop = work, loop
        self.lines: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.unwanted = threading.Event()

    def _tell(self, **line: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.lines.put_nowait, line)

    def _progress(self, share: float) -> None:
        if self.unwanted.is_set():
            raise _Unwanted
        self._tell(share=share)

    def perform(self) -> None:
        """Do the work, unless it is unwanted, and tell what came out."""
        try:
            self._progress(0.0)
            self._tell(result=self._work(self._progress))
        except _Unwanted:
            pass
        except Exception as fault:
            self._tell(**told(fault))


class Worker:
    """A thread that does jobs in their order; those that nobody waits for are left out."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="explore", daemon=True).start()

    def _run(self) -> None:
        while True:
            job, begun = self._jobs.get(), time.monotonic()
            job.perform()
            if time.monotonic() - begun > _COMPILED:
                spare_the_collector()

    async def lines(self, work: Work) -> AsyncIterator[str]:
        """JSON lines about the work: its `share` done, at last its `result`, or what is wrong.

        A line comes at least every half second. Closing the iterator gives the work up at the next
        point where it tells of its progress.
        """
        job = _Job(work, asyncio.get_running_loop())
        self._jobs.put(job)
        ended = False
        try:
            while not ended:
                try:
                    line = await asyncio.wait_for(job.lines.get(), _BEAT)
                except TimeoutError:
                    line = {}
                ended = "result" in line or "error" in line
                yield to_json(line) + "\n"
        finally:
            job.unwanted.set()


def told(fault: Exception) -> dict[str, Any]:
    """What the page is told of a fault: the library's own message, and its place if known.

    What is no fault of the input goes to the log in full.
    """
    if isinstance(fault, ScenarioError):
        faults = [{"path": f.key, "text": str(f)} for f in fault.faults]
        return {"error": str(fault), "faults": faults}
    if isinstance(fault, ValueError | ArithmeticError):
        return {"error": str(fault), "faults": []}
    if isinstance(fault, MemoryError):
        words = "there is not enough memory for this: take fewer flows, or a shorter run"
        return {"error": words, "faults": []}
    _log.error("a fault of fluidcc", exc_info=fault)
    words = f"a fault of fluidcc itself ({type(fault).__name__}); the terminal tells more"
    return {"error": words, "faults": []}
