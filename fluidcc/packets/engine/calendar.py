"""The calendar, a knock-out tournament of entities for the next event; packets in queues, on wires.

Every entity takes part all the time, idle ones with the time NEVER, so nothing is allocated or
cancelled. A change replays the matches on one path to the top, whose opponents are known in
advance: no step waits for a guess about the one before, as in a heap. Events of the same instant
are ordered by when they were set off (a packet's arrival when its transmission began), then by
entity number: equal round trips on a lattice of packet times resolve as in ns-2.
"""

import numpy as np

from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.pointer import compiled


def tournament(times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Entries of entities whose first events are at `times` [s], and the winners of all matches.

    The winner of match k meets that of match k ^ 1 in match k // 2; the last one is match 1. Those
    who take part stand behind: their number is a power of two.
    """
    leaves = 1 << max(len(times) - 1, 1).bit_length()
    entries = np.zeros(leaves, r.ENTRY_RECORD)
    entries["time"] = np.inf
    entries["time"][: len(times)] = times
    order = np.argsort(entries["time"], kind="stable")
    ranks = np.empty(leaves, np.int32)
    ranks[order] = np.arange(leaves)
    rounds = [ranks]
    while len(rounds[0]) > 1:
        rounds.insert(0, np.minimum(rounds[0][::2], rounds[0][1::2]))
    unused = [0]  # there is no match 0
    return entries, order[np.concatenate([unused, *rounds])].astype(np.int32)


@compiled
def first(s):
    """The entity with the next event."""
    return r.index_at(s.winners, 1).value


@compiled
def next_time(s, entity):
    """Time of the next event of an entity."""
    return r.entry_at(s.entries, entity).time


@compiled
def schedule(s, entity, time, since):
    """Move the next event of an entity, set off at `since`, to `time`."""
    entry = r.entry_at(s.entries, entity)
    entry.time = time
    entry.since = since
    winner = entity
    match = s.leaves + entity
    while match > 1:
        other = r.index_at(s.winners, match ^ 1).value
        rival = r.entry_at(s.entries, other)
        their_time, their_since = rival.time, rival.since
        wins = their_time < time
        if their_time == time:
            wins = their_since < since or (their_since == since and other < winner)
        winner = other if wins else winner
        time = their_time if wins else time
        since = their_since if wins else since
        match >>= 1
        above = r.index_at(s.winners, match)
        if above.value == winner and winner != entity:
            return
        above.value = winner


@compiled
def allocate(s):
    """Index of a free packet; -1, and the run ends, when there is none."""
    index = s.free
    if index < 0:
        s.status = r.POOL_EXHAUSTED
    else:
        s.free = r.packet_at(s.packets, index).next
    return index


@compiled
def release(s, index):
    """Put a packet back into the pool."""
    r.packet_at(s.packets, index).next = s.free
    s.free = index


@compiled
def enqueue(s, queue, index):
    """Put a packet at the tail of a port or wire."""
    r.packet_at(s.packets, index).next = -1
    if queue.count == 0:
        queue.head = index
    else:
        r.packet_at(s.packets, queue.tail).next = index
    queue.tail = index
    queue.count += 1


@compiled
def dequeue(s, queue):
    """Take the packet at the head of a port or wire that holds one."""
    index = queue.head
    queue.head = r.packet_at(s.packets, index).next
    queue.count -= 1
    return index


@compiled
def put_on_wire(s, entity, index, time, since):
    """Put a packet, under way since `since`, on a wire that it leaves at `time`.

    Packets leave a wire in the order in which they enter it.
    """
    wire = r.wire_at(s.wires, r.entity_at(s.entities, entity).index)
    packet = r.packet_at(s.packets, index)
    packet.arrives = time
    packet.since = since
    enqueue(s, wire, index)
    if wire.count == 1:
        schedule(s, entity, time, since)


@compiled
def send_on_wire(s, entity, index, start, spent):
    """Send a packet over a wire, after a transmission of `spent` seconds that began at `start`.

    A wire with a rate has the transmitter at its entrance, with a queue that never drops; for
    NEVER, whose delay has changed, nothing leaves it before the time `free` of the packet ahead.
    """
    wire = r.wire_at(s.wires, r.entity_at(s.entities, entity).index)
    if wire.rate >= r.NEVER:
        wire.free = max(start + (spent + wire.delay), wire.free)
        put_on_wire(s, entity, index, wire.free, start)
        return
    if wire.rate > 0:
        start = max(start, wire.free)
        spent = r.packet_at(s.packets, index).size / wire.rate
        wire.free = start + spent
    put_on_wire(s, entity, index, start + (spent + wire.delay), start)


@compiled
def take_from_wire(s, entity):
    """Take the packet that has arrived at the end of a wire."""
    wire = r.wire_at(s.wires, r.entity_at(s.entities, entity).index)
    index = dequeue(s, wire)
    if wire.count > 0:
        head = r.packet_at(s.packets, wire.head)
        schedule(s, entity, head.arrives, head.since)
    else:
        schedule(s, entity, r.NEVER, s.now)
    return index
