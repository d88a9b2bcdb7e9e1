"""Results of packet runs: metrics from the accounts of ports and flows at two instants, their means
over seeds with 95% intervals, and time series of queues, windows and rates at equal times.

A sample only reads what the engine holds, so that it changes no bit of a run. Rates are those of
the interval that ends at the time of the sample.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, overload

import numpy as np
from numpy.lib.recfunctions import repack_fields
from scipy.special import stdtrit

from fluidcc.packets.build import Simulation
from fluidcc.packets.engine.delays import ends
from fluidcc.packets.hooks import entry_points
from fluidcc.packets.plan import BackgroundPlan, PacketError, Plan
from fluidcc.quantities import LISTS, PERCENTILES, about, attributes, labels, units
from fluidcc.result import Result, plain

if TYPE_CHECKING:
    from xarray import Dataset

    from fluidcc.scenario.network import Network

Metrics = dict[str, dict[str, dict[str, Any]]]


class MetricValues(Mapping[str, float]):
    """Metrics of a link or a group by name: numbers, but for those of a group that are lists."""

    @overload
    def __getitem__(self, name: Literal["flow_goodput", "link_arrivals"], /) -> tuple[float, ...]:
        pass

    @overload
    def __getitem__(self, name: str, /) -> float:
        pass

    def __getitem__(self, name: str, /) -> Any:
        """The value of a metric."""
        raise NotImplementedError


Kept = Mapping[str, Mapping[str, MetricValues]]
"""Metrics as results have them: by ``links`` or ``flows``, their names, and the metric's."""

COUNTS = {"arrivals", "departures", "drops", "marks", "sent", "timeouts", "window_reductions",
          "recoveries", "source_quenches", "acks_lost", "transfers", "link_arrivals"}  # fmt: skip
LARGEST = {
    "queue_max": "largest",
    "queue_bytes_max": "largest_bytes",
    "number_in_system_max": "largest_system",
}
_OF_A_QUEUE = "area", "squares", "bytes_area", "bytes_squares", "waiting_idle"
# of a flow; its whole state is four times as large
_ACCOUNTS: list[str] = [
    "window_time", "window_acks", "rtt_sum", "delay_sum", "delay_squares", "ipdv_sum", "ipdv_count",
    "active_time", "connected_at", "started", "acks", "sent", "lost", "acks_lost", "marked",
    "received", "timeouts", "window_reductions", "recoveries", "source_quenches",
]  # fmt: skip


class Snapshot(NamedTuple):
    """The accounts at one instant."""

    time: float
    ports: np.ndarray
    flows: np.ndarray
    voices: np.ndarray
    used: dict[int, float]  # time in which calls with a queue of their own were sent [s], by link
    sources: np.ndarray
    histograms: np.ndarray
    delays: np.ndarray
    rtts: np.ndarray
    arrivals: np.ndarray  # by link and group
    delivered: np.ndarray


def snapshot(simulation: Simulation, time: float) -> Snapshot:
    """The accounts at a time, which no event has passed; it starts afresh with the largest queues.

    Accounts are brought up to the time in the copy alone: rounding does not depend on such times.
    """
    moved = simulation.ports, simulation.flows, simulation.voices
    before = [records.copy() for records in moved]
    entry_points()[1](simulation.address, time)
    ports, flows = _of_links(simulation, time), repack_fields(simulation.flows[_ACCOUNTS])
    voices = simulation.voices.copy()
    used = {k: time - float(simulation.ports["idle"][p]) for k, p in simulation.voice_ports.items()}
    for records, kept in zip(moved, before, strict=True):
        records[...] = kept
    queues = simulation.ports
    queues["largest"] = queues["count"]
    queues["largest_bytes"] = queues["bytes"]
    queues["largest_system"] = queues["count"] + queues["busy"]
    others = (
        simulation.sources, simulation.histograms, simulation.delays, simulation.rtts,
        ports["arrivals"][:, None] if len(simulation.groups) == 1 else simulation.arrivals,
    )  # fmt: skip
    copies = (accounts.copy() for accounts in others)
    return Snapshot(time, ports, flows, voices, used, *copies, delivered=delivered(simulation))


