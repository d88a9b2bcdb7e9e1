"""The job of a sweep: a verb over the blocks of a grid, one chunk of them at a time; and its
schedule: remaining blocks, sizes of chunks, and progress.

Its description as plain data identifies it: sweeps with equal descriptions have equal results.
"""

import dataclasses
import functools
import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from platform import python_version_tuple
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fluidcc.arrays import jax
from fluidcc.errors import SweepStopped
from fluidcc.folders import SHOWING, fingerprint, seal
from fluidcc.laws.own import Carried, files, origins, source_of
from fluidcc.result import is_interrupted
from fluidcc.scenario.files import dumps
from fluidcc.scenario.grid import Grid
from fluidcc.scenario.network import Network
from fluidcc.sweep.grid import GRID_VERBS, Blocks, inner, name_of
from fluidcc.sweep.points import evaluate_block, most_at_once
from fluidcc.sweep.result import Point, Sweep
from fluidcc.sweep.table import join, memory_of, table_of, tabulate, to_bytes, with_outcome


class Chunk(NamedTuple):
    """Results of consecutive blocks: number of points, of failed ones, and a netCDF file."""

    first: int
    last: int  # the block after the last one
    points: int
    failed: int
    memory: int  # bytes of the table that the file holds
    data: bytes


@dataclasses.dataclass(frozen=True)
class Job:
    """A verb at the points of a grid.

    `verb` is called with the network of a point, or with the network and the axes of a block if
    it is one of `GRID_VERBS`. `code` is the fingerprint of the package that began the sweep.
    """

    laws: Carried  # first, so that a pickle brings them before the network needs them
    net: Network
    blocks: Blocks
    verb: Callable[..., Any]
    code: str

    @classmethod
    def of(cls, net: Network, grid: Grid, verb: Callable[..., Any]) -> "Job":
        """The job with the grid cut into blocks for the verb."""
        blocks = Blocks.of(grid, most_at_once(net, verb, len(grid)))
        return cls(Carried(files()), net, blocks, verb, code())

    @property
    def grid(self) -> Grid:
        """The grid."""
        return self.blocks.grid

    def compute(self, first: int, last: int) -> Chunk:
        """Compute the blocks from `first` to the one before `last`.

        Raises ValueError if this process has other code than the process that began it, and
        KeyboardInterrupt if packet runs were interrupted.
        """
        if code() != self.code:
            raise ValueError(
                "this process has other versions of fluidcc, or of its numerical libraries, than "
                "the process that began the sweep: install the same versions in both"
            )
        blocks = range(first, last)
        if name_of(self.verb) in GRID_VERBS:
            table = join([self._block(block) for block in blocks])
        else:
            table = self._points(blocks)
        count, failed = table["failed"].size, int(table["failed"].sum())
        return Chunk(first, last, count, failed, memory_of(table), to_bytes(table))

    def _points(self, blocks: range) -> xr.Dataset:
        found: dict[int, Point] = {}
        for block in blocks:
            points = evaluate_block(self.net, self.blocks, block, self.verb)
            if any(is_interrupted(point.result) for point in points.values()):
                raise KeyboardInterrupt
            found |= points
        return tabulate([*found.values()], [*found])

    def _block(self, block: int) -> xr.Dataset:
        result, numbers = self.verb(self.net, self.blocks.axes(block)), self.blocks.numbers(block)
        if isinstance(result, Sweep):
            return result.table(numbers)
        table = table_of(result.to_xarray(), numbers, tuple(self.grid.axes))
        status = table["status"].values
        return with_outcome(table, status, table["message"].values, status == "failed")


@functools.cache
def code() -> str:
    """Fingerprint of the code that the results of any verb depend on.

    It includes the version of Python, as last bits differ: from 3.12 on `sum` rounds less.
    """
    major, minor, _ = python_version_tuple()
    return f"{fingerprint(*SHOWING)} {major}.{minor}"


def options_of(verb: Callable[..., Any]) -> dict[str, Any]:
    """Options of a `functools.partial`, as plain data.

    Raises ValueError for a verb without a name, or an option that is not a plain value, as such a
    sweep could not be distinguished from another.
    """
    name, options = name_of(verb), {}
    if "<" in name or name.startswith(".") or name.endswith("."):
        raise ValueError(
            "verb: expected a function of a module, such as fc.equilibrium, or a functools.partial "
            f"of one, got {verb!r}: processes and files refer to it by its name"
        )
    while isinstance(verb, functools.partial):
        if verb.args:
            raise ValueError(f"verb: expected options by name, got {verb.args!r} without names")
        options = {k: _plain(k, v) for k, v in verb.keywords.items()} | options
        verb = verb.func
    return options


