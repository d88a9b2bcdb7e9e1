"""Links, groups of flows and the network they make: data and its ranges; with what both engines
take from them, the propagation along routes and how receivers echo marks.
"""

import copy
import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.errors import Fault, ScenarioError, Suggests, T, nearest, with_type
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.law import (
    SIGNALS,
    AbstractEstimator,
    AbstractFeedback,
    AbstractLossClosure,
    AbstractMarking,
    AbstractQueueLaw,
    AbstractReaction,
    AbstractSource,
    AbstractWindowLaw,
    Ack,
    Arrival,
    MarkingPoint,
    Signal,
    Since,
    unchanged,
)
from fluidcc.laws.load_code import Exact
from fluidcc.laws.marking import Plain
from fluidcc.laws.parameters import EVENTS, check_fields, choice, infos, param
from fluidcc.laws.reaction import PerMark, Recovery
from fluidcc.laws.traffic import Bulk
from fluidcc.laws.voice import Voice
from fluidcc.module import Module, static
from fluidcc.ops import Num
from fluidcc.programs import as_array, map_tree
from fluidcc.result import Shown
from fluidcc.scenario.parsing import UnitError, read

OF_QUEUES: Final = "queue", "buffer", "cross", "cross_sizes", "weight", "shift", "initial"
"""Keys of a queue; the others of a link are those of its transmitter, for a queue beside it too."""

_SOME_RATE = 1e-9  # packet/s; keeps the spacing of packets finite if none arrive

LONGEST: Final = 1e9
"""Longest run [s]; beyond, times of packets have too few digits left."""


class Start(NamedTuple):
    """When flows start in a packet run [s]: at the times `each`, one for each flow of the group in
    its order, or uniformly between `low` and `high`.
    """

    low: float = 0.0
    high: float = 0.0
    each: tuple[float, ...] = ()

    @classmethod
    def at(cls, *times: float) -> "Start":
        """Starts at listed times, one for each flow."""
        return cls(min(times), max(times), times)


class Change(NamedTuple):
    """A change of a link during a packet run; None leaves a number as it is."""

    at: float  # s
    capacity: float | None = None  # packet/s
    delay: float | None = None  # s


def early_stop(start: Start, stop: tuple[float, ...]) -> tuple[int, float, float] | None:
    """The first stop that is not after its start: its place, the start and the stop [s]."""
    starts = start.each or (start.high,)
    size = max(len(starts), len(stop)) if stop else 0
    pairs = zip(np.resize(starts, size), np.resize(stop, size), strict=True)
    return next(((k, a, b) for k, (a, b) in enumerate(pairs) if b <= a), None)


class LinkInitial(Module):
    """The constant history of a link in the fluid model."""

    queue: Num = param(
        0.0,
        "q_0",
        unit="packet",
        doc="queue before the start",
        within="[0, inf)",
        engines=("fluid",),
    )
    average: Num = param(
        0.0, "v_0", unit="packet", doc="average queue before the start", within="[0, inf)",
        engines=("fluid", *EVENTS),
    )  # fmt: skip

    def __post_init__(self) -> None:
        """Raise ValueError when a value is out of its range."""
        check_fields(self, "initial")


class FlowsInitial(Module):
    """The constant history of a group of flows in the fluid model."""

    window: Num = param(
        2.0,
        "W_0",
        unit="packet",
        doc="window before the start",
        within="(0, inf)",
        engines=("fluid",),
    )
    slow_start: bool = choice(
        False, doc="begin in slow start, which the first signal ends", engines=("fluid",)
    )

    def __post_init__(self) -> None:
        """Raise ValueError when a value is out of its range."""
        check_fields(self, "initial")


