"""The rate at which links serve best-effort traffic."""

import dataclasses

from fluidcc.network import Network


def with_service(net: Network, services: tuple) -> Network:
    """The network with its links at the rates that are left for best effort now [packet/s].

    `services` has one entry per link, `()` where the rate does not change; or no entry at all.
    """
    if not services:
        return net
    links = tuple(
        link if isinstance(now, tuple) else dataclasses.replace(link, capacity=now)
        for link, now in zip(net.links, services, strict=True)
    )
    return dataclasses.replace(net, links=links)
