"""Quantities of runs: a trajectory of the fluid model, and packets over seeds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from fluidcc.analysis.equilibrium import equilibrium
from fluidcc.analysis.linear import Array
from fluidcc.analysis.measures import Measure
from fluidcc.dde.status import Status
from fluidcc.dde.uniform import Uniform
from fluidcc.model.simulate import Trajectory, simulate
from fluidcc.packets.run import simulate_packets
from fluidcc.results.compare import POINTS
from fluidcc.scenario.network import Network

_BAND = 0.05  # of the queue at equilibrium: the usual band of a settling time
_LEAST_BAND = 1.0  # packet: of a short queue 5 % would be less than a packet, which is none


@dataclasses.dataclass(frozen=True)
class Runs:
    """How trajectories and packets are run: end and warm-up [s], and seeds."""

    until: float
    warmup: float
    seeds: tuple[int, ...]


def settling_time(time: Array, queue: Array, steady: float) -> float:
    """Time [s] at which a queue (T,) [packet] enters the band about `steady` until the end.

    The band is 5 % of `steady`, or one packet if that is wider. Infinite if the queue does not
    stay, NaN if `steady` is, as without an equilibrium.
    """
    if math.isnan(steady):
        return math.nan
    band = max(_BAND * steady, _LEAST_BAND)
    outside = np.flatnonzero(~(np.abs(queue - steady) <= band))
    if not outside.size:
        return float(time[0])
    last = int(outside[-1])
    return float(time[last + 1]) if last + 1 < len(time) else math.inf


def variation(time: Array, queue: Array, warmup: float) -> float:
    """Standard deviation over mean of a queue (T,) after the warm-up; 0 if it stays empty."""
    late = queue[time >= warmup]
    spread = float(late.std())
    return spread / float(late.mean()) if spread > 0 else 0.0


def trajectory(net: Network, until: float) -> Trajectory:
    """The trajectory from the scenario's own start, on steps that suit its round trips."""
    points = np.linspace(0.0, until, POINTS)
    return simulate(net, until=until, points=points, mesh=Uniform())


def of_trajectory(
    net: Network, wanted: Sequence[Measure], runs: Runs
) -> tuple[dict[str, float], list[str]]:
    """Quantities of one trajectory by name, and why some are missing or infinite."""
    run = trajectory(net, runs.until)
    if run.status is not Status.ok:
        return {}, [f"the trajectory ended at {run.status_time:.4g} s: {run.status.advice}"]
    eq = equilibrium(net)
    values, why = {}, []
    for quantity in wanted:
        queue = run.links[quantity.owner].queue
        if quantity.key == "queue_variation":
            values[quantity.name] = variation(run.time, queue, runs.warmup)
            continue
        values[quantity.name] = settling_time(run.time, queue, eq.links[quantity.owner].queue)
        if math.isnan(values[quantity.name]):
            why.append(f"{quantity.name}: no equilibrium to settle at, {eq.message or eq.status}")
        elif math.isinf(values[quantity.name]):
            why.append(f"{quantity.name}: the queue does not settle within {runs.until:g} s")
    return values, why


def of_packets(
    net: Network, wanted: Sequence[Measure], runs: Runs
) -> tuple[dict[str, float], list[str]]:
    """Means over the seeds of metrics of packets by name, and which have no number."""
    runs_done = simulate_packets(net, until=runs.until, warmup=runs.warmup, seeds=runs.seeds)
    mean = runs_done.complete().mean
    means = {m.name: float(mean[m.kind][m.owner].get(m.key, math.nan)) for m in wanted}
    none = [name for name, value in means.items() if not math.isfinite(value)]
    return (
        {name: value for name, value in means.items() if name not in none},
        [f"{name}: the packet runs have no number for it" for name in none],
    )
