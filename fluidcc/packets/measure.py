"""Metrics of a run from the accounts of its ports and flows at two instants."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fluidcc.packets.build import Simulation
from fluidcc.packets.plan import Plan

Metrics = dict[str, dict[str, dict[str, Any]]]

LINK_UNITS = {
    "utilization": "1",
    "queue_mean": "packet",
    "queue_var": "packet^2",
    "queue_max": "packet",
    "queue_bytes_mean": "B",
    "system_mean": "packet",
    "system_var": "packet^2",
    "system_max": "packet",
    "drop_fraction": "1",
    "mark_fraction": "1",
    "arrivals": "packet",
    "departures": "packet",
    "drops": "packet",
    "marks": "packet",
}
FLOW_UNITS = {
    "goodput": "bit/s",
    "goodput_flows": "bit/s",
    "jain": "1",
    "loss_fraction": "1",
    "mark_fraction": "1",
    "window_mean": "packet",
    "window_seen": "packet",
    "rtt_mean": "s",
    "delay_mean": "s",
    "delay_jitter": "s",
    "delay_difference": "s",
    "sent": "packet",
    "timeouts": "1",
    "reactions": "1",
    "recoveries": "1",
    "quenches": "1",
}
COUNTS = {"arrivals", "departures", "drops", "marks", "sent", "timeouts", "reactions",
          "recoveries", "quenches"}  # fmt: skip
LARGEST = {"queue_max", "system_max"}


class Snapshot(NamedTuple):
    """The accounts at one instant."""

    time: float
    ports: np.ndarray
    flows: np.ndarray


def snapshot(simulation: Simulation, time: float) -> Snapshot:
    """Copy the accounts, and start afresh with the largest queues."""
    links = simulation.link_ports
    ports, flows = simulation.ports[links].copy(), simulation.flows.copy()
    for k in links:
        port = simulation.ports[k]
        port["largest"] = port["count"]
        port["largest_system"] = port["count"] + port["busy"]
    return Snapshot(time, ports, flows)


def _ratio(a: float, b: float) -> float:
    return float(a / b) if b > 0 else float("nan")


def _link(before: Any, after: Any, span: float, largest: tuple[int, int]) -> dict[str, Any]:
    def grown(name: str) -> float:
        return float(after[name] - before[name])

    idle, area, squares = grown("idle") / span, grown("area") / span, grown("squares") / span
    busy = 1.0 - idle
    system = area + busy
    return {
        "utilization": busy,
        "queue_mean": area,
        "queue_var": squares - area**2,
        "queue_max": float(largest[0]),
        "queue_bytes_mean": grown("bytes_area") / span,
        "system_mean": system,
        # squares of n + 1 while busy, where n > 0 implies busy
        "system_var": squares + 2 * area + busy - system**2,
        "system_max": float(largest[1]),
        "drop_fraction": _ratio(grown("drops"), grown("arrivals")),
        "mark_fraction": _ratio(grown("marks"), grown("arrivals")),
        **{name: grown(name) for name in ("arrivals", "departures", "drops", "marks")},
    }


def _flows(before: np.ndarray, after: np.ndarray, span: float, size: int) -> dict[str, Any]:
    def grown(name: str) -> np.ndarray:
        return (after[name] - before[name]).astype(float)

    acked = np.maximum(after["acked"], 0) - np.maximum(before["acked"], 0)
    goodput = acked * 8.0 * size / span
    acks, sent = float(grown("acks").sum()), float(grown("sent").sum())
    delay = _ratio(float(grown("delay_sum").sum()), acks)
    squares = _ratio(float(grown("delay_squares").sum()), acks)
    return {
        "goodput": float(goodput.mean()),
        "goodput_flows": goodput.tolist(),
        "jain": _ratio(float(goodput.sum()) ** 2, len(goodput) * float((goodput**2).sum())),
        "loss_fraction": _ratio(float(grown("lost").sum()), sent),
        "mark_fraction": _ratio(float(grown("marked").sum()), sent),
        "window_mean": float(grown("window_time").mean()) / span,
        "window_seen": _ratio(float(grown("window_acks").sum()), acks),
        "rtt_mean": _ratio(float(grown("rtt_sum").sum()), acks),
        "delay_mean": delay,
        "delay_jitter": float(np.sqrt(max(squares - delay**2, 0.0))),
        "delay_difference": _ratio(float(grown("delay_steps").sum()), acks),
        "sent": sent,
        **{
            name: float(grown(name).sum())
            for name in ("timeouts", "reactions", "recoveries", "quenches")
        },
    }


def metrics(plan: Plan, snapshots: Sequence[Snapshot]) -> Metrics:
    """Metrics of the time from the first snapshot to the last."""
    before, after = snapshots[0], snapshots[-1]
    span = after.time - before.time
    links, flows = {}, {}
    for k, name in enumerate(plan.net.link_names):
        largest = tuple(
            max(int(s.ports[k][field]) for s in snapshots[1:])
            for field in ("largest", "largest_system")
        )
        links[name] = _link(before.ports[k], after.ports[k], span, (largest[0], largest[1]))
    for k, name in enumerate(plan.net.flow_names):
        members = plan.members(k)
        flows[name] = _flows(before.flows[members], after.flows[members], span, plan.groups[k].size)
    return {"links": links, "flows": flows}
