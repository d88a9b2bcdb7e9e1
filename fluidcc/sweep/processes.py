"""Chunks done by processes of their own: spawned, as threads of JAX do not survive a fork.

Nothing heavy is imported here, as processes that start have to be told where compiled code is.
"""

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any

from fluidcc.errors import SweepStopped
from fluidcc.folders import keep_compiled
from fluidcc.machine import processors

if TYPE_CHECKING:
    from fluidcc.sweep.job import Job
    from fluidcc.sweep.plan import Plan

_LIBRARIES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_SPAWN = multiprocessing.get_context("spawn")


class _Problem:
    """Why a process cannot go on: its text goes to the one that waits."""

    def __init__(self, error: BaseException) -> None:
        self.wrong_use = isinstance(error, ValueError)
        self.text = str(error) if self.wrong_use else f"{type(error).__name__}: {error}"

    def error(self) -> Exception:
        """The same, for the one that asked for the sweep."""
        return ValueError(self.text) if self.wrong_use else SweepStopped(self.text)


def in_processes(job: "Job", plan: "Plan", workers: int) -> None:
    """Do a plan by `workers` processes; one that dies is replaced, and its chunk done again.

    Raises ValueError if the job cannot be sent to a process, SweepStopped if processes die again
    and again.
    """
    try:
        sent = pickle.dumps(job)
    except Exception as error:
        raise ValueError(
            f"verb: expected a function that a new process can import, got {job.verb!r} ({error}); "
            "workers=0 stays in this process"
        ) from None
    team: list[_Worker] = []
    stillborn = 0
    try:
        while True:
            while sum(w.task is not None for w in team) < workers and (task := plan.next()):
                worker = next((w for w in team if w.task is None), None)
                if worker is None:
                    worker = _Worker(sent, workers)
                    team.append(worker)
                worker.give(task)
            busy = {worker.pipe: (worker, worker.task) for worker in team if worker.task}
            if not busy:
                return
            ready: list[Any] = wait(list(busy))
            for worker, task in map(busy.__getitem__, ready):
                worker.task = None
                try:
                    if not worker.started:
                        worker.began(task)
                        continue
                    answer = worker.pipe.recv()
                except (EOFError, OSError):
                    team.remove(worker)
                    code = worker.end()
                    stillborn += not worker.started
                    if stillborn > workers:
                        raise SweepStopped(_NO_START.format(code)) from None
                    plan.lost(*task, f"exit code {code}", guilty=worker.started)
                    continue
                if isinstance(answer, _Problem):
                    raise answer.error()
                plan.done(answer)
    finally:
        for worker in team:
            worker.end()


_NO_START = (
    "a process could not start (exit code {}): a script that sweeps with workers needs its calls "
    'under `if __name__ == "__main__":`, as processes import it; workers=0 needs none'
)


class _Worker:
    """A process with a pipe to it, and the blocks that it does."""

    def __init__(self, sent: bytes, workers: int) -> None:
        self.pipe, other = _SPAWN.Pipe()
        self.task: tuple[int, int] | None = None
        self.started = False
        with _environment(workers):
            self.process = _SPAWN.Process(target=_serve, args=(other,), daemon=True)
            self.process.start()
        other.close()
        with contextlib.suppress(OSError):  # it is dead already, which `answer` will tell
            self.pipe.send_bytes(sent)

    def give(self, task: tuple[int, int]) -> None:
        """Let it do some blocks."""
        self.task = task
        with contextlib.suppress(OSError):
            self.pipe.send(task)

    def began(self, task: tuple[int, int]) -> None:
        """Note that it runs, and does the task; raises EOFError or OSError if it is dead."""
        self.pipe.recv()
        self.started, self.task = True, task

    def end(self) -> int | None:
        """End it, if it lives; its exit code."""
        self.process.terminate()
        self.process.join()
        self.pipe.close()
        return self.process.exitcode


@contextlib.contextmanager
def _environment(workers: int) -> Iterator[None]:
    """What processes that start here are told: their share of the threads, unless the user says.

    Libraries for linear algebra get one: the matrices are small.
    """
    wanted: dict[str, str] = dict.fromkeys(_LIBRARIES, "1")
    wanted["FLUIDCC_THREADS"] = str(max(1, processors() // workers))
    wanted["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{0.75 / workers:.3f}"  # of an accelerator
    added = {name: text for name, text in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def _serve(pipe: Connection) -> None:
    """Do chunks as they are asked for, until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it, and ends this one
    threading.Thread(target=end_with_parent, daemon=True).start()
    keep_compiled()
    sent = pipe.recv_bytes()
    pipe.send("started")
    try:
        job = pickle.loads(sent)
    except Exception as error:
        pipe.send(_Problem(ValueError(f"verb: a new process cannot import it: {error}")))
        return
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        try:
            answer = job.compute(*task)
        except BaseException as error:
            answer = _Problem(error)
        pipe.send(answer)


def end_with_parent() -> None:
    """Leave when the parent is gone, however it went."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
