"""Abstract laws: rules for single packet events, and the records that describe an event.

A rule returns the *change* of a state. Regular events carry `count` and `elapsed`: the rule is for
`count` packets in `elapsed` seconds. The packet engine calls it with one packet and the
time since the last event, the fluid model takes its slope at zero in both.
"""

import abc
import dataclasses
import enum
import functools
import inspect
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self

from fluidcc import ops
from fluidcc.laws.draws import average_rules
from fluidcc.laws.parameters import (
    Interval,
    StateField,
    check_fields,
    numeric_parameters,
    param,
    record_of,
    states,
)
from fluidcc.module import Module
from fluidcc.ops import Num

State = Any
"""A number or a flat NamedTuple of numbers; `()` for a law without memory."""


class Signal(NamedTuple):
    """The signal of a link to a packet; `SIGNALS` describes each field."""

    mark: Num = 0.0
    drop: Num = 0.0
    load: Num = 0.0
    delay: Num = 0.0
    earlier: Num = 0.0
    spacing: Num = 0.0
    positive: Num = 0.0
    negative: Num = 0.0

    @property
    def either(self) -> Num:
        """Probability to be marked or lost."""
        return self.mark + self.drop * (1 - self.mark)


class SignalField(NamedTuple):
    """One field of `Signal`: its name and unit, and how the links of a path combine.

    `combine` takes the value of the links before, first 0.0, and that of the next one. `usual` is
    a moderate number. A field with `measure`, of queue [packet] and capacity [packet/s], comes from
    no law: the acknowledged packet measured it as it entered each queue, whatever the feedback; of
    one that `looks_back`, a packet the window law's `lookback` before it.
    Fields of neither kind are numbers in packets (`WRITTEN`), which combine by their maximum; one
    link at most on a path writes those that are `single`.
    """

    name: str
    symbol: str
    unit: str
    within: Interval
    combine: Callable[[Num, Num], Num]
    usual: float
    measure: Callable[[Num, Num], Num] | None = None
    looks_back: bool = False
    single: bool = False


def _either(before: Num, link: Num) -> Num:
    """Probability of at least one of two events; 1 - (1 - p)(1 - q) would cancel small ones."""
    return before + link * (1 - before)


def queueing_delay(queue: Num, capacity: Num) -> Num:
    """Time at a link [s] of a packet, from its arrival until it is sent, behind a queue [packet]
    that is served at `capacity` [packet/s]: the part of the link's rate that voice leaves.
    """
    return queue / capacity


SIGNALS: Mapping[str, SignalField] = MappingProxyType(
    {
        "mark": SignalField("mark probability", "p", "1", Interval("[0, 1]"), _either, 0.3),
        "drop": SignalField("drop probability", "l", "1", Interval("[0, 1]"), _either, 0.3),
        "load": SignalField("load factor", "f", "1", Interval("[0, inf)"), ops.maximum, 0.9),
        "delay": SignalField(
            "queueing delay",
            r"\delta",
            "s",
            Interval("[0, inf)"),
            operator.add,
            0.01,
            measure=queueing_delay,
        ),
        "earlier": SignalField(
            "queueing delay before",
            r"\delta_b",
            "s",
            Interval("[0, inf)"),
            operator.add,
            0.01,
            measure=queueing_delay,
            looks_back=True,
        ),
        "spacing": SignalField(
            "time between packets", r"\varsigma", "s", Interval("[0, inf)"), ops.maximum, 0.01
        ),
        "positive": SignalField(
            "positive feedback",
            r"\xi_p",
            "packet/s^2",
            Interval("[0, inf)"),
            ops.maximum,
            1.0,
            single=True,
        ),
        "negative": SignalField(
            "negative feedback",
            r"\xi_n",
            "1/s",
            Interval("[0, inf)"),
            ops.maximum,
            0.1,
            single=True,
        ),
    }
)
"""The fields of `Signal` by name."""

ALWAYS = ("mark", "drop")
"""Fields of signals that every link has: a full buffer drops."""

WRITTEN = tuple(k for k, field in SIGNALS.items() if k not in ALWAYS and field.measure is None)
"""Fields of signals that links write into packets as numbers, each the largest on the path."""


def _written(fields: tuple[str, ...]) -> tuple[str, ...]:
    """Those fields of signals that links write into packets."""
    return tuple(name for name in WRITTEN if name in fields)


def combine(signals: tuple[Signal, ...]) -> Signal:
    """Combined signal of the links on a path; 0 for fields that are None on all of them."""
    combined = {}
    for name, field in SIGNALS.items():
        values = (getattr(signal, name) for signal in signals)
        combined[name] = functools.reduce(field.combine, (v for v in values if v is not None), 0.0)
    return Signal(**combined)


