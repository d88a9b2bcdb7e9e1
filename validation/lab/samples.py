"""Results of an experiment as arrays."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fluidcc.packets.accounts import half_width

from .experiments import Experiment


def _at(table: Any, path: str) -> Any:
    """The value at a path of nested tables; NaN for null, and where there is none at all."""
    for key in path.split("."):
        if table is None:
            return np.nan
        table = table.get(key) if isinstance(table, Mapping) else None
    return np.nan if table is None else table


def _numbers(value: Any) -> np.ndarray:
    return np.array(value, dtype=float)  # null becomes NaN


@dataclasses.dataclass(frozen=True)
class Points:
    """What came out at the points of an experiment: one entry for each, None where it failed."""

    experiment: Experiment
    points: Sequence[Mapping[str, Any] | None]

    @property
    def x(self) -> np.ndarray:
        """Labels of the points, shape (points,)."""
        return np.array(self.experiment.x)

    @property
    def equal_share(self) -> np.ndarray:
        """Rate of a flow if all share the first link equally [Mbit/s], shape (points,)."""
        nets = [self.experiment.net(k) for k in range(len(self.points))]
        bits = np.array([8 * net.links[0].capacity * net.links[0].packet_size for net in nets])
        return bits / [sum(np.sum(flows.n) for flows in net.flows) for net in nets] / 1e6


class Runs(Points):
    """Packet runs."""

    def values(self, path: str) -> np.ndarray:
        """A metric such as ``links.bottleneck.queue_mean``, shape (points, seeds).

        Raises KeyError for a metric that no run has.
        """
        blank = [np.nan] * self.experiment.seeds
        found = [[_at(run, path) for run in p["runs"]] if p else blank for p in self.points]
        values = np.array(found, dtype=float)
        if np.isnan(values).all() and not any(self._has(path)):
            raise KeyError(f"{self.experiment.name}: no run has {path}")
        return values

    def at(self, x: Any, path: str) -> np.ndarray:
        """A metric at the point with label `x`, shape (seeds,)."""
        return self.values(path)[self.experiment.x.index(x)]

    def _has(self, path: str) -> list[bool]:
        part, _, last = path.rpartition(".")
        tables = [_at(p["runs"][0], part) for p in self.points if p]
        return [isinstance(table, Mapping) and last in table for table in tables]

    def each(self, path: str) -> list[np.ndarray]:
        """A metric with several numbers, such as ``flows.tcp.flow_goodput``: of each point an
        array of shape (seeds, numbers).
        """
        empty = np.zeros((self.experiment.seeds, 0))
        return [_numbers([_at(run, path) for run in p["runs"]]) if p else empty
                for p in self.points]  # fmt: skip

    def series(self, k: int, variable: str, label: str | None = None) -> tuple[np.ndarray, Any]:
        """Times [s] and samples of the first seed at point k, for experiments with `sample`.

        `variable` such as ``link_number_in_system`` or ``flow_window``; `label` picks a link or a
        group. Samples have the shape (times,), or (times, flows).
        """
        point = self.points[k]
        if point is None:
            return np.zeros(0), np.zeros(0)
        data = point["series"]
        found = data["data_vars"][variable]
        values, dims = _numbers(found["data"]), list(found["dims"])
        times = _numbers(data["coords"]["time"]["data"])
        values = np.moveaxis(values, dims.index("time"), 0)
        if label is not None:
            rest = [d for d in dims if d != "time"]
            names = "flow_group" if rest[0] == "flow" else rest[0]
            values = values[:, np.array(data["coords"][names]["data"]) == label]
            values = values[:, 0] if rest[0] != "flow" else values
        return times, values


class Equilibria(Points):
    """Equilibria of the fluid model."""

    @property
    def status(self) -> list[str]:
        """Status of each equilibrium, ``failed`` where there is none."""
        return [p["status"] if p else "failed" for p in self.points]

    def values(self, path: str) -> np.ndarray:
        """A quantity such as ``links.bottleneck.queue``, shape (points,).

        Of groups with several round trips the mean over their entries.
        """
        return np.array([np.mean(_numbers(_at(p, path))) for p in self.points])

    def at(self, x: Any, path: str) -> float:
        """A quantity at the point with label `x`."""
        return float(self.values(path)[self.experiment.x.index(x)])


class Courses(Points):
    """Trajectories of the fluid model."""

    def series(self, k: int, path: str) -> tuple[np.ndarray, np.ndarray]:
        """Times [s] and a quantity such as ``links.bottleneck.queue`` at point k.

        Those of groups have one column for each round trip: shape (times, round trips).
        """
        point = self.points[k]
        if point is None:
            return np.zeros(0), np.zeros(0)
        values = _numbers(_at(point, path))
        return _numbers(point["time"]), values.T if path.startswith("flows.") else values


def interval(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over seeds and half width of its 95 % interval; samples of shape (points, seeds)."""
    return samples.mean(axis=-1), half_width(np.moveaxis(samples, -1, 0))
