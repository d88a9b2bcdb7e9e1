"""One verb over a grid of parameters; a point that fails is labelled and the rest goes on."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.fluid.status import Status
from fluidcc.network import Network
from fluidcc.scenario.paths import check_paths, info_at, replace, value_at
from fluidcc.scenario.reader import got


@dataclasses.dataclass(frozen=True)
class Point:
    """One point of a sweep: what was set, what came out, and why nothing came out."""

    set: Mapping[str, Any]
    result: Any = None
    message: str = ""

    def told(self) -> str:
        """Where the point failed and why, in one line."""
        place = ", ".join(f"{path} = {got(value)}" for path, value in self.set.items())
        return f"failed at {place}: {'; '.join(self.message.splitlines())}"

    def to_dict(self) -> dict[str, Any]:
        """The result's own dictionary with what was set."""
        if self.result is None:
            return {"set": dict(self.set), "status": "failed", "message": self.message}
        return {"set": dict(self.set), **self.result.to_dict()}


@dataclasses.dataclass(frozen=True)
class Sweep:
    """Results over a grid; `points` in the order of the grid, the last axis fastest."""

    axes: Mapping[str, tuple]
    units: Mapping[str, str]
    points: tuple[Point, ...]

    @property
    def failed(self) -> tuple[Point, ...]:
        """The points without a sound result."""
        return tuple(p for p in self.points if p.message)

    def to_dict(self) -> dict[str, Any]:
        """All points as plain values."""
        return {"points": [p.to_dict() for p in self.points]}

    def to_dataset(self) -> xr.Dataset:
        """All points in one dataset with the axes as dimensions, NaN where a point failed.

        Raises ValueError if every point failed.
        """
        sound = [p.result.to_dataset() for p in self.points if p.result is not None]
        if not sound:
            raise ValueError(f"every point failed: {self.points[0].message}")
        numbered = [_numbered(d) for d in sound]
        labels = {d: _longest(numbered, d) for data in numbered for d in data.dims}
        results = iter(numbered)
        blank = _emptied(numbered[0])
        padded = [
            _padded(next(results) if p.result is not None else blank, labels) for p in self.points
        ]
        joined = xr.concat(
            padded, dim="point", data_vars="all", coords="different", compat="equals",
            join="exact", combine_attrs="drop_conflicts",
        )  # fmt: skip
        for name in ("status", "message"):  # of single points, told by the variables below
            joined.attrs.pop(name, None)
        joined["status"] = ("point", [_status(p) for p in self.points])
        joined["message"] = ("point", [_message(p) for p in self.points])
        return self._gridded(joined)

    def _gridded(self, joined: xr.Dataset) -> xr.Dataset:
        """The points laid out over the axes."""
        shape = [len(values) for values in self.axes.values()]
        variables = {}
        for name, variable in joined.variables.items():
            if "point" in variable.dims:
                first = variable.transpose("point", ...)
                dims = (*self.axes, *first.dims[1:])
                values = first.values.reshape(*shape, *first.shape[1:])
                variables[name] = (dims, values, variable.attrs)
            else:
                variables[name] = variable
        for name, values in self.axes.items():
            variables[name] = (name, list(values), {"units": self.units[name]})
        out = xr.Dataset(variables, attrs=joined.attrs)
        return out.set_coords([*self.axes, *(n for n in joined.coords if n in variables)])

    def __repr__(self) -> str:
        lines = [f"Sweep of {len(self.points)} points over {', '.join(self.axes)}"]
        lines += [f"  {p.told()}" for p in self.failed]
        return "\n".join(lines)


def sweep(
    net: Network,
    over: Mapping[str, Iterable[Any]],
    verb: Callable[[Network], Any],
    *,
    progress: Callable[[float], None] | None = None,
) -> Sweep:
    """Apply a verb at every point of a grid.

    Parameters
    ----------
    net
        The network to start from.
    over
        Values by path; the grid is their product. Text stands for quantities with units.
    verb
        Function of a network that returns a result, such as `equilibrium`.
    progress
        Called with the finished share after each point.

    Raises
    ------
    ScenarioError
        If a path or a value's unit is wrong. What fails at single points is in `failed`.
    """
    check_paths(net, over)
    axes = {path: tuple(value_at(net, path, v) for v in values) for path, values in over.items()}
    described = {path: info_at(net, path) for path in axes}
    units = {path: info.unit if info else "1" for path, info in described.items()}
    grid = list(itertools.product(*axes.values()))
    points = []
    for k, values in enumerate(grid):
        points.append(_point(net, dict(zip(axes, values, strict=True)), verb))
        if progress is not None:
            progress((k + 1) / len(grid))
    return Sweep(axes, units, tuple(points))


def _point(net: Network, changes: dict[str, Any], verb: Callable[[Network], Any]) -> Point:
    try:
        result = verb(replace(net, changes))
    except Exception as error:  # whatever goes wrong at one point must not end the others
        return Point(changes, None, str(error) or type(error).__name__)
    return Point(changes, result, failure(result))


def failure(result: Any) -> str:
    """Why a result is not sound, by what it says or the status it carries; empty if it is.

    That a network has no equilibrium, no cycle or no root is an answer.
    """
    if told := getattr(result, "failure", ""):
        return str(told)
    status = getattr(getattr(result, "fluid", result), "status", None)
    if isinstance(status, Status) and status is not Status.ok:
        return status.advice
    if status in ("incomplete", "infeasible", "unbounded", "unknown"):  # of a search
        return str(result.message)
    runs = getattr(result, "packets", result)
    return runs.message if getattr(runs, "missing", ()) else ""


def _numbered(data: xr.Dataset) -> xr.Dataset:
    """The dataset with a label for every place along every dimension."""
    bare = {d: np.arange(n) for d, n in data.sizes.items() if d not in data.coords}
    return data.assign_coords(bare)


def _longest(datasets: list[xr.Dataset], dim: Any) -> np.ndarray:
    return max((d[dim].values for d in datasets if dim in d.dims), key=len)


def _padded(data: xr.Dataset, labels: Mapping[Any, np.ndarray]) -> xr.Dataset:
    """The dataset extended to the given labels: by NaN, by empty text."""
    fill = {n: "" if v.dtype.kind in "OUS" else np.nan for n, v in data.variables.items()}
    return data.reindex({d: labels[d] for d in data.dims}, fill_value=fill)


def _emptied(data: xr.Dataset) -> xr.Dataset:
    """NaN in place of every number."""
    return data.map(lambda v: v.where(False) if v.dtype.kind in "if" else v, keep_attrs=True)


def _status(point: Point) -> str:
    if point.result is None:
        return "failed"
    status = getattr(getattr(point.result, "fluid", point.result), "status", "")
    return status.name if isinstance(status, Status) else str(status)


def _message(point: Point) -> str:
    return point.message or str(getattr(point.result, "message", ""))
