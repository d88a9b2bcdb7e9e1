"""What is computed, in processes of their own: they are told of, given up, ended and replaced.

Nothing heavy is imported here, as it is by the processes that start.
"""

import asyncio
import dataclasses
import gc
import logging
import multiprocessing
import queue
import signal
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Hashable
from multiprocessing.connection import Connection
from typing import Any

from fluidcc.errors import ScenarioError
from fluidcc.folders import keep_compiled
from fluidcc.sweep.workers import end_with_parent

Progress = Callable[[float], None]
Work = Callable[[Progress], Any]

KINDS = ("present", "map", "trajectory", "packets")
"""What is computed; each kind has its own processes, so that none waits for another."""

_BEAT = 0.5
"""Seconds between answers while nothing happens."""

_LOOK = 0.1
"""Seconds between looks at whether an answer is still wanted."""

_GRACE = 10.0
"""Seconds that work may go on when nobody waits for it: mostly it compiles what is asked for
again, and so would be lost with the process."""

_LONGEST = 600.0
"""Seconds that any work may take."""

_KEPT = 2
"""Processes of each kind, each with what was compiled for one structure."""

_COMPILED = 3.0
"""Seconds after which work has probably compiled something."""

# what has imported this package but computed nothing has no threads of JAX, and can be forked
_START = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
_log = logging.getLogger("fluidcc.explore")


class _Unwanted(Exception):
    """Nobody waits for the answer any more."""


@dataclasses.dataclass(frozen=True)
class Job:
    """Work for a structure, and where its answers go: a word for their kind, and JSON."""

    work: Work
    structure: Hashable
    tell: Callable[[str, str], None]
    unwanted: threading.Event = dataclasses.field(default_factory=threading.Event)

    def fault(self, text: str) -> None:
        """Tell that there will be no result."""
        self.tell("error", _json({"error": text, "faults": []}))


class _Process:
    """A process that does one job after the other, and a pipe to it."""

    def __init__(self) -> None:
        self.pipe, other = _START.Pipe()
        self._process = _START.Process(target=_serve, args=(other,), daemon=True)
        self._process.start()
        other.close()

    def perform(self, job: Job) -> bool:
        """Have a job done, and tell of it; False if the process must end.

        Raises EOFError or OSError if it has died.
        """
        begun, left = time.monotonic(), None
        self.pipe.send(job.work)
        while True:
            if self.pipe.poll(_LOOK):
                word, text = self.pipe.recv()
                job.tell(word, text)
                if word != "share":
                    return True
            now = time.monotonic()
            if left is None and job.unwanted.is_set():
                left = now
                self.pipe.send(None)
            if left is not None and now - left > _GRACE:
                return False
            if now - begun > _LONGEST:
                job.fault(f"given up after {_LONGEST:g} s: take less of it")
                return False

    def end(self) -> int | None:
        """End it, whatever it does; its exit code."""
        self._process.kill()
        self._process.join()
        self.pipe.close()
        return self._process.exitcode


class Worker:
    """A thread that has jobs done in their order; those that nobody waits for are left out.

    Each structure has a process. Of these the one not used for longest is ended for another: so
    what was compiled there gives its memory back.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._processes: dict[Hashable, _Process] = {}
        threading.Thread(target=self._run, name="explore", daemon=True).start()

    def put(self, job: Job) -> None:
        """Have a job done when those before it are."""
        self._jobs.put(job)

    def _run(self) -> None:
        while True:
            job = self._jobs.get()
            if not job.unwanted.is_set():
                self._perform(job)

    def _perform(self, job: Job) -> None:
        process = self._processes.pop(job.structure, None) or _Process()
        self._processes[job.structure] = process
        if len(self._processes) > _KEPT:
            self._processes.pop(next(iter(self._processes))).end()
        try:
            sound = process.perform(job)
        except (EOFError, OSError):
            sound = False
            job.fault(
                "the process that computed this has died: there may not have been enough memory"
            )
        if not sound:
            self._processes.pop(job.structure).end()

    async def answers(self, work: Work, structure: Hashable) -> AsyncGenerator[tuple[str, str]]:
        """Answers as a word and JSON: the "share" done, at last a "result" or an "error".

        One comes at least every half second, of two empty texts if there is nothing to say. Closing
        the iterator gives the work up: where it next tells of its progress, or with its process.
        """
        loop, told = asyncio.get_running_loop(), asyncio.Queue[tuple[str, str]]()

        def tell(word: str, text: str) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(told.put_nowait, (word, text))

        job, word = Job(work, structure, tell), ""
        self.put(job)
        try:
            while word not in ("result", "error"):
                try:
                    word, text = await asyncio.wait_for(told.get(), _BEAT)
                except TimeoutError:
                    word = text = ""
                yield word, text
        finally:
            job.unwanted.set()


def prepare() -> None:
    """Let what processes need be imported meanwhile."""
    if _START.get_start_method() == "forkserver":
        from multiprocessing.forkserver import ensure_running

        _START.set_forkserver_preload(["fluidcc.explore.server"])
        ensure_running()


def _serve(pipe: Connection) -> None:
    """Do work as it is sent, until there is no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it, and ends this one
    threading.Thread(target=end_with_parent, daemon=True).start()
    keep_compiled()
    from fluidcc.memory import shared_by

    def progress(share: float) -> None:
        if pipe.poll():
            raise _Unwanted
        pipe.send(("share", _json(share)))

    with shared_by(len(KINDS)):
        while True:
            try:
                work = pipe.recv()
            except EOFError:
                return
            if work is None:  # of a job that had ended by itself
                continue
            begun = time.monotonic()
            try:
                progress(0.0)
                answer = "result", _json(work(progress))
            except Exception as fault:
                answer = "error", _json(told(fault))
            pipe.send(answer)
            if time.monotonic() - begun > _COMPILED:
                gc.collect()
                gc.freeze()  # what was compiled stays: the collector need not walk through it


def _json(value: Any) -> str:
    from fluidcc.results.export import to_json

    return to_json(value)


def told(fault: Exception) -> dict[str, Any]:
    """What the page is told of a fault: the library's own message, and its place if known.

    What is no fault of the input goes to the log in full.
    """
    if isinstance(fault, ScenarioError):
        faults = [{"path": f.key, "text": str(f)} for f in fault.faults]
        return {"error": str(fault), "faults": faults}
    if isinstance(fault, ValueError | ArithmeticError | _Unwanted):
        return {"error": str(fault), "faults": []}
    if isinstance(fault, MemoryError):
        words = "there is not enough memory for this: take fewer flows, or a shorter run"
        return {"error": words, "faults": []}
    _log.error("a fault of fluidcc", exc_info=fault)
    words = f"a fault of fluidcc itself ({type(fault).__name__}); the terminal tells more"
    return {"error": words, "faults": []}