class _Arrival(NamedTuple):
    """Arrival of `count` packets at a queue, `elapsed` seconds after the ones before; of packets
    that leave, their departure.
    """

    count: Num  # packets
    elapsed: Num  # s
    queue: Num  # packets found, or left behind
    capacity: Num  # packet/s
    size: Num  # of this packet, in mean packets
    sojourn: Num  # s in the queue: measured as a packet leaves, else `queue` over `capacity`
    buffer: Num  # packets that the queue holds
    random: Num | None  # in [0, 1), for rules that the law `draws` for; None for their mean
    spacing: Num  # s, round trip over window of the sender, which it writes into this packet


class Arrival(_Arrival):
    """Arrival or departure of packets, with `queueing_delay` for a sojourn that is not measured."""

    __slots__ = ()

    def __new__(
        cls,
        count: Num,
        elapsed: Num,
        queue: Num,
        capacity: Num,
        size: Num = 1.0,
        sojourn: Num | None = None,
        buffer: Num = math.inf,
        random: Num | None = None,
        spacing: Num = 0.0,
    ) -> "Arrival":
        """The record; see the fields."""
        if sojourn is None:
            sojourn = queueing_delay(queue, capacity)
        return super().__new__(
            cls, count, elapsed, queue, capacity, size, sojourn, buffer, random, spacing
        )


_AT_ONCE = 1e-12  # s, between packets that come together


def rate_weights(elapsed: Num, interval: Num) -> tuple[Num, Num]:
    """Weight of each packet [1/s] in a rate averaged over `interval` [s], if they come evenly in
    `elapsed` [s], and the share of the rate before that this time makes forgotten.
    """
    faded = -ops.expm1(-elapsed / interval)
    weight = faded / ops.maximum(elapsed, _AT_ONCE)
    return ops.where(elapsed > _AT_ONCE, weight, 1 / interval), faded


class Ack(NamedTuple):
    """Acknowledgements of `count` packets to a sender, `elapsed` s after the ones before.

    Fields that `Signal` has too are the sender's information about the links on its path.
    """

    count: Num  # packets
    elapsed: Num  # s
    rtt: Num  # s, measured
    load: Num = 0.0  # load factor that the sender knows
    marked: Num = 0.0  # share of these packets that carried a mark
    delay: Num = 0.0  # s, of the round trip beyond propagation
    propagation: Num = 0.0  # s, of the round trip without queues
    one_way: Num = 0.0  # s, beyond propagation, on the way to the receiver
    least_rtt: Num = 0.0  # s, that the sender has measured in the law's `memory`
    greatest_rtt: Num = 0.0  # s, the same
    acked: Num = 0.0  # packets acknowledged since this packet was sent
    rate: Num = 0.0  # packet/s, delivered: these packets over that time
    lost: Num = 0.0  # packets found lost since this packet was sent
    flight: Num = 0.0  # packets sent and neither acknowledged nor found lost
    random: Num = None  # in [0, 1), for rules that the law `draws` for; None for their mean
    spacing: Num = 0.0  # s, least time between packets that the links on the path allow
    positive: Num = 0.0  # packet/s^2, that a link adds to the rate of each of its flows
    negative: Num = 0.0  # 1/s, that it takes of the rate
    earlier: Num = 0.0  # s, the delay of a packet the law's `lookback` before; in the mean alone


class Measure(NamedTuple):
    """A field of `Ack` that senders measure for laws that read it: its symbol, and the field of
    `Signal` that it follows from, if any.
    """

    symbol: str
    signal: str = ""


MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "propagation": Measure("R_p"),
        "one_way": Measure(r"\delta_1", "delay"),
        "least_rtt": Measure(r"R_{\min}"),
        "greatest_rtt": Measure(r"R_{\max}"),
        "acked": Measure("n_d"),
        "rate": Measure("r_d"),
        "lost": Measure("n_l"),
        "flight": Measure("n_f"),
    }
)
"""Fields of `Ack` that senders measure, by name."""


class Since(NamedTuple):
    """Time and packets since the sender's last reaction."""

    time: Num  # s
    round_trip: Num  # s; a round of the window law, if that lasts longer
    window: Num  # 1 if this acknowledgement is for a packet sent after it, a round later, else 0
    dropped: Num = 0.0  # 1 if that reaction was to a quench for a dropped packet, else 0


class Shares(NamedTuple):
    """Mean shares that a reaction lets through."""

    growing: Num  # of the acknowledgements
    reacting: Num  # of the carriers of a signal


class PathTimes(NamedTuple):
    """Delays of one flow over one link [s]."""

    round_trip: Num  # s, with all queues
    forward: Num  # s, source to queue entry, with upstream queues
    queueing: Num  # s, in this queue
    reverse: Num  # s, router to source


