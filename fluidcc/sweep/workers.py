"""Chunks computed by processes of this machine, or by the workers of a Dask cluster; one process
writes the results.

Processes are spawned, as threads of JAX do not survive a fork. Nothing heavy is imported here, as
processes that start need to know first where compiled code is.

Workers of a cluster need the same fluidcc as the one that asks, with the same versions of what it
computes with; that is checked. They are processes of their own (Dask spawns them, and must not be
made to fork, as threads of JAX do not survive that), best one for each core, with one thread::

    dask scheduler
    export OPENBLAS_NUM_THREADS=1 FLUIDCC_FAST_CPU=1 FLUIDCC_THREADS=1
    dask worker tcp://host:8786 --nworkers 16 --nthreads 1

On a batch system dask-jobqueue starts them, and the address is that of its scheduler::

    from dask_jobqueue import SLURMCluster

    cluster = SLURMCluster(
        cores=16, processes=16, memory="32GB", walltime="02:00:00",
        job_script_prologue=[
            "export OPENBLAS_NUM_THREADS=1 FLUIDCC_FAST_CPU=1 FLUIDCC_THREADS=1"
        ],
    )
    cluster.scale(jobs=8)
    fc.sweep(net, over, fc.stability, folder="map", scheduler=cluster.scheduler_address)

Where workers share an accelerator each takes a fraction of its memory, which JAX reads when it
starts: ``export XLA_PYTHON_CLIENT_MEM_FRACTION=0.2`` for four of them; each takes 0.75 otherwise.
"""

import contextlib
import functools
import logging
import multiprocessing
import os
import pickle
import re
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING

from fluidcc.errors import SweepStopped
from fluidcc.extras import extra
from fluidcc.folders import keep_compiled
from fluidcc.machine import processors

if TYPE_CHECKING:
    from fluidcc.sweep.job import Chunk, Job


_LIBRARIES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_SPAWN = multiprocessing.get_context("spawn")
_NO_START = (
    "a process could not start (exit code {}): a script that sweeps with workers needs its calls "
    'under `if __name__ == "__main__":`, as processes import it; workers=0 needs none'
)


_ADDRESS = re.compile(r"(\w+://)?[^/]+:\d+|inproc://.+")
_PATIENCE = 30.0  # s until there must be a scheduler, and a worker
_GOODBYE = 1.0  # s
_LOST = "the connection to the scheduler is lost: start it, and run the same again"


class WorkerDied(Exception):
    """A worker ended in the middle of a chunk, or, if not `guilty`, before it began."""

    def __init__(self, why: str, guilty: bool = True) -> None:
        super().__init__(why)
        self.guilty = guilty


class Processes:
    """Workers that are processes of this machine; one that dies is replaced.

    Each has an executor of its own: an executor that loses a process loses all that it was asked
    for, and cannot name the chunk at fault.

    Raises ValueError if the job cannot be sent to a process, SweepStopped if processes die again
    and again.
    """

    def __init__(self, job: "Job", workers: int) -> None:
        self.workers = workers
        self._idle: list[_Process] = []
        self._busy: dict[Future[Chunk], _Process] = {}
        self._stillborn = 0
        try:
            self._sent = pickle.dumps(job)
        except Exception as error:
            raise ValueError(
                f"verb: expected a function that a new process can import, got {job.verb!r} "
                f"({error}); workers=0 stays in this process"
            ) from None

    def submit(self, first: int, last: int) -> "Future[Chunk]":
        """Begin a chunk."""
        process = self._idle.pop() if self._idle else _Process(self._sent, self.workers)
        future = process.executor.submit(work, self._sent, first, last)
        self._busy[future] = process
        return future

    def result(self, future: "Future[Chunk]") -> "Chunk":
        """The chunk of a future that is done; raises WorkerDied if its process died."""
        process, error = self._busy.pop(future), future.exception()
        if not isinstance(error, BrokenProcessPool):
            self._idle.append(process)
            process.ready.result()
            return future.result()
        code, began = process.end(), process.ready.exception() is None
        self._stillborn += not began
        if self._stillborn > self.workers:
            raise SweepStopped(_NO_START.format(code))
        raise WorkerDied(f"exit code {code}", began)

    def close(self) -> None:
        """End all processes, whatever they do."""
        for process in (*self._idle, *self._busy.values()):
            process.end()