def _read_text(thing: Any, where: str) -> None:
    """Numbers in place of text with units, ``"10 Mbit/s"``, and of lists of it.

    Raises ScenarioError with all that are no quantity of their unit.
    """
    faults = []
    described = sorted(infos(thing).items(), key=lambda item: item[1].unit != "B")
    for name, info in described:  # packet sizes first: bits of others need them
        value, size = getattr(thing, name), getattr(thing, "packet_size", None)
        listed = isinstance(value, list | tuple)
        values = value if listed else [value]
        if info.within is None or not any(isinstance(v, str) for v in values):
            continue
        try:
            found = [read(v, info.unit, None if isinstance(size, str) else size) for v in values]
            vars(thing)[name] = np.array(found) if listed else found[0]
        except UnitError as error:
            without = info.unit == "packet/s" and size is None
            more = (
                " (bits need a link's packet size: fluidcc.replace reads them)" if without else ""
            )
            expected = f"{error}{more}"
            faults.append(Fault(f"{where}.{name}", "", expected, f"{value!r}", error.nearest))
    if faults:
        raise ScenarioError(faults)


class Link(Suggests, Module):
    """One link with its queue; text stands for quantities with units, ``capacity="10 Mbit/s"``.

    A queue `beside` another, by its index, shares the transmitter of that link, as L4S and Classic
    packets do: it has the same capacity, packet size, delay, changes and losses. While both have
    packets it is served with the share `weight`, 0.9 in Linux's sch_dualpi2, or, by a `shift`
    [s], if its head has waited as long as that of the other less the shift: time-shifted FIFO.
    A `fair` link has a queue for each of its flows, each with this `buffer` and a law of its own,
    which knows its share of the capacity; they are served in turn.
    Links of a network whose law reads the spacing of packets have `senders`, the number of flows
    that write it.
    `schedule` has changes of capacity and delay in packet runs, in order of time. A transmission
    goes on at the new rate; packets do not overtake each other where a delay becomes shorter.

    Examples
    --------
    >>> import fluidcc as fc
    >>> link = fc.load("hollot2001/slow").links[0]
    >>> link.queue.name, link.capacity, link.buffer
    ('red', 3750.0, 800.0)
    """

    queue: AbstractQueueLaw
    capacity: Num = param(1250.0, "C", unit="packet/s", doc="link rate", within="(0, inf)")
    packet_size: Num = param(1000.0, "s", unit="B", doc="size of a data packet", within="(0, inf)")
    delay: Num = param(0.0, "d", unit="s", doc="one-way propagation", within="[0, inf)")
    buffer: Num = param(
        float("inf"), "B", unit="packet", doc="packets that the queue holds", within="(0, inf]"
    )
    cross: Num = param(
        0.0, "A", unit="packet/s", doc="traffic in the queue that no signal slows",
        within="[0, inf)",
    )  # fmt: skip
    cross_sizes: str = choice(
        "constant", "constant", "exponential", doc="sizes of the cross traffic's packets, Poisson",
        engines=("population", "packets"),
    )  # fmt: skip
    random_loss: Num | None = param(
        None, "p_r", unit="1", within="[0, 1)",
        doc="probability that a packet is lost as it enters, whatever the queue",
    )  # fmt: skip
    weight: Num | None = param(
        None, r"\phi", unit="1", within="(0, 1)",
        doc="share of the transmitter while both queues have packets; 0.9 if left out, with beside",
    )  # fmt: skip
    shift: Num | None = param(
        None, r"\Delta", unit="s", within="[0, inf)",
        doc="in place of weight: the queue goes first unless the head of the other has waited "
        "longer by more than this (time-shifted FIFO)",
    )  # fmt: skip
    fair: bool = choice(
        False, doc="each flow has a queue of its own, served in turn (fair queueing)",
        engines=("fluid", "population", "packets"),
    )  # fmt: skip
    voice: Voice | None = None
    schedule: tuple[Change, ...] = static(())
    initial: LinkInitial = LinkInitial()
    beside: int | None = static(None)
    senders: Num | None = None

    def __post_init__(self) -> None:
        """Raise ValueError when a value is out of its range, or changes are out of order."""
        _read_text(self, "link")
        check_fields(self, "link")
        times = [change.at for change in self.schedule]
        if any(b <= a for a, b in itertools.pairwise([0.0, *times])):
            raise ValueError(f"link.schedule: expected times that increase from 0 on, got {times}")
        for key in unfit_fair(self.fair, vars(self)):
            raise ValueError(f"link.{key}: expected none, {NO_OTHERS}")
        if self.weight is not None and self.shift is not None:
            raise ValueError(f"link.shift: expected {ONE_SCHEDULER}")

    def arrival(self, count: Num, elapsed: Num, queue: Num, rate: Num | None = None) -> Arrival:
        """The arrival, or departure, of `count` packets `elapsed` s after those before at a queue
        of this link that holds `queue` packets; `rate` is that of all packets, or the capacity.

        Packets come from a flow in proportion to its rate, so that their mean spacing, of all
        flows, is the number of flows over the rate of all.
        """
        found = Arrival(count, elapsed, queue, self.capacity, buffer=self.buffer)
        if self.senders is None:
            return found
        rate = self.capacity if rate is None else rate
        return found._replace(spacing=self.senders / ops.maximum(rate, _SOME_RATE))


