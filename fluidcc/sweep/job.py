"""The job of a sweep: a verb over the blocks of a grid, one chunk of them at a time.

Its description as plain data identifies it: sweeps with equal descriptions have equal results.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from platform import python_version_tuple
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fluidcc.arrays import jax
from fluidcc.folders import SHOWING, fingerprint
from fluidcc.laws.own import Carried, files, origins, source_of
from fluidcc.result import is_interrupted
from fluidcc.scenario.files import dumps
from fluidcc.scenario.network import Network
from fluidcc.sweep.grid import Blocks, Grid
from fluidcc.sweep.result import Sweep, evaluate_point, tabulate_point
from fluidcc.sweep.table import join, memory_of, table_of, to_bytes, with_outcome

GRID_VERBS = {
    "fluidcc.analysis.stability_map.stability_map": 16384,
    "fluidcc.sweep.simulate_map.simulate_map": 256,
}
"""Verbs of a network and a grid, and the most points that each takes at once.

They compute points together, and start some from the results of neighbours, so that the results
depend on this number.
"""


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
        size = GRID_VERBS.get(name_of(verb), 1)
        return cls(Carried(files()), net, Blocks.of(grid, size), verb, code())

    @property
    def grid(self) -> Grid:
        """The grid."""
        return self.blocks.grid

    @property
    def is_pointwise(self) -> bool:
        """Whether the verb takes one point at a time."""
        return name_of(self.verb) not in GRID_VERBS

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
        compute_table = self._point if self.is_pointwise else self._block
        table = join([compute_table(block) for block in range(first, last)])
        count, failed = table["failed"].size, int(table["failed"].sum())
        return Chunk(first, last, count, failed, memory_of(table), to_bytes(table))

    def _point(self, number: int) -> xr.Dataset:
        changes, points = self.grid.point(number), len(self.grid)
        point = evaluate_point(self.net, changes, self.verb, points=points)
        if is_interrupted(point.result):
            raise KeyboardInterrupt
        return tabulate_point(point, number)

    def _block(self, block: int) -> xr.Dataset:
        result, numbers = self.verb(self.net, self.blocks.axes(block)), self.blocks.numbers(block)
        if isinstance(result, Sweep):
            return result.table(numbers)
        table = table_of(result.to_dataset(), numbers, tuple(self.grid.axes))
        status = table["status"].values
        return with_outcome(table, status, table["message"].values, status == "failed")


@functools.cache
def code() -> str:
    """Fingerprint of the code that the results of any verb depend on.

    It includes the version of Python, as last bits differ: from 3.12 on `sum` rounds less.
    """
    major, minor, _ = python_version_tuple()
    return f"{fingerprint(*SHOWING)} {major}.{minor}"


def name_of(verb: Callable[..., Any]) -> str:
    """Module and name of a function, or of the function inside a `functools.partial`."""
    inner = _inner(verb)
    return f"{getattr(inner, '__module__', '')}.{getattr(inner, '__qualname__', '')}"


def _inner(verb: Callable[..., Any]) -> Any:
    while isinstance(verb, functools.partial):
        verb = verb.func
    return verb


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
    if isinstance(value, Path):
        return str(value)
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
    inner = _inner(verb)
    source = "" if inner.__module__.startswith("fluidcc.") else source_of(inner)
    return {
        "scenario": dumps(net),
        "grid": {path: _plain(path, values) for path, values in axes.items()},
        "verb": name_of(verb),
        "options": options_of(verb),
        "laws": [[Path(origin.name).name, origin.digest] for origin in origins(net)],
        "code": hashlib.sha256(f"{code}{source}".encode()).hexdigest(),
    }
