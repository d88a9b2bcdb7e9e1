"""Workers of a sweep: processes of this machine, or workers of a Dask cluster. They compute chunks;
the calling process writes the results.

Processes are spawned, as threads of JAX do not survive a fork. Nothing heavy is imported here, as
a new process must set the folder of compiled code before it imports JAX.

Workers of a cluster need the same version of fluidcc and of its numerical libraries as the calling
process; this is checked. Each must be a separate process (Dask spawns them by default; forking
would break threads of JAX), best one for each core, with one thread::

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

If workers share an accelerator, each needs a fraction of its memory, which JAX reads when it
starts: ``export XLA_PYTHON_CLIENT_MEM_FRACTION=0.2`` for four of them (default: 0.75 each).
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

from fluidcc.errors import SweepStopped, extra
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
_PATIENCE = 30.0  # s to wait for a scheduler, and for a first worker
_CLOSE_TIMEOUT = 1.0  # s
_LOST = "the connection to the scheduler is lost: start it, and run the same again"


class WorkerDied(Exception):
    """A worker died in the middle of a chunk, or, if not `guilty`, before it began."""

    def __init__(self, why: str, guilty: bool = True) -> None:
        super().__init__(why)
        self.guilty = guilty


class Processes:
    """Workers that are processes of this machine; one that dies is replaced.

    Each has its own executor: an executor that loses a process loses all its chunks, and cannot
    name the chunk at fault.

    Raises ValueError if the job cannot be pickled, SweepStopped if processes die repeatedly.
    """

    def __init__(self, job: "Job", workers: int) -> None:
        self.workers = workers
        self._idle: list[_Process] = []
        self._busy: dict[Future[Chunk], _Process] = {}
        self._failed_starts = 0
        try:
            self._pickled = pickle.dumps(job)
        except Exception as error:
            raise ValueError(
                f"verb: expected a function that a new process can import, got {job.verb!r} "
                f"({error}); workers=0 stays in this process"
            ) from None

    def submit(self, first: int, last: int) -> "Future[Chunk]":
        """Start a chunk: the blocks from `first` to the one before `last`."""
        process = self._idle.pop() if self._idle else _Process(self._pickled, self.workers)
        future = process.executor.submit(work, self._pickled, first, last)
        self._busy[future] = process
        return future

    def result(self, future: "Future[Chunk]") -> "Chunk":
        """The chunk of a future that is done; raises WorkerDied if its process died."""
        process, error = self._busy.pop(future), future.exception()
        if not isinstance(error, BrokenProcessPool):
            self._idle.append(process)
            process.ready.result()
            return future.result()
        code, started = process.end(), process.ready.exception() is None
        self._failed_starts += not started
        if self._failed_starts > self.workers:
            raise SweepStopped(_NO_START.format(code))
        raise WorkerDied(f"exit code {code}", started)

    def close(self) -> None:
        """End all processes, even busy ones."""
        for process in (*self._idle, *self._busy.values()):
            process.end()


class _Process:
    """A process with its executor."""

    def __init__(self, pickled: bytes, workers: int) -> None:
        with _environment(workers):
            self.executor = ProcessPoolExecutor(1, mp_context=_SPAWN)
            self.ready = self.executor.submit(_begin, pickled)
        (self._process,) = self.executor._processes.values()

    def end(self) -> int | None:
        """End the process if it is alive, and return its exit code."""
        self._process.terminate()
        self.executor.shutdown(cancel_futures=True)
        return self._process.exitcode


@contextlib.contextmanager
def _environment(workers: int) -> Iterator[None]:
    """Environment in which processes start with their share of the threads, unless it is set.

    Linear algebra libraries get one thread, as the matrices are small.
    """
    defaults: dict[str, str] = dict.fromkeys(_LIBRARIES, "1")
    defaults["FLUIDCC_THREADS"] = str(max(1, processors() // workers))
    defaults["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{0.75 / workers:.3f}"  # of an accelerator
    # the tracker that frees semaphores of a killed sweep would warn that it does
    defaults["PYTHONWARNINGS"] = "ignore::UserWarning:multiprocessing.resource_tracker"
    added = {name: text for name, text in defaults.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def _begin(pickled: bytes) -> None:
    """Prepare this process for the chunks of a job."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it, and ends this one
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        _job(pickled)
    except Exception as error:
        raise ValueError(f"verb: a new process cannot import it: {error}") from None


def work(pickled: bytes, first: int, last: int) -> "Chunk":
    """Compute a chunk of a pickled job in a worker.

    Raises ValueError for wrong use, and SweepStopped with the message of any other error.
    """
    try:
        return _job(pickled).compute(first, last)
    except ValueError as error:
        raise ValueError(str(error)) from None  # a subclass may not unpickle
    except BaseException as error:
        raise SweepStopped(f"{type(error).__name__}: {error}") from None


@functools.lru_cache(maxsize=1)
def _job(pickled: bytes) -> "Job":
    """The job of a sweep, unpickled once; this imports JAX."""
    return pickle.loads(pickled)


def end_with_parent() -> None:
    """Wait until the parent process has ended in any way, then exit."""
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
        # some kilobytes, sent with each chunk: scattered data are lost with their workers
        self._pickled = cloudpickle.dumps(job)
        logger = logging.getLogger("distributed.client")
        self._log_level = logger.level
        logger.setLevel(logging.CRITICAL + 1)  # a lost connection is reported once, as an error
        try:
            self._client = self._dask.Client(scheduler, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            logger.setLevel(self._log_level)
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
        """Number of chunks that can run at a time now; raises SweepStopped without a connection."""
        with self._connected():
            return max(1, sum(self._client.nthreads().values()))

    def submit(self, first: int, last: int) -> "Future[Chunk]":
        """Start a chunk: the blocks from `first` to the one before `last`."""
        with self._connected():
            return self._executor.submit(work, self._pickled, first, last)

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
        """Disconnect from the cluster, which cancels the chunks of this sweep."""
        self._client.close(timeout=_CLOSE_TIMEOUT)
        logging.getLogger("distributed.client").setLevel(self._log_level)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[None]:
        """Turn every error of a lost connection into SweepStopped."""
        try:
            if self._client.status != "running":
                raise SweepStopped(_LOST)
            yield
        except (OSError, TimeoutError, CancelledError):
            raise SweepStopped(_LOST) from None
