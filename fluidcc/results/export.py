"""Results out and in: JSON at full precision, netCDF and CSV with units, LaTeX, pictures, and
where they come from.
"""

import csv
import itertools
import json
import math
import os
import platform
import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fluidcc.errors import Fault, ScenarioError
from fluidcc.folders import seal, whole
from fluidcc.quantities import BY_UNIT, name_at
from fluidcc.result import WIDTH, Result, plain

if TYPE_CHECKING:
    import pandas
    import xarray

    from fluidcc.scenario.network import Network

_UNITLESS = ("", "1", BY_UNIT)  # in a heading

DATA = (".nc", ".csv", ".json", ".tex")
"""Endings of files with numbers or tables."""

PICTURES = (".png", ".pdf", ".svg")
"""Endings of files with a picture."""

_SCALES = {
    "bit/s": ((1e6, "Mbit/s"), (1e3, "kbit/s")),
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "\N{MICRO SIGN}s")),
}

ROWS = (
    "time", "phase", "quantity", "crossing", "vertex", "point", "parameter", "window", "seed",
    "reading",
)  # fmt: skip
"""Dimensions of results that run over the lines of a CSV file."""

LISTS = ("transfer", "scale")
"""Dimensions of lists beside the table of a result, which CSV files and sweeps do not have."""


def scaled(values: Sequence[float | None], unit: str) -> tuple[float, str]:
    """The factor and the unit in which these numbers read best: ``Mbit/s``, ``ms``."""
    sizes = [abs(v) for v in values if v is not None and math.isfinite(v)]
    largest = max(sizes, default=0.0)
    for factor, name in _SCALES.get(unit, ()):
        if largest >= factor:
            return factor, name
    return 1.0, unit


def with_unit(name: str, unit: str) -> str:
    """A heading or label with its unit, if there is one."""
    return name if unit in _UNITLESS else f"{name} [{unit}]"


def to_json(value: Any) -> str:
    """One JSON object, numbers at full precision."""
    return json.dumps(plain(value), allow_nan=False, ensure_ascii=False)


def provenance(net: "Network | None", command: str) -> dict[str, str]:
    """Attributes of a result file on its origin: scenario text, command, versions, and the files
    that user-defined laws are from.
    """
    from importlib.metadata import version

    from fluidcc.laws.own import origins
    from fluidcc.scenario.files import dumps

    laws = "\n".join(map(str, origins(net)))
    return {
        "scenario": "" if net is None else dumps(net),
        **({"laws": laws} if laws else {}),
        "command": command,
        "fluidcc": version("fluidcc"),
        "jax": version("jax"),
        "python": platform.python_version(),
    }


def save(
    result: Result,
    name: str | os.PathLike[str],
    *,
    net: "Network | None" = None,
    columns: Sequence[str] | None = None,
    command: str | None = None,
) -> None:
    """Write the file of `Result.save`; `command` is what the user typed, by default the process's.

    A sweep in chunks has its own origin: that of the chunks.
    """
    path = Path(name)
    if path.suffix not in DATA + PICTURES:
        expected = f"a file that ends in {', '.join(DATA + PICTURES)}"
        raise ScenarioError([Fault("save", "", expected, f"'{path}'")])
    if columns is not None and path.suffix != ".tex":
        raise ScenarioError([Fault("save", "columns", "a file that ends in .tex", f"'{path}'")])
    if path.suffix in PICTURES:
        from fluidcc.results.plot import compose, style

        figure = compose([result], WIDTH, net)
        with style(), whole(path) as part:
            figure.savefig(part)
        return
    own = getattr(getattr(result, "data", None), "attrs", {})
    origin = (
        own
        if "command" in own
        else provenance(
            network_of(result) if net is None else net,
            shlex.join(sys.argv) if command is None else command,
        )
    )
    if path.suffix == ".tex":
        from fluidcc.results import tex

        tex.write([*result.tables(), *result.view.details()], path, origin, columns)
    elif path.suffix == ".json":
        with whole(path) as part:
            part.write_text(to_json({**result.to_dict(), "provenance": origin}), encoding="utf-8")
    else:
        data = _series_or_all(result) if path.suffix == ".csv" else result.to_xarray()
        write(data, path, _rows(result), origin)


