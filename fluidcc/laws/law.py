"""What a law is: rules for single packet events, and records of what an event tells.

A rule returns the *change* of a state. Regular events carry `count` and `elapsed`: the rule says
what `count` packets in `elapsed` seconds do. The packet engine calls it with one packet and the
time since the last event, the fluid model takes its slope at zero in both.
"""

import abc
import enum
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax

from fluidcc.laws.parameters import check_fields, param
from fluidcc.ops import Num

State = Any
"""A number or a flat NamedTuple of numbers; `()` where nothing is remembered."""


class Signal(NamedTuple):
    """What a link says to a packet.

    Over several links marks and drops combine as 1 - prod(1 - p), loads by the maximum.
    """

    mark: Num = 0.0  # probability to signal congestion
    drop: Num = 0.0  # probability to be lost
    load: Num = 0.0  # load factor; 0 from links that tell none

    @property
    def either(self) -> Num:
        """Probability to be marked or lost."""
        return self.mark + self.drop * (1 - self.mark)


class Arrival(NamedTuple):
    """What `count` packets tell a queue, `elapsed` seconds after the ones before."""

    count: Num  # packets
    elapsed: Num  # s
    queue: Num  # packets found
    capacity: Num  # packet/s
    size: Num = 1.0  # of this packet, in mean packets


class Ack(NamedTuple):
    """What acknowledgements of `count` packets tell a sender, `elapsed` s after the ones before."""

    count: Num  # packets
    elapsed: Num  # s
    rtt: Num  # s, measured
    load: Num = 0.0  # load factor that the sender knows of
    marked: Num = 0.0  # share of these packets that carried a mark


class Since(NamedTuple):
    """What happened since the sender's last reaction."""

    time: Num  # s
    round_trip: Num  # s
    window: Num  # 1 if this acknowledgement is for a packet sent after it, else 0
    dropped: Num = 0.0  # 1 if a quench told then that a packet was dropped, else 0


class Shares(NamedTuple):
    """Mean shares that a reaction lets through."""

    growing: Num  # of the acknowledgements
    heard: Num  # of the carriers of a signal


class Trip(NamedTuple):
    """The way of one flow over one link [s]."""

    round_trip: Num
    forward: Num  # source to queue entry, with upstream queues
    queueing: Num  # in this queue
    reverse: Num  # router to source


def unchanged(state: State) -> State:
    """The change of a state that does not change."""
    return jax.tree.map(lambda v: 0.0 * v, state)


class Law(eqx.Module):
    """Common to all laws: a name for scenarios, a source, parameters with ranges."""

    name: eqx.AbstractClassVar[str]
    source: eqx.AbstractClassVar[str]  # key of the bibliography, equation or section

    def __check_init__(self) -> None:
        """Raise ValueError when a parameter is out of its range."""
        check_fields(self, self.name)


RECOVERIES = ("reno", "newreno", "sack")
"""How packet senders recover from losses."""


