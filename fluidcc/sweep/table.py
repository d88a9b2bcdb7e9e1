"""Results at the points of a grid as a table: joined, as bytes, and laid out over the grid.

A table is a dataset along the dimension `POINT`, whose coordinate has the numbers of the points in
their grid. Joining is associative: so results do not depend on the division into chunks.
"""

import io
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import h5netcdf
import h5py
import numpy as np
import xarray as xr

from fluidcc.quantities import about, about_parameter, known
from fluidcc.results.export import LISTS
from fluidcc.scenario.grid import Grid

if TYPE_CHECKING:
    from fluidcc.sweep.result import Point

POINT = "grid_point"  # no dimension of a result
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
        {k: (POINT, _plain(np.asarray(v)), about(k)) for k, v in zip(OUTCOME, values, strict=True)}
    )


def table_of(data: xr.Dataset, numbers: Any, over: Sequence[str] = ()) -> xr.Dataset:
    """A dataset as a table: of one point, or of the points of a grid `over` these dimensions."""
    count, sizes = len(numbers), data.sizes
    variables: dict[Any, Any] = {
        d: (d, np.arange(n), known(str(d))) for d, n in sizes.items() if d not in over
    }
    for name, variable in {**data.variables, **_attributes(data)}.items():
        if name in over:
            continue
        if name in sizes:
            variables[name] = (name, _plain(variable.values), variable.attrs)
            continue
        dims = [d for d in variable.dims if d not in over]
        expanded = variable.set_dims({**{d: sizes[d] for d in over}, **variable.sizes})
        values = expanded.transpose(*over, *dims).values
        rows = _plain(values.reshape(count, *values.shape[len(over) :]))
        variables[name] = ((POINT, *dims), rows, variable.attrs)
    coords = [name for name in data.coords if name not in over]
    return xr.Dataset({POINT: np.asarray(numbers), **variables}).set_coords(coords)


def _attributes(data: xr.Dataset) -> dict[Any, xr.Variable]:
    """The attributes of a dataset, without the outcome, as variables."""
    return {
        name: xr.Variable((), value, {_ATTRIBUTE: 1, **known(str(name))})
        for name, value in data.attrs.items()
        if name not in (*OUTCOME, *data.variables)
    }


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
        variables[path] = (path, list(values), about_parameter(path, grid.units[path]))
    return xr.Dataset(variables, attrs=attrs).set_coords(coords)


def _common(values: np.ndarray) -> np.ndarray | None:
    """The values that all points share, except where missing; None if points differ."""
    missing = values == "" if values.dtype.kind == "O" else values != values
    index = np.argmax(~missing, axis=0)
    first = np.take_along_axis(values, index[None], axis=0)
    return first[0, ...] if np.all(missing | (values == first)) else None


def tabulate(points: Sequence["Point"], numbers: Any) -> xr.Dataset:
    """Points of a sweep as a table; points without a result have its outcome alone.

    Values of one structure are stacked at once, as each dataset takes xarray a millisecond.
    """
    by_structure: dict[Any, list[tuple[int, xr.Dataset, dict[Any, xr.Variable]]]] = {}
    for k, point in enumerate(points):
        data = xr.Dataset() if point.result is None else point.result.to_xarray()
        data = data.drop_dims(LISTS, errors="ignore")
        variables = {**data.variables, **_attributes(data)}
        labels = tuple((d, *data[d].values.tolist()) for d in data.sizes)
        dims = tuple((name, v.dims) for name, v in variables.items())
        by_structure.setdefault((labels, dims, (*data.coords,)), []).append((k, data, variables))
    tables = []
    for same in by_structure.values():
        own, (first, *_), rows = zip(*same, strict=True)
        stacked: dict[Any, Any] = {POINT: np.asarray(numbers)[list(own)]}
        stacked |= {
            d: (d, _plain(first[d].values), first[d].attrs or known(str(d))) for d in first.sizes
        }
        for name in (name for name in rows[0] if name not in stacked):
            values = np.stack([_plain(row[name].values) for row in rows])
            stacked[name] = ((POINT, *rows[0][name].dims), values, rows[0][name].attrs)
        outcomes = [(p.status, p.why, bool(p.message)) for p in (points[k] for k in own)]
        table = xr.Dataset(stacked).set_coords(list(first.coords))
        tables.append(with_outcome(table, *zip(*outcomes, strict=True)))
    return join(tables)