ONE_SCHEDULER: Final = "weight or shift, not both"
NO_OTHERS: Final = "as a fair link has a queue for each flow of a group and no other traffic"


def unfit_fair(fair: bool, link: Mapping[str, Any]) -> Iterator[str]:
    """Keys of a link, with their values, that a fair one does not have."""
    cross = link.get("cross", 0.0)
    if fair and isinstance(cross, int | float) and cross > 0:
        yield "cross"
    if fair and link.get("voice") is not None:
        yield "voice"


class Flows(Suggests, Module):
    """A group of flows that share laws and route, with m distinct round trips.

    `n` and `rtt` have shape (m,): how many flows, and their propagation delay both ways [s]; one
    number stands for one class, or for all of the other's. Text stands for times and for rates in
    packet/s, ``rtt="80 ms"``; the size of a packet, which bits need, is the link's.
    `route` holds indices of links; in the fluid model, those that the flows `passes` are on it too,
    whose queue is beside theirs: they use its capacity and hear its mark, but do not wait there.
    `access_delay` None means that sources sit at their first
    link. `reverse_delay` is that of the first router; later routers add the delays of the links in
    between. An array has one for each link of the route, None stands for the forward delay.
    `stop` is when flows have no more new data to send [s]: one time for all, or one for each;
    empty if they go on. `sender` holds rules of the packet sender as (name, value) pairs.

    Examples
    --------
    >>> import fluidcc as fc
    >>> flows = fc.load("hollot2001/slow").flows[0]
    >>> flows.window.name, flows.feedback.name, flows.reaction.name
    ('reno', 'mark_tail', 'per_mark')
    """

    window: AbstractWindowLaw
    n: Num = param(unit="1", symbol="N", doc="number of flows", within="(0, inf)")
    rtt: Num = param(unit="s", symbol="T", doc="propagation delay, both ways", within="(0, inf)")
    reaction: AbstractReaction = PerMark()
    feedback: AbstractFeedback = MarkTail()
    marking: AbstractMarking = Plain()
    loss: AbstractLossClosure = Recovery()
    estimator: AbstractEstimator = Exact()
    traffic: AbstractSource = Bulk()
    route: tuple[int, ...] = static((0,))
    reverse_route: tuple[int, ...] = static(())
    passes: tuple[int, ...] = static(())
    access_delay: Num | None = param(
        None, "f", unit="s", doc="one-way delay from the source to its first link",
        within="[0, inf)",
    )  # fmt: skip
    reverse_delay: Num | None = param(
        None, "b_r", unit="s", doc="delay from router to source; for quenches and rewritten ACKs",
        within="[0, inf)",
    )  # fmt: skip
    access_capacity: Num = param(
        float("inf"), "C_a", unit="packet/s", doc="rate of each access link",
        within="(0, inf]", engines=EVENTS,
    )  # fmt: skip
    start: Start = Start()
    stop: tuple[float, ...] = static(())
    initial: FlowsInitial = FlowsInitial()
    sender: tuple[tuple[str, Any], ...] = static(())

    def __post_init__(self) -> None:
        """Raise ValueError when a value is out of its range."""
        _read_text(self, "flows")
        check_fields(self, "flows")
        numbers = int, float, np.generic, np.ndarray
        if not isinstance(self.n, numbers) or not isinstance(self.rtt, numbers):
            return
        if self.stop and self.traffic.starts:
            raise ValueError(
                f"flows.stop: expected none, as files of {self.traffic.name} end by themselves, "
                f"got {self.stop}"
            )
        if early := early_stop(self.start, self.stop):
            _, start, stop = early
            raise ValueError(
                f"flows.stop: expected a time after the start, {start:g} s, got {stop:g} s"
            )
        shapes = np.shape(self.n), np.shape(self.rtt)
        if shapes[0] != shapes[1] or not shapes[0]:
            try:
                shape = np.broadcast_shapes((1,), *shapes)
            except ValueError:
                counts = " and ".join(str(np.size(v)) for v in (self.n, self.rtt))
                raise ValueError(
                    f"flows: expected as many n as rtt, or one of either, got {counts}"
                ) from None
            for name in ("n", "rtt"):
                vars(self)[name] = getattr(self, name) * np.ones(shape)