class AbstractWindowLaw(Law):
    """What acknowledgements and congestion signals do to a sender."""

    symbols: ClassVar[tuple[str, ...]] = ("W",)  # LaTeX, of the state's numbers in order
    reaction: eqx.AbstractClassVar[str]  # unless a scenario says otherwise
    recovery: eqx.AbstractClassVar[str]  # what the packet sender does about losses
    loads: ClassVar[bool] = False  # acts on the load factor
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

    def start(self, w: Num) -> State:
        """State with window `w`."""
        return w

    def window(self, s: State) -> Num:
        """Congestion window [packet]."""
        return s

    def with_window(self, s: State, w: Num) -> State:
        """The state `s` with its window replaced by `w`."""
        return w

    def bounded(self, s: State) -> State:
        """The state with all but its window inside their ranges, which long steps may leave."""
        return s

    @abc.abstractmethod
    def on_ack(self, s: State, ack: Ack) -> State:
        """Change on clean acknowledgements; 0 for ack.count = ack.elapsed = 0."""

    @abc.abstractmethod
    def on_mark(self, s: State, ack: Ack) -> State:
        """Change on one congestion signal that counts (the reaction decides which do)."""

    def on_loss(self, s: State, ack: Ack) -> State:
        """Change on one loss indication that counts; as a mark unless the law says more."""
        return self.on_mark(s, ack)

    def observe(self, s: State, ack: Ack) -> State:
        """Change on all acknowledgements, whether the window may grow or not: what is learnt."""
        return unchanged(s)

    def slow_start(self, s: State) -> Num:
        """Does a window below the threshold grow by slow start? (1, or 0: by the law itself)."""
        return 1

    @property
    def marks_tell_load(self) -> bool:
        """Whether receivers take a mark for the largest load factor."""
        return False

    def period(self, ack: Ack) -> Num | None:
        """Time between ticks [s]; None for a law without."""
        return None

    def on_tick(self, s: State, ack: Ack) -> State:
        """Change at a tick; `ack` tells the round trip and the load known then."""
        return unchanged(s)


class AbstractQueueLaw(Law):
    """What arrivals and time do to a queue's memory, and what the queue says."""

    symbols: ClassVar[tuple[str, ...]] = ("v",)  # LaTeX, of the memory's numbers in order
    limits: ClassVar[tuple[float, float] | None] = None  # that arrivals keep the memory between
    period: ClassVar[str | None] = None  # name of the field with the time between ticks [s]
    held: ClassVar[bool] = False  # the signal changes at ticks alone
    waits: ClassVar[bool] = (
        False  # packets: a tick waits for a moment at which it changes something
    )
    loads: ClassVar[bool] = False  # the signal has a load factor

    def start(self, average: Num) -> State:
        """Memory of a queue whose average is `average` packets."""
        return ()

    def starts(self, average: Num) -> tuple[State, ...]:
        """Memories from which the law may come to rest differently, `start` first."""
        return (self.start(average),)

    def average(self, x: State, queue: Num) -> Num:
        """The average queue that the law acts on [packet]; the queue itself where none is kept."""
        return queue

    def counted(self, offered: Num, capacity: Num) -> Num:
        """Rate at which the fluid model counts arrivals [packet/s]."""
        return offered

    def on_arrival(self, x: State, seen: Arrival) -> State:
        """Change on `seen.count` arrivals and `seen.elapsed` seconds; 0 if both are 0."""
        return unchanged(x)

    def on_tick(self, x: State, seen: Arrival) -> State:
        """Change at a tick; `seen` tells the queue and the link rate."""
        return unchanged(x)

    def spacing(self) -> tuple[Num, Num]:
        """Shortest and longest time between ticks [s]; packets draw uniformly between them."""
        period = getattr(self, self.period or "")
        return period, period

    @abc.abstractmethod
    def signal(self, x: State, seen: Arrival) -> Signal:
        """What the queue says to a packet that finds `seen`, in the long run."""

    def chance(self, x: State, seen: Arrival, gap: Num) -> Num:
        """Probability to signal to packet number `gap` after the last signal; its long-run rate
        is `signal(x, seen).mark`.
        """
        return self.signal(x, seen).mark

    def kinks(self, x: State, queue: Num) -> tuple[Num, ...]:
        """Numbers whose sign changes where the signal has a kink or a jump."""
        return ()

    def turns(self, x: State, queue: Num) -> tuple[Num, ...]:
        """Numbers whose sign changes where the change at a tick jumps."""
        return ()

    def jumps(self) -> bool:
        """Whether the signal jumps where a queue that it controls may come to rest."""
        return False

    def in_packets(self, buffer: float) -> "AbstractQueueLaw":
        """The law that packets meet at a link with this buffer [packet].

        Another one where the signal to a packet depends on a memory that has no part in the mean.
        Raises ValueError where no packet could ever get a signal.
        """
        return self


