"""Warnings about networks that are valid but probably not intended."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fluidcc.laws.law import AbstractQueueLaw, Arrival, Law
from fluidcc.laws.load_code import AbstractLoadCode
from fluidcc.laws.parameters import infos
from fluidcc.model.fluid import open_load
from fluidcc.programs import leaves
from fluidcc.scenario.network import (
    Flows,
    Link,
    Network,
    growth_per_packet,
    require_network,
    why_packets,
)

_LONG = 10.0  # [s] of a delay or a period that is more likely given in milliseconds
_TIMES = ("rtt", "access_delay", "reverse_delay")


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
    out = milliseconds(net)
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


def faults_of_sharing(net: Network, links: Mapping[str, Any]) -> list[str]:
    """A sentence for each queue that mean windows serve first and packets do not, as the head
    behind it has waited longer by more than its `shift`, and for each law behind another queue that
    counts packets. `links` have a `queueing_delay` [s], a number or over time.
    """
    out = []
    for name, link in zip(net.link_names, net.links, strict=True):
        behind = "" if link.beside is None else net.link_names[link.beside]
        if behind and _counts_packets(law := net.links[link.beside].queue):  # type: ignore[index]
            out.append(
                f"links.{behind}.queue: {law.name} counts packets, and mean windows show it the "
                f"delay times the whole capacity, of which links.{name} takes a part; a law by "
                "seen.sojourn has an answer, and `fluidcc trains` and `fluidcc packets` count right"
            )
        if behind and link.shift is not None:
            longer = np.max(links[behind].queueing_delay - links[name].queueing_delay)
            if longer > link.shift:
                out.append(
                    f"links.{behind} waits {longer:.4g} s longer than links.{name}, more than its "
                    f"shift of {float(link.shift):.4g} s: mean windows serve links.{name} first "
                    "even then, `fluidcc trains` and `fluidcc packets` do not"
                )
    return out


def _counts_packets(law: AbstractQueueLaw) -> bool:
    """Whether a law asks for the number of packets in the queue, beyond a few, and not for how long
    they wait.
    """
    x, answers = law.start(15.0), []
    for queue in np.geomspace(3.0, 1e4, 15).tolist():
        seen = Arrival(1.0, 0.01, queue, 1e3, 1.0, 0.03, buffer=100.0)
        rules = law.signal, law.move_memory, law.on_signal, law.on_tick
        answers.append([float(v) for rule in rules for v in leaves(rule(x, seen))])
    return any(answer != answers[0] for answer in answers)


def milliseconds(net: Network) -> list[str]:
    """A sentence for each delay or period of so many seconds that these may be milliseconds."""
    times: dict[str, Any] = {}
    for name, link in zip(net.link_names, net.links, strict=True):
        times[f"links.{name}.delay"] = link.delay
        own = (key for key, info in infos(link.queue).items() if info.unit == "s")
        times |= {f"links.{name}.queue.{key}": getattr(link.queue, key) for key in own}
    for name, flows in zip(net.flow_names, net.flows, strict=True):
        times |= {f"flows.{name}.{key}": getattr(flows, key) for key in _TIMES}
    longest = {path: float(np.max(time)) for path, time in times.items() if time is not None}
    note = '{} is {:g} s: plain numbers are seconds ("{:g} ms" for milliseconds)'
    return [note.format(path, time, time) for path, time in longest.items() if time > _LONG]


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
    window = flows.window
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
        yield from _unlike(window, queue, ("t_p", "base"), f"{queue.name} of links.{name}")
    estimated = infos(flows.estimator)
    shared = tuple(name for name in infos(window) if name in estimated)
    yield from _unlike(window, flows.estimator, shared, flows.estimator.name)


def _unlike(law: Law, other: Law, names: tuple[str, ...], label: str) -> Iterator[str]:
    """Parameters of one name that two laws must agree on."""
    for name in names:
        a, b = getattr(law, name, None), getattr(other, name, None)
        if a is not None and b is not None and float(a) != float(b):
            unit = infos(law)[name].unit
            a, b = (f"{float(v):g}" + ("" if unit == "1" else f" {unit}") for v in (a, b))
            yield f"{name} of {law.name} is {a}, that of {label} is {b}"
