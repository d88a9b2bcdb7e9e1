"""Metrics of the transfers of sources of files, from the accounts at two instants."""

from typing import Any

import numpy as np

from fluidcc.packets.accounts.moments import deviation, ratio
from fluidcc.packets.engine.records import HISTOGRAM_FIRST, HISTOGRAM_PARTS
from fluidcc.packets.layout.build import Simulation
from fluidcc.packets.layout.plan import Plan


def _percentile(counts: np.ndarray, share: float) -> float:
    """Time [s] below which a share of the counted transfers lies, to some 0.1 %."""
    below = np.concatenate([[0], np.cumsum(counts)])
    if below[-1] == 0:
        return float("nan")
    place = float(np.interp(share * below[-1], below, np.arange(len(below))))
    return HISTOGRAM_FIRST * float(np.exp(place / HISTOGRAM_PARTS))


def file_metrics(plan: Plan, group: int, before: Any, after: Any, size: int) -> dict[str, Any]:
    """Metrics of the transfers of a group between two snapshots; `size` is that of a packet."""
    own = [k for k, source in enumerate(plan.sources) if source.group == group]
    span, members = after.time - before.time, plan.members(group)

    def grown(name: str) -> float:
        return float((after.sources[name] - before.sources[name])[own].sum())

    count = grown("transfers")
    mean, squares = (ratio(grown(name), count) for name in ("span_sum", "span_squares"))
    counts = (after.histograms - before.histograms)[own].sum(axis=0)
    flows = np.concatenate(members)
    busy = float((active(after) - active(before))[flows].sum())
    return {
        "active": busy / span / len(members),
        "transfers": count,
        "transfer_mean": mean,
        "transfer_std": deviation(mean, squares),
        "transfer_median": _percentile(counts, 0.5),
        "transfer_95": _percentile(counts, 0.95),
        "offered": grown("offered") * 8.0 * size / span / len(members) if own else float("nan"),
    }


def active(at: Any) -> np.ndarray:
    """Time in which each flow had a connection, up to a snapshot [s]."""
    flows = at.flows
    return flows["active_time"] + np.where(flows["started"] == 1, at.time - flows["began"], 0.0)


def delivered(simulation: Simulation) -> np.ndarray:
    """Packets of each flow that have been acknowledged, on all its connections.

    Sequence numbers begin with 0; where a SYN opens the connection, 0 is the SYN's.
    """
    flows = simulation.flows
    syn = simulation.groups["syn"][flows["group"]]
    here = np.maximum(flows["acked"] + 1 - syn, 0)
    return flows["delivered"] + np.where(flows["started"] == 1, here, 0)
