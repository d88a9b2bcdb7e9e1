"""What a run of trains is between two steps, and before the first.

Arrays end with the axis of lanes, the runs that are done together; those over flows are (n, B). A
row of a ring holds a count as it is at the end of a step; counts begin with the run, in packets.
"""

from typing import Any, NamedTuple

import numpy as np

from fluidcc.programs import map_tree
from fluidcc.trains.layout import LATE, Kind, KindNumbers, Numbers, PortNumbers, Shape

Array = Any
NEVER = 1e18  # s
LARGEST = 1e9  # packets of a file, objects of a page, pages of a session


class OpenState(NamedTuple):
    """An open source: its next session, and the sessions under way, (m, B)."""

    arrives_at: Array  # (B) s
    begun: Array  # (B) sessions
    pages: Array  # left, with the present one; 0 for a place that is free
    objects: Array  # of the page that have not begun
    under_way: Array  # objects that have not ended
    next_at: Array  # s, next object, or page
    crowded: Array  # (B) 1 if there were too few flows or places


class FileState(NamedTuple):
    """Files of the flows of a kind, (n, B)."""

    next_at: Array  # s, of a flow with a session of its own
    pages: Array  # left of that session; 0 for no end
    owner: Array  # place of the session that an object belongs to
    requested_at: Array  # s
    connects_at: Array  # s, next SYN
    syns: Array  # (B) sent in the last step
    transfers: Array  # ended
    span_sum: Array  # s
    span_squares: Array
    open: OpenState | tuple[()]


class SenderState(NamedTuple):
    """Flows of a kind between two steps; counts since the start are in packets."""

    law: Any
    threshold: Array  # of slow start
    sent: Array
    known: Array  # sent, and known to have come or been lost
    lost: Array  # known to be lost
    marks: Array  # heard
    quenched: Array  # losses heard by quenches
    pending: Array  # marks that are still to be answered
    recover: Array  # `sent` at the last reaction
    reacted_at: Array  # s
    dropped: Array  # 1 if that was to a quench for a loss
    repaired_at: Array  # s, end of the recovery
    resent: Array  # `sent` up to which packets of the recovery are sent again
    missing: Array  # lost packets of a recovery by SACK that are not repaired yet
    silent_until: Array  # s, end of a timeout
    backoff: Array
    signalled: Array  # 1 if the last reaction was one to a mark or a quench
    at_one: Array  # 1 after a cut at a window of one, until an ACK without a mark
    timed: Array  # `sent` beyond which the next packet is timed
    smoothed: Array  # round trip in eighths of a tick; 0 if none is known
    deviation: Array  # of the round trip in quarters of a tick
    timeout: Array  # s, before its back-off
    quiet: Array  # s since the last ACK
    permitted: Array  # packets in flight by the last ACK
    fraction: Array  # of a packet whose ACK is under way, for rules by the packet
    estimate: Array  # of the load
    tick_at: Array  # s
    begin: Array  # s
    need: Array  # packets of the file; never ends for bulk
    got: Array  # of the file, acknowledged
    acked: Array
    timeouts: Array
    reductions: Array
    recoveries: Array
    window_time: Array  # integral of the window while open [packet s]
    open_time: Array
    rtt_sum: Array  # of ACKs [packet s]
    round_trip: Array  # s, measured last
    files: Any
    paced: Any  # packets that the pace lets go (n, B); () for laws without
    extremes: tuple[Array, ...]  # least and greatest round trip [s] of the present part of the
    # law's memory, and of the past one, and the end of the present one; () for laws that read none