def _of_links(simulation: Simulation, time: float) -> np.ndarray:
    """Accounts of the links at a time: of several queues of a link the means of what they hold, the
    largest, and the sums of what they count and of the time in which they are served.
    """
    ports, count = simulation.ports, len(simulation.plan.net.links)
    links = ports[:count].copy()
    for k in range(count):
        if len(own := simulation.queues(k)) > 1:
            for name in _OF_A_QUEUE:
                links[name][k] = ports[name][own].mean()
            for name in LARGEST.values():
                links[name][k] = ports[name][own].max()
            for name in ("arrivals", "departures", "drops", "marks", "delay_sum"):
                links[name][k] = ports[name][own].sum()
            links["idle"][k] = time - (time - ports["idle"][own]).sum()
    return links


def delivered(simulation: Simulation) -> np.ndarray:
    """Packets of each flow that have been acknowledged, on all its connections.

    Sequence numbers begin with 0; if a SYN opens the connection, 0 is the SYN's.
    """
    flows = simulation.flows
    syn = simulation.groups["syn"][flows["group"]]
    here = np.maximum(flows["acked"] + 1 - syn, 0)
    return flows["delivered"] + np.where(flows["started"] == 1, here, 0)


def ratio(a: float, b: float) -> float:
    """Quotient of two accounts; NaN if nothing was counted."""
    return float(a / b) if b > 0 else math.nan


def _variance(mean: float, squares: float) -> float:
    """Variance from the means of numbers and of their squares, at least 0: of equal numbers
    rounding may leave less.
    """
    return max(squares - mean**2, 0.0)


def _deviation(mean: float, squares: float) -> float:
    """Standard deviation from the means of numbers and of their squares."""
    return math.sqrt(_variance(mean, squares))


def jain(goodput: np.ndarray) -> np.ndarray:
    """Jain's index of fairness over the last axis; NaN where nothing was received."""
    squares = goodput.shape[-1] * (goodput**2).sum(axis=-1)
    return _ratio(np.square(goodput.sum(axis=-1)), squares)


def _cov(variance: float, mean: float) -> float:
    """Coefficient of variation: standard deviation over mean."""
    return ratio(float(np.sqrt(max(variance, 0.0))), mean)


def _percentiles(name: str, counts: np.ndarray) -> dict[str, float]:
    """Percentiles of a histogram of delays [s], each within its bin; NaN if nothing was counted."""
    shares = np.array(list(PERCENTILES.values()))
    below = np.concatenate([[0], np.cumsum(counts, dtype=float)])
    if below[-1] == 0:
        found = np.full(len(shares), math.nan)
    else:
        bins = np.searchsorted(below[1:], shares * below[-1])
        share = (shares * below[-1] - below[bins]) / counts[bins]
        low, high = ends()[bins], ends()[bins + 1]
        found = np.where(bins > 0, low + share * (high - low), 0.0)
    return {f"{name}_{key}": float(value) for key, value in zip(PERCENTILES, found, strict=True)}


