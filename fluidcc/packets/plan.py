"""What a network means packet by packet: one entry per flow, with sizes, delays and routes.

The sender sits `access_delay` before its first link, the receiver at the end of its last link;
what remains of the round trip is the way of the ACKs.
"""

import dataclasses

import numpy as np

from fluidcc.laws.law import Moment, Signal
from fluidcc.network import Flows, Network
from fluidcc.packets.options import SenderOptions, sender_options
from fluidcc.packets.refusals import refusals


class PacketError(ValueError):
    """A network that cannot be simulated packet by packet, or a run that failed."""


@dataclasses.dataclass(frozen=True)
class FlowPlan:
    """One flow."""

    group: int
    rtt: float  # s, propagation both ways
    route: tuple[int, ...]
    access_delay: float  # s
    access_rate: float  # byte/s, 0 for no limit
    return_delay: float  # s, receiver to sender
    quench_delays: tuple[float, ...]  # s, from each link of the route to the sender


@dataclasses.dataclass(frozen=True)
class GroupPlan:
    """What the flows of a group share."""

    flows: Flows
    options: SenderOptions
    size: int  # byte
    max_window: float  # packet
    markable: bool  # its packets may be marked
    echoes: bool  # its receivers echo marks
    moment: Moment  # when signals to them are decided


@dataclasses.dataclass(frozen=True)
class Plan:
    """All groups and flows of a network."""

    net: Network
    groups: tuple[GroupPlan, ...]
    flows: tuple[FlowPlan, ...]

    def members(self, group: int) -> np.ndarray:
        """Numbers of the flows of a group."""
        return np.array([k for k, f in enumerate(self.flows) if f.group == group])


def _whole(value: float, what: str) -> int:
    if not (np.isfinite(value) and value == round(value) and value >= 1):
        raise PacketError(f"{what}: expected a whole number of at least 1, got {value!r}")
    return round(value)


def _group(net: Network, k: int) -> GroupPlan:
    flows, name = net.flows[k], f"flows.{net.flow_names[k]}"
    sizes = {float(net.links[link].packet_size) for link in flows.route}
    if len(sizes) > 1:
        raise PacketError(f"{name}.route: packet_size must be equal on its links, got {sizes}")
    heard = flows.feedback.hears(Signal(mark=1.0, drop=0.0))
    markable = flows.feedback.marks and float(heard.mark) > 0
    max_window = float(flows.window.max_window)
    if max_window < 1:
        raise PacketError(f"{name}.window.max_window: expected at least 1, got {max_window!r}")
    return GroupPlan(
        flows=flows,
        options=sender_options(flows.sender),
        size=_whole(sizes.pop(), f"{name}: packet_size in B"),
        max_window=max_window,
        markable=markable,
        echoes=markable and not flows.feedback.quench,
        moment=flows.feedback.moment,
    )


def _flow(net: Network, k: int, size: int, rtt: float) -> FlowPlan:
    flows, name = net.flows[k], f"flows.{net.flow_names[k]}"
    access = 0.0 if flows.access_delay is None else float(flows.access_delay)
    delays = [float(net.links[link].delay) for link in flows.route]
    back = rtt - access - sum(delays)
    if back < 0:
        raise PacketError(
            f"{name}.rtt: expected at least its way there, {access + sum(delays):g} s, got {rtt:g}"
        )
    before = [access + sum(delays[:j]) for j in range(len(delays))]
    if flows.reverse_delay is not None:
        before = [float(flows.reverse_delay)] * len(delays)
    if flows.feedback.moment is Moment.REVERSE and max(before) > back:
        raise PacketError(
            f"{name}.reverse_delay: ACKs pass the router on their way of {back:g} s, got "
            f"{max(before):g} s from there to the source"
        )
    rate = float(flows.access_capacity) * size
    return FlowPlan(
        group=k,
        rtt=rtt,
        route=flows.route,
        access_delay=access,
        access_rate=rate if np.isfinite(rate) else 0.0,
        return_delay=back,
        quench_delays=tuple(before),
    )


def plan(net: Network) -> Plan:
    """Lay out the flows of a network; raises PacketError for what packets cannot do."""
    refused = refusals(net)
    if refused:
        raise PacketError(f"not simulated packet by packet: {'; '.join(refused)}")
    groups = tuple(_group(net, k) for k in range(len(net.flows)))
    flows = []
    for k, group in enumerate(groups):
        numbers = np.atleast_1d(np.asarray(group.flows.n, dtype=float))
        rtts = np.atleast_1d(np.asarray(group.flows.rtt, dtype=float))
        numbers, rtts = np.broadcast_arrays(numbers, rtts)
        for number, rtt in zip(numbers, rtts, strict=True):
            count = _whole(float(number), f"flows.{net.flow_names[k]}.n")
            flows += [_flow(net, k, group.size, float(rtt))] * count
    return Plan(net, groups, tuple(flows))
