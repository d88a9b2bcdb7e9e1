"""Stability over a grid of parameters, computed in lanes."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.batch.networks import at_rest, batchable, families, members
from fluidcc.analysis.batch.roots import many_roots
from fluidcc.analysis.equilibrium import equilibrium
from fluidcc.analysis.linear import Array
from fluidcc.analysis.roots import critical
from fluidcc.analysis.stability import Stability, stability
from fluidcc.model.fluid import as_fluid
from fluidcc.result import Result, plain
from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import axes_of, replace
from fluidcc.scenario.reader import failed_at

if TYPE_CHECKING:
    import xarray


@dataclasses.dataclass(frozen=True)
class MapPoint:
    """One point of a map: its parameters, its verdict, and the reason if there is none.

    `status` is that of the equilibrium, or `failed`; `unstable` and `rightmost` [1/s] are None
    if unknown; `proven`: no root is further right.
    """

    set: Mapping[str, Any]
    status: str
    message: str = ""
    stable: bool | None = None
    unstable: int | None = None
    certified: bool = False
    rightmost: complex | None = None
    proven: bool = False
    queues: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def describe(self) -> str:
        """The failed point and the reason, in one line."""
        return failed_at(self.set, self.message)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, None for unknown values."""
        out = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        s = self.rightmost
        out["rightmost"] = None if s is None else [s.real, s.imag]
        return plain(out)


@dataclasses.dataclass(frozen=True)
class StabilityMap(Result):
    """Verdicts over a grid of parameters; `points` in the order of the grid, the last axis fastest.

    `batched` is the number of points computed in batches; the others were computed one by one.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.stability_map(fc.load("hollot2001/slow"), {"flow.n": [40, 60]})
    >>> found.shape, found.failed
    ((2,), ())
    """

    _view = "grids.MapView"

    axes: Mapping[str, tuple]
    units: Mapping[str, str]
    points: tuple[MapPoint, ...]
    batched: int

    @property
    def failed(self) -> tuple[MapPoint, ...]:
        """The points at which there is no such network."""
        return tuple(p for p in self.points if p.status == "failed")

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return tuple(len(values) for values in self.axes.values())

    def grid(self, name: str) -> Array:
        """A field of all points over the axes; NaN or -1 where it is unknown."""
        values = [getattr(p, name) for p in self.points]
        blank = {"stable": -1, "unstable": -1, "rightmost": complex(np.nan, np.nan)}.get(name)
        return np.array([blank if v is None else v for v in values]).reshape(self.shape)

    def to_dict(self) -> dict[str, Any]:
        """All points as plain values."""
        return {"points": [p.to_dict() for p in self.points]}

    def to_dataset(self) -> xarray.Dataset:
        """Labelled arrays over the axes."""
        import xarray as xr

        dims, roots = tuple(self.axes), self.grid("rightmost")
        columns = {
            "stable": (self.grid("stable").astype(int), "1"),
            "unstable": (self.grid("unstable").astype(int), "1"),
            "certified": (self.grid("certified").astype(int), "1"),
            "proven": (self.grid("proven").astype(int), "1"),
            "root_real": (np.real(roots), "1/s"),
            "root_imag": (np.imag(roots), "rad/s"),
            "status": (self.grid("status"), "1"),
            "message": (self.grid("message"), "1"),
        }
        for name in dict.fromkeys(name for p in self.points for name in p.queues):
            queue = [p.queues.get(name, np.nan) for p in self.points]
            columns[f"{name}.queue"] = (np.reshape(queue, self.shape), "packet")
        variables: dict[Any, Any] = {k: (dims, v, {"units": u}) for k, (v, u) in columns.items()}
        coords = {a: (a, list(v), {"units": self.units[a]}) for a, v in self.axes.items()}
        return xr.Dataset(variables, coords=coords)

    def __repr__(self) -> str:
        stable, words = self.grid("stable"), []
        for value, word in ((1, "stable"), (0, "unstable"), (-1, "without a verdict")):
            words.append(f"{int(np.sum(stable == value))} {word}")
        names, counts = np.unique(self.grid("status"), return_counts=True)
        statuses = ", ".join(f"{c} {n}" for n, c in zip(names, counts, strict=True))
        sizes = " x ".join(map(str, self.shape))
        lines = [
            f"StabilityMap over {', '.join(self.axes)}, {sizes} points: {', '.join(words)}",
            f"  status: {statuses}; {int(np.sum(self.grid('certified')))} certified, "
            f"{self.batched} in batches",
        ]
        return "\n".join([*lines, *(f"  {p.describe()}" for p in self.failed)])