class Parts(tuple[T, ...]):
    """The links or the groups of a network in their order, each by its index or its name."""

    net: Any
    field: str

    def __getitem__(self, key: Any) -> Any:
        """One of them; raises KeyError, with the nearest, for a name that none has."""
        if isinstance(key, str):
            names = getattr(self.net, f"{self.field.removesuffix('s')}_names")
            if key not in names:
                expected = f"one of {', '.join(map(repr, names))}, or an index"
                close = nearest(key, names, 1)
                raise KeyError(str(Fault(self.field, "", expected, repr(key), close)))
            key = names.index(key)
        return super().__getitem__(key)


def _parts(field: str) -> property:
    """The field of a network that reads its links or groups as `Parts`; trees have a tuple."""

    def read(net: Any) -> Any:
        own = vars(net)[field]
        parts: Any = Parts(_with_flows(own, net.flows) if field == "links" else own)
        parts.net, parts.field = net, field
        return parts

    def write(net: Any, value: Any) -> None:
        own = (_crossed_by(link, None) for link in value) if field == "links" else value
        vars(net)[field] = tuple(own)

    return property(read, write)


def _with_flows(links: Sequence[Link], groups: Sequence[Flows]) -> Iterator[Link]:
    """The links, those whose law reads the spacing of packets with the number of flows."""
    for k, link in enumerate(links):
        if "spacing" in link.queue.reads:
            own = (each for each in groups if k in each.route and each.feedback.written)
            yield _crossed_by(link, sum(ops.total(each.n) for each in own))
        else:
            yield link


def _crossed_by(link: Link, senders: Num | None) -> Link:
    """The link with another number of senders."""
    if link.senders is senders:
        return link
    return unchecked(link, senders=senders)


def unchecked(thing: T, **fields: Any) -> T:
    """A link, a group or a network with other fields, whose ranges are not checked again."""
    changed = copy.copy(thing)
    for name, value in fields.items():
        object.__setattr__(changed, name, value)
    return changed