def _link(before: Any, after: Any, span: float, queues: int) -> dict[str, Any]:
    def grown(name: str) -> float:
        return float(after[name] - before[name])

    idle, area, squares = grown("idle") / span, grown("area") / span, grown("squares") / span
    busy = 1.0 - idle
    served = busy / queues  # each of them
    system, in_bytes = area + served, grown("bytes_area") / span
    variance = _variance(area, squares)
    # squares of n + 1 while busy; else packets wait only while another port sends
    waiting = area - grown("waiting_idle") / span
    system_variance = _variance(system, squares + 2 * waiting + served)
    return {
        "utilization": served * int(after["shares"]),
        "queue_mean": area,
        "queue_var": variance,
        "queue_cov": _cov(variance, area),
        "queue_bytes_mean": in_bytes,
        "queue_bytes_var": _variance(in_bytes, grown("bytes_squares") / span),
        "number_in_system_mean": system,
        "number_in_system_var": system_variance,
        "number_in_system_cov": _cov(system_variance, system),
        "drop_fraction": ratio(grown("drops"), grown("arrivals")),
        "mark_fraction": ratio(grown("marks"), grown("arrivals")),
        **{name: grown(name) for name in ("arrivals", "departures", "drops", "marks")},
    }


def _active(at: Snapshot) -> np.ndarray:
    """Time in which each flow had a connection, up to a snapshot [s]."""
    flows = at.flows
    since = at.time - flows["connected_at"]
    return flows["active_time"] + np.where(flows["started"] == 1, since, 0.0)


def _flows(plan: Plan, group: int, before: Snapshot, after: Snapshot) -> dict[str, Any]:
    """Metrics of a group; `flow_goodput` has one number for each flow or open source."""
    members, size = plan.members(group), plan.groups[group].size
    numbers, span = np.concatenate(members), after.time - before.time

    def grown(name: str) -> float:
        return float((after.flows[name] - before.flows[name])[numbers].astype(float).sum())

    acked = after.delivered - before.delivered
    goodput = np.array([acked[own].sum() for own in members]) * 8.0 * size / span
    active = float((_active(after) - _active(before))[numbers].sum())
    acks, sent, quenches = grown("acks"), grown("sent"), grown("source_quenches")
    delay = ratio(grown("delay_sum"), acks)
    found = {
        "goodput": float(goodput.mean()),
        "flow_goodput": goodput.tolist(),
        "jain": float(jain(goodput)),
        "loss_fraction": ratio(grown("lost"), sent),
        "mark_fraction": ratio(grown("marked"), sent),
        "window_mean": ratio(grown("window_time"), active),
        "window_per_packet": ratio(grown("window_acks"), acks),
        "rtt_mean": ratio(grown("rtt_sum"), acks),
        "delay_mean": delay,
        "delay_jitter": _deviation(delay, ratio(grown("delay_squares"), acks)),
        "ipdv_mean": ratio(grown("ipdv_sum"), grown("ipdv_count")),
        "sent": sent,
        "quench_fraction": ratio(quenches, quenches + acks),
        **{
            name: grown(name)
            for name in (
                "timeouts",
                "window_reductions",
                "recoveries",
                "source_quenches",
                "acks_lost",
            )
        },
    }
    found["link_arrivals"] = (after.arrivals - before.arrivals)[:, group].tolist()
    found |= _percentiles("rtt", after.rtts[group] - before.rtts[group])
    if plan.groups[group].flows.traffic.starts:
        found["active"] = active / span / len(members)
        found |= _transfers(plan, group, before, after)
    return found


def _transfers(plan: Plan, group: int, before: Snapshot, after: Snapshot) -> dict[str, Any]:
    """Metrics of the transfers of a group."""
    own = [k for k, source in enumerate(plan.sources) if source.group == group]
    span, size = after.time - before.time, plan.groups[group].size

    def grown(name: str) -> float:
        return float((after.sources[name] - before.sources[name])[own].sum())

    count = grown("transfers")
    mean, squares = (ratio(grown(name), count) for name in ("span_sum", "span_squares"))
    offered = grown("offered") * 8.0 * size / span / len(plan.members(group))
    return {
        "transfers": count,
        "fct_mean": mean,
        "fct_std": _deviation(mean, squares),
        **_percentiles("fct", after.histograms[group] - before.histograms[group]),
        "offered": offered if own else math.nan,
    }


