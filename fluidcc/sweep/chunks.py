"""A verb over a grid in chunks: processes or a cluster compute the missing blocks, which are then
joined.
"""

import dataclasses
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import xarray as xr

from fluidcc import memory
from fluidcc.errors import SweepStopped
from fluidcc.machine import processors
from fluidcc.progress import Clock, report
from fluidcc.result import REASONED, Result, plain
from fluidcc.results.export import provenance
from fluidcc.scenario.grid import Grid
from fluidcc.scenario.network import Network
from fluidcc.scenario.reader import Outcome
from fluidcc.sweep.job import Chunk, Job, Plan, description
from fluidcc.sweep.result import Point, printed
from fluidcc.sweep.store import (
    Folder,
    InMemory,
    check,
    differences,
    is_busy,
    manifest_in,
    missing_blocks,
    open_folder,
)
from fluidcc.sweep.table import dataset, memory_of, table_of, with_outcome
from fluidcc.sweep.workers import Cluster, Processes, WorkerDied

_COPIES = 2  # of a table at a time: its parts and the joined table, or that and its layout
_POLL = 1.0  # s between updates of the number of workers
_LEAST = memory_of(with_outcome(table_of(xr.Dataset(), [0]), [""], [""], [1]))  # bytes


@dataclasses.dataclass(frozen=True)
class SweepData(Result):
    """Results of a sweep in chunks, as labelled arrays over the grid.

    `axes` has values by path, `units` their units; `data` is what `to_xarray` gives, and
    `net` the network that was changed.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.load("hollot2001/slow")
    >>> data = fc.sweep(net, {"flow.n": [40, 60]}, fc.equilibrium, workers=0)
    >>> data.axes, data.to_xarray()["window"].dims
    ({'flow.n': (40, 60)}, ('flow.n', 'flow'))
    """

    _view = "grids.SweepDataView"

    axes: Mapping[str, tuple]
    units: Mapping[str, str]
    data: xr.Dataset = dataclasses.field(repr=False)
    net: Network | None = dataclasses.field(default=None, repr=False)

    def to_xarray(self) -> xr.Dataset:
        """All points in one dataset with the axes as dimensions.

        Numbers are NaN at points without a result; `failed` is 1 at points without a valid one,
        `message` has the reason. Attributes are the scenario, the command, versions, verb, its
        options and seeds.
        """
        return self.data

    def to_dict(self) -> dict[str, Any]:
        """The rows of `to_pandas` as plain values."""
        return {"points": plain(self.to_pandas().to_dict("records"))}

    @property
    def failed(self) -> tuple[Point, ...]:
        """The points without a valid result."""
        return tuple(Point(k.set, None, k.message) for k in self._outcomes(self.data["failed"]))

    @property
    def reasons(self) -> tuple[Outcome, ...]:
        """The points that lack numbers, as those of a `Sweep`: `set`, `status`, `message`."""
        return tuple(self._outcomes(self.data["status"].isin(REASONED)))

    def _outcomes(self, chosen: xr.DataArray) -> list[Outcome]:
        """The points that are chosen, not 0, in the order of the grid."""
        grid = Grid(self.axes, self.units)
        status, message = (self.data[name].values.ravel() for name in ("status", "message"))
        numbers = chosen.values.ravel().nonzero()[0].tolist()
        return [Outcome(grid.point(k), str(status[k]), str(message[k])) for k in numbers]

    def __repr__(self) -> str:
        return printed(self, self.failed)


def sweep_in_chunks(
    net: Network,
    grid: Grid,
    verb: Callable[..., Any],
    *,
    folder: Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    command: str | None = None,
) -> SweepData:
    """Compute the missing points of a sweep and join all; the options are those of `sweep`."""
    if not len(grid):
        raise ValueError(f"over: expected at least one value for each path, got {grid.shape}")
    _require_memory(len(grid), _LEAST)
    job, manifest = _prepare_job(net, grid, verb, command)
    in_memory = nullcontext((InMemory(manifest), []))
    with in_memory if folder is None else open_folder(folder, manifest) as (store, finished):
        _require_memory(len(grid), max((c.memory / c.points for c in finished), default=0.0))
        clock = Clock(len(grid), sum(c.points for c in finished), sum(c.failed for c in finished))

        def take(chunk: Chunk) -> None:
            store.add(chunk)
            report(clock.count(chunk.points, chunk.failed))
            try:
                _require_memory(len(grid), chunk.memory / chunk.points)
            except ValueError as error:
                raise SweepStopped(str(error)) from None

        if left := missing_blocks(finished, len(job.blocks)):
            count = processors() if workers is None else workers
            plan = Plan(job, left, max(count, 1), take)
            try:
                _perform(job, plan, count, scheduler)
            except SweepStopped as error:
                done = f"{clock.done} of {clock.total} points are done"
                raise SweepStopped(f"{error}; {done}, {store.describe()}") from error.__cause__
        data = dataset(grid, store.table())
        origin = store.manifest["origin"]
    return SweepData(grid.axes, grid.units, data.assign_attrs({**data.attrs, **origin}), net)


