"""Metrics of a run from the accounts of its ports and flows at two instants."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.recfunctions import repack_fields

from fluidcc.packets.accounts.files import active, delivered, file_metrics
from fluidcc.packets.accounts.moments import deviation, ratio
from fluidcc.packets.accounts.voice import of_the_link, voice_metrics
from fluidcc.packets.layout.build import Simulation
from fluidcc.packets.layout.plan import Plan

Metrics = dict[str, dict[str, dict[str, Any]]]

COUNTS = {"arrivals", "departures", "drops", "marks", "sent", "timeouts", "reactions",
          "recoveries", "quenches", "replies_lost", "transfers"}  # fmt: skip
LARGEST = {
    "queue_max": "largest",
    "queue_bytes_max": "largest_bytes",
    "system_max": "largest_system",
}
# of a flow; its whole state is four times as large
_ACCOUNTS: list[str] = [
    "window_time", "window_acks", "rtt_sum", "delay_sum", "delay_squares", "delay_steps", "steps",
    "active_time", "began", "started", "acks", "sent", "lost", "replies_lost", "marked",
    "received", "timeouts", "reactions", "recoveries", "quenches",
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
    links = simulation.link_ports
    ports, flows = simulation.ports[links].copy(), repack_fields(simulation.flows[_ACCOUNTS])
    for k in links:
        port = simulation.ports[k]
        port["largest"] = port["count"]
        port["largest_bytes"] = port["bytes"]
        port["largest_system"] = port["count"] + port["busy"]
    others = (simulation.voices, simulation.classes, simulation.sources, simulation.histograms)
    copies = (accounts.copy() for accounts in others)
    return Snapshot(time, ports, flows, *copies, delivered=delivered(simulation))


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
    # squares of n + 1 while busy; elsewhere packets only wait for a class beside
    waiting = area - grown("waiting_idle") / span
    system_variance = squares + 2 * waiting + busy - system**2
    return {
        "utilization": busy,
        "queue_mean": area,
        "queue_var": variance,
        "queue_cov": _cov(variance, area),
        "queue_bytes_mean": in_bytes,
        "queue_bytes_var": grown("bytes_squares") / span - in_bytes**2,
        "system_mean": system,
        "system_var": system_variance,
        "system_cov": _cov(system_variance, system),
        "drop_fraction": ratio(grown("drops"), grown("arrivals")),
        "mark_fraction": ratio(grown("marks"), grown("arrivals")),
        **{name: grown(name) for name in ("arrivals", "departures", "drops", "marks")},
    }


def _flows(
    before: Snapshot, after: Snapshot, members: Sequence[np.ndarray], size: int
) -> dict[str, Any]:
    """Metrics of a group; `members` are the numbers of the flows of each flow or open source."""
    numbers, span = np.concatenate(members), after.time - before.time

    def grown(name: str) -> np.ndarray:
        return (after.flows[name] - before.flows[name])[numbers].astype(float)

    acked = after.delivered - before.delivered
    goodput = np.array([acked[own].sum() for own in members]) * 8.0 * size / span
    working = float((active(after) - active(before))[numbers].sum())
    acks, sent = float(grown("acks").sum()), float(grown("sent").sum())
    quenches = float(grown("quenches").sum())
    delay = ratio(float(grown("delay_sum").sum()), acks)
    squares = ratio(float(grown("delay_squares").sum()), acks)
    return {
        "goodput": float(goodput.mean()),
        "goodput_flows": goodput.tolist(),
        "jain": ratio(float(goodput.sum()) ** 2, len(goodput) * float((goodput**2).sum())),
        "loss_fraction": ratio(float(grown("lost").sum()), sent),
        "mark_fraction": ratio(float(grown("marked").sum()), sent),
        "window_mean": ratio(float(grown("window_time").sum()), working),
        "window_seen": ratio(float(grown("window_acks").sum()), acks),
        "rtt_mean": ratio(float(grown("rtt_sum").sum()), acks),
        "delay_mean": delay,
        "delay_jitter": deviation(delay, squares),
        "delay_difference": ratio(float(grown("delay_steps").sum()), float(grown("steps").sum())),
        "sent": sent,
        "quench_fraction": ratio(quenches, quenches + acks),
        **{
            name: float(grown(name).sum())
            for name in ("timeouts", "reactions", "recoveries", "quenches", "replies_lost")
        },
    }


def metrics(plan: Plan, snapshots: Sequence[Snapshot]) -> Metrics:
    """Metrics of the time from the first snapshot to the last."""
    before, after = snapshots[0], snapshots[-1]
    span = after.time - before.time
    links, flows = {}, {}
    for k, name in enumerate(plan.net.link_names):
        links[name] = _link(before.ports[k], after.ports[k], span) | {
            metric: float(max(s.ports[k][field] for s in snapshots[1:]))
            for metric, field in LARGEST.items()
        }
    for k, name in enumerate(plan.net.flow_names):
        size = plan.groups[k].size
        flows[name] = _flows(before, after, plan.members(k), size)
        if plan.groups[k].flows.traffic.starts:
            flows[name] |= file_metrics(plan, k, before, after, size)
    for name, found in _voices(plan, before, after, span, links):
        links[name] |= found
    return {"links": links, "flows": flows}


def _voices(
    plan: Plan, before: Snapshot, after: Snapshot, span: float, links: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Metrics of the links that carry voice, by name."""
    voice = shared = 0
    for k, traffic in enumerate(plan.background, start=len(plan.flows)):
        if traffic.voice is None:
            continue
        name, used = plan.net.link_names[traffic.link], 0.0
        if traffic.beside:
            used = float(after.classes[shared]["used"] - before.classes[shared]["used"]) / span
            shared += 1
        flow = before.flows[k], after.flows[k]
        calls = before.voices[voice], after.voices[voice]
        voice += 1
        yield name, of_the_link(links[name], used) | voice_metrics(flow, calls, traffic.size, span)