def _voice(
    traffic: BackgroundPlan, flow: tuple[Any, Any], calls: tuple[Any, Any], span: float
) -> dict[str, float]:
    """Metrics of the voice calls of a link, from accounts before and after.

    They are those of the calls, and of the flow that stands for all their packets.
    """

    def grown(records: tuple[Any, Any], name: str) -> float:
        return float(records[1][name] - records[0][name])

    received = grown(flow, "received")
    delay = ratio(grown(flow, "delay_sum"), received)
    return {
        "voice_rate": 8.0 * traffic.size * received / span,
        "voice_loss_fraction": ratio(grown(flow, "lost"), grown(flow, "sent")),
        "voice_delay_mean": delay,
        "voice_delay_jitter": _deviation(delay, ratio(grown(flow, "delay_squares"), received)),
        "voice_ipdv_mean": ratio(grown(calls, "ipdv_sum"), grown(calls, "ipdv_count")),
        "voice_calls": grown(calls, "calls_time") / span,
        "voice_refused_fraction": ratio(grown(calls, "refused"), grown(calls, "offered")),
    }


def _voices(
    plan: Plan, before: Snapshot, after: Snapshot
) -> Iterator[tuple[int, float, dict[str, float]]]:
    """Links that carry voice: the share of time that its own queue uses, and its metrics."""
    span, voice = after.time - before.time, 0
    for k, traffic in enumerate(plan.background, start=len(plan.flows)):
        if traffic.voice is None:
            continue
        used = 0.0
        if traffic.has_own_class:
            used = (after.used[traffic.link] - before.used[traffic.link]) / span
        flow, calls = (before.flows[k], after.flows[k]), (before.voices[voice], after.voices[voice])
        voice += 1
        yield traffic.link, used, _voice(traffic, flow, calls, span)


def metrics(plan: Plan, snapshots: Sequence[Snapshot]) -> Metrics:
    """Metrics of the time from the first snapshot to the last."""
    before, after = snapshots[0], snapshots[-1]
    links, flows = {}, {}
    for k, name in enumerate(plan.net.link_names):
        span, queues = after.time - before.time, plan.queues(k)
        links[name] = _link(before.ports[k], after.ports[k], span, queues) | {
            metric: float(max(s.ports[k][field] for s in snapshots[1:]))
            for metric, field in LARGEST.items()
        }
        counts = after.delays[k] - before.delays[k]
        total = float(after.ports[k]["delay_sum"] - before.ports[k]["delay_sum"])
        links[name]["queueing_delay_mean"] = ratio(total, float(counts.sum()))
        links[name] |= _percentiles("queueing_delay", counts)
    for k, name in enumerate(plan.net.flow_names):
        flows[name] = _flows(plan, k, before, after) | over_route(plan, k, links)
    for k, name in enumerate(plan.net.link_names):
        own = [flows[g]["flow_goodput"] for g in _passing(plan, k)]
        links[name]["jain"] = float(jain(np.concatenate([[], *own])))
    for k, used, voice in _voices(plan, before, after):
        link = links[plan.net.link_names[k]]
        own = link["utilization"]
        # voice in the queue of the flows is a part of their utilization
        link |= {"utilization": own + used, "utilization_left": ratio(own, 1.0 - used)} | voice
    return {"links": links, "flows": flows}


def over_route(plan: Plan, group: int, links: Mapping[str, Any]) -> dict[str, float]:
    """The queueing delay of a group: the sum of those of the links of its route."""
    route = (links[plan.net.link_names[k]] for k in plan.net.flows[group].route)
    return {"queueing_delay_mean": sum(link["queueing_delay_mean"] for link in route)}


def _passing(plan: Plan, link: int) -> list[str]:
    """Groups whose data pass a link, with those that a fair link serves in turn with them."""
    net = plan.net
    links = set(net.served_with(link)) if net.links[link].fair else {link}
    return [n for n, g in zip(net.flow_names, net.flows, strict=True) if links & set(g.route)]