class Network(Shown, Module):
    """Links and groups of flows, by name, with the choices that the fluid model leaves open.

    `rates` and `delay` are the choices of theory: how ACKs clock the senders (`ack`, `mgt`,
    `self_clocked`), and which clock the round trip uses (`explicit`, `fifo`). It prints as tables
    of links and flows.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.load("misra2003/mixed")
    >>> net.link_names, net.flow_names, net.rates
    (('bottleneck',), ('mod', 'newreno'), 'ack')
    """

    _view = "networks.NetworkView"
    __repr__ = Shown.__repr__

    links: tuple[Link, ...]
    flows: tuple[Flows, ...]
    rates: str = choice(
        "ack", "ack", "mgt", "self_clocked", doc="what clocks the senders", engines=("fluid",)
    )
    delay: str = choice(
        "explicit", "explicit", "fifo", doc="which clock the round trip uses", engines=("fluid",)
    )
    closure: str = choice(
        "mean", "mean", "population",
        doc="what rules act on: the mean window, or the windows of all flows",
        engines=("fluid", "population"),
    )  # fmt: skip
    link_names: tuple[str, ...] = static(("bottleneck",))
    flow_names: tuple[str, ...] = static(("flows",))
    title: str = static("")
    source: str = static("")

    def __post_init__(self) -> None:
        """Raise ValueError when names, routes and parts do not fit together."""
        check_fields(self, "model")
        if len(self.link_names) != len(self.links) or len(self.flow_names) != len(self.flows):
            raise ValueError("a network needs one name for each link and each group of flows")
        queues = [link.queue for link in vars(self)["links"]]
        for name, flows in zip(self.flow_names, self.flows, strict=True):
            for key, route in (("route", flows.route), ("reverse_route", flows.reverse_route)):
                known = all(0 <= k < len(self.links) for k in route)
                if not known or (key == "route" and not route):
                    raise ValueError(
                        f"flows.{name}.{key}: expected links of the network, got {route}"
                    )
            back = () if flows.reverse_delay is None else np.shape(flows.reverse_delay)
            if back not in ((), (len(flows.route),)):
                raise ValueError(
                    f"flows.{name}.reverse_delay: expected a number, or {len(flows.route)} for the "
                    f"links of the route, got an array of shape {back}"
                )
            for expected, found in unfit_route(flows, queues, self.link_names):
                raise ValueError(f"flows.{name}.route: expected {expected}, got {found}")

    @property
    def by_group(self) -> "Network":
        """The network with a link LINK-GROUP for each group on a fair link that several cross.

        Each stands for the queues of the flows of its group; all but the first are `beside` that.
        Results have such names. It is the same network if there are none.
        """
        crossing = [self.crossing(k) if link.fair else () for k, link in enumerate(self.links)]
        if all(len(groups) < 2 for groups in crossing):
            return self
        place: dict[tuple[int, int], int] = {}  # by link and group
        first: list[int] = []  # by link
        whole, names = [], []
        for k, (name, groups) in enumerate(zip(self.link_names, crossing, strict=True)):
            first.append(len(names))
            if len(groups) > 1:
                place |= {(k, g): len(names) + j for j, g in enumerate(groups)}
                names += [f"{name}-{self.flow_names[g]}" for g in groups]
            else:
                names.append(name)
            whole += [k] * (len(names) - len(whole))
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"links: expected no other link called {', '.join(sorted(twice))}")
        links = []
        for j, k in enumerate(whole):
            beside = self.links[k].beside if j == first[k] else k
            beside = None if beside is None else first[beside]
            links.append(dataclasses.replace(self.links[k], beside=beside))
        flows = [
            dataclasses.replace(
                own, route=tuple(place.get((k, g), first[k]) for k in own.route),
                reverse_route=tuple(place.get((k, g), first[k]) for k in own.reverse_route),
            )
            for g, own in enumerate(self.flows)
        ]  # fmt: skip
        return dataclasses.replace(
            self, links=tuple(links), link_names=tuple(names), flows=tuple(flows)
        )

    def served_with(self, k: int) -> tuple[int, ...]:
        """Links `by_group` of the fair link that k is of."""
        beside = self.links[k].beside
        first = k if beside is None else beside
        others = (j for j, own in enumerate(self.links) if own.fair and own.beside == first)
        return (first, *others)

    def crossing(self, k: int) -> tuple[int, ...]:
        """Groups whose packets or acknowledgements cross link k."""
        pairs = enumerate(self.flows)
        return tuple(g for g, own in pairs if k in own.route or k in own.reverse_route)


