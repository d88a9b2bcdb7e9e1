"""Runs that the page draws: fluid trajectories and packets beside them, as plain numbers."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fluidcc.analysis.measures import mean_over_flows
from fluidcc.dde.status import Status
from fluidcc.model.simulate import simulate
from fluidcc.packets.run import simulate_packets
from fluidcc.scenario.network import Network

_SAMPLES = 600


def duration(net: Network) -> float:
    """How long a run is unless told [s]: some 300 of the longest round trips, as 1, 2 or 5."""
    wanted = 300 * max(float(np.max(np.asarray(flows.rtt))) for flows in net.flows)
    if wanted <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(wanted))
    return min((k * unit for k in (1, 2, 5, 10)), key=lambda t: abs(math.log(t / wanted)))


def trajectory(net: Network, until: float) -> dict[str, Any]:
    """A fluid run: queues, windows and marks over time; None where a run did not get to.

    Raises ValueError where there is none.
    """
    run = simulate(net, until=until, points=np.linspace(0.0, until, _SAMPLES + 1))
    links = {
        name: {"queue": link.queue, "utilization": link.utilization, "mark": link.signal}
        for name, link in run.links.items()
    }
    groups = {
        name: {"window": mean_over_flows(own.n, own.window)} for name, own in run.flows.items()
    }
    message = run.message.removeprefix(Status.ok.advice).removeprefix("; ")
    return {"time": run.time, "links": links, "flows": groups, "message": message,
            "until": until}  # fmt: skip


def packets(
    net: Network, until: float, seed: int, progress: Callable[[float], None]
) -> dict[str, Any]:
    """One packet run with a seed: queues with the packet in service, and mean windows.

    Raises PacketError where the network cannot be simulated.
    """
    run = simulate_packets(
        net, until=until, seeds=(seed,), threads=1, sample=until / _SAMPLES, progress=progress
    )
    series = run.series
    assert series is not None  # samples were asked for
    one = series.isel(seed=0)
    links = {str(n): {"queue": one["link_system"].sel(link=n).values} for n in one["link"].values}
    groups = {str(n): {"window": one["group_window"].sel(group=n).values}
              for n in one["group"].values}  # fmt: skip
    return {"time": one["time"].values, "links": links, "flows": groups, "seed": seed,
            "until": until}  # fmt: skip