Series = Mapping[str, np.ndarray]
"""Samples of one run by variable, times first."""

_MOST = 20_000_000  # numbers in all series together


def sample_times(
    plan: Plan, period: float | None, until: float, runs: int, since: float = 0.0
) -> np.ndarray:
    """Times 0, `period`, 2 `period` ... from `since` up to `until` [s]; none if `period` is None.

    Raises PacketError for a period that is not positive, or that asks for too many numbers.
    """
    if period is None:
        return np.zeros(0)
    if not (math.isfinite(period) and 0 < period <= until - since):
        most = "until" if since == 0 else f"{until - since:g}"
        raise PacketError(f"sample: expected a time in (0, {most}] in s, got {period!r}")
    if period < shortest(plan, until - since, runs):
        least = _rounded_up(shortest(plan, until - since, runs))
        raise PacketError(
            f"sample: expected at least {least:g} s, or fewer seeds, which makes "
            f"{_MOST} numbers, got {period:g} s"
        )
    times = times_of(period, until)
    return times[times >= since]


def times_of(period: float, until: float) -> np.ndarray:
    """Times 0, `period`, 2 `period` ... up to `until` [s]."""
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

    def take(self, time: float) -> None:
        """Take the next sample, at `time`."""
        simulation, starts = self._simulation, self._starts
        ports, each = simulation.ports, simulation.of_links
        idle = ports["idle"] + np.where(ports["busy"] == 0, time - ports["changed"], 0.0)
        used = each((time - idle) * ports["shares"], mean=True)
        for link, port in simulation.voice_ports.items():
            used[link] += time - idle[port]
        flows, own = simulation.flows, self._flows
        started = flows["started"][own] == 1
        windows = np.where(started, np.minimum(flows["window"][own], self._most), 0.0)
        found = {
            "queue": each(ports["count"], mean=True),
            "bytes": each(ports["bytes"], mean=True),
            "system": each(ports["count"] + ports["busy"], mean=True),
            "used": used,
            "drops": each(ports["drops"]),
            "marks": each(ports["marks"]),
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
            np.asarray(law.average(law.state_of(*states.T), taken["queue"][:, k]))
            for k, law in enumerate(self._simulation.queue_laws)
            for states in [np.array([taken_at[k] for taken_at in self._states])]
        ]
        return {
            "link_queue": taken["queue"],
            "link_queue_bytes": taken["bytes"],
            "link_number_in_system": taken["system"],
            "link_average": np.stack(averages, axis=1),
            "link_utilization_sampled": self._rates(taken["used"]),
            "link_drop_rate": self._rates(taken["drops"]),
            "link_mark_rate": self._rates(taken["marks"]),
            "group_window": _ratio(total, open_),
            "group_goodput_sampled": np.add.reduceat(goodput, self._first, axis=1) / members,
            "flow_window": _ratio(*windows),
            "flow_goodput_sampled": goodput,
        }

    def _rates(self, accounts: np.ndarray) -> np.ndarray:
        """Growth per second since the sample before; NaN at first."""
        out = np.full(accounts.shape, math.nan)
        out[1:] = np.diff(accounts, axis=0) / np.diff(self._times)[:, None]
        return out


