"""Grids of parameters in blocks, results at their points, checks of their validity, and their
table: joined, as bytes, and laid out over the grid.

A table is a dataset along the dimension `point`, whose coordinate has the numbers of the points in
their grid. Joining is associative: so results do not depend on the division into chunks.
"""

import contextlib
import dataclasses
import enum
import io
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import h5netcdf
import h5py
import numpy as np
import xarray as xr

from fluidcc.programs import compiling
from fluidcc.result import Result, failure
from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import axes_of, replace
from fluidcc.scenario.reader import failed_at


@dataclasses.dataclass(frozen=True)
class Grid:
    """The product of values by path, the last axis fastest, with the unit of each path."""

    axes: Mapping[str, tuple]
    units: Mapping[str, str]

    @classmethod
    def of(cls, net: Network, over: Mapping[str, Iterable[Any]]) -> "Grid":
        """The grid of a network.

        Raises ScenarioError if a path, the unit of a value or the list of them is wrong.
        """
        return cls(*axes_of(net, over))

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return tuple(map(len, self.axes.values()))

    def __len__(self) -> int:
        return math.prod(self.shape)

    def point(self, number: int) -> dict[str, Any]:
        """The changes at the point of this number, by path."""
        indices = np.unravel_index(number, self.shape)
        return {path: self.axes[path][k] for path, k in zip(self.axes, indices, strict=True)}

    def points(self) -> Iterator[dict[str, Any]]:
        """The changes at every point, in their order."""
        for values in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))


