"""The fluid model's version of a network: sources and calls at their mean rates.

Files of open sources are unresponsive traffic on each link of their route. Sessions become on/off
flows of the same mean rate. Links that only they or acknowledgements pass are left out, as nothing
in the fluid model waits there. Voice calls take a part of their link's rate, at their mean or, in
simulations, as they vary.
"""

import dataclasses
from typing import Any

import numpy as np

from fluidcc.ops import Num
from fluidcc.scenario.network import (
    Flows,
    Link,
    Network,
    require_network,
    to_arrays,
    unchecked,
)

NEVER = 1e30
"""A time [s] beyond every run, finite so that arithmetic gives no NaN."""


def open_load(flows: Flows) -> Num | None:
    """Load of an open source [packet/s], whatever the network does; None for other groups."""
    load = flows.traffic.load()
    return None if load is None else sum(flows.n) * load


def _closed(flows: Flows, place: dict[int, int]) -> Flows:
    """A group as on/off flows, on links with new numbers."""
    route, passes = (tuple(place[k] for k in part) for part in (flows.route, flows.passes))
    changes = {"route": route, "passes": passes, "reverse_route": ()}
    if not flows.traffic.open:
        return dataclasses.replace(flows, **changes)
    number = flows.n * flows.traffic.sources()
    return dataclasses.replace(flows, n=number, traffic=flows.traffic.closed(), **changes)


def _with_passes(net: Network) -> Network:
    """The network with flows that pass the queues beside theirs; the same one if none are shared.

    A queue beside another has the capacity of that link; one beside a queue that nothing enters is
    alone.
    """
    if all(link.beside is None for link in net.links) or any(f.passes for f in net.flows):
        return net
    given = [link.beside for link in net.links]
    beside = [k if k is not None and _is_entered(net, k) else None for k in given]
    links = tuple(
        link if link.beside is None
        else dataclasses.replace(link, capacity=net.links[link.beside].capacity, beside=b)
        for link, b in zip(net.links, beside, strict=True)
    )  # fmt: skip
    groups = []
    for flows in net.flows:
        pairs = [(beside[k], k) for k in flows.route]
        passes = tuple(b for b, _ in pairs if b is not None)
        route = tuple(k for pair in pairs for k in pair if k is not None)
        back: Any = flows.reverse_delay
        if np.ndim(back) == 1:
            back = back[[j for j, pair in enumerate(pairs) for k in pair if k is not None]]
        changes = {"route": route, "passes": passes, "reverse_delay": back}
        groups.append(dataclasses.replace(flows, **changes) if passes else flows)
    return dataclasses.replace(net, links=links, flows=tuple(groups))


def _is_entered(net: Network, k: int) -> bool:
    """Whether anything enters the queue of a link."""
    cross = net.links[k].cross
    known = isinstance(cross, int | float | np.number | np.ndarray)
    return (
        not known or bool(np.any(cross > 0)) or net.links[k].voice is not None
        or any(k in flows.route for flows in net.flows)
    )  # fmt: skip


def _alone(net: Network) -> Network:
    """The network with one flow of each group of a fair link alone at its share of the capacity,
    as its queue has it while no other is empty; the same network if no link is fair.

    Raises ValueError for groups that do not have one queue each.
    """
    if not any(link.fair for link in net.links):
        return net
    net = net.by_group
    links, groups = list(net.links), list(net.flows)
    for k, link in enumerate(net.links):
        if not link.fair:
            continue
        links[k] = dataclasses.replace(link, fair=False, beside=None)
        for g in (g for g, flows in enumerate(net.flows) if k in flows.route):
            crossing = [other for j in net.served_with(k) for other in net.crossing(j)]
            _check_alone(net, g, crossing, net.link_names[k])
            share = link.capacity / sum(sum(net.flows[other].n) for other in crossing)
            links[k] = dataclasses.replace(links[k], capacity=share)
            groups[g] = dataclasses.replace(net.flows[g], n=np.ones(1))
    return dataclasses.replace(net, links=tuple(links), flows=tuple(groups))


