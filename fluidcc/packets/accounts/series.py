"""Time series of packet runs: queues, windows and rates at equal times.

A sample only reads what the engine holds, so that it changes no bit of a run. Rates are those of
the interval that ends at the time of the sample.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
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
    """Times 0, `period`, 2 `period` ... up to `until` [s]; none where `period` is None.

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
        self._simulation, self.times, self._taken = simulation, times, 0
        plan, count = simulation.plan, len(times)
        links, groups = len(plan.net.links), range(len(plan.net.flows))
        members = [plan.members(k) for k in groups]
        self._numbers = np.concatenate([own for group in members for own in group])
        sizes = [len(own) for group in members for own in group]
        self._places = np.cumsum([0, *sizes[:-1]])
        self._first = np.cumsum([0, *map(len, members[:-1])])
        self._bits = np.repeat([8.0 * plan.groups[k].size for k in groups], list(map(len, members)))
        most = [plan.groups[f.group].max_window for f in plan.flows]
        self._most = np.array(most)[self._numbers]
        self._classes = _classes(plan)
        self._links = {
            name: np.zeros((count, links))
            for name in ("queue", "bytes", "system", "used", "drops", "marks")
        }
        self._states = [np.zeros((count, len(law))) for law in simulation.law_states]
        shape = (count, len(sizes))
        self._window, self._open, self._acked = (np.zeros(shape) for _ in range(3))

    def take(self, time: float) -> None:
        """Take the next sample, at `time`."""
        k, simulation = self._taken, self._simulation
        ports = simulation.ports[: len(simulation.plan.net.links)]
        since = time - ports["changed"]
        used = time - ports["idle"] - np.where(ports["busy"] == 0, since, 0.0)
        system = ports["count"] + ports["busy"]
        for link, place in self._classes.items():
            other = simulation.classes[place]
            used[link] += other["used"] + other["busy"] * since[link]
        found = {
            "queue": ports["count"], "bytes": ports["bytes"], "system": system, "used": used,
            "drops": ports["drops"], "marks": ports["marks"],
        }  # fmt: skip
        for name, values in found.items():
            self._links[name][k] = values
        for states, law in zip(self._states, simulation.law_states, strict=True):
            states[k] = law
        self._take_flows(k)
        self._taken += 1

    def _take_flows(self, k: int) -> None:
        flows, own, places = self._simulation.flows, self._numbers, self._places
        started = flows["started"][own] == 1
        windows = np.where(started, np.minimum(flows["window"][own], self._most), 0.0)
        acked = delivered(self._simulation)[own]
        self._window[k] = np.add.reduceat(windows, places)
        self._open[k] = np.add.reduceat(started.astype(float), places)
        self._acked[k] = np.add.reduceat(acked, places)

    def series(self) -> Series:
        """The series by variable; nothing where there are no samples."""
        if not len(self.times):
            return {}
        links, laws = self._links, self._simulation.queue_laws
        total, open_ = (np.add.reduceat(v, self._first, axis=1) for v in (self._window, self._open))
        goodput = self._rates(self._acked) * self._bits
        members = np.diff([*self._first, len(self._bits)])
        averages = [
            _average(law, states, links["queue"][:, k])
            for k, (law, states) in enumerate(zip(laws, self._states, strict=True))
        ]
        return {
            "link_queue": links["queue"],
            "link_queue_bytes": links["bytes"],
            "link_system": links["system"],
            "link_average": np.stack(averages, axis=1),
            "link_busy": self._rates(links["used"]),
            "link_drop_rate": self._rates(links["drops"]),
            "link_mark_rate": self._rates(links["marks"]),
            "group_window": _ratio(total, open_),
            "group_acked_rate": np.add.reduceat(goodput, self._first, axis=1) / members,
            "flow_window": _ratio(self._window, self._open),
            "flow_acked_rate": goodput,
        }

    def _rates(self, accounts: np.ndarray) -> np.ndarray:
        """Growth per second since the sample before; NaN at first."""
        out = np.full(accounts.shape, math.nan)
        out[1:] = np.diff(accounts, axis=0) / np.diff(self.times)[:, None]
        return out


def _classes(plan: Plan) -> dict[int, int]:
    """Places of the second classes of ports, by number of the link."""
    links = [traffic.link for traffic in plan.background if traffic.has_own_class]
    return {link: place for place, link in enumerate(links)}


def _ratio(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.divide(total, count, out=np.full(total.shape, math.nan), where=count > 0)


def _average(law: Any, states: np.ndarray, queue: np.ndarray) -> np.ndarray:
    """The average that a queue law keeps, from the numbers of its state."""
    state = jax.tree.unflatten(jax.tree.structure(law.start(1.0)), list(states.T))
    return np.asarray(law.average(state, queue))


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
