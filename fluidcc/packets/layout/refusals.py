"""What the packet engine cannot simulate yet, in words: nothing is left out without saying so."""

from collections.abc import Iterator

from fluidcc.laws.law import Arrival
from fluidcc.network import Flows, Link, Network
from fluidcc.packets.layout.options import sender_options

_RECOVERIES = ("reno", "newreno", "sack")


def _link(link: Link) -> Iterator[tuple[str, str]]:
    law = link.queue
    often, seldom = (Arrival(1.0, elapsed, 1.0, 1.0) for elapsed in (1e-9, 1e9))
    state = law.start(1.0)
    if law.signal(state, often).mark != law.signal(state, seldom).mark:
        yield "queue", f"{law.name} states its marks as a share of a rate, not packet by packet"


def _flows(flows: Flows) -> Iterator[tuple[str, str]]:
    law = flows.window
    if law.recovery not in _RECOVERIES and sender_options(flows.sender).recovery == "law":
        known = " or ".join(f'"{name}"' for name in _RECOVERIES)
        yield "window", f"{law.name} recovers by {law.recovery}; set sender.recovery = {known}"


def refusals(net: Network) -> list[str]:
    """One line for each part of a network that packets cannot do, by its path in a scenario."""
    links = zip(net.link_names, net.links, strict=True)
    flows = zip(net.flow_names, net.flows, strict=True)
    found = [(f"links.{name}.{key}", why) for name, part in links for key, why in _link(part)]
    found += [(f"flows.{name}.{key}", why) for name, part in flows for key, why in _flows(part)]
    return [f"{path}: {why}" for path, why in found]
