"""A network as trains see it: kinds of flows that are alike, links, and their numbers as arrays.

Flows of one kind have the same laws, apart from numbers, and the same route; each of their numbers
is an array (n, 1), or one number if all are equal. What shapes the compiled step is in `Shape`,
everything else in `Numbers`.
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.laws.law import AbstractQueueLaw, AbstractWindowLaw, Ack, Arrival, MarkingPoint
from fluidcc.laws.marking import Plain
from fluidcc.laws.voice import Voice
from fluidcc.machine import threads
from fluidcc.module import skeleton
from fluidcc.packets.build import averages
from fluidcc.packets.plan import (
    FlowPlan,
    GroupPlan,
    PacketError,
    Plan,
    is_gated,
    plan,
    smallest_window,
)
from fluidcc.programs import leaves, map_tree
from fluidcc.scenario.network import (
    Network,
    growth_per_packet,
    least_share,
    link_delays,
    repeated,
    why_packets,
)

LATE = (MarkingPoint.DEPARTURE, MarkingPoint.TRANSMITTED)
_STEPS = 16, 256  # fewest and most in the shortest round trip
_MOST_TURNS = 3200  # of flows in it, unless the fewest steps have more
_NONE = 1e-12  # packets of a step in which none come
_BURST = 1.5  # packets by which the arrivals of a step may be uneven
_FILES = 0.25  # files that begin in a step, at most on average
_BLOCKS = 8  # most parts of a step in which a queue law sees what arrives
_SINGLE = 32  # the same if it decides packet by packet, up to twice the packets of a mean step
_DECODES = 16  # most hashes that a receiver compares in a step
_FILE_DRAWS = 7  # random numbers of an open source in a step
_MOST_NUMBERS = 2e8  # that are remembered in a run
_STEP_TIME, _TURN_TIME = 4e-7, 3.5e-8  # s, of a step, and of a flow at a link; 3 to 20,000 flows
_PHASES = 0.618  # of a tick, between the clocks of one sender and the next


@dataclasses.dataclass(frozen=True)
class Kind:
    """Flows that are alike, as far as it shapes the code."""

    number: int
    count: int
    route: tuple[int, ...]
    back: tuple[int, ...]
    offsets: tuple[int, ...]  # of its flows among those of each link of the route
    marking_point: MarkingPoint
    capable: bool  # packets are marked rather than dropped
    quench: bool
    loads: bool
    written: tuple[str, ...]  # numbers in packets that senders receive
    mapped: bool  # has a marking probability of its own
    sticky: bool  # echoes are repeated until confirmed
    grow_on_echo: bool
    gated: bool  # the reaction lets some signals pass only
    tells: bool  # a mark counts as the largest load factor from then on
    recovery: str
    integer_windows: bool
    growth: float  # ACKs on which a window may grow, for each packet
    observes: bool
    ticks: bool
    decodes: int  # packets of a step whose hashes a receiver compares; 0 if it remembers nothing
    starts: bool  # sends files
    sessions: int  # places of the open source whose files its flows send; 0 for other flows
    paced: bool
    rate_based: bool
    measures: bool  # the least and the greatest round trip


@dataclasses.dataclass(frozen=True)
class Port:
    """A link, as far as it shapes the code."""

    flows: int  # that cross it
    each: bool  # whether they draw one by one
    blocks: int
    ticks: int  # most in a step
    spaced: bool
    single: bool  # its law decides on each packet by what it remembers of those before
    averages: bool
    waits: bool
    counts_service: bool
    finite: bool
    lossy: bool  # loses packets at random
    signals: bool  # its law marks or drops
    departs: bool  # its law decides as packets leave
    written: tuple[str, ...]  # numbers that it writes into packets
    second: bool  # voice has a queue of its own
    counted: bool  # small packets make numbers differ from work
    rewrites: bool  # its router rewrites ACKs
    voice: bool
    cross: int  # 1 if there is cross traffic, else 0
    beside: int  # link whose transmitter it shares, served first; -1 for none
    after: int  # link beside it that is served first; -1 for none
    shifts: bool  # goes first by a time, not by a weight


@dataclasses.dataclass(frozen=True)
class Shape:
    """All that shapes the compiled step."""

    kinds: tuple[Kind, ...]
    ports: tuple[Port, ...]
    rows: int  # steps that are remembered
    draws: int  # random numbers in a step

    @property
    def remembered(self) -> int:
        """Numbers that a run remembers, at most."""
        flows = sum(kind.count for kind in self.kinds) + sum(port.flows for port in self.ports)
        return 2 * self.rows * (flows + 3 * len(self.ports))


class KindNumbers(NamedTuple):
    """Laws and numbers of the flows of a kind; delays are in s."""

    window: Any
    reaction: Any
    feedback: Any
    marking: Any
    estimator: Any
    traffic: Any
    legs: tuple[Any, ...]  # to each link of the route
    home: tuple[Any, ...]  # receiver to the first link back, ..., the last to the sender
    quench: tuple[Any, ...]  # each link of the route to the sender
    trip: Any  # propagation both ways
    begin: Any  # (n, B)
    min_rto: Any
    max_rto: Any
    threshold: Any
    floor: Any
    enough: Any  # duplicate ACKs that a loss takes to be found without a timeout
    unrepaired: Any  # packets after those sent again of whose loss duplicate ACKs do not tell
    limited: Any  # new packets that are sent before (limited transmit)
    access: Any  # packet/s
    mark_below: Any
    least: Any  # packets that wait before a queue with an average may choose
    arms: Any
    ack: tuple[Any, ...]  # an ACK in packets of each link back
    initial: Any  # first window
    asking: Any  # round trips of the request before a connection
    opener: tuple[Any, ...]  # a SYN in packets of each link
    first_rto: Any  # s, before a round trip has been measured
    tick: Any  # s, of the clocks that time round trips
    phase: Any  # of these clocks, in ticks
    syn: Any  # 1 if a SYN opens a connection
    most: Any  # sessions in all


class VoiceNumbers(NamedTuple):
    """Calls on a link."""

    arrivals: Any  # 1/s
    holding: Any  # s
    most: Any
    talk: Any  # s
    silence: Any  # s
    active: Any
    packets: Any  # 1/s of a talker
    size: Any  # of one, in packets of the link


class PortNumbers(NamedTuple):
    """Law and numbers of a link."""

    law: Any
    capacity: Any
    buffer: Any
    start: Any  # memory of the law
    period: tuple[Any, Any]
    random_loss: Any  # probability
    share: Any  # of the link for voice with a queue of its own
    drain: Any  # packets that the voice queue holds
    voice: Any  # VoiceNumbers, or () without calls
    cross: Any  # packet/s
    weight: Any  # of a queue beside another, or ()
    shift: Any  # s, in its place
    senders: Any  # that write their spacing for its law, or ()

    def arrival(self, *event: Any) -> Arrival:
        """The event of a queue law, without its last numbers, at this link's buffer.

        The spacings of packets sum up to the time that has passed, for each flow.
        """
        found = Arrival(*event)._replace(buffer=self.buffer)
        if isinstance(self.senders, tuple):
            return found
        count = ops.maximum(found.count, _NONE)
        return found._replace(count=count, spacing=self.senders * found.elapsed / count)


class Numbers(NamedTuple):
    """All numbers of a run."""

    kinds: tuple[KindNumbers, ...]
    ports: tuple[PortNumbers, ...]
    step: Any  # s


class Layout(NamedTuple):
    """A network for trains: its plan, shape and numbers, and the flows of each kind."""

    plan: Plan
    shape: Shape
    numbers: Numbers
    members: tuple[tuple[int, ...], ...]


def _stack(values: Sequence[Any]) -> Any:
    """One number if all are equal, else an array (n, 1)."""
    found = np.asarray(values, float)
    return found[0] if (found == found[0]).all() else found[:, None]


def _stacked(things: Sequence[Any]) -> Any:
    """A law whose numbers are those of several laws of one structure."""
    return map_tree(lambda *values: _stack(values), things[0], *things[1:])


_PROBES = np.concatenate([[0.0], np.geomspace(1e-4, 1e5, 300)])  # of a number of a state


def _probes(law: AbstractQueueLaw) -> Iterator[Any]:
    """States in which a law may say all that it ever says: each number by itself beside the others
    at their start, or at any of their values.
    """
    if not law.states:
        yield ()
        return
    start = np.array(leaves(law.start(1.0)), float)
    ends = [(-math.inf, math.inf) if f.info.within is None else f.info.within.ends
            for f in law.states.values()]  # fmt: skip
    alone = np.tile(start, (len(ends), _PROBES.size, 1))
    for k in range(len(ends)):
        alone[k, :, k] = _PROBES
    rng = np.random.default_rng(0)
    values = np.stack([rng.permutation(_PROBES) for _ in ends], axis=-1)
    chosen = rng.integers(0, 3, values.shape)
    mixed = np.select([chosen == 0, chosen == 1], [start, 0.0 * start], values)
    for numbers in np.clip([*alone.reshape(-1, len(ends)), *mixed], *np.array(ends).T):
        yield law.state_of(*map(float, numbers))


def _seen(queue: float, buffer: float) -> Arrival:
    return Arrival(1.0, 1e-3, queue, 1e3, buffer=buffer)


def says_nothing(law: AbstractQueueLaw, buffer: float) -> bool:
    """Whether a law without memory never marks or drops, whatever the queue."""
    if law.states:
        return False
    signals = (law.signal((), _seen(queue, buffer)) for queue in _PROBES)
    return not any(float(signal.mark) > 0 or float(signal.drop) > 0 for signal in signals)


def is_spaced(law: AbstractQueueLaw, buffer: float) -> bool:
    """Whether the probability of a signal depends on the packets since the last one."""
    seen = _seen(9.0, buffer)
    return any(
        len({float(law.gap_probability(state, seen, gap)) for gap in (1.0, 2.0, 7.0, 1e3)}) > 1
        for state in _probes(law)
    )


def _key(group: GroupPlan, flow: FlowPlan) -> Any:
    """What flows of one kind have in common."""
    flows, options = group.flows, group.options
    laws = (
        flows.window, flows.reaction, flows.feedback, flows.marking, flows.estimator, flows.traffic,
    )  # fmt: skip
    rules = (
        options.echo, options.grow_on_echo, options.recovery, options.integer_windows,
        growth_per_packet(flows),
    )  # fmt: skip
    first = (options.syn, options.initial_window, is_gated(flows))
    source = flow.source if flows.traffic.open else -1  # each has flows of its own
    return (
        source,
        tuple(map(skeleton, laws)),
        flow.route,
        flow.back,
        rules,
        first,
        group.ecn_capable,
    )


def _grouped(layout: Plan) -> list[list[int]]:
    """Numbers of the flows of each kind."""
    found: dict[Any, list[int]] = {}
    for number, flow in enumerate(layout.flows):
        if flow.data_flow >= 0:  # a request, which delays the data
            continue
        found.setdefault(_key(layout.groups[flow.group], flow), []).append(number)
    return list(found.values())


def _kind(
    layout: Plan, number: int, own: list[int], offsets: tuple[int, ...], decodes: int
) -> Kind:
    flow = layout.flows[own[0]]
    group = layout.groups[flow.group]
    flows, options = group.flows, group.options
    law = flows.window
    recovery = law.recovery if options.recovery == "law" else options.recovery
    ack = Ack(1.0, 0.1, 0.1)
    return Kind(
        number=number,
        count=len(own),
        route=flow.route,
        back=flow.back,
        offsets=offsets,
        marking_point=group.marking_point,
        capable=group.ecn_capable,
        quench=flows.feedback.quench,
        loads=flows.feedback.loads,
        written=flows.feedback.written,
        mapped=not isinstance(flows.marking, Plain),
        sticky=group.ecn_echo and repeated(flows, options.echo),
        grow_on_echo=options.grow_on_echo,
        gated=is_gated(flows),
        tells=law.marks_tell_load and flows.estimator.remembers,
        recovery=recovery,
        integer_windows=options.integer_windows,
        growth=growth_per_packet(flows),
        observes=type(law).observe is not AbstractWindowLaw.observe,
        ticks=law.period(ack) is not None,
        decodes=decodes if group.flows.feedback.loads and flows.estimator.remembers else 0,
        starts=flows.traffic.starts,
        sessions=_sessions(layout, own),
        paced=law.is_paced,
        rate_based=law.rate_based,
        measures=not {"least_rtt", "greatest_rtt"}.isdisjoint(law.reads),
    )


def _sessions(layout: Plan, own: list[int]) -> int:
    """Places of the open source that hands its files to some flows; 0 if none does."""
    flow = layout.flows[own[0]]
    is_open = layout.groups[flow.group].flows.traffic.open
    return layout.sources[flow.source].sessions if is_open else 0


def _asking(group: GroupPlan) -> float:
    """Round trips of the request before a connection, with its own SYN."""
    return (1.0 + group.options.syn) * (float(group.flows.traffic.request()) > 0)


def _numbers_of(layout: Plan, own: list[int], delays: list[float]) -> KindNumbers:
    flows = [layout.flows[k] for k in own]
    groups = [layout.groups[flow.group] for flow in flows]
    net = layout.net

    def laws(name: str) -> Any:
        return _stacked([getattr(group.flows, name) for group in groups])

    def option(name: str) -> Any:
        return _stack([float(getattr(group.options, name)) for group in groups])

    legs = [[0.0, *(delays[k] for k in flow.route[:-1])] for flow in flows]
    home = [
        [
            flow.return_delay,
            *(delays[k] for k in flow.back[:-1]),
            *([delays[flow.back[-1]] + flow.home_delay] if flow.back else []),
        ]
        for flow in flows
    ]
    # the last link's own delay lies between it and the receiver
    for leg, flow in zip(home, flows, strict=True):
        leg[0] += delays[flow.route[-1]]
        # counted when their middles pass, packets are known half a transmission too early
        leg[0] += sum(0.5 / float(net.links[k].capacity) for k in flow.route)
        leg[-1] += flow.access_delay  # a sender's clock may be that of its first link
    quench = [[flow.access_delay + delay for delay in flow.quench_delays] for flow in flows]

    def in_packets(size: str, way: str) -> tuple[Any, ...]:
        """A small packet in packets of each link of a way."""
        sizes = [
            [getattr(g.options, size) / float(net.links[k].packet_size) for k in getattr(f, way)]
            for g, f in zip(groups, flows, strict=True)
        ]
        return tuple(_stack(column) for column in zip(*sizes, strict=True))

    return KindNumbers(
        **{
            name: laws(name)
            for name in ("window", "reaction", "feedback", "marking", "estimator", "traffic")
        },
        legs=tuple(_stack(column) for column in zip(*legs, strict=True)),
        home=tuple(_stack(column) for column in zip(*home, strict=True)),
        quench=tuple(_stack(column) for column in zip(*quench, strict=True)),
        trip=_stack([flow.rtt for flow in flows]),
        begin=None,
        min_rto=option("min_rto"),
        max_rto=option("max_rto"),
        threshold=_stack([min(g.options.initial_ssthresh, g.max_window) for g in groups]),
        floor=_stack([smallest_window(group.flows) for group in groups]),
        enough=option("dup_acks"),
        unrepaired=option("one_fast_retransmit"),
        limited=_stack([
            group.options.limited_transmit * (group.options.dup_acks - 1.0) for group in groups
        ]),
        access=_stack([
            f.access_rate / g.size if f.access_rate else math.inf
            for f, g in zip(flows, groups, strict=True)
        ]),
        mark_below=option("mark_below"),
        least=option("choice_waiting"),
        arms=option("choice_arms"),
        ack=in_packets("ack_size", "back"),
        initial=option("initial_window"),
        asking=_stack([_asking(group) for group in groups]),
        opener=in_packets("syn_size", "route"),
        first_rto=option("initial_rto"),
        tick=option("tick"),
        phase=_PHASES * np.array(own)[:, None] % 1,
        syn=option("syn"),
        most=np.float64(groups[0].flows.traffic.in_all()),
    )  # fmt: skip


def _port(
    net: Network, k: int, crossing: list[Kind], counted: bool, rewrites: bool, step: float
) -> Port:
    link, flows = net.links[k], sum(kind.count * kind.route.count(k) for kind in crossing)
    buffer = float(link.buffer)
    law = link.queue.in_packets(buffer)
    single, ticks = law is not link.queue, law.period() is not None
    departs, mean = law.at_departure, float(link.capacity) * step  # packets
    spaced = not departs and (single or law.heeds_signals or is_spaced(law, buffer))
    most = min(_SINGLE, 2 * mean) if single else min(_BLOCKS, mean)
    period = float(law.tick_interval()[0] + law.tick_interval()[1]) / 2 if ticks else math.inf
    return Port(
        flows=flows,
        each=not (spaced or departs) or any(kind.mapped for kind in crossing),
        blocks=max(1, math.ceil(most)),
        ticks=max(1, math.ceil(step / period)) if ticks else 0,
        spaced=spaced,
        single=single and not departs,
        averages=averages(law),
        waits=law.waits,
        counts_service=law.counts_service,
        finite=math.isfinite(buffer),
        lossy=link.random_loss is not None,
        signals=flows > 0 and (link.beside is not None or not says_nothing(law, buffer)),
        departs=departs,
        written=law.written,
        second=link.voice is not None and link.voice.discipline == "wfq",
        counted=counted,
        rewrites=rewrites,
        voice=link.voice is not None,
        cross=int(float(link.cross) > 0),
        beside=-1 if link.beside is None else link.beside,
        after=next((j for j, other in enumerate(net.links) if other.beside == k), -1),
        shifts=link.shift is not None,
    )


def _voice(voice: Voice, packet_size: float) -> VoiceNumbers:
    silence = float(voice.silence())
    numbers = (
        voice.offered() / voice.holding, voice.holding, voice.most, voice.talk,
        max(silence, 1e-9), voice.active, 1 / voice.frame, voice.frame_bytes() / packet_size,
    )  # fmt: skip
    return VoiceNumbers(*map(np.float64, numbers))


def _port_numbers(net: Network, k: int) -> PortNumbers:
    link = net.links[k]
    law = link.queue.in_packets(float(link.buffer))
    low, high = (math.inf, math.inf) if law.period() is None else law.tick_interval()
    voice = link.voice
    share = 0.0 if voice is None else float(voice.share)
    drain = 0.0 if voice is None else float(voice.drain) * share * float(link.capacity)
    return PortNumbers(
        law=map_tree(np.float64, law),
        capacity=np.float64(link.capacity),
        buffer=np.float64(link.buffer),
        start=map_tree(np.float64, law.start(float(link.initial.average))),
        period=(np.float64(low), np.float64(high)),
        random_loss=np.float64(link.random_loss) if link.random_loss is not None else (),
        share=np.float64(share),
        drain=np.float64(drain),
        voice=() if voice is None else _voice(voice, float(link.packet_size)),
        cross=np.float64(link.cross),
        weight=() if link.weight is None else np.float64(link.weight),
        shift=() if link.shift is None else np.float64(link.shift),
        senders=() if link.senders is None else np.float64(link.senders),
    )


def shortest_trip(net: Network) -> float:
    """The shortest round trip of a network without queues [s]."""
    return min(float(np.min(np.asarray(flows.rtt))) for flows in net.flows)


def _longest_wait(net: Network, k: int, trip: float) -> float:
    """A generous time in a queue [s]."""
    link, rate = net.links[k], float(net.links[k].capacity)
    rate *= float(least_share(net, k))
    if link.voice is not None and link.voice.discipline == "wfq":
        rate *= 1 - float(link.voice.share)
    return min(float(link.buffer), 1000.0 + 2 * trip * rate) / rate


def _refuse(layout: Plan, step: float) -> None:
    """Raise PacketError for changes and rules of packet senders that trains do not follow."""
    if why := why_packets(layout.net):
        raise PacketError(f"not simulated by trains: {why}")
    for name, link in zip(layout.given.link_names, layout.given.links, strict=True):
        if link.fair:
            raise PacketError(
                f"not simulated by trains: links.{name}.fair: each link has one queue for all its "
                "flows; packets (fluidcc packets) and the fluid model follow fair queueing"
            )
    for name, group in zip(layout.net.flow_names, layout.groups, strict=False):
        law = group.flows.window
        if measured := sorted({"acked", "rate", "lost", "flight"} & {*law.reads}):
            raise PacketError(
                f"not simulated by trains: flows.{name}.window: {law.name} measures its "
                f"{' and '.join(measured)} packet by packet; packets (fluidcc packets) do so"
            )
    given = layout.given
    links = zip(given.link_names, given.links, strict=True)
    groups = zip(given.flow_names, given.flows, strict=True)
    laws: list[tuple[str, Any]] = [(f"links.{name}.queue", link.queue) for name, link in links]
    for where, law in [*laws, *((f"flows.{name}.window", flows.window) for name, flows in groups)]:
        if law.draws:
            raise PacketError(
                f"not simulated by trains: {where}: {law.name} draws a random number for each "
                "packet; packets (fluidcc packets) do so, the fluid model has the mean"
            )
    for name, group in zip(layout.net.flow_names, layout.groups, strict=False):
        at, options = f"not simulated by trains: flows.{name}.sender", group.options
        if options.window_validation:
            raise PacketError(f"{at}.window_validation: all windows grow, full or not")
        if options.overhead > step:
            raise PacketError(
                f"{at}.overhead: packets leave in the step in which they may; expected at most the "
                f"step of {step:g} s, got {options.overhead:g} s"
            )


def lay_out(net: Network, step: float, scale: int = 1) -> Layout:
    """The layout of a network for steps of `step` [s].

    `scale` multiplies the steps that are remembered, and the files at a time.

    Raises PacketError if the network cannot be simulated by packets.
    """
    whole = plan(net, scale)
    _refuse(whole, step)
    own = _grouped(whole)
    delays = [float(delay) for delay in link_delays(net)]
    crossing = [0] * len(net.links)
    kinds = []
    for numbers in own:
        route = whole.flows[numbers[0]].route
        offsets = tuple(crossing[k] for k in route)
        for k in route:
            crossing[k] += len(numbers)
        rate = min(float(net.links[k].capacity) for k in route) / len(numbers)
        decodes = max(2, min(math.ceil(2 * rate * step), _DECODES))
        kinds.append(_kind(whole, len(kinds), numbers, offsets, decodes))
    small = {k for kind in kinds for k in kind.back + kind.route * kind.starts}
    small |= {b.link for b in whole.background if b.voice is not None and not b.has_own_class}
    rewriting = {
        k for kind in kinds if kind.marking_point is MarkingPoint.REVERSE for k in kind.route
    }
    ports = tuple(
        _port(net, k, [own for own in kinds if k in own.route], k in small, k in rewriting, step)
        for k in range(len(net.links))
    )
    longest = max(flow.rtt for flow in whole.flows)
    waits = sum(_longest_wait(net, k, longest) for k in range(len(net.links)))
    rows = scale * int(2 ** math.ceil(math.log2((longest + waits) / step + 8)))
    draws = sum(map(draws_of_port, ports)) + sum(map(draws_of_kind, kinds))
    shape = Shape(tuple(kinds), ports, rows, draws)
    if shape.remembered > _MOST_NUMBERS:
        raise PacketError(
            f"trains would remember {rows} steps of {step:g} s, {shape.remembered:.2g} numbers; "
            "expected a longer step, fewer flows or smaller buffers"
        )
    numbers = Numbers(
        tuple(_numbers_of(whole, each, delays) for each in own),
        tuple(_port_numbers(net, k) for k in range(len(net.links))),
        np.float64(step),
    )
    return Layout(whole, shape, numbers, tuple(map(tuple, own)))


def draws_of_kind(kind: Kind) -> int:
    """Random numbers that the flows of a kind take in a step."""
    late = (kind.marking_point in LATE) * len(kind.route) * kind.count
    return late + draws_to_respond(kind) + draws_of_files(kind)


def draws_to_respond(kind: Kind) -> int:
    """Those for what senders hear."""
    rewritten = kind.marking_point is MarkingPoint.REVERSE
    return (rewritten + kind.decodes + kind.starts) * kind.count


def draws_of_files(kind: Kind) -> int:
    """Those for what files do."""
    return _FILE_DRAWS if kind.sessions else 3 * kind.count * kind.starts


def draws_of_port(port: Port) -> int:
    """Random numbers that a link takes in a step."""
    voice = 4 * port.voice
    lossy = port.lossy * port.flows
    coupled = (port.beside >= 0) * port.flows
    others = port.finite + (port.ticks > 0) + port.cross
    return draws_of_law(port) + lossy + others + voice + coupled


def draws_of_law(port: Port) -> int:
    """Those of its queue law: for parts of a step, to deal signals to flows, and for each flow."""
    parts = (port.spaced or port.departs) * (port.blocks + 1) + port.departs
    return port.signals * (port.each * port.flows + parts)


def train_time(net: Network, until: float, runs: int, step: float | None = None) -> float:
    """About how long runs of trains take on the processors of this machine [s]."""
    turns = sum(float(np.sum(np.asarray(f.n))) * len(f.route + f.reverse_route) for f in net.flows)
    steps = until / (step or chosen_step(net))
    return steps * (_STEP_TIME + _TURN_TIME * turns) * math.ceil(runs / threads())


def chosen_step(net: Network) -> float:
    """The step [s] of a network: a part of its shortest round trip.

    What a flow sends in a step arrives evenly, although it is a burst. Bursts of `N` flows add up
    to `sqrt(N)` of one: steps are shorter where that is more than a packet or two, as long as all
    flows do not have too many turns. Files that begin so often that several would fall into one
    step make it shorter still.
    """
    trip, (fewest, most) = shortest_trip(net), _STEPS
    closed = [flows for flows in net.flows if not flows.traffic.open]
    count = max(sum(float(np.sum(np.asarray(flows.n))) for flows in closed), 1.0)
    burst = trip * max(float(link.capacity) for link in net.links) / math.sqrt(count)
    steps = [trip / max(min(burst / _BURST, most, _MOST_TURNS / count), fewest)]
    for flows in net.flows:
        if flows.traffic.open:
            steps.append(_FILES / float(flows.traffic.beginning()))
    return min(steps)