def _check_alone(net: Network, g: int, crossing: list[int], link: str) -> None:
    """Raise ValueError unless the flows of group g and all others that cross a fair link have one
    queue each, and those of g are alike.
    """
    flows, name, wrong = net.flows[g], net.flow_names[g], ""
    back = [h for h in crossing if len(set(net.flows[h].reverse_route))]
    if len(flows.route) > 1:
        wrong = f"route: expected links.{link} alone"
    elif np.size(flows.rtt) > 1:
        wrong = "rtt: expected one round trip, or a group for each"
    elif flows.traffic.starts:
        wrong = f'traffic: expected "bulk", got {flows.traffic.name}'
    elif back:
        name, wrong = net.flow_names[back[0]], "reverse_route: expected none"
    if wrong:
        raise ValueError(
            f"flows.{name}.{wrong}: in the fluid model each flow of a fair link is alone with its "
            "share of the capacity; `fluidcc packets` has no such limit"
        )


def as_fluid(net: Network) -> Network:
    """The network of the fluid model; the same one if no source is open.

    Raises ValueError if no flows are left, if the rules of some have no mean, or as `_alone`.
    """
    require_network(net)
    for name, flows in zip(net.flow_names, net.flows, strict=True):
        if why := flows.window.no_mean:
            raise ValueError(
                f"flows.{name}.window: the rules of {flows.window.name} have no mean, as {why}; "
                "packets (fluidcc packets) follow them"
            )
    net = _with_passes(_alone(net))
    if not any(flows.traffic.open or flows.reverse_route for flows in net.flows):
        return net
    groups = list(zip(net.flow_names, net.flows, strict=True))
    closed = [(name, flows) for name, flows in groups if open_load(flows) is None]
    if not closed:
        raise ValueError("the fluid model has no flows: all files come by themselves")
    passed = {k for _, flows in closed for k in flows.route}
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
        links=tuple(_placed(net.links[k], cross[k], place) for k in place),
        link_names=tuple(net.link_names[k] for k in place),
        flows=tuple(_closed(flows, place) for _, flows in closed),
        flow_names=tuple(name for name, _ in closed),
    )


def _placed(link: Link, cross: Num, place: dict[int, int]) -> Link:
    """A link with other cross traffic, beside a link with a new number."""
    beside = None if link.beside is None else place[link.beside]
    return dataclasses.replace(link, cross=cross, beside=beside)


def varies(link: Link) -> bool:
    """Whether the rate of the link's calls changes at random in simulations."""
    return link.voice is not None and link.voice.process == "modulated"


def _without_calls(link: Link, calls: Num) -> Link:
    """The link as its flows see it while the calls send `calls` packets per second."""
    assert link.voice is not None
    left, mixed = link.voice.left(link.capacity, calls), link.voice.mixed(calls)
    return dataclasses.replace(link, capacity=left, cross=link.cross + mixed, voice=None)


def with_mean_calls(net: Network, *, varying: bool = True) -> Network:
    """The network with calls at their mean rate: its links as flows see them.

    Without `varying`, links whose calls change at random stay as they are.
    """
    links = tuple(
        link if link.voice is None or (varies(link) and not varying)
        else _without_calls(link, link.voice.mean(link.packet_size))
        for link in net.links
    )  # fmt: skip
    return unchecked(net, links=links)


def with_service(net: Network, services: tuple) -> Network:
    """The network as its flows see it now.

    `services` has the present rate of the calls [packet/s] for links where it varies, `()` for
    others; or no entries at all.
    """
    if not services:
        return net
    links = tuple(
        link if isinstance(calls, tuple) else _without_calls(link, calls)
        for link, calls in zip(net.links, services, strict=True)
    )
    return unchecked(net, links=links)


def course(link: Link, until: float) -> Any:
    """Times (E,) [s] at which the rate of the calls changes and rates (E + 1,) [packet/s]; `()`
    if it does not vary. Padded, so that courses of similar length share compiled code.
    """
    if not varies(link):
        return ()
    assert link.voice is not None
    path = link.voice.path(until, float(link.packet_size))
    more = (1 << len(path.times).bit_length()) - len(path.times)
    times = np.concatenate([path.times, np.full(more, NEVER)])
    rates = np.concatenate([path.rates, np.full(more, path.rates[-1])])
    return times, rates


def has_motion(net: Network) -> bool:
    """Whether a network has equations of motion: those of mean windows, where no loss closure gives
    windows alone.
    """
    drifts = all(flows.loss.window(0.0, 1.0) is None for flows in net.flows)
    return drifts and net.closure == "mean"


def steady(net: Network) -> Network:
    """The network for equilibria and linearisations: that of the fluid model, with calls at their
    mean, and every number in double precision, so that a change compiles nothing.

    Raises ValueError if no flows are left.
    """
    return to_arrays(with_mean_calls(to_arrays(as_fluid(net))))