def stability_map(
    net: Network,
    over: Mapping[str, Iterable[Any]],
    *,
    progress: Callable[[float], None] | None = None,
) -> StabilityMap:
    """Stability at every point of a grid: verdict, certified count and rightmost root.

    The same verdicts as `sweep` with `stability`, many times as fast, but without margins, further
    roots and advice. Points of a network of one link with a smooth equilibrium are solved in
    batches, all others one by one.

    Parameters
    ----------
    net
        The network to start from.
    over
        Values by path; the grid is their product. Text is read as a quantity with its unit.
    progress
        Called with the finished share in [0, 1].

    Raises
    ------
    ScenarioError
        If a path, a value's unit or a list of values is wrong. Failures at single points are in
        `failed`.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.load("hollot2001/slow")
    >>> found = fc.stability_map(net, {"link.queue.w_q": [1e-6, 1e-3]})
    >>> [point.unstable for point in found.points]
    [0, 2]
    """
    axes, units = axes_of(net, over)
    grid = [dict(zip(axes, v, strict=True)) for v in itertools.product(*axes.values())]
    found = _solve_batch(net, axes, grid)
    points = []
    for i, changes in enumerate(grid):
        points.append(found[i] if i in found else _solve_point(net, changes))
        if progress is not None:
            progress((i + 1) / len(grid))
    return StabilityMap(axes, units, tuple(points), len(found))


def _solve_batch(
    net: Network, axes: Mapping[str, tuple], grid: list[dict[str, Any]]
) -> dict[int, MapPoint]:
    """The points with a smooth equilibrium, by their number in the grid."""
    stacked = members(net, axes) if grid and batchable(net) else None
    if stacked is None:
        return {}
    rests = at_rest(stacked)
    shape = [len(values) for values in axes.values()]
    out = {}
    chosen = np.flatnonzero(rests.smooth)
    names = as_fluid(net).link_names
    for own, systems in families(rests, chosen, lambda i: replace(net, grid[i])):
        places = np.stack(np.unravel_index(own, shape), axis=1)
        roots = many_roots(systems, places=places)
        for k, i in enumerate(own):
            s = complex(roots.rightmost[k])
            certified, number = bool(roots.certified[k]), int(roots.unstable[k])
            near = not certified and critical(s)
            out[int(i)] = MapPoint(
                grid[i], "empty" if rests.empty[i] else "regular",
                stable=None if near else number == 0, unstable=number, certified=certified,
                rightmost=None if np.isnan(s.real) else s, proven=bool(roots.proven[k]),
                queues=dict(zip(names, rests.queues[i].tolist(), strict=True)),
            )  # fmt: skip
    return out


def _solve_point(net: Network, changes: dict[str, Any]) -> MapPoint:
    """One point by `stability`; without cycles if the equilibrium is on a discontinuity."""
    try:
        here = replace(net, changes)
        rest = equilibrium(here)
        queues = {name: link.queue for name, link in rest.links.items()}
        if not rest.smooth:
            return MapPoint(changes, rest.status, rest.message, queues=queues)
        found: Stability = stability(here)
    except Exception as error:  # whatever goes wrong at one point must not end the others
        return MapPoint(changes, "failed", str(error) or type(error).__name__)
    return MapPoint(
        changes, found.status, found.message, found.stable, found.unstable, found.certified,
        found.rightmost, found.proven > 0, queues,
    )  # fmt: skip