for _field in ("links", "flows"):
    setattr(Network, _field, _parts(_field))


def require_network(value: object) -> None:
    """Raise TypeError if `value` is no network, but for instance a name."""
    if not isinstance(value, Network):
        hint = f"fluidcc.load({value!r:.60})" if isinstance(value, str) else "fluidcc.load"
        raise TypeError(f"expected a network, such as {hint} gives, got {with_type(value)}")


def to_arrays(net: Network) -> Network:
    """The network with every number in double precision, as `as_array` has it."""
    return map_tree(as_array, net)


def first_hop(flows: Flows) -> Num:
    """Delay from the source to its first link [s]."""
    return 0.0 if flows.access_delay is None else flows.access_delay


def forward_delays(flows: Flows, delays: Sequence[Num]) -> list[Num]:
    """Delay from the source to each link of its route and to its receiver [s], without queues.

    `delays` are those of all links of the network [s].
    """
    return list(itertools.accumulate(_own_delays(flows, delays), initial=first_hop(flows)))


def _own_delays(flows: Flows, delays: Sequence[Num]) -> list[Num]:
    """Delays of the links of the route; none of those that the flows pass beside their queue."""
    return [0.0 if k in flows.passes else delays[k] for k in flows.route]


def reverse_delays(flows: Flows, delays: Sequence[Num]) -> list[Num]:
    """Delay from each router of the route back to the source [s], without queues.

    One number is the delay from the first router, and later routers add the delays of the links in
    between; by default reverse delays are the forward delays. `delays` are those of all links [s].
    """
    given: Any = flows.reverse_delay
    if np.ndim(given):
        return list(given)
    first = first_hop(flows) if given is None else given
    return list(itertools.accumulate(_own_delays(flows, delays)[:-1], initial=first))


_ONE = Ack(1.0, 0.1, 0.1)  # without a number from any link