def unchanged(state: State) -> State:
    """The change of a state that does not change."""
    if isinstance(state, tuple):
        return type(state)(*(0.0 * v for v in state)) if state else ()
    return 0.0 * state


class Law(Module):
    """Common to all laws: a name for scenarios, a source, parameters with ranges."""

    name: ClassVar[str]
    source: ClassVar[str]  # key of the bibliography, equation or section
    tried_in: ClassVar[str] = ""  # bundled scenario of its scale, for check-law; else 10 Mbit/s

    def __post_init__(self) -> None:
        """Raise ValueError if a parameter is out of its range, or `check` refuses them."""
        check_fields(self, self.name)
        self.check()

    def check(self) -> None:
        """Raise ValueError if parameters do not fit together."""

    @classmethod
    def with_parameters_of(cls, law: "Law") -> Self:
        """A law of this class with the parameters of another that has the same."""
        return cls(**{field.name: getattr(law, field.name) for field in dataclasses.fields(law)})


class AbstractRemembering(Law):
    """A law with a state: what `state` declares in the class."""

    draws: ClassVar[tuple[str, ...]] = ()  # rules that read `random` of their event

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        average_rules(cls, cls.draws)

    @property
    def states(self) -> dict[str, StateField]:
        """The declared numbers that this law remembers, by name."""
        found = states(type(self)).items()
        return {k: v for k, v in found if not v.when or getattr(self, v.when)}

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the state's numbers, in order."""
        return tuple(self.states)

    @property
    def symbols(self) -> tuple[str, ...]:
        """LaTeX symbols of the state's numbers, in order."""
        return tuple(field.info.symbol for field in self.states.values())

    def state_of(self, *values: Num) -> State:
        """The state with these numbers, in order."""
        return record_of(self.fields)(*values) if len(values) > 1 else values[0] if values else ()

    def change(self, s: State, **changes: Num) -> State:
        """The change of a state `s` in which only the named numbers change."""
        if unknown := [name for name in changes if name not in s._fields]:
            known = " or ".join(s._fields)
            raise ValueError(f"{self.name}.change: expected {known}, got {', '.join(unknown)}")
        return unchanged(s)._replace(**changes)

    def _start(self, field: StateField, average: Num) -> Num:
        """Initial value of a declared number."""
        if not isinstance(field.start, str):
            return field.start
        return average if field.start == "average" else getattr(self, field.start)


RECOVERIES = ("reno", "newreno", "sack")
"""How packet senders recover from losses."""


