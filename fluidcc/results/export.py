"""Results out: JSON at full precision, netCDF and CSV with units, and where they come from."""

import csv
import itertools
import json
import math
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluidcc.folders import whole
from fluidcc.result import plain

if TYPE_CHECKING:
    import xarray

    from fluidcc.scenario.network import Network

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
    return name if unit in ("", "1") else f"{name} [{unit}]"


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
        # in memory first: the HDF5 library crashes if the disk is full
        path.write_bytes(dataset.to_netcdf(engine="h5netcdf", invalid_netcdf=False))
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        for name, value in dataset.attrs.items():
            file.writelines(f"# {name}: {line}\n" for line in str(value).splitlines())
        writer = csv.writer(file)
        table = columns(dataset, [d for d in rows if d in dataset.dims])
        writer.writerow([_heading(name, unit) for name, unit, _ in table])
        writer.writerows(zip(*(values for _, _, values in table), strict=True))


def columns(dataset: "xarray.Dataset", rows: Sequence[str]) -> list[tuple[str, str, list[Any]]]:
    """Columns of one length as name, unit and values; a line for each place along `rows`.

    What has further dimensions has a column for each place along these: ``name[label]``.
    """
    dataset = dataset.drop_dims(LISTS, errors="ignore")
    shape = {d: dataset.sizes[d] for d in rows}
    out: list[tuple[str, str, list[Any]]] = []

    def add(name: str, variable: "xarray.Variable") -> None:
        values = variable.set_dims(shape).values.ravel().tolist()
        out.append((name, str(variable.attrs.get("units", "1")), values))

    for dim in rows:
        add(dim, dataset[dim].variable)
    places = {str(d): _labels(dataset, str(d)) for d in dataset.dims if d not in rows}
    for name, variable in dataset.variables.items():
        if name in dataset.dims:
            continue
        others = [str(d) for d in variable.dims if d not in rows]
        for index in itertools.product(*(range(dataset.sizes[d]) for d in others)):
            part = variable.isel(dict(zip(others, index, strict=True)))
            label = "".join(f"[{places[d][i]}]" for d, i in zip(others, index, strict=True))
            add(f"{name}{label}", part)
    return out


def _labels(dataset: "xarray.Dataset", dim: str) -> list[Any]:
    """Labels along a dimension: of its coordinate, or the names of groups."""
    if dim in dataset.coords:
        return dataset[dim].values.tolist()
    for group in ("group", "flow_group"):
        if dim == "flow" and group in dataset.variables and dataset[group].dims == (dim,):
            names = dataset[group].values.tolist()
            total, place = Counter(names), {name: itertools.count(1) for name in names}
            return [name if total[name] == 1 else f"{name} {next(place[name])}" for name in names]
    return list(range(dataset.sizes[dim]))


def _heading(name: str, unit: str) -> str:
    return name if unit in ("", "1") else f"{name} ({unit})"
