"""Packets at links whose queue is empty in the fluid: in service, and in the bunches that meet.

A queue lets packets go one by one, no faster than its link. Those that come from there are spaced,
and so, nearly, are those of flows that its ACKs clock with one round trip. Different such streams
have what one queue spaced between them, at times that have nothing to do with each other.
"""

from __future__ import annotations

import math

import numpy as np

from fluidcc.analysis.equilibrium import Equilibrium

_SIGMAS = 2.0  # between the mean and a full buffer
_NONE = 1e-9  # of the arrivals


def packets_at(eq: Equilibrium, k: int) -> tuple[float, float, float]:
    """Mean and standard deviation over time of the packets at link k, which has no queue, and its
    utilization; NaN if they are not known: at a full link, or a buffer that such packets would
    fill.

    With utilization r, streams that are shares p of the arrivals and s of what their queue lets go,
    and other traffic at random, the mean is r + w (1 - sum p s), with w = r^2 / (2 (1 - r)) that of
    M/D/1 (Kleinrock, 1975, section 5.5): exact for all that comes from a queue, and for random
    traffic alone. In between, w is multiplied by the variance of the arrivals in a short time, of
    random ones. The spread is taken likewise.
    """
    net, op = eq.net, eq.op
    link, capacity = net.links[k], float(net.links[k].capacity)
    streams, apart = _streams(eq, k)
    arrivals = sum(streams.values()) + apart
    r = float(op.accepted[k]) / capacity
    if link.voice is not None and link.voice.discipline != "fifo":
        r += float(link.voice.mean(link.packet_size)) / capacity
    spaced = sum(v**2 / float(net.links[queue].capacity) for (queue, _), v in streams.items())
    random = 1 - spaced / arrivals
    if r >= 1:
        return (1.0, 0.0, r) if random <= _NONE else (math.nan, math.nan, r)
    waiting = r**2 / (2 * (1 - r))
    spread = waiting * (3 - 2 * r) + r**3 / (3 * (1 - r)) + waiting**2
    mean, std = r + random * waiting, math.sqrt(r * (1 - r) + random * spread)
    fits = mean + _SIGMAS * std < float(link.buffer)
    return (mean, std, r) if fits else (math.nan, math.nan, r)


def _streams(eq: Equilibrium, k: int) -> tuple[dict[tuple[int, float], float], float]:
    """Rates [packet/s] of the streams at link k by the queue that spaces them, and by their round
    trips if they come to that later; and of what comes at random.
    """
    net, op = eq.net, eq.op
    busy = {j for j, backlog in enumerate(op.backlogs) if float(backlog) > 0}
    streams: dict[tuple[int, float], float] = {}
    random = float(net.links[k].cross)
    for flows, rates, group in zip(net.flows, op.rates, eq.flows.values(), strict=True):
        if k not in flows.route:
            continue
        at = flows.route.index(k)
        behind = [j for j in flows.route[:at] if j in busy and j not in flows.passes]
        around = behind or [j for j in flows.route[at:] if j in busy][:1]
        numbers = np.broadcast_to(np.asarray(flows.n * rates, float), np.shape(group.rtt))
        for rate, trip in zip(numbers.tolist(), group.rtt.tolist(), strict=True):
            if around:
                stream = around[-1], 0.0 if behind else round(trip, 9)
                streams[stream] = streams.get(stream, 0.0) + rate
            else:
                random += rate
    return streams, random
