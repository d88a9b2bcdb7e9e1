"""What a network means packet by packet: one entry per flow, with sizes, delays and routes.

The sender sits `access_delay` before its first link, the receiver at the end of its last link;
what remains of the round trip is the way of the ACKs. Where they pass links, the sender sits
`access_delay` behind the last of these, and what remains is before the first.
"""

import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from fluidcc.laws.law import AbstractSource, Moment, Signal
from fluidcc.network import Flows, Network
from fluidcc.packets.options import SenderOptions, sender_options
from fluidcc.packets.refusals import refusals
from fluidcc.voice import Voice
from fluidcc.ways import forward_delays, link_delays, reverse_delays

_ROUNDING = 1e-12  # of delays that are added up
_LARGEST_PACKET = 10_000_000  # byte
_MOST_CALLS = 100_000  # on a link
_FEW = 1000  # packets assumed to wait in a buffer without limit
_MOST_PLACES = 50_000  # transfers of one source at a time


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
    back: tuple[int, ...]  # links that ACKs pass
    return_delay: float  # s, receiver to the first of these, or to the sender
    home_delay: float  # s, the last of these to the sender
    quench_delays: tuple[float, ...]  # s, from each link of the route to the sender
    source: int = -1  # what it sends files of; -1 where it always has something to send
    request: int = -1  # flow whose end begins a transfer; -1 for none
    answers: int = -1  # flow that the end of this one begins, a request; -1 for none


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
class BackgroundPlan:
    """Packets on one link that no signal slows: Poisson cross traffic, or voice calls."""

    link: int
    size: int  # byte
    group: int | None  # the first whose flows pass the link
    voice: Voice | None  # None for cross traffic

    @property
    def beside(self) -> bool:
        """Whether the port has a queue of its own for it."""
        return self.voice is not None and self.voice.discipline == "wfq"


@dataclasses.dataclass(frozen=True)
class SourcePlan:
    """What brings files: flows with one session each, or a source that hands them to `flows`."""

    group: int
    flows: tuple[int, ...]
    sessions: int  # at a time


@dataclasses.dataclass(frozen=True)
class Plan:
    """All groups and flows of a network.

    Flows of open sources, and of requests, follow all others. Groups of requests follow those of
    the network.
    """

    net: Network
    groups: tuple[GroupPlan, ...]
    flows: tuple[FlowPlan, ...]
    background: tuple[BackgroundPlan, ...] = ()
    sources: tuple[SourcePlan, ...] = ()

    def scaled(self, scale: int) -> "Plan":
        """The plan with `scale` times the places for transfers of open sources."""
        opened = scale > 1 and any(group.flows.traffic.open for group in self.groups)
        return plan(self.net, scale) if opened else self

    def members(self, group: int) -> tuple[np.ndarray, ...]:
        """Numbers of the flows of a group: one array for each flow, or each open source."""
        if self.groups[group].flows.traffic.open:
            return tuple(np.array(s.flows) for s in self.sources if s.group == group)
        return tuple(np.array([k]) for k, f in enumerate(self.flows) if f.group == group)


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
    delays = [float(delay) for delay in link_delays(net)]
    way = float(forward_delays(flows, delays)[-1])
    home = access if flows.reverse_route else 0.0
    passed = home + sum(delays[link] for link in flows.reverse_route)
    back = rtt - way - passed
    if flows.reverse_route and back < -_ROUNDING * rtt:
        raise PacketError(
            f"{name}.rtt: expected at least its way there and back, {way + passed:g} s, got {rtt:g}"
        )
    back = max(back, 0.0) if flows.reverse_route else back
    if back < 0:
        raise PacketError(f"{name}.rtt: expected at least its way there, {way:g} s, got {rtt:g}")
    ways = [float(delay) for delay in reverse_delays(flows, delays)]
    if flows.feedback.moment is Moment.REVERSE:
        if ways != sorted(ways):
            raise PacketError(
                f"{name}.reverse_delay: ACKs pass the routers from the last to the first, got "
                f"{ways} s from there to the source"
            )
        if ways[-1] > back + _ROUNDING * rtt:
            raise PacketError(
                f"{name}.reverse_delay: ACKs pass the router on their way of {back:g} s, got "
                f"{ways[-1]:g} s from there to the source"
            )
        ways = [min(delay, back) for delay in ways]
    rate = float(flows.access_capacity) * size
    return FlowPlan(
        group=k,
        rtt=rtt,
        route=flows.route,
        access_delay=access,
        access_rate=rate if np.isfinite(rate) else 0.0,
        back=flows.reverse_route,
        return_delay=back,
        home_delay=home,
        quench_delays=tuple(ways),
    )


def _at_most(value: float, most: int, what: str) -> None:
    if value > most:
        raise PacketError(f"{what}: expected at most {most}, got {value:g}")


def _background(net: Network) -> Iterator[BackgroundPlan]:
    """Traffic beside the flows, link by link."""
    for k, (name, link) in enumerate(zip(net.link_names, net.links, strict=True)):
        passing = (g for g, flows in enumerate(net.flows) if k in flows.route)
        group = next(passing, None)
        if float(link.cross) > 0:
            size = _whole(float(link.packet_size), f"links.{name}.packet_size in B")
            _at_most(size, _LARGEST_PACKET, f"links.{name}.packet_size in B")
            yield BackgroundPlan(k, size, group, None)
        if link.voice is not None:
            size, path = float(link.voice.frame_bytes()), f"links.{name}.voice"
            _at_most(size, _LARGEST_PACKET, f"{path}: bytes in a packet by codec and frame")
            calls = min(float(link.voice.offered()), float(link.voice.most))
            _at_most(calls, _MOST_CALLS, f"{path}: calls at a time")
            yield BackgroundPlan(k, max(round(size), 1), group, link.voice)