class _Process:
    """A process with its executor."""

    def __init__(self, sent: bytes, workers: int) -> None:
        self.executor = ProcessPoolExecutor(1, mp_context=_SPAWN)
        with _environment(workers):
            self.ready = self.executor.submit(_begin, sent)
        (self._process,) = self.executor._processes.values()

    def end(self) -> int | None:
        """End it, if it lives; its exit code."""
        self._process.terminate()
        self.executor.shutdown(cancel_futures=True)
        return self._process.exitcode


@contextlib.contextmanager
def _environment(workers: int) -> Iterator[None]:
    """Start processes with their share of the threads, unless the user has set it.

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


def _begin(sent: bytes) -> None:
    """Make this process ready for the chunks of a job."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it, and ends this one
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        _job(sent)
    except Exception as error:
        raise ValueError(f"verb: a new process cannot import it: {error}") from None


def work(sent: bytes, first: int, last: int) -> "Chunk":
    """A chunk of a pickled job, by a worker.

    Raises ValueError for wrong use, and SweepStopped with whatever else went wrong.
    """
    try:
        return _job(sent).compute(first, last)
    except ValueError as error:
        raise ValueError(str(error)) from None  # its class need not survive a pickle
    except BaseException as error:
        raise SweepStopped(f"{type(error).__name__}: {error}") from None


@functools.lru_cache(maxsize=1)
def _job(sent: bytes) -> "Job":
    """The job of a sweep, unpacked once, which imports JAX."""
    keep_compiled()
    return pickle.loads(sent)


def end_with_parent() -> None:
    """Leave when the parent is gone, however it went."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class Cluster:
    """Workers of a Dask scheduler, which replaces those that die.

    Raises MissingExtra without Dask, ValueError if there is no scheduler at this address, and
    SweepStopped if it or its workers are lost.
    """

    def __init__(self, job: "Job", scheduler: str) -> None:
        self._dask = extra("distributed", "cluster", what="a sweep on a cluster")
        cloudpickle = extra("cloudpickle", "cluster", what="a sweep on a cluster")
        if not _ADDRESS.fullmatch(scheduler):  # Dask would wait for a minute before it fails
            raise ValueError(
                "scheduler: expected the address of a Dask scheduler, such as tcp://host:8786, got "
                f"{scheduler!r}"
            )
        # sent with each chunk, some kilobytes: what is scattered is lost with its holders
        self._sent = cloudpickle.dumps(job)
        logger = logging.getLogger("distributed.client")
        self._unmuted = logger.level
        logger.setLevel(logging.CRITICAL + 1)  # a lost connection is reported once, as an error
        try:
            self._client = self._dask.Client(scheduler, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            logger.setLevel(self._unmuted)
            raise ValueError(
                f"scheduler: expected the address of a Dask scheduler, got {scheduler!r} ({error})"
            ) from None
        self._executor = self._client.get_executor(pure=False)
        try:
            self._client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError:
            address = self._client.scheduler.addr
            self.close()
            raise SweepStopped(
                f"the scheduler has no workers: start some with `dask worker {address}`, "
                "and run the same again"
            ) from None

    @property
    def workers(self) -> int:
        """How many chunks can be done at a time now; raises SweepStopped without a connection."""
        with self._connected():
            return max(1, sum(self._client.nthreads().values()))

    def submit(self, first: int, last: int) -> "Future[Chunk]":
        """Begin a chunk."""
        with self._connected():
            return self._executor.submit(work, self._sent, first, last)

    def result(self, future: "Future[Chunk]") -> "Chunk":
        """The chunk of a future that is done; raises WorkerDied if workers died over it."""
        with self._connected():
            error = future.exception()
        if isinstance(error, self._dask.KilledWorker):
            raise WorkerDied(str(error))
        if error is None or isinstance(error, ValueError):
            return future.result()
        why = str(error) if isinstance(error, SweepStopped) else f"{type(error).__name__}: {error}"
        raise SweepStopped(f"a worker of the cluster failed: {why}")

    def close(self) -> None:
        """Leave the cluster; what it still does for this sweep is given up."""
        self._client.close(timeout=_GOODBYE)
        logging.getLogger("distributed.client").setLevel(self._unmuted)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[None]:
        """Report a lost connection in one way, whatever it makes fail."""
        try:
            if self._client.status != "running":
                raise SweepStopped(_LOST)
            yield
        except (OSError, TimeoutError, CancelledError):
            raise SweepStopped(_LOST) from None