def network_of(result: Any) -> "Network | None":
    """The network that a result, or the equilibrium or the trajectory in it, keeps."""
    from fluidcc.scenario.network import Network

    own = (getattr(result, name, None) for name in ("asked", "net"))
    parts = (getattr(result, name, None) for name in ("equilibrium", "fluid", "stability", "run"))
    found = (network_of(part) for part in parts if isinstance(part, Result))
    return next((net for net in (*own, *found) if isinstance(net, Network)), None)


def _series_or_all(result: Result) -> "xarray.Dataset":
    series = getattr(result, "series", None)
    return result.to_xarray() if series is None else series


def _rows(result: Result) -> Sequence[str]:
    """Dimensions that run over the lines of a table: those of one result, after those of a grid."""
    return (*getattr(result, "axes", ()), *ROWS)


def to_pandas(result: Result) -> "pandas.DataFrame":
    """The table of `Result.to_pandas`."""
    import pandas

    data = _series_or_all(result)
    table = columns(data, [d for d in _rows(result) if d in data.dims])
    found = pandas.DataFrame({column.name: column.values for column in table})
    found.attrs = {
        **data.attrs,
        "units": {column.name: column.unit for column in table},
        "meaning": {column.name: column.meaning for column in table},
    }
    return found


def load_result(path: str | os.PathLike[str]) -> "xarray.Dataset":
    """The numbers of a result that `save`, or the option ``--out``, wrote as netCDF.

    Parameters
    ----------
    path
        The file, which ends in ``.nc``.

    Returns
    -------
    xarray.Dataset
        What `to_xarray` of the result gave, with its origin in `attrs`: ``scenario`` (text that
        `loads` reads), ``command``, ``fluidcc``, ``jax``, ``python`` (versions), and ``digest``, by
        which the numbers are known to be those that were written.

    Raises
    ------
    ScenarioError
        If there is no such file, it is no netCDF file of fluidcc, or its numbers do not match their
        digest.

    Examples
    --------
    >>> import fluidcc as fc
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "rest.nc"
    ...     fc.equilibrium(fc.load("hollot2001/slow")).save(file)
    ...     found = fc.load_result(file)
    >>> float(found["queue"].sel(link="bottleneck").round(1)), fc.loads(found.scenario).title
    (194.4, 'TCP over RED, slow filter')
    """
    import xarray as xr

    def refused(expected: str, why: str) -> ScenarioError:
        return ScenarioError([Fault("load_result", "", expected, f"'{path}'{why}")])

    if Path(path).suffix != ".nc":
        others = 'pandas.read_csv(file, comment="#") reads a .csv, json.load a .json'
        raise refused(f"a file that ends in .nc ({others})", "")
    try:
        data = xr.load_dataset(path, engine="h5netcdf", decode_times=False)
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        why = "no such file" if missing else "no netCDF file"
        raise refused("a file that `save` wrote", f" ({why})") from None
    if data.attrs.get("digest") != _digest(data):
        raise refused("numbers that match their digest", ", which is damaged or changed")
    return data


def _digest(dataset: "xarray.Dataset") -> str:
    """Digest of names, dimensions and values of all variables."""
    parts = []
    for name, variable in sorted(dataset.variables.items(), key=lambda item: str(item[0])):
        values = variable.values
        text = values.dtype.kind not in "biufc"
        data = repr(values.ravel().tolist()).encode() if text else values.tobytes()
        parts += [f"{name} {variable.dims} {variable.shape}".encode(), data]
    return seal(*parts)


def write(
    dataset: "xarray.Dataset", path: Path, rows: Sequence[str], attributes: Mapping[str, str]
) -> None:
    """Write a dataset as netCDF or CSV, by the ending of `path`.

    In CSV the dimensions `rows` run over lines, all others over columns; the attributes come first,
    in lines that start with #. What was there before is replaced when all is written.
    """
    with whole(path) as part:
        _write(dataset.assign_attrs({**dataset.attrs, **attributes}), part, rows)