class AbstractWindowLaw(AbstractRemembering):
    """Reaction of a sender's window to acknowledgements and congestion signals.

    The state is the window, or a record of `window` and of what `state` declares.
    """

    reaction: ClassVar[str]  # default of scenarios
    growth: ClassVar[str] = (
        ""  # default of the reaction's `growth`, if it has one and this is given
    )
    recovery: ClassVar[str]  # how the packet sender recovers from losses
    reads: ClassVar[tuple[str, ...]] = ("mark", "drop")  # of Signal and MEASURES, by its rules
    rate_based: ClassVar[bool] = False  # packets go at the pace, and the window limits none
    no_mean: ClassVar[str] = ""  # why packets alone follow the rules; empty if the mean does too
    memory: ClassVar[float] = math.inf  # s, of `ack.least_rtt` and `ack.greatest_rtt`
    min_window: Num = param(
        1.0,
        r"W_{\min}",
        unit="packet",
        doc="smallest window; below it only timeouts slow a sender",
        within="(0, inf)",
    )
    max_window: Num = param(
        float("inf"), r"W_{\max}", unit="packet", doc="cap of the window", within="(0, inf]"
    )

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the state's numbers, in order."""
        return ("window", *self.states)

    @property
    def symbols(self) -> tuple[str, ...]:
        """LaTeX symbols of the state's numbers, in order."""
        return ("W", *super().symbols)

    @property
    def loads(self) -> bool:
        """Whether the rules act on the load factor."""
        return "load" in self.reads

    @property
    def measured(self) -> tuple[str, ...]:
        """Fields of `MEASURES` that the rules act on."""
        return tuple(name for name in self.reads if name in MEASURES)

    @property
    def signals(self) -> tuple[str, ...]:
        """Fields of Signal that the rules depend on, if only by what the sender measures."""
        own = (MEASURES[name].signal if name in MEASURES else name for name in self.reads)
        return tuple(filter(None, dict.fromkeys(own)))

    @property
    def written(self) -> tuple[str, ...]:
        """Fields of the signal that the rules act on as numbers in packets."""
        return _written(self.reads)

    def start(self, w: Num) -> State:
        """State with window `w`; by default each declared number where `state` has it begin.

        Called as a flow or a new transfer begins. A number may be a constant.
        """
        others = (self._start(field, 0.0) for field in self.states.values())
        return self.state_of(w, *others)

    def window(self, s: State) -> Num:
        """Congestion window [packet]."""
        return s.window if self.states else s

    def with_window(self, s: State, w: Num) -> State:
        """The state `s` with its window replaced by `w`."""
        return s._replace(window=w) if self.states else w

    def change(self, s: State, **changes: Num) -> State:
        """The change of a state `s` in which only the named numbers change."""
        return super().change(s, **changes) if self.states else changes.get("window", 0.0 * s)

    def bounded(self, s: State) -> State:
        """The state with all but its window inside their ranges; by default shares alone.

        Called after each step of the fluid model and of trains, whose length may leave a range.
        """
        ranges = {name: f.info.within for name, f in self.states.items() if f.is_share}
        inside = {k: ops.clip(getattr(s, k), *r.ends) for k, r in ranges.items() if r is not None}
        return s._replace(**inside) if inside else s

    @abc.abstractmethod
    def on_ack(self, s: State, ack: Ack) -> State:
        """Change on clean acknowledgements; 0 for ack.count = ack.elapsed = 0.

        Called at an acknowledgement of new data if the reaction lets the window grow, and slow
        start does not. The fluid model takes the slopes in count and in elapsed at 0, times rates.
        """

    @abc.abstractmethod
    def on_mark(self, s: State, ack: Ack) -> State:
        """Change on one mark or quench that counts (the reaction decides which do).

        Called at it; the fluid model takes the change times the mean rate of those that count.
        """

    def on_loss(self, s: State, ack: Ack) -> State:
        """Change on one loss indication that counts; by default as on a mark.

        Called as fast recovery begins; at a timeout for the slow-start threshold alone, as the
        window is 1 packet after it. The fluid model takes the change times the rate of recoveries.
        """
        return self.on_mark(s, ack)

    def observe(self, s: State, ack: Ack) -> State:
        """Change on all acknowledgements, whether the window may grow or not, to estimate.

        Called before the other rules, in slow start and recovery too; `ack.marked` is the share of
        marks. The fluid model takes the slope in count, times the rate of acknowledgements.
        """
        return unchanged(s)

    def slow_start(self, s: State) -> Num:
        """Does a window below the threshold grow by slow start? (1, or 0: by the law itself).

        Called by packets and trains at acknowledgements that let a window below the threshold grow.
        The fluid model has slow start if `initial.slow_start` or the traffic asks for it.
        """
        return 1

    def rounds(self, ack: Ack) -> Num:
        """Rounds of this law in a round trip: 1, or less for a law whose rounds last longer.

        Reactions that come once in a round trip come once in such a round. Called by all engines.
        """
        return 1

    def pacing(self, s: State, ack: Ack) -> Num | None:
        """Rate at which packets may go [packet/s]; None for a law whose window alone limits them.

        Called by packets as each goes, for the time of the next. The fluid model and trains have
        the smaller one of it and of window over round trip, or it alone if a law is `rate_based`.
        """
        return None

    def lookback(self, s: State, ack: Ack) -> Num:
        """How much older `ack.earlier` is than `ack.delay` [s].

        Called by the fluid model, for a law that reads it. In packets a law has to keep the delay
        before by itself: what `in_packets` returns must not read it.
        """
        return 0.0

    @property
    def is_paced(self) -> bool:
        """Whether `pacing` limits the rate."""
        return type(self).pacing is not AbstractWindowLaw.pacing

    def in_packets(self) -> "AbstractWindowLaw":
        """The law of packets and trains.

        Called by packets and trains at the start. It differs if rules for single packets, such as
        counters, have a mean that does not follow from their mean state.
        """
        return self

    @property
    def marks_tell_load(self) -> bool:
        """Whether receivers take a mark for the largest load factor."""
        return False

    def period(self, ack: Ack) -> Num | None:
        """Time between ticks [s]; None for a law without.

        Called at the start and after each tick, for the time to the next one.
        """
        return None

    def on_tick(self, s: State, ack: Ack) -> State:
        """Change at a tick; `ack` has the round trip and the load known then.

        Called once a `period`. Equilibria and roots take the change per period.
        """
        return unchanged(s)