def _rows(net: Network, k: int, group: GroupPlan) -> list[FlowPlan]:
    """One entry for each flow, or open source, of a group."""
    rows: list[FlowPlan] = []
    numbers = np.atleast_1d(np.asarray(group.flows.n, dtype=float))
    rtts = np.atleast_1d(np.asarray(group.flows.rtt, dtype=float))
    numbers, rtts = np.broadcast_arrays(numbers, rtts)
    for number, rtt in zip(numbers, rtts, strict=True):
        count = _whole(float(number), f"flows.{net.flow_names[k]}.n")
        rows += [_flow(net, k, group.size, float(rtt))] * count
    return rows


def _places(net: Network, row: FlowPlan, traffic: AbstractSource, scale: int) -> int:
    """Transfers at a time of one open source, generously."""
    links = [net.links[k] for k in row.route]
    trip = row.rtt + sum(min(float(k.buffer), _FEW) / float(k.capacity) for k in links)
    trips = 3 + math.log2(1 + float(traffic.ending(1.0)) ** -1) + 2 * float(traffic.request() > 0)
    return scale * (16 + math.ceil(2 * float(traffic.beginning()) * trips * trip))


def _request_group(net: Network, k: int, group: GroupPlan) -> GroupPlan:
    """The requests of a group, which go the way of its acknowledgements."""
    name = f"flows.{net.flow_names[k]}"
    if not group.flows.reverse_route:
        raise PacketError(
            f"{name}.reverse_route: expected the links that requests go through, got none; "
            f"{name}.traffic.ask = 0 leaves requests out"
        )
    links = [net.links[link] for link in group.flows.reverse_route]
    size = _whole(float(links[0].packet_size), f"{name}: packet_size of requests in B")
    return dataclasses.replace(group, size=size)


def _request(net: Network, row: FlowPlan, group: int, answers: int) -> FlowPlan:
    """The flow of the request before a transfer: from the receiver to the sender."""
    delays = [float(delay) for delay in link_delays(net)]
    ahead = np.cumsum([row.return_delay, *(delays[link] for link in row.back[:-1])])
    return dataclasses.replace(
        row,
        group=group,
        route=row.back,
        access_delay=row.return_delay,
        back=row.route,
        return_delay=row.home_delay + row.access_delay,
        home_delay=0.0,
        quench_delays=tuple(float(delay) for delay in ahead),
        source=-1,
        answers=answers,
    )


@dataclasses.dataclass
class _Layout:
    """Flows and sources as they are laid out."""

    net: Network
    groups: list[GroupPlan]
    flows: list[FlowPlan] = dataclasses.field(default_factory=list)
    sources: list[SourcePlan] = dataclasses.field(default_factory=list)

    def closed(self, k: int) -> None:
        """Add the flows of a group, with the files that they bring."""
        rows, first = _rows(self.net, k, self.groups[k]), len(self.flows)
        if self.groups[k].flows.traffic.starts:
            rows = [dataclasses.replace(row, source=len(self.sources)) for row in rows]
            numbers = tuple(range(first, first + len(rows)))
            self.sources.append(SourcePlan(k, numbers, len(rows)))
        self.flows += rows

    def opened(self, k: int, scale: int) -> None:
        """Add the open sources of a group, with places for their transfers."""
        traffic, asking = self.groups[k].flows.traffic, -1
        if float(traffic.request()) > 0:
            asking = len(self.groups)
            self.groups.append(_request_group(self.net, k, self.groups[k]))
        for row in _rows(self.net, k, self.groups[k]):
            places, numbers = _places(self.net, row, traffic, scale), []
            if places > _MOST_PLACES:
                raise PacketError(
                    f"flows.{self.net.flow_names[k]}.traffic: more than "
                    f"{_MOST_PLACES} transfers at a time"
                )
            for _ in range(places):
                numbers.append(len(self.flows))
                request = numbers[-1] + 1 if asking >= 0 else -1
                self.flows.append(
                    dataclasses.replace(row, source=len(self.sources), request=request)
                )
                if asking >= 0:
                    self.flows.append(_request(self.net, row, asking, numbers[-1]))
            sessions = max(places, scale * math.ceil(1.5 * float(traffic.sources())))
            self.sources.append(SourcePlan(k, tuple(numbers), sessions))


def plan(net: Network, scale: int = 1) -> Plan:
    """Lay out the flows of a network; raises PacketError for what packets cannot do.

    `scale` multiplies the number of transfers that open sources may have under way.
    """
    refused = refusals(net)
    if refused:
        raise PacketError(f"not simulated packet by packet: {'; '.join(refused)}")
    layout = _Layout(net, [_group(net, k) for k in range(len(net.flows))])
    kinds = [flows.traffic.open for flows in net.flows]
    for k in (k for k, opened in enumerate(kinds) if not opened):
        layout.closed(k)
    for k in (k for k, opened in enumerate(kinds) if opened):
        layout.opened(k, scale)
    return Plan(
        net, tuple(layout.groups), tuple(layout.flows), tuple(_background(net)),
        tuple(layout.sources),
    )  # fmt: skip
