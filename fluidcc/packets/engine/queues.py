"""The packet pool, queues of packets, and wires."""

from fluidcc.packets.engine.calendar import schedule
from fluidcc.packets.engine.pointer import compiled
from fluidcc.packets.engine.records import (
    NEVER,
    POOL_EXHAUSTED,
    entity_at,
    packet_at,
    wire_at,
)


@compiled
def allocate(s):
    """Index of a free packet; -1, and the run ends, when there is none."""
    index = s.free
    if index < 0:
        s.status = POOL_EXHAUSTED
    else:
        s.free = packet_at(s.packets, index).next
    return index


@compiled
def release(s, index):
    """Put a packet back into the pool."""
    packet_at(s.packets, index).next = s.free
    s.free = index


@compiled
def append(s, queue, index):
    """Put a packet at the tail of a port or wire."""
    packet_at(s.packets, index).next = -1
    if queue.count == 0:
        queue.head = index
    else:
        packet_at(s.packets, queue.tail).next = index
    queue.tail = index
    queue.count += 1


@compiled
def take(s, queue):
    """Take the packet at the head of a port or wire that holds one."""
    index = queue.head
    queue.head = packet_at(s.packets, index).next
    queue.count -= 1
    return index


@compiled
def post(s, entity, index, time, since):
    """Put a packet, under way since `since`, on a wire from which it comes at `time`.

    Packets leave a wire in the order in which they enter it.
    """
    wire = wire_at(s.wires, entity_at(s.entities, entity).index)
    packet = packet_at(s.packets, index)
    packet.arrives = time
    packet.since = since
    append(s, wire, index)
    if wire.count == 1:
        schedule(s, entity, time, since)


@compiled
def travel(s, entity, index, start, spent):
    """Send a packet over a wire, after a transmission of `spent` seconds that began at `start`.

    A wire with a rate has the transmitter at its entrance, with a queue that never drops.
    """
    wire = wire_at(s.wires, entity_at(s.entities, entity).index)
    if wire.rate > 0:
        start = max(start, wire.free)
        spent = packet_at(s.packets, index).size / wire.rate
        wire.free = start + spent
    post(s, entity, index, start + (spent + wire.delay), start)


@compiled
def arrived(s, entity):
    """Take the packet that has come to the end of a wire."""
    wire = wire_at(s.wires, entity_at(s.entities, entity).index)
    index = take(s, wire)
    if wire.count > 0:
        head = packet_at(s.packets, wire.head)
        schedule(s, entity, head.arrives, head.since)
    else:
        schedule(s, entity, NEVER, s.now)
    return index