@dataclasses.dataclass(frozen=True)
class Blocks:
    """A grid cut into boxes, `parts` along each axis; they depend only on the grid and a size.

    The results of a block do not depend on the worker, or on the other blocks of its chunk.
    """

    grid: Grid
    parts: tuple[int, ...]

    @classmethod
    def of(cls, grid: Grid, most: int) -> "Blocks":
        """Boxes of up to `most` points, of nearly equal size."""
        if most == 1:
            return cls(grid, grid.shape)
        parts = [1] * len(grid.shape)
        while math.prod(sides := list(map(_longest_side, grid.shape, parts))) > most:
            parts[int(np.argmax(sides))] += 1
        return cls(grid, tuple(parts))

    def __len__(self) -> int:
        return math.prod(self.parts)

    def _ends(self, block: int) -> list[tuple[int, int]]:
        """First index and the one after the last along each axis."""
        position = np.unravel_index(block, self.parts)
        return [
            (int(k) * n // p, (int(k) + 1) * n // p)
            for k, n, p in zip(position, self.grid.shape, self.parts, strict=True)
        ]

    def axes(self, block: int) -> dict[str, tuple]:
        """The part of each axis that a block covers."""
        pairs = zip(self.grid.axes.items(), self._ends(block), strict=True)
        return {path: values[low:high] for (path, values), (low, high) in pairs}

    def numbers(self, block: int) -> np.ndarray:
        """Numbers of a block's points in the grid, the last axis fastest."""
        sides = [np.arange(low, high) for low, high in self._ends(block)]
        indices = np.meshgrid(*sides, indexing="ij")
        return np.ravel_multi_index([k.ravel() for k in indices], self.grid.shape)


def _longest_side(size: int, parts: int) -> int:
    """Length of the longest of so many nearly equal parts."""
    return -(-size // parts)


POINT = "point"
OUTCOME = ("status", "message", "failed")
"""Variables that every table has; `failed` is 1 without a valid result."""

_ATTRIBUTE = "attribute of results"  # marks variables that are attributes of results
_LAYOUT = "layout"
_TEXT = 64  # bytes of a short string object, without the reference to it


def memory_of(table: xr.Dataset) -> int:
    """Approximate size of the values of a table [byte]."""
    values = [variable.values for variable in table.variables.values()]
    texts = sum(int(np.count_nonzero(v != "")) for v in values if v.dtype.kind == "O")
    return sum(v.nbytes for v in values) + _TEXT * texts


def with_outcome(table: xr.Dataset, status: Any, message: Any, failed: Any) -> xr.Dataset:
    """A table with the variables `OUTCOME` added, of values (P,)."""
    values = (status, message, np.asarray(failed, np.int8))
    return table.assign(
        {k: (POINT, _plain(np.asarray(v))) for k, v in zip(OUTCOME, values, strict=True)}
    )


def table_of(data: xr.Dataset, numbers: Any, over: Sequence[str] = ()) -> xr.Dataset:
    """A dataset as a table: of one point, or of the points of a grid `over` these dimensions."""
    count, sizes = len(numbers), data.sizes
    attributes = {
        name: xr.Variable((), value, {_ATTRIBUTE: 1}) for name, value in data.attrs.items()
        if name not in (*OUTCOME, *data.variables)
    }  # fmt: skip
    variables: dict[Any, Any] = {d: np.arange(n) for d, n in sizes.items() if d not in over}
    for name, variable in {**data.variables, **attributes}.items():
        if name in over:
            continue
        if name in sizes:
            variables[name] = _plain(variable.values)
            continue
        dims = [d for d in variable.dims if d not in over]
        expanded = variable.set_dims({**{d: sizes[d] for d in over}, **variable.sizes})
        values = expanded.transpose(*over, *dims).values
        rows = _plain(values.reshape(count, *values.shape[len(over) :]))
        variables[name] = ((POINT, *dims), rows, variable.attrs)
    coords = [name for name in data.coords if name not in over]
    return xr.Dataset({POINT: np.asarray(numbers), **variables}).set_coords(coords)


def _plain(values: np.ndarray) -> np.ndarray:
    """Text as objects, Booleans as 1 and 0."""
    kind = values.dtype.kind
    if kind in "UTS":
        return values.astype(object)
    return values.astype(np.int8) if kind == "b" else values


def join(tables: Sequence[xr.Dataset]) -> xr.Dataset:
    """One table of the points of all tables; missing values are NaN or empty text.

    NumPy concatenates tables of one structure ten times as fast as xarray.
    """
    by_structure: dict[Any, list[xr.Dataset]] = {}
    for table in tables:
        shapes = tuple((name, v.dims) for name, v in table.variables.items())
        labels = tuple(tuple(table[d].values.tolist()) for d in table.sizes if d != POINT)
        by_structure.setdefault((shapes, labels), []).append(table)
    stacked = [_stacked(same) for same in by_structure.values()]
    if len(stacked) == 1:
        return stacked[0]
    dims = [{name: v.dims for name, v in table.variables.items()} for table in stacked]
    for name in dict.fromkeys(name for by_name in dims for name in by_name):
        shapes = dict.fromkeys(by_name[name][1:] for by_name in dims if name in by_name)
        if len(shapes) > 1:
            listed = " and ".join(map(str, shapes))
            raise ValueError(f"{name} has different shapes at different points: {listed}")
    joined = xr.concat(
        [table.reset_coords() for table in stacked], POINT, data_vars="minimal", coords="minimal",
        compat="override", join="outer", combine_attrs="override",
    )  # fmt: skip
    texts = [name for name, v in joined.data_vars.items() if v.dtype.kind == "O"]
    coords = {name for table in stacked for name in table.coords}
    return joined.assign({name: joined[name].fillna("") for name in texts}).set_coords(coords)


def _stacked(tables: Sequence[xr.Dataset]) -> xr.Dataset:
    """One table of the points of tables of one structure."""
    first = tables[0]
    joined = {
        name: (v.dims, np.concatenate([t.variables[name].values for t in tables]), v.attrs)
        for name, v in first.variables.items() if POINT in v.dims
    }  # fmt: skip
    return xr.Dataset({**first.variables, **joined}).set_coords(list(first.coords))


def to_bytes(table: xr.Dataset) -> bytes:
    """The table as a netCDF file.

    It does not use xarray, which would request locks of the cluster in its workers.
    """
    layout = {
        "attrs": {name: v.attrs for name, v in table.variables.items()},
        "coords": list(table.coords),
    }
    text, buffer = h5py.string_dtype(), io.BytesIO()
    with h5netcdf.File(buffer, "w") as file:
        file.attrs[_LAYOUT] = json.dumps(layout)
        file.dimensions = dict(table.sizes)
        for name, v in table.variables.items():
            dtype = text if v.dtype.kind == "O" else v.dtype
            file.create_variable(name, v.dims, dtype, data=v.values)
    return buffer.getvalue()


def from_bytes(data: bytes) -> xr.Dataset:
    """The table of a netCDF file as `to_bytes` writes it."""
    with h5netcdf.File(io.BytesIO(data), "r", decode_vlen_strings=True) as file:
        layout = json.loads(str(file.attrs[_LAYOUT]))
        variables = {
            name: (v.dimensions, _plain(np.asarray(v[...])), layout["attrs"][name])
            for name, v in file.variables.items()
        }
    return xr.Dataset(variables).set_coords(layout["coords"])


def dataset(grid: Grid, table: xr.Dataset) -> xr.Dataset:
    """The table of a complete grid laid out over its axes; values that all share are stored once.

    Raises ValueError if every point failed.
    """
    table = table.sortby(POINT)
    if set(table.data_vars) == set(OUTCOME) and table.sizes[POINT]:
        raise ValueError(f"every point failed: {table['message'].values[0]}")
    variables: dict[Any, Any] = {}
    coords, attrs = [*grid.axes, *(name for name in table.coords if name != POINT)], {}
    for name, variable in table.drop_vars(POINT).variables.items():
        if POINT not in variable.dims:
            variables[name] = variable
            continue
        dims, attributes, values = variable.dims[1:], dict(variable.attrs), variable.values
        attribute = attributes.pop(_ATTRIBUTE, None)
        common = _common(values) if attribute or name in table.coords else None
        if attribute and common is not None:
            attrs[name] = common.item()
        elif common is not None:
            variables[name] = (dims, common, attributes)
        else:
            gridded = values.reshape(*grid.shape, *values.shape[1:])
            variables[name] = ((*grid.axes, *dims), gridded, attributes)
    for path, values in grid.axes.items():
        variables[path] = (path, list(values), {"units": grid.units[path]})
    return xr.Dataset(variables, attrs=attrs).set_coords(coords)


def _common(values: np.ndarray) -> np.ndarray | None:
    """The values that all points share, except where missing; None if points differ."""
    missing = values == "" if values.dtype.kind == "O" else values != values
    index = np.argmax(~missing, axis=0)
    first = np.take_along_axis(values, index[None], axis=0)
    return first[0, ...] if np.all(missing | (values == first)) else None


@dataclasses.dataclass(frozen=True)
class Point:
    """One point of a sweep: its changes, its result, and the error message if it failed."""

    set: Mapping[str, Any]
    result: Any = None
    message: str = ""

    def describe(self) -> str:
        """The changes of a failed point and its error, in one line."""
        return failed_at(self.set, self.message)

    def to_dict(self) -> dict[str, Any]:
        """The result's dictionary with the changes under `set`."""
        if self.result is None:
            return {"set": dict(self.set), "status": "failed", "message": self.message}
        return {"set": dict(self.set), **self.result.to_dict()}

    @property
    def status(self) -> str:
        """The status of the result; `failed` if there is no result."""
        if self.result is None:
            return "failed"
        status = getattr(getattr(self.result, "fluid", self.result), "status", "")
        return status.name if isinstance(status, enum.IntEnum) else str(status)

    @property
    def why(self) -> str:
        """The error message, or the message of a valid result."""
        return self.message or str(getattr(self.result, "message", ""))


_MANY = 16  # points, from which on compiled equilibria are faster


def evaluate_point(
    net: Network, changes: dict[str, Any], verb: Callable[[Network], Any], *, points: int = 1
) -> Point:
    """Call a verb at the point with these changes, one of `points`; an error becomes its message.

    Raises MemoryError if the machine has no memory left, as the point may succeed another time.
    """
    try:
        with compiling() if points >= _MANY else contextlib.nullcontext():
            result = verb(replace(net, changes))
    except Exception as error:  # an error at one point must not end the sweep
        if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
            raise MemoryError(f"no memory left: {error}") from None
        return Point(changes, None, str(error) or type(error).__name__)
    return Point(changes, result, failure(result))


@dataclasses.dataclass(frozen=True)
class Sweep(Result):
    """Results over a grid; `points` in the order of the grid, the last axis fastest.

    Examples
    --------
    >>> import fluidcc as fc
    >>> curve = fc.sweep(fc.load("hollot2001/slow"), {"flow.n": [40, 60]}, fc.equilibrium)
    >>> [point.status for point in curve.points], curve.failed
    (['regular', 'regular'], ())
    """

    _view = "grids.SweepView"

    axes: Mapping[str, tuple]
    units: Mapping[str, str]
    points: tuple[Point, ...]

    @property
    def failed(self) -> tuple[Point, ...]:
        """The points without a valid result."""
        return tuple(p for p in self.points if p.message)

    def to_dict(self) -> dict[str, Any]:
        """All points as plain values."""
        return {"points": [p.to_dict() for p in self.points]}

    def to_dataset(self) -> xr.Dataset:
        """All points in one dataset with the axes as dimensions, NaN at points that failed.

        Raises ValueError if every point failed.
        """
        return dataset(Grid(self.axes, self.units), self.table(np.arange(len(self.points))))

    def table(self, numbers: np.ndarray) -> xr.Dataset:
        """All points as one table; `numbers` (P,) are their indices in a grid."""
        return join([tabulate_point(p, k) for p, k in zip(self.points, numbers, strict=True)])

    def __repr__(self) -> str:
        lines = [f"Sweep of {len(self.points)} points over {', '.join(self.axes)}"]
        lines += [f"  {p.describe()}" for p in self.failed]
        return "\n".join(lines)


def tabulate_point(point: Point, number: Any) -> xr.Dataset:
    """A point of a sweep as a table."""
    data = xr.Dataset() if point.result is None else point.result.to_dataset()
    return with_outcome(
        table_of(data, [number]), [point.status], [point.why], [bool(point.message)]
    )
