"""Propagation along the routes of flows, there and back: one definition for both engines."""

import itertools
from collections.abc import Sequence

import numpy as np

from fluidcc.ops import Num
from fluidcc.scenario.network import Flows, Network


def first_hop(flows: Flows) -> Num:
    """Delay from the source to its first link [s]."""
    return 0.0 if flows.access_delay is None else flows.access_delay


def forward_delays(flows: Flows, delays: Sequence[Num]) -> list[Num]:
    """Delay from the source to each link of its route and to its receiver [s], without queues.

    `delays` are those of all links of the network [s].
    """
    return list(itertools.accumulate((delays[k] for k in flows.route), initial=first_hop(flows)))


def reverse_delays(flows: Flows, delays: Sequence[Num]) -> list[Num]:
    """Delay from each router of the route back to the source [s], without queues.

    One number is the delay from the first router, and later routers add the delays of the links in
    between; by default reverse delays are the forward delays. `delays` are those of all links [s].
    """
    given = first_hop(flows) if flows.reverse_delay is None else flows.reverse_delay
    if np.ndim(given) == 1:
        return [given[j] for j in range(len(flows.route))]
    return list(itertools.accumulate((delays[k] for k in flows.route[:-1]), initial=given))


def link_delays(net: Network) -> list[Num]:
    """Propagation delay of each link [s]."""
    return [link.delay for link in net.links]