class PortState(NamedTuple):
    """A link between two steps; counts since the start are in packets."""

    law: Any
    gap: Array  # packets since the last signal
    armed: Array
    tick_at: Array  # s
    accepted: Array  # by work
    served: Array
    numbers: Array  # accepted, by number
    left: Array  # served, by number
    voice: Array  # packets of voice that wait in a queue of their own
    offered: Array  # packets by number, with those dropped
    marked: Array
    dropped: Array
    area: Array  # integral of the packets that wait [packet s]
    squares: Array
    system: Array  # integral of those in the system
    system_squares: Array
    used: Array  # by voice of its own queue, in packets
    full: Array  # share of the packets of the last step that found no room
    shed: Array | tuple[()]  # of the last step, dropped as they left, and took no time; () for none
    calls: Array
    talkers: Array


class PortRecord(NamedTuple):
    """Of a link: packets accepted, time of arrival of what leaves, and the rest."""

    accepted: Array  # (L, B) packets
    place: Array  # (L, B) time at which the packet that leaves now came
    number: Array  # (L, B) packets by number rather than by work; (0, B) if that is the same
    written: tuple[Array, ...]  # (L, B) each of the numbers that it writes into packets
    chance: Array  # (L, B) probability of a signal to ACKs that pass; (0, B) if none is rewritten
    lost: Array  # (L, N, B) of each flow, packets
    marks: Array  # (L, N, B) of each flow
    shed: Array | tuple[()]  # (L, N, B) of each flow, dropped as they left; () if none can be


class Record(NamedTuple):
    """Of a run."""

    sent: tuple[Array, ...]  # (L, n, B) of each kind
    before: tuple[Array, ...]  # (L, n, B) packets of the same step that come before a flow's
    together: tuple[Array, ...]  # (L, B) packets that begin their way in a step at each link
    ports: tuple[PortRecord, ...]


class Run(NamedTuple):
    """All that a run is between two steps."""

    k: Array  # number of the next step
    senders: tuple[SenderState, ...]
    ports: tuple[PortState, ...]
    record: Record
    arrived: tuple[tuple[Array, ...], ...]  # (n, B) packets of each kind that came to each hop
    departed: tuple[tuple[Array, ...], ...]  # that left it, for kinds whose marks are set then
    returned: tuple[tuple[Array, ...], ...]  # (B) ACKs of each kind that came to each link back
    oldest: Array  # (B) age of the oldest row that was read [steps]


def first(shape: Shape, numbers: Numbers, calls: Any, talkers: Any) -> Run:
    """A run before its first step, with the calls of each link (ports, B)."""
    lanes = calls.shape[1]
    kinds = shape.kinds

    def per_hop(kind: Kind, hops: tuple[int, ...]) -> tuple[Any, ...]:
        return tuple(np.zeros((kind.count, lanes)) for _ in hops)

    return Run(
        k=np.zeros((), np.int64),
        senders=tuple(map(_first_sender, kinds, numbers.kinds)),
        ports=tuple(map(_first_port, numbers.ports, calls, talkers)),
        record=_first_record(shape, lanes),
        arrived=tuple(per_hop(kind, kind.route) for kind in kinds),
        departed=tuple(per_hop(k, k.route if _leaves(shape, k) else ()) for k in kinds),
        returned=tuple(tuple(np.zeros(lanes) for _ in kind.back) for kind in kinds),
        oldest=np.zeros(lanes),
    )


def _leaves(shape: Shape, kind: Kind) -> bool:
    """Whether some packets of a kind are decided upon as they leave."""
    return kind.marking_point in LATE or any(shape.ports[k].departs for k in kind.route)