class AbstractQueueLaw(AbstractRemembering):
    """Change of a queue's memory by arrivals and time, and the signal of the queue.

    The memory is what `state` declares: `()`, a number, or a record of several.
    """

    emits: ClassVar[tuple[str, ...]] = ("mark", "drop")  # fields of Signal that `signal` gives
    reads: ClassVar[tuple[str, ...]] = ()  # of what senders write into packets: "spacing"
    zero_order_hold: ClassVar[bool] = False  # the signal changes at ticks alone
    waits: ClassVar[bool] = False  # packets: ticks wait until they change something

    @property
    def loads(self) -> bool:
        """Whether the signal has a load factor."""
        return "load" in self.emits

    @property
    def written(self) -> tuple[str, ...]:
        """Fields of the signal that the link writes into packets as numbers."""
        return _written(self.emits)

    @property
    def limits(self) -> tuple[State, State] | None:
        """Lower and upper limits at which arrivals stop each number; None if they stop none."""
        found = [f.info.within.ends if f.stops else None for f in self.states.values()]  # type: ignore[union-attr]
        if not any(found):
            return None
        ends = [pair or (-math.inf, math.inf) for pair in found]
        lows, highs = zip(*ends, strict=True)
        return self.state_of(*lows), self.state_of(*highs)

    @property
    def at_departure(self) -> bool:
        """Whether packets are decided upon as they leave: the law defines `on_departure`."""
        return type(self).on_departure is not AbstractQueueLaw.on_departure

    @property
    def heeds_signals(self) -> bool:
        """Whether signals change the memory: the law defines `on_signal`."""
        return type(self).on_signal is not AbstractQueueLaw.on_signal

    @property
    def packet_rule(self) -> str:
        """Name of the rule for the packets that are decided upon."""
        return "on_departure" if self.at_departure else "on_arrival"

    def move_memory(self, x: State, seen: Arrival) -> State:
        """Change by packets that are decided upon: `on_departure` if the law has it, else
        `on_arrival`.
        """
        return getattr(self, self.packet_rule)(x, seen)

    @property
    def by_bytes(self) -> bool:
        """Packets: whether the queue is counted in bytes."""
        return False

    @property
    def counts_service(self) -> bool:
        """Packets: whether the packet in service belongs to the queue."""
        return False

    def start(self, average: Num) -> State:
        """Memory of a queue whose average is `average` packets; by default where `state` begins.

        Called at the start of a run. A number may be a constant.
        """
        return self.state_of(*(self._start(field, average) for field in self.states.values()))

    def initial_states(self, average: Num) -> tuple[State, ...]:
        """Memories from which the law may reach different equilibria, `start` first.

        Called by equilibria, which name those that differ.
        """
        return (self.start(average),)

    def average(self, x: State, queue: Num) -> Num:
        """The average queue that the law acts on [packet]; the queue itself if it keeps none.

        Called for the average queue in results.
        """
        return queue

    def sampling_rate(self, offered: Num, capacity: Num) -> Num:
        """Rate at which the fluid model counts arrivals [packet/s].

        Called by the fluid model alone, for the rate of `on_arrival`.
        """
        return offered

    def on_arrival(self, x: State, seen: Arrival) -> State:
        """Change on `seen.count` arrivals and `seen.elapsed` seconds; 0 if both are 0.

        Called at each packet that arrives, before `signal`, and for the time in which a queue that
        averages was idle. The fluid model takes the slopes in count and in elapsed, times rates.
        """
        return unchanged(x)

    def on_departure(self, x: State, seen: Arrival) -> State:
        """Change on `seen.count` departures and `seen.elapsed` seconds; 0 if both are 0.

        Called at each packet as it leaves the queue, before `signal`, and not `on_arrival`: a law
        with this rule decides then, whatever the feedback, and what it drops is the head of the
        queue, after which the next packet is looked at. The fluid model takes the slopes in count
        and in elapsed, times rates.
        """
        return unchanged(x)

    def on_signal(self, x: State, seen: Arrival) -> State:
        """Change when a packet has just been marked or dropped by this law.

        Called after `signal`; the fluid model takes the change times the rate of signals.
        """
        return unchanged(x)

    def on_tick(self, x: State, seen: Arrival) -> State:
        """Change at a tick; `seen` has the queue and the link rate.

        Called once a `period`. Equilibria and roots take the change per period. If another queue of
        the link goes first, `seen.sojourn` is the longer delay of both.
        """
        return unchanged(x)

    def period(self) -> Num | None:
        """Time between ticks [s]; None for a law without.

        Called at the start and after each tick, for the time to the next one.
        """
        return None

    def tick_interval(self) -> tuple[Num, Num]:
        """Shortest and longest time between ticks [s], with `period` as their mean.

        Called by packets and trains, which draw uniformly between them.
        """
        between = self.period()
        return between, between

    @abc.abstractmethod
    def signal(self, x: State, seen: Arrival) -> Signal:
        """Long-run signal to a packet that finds `seen`.

        Called at each packet as it is decided upon, on entry or on departure (the feedback has
        when, unless the law defines `on_departure`), and by the fluid model at each time.
        """

    def gap_probability(self, x: State, seen: Arrival, gap: Num) -> Num:
        """Probability to mark packet number `gap` after the last mark.

        Called by packets and trains in the place of `signal(x, seen).mark`, its long-run rate.
        """
        return self.signal(x, seen).mark

    def breakpoints(self, x: State, seen: Arrival) -> tuple[Num, ...]:
        """Switching functions: their signs change where the signal has a kink or a jump.

        Called by the fluid model, which lands its steps there, and by equilibria and boundaries.
        """
        return ()

    def switching_points(self, x: State, seen: Arrival) -> tuple[Num, ...]:
        """Switching functions: their signs change where the change at a tick jumps.

        Called by equilibria, to find those that slide on a jump.
        """
        return ()

    def is_discontinuous(self) -> bool:
        """Whether the signal jumps where a queue that it controls may be in equilibrium.

        Called by fluctuations.
        """
        return False

    def in_packets(self, buffer: float) -> "AbstractQueueLaw":
        """The law of the packet engine at a link with this buffer [packet].

        Called by packets and trains at the start. It differs if the signal to a packet depends on
        a memory that the mean does not depend on; trains then ask packet by packet, or, if there
        are too many in a step, for the share of `seen.count` packets that get a signal.
        Raises ValueError if no packet could ever get a signal.
        """
        return self


