"""Metrics of a run from the accounts of its ports and flows at two instants."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.recfunctions import repack_fields

from fluidcc.packets.engine.records import HISTOGRAM_FIRST, HISTOGRAM_PARTS
from fluidcc.packets.layout.build import Simulation
from fluidcc.packets.layout.plan import BackgroundPlan, Plan

Metrics = dict[str, dict[str, dict[str, Any]]]

COUNTS = {"arrivals", "departures", "drops", "marks", "sent", "timeouts", "window_reductions",
          "recoveries", "source_quenches", "acks_lost", "transfers"}  # fmt: skip
LARGEST = {
    "queue_max": "largest",
    "queue_bytes_max": "largest_bytes",
    "number_in_system_max": "largest_system",
}
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
    classes: np.ndarray
    sources: np.ndarray
    histograms: np.ndarray
    delivered: np.ndarray


def snapshot(simulation: Simulation, time: float) -> Snapshot:
    """Copy the accounts, and start afresh with the largest queues."""
    links = simulation.ports[: len(simulation.plan.net.links)]
    ports, flows = links.copy(), repack_fields(simulation.flows[_ACCOUNTS])
    links["largest"] = links["count"]
    links["largest_bytes"] = links["bytes"]
    links["largest_system"] = links["count"] + links["busy"]
    others = (simulation.voices, simulation.classes, simulation.sources, simulation.histograms)
    copies = (accounts.copy() for accounts in others)
    return Snapshot(time, ports, flows, *copies, delivered=delivered(simulation))


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


def _deviation(mean: float, squares: float) -> float:
    """Standard deviation from the means of numbers and of their squares."""
    return math.sqrt(max(squares - mean**2, 0.0))


def _cov(variance: float, mean: float) -> float:
    """Coefficient of variation: standard deviation over mean."""
    return ratio(float(np.sqrt(max(variance, 0.0))), mean)


def _link(before: Any, after: Any, span: float) -> dict[str, Any]:
    def grown(name: str) -> float:
        return float(after[name] - before[name])

    idle, area, squares = grown("idle") / span, grown("area") / span, grown("squares") / span
    busy = 1.0 - idle
    system, in_bytes = area + busy, grown("bytes_area") / span
    variance = squares - area**2
    # squares of n + 1 while busy; else packets wait only while the second class is served
    waiting = area - grown("waiting_idle") / span
    system_variance = squares + 2 * waiting + busy - system**2
    return {
        "utilization": busy,
        "queue_mean": area,
        "queue_var": variance,
        "queue_cov": _cov(variance, area),
        "queue_bytes_mean": in_bytes,
        "queue_bytes_var": grown("bytes_squares") / span - in_bytes**2,
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
    """Metrics of a group; `goodput_flows` has one number for each flow or open source."""
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
        "goodput_flows": goodput.tolist(),
        "jain": ratio(float(goodput.sum()) ** 2, len(goodput) * float((goodput**2).sum())),
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
    if plan.groups[group].flows.traffic.starts:
        found["active"] = active / span / len(members)
        found |= _transfers(plan, group, before, after)
    return found


def _percentile(counts: np.ndarray, share: float) -> float:
    """Time [s] below which a share of the counted transfers lies, to some 0.1 %."""
    below = np.concatenate([[0], np.cumsum(counts)])
    if below[-1] == 0:
        return math.nan
    place = float(np.interp(share * below[-1], below, np.arange(len(below))))
    return HISTOGRAM_FIRST * float(np.exp(place / HISTOGRAM_PARTS))


def _transfers(plan: Plan, group: int, before: Snapshot, after: Snapshot) -> dict[str, Any]:
    """Metrics of the transfers of a group."""
    own = [k for k, source in enumerate(plan.sources) if source.group == group]
    span, size = after.time - before.time, plan.groups[group].size

    def grown(name: str) -> float:
        return float((after.sources[name] - before.sources[name])[own].sum())

    count = grown("transfers")
    mean, squares = (ratio(grown(name), count) for name in ("span_sum", "span_squares"))
    counts = (after.histograms - before.histograms)[own].sum(axis=0)
    offered = grown("offered") * 8.0 * size / span / len(plan.members(group))
    return {
        "transfers": count,
        "fct_mean": mean,
        "fct_std": _deviation(mean, squares),
        "fct_median": _percentile(counts, 0.5),
        "fct_p95": _percentile(counts, 0.95),
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
    """Links that carry voice: the share of time that its own class uses, and its metrics."""
    span, voice, second = after.time - before.time, 0, 0
    for k, traffic in enumerate(plan.background, start=len(plan.flows)):
        if traffic.voice is None:
            continue
        used = 0.0
        if traffic.has_own_class:
            used = float(after.classes[second]["used"] - before.classes[second]["used"]) / span
            second += 1
        flow, calls = (before.flows[k], after.flows[k]), (before.voices[voice], after.voices[voice])
        voice += 1
        yield traffic.link, used, _voice(traffic, flow, calls, span)


def metrics(plan: Plan, snapshots: Sequence[Snapshot]) -> Metrics:
    """Metrics of the time from the first snapshot to the last."""
    before, after = snapshots[0], snapshots[-1]
    links, flows = {}, {}
    for k, name in enumerate(plan.net.link_names):
        links[name] = _link(before.ports[k], after.ports[k], after.time - before.time) | {
            metric: float(max(s.ports[k][field] for s in snapshots[1:]))
            for metric, field in LARGEST.items()
        }
    for k, name in enumerate(plan.net.flow_names):
        flows[name] = _flows(plan, k, before, after)
    for k, used, voice in _voices(plan, before, after):
        link = links[plan.net.link_names[k]]
        own = link["utilization"]
        # voice in the queue of the flows is a part of their utilization
        link |= {"utilization": own + used, "utilization_left": ratio(own, 1.0 - used)} | voice
    return {"links": links, "flows": flows}
