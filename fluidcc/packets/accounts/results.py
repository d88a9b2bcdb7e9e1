"""Results of packet runs: metrics of each seed, their means and 95% intervals."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from fluidcc.packets.accounts.metrics import COUNTS, LARGEST, Metrics
from fluidcc.quantities import attributes, units
from fluidcc.result import Result, plain

if TYPE_CHECKING:
    from xarray import Dataset


def half_width(values: np.ndarray) -> np.ndarray:
    """Half width of the 95% interval of a mean, by Student's t. Shape of one sample."""
    count = len(values)
    if count < 2:
        return np.full(values.shape[1:], math.nan)
    return stdtrit(count - 1, 0.975) * values.std(axis=0, ddof=1) / math.sqrt(count)


def _number(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else float(value)


def _combine(samples: Sequence[Metrics], how: Callable[[str, np.ndarray], Any]) -> Metrics:
    """Combine samples metric by metric: `how(name, values)`, samples first."""
    return {
        part: {
            name: {
                metric: _number(how(metric, np.array([s[part][name][metric] for s in samples])))
                for metric in samples[0][part][name]
            }
            for name in samples[0][part]
        }
        for part in samples[0]
    }


def _batch_width(metric: str, values: np.ndarray) -> Any:
    """Half width of an interval for one long run, from the means of its parts.

    Counts are sums over the parts; the largest values have no interval.
    """
    if metric in LARGEST:
        return math.nan
    return half_width(values) * (len(values) if metric in COUNTS else 1)


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return MappingProxyType({k: _frozen(v) for k, v in value.items()})
    return tuple(value) if isinstance(value, list) else value


@dataclasses.dataclass(frozen=True, repr=False)
class PacketRuns(Result):
    """Packet runs of one network, one a seed.

    `runs[k]["links"][NAME]` and `runs[k]["flows"][NAME]` hold the metrics of seed `seeds[k]`
    between `warmup` and `until` [s]; `mean` and `ci95` have the same shape. `queue_*` count
    waiting packets, `system_*` also the one in service. Intervals are Student's over seeds, or
    over parts of the run where there is one seed. `missing` are seeds that were interrupted;
    `series` are samples over time, if asked for.

    Examples
    --------
    >>> import fluidcc as fc
    >>> runs = fc.simulate_packets(fc.load("hollot2001/slow"), until=3, warmup=1, seeds=(1, 2))
    >>> round(runs.mean["links"]["bottleneck"]["utilization"], 3)
    0.483
    """

    _view = "runs.PacketsView"

    seeds: tuple[int, ...]
    runs: tuple[Any, ...]
    mean: Any
    ci95: Any
    until: float
    warmup: float
    missing: tuple[int, ...] = ()
    series: "Dataset | None" = None

    @classmethod
    def of(
        cls,
        seeds: Sequence[int],
        runs: Sequence[Metrics],
        batches: Sequence[Metrics],
        *,
        until: float,
        warmup: float,
        missing: Sequence[int] = (),
        series: "Dataset | None" = None,
    ) -> "PacketRuns":
        """Put runs together; `batches` are the parts of the only run, if they are known."""
        mean = _combine(runs, lambda _, values: values.mean(axis=0))
        if len(runs) > 1 or not batches:
            ci95 = _combine(runs, lambda _, values: half_width(values))
        else:
            ci95 = _combine(batches, _batch_width)
        return cls(
            tuple(seeds), tuple(_frozen(run) for run in runs), _frozen(mean), _frozen(ci95),
            until, warmup, tuple(missing), series,
        )  # fmt: skip

    def complete(self) -> "PacketRuns":
        """These runs; raises KeyboardInterrupt if seeds are missing.

        For searches, to which a mean over fewer seeds is another quantity.
        """
        if self.missing:
            raise KeyboardInterrupt
        return self

    @property
    def status(self) -> str:
        """`finished`, or `interrupted` if seeds are missing."""
        return "interrupted" if self.missing else "finished"

    @property
    def message(self) -> str:
        """The status in words."""
        if not self.missing:
            return f"{len(self.runs)} runs of {self.until:g} s"
        return f"interrupted: {len(self.runs)} runs finished, seeds {list(self.missing)} did not"

    def to_dict(self) -> dict[str, Any]:
        """Plain data: `runs` with their seed, `mean`, `ci95`, `status`, `message`."""
        runs = [{"seed": s} | plain(r) for s, r in zip(self.seeds, self.runs, strict=True)]
        return {
            "runs": runs,
            "mean": plain(self.mean),
            "ci95": plain(self.ci95),
            "status": self.status,
            "message": self.message,
        }

    def to_dataset(self) -> "Dataset":
        """The metrics and series of all runs, labelled by seed, link and group, with units."""
        import xarray as xr  # heavy, and most runs do without

        variables = {}
        for part, dim in (("links", "link"), ("flows", "group")):
            names = list(self.runs[0][part])
            known = {metric for name in names for metric in self.runs[0][part][name]}
            for metric in units("packets", part):
                if metric in known and metric != "goodput_flows":
                    every = [[r[part][n].get(metric, math.nan) for n in names] for r in self.runs]
                    variables[f"{dim}_{metric}"] = (("seed", dim), every, attributes(part, metric))
        flows = [sum((g["goodput_flows"] for g in r["flows"].values()), ()) for r in self.runs]
        variables["goodput_flows"] = (("seed", "flow"), flows, attributes("flows", "goodput_flows"))
        groups = [k for k, g in self.runs[0]["flows"].items() for _ in g["goodput_flows"]]
        coordinates = {
            "seed": list(self.seeds),
            "link": list(self.runs[0]["links"]),
            "group": list(self.runs[0]["flows"]),
            "flow_group": ("flow", groups),
        }
        metrics = xr.Dataset(variables, coordinates, {"until": self.until, "warmup": self.warmup})
        return metrics if self.series is None else metrics.merge(self.series, compat="identical")