def _plain(name: str, value: Any) -> Any:
    """A value as JSON data; numbers keep all digits."""
    if isinstance(value, bool | int | str | None):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else repr(value)
    if isinstance(value, Mapping):
        return {str(k): _plain(name, v) for k, v in value.items()}
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return _plain(name, np.asarray(value).tolist())
    if isinstance(value, list | tuple | range):
        return [_plain(name, v) for v in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(name, v) for v in value), key=repr)
    if isinstance(value, Path):  # of a saved state, if it is a file
        return f"{value} {seal(value.read_bytes())}" if value.is_file() else str(value)
    if inspect.isfunction(value) and value.__module__.startswith("fluidcc."):
        return value.__qualname__
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: _plain(name, getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"of": type(value).__qualname__, **fields}
    raise ValueError(
        f"verb: expected numbers, text, lists or dataclasses as options, got {name}={value!r}"
    )


def description(
    net: Network, axes: Mapping[str, tuple], verb: Callable[..., Any], code: str
) -> dict[str, Any]:
    """The data that the results depend on: scenario, grid, verb with its options, user-defined laws
    and code.
    """
    function = inner(verb)
    source = "" if function.__module__.startswith("fluidcc.") else source_of(function)
    return {
        "scenario": dumps(net),
        "grid": {path: _plain(path, values) for path, values in axes.items()},
        "verb": name_of(verb),
        "options": options_of(verb),
        "laws": [[Path(origin.name).name, origin.digest] for origin in origins(net)],
        "code": seal(code, source),
    }


_SECONDS = 10.0  # most work in a chunk, which an interruption may lose
_BYTES = 64_000_000  # most results in a chunk
_GROWTH = 8  # most growth from chunk to chunk, as the first ones also compile
_LEAST = 1.0  # seconds of work; a shorter chunk is not worth a file
_DEATHS = 2  # deaths of processes at the same block that stop the sweep


class Plan:
    """Hands out chunks of the remaining blocks, and takes finished ones.

    Chunks grow until one takes some seconds or its results are large, and shrink at the end, so
    that all workers end together.

    Parameters
    ----------
    job
        The job of the sweep.
    left
        Remaining blocks as pairs: the first, and the one after the last.
    workers
        Number of workers.
    take
        Called with each finished chunk.
    """

    def __init__(
        self, job: Job, left: Sequence[tuple[int, int]], workers: int,
        take: Callable[[Chunk], None],
    ) -> None:  # fmt: skip
        self.job, self.workers, self._take = job, workers, take
        self._left = list(reversed(left))
        self._size = 1
        self._deaths: dict[int, int] = {}
        self._started: dict[int, float] = {}

    def next(self) -> tuple[int, int] | None:
        """The blocks of the next chunk, as a pair; None if none are left."""
        if not self._left:
            return None
        first, last = self._left.pop()
        end = min(last, first + self._size)
        if end < last:
            self._left.append((end, last))
        self._started[first] = time.monotonic()
        return first, end

    def done(self, chunk: Chunk) -> None:
        """Take a finished chunk, and adapt the size of the next ones to its time and bytes."""
        self._take(chunk)
        count = chunk.last - chunk.first
        seconds_each = max((time.monotonic() - self._started.pop(chunk.first)) / count, 1e-9)
        left = sum(last - first for first, last in self._left)
        even = max(left / (2 * self.workers), _LEAST / seconds_each)
        by_bytes = _BYTES * count / max(len(chunk.data), 1)
        self._size = max(1, int(min(_SECONDS / seconds_each, by_bytes, _GROWTH * count, even)))

    def retry(self, first: int, last: int, why: str, *, guilty: bool = True) -> None:
        """Schedule blocks whose process died again, in halves, to find the block at fault.

        Raises SweepStopped if a single block has killed two processes. `guilty` is false if the
        process died before it started the blocks.
        """
        self._started.pop(first, None)
        middle = (first + last) // 2
        if not guilty:
            self._left.append((first, last))
            return
        if first < middle:
            self._left += [(middle, last), (first, middle)]
            return
        self._deaths[first] = self._deaths.get(first, 0) + 1
        if self._deaths[first] >= _DEATHS:
            points = self.job.blocks.axes(first)
            where = ", ".join(f"{path} = {_span(values)}" for path, values in points.items())
            raise SweepStopped(
                f"a process died {_DEATHS} times at {where} ({why}), perhaps from lack of memory: "
                "use fewer workers, or leave this out of the grid"
            )
        self._left.append((first, last))


def _span(values: tuple) -> str:
    return str(values[0]) if len(values) == 1 else f"{values[0]} ... {values[-1]}"
