"""Chunks done by the workers of a Dask cluster; what they return is written here, by one writer.

Workers need the same fluidcc as the one that asks, with the same versions of what it computes with;
that is checked. They are processes of their own (Dask spawns them, and must not be told to fork, as
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
import functools
import logging
import pickle
import re
from collections.abc import Iterator
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from fluidcc.errors import SweepStopped
from fluidcc.extras import extra
from fluidcc.folders import keep_compiled

if TYPE_CHECKING:
    from fluidcc.sweep.job import Chunk, Job
    from fluidcc.sweep.plan import Plan

_ADDRESS = re.compile(r"(\w+://)?[^/]+:\d+|inproc://.+")
_PATIENCE = 30.0  # s until there must be a scheduler, and a worker
_POLL = 1.0  # s between looks at the connection
_LOST = "the connection to the scheduler is lost: start it, and run the same again"


def on_cluster(job: "Job", plan: "Plan", scheduler: str) -> None:
    """Do a plan by the workers of a Dask scheduler.

    Raises MissingExtra without Dask, ValueError if there is no scheduler at this address, and
    SweepStopped if it or its workers are lost.
    """
    distributed = extra("distributed", "cluster", what="a sweep on a cluster")
    cloudpickle = extra("cloudpickle", "cluster", what="a sweep on a cluster")
    if not _ADDRESS.fullmatch(scheduler):  # Dask would wait for a minute before it says so
        raise ValueError(
            "scheduler: expected the address of a Dask scheduler, such as tcp://host:8786, got "
            f"{scheduler!r}"
        )
    sent = cloudpickle.dumps(job)
    with _quiet():
        try:
            client = distributed.Client(scheduler, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ValueError(
                f"scheduler: expected the address of a Dask scheduler, got {scheduler!r} ({error})"
            ) from None
        try:
            _with_client(distributed, client, plan, sent)
        finally:
            client.close(timeout=_POLL)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what Dask logs of a connection that is lost, which is an error told once."""
    logger = logging.getLogger("distributed.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def _connected(client: Any) -> Iterator[None]:
    """What a lost connection raises is told in one way, whatever was asked meanwhile."""
    try:
        if client.status != "running":
            raise SweepStopped(_LOST)
        yield
    except (OSError, TimeoutError, CancelledError):
        raise SweepStopped(_LOST) from None


def _with_client(distributed: Any, client: Any, plan: "Plan", sent: bytes) -> None:
    _await_workers(client)
    running: dict[Any, tuple[int, int]] = {}
    while True:
        with _connected(client):
            plan.workers = max(1, sum(client.nthreads().values()))
            while len(running) < plan.workers and (task := plan.next()):
                # each brings the job, some kilobytes: what is scattered is lost with its holders
                running[client.submit(_done, sent, *task, pure=False)] = task
        if not running:
            return
        for future in _finished(distributed, client, list(running)):
            task = running.pop(future)
            with _connected(client):
                error = future.exception()
                chunk = future.result() if error is None else None
            if chunk is not None:
                plan.done(chunk)
            elif isinstance(error, distributed.KilledWorker):
                plan.lost(*task, str(error))
            elif isinstance(error, ValueError):
                raise error
            else:
                raise SweepStopped(f"a worker of the cluster says {type(error).__name__}: {error}")


def _await_workers(client: Any) -> None:
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError:
        raise SweepStopped(
            f"the scheduler has no workers: start some with `dask worker {client.scheduler.addr}`, "
            "and run the same again"
        ) from None


def _finished(distributed: Any, client: Any, running: list) -> list:
    """Those that ended, waited for; raises SweepStopped when the connection is lost."""
    while True:
        with _connected(client):
            ended = [future for future in running if future.done()]
            if any(future.status in ("cancelled", "lost") for future in ended):
                raise SweepStopped(_LOST)
            if ended:
                return ended
            with contextlib.suppress(TimeoutError, CancelledError), client.as_current():
                distributed.wait(running, timeout=_POLL, return_when="FIRST_COMPLETED")


def _done(sent: bytes, first: int, last: int) -> "Chunk":
    """A chunk, by a worker."""
    keep_compiled()
    return _job(sent).compute(first, last)


@functools.lru_cache(maxsize=1)
def _job(sent: bytes) -> "Job":
    """The job of a sweep, unpacked once."""
    return pickle.loads(sent)