class Moment(enum.Enum):
    """When the fate of a signal is decided."""

    ENTRY = "as the data packet enters the queue"
    DEPARTURE = "as the data packet leaves the queue"
    TRANSMITTED = "as the transmission of the data packet ends"
    REVERSE = "as the acknowledgement passes the router on its way back"


class AbstractFeedback(Law):
    """How a signal reaches the source: when it is decided, what carries it, what it means."""

    moment: eqx.AbstractClassVar[Moment]
    quench: ClassVar[bool] = False  # the router itself tells the source
    marks: ClassVar[bool] = True  # the window law hears the mark
    loads: ClassVar[bool] = False  # the window law hears the load factor

    @property
    def on_data(self) -> bool:
        """Whether data packets carry the signal, so that it is lost with them."""
        return not self.quench and self.moment is not Moment.REVERSE

    def age(self, trip: Trip) -> Num:
        """Age of a signal when the source hears it [s]."""
        if not self.on_data:
            return trip.reverse
        leaving = self.moment in (Moment.DEPARTURE, Moment.TRANSMITTED)
        inside = trip.queueing if leaving else 0.0
        return trip.round_trip - trip.forward - inside

    def carrier(self, trip: Trip) -> Num:
        """Time since the packets which bring the signal were sent [s]."""
        return trip.reverse + trip.forward if self.quench else trip.round_trip

    def hears(self, signal: Signal) -> Signal:
        """What the link's signal means to these flows."""
        return signal

    def permit(self, w: Num, marked: Num) -> Num:
        """Packets in flight that one acknowledgement permits to a window `w`."""
        return w

    def sending(self, w: Num, mark: Num) -> Num:
        """Mean flight of a window `w` when acknowledgements carry a mark with this probability."""
        return w


class AbstractReaction(Law):
    """Which signals count: a rule per packet and its mean."""

    @abc.abstractmethod
    def shares(self, p: Num, w: Num) -> Shares:
        """Mean shares of ACKs that let the window grow and of carriers that are reacted to."""

    @abc.abstractmethod
    def ready(self, since: Since) -> Num:
        """May the sender react now? (1 or 0)."""

    @abc.abstractmethod
    def growing(self, since: Since, marked: Num) -> Num:
        """May the window grow on this acknowledgement? (1 or 0; `marked` is 1 or 0)."""


class AbstractMarking(Law):
    """Map from the link's probability to the one that these flows are marked with."""

    @abc.abstractmethod
    def probability(self, p: Num, window: AbstractWindowLaw) -> Num:
        """Probability to mark a packet of flows with law `window` where the link says `p`."""


class Lost(NamedTuple):
    """What losses do to a sender in the mean."""

    recovering: Num  # loss indications per second that end in fast recovery
    timing_out: Num  # those that end in a timeout
    running: Num  # share of the time in which the sender is not recovering


class AbstractLossClosure(Law):
    """What losses of probability `drop` mean to a sender in the fluid model."""

    @abc.abstractmethod
    def lost(self, drop: Num, w: Num, rtt: Num, acks: Num, recovery: str) -> Lost:
        """Loss indications per second at `acks` acknowledgements per second, and their cost.

        `recovery` is how the window law's sender recovers: reno, newreno or sack.
        """

    def window(self, drop: Num, rtt: Num) -> Num | None:
        """Window [packet] kept at rest, for closures that know nothing else; None for others."""
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

    def heard(self, estimate: Num, load: Num) -> Num:
        """What is known as a packet comes that tells of `load`; where that says all, just this."""
        return estimate


class AbstractSpreading(Law):
    """How a queue spreads its signals over packets: a rule per packet and its long-run rate."""

    @abc.abstractmethod
    def rate(self, p: Num) -> Num:
        """Long-run share of packets that get a signal for base probability `p`."""

    @abc.abstractmethod
    def chance(self, p: Num, gap: Num) -> Num:
        """Probability for packet number `gap` after the last signal."""