def _write(dataset: "xarray.Dataset", path: Path, rows: Sequence[str]) -> None:
    if path.suffix == ".nc":
        dataset = dataset.assign_attrs(digest=_digest(dataset))
        # in memory first: the HDF5 library crashes if the disk is full
        path.write_bytes(dataset.to_netcdf(engine="h5netcdf", invalid_netcdf=False))
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        for name, value in dataset.attrs.items():
            file.writelines(f"# {name}: {line}\n" for line in str(value).splitlines())
        writer = csv.writer(file)
        table = columns(dataset, [d for d in rows if d in dataset.dims])
        writer.writerow([f"{c.name}{f' ({c.unit})' * (c.unit not in _UNITLESS)}" for c in table])
        writer.writerows(zip(*(column.values for column in table), strict=True))


class DataColumn(NamedTuple):
    """A column of a CSV file: full name of a quantity, unit, meaning, values, and its variable."""

    name: str
    unit: str
    meaning: str
    values: list[Any]
    variable: str


def columns(dataset: "xarray.Dataset", rows: Sequence[str]) -> list[DataColumn]:
    """Columns of one length; a line for each place along `rows`, labels first.

    What has further dimensions has a column for each place along these, by the name that
    `name_at` gives it. A point of a grid has the lines that its own result has, at least one.
    """
    dataset = dataset.drop_dims(LISTS, errors="ignore")
    empty = {d: (0, 1) for d in rows if "failed" in dataset and not dataset.sizes[d]}
    if empty:
        dataset = dataset.pad(empty)
    shape = {d: dataset.sizes[d] for d in rows}
    filled = _filled(dataset, shape)
    out: list[DataColumn] = []

    def add(name: str, variable: "xarray.Variable", own: str = "") -> None:
        values = variable.set_dims(shape).values.ravel()[filled].tolist()
        unit, meaning = (str(variable.attrs.get(*v)) for v in (("units", "1"), ("long_name", "")))
        out.append(DataColumn(name, unit, meaning, values, own))

    for dim in rows:
        if dim != "crossing":  # numbered in their order only
            add(dim, dataset[dim].variable)
    places = {str(d): _labels(dataset, str(d)) for d in dataset.dims if d not in rows}
    for name in (*dataset.coords, *dataset.data_vars):
        if name in dataset.dims:
            continue
        variable = dataset.variables[name]
        others = [str(d) for d in variable.dims if d not in rows]
        if others == ["flow"] and name in ("group", "flow_group"):
            continue  # the names of the columns have it
        for index in itertools.product(*(range(dataset.sizes[d]) for d in others)):
            part = variable.isel(dict(zip(others, index, strict=True)))
            labels = {d: places[d][i] for d, i in zip(others, index, strict=True)}
            add(name_at(str(name), labels), part, str(name))
    return out


def _filled(dataset: "xarray.Dataset", shape: Mapping[str, int]) -> Any:
    """The lines along rows of this shape that a point of a grid has: those with numbers, and the
    first. There are places for as many lines as the point has that has most.
    """
    axes = {*dataset["failed"].dims} if "failed" in dataset else set()
    if not set() < axes < {*shape}:
        return ...
    import numpy as np  # heavy

    filled = np.zeros([*shape.values()], bool)
    filled[tuple(slice(None) if d in axes else 0 for d in shape)] = True
    for array in dataset.data_vars.values():
        if axes < {*shape}.intersection(array.dims):
            known = array != "" if array.dtype.kind == "O" else array.notnull()
            other = [d for d in array.dims if d not in shape]
            filled |= known.any(other).variable.set_dims(shape).values
    return filled.ravel()


def _labels(dataset: "xarray.Dataset", dim: str) -> list[Any]:
    """Labels along a dimension: of its coordinate, or for flows their group and number in it, which
    is empty for the only round trip of a group.
    """
    if dim == "flow":
        trips = "group" in dataset and dataset["group"].dims == (dim,)
        names = dataset["group" if trips else "flow_group"].values.tolist()
        total, place = Counter(names), {name: itertools.count() for name in names}
        numbers = [next(place[name]) for name in names]
        return [
            (name, "" if trips and total[name] == 1 else f"[{k}]")
            for name, k in zip(names, numbers, strict=True)
        ]
    if dim.endswith(".class") and dataset.sizes[dim] == 1:
        return [""]
    return dataset[dim].values.tolist()
