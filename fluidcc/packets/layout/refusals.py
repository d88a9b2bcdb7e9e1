"""What the packet engine cannot simulate yet, in words: nothing is left out without saying so."""

from collections.abc import Iterator

from fluidcc.laws.law import RECOVERIES, AbstractQueueLaw, Arrival, Moment
from fluidcc.scenario.network import Flows, Link, Network
from fluidcc.scenario.sender import sender_options


def _by_rate(law: AbstractQueueLaw) -> bool:
    """Whether marks depend on the rate of arrivals, and so mean something for these alone."""
    often, seldom = (Arrival(1.0, elapsed, 1.0, 1.0) for elapsed in (1e-9, 1e9))
    state = law.start(1.0)
    return bool(law.signal(state, often).mark != law.signal(state, seldom).mark)


def _link(link: Link) -> Iterator[tuple[str, str]]:
    try:
        law = link.queue.in_packets(float(link.buffer))
    except ValueError as error:
        yield "queue", str(error)
        return
    if _by_rate(law):
        yield "queue", f"{law.name} states its marks as a share of a rate, not packet by packet"


def _on_arrival(flows: Flows, law: AbstractQueueLaw) -> Iterator[tuple[str, str]]:
    """What does not go with a law that marks the packets which come too fast."""
    told, p = flows.feedback, 0.3  # any probability
    if told.moment is not Moment.ENTRY:
        why = f"{told.name} decides {told.moment.value}"
        yield "feedback", f"{law.name} judges data packets as they enter the queue, {why}"
    if float(flows.marking.probability(p, flows.window)) != p:
        why = f"{flows.marking.name} needs a probability"
        yield "marking", f"{law.name} says to each packet whether it is marked, {why}"


def _passed(flows: Flows) -> tuple[int, ...]:
    """Links that packets of these flows pass, with the requests before transfers."""
    return flows.route + (flows.reverse_route if float(flows.traffic.request()) > 0 else ())


def _flows(flows: Flows, passed: list[Link]) -> Iterator[tuple[str, str]]:
    law = flows.window
    if law.recovery not in RECOVERIES and sender_options(flows.sender).recovery == "law":
        known = " or ".join(f'"{name}"' for name in RECOVERIES)
        yield "window", f"{law.name} recovers by {law.recovery}; set sender.recovery = {known}"
    for queue in (link.queue for link in passed if _by_rate(link.queue)):
        yield from _on_arrival(flows, queue)


def refusals(net: Network) -> list[str]:
    """One line for each part of a network that packets cannot do, by its path in a scenario."""
    found = [
        (f"links.{name}.{key}", why)
        for name, link in zip(net.link_names, net.links, strict=True)
        for key, why in _link(link)
    ]
    found += [
        (f"flows.{name}.{key}", why)
        for name, flows in zip(net.flow_names, net.flows, strict=True)
        for key, why in _flows(flows, [net.links[k] for k in _passed(flows)])
    ]
    return [f"{path}: {why}" for path, why in found]
