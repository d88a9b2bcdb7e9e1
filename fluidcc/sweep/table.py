"""Results of points as one table: joined, as bytes, and laid out over a grid.

Joining is associative: a table of tables is the table of all their points. So results do not
depend on how points were put into chunks.
"""

import dataclasses
import io
import json
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import h5netcdf
import h5py
import numpy as np
import xarray as xr

from fluidcc.sweep.grid import Grid

POINT = "point"
OUTCOME = ("status", "message", "failed")
"""Columns that every table has; `failed` is 1 where there is no sound result."""

_LAYOUT = "layout"
_TEXT = 64  # bytes of a short text, beside the reference to it


class Column(NamedTuple):
    """One variable of all points: values (P, ...), the first axis the points, `dims` the others.

    `kind` tells where it comes from: a variable, a coordinate, or an attribute of results.
    """

    dims: tuple[str, ...]
    values: np.ndarray
    attrs: dict[str, Any]
    kind: Literal["variable", "coordinate", "attribute"]


@dataclasses.dataclass(frozen=True)
class Table:
    """Results of points: their numbers (P,), labels along dimensions, and columns by name."""

    numbers: np.ndarray
    labels: dict[str, np.ndarray]
    columns: dict[str, Column]

    @property
    def failed(self) -> int:
        """How many points have no sound result."""
        return int(np.sum(self.columns["failed"].values))

    @property
    def memory(self) -> int:
        """About how many bytes the values take."""
        values = [self.numbers, *(column.values for column in self.columns.values())]
        texts = sum(int(np.count_nonzero(v != "")) for v in values if v.dtype.kind == "O")
        return sum(v.nbytes for v in values) + _TEXT * texts


def outcome(status: Any, message: Any, failed: Any) -> dict[str, Column]:
    """The columns that every table has, of values (P,)."""
    values = (status, message, np.asarray(failed, np.int8))
    return {
        name: Column((), _plain(np.asarray(v)), {}, "variable")
        for name, v in zip(OUTCOME, values, strict=True)
    }


def table_of(data: xr.Dataset, numbers: np.ndarray, over: Sequence[str] = ()) -> Table:
    """A dataset as a table: of one point, or of those of a grid `over` these dimensions."""
    labels, columns, count = {}, {}, len(numbers)
    for name, variable in data.variables.items():
        if name in over:
            continue
        if name in data.dims:
            labels[str(name)] = _plain(variable.values)
            continue
        dims = tuple(str(d) for d in variable.dims if d not in over)
        spread = variable.set_dims({**{d: data.sizes[d] for d in over}, **variable.sizes})
        values = spread.transpose(*over, *dims).values
        kind = "coordinate" if name in data.coords else "variable"
        own = _plain(values.reshape(count, *values.shape[len(over) :]))
        columns[str(name)] = Column(dims, own, dict(variable.attrs), kind)
    for dim, size in data.sizes.items():
        if dim not in over:
            labels.setdefault(str(dim), np.arange(size))
    for name, value in data.attrs.items():
        if name not in OUTCOME and name not in columns:
            columns[str(name)] = Column((), _plain(np.array([value] * count)), {}, "attribute")
    return Table(np.asarray(numbers), labels, columns)


def _plain(values: np.ndarray) -> np.ndarray:
    """Text as objects, yes and no as 1 and 0."""
    kind = values.dtype.kind
    if kind in "UTS":
        return values.astype(object)
    return values.astype(np.int8) if kind == "b" else values


def join(tables: Sequence[Table]) -> Table:
    """One table of the points of all, in their order; NaN and empty text where one has nothing."""
    labels = {
        dim: _union([t.labels[dim] for t in tables if dim in t.labels])
        for dim in dict.fromkeys(dim for t in tables for dim in t.labels)
    }
    names = dict.fromkeys(name for t in tables for name in t.columns)
    numbers = np.concatenate([t.numbers for t in tables])
    return Table(numbers, labels, {name: _joined(name, tables, labels) for name in names})


def _union(every: list[np.ndarray]) -> np.ndarray:
    """All labels of a dimension, each once: numbers by size, others as they first appear."""
    first = every[0]
    if all(other is first or np.array_equal(other, first) for other in every):
        return first
    if any(labels.dtype.kind == "O" for labels in every):
        return np.array(list(dict.fromkeys(v for labels in every for v in labels)), object)
    return np.unique(np.concatenate(every))


