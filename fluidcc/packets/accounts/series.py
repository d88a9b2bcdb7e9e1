"""Time series of packet runs: queues, windows and rates at equal times.

A sample only reads what the engine holds, so that it changes no bit of a run. Rates are those of
the interval that ends at the time of the sample.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.packets.accounts.metrics import delivered
from fluidcc.packets.layout.build import Simulation
from fluidcc.packets.layout.plan import PacketError, Plan
from fluidcc.quantities import attributes

if TYPE_CHECKING:
    from xarray import Dataset

Series = Mapping[str, np.ndarray]
"""Samples of one run by variable, times first."""

_MOST = 20_000_000  # numbers in all series together


def sample_times(plan: Plan, period: float | None, until: float, runs: int) -> np.ndarray:
    """Times 0, `period`, 2 `period` ... up to `until` [s]; none if `period` is None.

    Raises PacketError for a period that is not positive, or that asks for too many numbers.
    """
    if period is None:
        return np.zeros(0)
    if not (math.isfinite(period) and 0 < period <= until):
        raise PacketError(f"sample: expected a time in (0, until] in s, got {period!r}")
    if period < shortest(plan, until, runs):
        least = _rounded_up(shortest(plan, until, runs))
        raise PacketError(
            f"sample: expected at least {least:g} s, or fewer seeds, which makes "
            f"{_MOST} numbers, got {period:g} s"
        )
    return period * np.arange(math.floor(until / period * (1 + 1e-12)) + 1)


def shortest(plan: Plan, until: float, runs: int) -> float:
    """The shortest period of samples that is not too many numbers [s]."""
    return until * _columns(plan) * runs / _MOST


def _columns(plan: Plan) -> int:
    """Numbers in one sample."""
    groups = range(len(plan.net.flows))
    flows = sum(len(plan.members(k)) for k in groups)
    return 7 * len(plan.net.links) + 2 * len(groups) + 2 * flows


def _rounded_up(value: float) -> float:
    """The next number with two digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit) * unit


class Sampler:
    """Reads the state of one run at given times."""

    def __init__(self, simulation: Simulation, times: np.ndarray) -> None:
        self._simulation, self._times = simulation, times
        self._samples: list[dict[str, np.ndarray]] = []
        self._states: list[list[np.ndarray]] = []  # of the queue laws, sample by sample
        plan = simulation.plan
        members = [plan.members(k) for k in range(len(plan.net.flows))]
        self._flows = np.concatenate([own for group in members for own in group])
        sizes = [len(own) for group in members for own in group]
        self._starts = np.cumsum([0, *sizes[:-1]])  # of flows and open sources
        self._first = np.cumsum([0, *map(len, members[:-1])])  # of groups
        bits = [8.0 * plan.groups[k].size for k in range(len(members))]
        self._bits = np.repeat(bits, list(map(len, members)))
        most = [plan.groups[f.group].max_window for f in plan.flows]
        self._most = np.array(most)[self._flows]
        self._second = [traffic.link for traffic in plan.background if traffic.has_own_class]

    def take(self, time: float) -> None:
        """Take the next sample, at `time`."""
        simulation, starts = self._simulation, self._starts
        ports = simulation.ports[: len(simulation.law_states)]
        since = time - ports["changed"]
        used = time - ports["idle"] - np.where(ports["busy"] == 0, since, 0.0)
        for second, link in zip(simulation.classes, self._second, strict=True):
            used[link] += second["used"] + second["busy"] * since[link]
        flows, own = simulation.flows, self._flows
        started = flows["started"][own] == 1
        windows = np.where(started, np.minimum(flows["window"][own], self._most), 0.0)
        found = {
            "queue": ports["count"],
            "bytes": ports["bytes"],
            "system": ports["count"] + ports["busy"],
            "used": used,
            "drops": ports["drops"],
            "marks": ports["marks"],
            "window": np.add.reduceat(windows, starts),
            "open": np.add.reduceat(started.astype(float), starts),
            "acked": np.add.reduceat(delivered(simulation)[own], starts),
        }
        self._samples.append({name: np.array(values, float) for name, values in found.items()})
        self._states.append([state.copy() for state in simulation.law_states])

    def series(self) -> Series:
        """The series by variable; empty if there are no samples."""
        if not self._samples:
            return {}
        taken = {name: np.array([s[name] for s in self._samples]) for name in self._samples[0]}
        windows = taken["window"], taken["open"]
        total, open_ = (np.add.reduceat(values, self._first, axis=1) for values in windows)
        goodput = self._rates(taken["acked"]) * self._bits
        members = np.diff([*self._first, len(self._bits)])
        averages = [
            _average(law, np.array([states[k] for states in self._states]), taken["queue"][:, k])
            for k, law in enumerate(self._simulation.queue_laws)
        ]
        return {
            "link_queue": taken["queue"],
            "link_queue_bytes": taken["bytes"],
            "link_number_in_system": taken["system"],
            "link_average": np.stack(averages, axis=1),
            "link_busy": self._rates(taken["used"]),
            "link_drop_rate": self._rates(taken["drops"]),
            "link_mark_rate": self._rates(taken["marks"]),
            "group_window": _ratio(total, open_),
            "group_acked_rate": np.add.reduceat(goodput, self._first, axis=1) / members,
            "flow_window": _ratio(*windows),
            "flow_acked_rate": goodput,
        }

    def _rates(self, accounts: np.ndarray) -> np.ndarray:
        """Growth per second since the sample before; NaN at first."""
        out = np.full(accounts.shape, math.nan)
        out[1:] = np.diff(accounts, axis=0) / np.diff(self._times)[:, None]
        return out


def _ratio(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.divide(total, count, out=np.full(total.shape, math.nan), where=count > 0)


def _average(law: Any, states: np.ndarray, queue: np.ndarray) -> np.ndarray:
    """The average that a queue law keeps, from the numbers of its state."""
    return np.asarray(law.average(law.state_of(*states.T), queue))


def dataset(
    plan: Plan, times: np.ndarray, seeds: Sequence[int], runs: Sequence[Series]
) -> "Dataset":
    """Series of all runs, labelled by seed, time, link, group and flow, with units."""
    import xarray as xr  # heavy, and most runs do without

    net = plan.net
    variables = {}
    for name in runs[0]:
        kind = name.split("_")[0]
        about = attributes("links" if kind == "link" else "flows", name)
        variables[name] = (("seed", "time", kind), np.stack([run[name] for run in runs]), about)
    groups = [g for k, g in enumerate(net.flow_names) for _ in plan.members(k)]
    coordinates = {
        "seed": list(seeds),
        "time": ("time", times, {"units": "s"}),
        "link": list(net.link_names),
        "group": list(net.flow_names),
        "flow_group": ("flow", groups),
    }
    return xr.Dataset(variables, coordinates)
