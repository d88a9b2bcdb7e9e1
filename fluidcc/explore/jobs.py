"""Jobs of the explorer in worker processes: progress, cancellation, time limits, replacement.

Heavy imports are left to the processes themselves, so that this module loads fast.
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
from fluidcc.sweep.workers import end_with_parent

Progress = Callable[[float], None]
Work = Callable[[Progress], Any]

KINDS = ("present", "map", "trajectory", "packets")
"""Kinds of jobs; each kind has its own processes, so that none waits for another."""

_BEAT = 0.5
"""Seconds between empty answers while there is no news."""

_LOOK = 0.1
"""Seconds between checks for cancellation."""

_GRACE = 10.0
"""Seconds that cancelled work may go on: mostly it compiles a program that the next request needs
too, and that would be lost with the process."""

_TIME_LIMIT = 600.0
"""Seconds that any work may take."""

_PROCESSES = 2
"""Most processes of each kind; each holds the compiled programs of one structure."""

_COMPILE_TIME = 3.0
"""Seconds; work that takes longer has probably compiled a program."""

# a process that has imported this package but computed nothing has no threads of JAX: it can fork
_START = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
_log = logging.getLogger("fluidcc.explore")


class _Cancelled(Exception):
    """Nobody waits for the answer any more."""


@dataclasses.dataclass(frozen=True)
class Job:
    """Work for a structure; `report` takes its answers, each an event's name and JSON."""

    work: Work
    structure: Hashable
    report: Callable[[str, str], None]
    cancelled: threading.Event = dataclasses.field(default_factory=threading.Event)

    def fail(self, message: str) -> None:
        """Report that there will be no result."""
        self.report("error", _json({"error": message, "faults": []}))


class _Process:
    """A process that does one job after the other, and a pipe to it."""

    def __init__(self) -> None:
        self.pipe, child_end = _START.Pipe()
        self._process = _START.Process(target=_serve, args=(child_end,), daemon=True)
        self._process.start()
        child_end.close()

    def perform(self, job: Job) -> bool:
        """Do a job and report its answers; False if the process must end.

        Raises EOFError or OSError if it has died.
        """
        started, cancelled_at = time.monotonic(), None
        self.pipe.send(job.work)
        while True:
            if self.pipe.poll(_LOOK):
                event, text = self.pipe.recv()
                job.report(event, text)
                if event != "share":
                    return True
            now = time.monotonic()
            if cancelled_at is None and job.cancelled.is_set():
                cancelled_at = now
                self.pipe.send(None)
            if cancelled_at is not None and now - cancelled_at > _GRACE:
                return False
            if now - started > _TIME_LIMIT:
                job.fail(f"stopped after {_TIME_LIMIT:g} s: choose a shorter run or a smaller map")
                return False

    def end(self) -> int | None:
        """Kill the process and return its exit code."""
        self._process.kill()
        self._process.join()
        self.pipe.close()
        return self._process.exitcode


class Worker:
    """A thread that does jobs in their order and skips cancelled ones.

    Each structure has a process. The least recently used process is ended to make room for another,
    which frees the memory of its compiled programs.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._processes: dict[Hashable, _Process] = {}
        threading.Thread(target=self._run, name="explore", daemon=True).start()

    def put(self, job: Job) -> None:
        """Add a job to the queue."""
        self._jobs.put(job)

    def _run(self) -> None:
        while True:
            job = self._jobs.get()
            if not job.cancelled.is_set():
                self._perform(job)

    def _perform(self, job: Job) -> None:
        process = self._processes.pop(job.structure, None) or _Process()
        self._processes[job.structure] = process
        if len(self._processes) > _PROCESSES:
            self._processes.pop(next(iter(self._processes))).end()
        try:
            reusable = process.perform(job)
        except (EOFError, OSError):
            reusable = False
            job.fail(
                "the process that computed this has died: there may not have been enough memory"
            )
        if not reusable:
            self._processes.pop(job.structure).end()

    async def answers(self, work: Work, structure: Hashable) -> AsyncGenerator[tuple[str, str]]:
        """Yield events with their JSON: the "share" done, and last a "result" or an "error".

        An event comes at least every half second; without news both of its texts are empty. Closing
        the iterator cancels the work at its next progress report, or by ending its process.
        """
        loop, events = asyncio.get_running_loop(), asyncio.Queue[tuple[str, str]]()

        def report(event: str, text: str) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(events.put_nowait, (event, text))

        job, event = Job(work, structure, report), ""
        self.put(job)
        try:
            while event not in ("result", "error"):
                try:
                    event, text = await asyncio.wait_for(events.get(), _BEAT)
                except TimeoutError:
                    event = text = ""
                yield event, text
        finally:
            job.cancelled.set()


def prepare() -> None:
    """Start importing the modules that processes need, in the background."""
    if _START.get_start_method() == "forkserver":
        from multiprocessing.forkserver import ensure_running

        _START.set_forkserver_preload(["fluidcc.explore.server"])
        ensure_running()


def _serve(pipe: Connection) -> None:
    """Do work as it is received, until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it, and ends this one
    threading.Thread(target=end_with_parent, daemon=True).start()
    from fluidcc.memory import shared_by

    def progress(share: float) -> None:
        if pipe.poll():
            raise _Cancelled
        pipe.send(("share", _json(share)))

    with shared_by(len(KINDS)):
        while True:
            try:
                work = pipe.recv()
            except EOFError:
                return
            if work is None:  # a cancellation that came after its job had ended
                continue
            started = time.monotonic()
            try:
                progress(0.0)
                answer = "result", _json(work(progress))
            except Exception as fault:
                answer = "error", _json(describe_fault(fault))
            pipe.send(answer)
            if time.monotonic() - started > _COMPILE_TIME:
                gc.collect()
                gc.freeze()  # compiled programs stay: the collector need not scan them


def _json(value: Any) -> str:
    from fluidcc.results.export import to_json

    return to_json(value)


def describe_fault(fault: Exception) -> dict[str, Any]:
    """The message of an exception for the page, with the parameter paths at fault if known.

    Exceptions that the input did not cause are logged with their traceback.
    """
    if isinstance(fault, ScenarioError):
        faults = [{"path": f.key, "text": str(f)} for f in fault.faults]
        return {"error": str(fault), "faults": faults}
    if isinstance(fault, ValueError | ArithmeticError | _Cancelled):
        return {"error": str(fault), "faults": []}
    if isinstance(fault, MemoryError):
        message = "there is not enough memory for this: take fewer flows, or a shorter run"
        return {"error": message, "faults": []}
    _log.error("a fault of fluidcc", exc_info=fault)
    message = f"a fault of fluidcc itself ({type(fault).__name__}); see the terminal for details"
    return {"error": message, "faults": []}
