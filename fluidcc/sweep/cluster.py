"""Chunks done by the workers of a Dask cluster; what they return is written here, by one writer.

Workers need the same fluidcc as the one that asks, with the same versions of what it computes with;
that is checked. They are processes of their own (Dask spawns them, and must not be made to fork, as
threads of JAX do not survive that), best one for each core, with one thread::

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
import logging
import re
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING

from fluidcc.errors import SweepStopped
from fluidcc.extras import extra
from fluidcc.sweep.processes import WorkerDied, work

if TYPE_CHECKING:
    from fluidcc.sweep.job import Chunk, Job

_ADDRESS = re.compile(r"(\w+://)?[^/]+:\d+|inproc://.+")
_PATIENCE = 30.0  # s until there must be a scheduler, and a worker
_GOODBYE = 1.0  # s
_LOST = "the connection to the scheduler is lost: start it, and run the same again"


class Cluster:
    """Workers of a Dask scheduler, which replaces those that die.

    Raises MissingExtra without Dask, ValueError if there is no scheduler at this address, and
    SweepStopped if it or its workers are lost.
    """

    def __init__(self, job: "Job", scheduler: str) -> None:
        self._dask = extra("distributed", "cluster", what="a sweep on a cluster")
        cloudpickle = extra("cloudpickle", "cluster", what="a sweep on a cluster")
        if not _ADDRESS.fullmatch(scheduler):  # Dask would wait for a minute before it says so
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
        what = str(error) if isinstance(error, SweepStopped) else f"{type(error).__name__}: {error}"
        raise SweepStopped(f"a worker of the cluster says {what}")

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