class MarkingPoint(enum.Enum):
    """When a packet is marked."""

    ENTRY = "as the data packet enters the queue"
    DEPARTURE = "as the data packet leaves the queue"
    TRANSMITTED = "as the transmission of the data packet ends"
    REVERSE = "as the acknowledgement passes the router on its way back"


class AbstractFeedback(Law):
    """How a signal reaches the source: marking point, carrier and interpretation."""

    marking_point: ClassVar[MarkingPoint]  # when a packet is marked
    quench: ClassVar[bool] = False  # the router itself notifies the source
    carries: ClassVar[tuple[str, ...]] = ("mark", "drop")  # fields of Signal that senders receive

    @property
    def marks(self) -> bool:
        """Whether the window law receives marks."""
        return "mark" in self.carries

    @property
    def loads(self) -> bool:
        """Whether the window law receives the load factor."""
        return "load" in self.carries

    @property
    def written(self) -> tuple[str, ...]:
        """Fields of the signal that the window law receives as numbers in packets."""
        return _written(self.carries)

    @property
    def on_data(self) -> bool:
        """Whether data packets carry the signal, so that it is lost with them."""
        return not self.quench and self.marking_point is not MarkingPoint.REVERSE

    def age(self, trip: PathTimes) -> Num:
        """Age of a signal when the source receives it [s].

        Called by the fluid model, for the delay of the signal; it follows from the declarations.
        """
        if not self.on_data:
            return trip.reverse
        leaving = self.marking_point in (MarkingPoint.DEPARTURE, MarkingPoint.TRANSMITTED)
        inside = trip.queueing if leaving else 0.0
        return trip.round_trip - trip.forward - inside

    def carrier(self, trip: PathTimes) -> Num:
        """Time since the packets which bring the signal were sent [s].

        Called by the fluid model, for the delay of their rate; it follows from the declarations.
        """
        return trip.reverse + trip.forward if self.quench else trip.round_trip

    def interpret(self, signal: Signal) -> Signal:
        """The link's signal as these flows interpret it.

        Called by every engine for the signal that a flow receives.
        """
        return signal

    def advertised_window(self, w: Num, marked: Num) -> Num:
        """Packets in flight that one acknowledgement permits to a window `w`.

        Called by packets and trains at each acknowledgement; `marked` is 1 or 0.
        """
        return w

    def flight_size(self, w: Num, mark: Num) -> Num:
        """Mean flight of a window `w` when acknowledgements carry a mark with this probability.

        Called by the fluid model for the sending rate: the mean of `advertised_window`.
        """
        return w


class AbstractReaction(Law):
    """Which signals count: a rule per packet and its mean."""

    @abc.abstractmethod
    def shares(self, p: Num, w: Num, rtt: Num) -> Shares:
        """Mean shares of ACKs that let the window grow and of carriers that are reacted to.

        Called by the fluid model at a mark probability `p`, with the packets `w` that are
        acknowledged in a round trip `rtt` [s], or in a round of the window law if that lasts
        longer: the means of the rules `growing` and `ready`.
        """

    @abc.abstractmethod
    def ready(self, since: Since) -> Num:
        """May the sender react now? (1 or 0).

        Called by packets and trains at each mark or quench, before `on_mark`.
        """

    @abc.abstractmethod
    def growing(self, since: Since, marked: Num) -> Num:
        """May the window grow on this acknowledgement? (1 or 0; `marked` is 1 or 0).

        Called by packets and trains at each acknowledgement of new data, before `on_ack`.
        """