def _joined(name: str, tables: Sequence[Table], labels: dict[str, np.ndarray]) -> Column:
    parts = [t.columns.get(name) for t in tables]
    known = [part for part in parts if part is not None]
    dims = known[0].dims
    if any(part.dims != dims for part in known):
        shapes = " and ".join(str(part) for part in dict.fromkeys(p.dims for p in known))
        raise ValueError(f"results have {name} in different shapes, {shapes}")
    shape = [len(labels[d]) for d in dims]
    gaps = len(known) < len(parts) or any(list(part.values.shape[1:]) != shape for part in known)
    dtype = _dtype([part.values.dtype for part in known], gaps)
    count = sum(len(t.numbers) for t in tables)
    values = np.full((count, *shape), "" if dtype.kind == "O" else np.nan if gaps else 0, dtype)
    start = 0
    for table, part in zip(tables, parts, strict=True):
        rows = slice(start, start := start + len(table.numbers))
        if part is not None:
            _put(values[rows], part.values, [(table.labels[d], labels[d]) for d in dims])
    return Column(dims, values, known[0].attrs, known[0].kind)


def _dtype(dtypes: list[np.dtype], gaps: bool) -> np.dtype:
    """The type that holds all values, and NaN where there are gaps."""
    if any(dtype.kind == "O" for dtype in dtypes):
        return np.dtype(object)
    found = np.result_type(*dtypes)
    return np.result_type(found, np.float64) if gaps and found.kind in "iu" else found


def _put(
    target: np.ndarray, values: np.ndarray, along: list[tuple[np.ndarray, np.ndarray]]
) -> None:
    """Put values (P, ...) into the target at the places of their labels among all of these."""
    if target.shape == values.shape:
        target[...] = values
        return
    places = [np.arange(len(target))]
    for own, all_ in along:
        at = {label: k for k, label in enumerate(all_.tolist())}
        places.append(np.array([at[label] for label in own.tolist()], int))
    target[np.ix_(*places)] = values


def to_bytes(table: Table) -> bytes:
    """The table as a netCDF file.

    Without xarray, which wants locks of the cluster where a worker of one writes.
    """
    layout = {
        "kinds": {name: column.kind for name, column in table.columns.items()},
        "attrs": {name: column.attrs for name, column in table.columns.items()},
    }
    text, buffer = h5py.string_dtype(), io.BytesIO()
    with h5netcdf.File(buffer, "w") as file:
        file.attrs[_LAYOUT] = json.dumps(layout)
        file.dimensions = {POINT: len(table.numbers)} | {d: len(v) for d, v in table.labels.items()}
        arrays = {POINT: ((POINT,), table.numbers)} | {
            d: ((d,), v) for d, v in table.labels.items()
        }
        arrays |= {name: ((POINT, *c.dims), c.values) for name, c in table.columns.items()}
        for name, (dims, values) in arrays.items():
            dtype = text if values.dtype.kind == "O" else values.dtype
            file.create_variable(name, dims, dtype, data=values)
    return buffer.getvalue()


def from_bytes(data: bytes) -> Table:
    """The table of a netCDF file as `to_bytes` writes it."""
    with h5netcdf.File(io.BytesIO(data), "r", decode_vlen_strings=True) as file:
        layout = json.loads(str(file.attrs[_LAYOUT]))
        found = {name: _plain(np.asarray(file.variables[name][...])) for name in file.variables}
        dims = {name: file.variables[name].dimensions[1:] for name in layout["kinds"]}
    columns = {
        name: Column(tuple(dims[name]), found[name], layout["attrs"][name], kind)
        for name, kind in layout["kinds"].items()
    }
    labels = {name: v for name, v in found.items() if name not in columns and name != POINT}
    return Table(found[POINT], labels, columns)


def dataset(grid: Grid, table: Table) -> xr.Dataset:
    """The points of a whole grid laid out over its axes, with what all have in common said once.

    Raises ValueError if every point failed.
    """
    columns = table.columns
    if set(columns) == set(OUTCOME) and len(table.numbers):
        first = int(np.argmin(table.numbers))
        raise ValueError(f"every point failed: {columns['message'].values[first]}")
    order = np.argsort(table.numbers)
    variables: dict[Any, Any] = {d: (d, labels) for d, labels in table.labels.items()}
    coords, attrs = [*grid.axes, *table.labels], {}
    for name, (dims, values, own, kind) in columns.items():
        common = None if kind == "variable" else _common(values)
        if kind == "attribute" and common is not None:
            attrs[name] = common.item()
            continue
        if kind == "coordinate":
            coords.append(name)
        if common is not None:
            variables[name] = (dims, common, own)
        else:
            laid = values[order].reshape(*grid.shape, *values.shape[1:])
            variables[name] = ((*grid.axes, *dims), laid, own)
    for path, values in grid.axes.items():
        variables[path] = (path, list(values), {"units": grid.units[path]})
    return xr.Dataset(variables, attrs=attrs).set_coords(coords)


def _common(values: np.ndarray) -> np.ndarray | None:
    """What all points agree in, gaps apart; None where they differ."""
    missing = values == "" if values.dtype.kind == "O" else values != values
    where = np.argmax(~missing, axis=0)
    first = np.take_along_axis(values, where[None], axis=0)
    return first[0, ...] if np.all(missing | (values == first)) else None
