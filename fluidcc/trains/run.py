"""Runs of trains over seeds, their metrics, and the error of the step."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from fluidcc.arrays import jax
from fluidcc.packets.accounts import Metrics, PacketRuns, ratio
from fluidcc.packets.plan import PacketError
from fluidcc.packets.run import check_times, checked_seeds
from fluidcc.scenario.network import Network
from fluidcc.trains import engine
from fluidcc.trains.layout import Layout, lay_out, chosen_step

LANES = 8
"""Runs that are done together; results of a seed do not depend on the others."""

_PARTS = 20  # parts of a run, for batch means


@dataclasses.dataclass(frozen=True, repr=False)
class TrainRuns(PacketRuns):
    """Runs of trains of packets on one network, one a seed, in the shape of `PacketRuns`.

    `step` is the step [s]; `step_error` has the shape of `mean`: by how much each metric differs
    from that of runs of the same seeds with twice the step.
    """

    _view = "runs.TrainsView"

    step: float = math.nan
    step_error: Any = None


def _begun(layout: Layout, seeds: Sequence[int]) -> tuple[Any, engine.Run]:
    """Numbers with the starts of the flows of each seed, and the runs before their first step."""
    kinds, windows = [], []
    groups, flows = layout.plan.groups, layout.plan.flows
    for kind, p, own in zip(layout.shape.kinds, layout.numbers.kinds, layout.members, strict=True):
        starts = [groups[flows[f].group].flows.start for f in own]
        low, high = (np.array([[float(getattr(s, e))] for s in starts]) for e in ("low", "high"))
        u = np.stack([np.random.default_rng([s, kind.number]).random(len(own)) for s in seeds], 1)
        opening = np.array([[flows[f].rtt * groups[flows[f].group].options.syn] for f in own])
        kinds.append(p._replace(begin=low + (high - low) * u + opening))
        windows.append(np.float64(groups[flows[own[0]].group].options.initial_window))
    numbers = jax.tree.map(np.asarray, layout.numbers._replace(kinds=tuple(kinds)))
    return numbers, engine.first(layout.shape, numbers, len(seeds), tuple(windows))


def _keys(seeds: Sequence[int]) -> np.ndarray:
    return np.array([np.random.SeedSequence(s).generate_state(1)[0] for s in seeds], np.uint32)


class _Snapshot:
    """The accounts of all lanes at one instant."""

    def __init__(self, run: engine.Run, step: float) -> None:
        found = jax.tree.map(np.asarray, run._replace(record=None))
        self.senders, self.ports = found.senders, found.ports
        self.time = float(found.k) * step


def _link(layout: Layout, k: int, lane: int, before: _Snapshot, after: _Snapshot) -> dict[str, Any]:
    span = after.time - before.time

    def grown(name: str) -> float:
        pair = (getattr(s.ports[k], name)[lane] for s in (after, before))
        return float(next(pair) - next(pair))

    queue, system = grown("area") / span, grown("system") / span
    variance = grown("squares") / span - queue**2
    system_variance = grown("system_squares") / span - system**2
    capacity = float(layout.numbers.ports[k].capacity)
    return {
        "utilization": grown("served") / span / capacity,
        "queue_mean": queue,
        "queue_var": variance,
        "number_in_system_mean": system,
        "number_in_system_var": system_variance,
        "drop_fraction": ratio(grown("dropped"), grown("offered")),
        "mark_fraction": ratio(grown("marked"), grown("offered")),
        "arrivals": grown("offered"),
        "drops": grown("dropped"),
        "marks": grown("marked"),
    }


def _group(layout: Layout, g: int, lane: int, before: _Snapshot, after: _Snapshot) -> dict[str, Any]:
    span, size = after.time - before.time, layout.plan.groups[g].size
    places = [
        (kind, [i for i, f in enumerate(own) if layout.plan.flows[f].group == g])
        for kind, own in enumerate(layout.members)
    ]

    def grown(name: str) -> np.ndarray:
        parts = [
            (getattr(after.senders[kind], name) - getattr(before.senders[kind], name))[own, lane]
            for kind, own in places
            if own
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    goodput = grown("acked") * 8.0 * size / span
    sent, acked = float(grown("sent").sum()), float(grown("acked").sum())
    return {
        "goodput": float(goodput.mean()),
        "goodput_flows": goodput.tolist(),
        "jain": ratio(float(goodput.sum()) ** 2, len(goodput) * float((goodput**2).sum())),
        "loss_fraction": ratio(float(grown("lost").sum()), sent),
        "window_mean": ratio(float(grown("window_time").sum()), float(grown("open_time").sum())),
        "rtt_mean": ratio(float(grown("rtt_sum").sum()), acked),
        "sent": sent,
        "timeouts": float(grown("timeouts").sum()),
        "window_reductions": float(grown("reductions").sum()),
        "recoveries": float(grown("recoveries").sum()),
    }


def _metrics(layout: Layout, lane: int, before: _Snapshot, after: _Snapshot) -> Metrics:
    net = layout.plan.net
    return {
        "links": {n: _link(layout, k, lane, before, after) for k, n in enumerate(net.link_names)},
        "flows": {n: _group(layout, g, lane, before, after) for g, n in enumerate(net.flow_names)},
    }


def _perform(
    net: Network, seeds: Sequence[int], step: float, until: float, warmup: float,
    sample: float | None, progress: Callable[[float], None] | None,
) -> tuple[list[Metrics], list[Metrics], Any]:  # fmt: skip
    """Metrics of each seed, of the parts of the first, and samples."""
    layout = lay_out(net, step)
    runs: list[Metrics] = []
    parts: list[Metrics] = []
    samples: list[np.ndarray] = []
    for first in range(0, len(seeds), LANES):
        own = list(seeds[first : first + LANES])
        lanes = own + [own[-1]] * (LANES - len(own)) if len(seeds) > 1 else own
        numbers, run = _begun(layout, lanes)
        keys = _keys(lanes)
        edges = np.linspace(warmup, until, _PARTS + 1)
        times = edges if sample is None else np.union1d(edges, sample * np.arange(int(until / sample * (1 + 1e-12)) + 1))
        snapshots, taken, done = [], [], 0
        for time in times:
            target = round(time / step)
            if target > done:
                run = engine.advance(layout.shape, numbers, run, keys, np.int64(target - done))
                done = target
            if sample is not None:
                taken.append(engine.sampled(run))
            if time in edges:
                snapshots.append(_Snapshot(run, step))
            if progress is not None:
                progress((first + len(own) * time / until) / len(seeds))
        runs += [_metrics(layout, k, snapshots[0], snapshots[-1]) for k in range(len(own))]
        if first == 0:
            parts = [_metrics(layout, 0, a, b) for a, b in zip(snapshots, snapshots[1:], strict=False)]
        samples.append((times, np.array(taken)[..., : len(own)]) if taken else None)
    return runs, parts, samples


def _series(net: Network, seeds: Sequence[int], samples: list) -> Any:
    """Packets in the system of each link, by seed and time."""
    import xarray as xr  # heavy, and most runs do without

    from fluidcc.quantities import attributes

    times = samples[0][0]
    values = np.concatenate([np.moveaxis(taken, -1, 0) for _, taken in samples])
    about = attributes("links", "link_number_in_system")
    return xr.Dataset(
        {"link_number_in_system": (("seed", "time", "link"), values, about)},
        {"seed": list(seeds), "time": ("time", times, {"units": "s"}), "link": list(net.link_names)},
    )


def simulate_trains(
    net: Network,
    *,
    until: float,
    warmup: float = 0.0,
    seeds: Iterable[int] = (1,),
    step: float | None = None,
    sample: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> TrainRuns:
    """Simulate a network by trains of packets, once for each seed."""
    check_times(warmup, until)
    chosen = checked_seeds(seeds)
    if step is None:
        step = chosen_step(net)
    runs, parts, samples = _perform(net, chosen, step, until, warmup, sample, progress)
    series = None if sample is None else _series(net, chosen, samples)
    return TrainRuns.of(
        chosen, runs, parts, until=until, warmup=warmup, series=series, step=step
    )
