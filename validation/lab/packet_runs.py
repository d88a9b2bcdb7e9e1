"""Packet runs that bounds are judged by."""

from collections.abc import Iterable
from typing import Any

from fluidcc.scenario.network import Network


def packet_means(
    net: Network, *, until: float, warmup: float = 0.0, seeds: Iterable[int] = (1,)
) -> dict[str, Any]:
    """Means over runs that end at `until`, counted from `warmup` on [s]: links and flows by name.

    Searches run many short ones, so one after the other.
    """
    from fluidcc.packets.run import simulate_packets

    found = simulate_packets(net, until=until, warmup=warmup, seeds=seeds, threads=1)
    return found.complete().mean