def _require_memory(points: int, row: float) -> None:
    """Raise ValueError if the table of all points, `row` bytes each, does not fit in memory.

    A row of that table is at least as long as the longest row of any chunk. Only the memory of this
    machine counts: a query of an accelerator would take some of its memory from the workers.
    """
    memory.require(
        _COPIES * row * points,
        f"a table of {points} points",
        "take fewer points, or split the sweep into several, with a folder each",
        memory.host(),
    )


def _perform(job: Job, plan: Plan, workers: int, scheduler: str | None) -> None:
    """Run a plan on a cluster, in processes, or, with 0 `workers`, in this process."""
    if scheduler is not None:
        pool = Cluster(job, scheduler)
    elif workers:
        pool = Processes(job, workers)
    else:
        while (task := plan.next()) is not None:
            plan.done(job.compute(*task))
        return
    running: dict[Future[Chunk], tuple[int, int]] = {}
    with closing(pool):
        while True:
            plan.workers = pool.workers
            while len(running) < plan.workers and (task := plan.next()):
                running[pool.submit(*task)] = task
            if not running:
                return
            for future in wait(running, _POLL, FIRST_COMPLETED).done:
                task = running.pop(future)
                try:
                    chunk = pool.result(future)
                except WorkerDied as death:
                    plan.retry(*task, str(death), guilty=death.guilty)
                else:
                    plan.done(chunk)


def _prepare_job(
    net: Network, grid: Grid, verb: Callable[..., Any], command: str | None
) -> tuple[Job, dict[str, Any]]:
    """The job of a sweep, and its manifest: what identifies the sweep, and its provenance."""
    job = Job.of(net, grid, verb)
    sweep = description(net, grid.axes, verb, job.code)
    options = sweep["options"]
    command = shlex.join(sys.argv) if command is None else command
    origin = provenance(net, command) | {
        "verb": sweep["verb"], "options": json.dumps(options),
        "seeds": json.dumps(options["seeds"]) if "seeds" in options else "",
    }  # fmt: skip
    return job, {"sweep": sweep, "origin": origin}


@dataclasses.dataclass(frozen=True)
class SweepStatus:
    """Progress of the sweep in a folder: points that are done, failed (of these), and missing.

    `busy` is true while a process works on it.

    Examples
    --------
    >>> import fluidcc as fc
    >>> import tempfile
    >>> net = fc.load("hollot2001/slow")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = fc.sweep(net, {"flow.n": [40, 60]}, fc.equilibrium, folder=folder, workers=0)
    ...     status = fc.sweep_status(folder)
    >>> status.done, status.missing, status.busy
    (2, 0, False)
    """

    folder: Path
    total: int
    done: int
    failed: int
    busy: bool
    origin: Mapping[str, str]

    @property
    def missing(self) -> int:
        """Points that are not done yet."""
        return self.total - self.done

    @property
    def working(self) -> str:
        """A phrase for `busy`."""
        return "a process works on it" if self.busy else "no process works on it"

    def check(self, net: Network, grid: Grid, verb: Callable[..., Any]) -> None:
        """Raise ValueError with the differences if the folder has another sweep than this."""
        check(self.folder, *self._both(net, grid, verb))

    def asks_another(self, net: Network, grid: Grid, verb: Callable[..., Any]) -> bool:
        """Whether the folder has a sweep that asks for something else, by whatever code."""
        return not {"code", "laws"}.issuperset(differences(*self._both(net, grid, verb)))

    def _both(self, net: Network, grid: Grid, verb: Callable[..., Any]) -> tuple[Any, Any]:
        return _require_manifest(self.folder), _prepare_job(net, grid, verb, "")[1]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        numbers = {name: getattr(self, name) for name in ("total", "done", "failed", "missing")}
        return {"folder": str(self.folder), **numbers, "busy": self.busy, **self.origin}

    def __repr__(self) -> str:
        return (
            f"SweepStatus: {self.done} of {self.total} points done, {self.failed} of them failed, "
            f"{self.missing} missing; {self.working}"
        )


def sweep_status(folder: str | os.PathLike[str]) -> SweepStatus:
    """Progress of the sweep in a folder; it runs and changes nothing.

    Raises ValueError if there is no sweep in the folder.

    Returns
    -------
    SweepStatus
        Counts of points: `total`, `done`, `failed`, `missing`; and whether it is `busy`.

    Examples
    --------
    >>> import fluidcc as fc
    >>> import tempfile
    >>> net = fc.load("hollot2001/slow")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = fc.sweep(net, {"flow.n": [40, 60]}, fc.equilibrium, folder=folder, workers=0)
    ...     print(fc.sweep_status(folder))
    SweepStatus: 2 of 2 points done, 0 of them failed, 0 missing; no process works on it
    """
    path = Path(folder)
    store = Folder(path, _require_manifest(path))
    finished = store.chunks()
    return SweepStatus(
        path, store.points, sum(c.points for c in finished), sum(c.failed for c in finished),
        is_busy(path), store.manifest["origin"],
    )  # fmt: skip


def _require_manifest(folder: Path) -> Mapping[str, Any]:
    """The manifest in a folder; raises ValueError if no sweep was begun there."""
    manifest = manifest_in(folder) if folder.is_dir() else None
    if manifest is None:
        raise ValueError(f"folder: expected one with a sweep in it, got '{folder}'")
    return manifest