def unfit_route(
    flows: Flows, queues: Sequence[AbstractQueueLaw], names: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Expected links and those on the route of flows, if their window law does not move without a
    number in packets that none of them writes, or if more than one writes a single one; `queues`
    and `names` are those of all links.
    """
    law = flows.window
    for field in law.written:
        writers = [names[k] for k in flows.route if field in queues[k].written]
        why = f"as {law.name} acts on the {SIGNALS[field].name} that it writes"
        if not writers and law.on_ack(still := law.start(10.0), _ONE) == unchanged(still):
            passed = (f"{names[k]} with {queues[k].name}" for k in flows.route)
            yield f"a link with another queue law, {why}", " and ".join(passed)
        elif SIGNALS[field].single and len(writers) > 1:
            yield f"one such link, {why}", " and ".join(writers)


ROUNDING: Final = 1e-12
"""Relative rounding of delays that are added up."""


def unfit_reverse_delays(
    flows: Flows, delays: Sequence[Num], names: Sequence[str]
) -> Iterator[tuple[int, str, float]]:
    """Reverse delays that do not fit: the place on the route, the expected value, the delay [s].

    A packet and the quench for it take a round trip at most; rewritten ACKs pass all routers from
    the last to the first. `delays` and `names` are those of all links [s].
    """
    on_acks = flows.feedback.marking_point is MarkingPoint.REVERSE
    *ahead, way = forward_delays(flows, delays)
    shortest, before = float(np.min(flows.rtt)), 0.0
    for j, (k, back) in enumerate(zip(flows.route, reverse_delays(flows, delays), strict=True)):
        there, what = (way, "the way to the receiver") if on_acks else (ahead[j], "the way there")
        most, found = shortest - float(there), float(back)
        if found > most + ROUNDING * shortest:
            yield j, f"at most {most:.6g} s, the round trip less {what}", found
        elif on_acks and found < before:
            yield j, f"at least {before:.6g} s, as ACKs pass {names[k]} first", found
        before = found


def least_share(net: Network, k: int) -> Num:
    """Share of its transmitter that link k has at least by weight, beside a queue that goes first;
    1 without one.
    """
    first = (link.weight for link in net.links if link.beside == k)
    return next((1 - weight for weight in first if weight is not None), 1.0)


def link_delays(net: Network) -> list[Num]:
    """Propagation delay of each link [s]."""
    return [link.delay for link in net.links]


def repeated(flows: Flows, echo: str = "law") -> bool:
    """Whether receivers echo a mark until the sender confirms it. RFC 3168, 6.1.3.

    By `echo`, the senders' option: `sticky`, `packet`, or `law`. Under `law`, marks are
    echoed until confirmed if the reaction waits for data sent after the last one, except if
    receivers report each packet: if the law learns from each mark, or leaves some unanswered as
    its rounds last longer, and under load factors.
    """
    if echo != "law":
        return echo == "sticky"
    one_round = isinstance(flows.window.rounds(Ack(1.0, 0.0, 1.0)), int)
    by_packet = flows.feedback.written or not one_round
    return _waits_for_new_data(flows.reaction) and not (
        by_packet or _learns_from_marks(flows.window)
    )


def sees_marks(flows: Flows) -> bool:
    """Whether a signal comes as a mark or a quench rather than as a loss."""
    return float(flows.feedback.interpret(Signal(0.5, 0.0, 1.0)).mark) > 0


def stands_still(flows: Flows) -> bool:
    """Whether a window is kept until the receiver knows that the sender has reacted."""
    rules = dict(flows.sender)
    if flows.feedback.quench or rules.get("grow_on_echo", False):
        return False
    return repeated(flows, rules.get("echo", "law"))


def why_packets(net: Network) -> str:
    """Why no level below packets follows a network that changes in time, or in which flows that
    come and go are counted by their packets; empty if it does.
    """
    links = list(zip(net.link_names, net.links, strict=True))
    groups = list(zip(net.flow_names, net.flows, strict=True))
    paths = [f"links.{name}.schedule" for name, link in links if link.schedule]
    paths += [f"flows.{name}.stop" for name, flows in groups if flows.stop]
    counting = {k for k, (_, link) in enumerate(links) if link.senders is not None}
    paths += [
        f"flows.{name}.traffic, as {flows.traffic.name} at a link that counts flows"
        for name, flows in groups if flows.traffic.starts and counting & {*flows.route}
    ]  # fmt: skip
    return f"only packet runs (fluidcc packets) follow {' and '.join(paths)}" if paths else ""


def growth_per_packet(flows: Flows) -> float:
    """ACKs on which a window may grow, for each packet acknowledged: a half under delayed ACKs,
    unless windows grow by packets.
    """
    rules = dict(flows.sender)
    halved = rules.get("delayed_acks", False) and not rules.get("byte_counting", 0)
    return 0.5 if halved else 1.0


def _waits_for_new_data(law: AbstractReaction) -> bool:
    """Whether a reaction needs an acknowledgement of data sent after the last reaction."""
    cases = itertools.product((0.0, 1e9), (0.0, 1.0))  # at once and late; after a quench for a drop
    return any(
        law.ready(Since(time, 1.0, 0.0, dropped)) != law.ready(Since(time, 1.0, 1.0, dropped))
        for time, dropped in cases
    )


def _learns_from_marks(law: AbstractWindowLaw) -> bool:
    """Whether a window law learns from the mark of each packet."""
    state = law.start(10.0)
    # a product with NaN is NaN even if a gain is too small to move the state
    unmarked, *others = (
        law.observe(state, Ack(1.0, 1.0, 1.0, marked=share)) for share in (0.0, 1.0, math.nan)
    )
    return any(bool(other != unmarked) for other in others)