class AbstractMarking(Law):
    """Map from the link's probability to the marking probability of these flows."""

    @abc.abstractmethod
    def probability(self, p: Num, window: AbstractWindowLaw) -> Num:
        """Probability to mark a packet of flows with law `window` at link probability `p`."""


class Lost(NamedTuple):
    """Mean effect of losses on a sender."""

    recovering: Num  # loss indications per second that end in fast recovery
    timing_out: Num  # those that end in a timeout
    running: Num  # share of the time in which the sender is not recovering


class AbstractLossClosure(Law):
    """Effect of losses of probability `drop` on a sender in the fluid model."""

    @abc.abstractmethod
    def lost(self, drop: Num, w: Num, rtt: Num, acks: Num, recovery: str) -> Lost:
        """Loss indications per second at `acks` acknowledgements per second, and their cost.

        `recovery` is how the window law's sender recovers: reno, newreno or sack.
        """

    def timer(self, rtt: Num) -> Num | None:
        """First retransmission timeout [s]; None if losses cost no time."""
        return None

    def window(self, drop: Num, rtt: Num) -> Num | None:
        """Window [packet] at equilibrium, for closures that give only that; None for others."""
        return None


class AbstractEstimator(Law):
    """How a sender comes to know the load factor: a rule per packet and its mean."""

    remembers: ClassVar[bool] = False  # the estimate is a number with memory

    @abc.abstractmethod
    def decode(self, estimate: Num, hashed: Num, load: Num) -> Num:
        """Change of the estimate on a packet with a hash in [0, 1) from links at `load`."""

    @abc.abstractmethod
    def mean(self, estimate: Num, load: Num) -> Num:
        """Mean change of the estimate per packet."""

    def coded(self, load: Num) -> Num:
        """The load factor that the estimate tends to."""
        return load

    def known_load(self, estimate: Num, load: Num) -> Num:
        """Known load factor when a packet brings `load`; that alone if it is exact."""
        return estimate


class AbstractMarkSpacing(Law):
    """How a queue spreads its signals over packets: a rule per packet and its long-run rate."""

    @abc.abstractmethod
    def rate(self, p: Num) -> Num:
        """Long-run share of packets that get a signal for base probability `p`."""

    @abc.abstractmethod
    def gap_probability(self, p: Num, gap: Num) -> Num:
        """Probability for packet number `gap` after the last signal."""


class AbstractSource(Law):
    """Traffic of a flow: when it is active, and the window that an activity begins with.

    In packets a source brings sessions of pages of objects, by rules that turn a number `u`,
    uniform on [0, 1), into a count, a size or a time. An object is one transfer on a new
    connection. A source that is not open is a flow with one session.
    """

    starts: ClassVar[bool] = False  # activities begin and end
    open: ClassVar[bool] = False  # sessions arrive independently of those under way

    @abc.abstractmethod
    def ending(self, rate: Num) -> Num:
        """Activities of one active flow that end per second, at `rate` packets per second."""

    @abc.abstractmethod
    def beginning(self) -> Num:
        """Activities that one idle flow begins per second."""

    @abc.abstractmethod
    def first_window(self) -> Num:
        """Window that an activity begins with [packet]."""

    def load(self) -> Num | None:
        """Load [packet/s] that does not depend on the network; None if the network slows it."""
        return None

    def request(self) -> Num:
        """Size of the request before an object [packet]; 0 for none."""
        return 0.0

    def sources(self) -> Num:
        """Number of sources like `closed` that this one is in the fluid model."""
        return 1.0

    def in_all(self) -> float:
        """Sessions that come in all."""
        return math.inf

    def closed(self) -> "AbstractSource":
        """Source that is not open, of the same mean rate."""
        return self

    def arrival(self, u: Num) -> Num:
        """Time from session to session of an open source [s]."""
        return 0.0 * u

    def pages(self, u: Num) -> Num:
        """Pages of a session; 0 stands for no end."""
        return 0.0 * u

    def pause(self, u: Num) -> Num:
        """Time from the end of a page to the next [s]."""
        return 0.0 * u

    def objects(self, u: Num) -> Num:
        """Objects of a page; one."""
        return 1.0 + 0.0 * u

    def gap(self, u: Num) -> Num:
        """Time from the beginning of an object to that of the next of its page [s]."""
        return 0.0 * u

    def size(self, u: Num) -> Num:
        """Size of an object [packet]."""
        return 1.0 + 0.0 * u