def _ratio(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.divide(total, count, out=np.full(total.shape, math.nan), where=count > 0)


def dataset(
    plan: Plan, times: np.ndarray, seeds: Sequence[int], runs: Sequence[Series]
) -> "Dataset":
    """Series of all runs, labelled by seed, time, link, group and flow, with units."""
    import xarray as xr  # heavy, and most runs do without

    net = plan.net
    variables, kinds = {}, set()
    for name in runs[0]:
        kind = name.split("_")[0]
        own = attributes("links" if kind == "link" else "flows", name, "series")
        variables[name] = (("seed", "time", kind), np.stack([run[name] for run in runs]), own)
        kinds.add(kind)
    groups = [g for k, g in enumerate(net.flow_names) for _ in plan.members(k)]
    coordinates = labels(seed=seeds, time=times, link=net.link_names, group=net.flow_names)
    coordinates["flow_group"] = ("flow", groups, about("flow_group"))
    known = {"seed", "time", *kinds, *(["flow_group"] * ("flow" in kinds))}
    return xr.Dataset(variables, {k: v for k, v in coordinates.items() if k in known})


def jain_by_scale(plan: Plan, series: "Dataset", warmup: float, period: float) -> "Dataset":
    """The series, of such a period [s], with Jain's index over all flows of a link in windows of
    1, 10, 100 ... samples after the warm-up: its mean over windows in which something was received.
    """
    rates = series["flow_goodput_sampled"].values  # of the time before each sample
    times = series["time"].values
    first = int(np.searchsorted(times, warmup * (1 - 1e-12))) + 1
    rates = rates[:, first:]
    counts = [10**k for k in range(9) if 0 < 10**k <= rates.shape[1]]
    found = np.full((len(rates), len(counts), len(plan.net.links)), math.nan)
    for j, count in enumerate(counts):
        windows = rates.shape[1] // count
        shape = (len(rates), windows, count, rates.shape[2])
        goodput = rates[:, : windows * count].reshape(shape).mean(axis=2)
        for k in range(len(plan.net.links)):
            own = goodput[..., np.isin(series["flow_group"].values, _passing(plan, k))]
            indices = jain(own)
            known = np.isfinite(indices)
            found[:, j, k] = _ratio(np.where(known, indices, 0.0).sum(axis=1), known.sum(axis=1))
    name = "link_jain_by_scale"
    scales = ("scale", period * np.array(counts), about("scale"))
    variable = (("seed", "scale", "link"), found, attributes("links", name))
    return series.assign({name: variable}).assign_coords(scale=scales)


_MOST_TRANSFERS = 1_000_000  # of all runs together


def thinned(found: tuple[np.ndarray, int], runs: int) -> tuple[np.ndarray, int]:
    """A list of transfers and its step, thinned to the share of one of so many runs."""
    transfers, step = found
    while len(transfers) > max(_MOST_TRANSFERS // runs, 1):
        transfers, step = transfers[::2].copy(), 2 * step
    return transfers, step


def list_transfers(
    plan: Plan, seeds: Sequence[int], lists: Sequence[tuple[np.ndarray, int]]
) -> "Dataset":
    """Transfers of all runs in one list, with units; of each run the same share."""
    import xarray as xr

    step = max(step for _, step in lists)
    each = [transfers[:: step // own] for transfers, own in lists]
    found = np.concatenate(each)
    names = np.array([plan.net.flow_names[source.group] for source in plan.sources])
    columns = {f"transfer_{name}": found[name] for name in ("start", "size", "time")}
    return xr.Dataset(
        {name: ("transfer", v, attributes("flows", name)) for name, v in columns.items()},
        {
            "transfer_seed": (
                "transfer",
                np.repeat(seeds, list(map(len, each))),
                about("transfer_seed"),
            ),
            "transfer_group": ("transfer", names[found["source"]], about("transfer_group")),
        },
        {"transfer_step": step},
    )


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
    waiting packets, `number_in_system_*` also the one in service. Intervals are Student's over
    seeds, or over parts of the run where there is one seed. `missing` are seeds that were
    interrupted; `series` are samples over time, if asked for.

    `transfers` lists the files that were sent, with seed, group, start [s], size [packet] and
    completion time [s], in order of their ends; None if no group has files. It has every
    `transfer_step`-th, an attribute, which is 1 for up to 131072 of a run and a million in all.
    `net` is the network.

    Examples
    --------
    >>> import fluidcc as fc
    >>> runs = fc.simulate_packets(fc.load("hollot2001/slow"), until=3, warmup=1, seeds=(1, 2))
    >>> round(runs.mean["links"]["bottleneck"]["utilization"], 3)
    0.483
    """

    _view = "runs.PacketsView"

    seeds: tuple[int, ...]
    runs: tuple[Kept, ...]
    mean: Kept
    ci95: Kept
    until: float
    warmup: float
    missing: tuple[int, ...] = ()
    series: "Dataset | None" = None
    transfers: "Dataset | None" = None
    net: "Network | None" = None

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
        transfers: "Dataset | None" = None,
        **more: Any,
    ) -> Self:
        """Put runs together; `batches` are the parts of the only run, if they are known."""
        mean = _combine(runs, lambda _, values: values.mean(axis=0))
        if len(runs) > 1 or not batches:
            ci95 = _combine(runs, lambda _, values: half_width(values))
        else:
            ci95 = _combine(batches, _batch_width)
        return cls(
            tuple(seeds), tuple(_frozen(run) for run in runs), _frozen(mean), _frozen(ci95),
            until, warmup, tuple(missing), series, transfers, **more,
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
        """The status in words, and groups of which no transfer ended after the warm-up."""
        found = f"{len(self.runs)} run{'s' * (len(self.runs) > 1)} of {self.until:g} s"
        if self.missing:
            found = (
                f"interrupted: {len(self.runs)} runs finished, seeds {list(self.missing)} did not"
            )
        if idle := [k for k, g in self.mean["flows"].items() if g.get("transfers") == 0]:
            found += (
                f"; no transfer of {', '.join(idle)} ended from {self.warmup:g} to {self.until:g} "
                "s: take a shorter warmup or a longer run"
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data: `runs` with their seed, `mean`, `ci95`, `status`, `message`, and what a
        subclass adds.
        """
        more = dataclasses.fields(self)[len(dataclasses.fields(PacketRuns)) :]
        runs = [{"seed": s} | plain(r) for s, r in zip(self.seeds, self.runs, strict=True)]
        return {
            "runs": runs,
            "mean": plain(self.mean),
            "ci95": plain(self.ci95),
            "status": self.status,
            "message": self.message,
            **{field.name: plain(getattr(self, field.name)) for field in more},
        }

    def to_xarray(self) -> "Dataset":
        """The metrics, series and transfers of all runs, labelled by seed, link and group, with
        units.
        """
        import xarray as xr  # heavy, and most runs do without

        variables = {}
        for part, dim in (("links", "link"), ("flows", "group")):
            names = list(self.runs[0][part])
            known = {metric for name in names for metric in self.runs[0][part][name]}
            for metric in units("packets", part):
                if metric in known and metric not in LISTS:
                    every = [[r[part][n].get(metric, math.nan) for n in names] for r in self.runs]
                    own = attributes(part, metric, "packets")
                    variables[f"{dim}_{metric}"] = (("seed", dim), every, own)
        flows = [sum((g["flow_goodput"] for g in r["flows"].values()), ()) for r in self.runs]
        variables["flow_goodput"] = (("seed", "flow"), flows, attributes("flows", "flow_goodput"))
        if "link_arrivals" in next(iter(self.runs[0]["flows"].values())):
            arrivals = [[g["link_arrivals"] for g in r["flows"].values()] for r in self.runs]
            own = attributes("flows", "link_arrivals", "packets")
            variables["group_link_arrivals"] = (("seed", "group", "link"), arrivals, own)
        groups = [k for k, g in self.runs[0]["flows"].items() for _ in g["flow_goodput"]]
        parts = self.runs[0]
        coordinates = labels(seed=self.seeds, link=parts["links"], group=parts["flows"])
        coordinates["flow_group"] = ("flow", groups, about("flow_group"))
        metrics = xr.Dataset(variables, coordinates, {"until": self.until, "warmup": self.warmup})
        more = (part for part in (self.series, self.transfers) if part is not None)
        return xr.merge((metrics, *more), compat="identical", combine_attrs="no_conflicts")
