"""A network packet by packet: one entry per flow, with sizes, delays and routes.

The sender sits `access_delay` before its first link, the receiver at the end of its last link;
the rest of the round trip is the path of the ACKs. If they pass links, the sender sits
`access_delay` after the last of these, and the rest lies before the first.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator

import numpy as np

from fluidcc.laws.law import (
    RECOVERIES,
    SIGNALS,
    AbstractQueueLaw,
    AbstractSource,
    Arrival,
    MarkingPoint,
    Signal,
    Since,
)
from fluidcc.laws.voice import Voice
from fluidcc.scenario.network import (
    ROUNDING,
    Flows,
    Link,
    Network,
    Start,
    forward_delays,
    link_delays,
    require_network,
    reverse_delays,
    unfit_reverse_delays,
)
from fluidcc.scenario.sender import SenderOptions, sender_options

UNBOUNDED = 1000.0  # packets assumed, at first, to wait in a buffer without limit

_LARGEST_PACKET = 10_000_000  # byte
_MOST_CALLS = 100_000  # on a link
_MOST_PLACES = 50_000  # transfers, or sessions, of one source at a time
_MOST_FLOWS = 200_000  # with those provided for transfers
_MOST_REQUESTED = 1_000_000_000  # packets of a request
_MOST_PER_SECOND = 1_000_000_000  # packets, calls or files that arrive by themselves


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
    forward: float  # s, propagation from source to receiver
    return_delay: float  # s, receiver to the first of these, or to the sender
    home_delay: float  # s, the last of these to the sender
    quench_delays: tuple[float, ...]  # s, from each link of the route to the sender
    start: Start  # of this flow, or of the open source that hands it files
    stop: float = math.inf  # s, from when it has no new data
    source: int = -1  # whose files it sends; -1 if it always has something to send
    request_flow: int = -1  # flow of the request that begins its transfers; -1 for none
    data_flow: int = -1  # flow that begins when this one, a request, ends; -1 for none
    slot: int = -1  # number among the flows of open sources, however many each has; else -1


@dataclasses.dataclass(frozen=True)
class GroupPlan:
    """Properties that the flows of a group share."""

    flows: Flows
    options: SenderOptions
    size: int  # byte
    max_window: float  # packet
    ecn_capable: bool  # its packets may be marked
    ecn_echo: bool  # its receivers echo marks
    marking_point: MarkingPoint  # when signals to them are decided

    @property
    def largest_flight(self) -> float:
        """Most packets in flight [packet]: the largest window, unless its law goes by rate."""
        return math.inf if self.flows.window.rate_based else self.max_window


@dataclasses.dataclass(frozen=True)
class BackgroundPlan:
    """Packets on one link without congestion control: Poisson cross traffic, or voice calls."""

    link: int
    size: int  # byte
    group: int | None  # the first whose flows pass the link
    voice: Voice | None  # None for cross traffic

    @property
    def has_own_class(self) -> bool:
        """Whether the port serves it as a second class, with a queue of its own."""
        return self.voice is not None and self.voice.discipline == "wfq"


@dataclasses.dataclass(frozen=True)
class SourcePlan:
    """A source of files: flows with one session each, or one that hands its files to `flows`."""

    group: int
    flows: tuple[int, ...]
    sessions: int  # at a time


@dataclasses.dataclass(frozen=True)
class Plan:
    """All groups and flows of a network; `net` is the one `given`, by group on fair links.

    Flows of open sources, and of requests, follow all others. Groups of requests follow those of
    the network.
    """

    given: Network
    net: Network
    groups: tuple[GroupPlan, ...]
    flows: tuple[FlowPlan, ...]
    background: tuple[BackgroundPlan, ...] = ()
    sources: tuple[SourcePlan, ...] = ()
    scale: int = 1  # of the number of flows of open sources

    def crossing(self, link: int) -> tuple[int, ...]:
        """Numbers of the flows whose packets or acknowledgements cross a link."""
        return tuple(k for k, flow in enumerate(self.flows) if link in flow.route + flow.back)

    def queues(self, link: int) -> int:
        """Number of queues of a link."""
        return max(len(self.crossing(link)), 1) if self.net.links[link].fair else 1

    def scaled(self, scale: int) -> "Plan":
        """The plan with `scale` times the flows for transfers of open sources, or the most."""
        opened = scale > 1 and any(group.flows.traffic.open for group in self.groups)
        return plan(self.given, scale) if opened else self

    def members(self, group: int) -> tuple[np.ndarray, ...]:
        """Numbers of the flows of a group: one array for each flow, or each open source."""
        if self.groups[group].flows.traffic.open:
            return tuple(np.array(s.flows) for s in self.sources if s.group == group)
        return tuple(np.array([k]) for k, f in enumerate(self.flows) if f.group == group)


def is_gated(flows: Flows) -> bool:
    """Whether the reaction lets some signals pass only."""
    cases = itertools.product((0.0, 1e9), (0.0, 1.0), (0.0, 1.0))
    return any(float(flows.reaction.ready(Since(t, 1.0, w, d))) == 0 for t, w, d in cases)


def smallest_window(flows: Flows) -> float:
    """Smallest window after a cut: below 1, a sender waits for its timer. RFC 3168, 6.1.2.

    A law that reacts to every mark, or that has no slow start, keeps to its own least window.
    """
    law = flows.window
    always = all(float(law.slow_start(law.start(w))) == 1 for w in (1.0, 9.0)) and not law.loads
    least = float(law.min_window)
    return 0.0 if is_gated(flows) and always and least <= 1 else least


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
    """Options that cannot be combined with a law that marks packets that arrive too fast."""
    feedback, p = flows.feedback, 0.3  # any probability
    if feedback.marking_point is not MarkingPoint.ENTRY:
        why = f"{feedback.name} decides {feedback.marking_point.value}"
        yield "feedback", f"{law.name} judges data packets as they enter the queue, {why}"
    if float(flows.marking.probability(p, flows.window)) != p:
        why = f"{flows.marking.name} needs a probability"
        yield "marking", f"{law.name} decides for each packet whether it is marked, {why}"


def _flows(flows: Flows, links: tuple[Link, ...]) -> Iterator[tuple[str, str]]:
    law = flows.window
    if flows.feedback.marking_point is MarkingPoint.REVERSE:
        for queue in (links[k].queue for k in flows.route):
            if queue.at_departure:
                own = f"{flows.feedback.name} {flows.feedback.marking_point.value}"
                yield "feedback", f"{queue.name} decides as data packets leave the queue, {own}"
    if law.recovery not in RECOVERIES and sender_options(flows.sender).recovery == "law":
        known = " or ".join(f'"{name}"' for name in RECOVERIES)
        yield "window", f"{law.name} recovers by {law.recovery}; set sender.recovery = {known}"
    requests = flows.reverse_route if float(flows.traffic.request()) > 0 else ()
    for queue in (links[k].queue for k in flows.route + requests):
        if _by_rate(queue):
            yield from _on_arrival(flows, queue)
    if flows.traffic.open and any(links[k].fair for k in flows.route + flows.reverse_route):
        yield "traffic", "files that come by themselves have no queue of their own on a fair link"


def _refusals(net: Network) -> list[str]:
    """One line for each part of a network that packets cannot do, by its path in a scenario."""
    found = [
        (f"links.{name}.{key}", why)
        for name, link in zip(net.link_names, net.links, strict=True)
        for key, why in _link(link)
    ]
    found += [
        (f"flows.{name}.{key}", why)
        for name, flows in zip(net.flow_names, net.flows, strict=True)
        for key, why in _flows(flows, net.links)
    ]
    return [f"{path}: {why}" for path, why in found]


def _whole(value: float, what: str) -> int:
    if not (np.isfinite(value) and value == round(value) and value >= 1):
        raise PacketError(f"{what}: expected a whole number of at least 1, got {value!r}")
    return round(value)


def _at_most(value: float, most: int, what: str) -> None:
    if not value <= most:
        raise PacketError(f"{what}: expected at most {most}, got {value:g}")


def _size(value: float, what: str) -> int:
    """Bytes of a packet."""
    size = _whole(value, f"{what} in B")
    _at_most(size, _LARGEST_PACKET, f"{what} in B")
    return size


def _group(net: Network, k: int) -> GroupPlan:
    flows, name = net.flows[k], f"flows.{net.flow_names[k]}"
    sizes = {float(net.links[link].packet_size) for link in flows.route}
    if len(sizes) > 1:
        raise PacketError(f"{name}.route: packet_size must be equal on its links, got {sizes}")
    received = flows.feedback.interpret(Signal(mark=1.0, drop=0.0))
    ecn_capable = flows.feedback.marks and float(received.mark) > 0
    max_window = float(flows.window.max_window)
    if max_window < 1:
        raise PacketError(f"{name}.window.max_window: expected at least 1, got {max_window!r}")
    law = flows.window.in_packets()
    if kept := [field for field in law.reads if field in SIGNALS and SIGNALS[field].looks_back]:
        raise PacketError(
            f"{name}.window: {law.name} reads ack.{kept[0]}, which the mean alone has: expected a "
            "law from in_packets() that keeps the delay before in its own memory"
        )
    return GroupPlan(
        flows=dataclasses.replace(flows, window=law),
        options=sender_options(flows.sender),
        size=_size(sizes.pop(), f"{name}: packet_size"),
        max_window=max_window,
        ecn_capable=ecn_capable,
        ecn_echo=ecn_capable and not flows.feedback.quench,
        marking_point=flows.feedback.marking_point,
    )


def _flow(net: Network, k: int, size: int, rtt: float) -> FlowPlan:
    flows, name = net.flows[k], f"flows.{net.flow_names[k]}"
    access = 0.0 if flows.access_delay is None else float(flows.access_delay)
    delays = [float(delay) for delay in link_delays(net)]
    forward = float(forward_delays(flows, delays)[-1])
    home = access if flows.reverse_route else 0.0
    reverse = home + sum(delays[link] for link in flows.reverse_route)
    back = rtt - forward - reverse
    if back < (-ROUNDING * rtt if flows.reverse_route else 0):
        raise PacketError(
            f"{name}.rtt: expected at least the delays of its path, {forward + reverse:g} s, got "
            f"{rtt:g}"
        )
    back = max(back, 0.0)
    quench = [float(delay) for delay in reverse_delays(flows, delays)]
    if flows.feedback.marking_point is MarkingPoint.REVERSE and flows.reverse_route:
        if len(flows.reverse_route) != len(flows.route):
            raise PacketError(
                f"{name}.reverse_route: {flows.feedback.name} lets each router rewrite the ACKs of "
                "the data that it queues, so that ACKs must pass the routers of route, the last "
                f"first: expected as many links as in route, {len(flows.route)}, got "
                f"{len(flows.reverse_route)}"
            )
    elif flows.feedback.marking_point is MarkingPoint.REVERSE:
        for _, expected, found in unfit_reverse_delays(flows, delays, net.link_names):
            raise PacketError(f"{name}.reverse_delay: expected {expected}, got {found:g} s")
        quench = [min(delay, back) for delay in quench]
    rate = float(flows.access_capacity) * size
    return FlowPlan(
        group=k,
        rtt=rtt,
        route=flows.route,
        access_delay=access,
        access_rate=rate if np.isfinite(rate) else 0.0,
        back=flows.reverse_route,
        forward=forward,
        return_delay=back,
        home_delay=home,
        quench_delays=tuple(quench),
        start=flows.start,
    )


def _background(net: Network) -> Iterator[BackgroundPlan]:
    """Traffic without congestion control, link by link."""
    for k, (name, link) in enumerate(zip(net.link_names, net.links, strict=True)):
        passing = (g for g, flows in enumerate(net.flows) if k in flows.route)
        group = next(passing, None)
        if float(link.cross) > 0:
            _at_most(float(link.cross), _MOST_PER_SECOND, f"links.{name}.cross in packet/s")
            size = _size(float(link.packet_size), f"links.{name}.packet_size")
            yield BackgroundPlan(k, size, group, None)
        if link.voice is not None:
            size = _voice_size(link.voice, f"links.{name}.voice")
            yield BackgroundPlan(k, size, group, link.voice)


def _voice_size(voice: Voice, path: str) -> int:
    """Bytes in a packet of speech; raises PacketError for more voice than a run can hold."""
    size, offered = float(voice.frame_bytes()), float(voice.offered())
    _at_most(size, _LARGEST_PACKET, f"{path}: bytes in a packet by codec and frame")
    if size < 1:
        raise PacketError(f"{path}: bytes in a packet by codec and frame: at least 1, got {size:g}")
    _at_most(min(offered, float(voice.most)), _MOST_CALLS, f"{path}: calls at a time")
    often = {
        "packets of a talker per second, 1 / frame": 1 / float(voice.frame),
        "talk spurts per second, active / talk": float(voice.active) / float(voice.talk),
        "arriving calls per second": offered / float(voice.holding),
    }
    for what, rate in often.items():
        _at_most(rate, _MOST_PER_SECOND, f"{path}: {what}")
    return round(size)


def _rows(net: Network, k: int, group: GroupPlan) -> list[tuple[int, FlowPlan]]:
    """Flows, or open sources, of a group that are alike: their number, and one of them."""
    rows: list[tuple[int, FlowPlan]] = []
    numbers = np.atleast_1d(np.asarray(group.flows.n, dtype=float))
    rtts = np.atleast_1d(np.asarray(group.flows.rtt, dtype=float))
    numbers, rtts = np.broadcast_arrays(numbers, rtts)
    for number, rtt in zip(numbers, rtts, strict=True):
        count = _whole(float(number), f"flows.{net.flow_names[k]}.n")
        rows.append((count, _flow(net, k, group.size, float(rtt))))
    return rows


def _most_transfers(net: Network, row: FlowPlan, traffic: AbstractSource) -> float:
    """Estimate of the most transfers of one open source at a time, generously."""
    links = [net.links[k] for k in row.route]
    trip = row.rtt + sum(min(float(k.buffer), UNBOUNDED) / float(k.capacity) for k in links)
    trips = 3 + math.log2(1 + float(traffic.ending(1.0)) ** -1) + 2 * float(traffic.request() > 0)
    return 16 + 2 * float(traffic.beginning()) * trips * trip


def _capacity(net: Network, row: FlowPlan, traffic: AbstractSource, scale: int) -> tuple[int, int]:
    """Flows and sessions to provide for one open source, `scale` times what is likely."""
    name, most = f"flows.{net.flow_names[row.group]}.traffic", traffic.in_all()
    _at_most(float(traffic.beginning()), _MOST_PER_SECOND, f"{name}: transfers per second")
    _at_most(float(traffic.request()), _MOST_REQUESTED, f"{name}.ask in packets")
    slots = _most_transfers(net, row, traffic)
    _at_most(slots, _MOST_PLACES, f"{name}: transfers at a time")
    sessions = min(1.5 * float(traffic.sources()), most)
    _at_most(sessions, _MOST_PLACES, f"{name}: sessions at a time (most limits them)")
    slots = min(scale * math.ceil(slots), _MOST_PLACES)
    sessions = min(max(slots, scale * math.ceil(sessions)), _MOST_PLACES)
    return slots, math.ceil(min(sessions, most))


def _request_group(net: Network, k: int, group: GroupPlan) -> GroupPlan:
    """The requests of a group, which go along the path of its ACKs."""
    name = f"flows.{net.flow_names[k]}"
    if not group.flows.reverse_route:
        raise PacketError(
            f"{name}.reverse_route: expected the links that requests go through, got none; "
            f"{name}.traffic.ask = 0 leaves requests out"
        )
    links = [net.links[link] for link in group.flows.reverse_route]
    size = _size(float(links[0].packet_size), f"{name}: packet_size of requests")
    return dataclasses.replace(group, size=size)


def _request(net: Network, row: FlowPlan, group: int) -> FlowPlan:
    """The flow of the request before a transfer: from the receiver to the sender."""
    delays = [float(delay) for delay in link_delays(net)]
    ahead = np.cumsum([row.return_delay, *(delays[link] for link in row.back[:-1])])
    return dataclasses.replace(
        row,
        group=group,
        route=row.back,
        access_delay=row.return_delay,
        back=row.route,
        forward=row.rtt - row.forward,
        return_delay=row.home_delay + row.access_delay,
        home_delay=0.0,
        quench_delays=tuple(float(delay) for delay in ahead),
    )


@dataclasses.dataclass
class _Layout:
    """Flows and sources as they are laid out."""

    net: Network
    groups: list[GroupPlan]
    rows: list[list[tuple[int, FlowPlan]]]
    flows: list[FlowPlan] = dataclasses.field(default_factory=list)
    sources: list[SourcePlan] = dataclasses.field(default_factory=list)

    def largest_scale(self) -> int:
        """Largest scale that leaves room for all flows; raises PacketError if not even 1 does."""
        closed = opened = 0
        for group, rows in zip(self.groups, self.rows, strict=True):
            traffic = group.flows.traffic
            for count, row in rows:
                if traffic.open:
                    slots, _ = _capacity(self.net, row, traffic, 1)
                    opened += count * slots * (1 + int(float(traffic.request()) > 0))
                else:
                    closed += count
        _at_most(closed + opened, _MOST_FLOWS, "flows in all, with those provided for transfers")
        return (_MOST_FLOWS - closed) // max(opened, 1)

    def _each(self, k: int) -> list[FlowPlan]:
        """The flows of a group, or its open sources, one by one."""
        rows = [row for count, row in self.rows[k] for _ in range(count)]
        flows, number = self.groups[k].flows, len(rows)
        starts = [Start(t, t) for t in flows.start.each] or [flows.start] * number
        stops = flows.stop or (math.inf,)
        stops = stops if len(stops) > 1 else stops * number
        for key, times in (("start", starts), ("stop", stops)):
            if len(times) != number:
                name = f"flows.{self.net.flow_names[k]}.{key}"
                raise PacketError(f"{name}: expected {number} times, got {len(times)}")
        triples = zip(rows, starts, stops, strict=True)
        return [dataclasses.replace(row, start=a, stop=b) for row, a, b in triples]

    def closed(self, k: int) -> None:
        """Add the flows of a group, with the files that they bring."""
        rows, first = self._each(k), len(self.flows)
        if self.groups[k].flows.traffic.starts:
            rows = [dataclasses.replace(row, source=len(self.sources)) for row in rows]
            numbers = tuple(range(first, first + len(rows)))
            self.sources.append(SourcePlan(k, numbers, len(rows)))
        self.flows += rows

    def opened(self, k: int, scale: int) -> None:
        """Add the open sources of a group, with flows for their transfers."""
        traffic, asking = self.groups[k].flows.traffic, -1
        if float(traffic.request()) > 0:
            asking = len(self.groups)
            self.groups.append(_request_group(self.net, k, self.groups[k]))
        for row in self._each(k):
            slots, sessions = _capacity(self.net, row, traffic, scale)
            request = _request(self.net, row, asking) if asking >= 0 else None
            source, numbers = len(self.sources), []
            for j in range(slots):
                number, slot = len(self.flows), (source << 32) + 2 * j
                following = -1 if request is None else number + 1
                numbers.append(number)
                self.flows.append(
                    dataclasses.replace(row, source=source, request_flow=following, slot=slot)
                )
                if request is not None:
                    self.flows.append(dataclasses.replace(request, data_flow=number, slot=slot + 1))
            self.sources.append(SourcePlan(k, tuple(numbers), sessions))


def plan(net: Network, scale: int = 1) -> Plan:
    """Lay out the flows of a network; raises PacketError if it cannot be simulated by packets.

    `scale` multiplies the number of transfers that open sources may have under way.
    """
    require_network(net)
    given, net = net, net.by_group
    if refused := _refusals(net):
        raise PacketError(f"not simulated packet by packet: {'; '.join(refused)}")
    groups = [_group(net, k) for k in range(len(net.flows))]
    layout = _Layout(net, groups, [_rows(net, k, group) for k, group in enumerate(groups)])
    scale = min(scale, layout.largest_scale())
    kinds = [flows.traffic.open for flows in net.flows]
    for k in (k for k, opened in enumerate(kinds) if not opened):
        layout.closed(k)
    for k in (k for k, opened in enumerate(kinds) if opened):
        layout.opened(k, scale)
    return Plan(
        given, net, tuple(layout.groups), tuple(layout.flows), tuple(_background(net)),
        tuple(layout.sources), scale,
    )  # fmt: skip
