"""What the fluid model sees of a network: sources that are open, at their mean rates.

Files that come by themselves are traffic that no signal slows, on each link of their route.
Sessions are the on/off flows that ask for the same. Links that only they or acknowledgements pass
are left out: the fluid model has nothing that waits there.
"""

import dataclasses

from fluidcc.ops import Num
from fluidcc.scenario.network import Flows, Network, require_network


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
