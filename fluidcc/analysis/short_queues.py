"""Packets at links whose queue is empty in the fluid: in service, and in the bunches that meet.

Packets behind a queue leave it one by one and are spaced by it, and so are those of flows that its
ACKs clock with one round trip: no two meet. Different such streams have what one queue spaced
between them, at times that have nothing to do with each other.
"""

from __future__ import annotations

import math

import numpy as np

from fluidcc.analysis.equilibrium import Equilibrium


def packets_at(eq: Equilibrium, k: int) -> tuple[float, float]:
    """Mean and standard deviation over time of the packets at link k, which has no queue.

    With utilization r, and streams with shares p of the arrivals, beside traffic at random, the
    mean is r + w (1 - sum p^2 / sum p), with w = r^2 / (2 (1 - r)) that of M/D/1 (Kleinrock, 1975,
    section 5.5): exact for one stream, and for random traffic alone. In between, w is multiplied by
    the variance of the arrivals in a short time, of random ones. The spread is taken likewise.
    """
    net, op = eq.net, eq.op
    busy = {j for j, backlog in enumerate(op.backlogs) if float(backlog) > 0}
    streams: dict[tuple, float] = {}
    for i, (flows, rates) in enumerate(zip(net.flows, op.rates, strict=True)):
        if k not in flows.route:
            continue
        before = flows.route[: flows.route.index(k)]
        behind = [j for j in before if j in busy]
        carried = np.broadcast_to(np.asarray(flows.n * rates, float), np.shape(flows.rtt))
        for m, rate in enumerate(carried):
            stream = ("queue", behind[-1]) if behind else ("flows", i, m)
            streams[stream] = streams.get(stream, 0.0) + float(rate)
    arrivals = sum(streams.values()) + float(net.links[k].cross)
    r = min(float(op.accepted[k] / net.links[k].capacity), 1.0)
    if not arrivals > 0 or r >= 1:
        return r, math.sqrt(max(r * (1 - r), 0.0))
    spaced = [*streams.values()]
    random = 1 - sum(rate**2 for rate in spaced) / (arrivals * (sum(spaced) or 1.0))
    waiting = r**2 / (2 * (1 - r))
    spread = waiting * (3 - 2 * r) + r**3 / (3 * (1 - r)) + waiting**2
    return r + random * waiting, math.sqrt(r * (1 - r) + random * spread)