def _first_sender(kind: Kind, numbers: KindNumbers) -> SenderState:
    """Flows before they start."""
    zero = np.zeros_like(numbers.begin)
    law = map_tree(lambda v: v + zero, numbers.window.start(numbers.initial + zero))
    start = numbers.begin + numbers.syn * numbers.trip
    never = zero - NEVER
    return SenderState(
        law=law,
        threshold=numbers.threshold + zero,
        sent=zero, known=zero, lost=zero, marks=zero, quenched=zero, pending=zero,
        recover=zero - 1.0, reacted_at=never, dropped=zero, repaired_at=never, resent=zero - 1.0,
        missing=zero, silent_until=never, backoff=zero + 1.0, signalled=zero, at_one=zero,
        timed=zero, smoothed=zero, deviation=zero, timeout=numbers.first_rto + zero, quiet=zero,
        permitted=zero + NEVER, fraction=zero, estimate=zero,
        tick_at=start if kind.ticks else zero + NEVER,
        begin=start, need=zero if kind.starts else zero + NEVER, got=zero,
        acked=zero, timeouts=zero, reductions=zero, recoveries=zero,
        window_time=zero, open_time=zero, rtt_sum=zero, round_trip=numbers.trip + zero,
        files=_first_files(kind, numbers, numbers.begin),
        paced=zero + 1.0 if kind.paced else (),
        extremes=(zero + NEVER, zero, zero + NEVER, zero, zero) if kind.measures else (),
    )  # fmt: skip


def _first_files(kind: Kind, numbers: KindNumbers, starts: Any) -> FileState | tuple[()]:
    """Files before the first step; flows with a session of their own begin at `starts` (n, B)."""
    if not kind.starts:
        return ()
    zero = np.zeros_like(starts)
    lanes = starts.shape[1]
    pages = np.ceil(np.minimum(np.asarray(numbers.traffic.pages(0.5), float), LARGEST)) + zero
    one, places = np.zeros(lanes), np.zeros((kind.sessions, lanes))
    source = OpenState(one, one, places, places, places, places + NEVER, one)
    return FileState(
        next_at=starts + zero, pages=pages, owner=zero, requested_at=zero,
        connects_at=zero + NEVER, syns=one, transfers=zero, span_sum=zero, span_squares=zero,
        open=source if kind.sessions else (),
    )  # fmt: skip


def _first_port(numbers: PortNumbers, calls: Any, talkers: Any) -> PortState:
    """A link before the first step, with its calls (B)."""
    zero = np.zeros_like(calls)
    law = map_tree(lambda v: v + zero, numbers.start)
    first = (numbers.period[0] + numbers.period[1]) / 2
    own = {"calls": calls, "talkers": talkers, "shed": zero if numbers.law.at_departure else ()}
    return PortState(law, zero, zero, zero + first, *([zero] * 14), **own)


def _first_record(shape: Any, lanes: int) -> Record:
    """Rings before anything has been sent."""
    rows = shape.rows
    before = np.broadcast_to(np.arange(-rows, 0, dtype=float)[:, None], (rows, lanes))

    def port(p: Any) -> PortRecord:
        zeros = np.zeros((rows, lanes))
        return PortRecord(
            accepted=zeros,
            place=before,
            number=zeros if p.counted else zeros[:0],
            written=(zeros,) * len(p.written),
            chance=zeros if p.rewrites else zeros[:0],
            lost=np.zeros((rows if p.signals or p.finite or p.lossy else 0, p.flows, lanes)),
            marks=np.zeros((rows if p.signals else 0, p.flows, lanes)),
            shed=np.zeros((rows, p.flows, lanes)) if p.departs else (),
        )

    sent = tuple(np.zeros((rows, kind.count, lanes)) for kind in shape.kinds)
    together = tuple(np.zeros((rows, lanes)) for _ in shape.ports)
    return Record(sent, sent, together, tuple(map(port, shape.ports)))


def sampled(run: Run) -> np.ndarray:
    """Packets in the system of each link (ports, B)."""
    pairs = ((np.asarray(s.numbers), np.asarray(s.left)) for s in run.ports)
    return np.array([numbers - np.floor(left + 1e-9) for numbers, left in pairs])


def is_crowded(run: Run) -> bool:
    """Whether an open source had more files at a time than flows."""
    sources = (s.files.open for s in run.senders if s.files and s.files.open)
    return any(bool(np.any(np.asarray(o.crowded) > 0)) for o in sources)
