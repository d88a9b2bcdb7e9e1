"""What the fluid model has of a network: sources and calls at their mean rates.

Files that come by themselves are traffic that no signal slows, on each link of their route.
Sessions are the on/off flows that ask for the same. Links that only they or acknowledgements pass
are left out: the fluid model has nothing that waits there. Voice calls take a part of their link's
rate, at their mean or, in simulations, as they vary.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from fluidcc.ops import Num
from fluidcc.scenario.network import Flows, Link, Network, numeric, require_network

NEVER = 1e30
"""A time [s] that no run reaches, and that arithmetic survives."""


def open_load(flows: Flows) -> Num | None:
    """Packets per second that a group offers whatever the network does; None for other groups."""
    load = flows.traffic.load()
    return None if load is None else sum(flows.n) * load


def _closed(flows: Flows, place: dict[int, int]) -> Flows:
    """A group as on/off flows, on links with new numbers."""
    changes = {"route": tuple(place[k] for k in flows.route), "reverse_route": ()}
    if not flows.traffic.open:
        return dataclasses.replace(flows, **changes)
    number = flows.n * flows.traffic.sources()
    return dataclasses.replace(flows, n=number, traffic=flows.traffic.closed(), **changes)


def as_fluid(net: Network) -> Network:
    """The network that the fluid model has; the same one where no source is open.

    Raises ValueError where no flows are left.
    """
    require_network(net)
    if not any(flows.traffic.open or flows.reverse_route for flows in net.flows):
        return net
    groups = list(zip(net.flow_names, net.flows, strict=True))
    kept = [(name, flows) for name, flows in groups if open_load(flows) is None]
    if not kept:
        raise ValueError("the fluid model has no flows: all files come by themselves")
    passed = {k for _, flows in kept for k in flows.route}
    others = {k for _, flows in groups for k in (*flows.route, *flows.reverse_route)} - passed
    place = {k: j for j, k in enumerate(k for k in range(len(net.links)) if k not in others)}
    cross = {k: net.links[k].cross for k in place}
    for flows in net.flows:
        load = open_load(flows)
        for k in flows.route if load is not None else ():
            if k in cross:
                cross[k] = cross[k] + load
    return dataclasses.replace(
        net,
        links=tuple(dataclasses.replace(net.links[k], cross=cross[k]) for k in place),
        link_names=tuple(net.link_names[k] for k in place),
        flows=tuple(_closed(flows, place) for _, flows in kept),
        flow_names=tuple(name for name, _ in kept),
    )


def varies(link: Link) -> bool:
    """Whether the rate of the link's calls changes at random in simulations."""
    return link.voice is not None and link.voice.process == "modulated"


def _beside(link: Link, calls: Num) -> Link:
    """The link as its flows see it while the calls send `calls` packets per second."""
    assert link.voice is not None
    left, mixed = link.voice.left(link.capacity, calls), link.voice.mixed(calls)
    return dataclasses.replace(link, capacity=left, cross=link.cross + mixed, voice=None)


def with_mean_calls(net: Network, *, varying: bool = True) -> Network:
    """The network with calls at their mean rate: what flows see of its links.

    Without `varying`, links whose calls change at random stay as they are.
    """
    links = tuple(
        link if link.voice is None or (varies(link) and not varying)
        else _beside(link, link.voice.mean(link.packet_size))
        for link in net.links
    )  # fmt: skip
    return dataclasses.replace(net, links=links)


def with_service(net: Network, services: tuple) -> Network:
    """The network as its flows see it now.

    `services` has the present rate of the calls [packet/s] for links where it varies, `()` for
    others; or no entries at all.
    """
    if not services:
        return net
    links = tuple(
        link if isinstance(calls, tuple) else _beside(link, calls)
        for link, calls in zip(net.links, services, strict=True)
    )
    return dataclasses.replace(net, links=links)


def course(link: Link, until: float) -> Any:
    """Times (E,) [s] at which the rate of the calls changes and rates (E + 1,) [packet/s]; `()`
    where it does not vary. Padded, so that courses of about one length share compiled code.
    """
    if not varies(link):
        return ()
    assert link.voice is not None
    held = link.voice.path(until, float(link.packet_size))
    more = (1 << len(held.times).bit_length()) - len(held.times)
    times = np.concatenate([held.times, np.full(more, NEVER)])
    rates = np.concatenate([held.rates, np.full(more, held.rates[-1])])
    return jnp.asarray(times), jnp.asarray(rates)


def steady(net: Network) -> Network:
    """What equilibria and linearisations are of: the fluid model's network, with calls at their
    mean, and every number an array, so that a change compiles nothing.

    Raises ValueError where no flows are left.
    """
    return with_mean_calls(numeric(as_fluid(net)))