KINDS: Mapping[str, type[Law]] = MappingProxyType(
    {
        "window": AbstractWindowLaw,
        "queue": AbstractQueueLaw,
        "feedback": AbstractFeedback,
        "reaction": AbstractReaction,
        "marking": AbstractMarking,
        "spreading": AbstractMarkSpacing,
        "loss": AbstractLossClosure,
        "estimator": AbstractEstimator,
        "traffic": AbstractSource,
    }
)
"""Kinds of laws with their abstract classes."""


def arguments_of(base: type[Law], method: str) -> list[str]:
    """Names of the arguments of a rule after `self`, as an abstract class has them."""
    return list(inspect.signature(getattr(base, method)).parameters)[1:]


DRAWN = ("arrival", "pages", "pause", "objects", "gap", "size")
"""Rules of sources that turn a uniform number into a time, a count or a size."""

RULES: Mapping[type[Law], tuple[str, ...]] = MappingProxyType(
    {
        AbstractWindowLaw: ("on_ack", "on_mark", "on_loss", "observe", "on_tick"),
        AbstractQueueLaw: (
            "on_arrival",
            "on_departure",
            "on_signal",
            "on_tick",
            "signal",
            "gap_probability",
        ),
        AbstractReaction: ("shares", "ready", "growing"),
        AbstractMarkSpacing: ("rate", "gap_probability"),
        AbstractMarking: ("probability",),
        AbstractFeedback: ("interpret", "advertised_window", "flight_size"),
        AbstractEstimator: ("decode", "mean"),
        AbstractLossClosure: ("lost", "window"),
        AbstractSource: ("ending", "beginning", "first_window", *DRAWN),
    }
)
"""Names of the rules of each kind of law."""

CHANGES = (
    "on_ack", "on_mark", "on_loss", "observe", "on_tick", "on_arrival", "on_departure", "on_signal",
)  # fmt: skip
"""Rules that return the change of a state."""

SYMBOLS: Mapping[str, str | Mapping[str, str]] = MappingProxyType(
    {
        "p": "p", "mark": "p", "drop": "l", "marked": "m", "rate": "x", "acks": "x", "load": "f",
        "estimate": r"\hat f", "hashed": "h", "rtt": "R", "u": "U", "w": "W", "gap": "j",
        "since": {"time": "t", "round_trip": "R", "window": "y", "dropped": "d"},
        "ack": {"count": "n", "elapsed": "e", "rtt": "R", "marked": "m", "random": r"\xi"}
        | {k: v.symbol for k, v in SIGNALS.items() if k in Ack._fields}
        | {k: v.symbol for k, v in MEASURES.items()},
        "seen": {"count": "n", "elapsed": "e", "queue": "q", "capacity": "C", "size": "s",
                 "sojourn": r"\theta", "buffer": "B", "random": r"\xi", "spacing": "X"},
        "signal": {k: v.symbol for k, v in SIGNALS.items()},
    }
)  # fmt: skip
"""LaTeX symbols of the arguments of rules, by the names that the abstract classes have."""


def argument_symbols(kind: type[Law], method: str) -> list[tuple[str, str]]:
    """Numbers of the arguments of a rule of a kind, ``ack.count``, with their symbols."""
    named = []
    for argument in arguments_of(kind, method):
        symbols = SYMBOLS.get(argument, {})
        each = {"": symbols} if isinstance(symbols, str) else symbols
        named += [(f"{argument}.{k}" if k else argument, symbol) for k, symbol in each.items()]
    return named


def taken_symbols(kind: type[Law]) -> dict[str, str]:
    """Symbols that no parameter of a law of a kind can have, with the numbers that have them."""
    every = [pair for rule in RULES[kind] for pair in argument_symbols(kind, rule)]
    if kind is AbstractWindowLaw:
        every += [("s, the window", "W"), ("min_window", r"W_{\min}"), ("max_window", r"W_{\max}")]
    return {symbol: name for name, symbol in every}


def shared_symbols(law: Law, method: str) -> Iterator["SharedSymbol"]:
    """Symbols that stand for two numbers of a rule: of the event, the state or the parameters."""
    kind = next(base for base in KINDS.values() if isinstance(law, base))
    named = argument_symbols(kind, method)
    if isinstance(law, AbstractRemembering):
        named += zip(law.fields, law.symbols, strict=True)
    named += [(name, info.symbol) for name, info in numeric_parameters(type(law)).items()]
    owners: dict[str, str] = {}
    for name, symbol in named:
        if owners.setdefault(symbol, name) != name:
            yield SharedSymbol(symbol, owners[symbol], name)


class SharedSymbol(NamedTuple):
    """A symbol, and the two numbers that it stands for."""

    symbol: str
    first: str
    second: str

    def __str__(self) -> str:
        return (
            f"{self.symbol} stands for two numbers, {self.first} and {self.second}: give "
            f"{self.second} another symbol"
        )
