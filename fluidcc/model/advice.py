"""Warnings about networks that are valid but probably not intended."""

from collections.abc import Iterator

import numpy as np

from fluidcc.laws.law import Law
from fluidcc.laws.load_code import AbstractLoadCode
from fluidcc.laws.parameters import infos
from fluidcc.model.fluid import open_load
from fluidcc.scenario.network import (
    Flows,
    Link,
    Network,
    growth_per_packet,
    require_network,
    why_packets,
)

_LONG = 20.0  # [s] of a round trip that is more likely given in milliseconds


def advice(net: Network, *, fluid: bool = True) -> tuple[str, ...]:
    """One sentence for each setting that may be unintended: laws or rates that do not fit together.

    Results carry these sentences in their messages.

    Parameters
    ----------
    net
        The network.
    fluid
        Whether to say, too, what the fluid model makes of settings; packet runs do without.

    Returns
    -------
    tuple of str
        A sentence for each setting that may be unintended.

    Examples
    --------
    >>> import fluidcc as fc
    >>> fc.advice(fc.load("hollot2001/slow"))
    ()
    """
    require_network(net)
    out = []
    if fluid and (why := why_packets(net)):
        out.append(f"{why}: equilibria are of links as they are at first, and of flows that go on")
    for k, (name, link) in enumerate(zip(net.link_names, net.links, strict=True)):
        files = [open_load(flows) for flows in net.flows if k in flows.route]
        fixed = float(link.cross) + sum(float(load) for load in files if load is not None)
        out += [f"links.{name}: {text}" for text in _of_link(link, fixed, fluid)]
    for name, flows in zip(net.flow_names, net.flows, strict=True):
        route = {net.link_names[k]: net.links[k] for k in flows.route}
        out += [f"flows.{name}: {text}" for text in _of_flows(flows, route, fluid)]
    return tuple(out)


def _of_link(link: Link, fixed: float, fluid: bool) -> Iterator[str]:
    """Unresponsive traffic versus the rate of the link; `fixed` [packet/s] leaves out the calls."""
    capacity = float(link.capacity)
    if link.voice is not None:
        voice, calls = link.voice, float(link.voice.mean(link.packet_size))
        if voice.discipline == "wfq" and calls > voice.share * capacity:
            yield (
                f"the mean rate of the voice calls, {calls:g} packet/s, is above their share "
                f"of the link, {float(voice.share) * capacity:g} packet/s"
            )
        capacity = float(voice.left(capacity, calls))
        fixed += float(voice.mixed(calls))
    if fluid and link.random_loss is not None:
        yield f"each packet is lost with probability {float(link.random_loss):g} in the fluid too"
    if fixed >= capacity:
        yield (
            f"traffic that no signal slows comes at {fixed:g} packet/s and leaves nothing of "
            f"{capacity:g} packet/s"
        )


def _of_flows(flows: Flows, route: dict[str, Link], fluid: bool) -> Iterator[str]:
    """Laws of a group that disagree with each other or with the queue laws of its route."""
    window, longest = flows.window, float(np.max(flows.rtt))  # [s]
    if longest > _LONG:
        yield f"its round trip takes {longest:g} s; in a scenario plain numbers are seconds"
    load, sources = open_load(flows), float(flows.traffic.sources())
    if fluid and load is not None:
        yield f"its files are traffic of {float(load):g} packet/s that no signal slows in the fluid"
    elif fluid and sources != 1:
        number = float(sum(flows.n)) * sources
        yield f"its sessions are {number:g} on/off sources of their mean rate in the fluid"
    if fluid and growth_per_packet(flows) != 1:
        yield "its delayed ACKs halve the growth in the fluid, which has no bursts of two packets"
    if hasattr(window, "pause") and not flows.feedback.quench:
        yield f"{window.name} is made for source quenches, and {flows.feedback.name} has none"
    if not window.loads:
        return
    routers = {name: link.queue for name, link in route.items() if link.queue.loads}
    if not routers:
        lowest = (
            f", {100 * float(window.lowest):g} %" if isinstance(window, AbstractLoadCode) else ""
        )
        yield (
            f"no link of its route sends a load factor, so {window.name} takes the least of its "
            f"code{lowest}, and grows until a mark or a loss"
        )
    for name, queue in routers.items():
        yield from _unlike(window, queue, ("t_p",), f"{queue.name} of links.{name}")
    yield from _unlike(window, flows.estimator, tuple(infos(window)), flows.estimator.name)


def _unlike(law: Law, other: Law, names: tuple[str, ...], label: str) -> Iterator[str]:
    """Parameters of one name that two laws must agree on."""
    for name in names:
        a, b = getattr(law, name, None), getattr(other, name, None)
        if a is not None and b is not None and float(a) != float(b):
            unit = infos(law)[name].unit
            a, b = (f"{float(v):g}" + ("" if unit == "1" else f" {unit}") for v in (a, b))
            yield f"{name} of {law.name} is {a}, that of {label} is {b}"
