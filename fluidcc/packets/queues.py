"""The packet pool, queues of packets, and wires."""

from fluidcc.packets.heap import schedule
from fluidcc.packets.pointer import compiled
from fluidcc.packets.records import (
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
def post(s, entity, index, time):
    """Put a packet on a wire from which it comes at `time`, never before the one ahead."""
    wire = wire_at(s.wires, entity_at(s.entities, entity).index)
    packet_at(s.packets, index).arrives = time
    append(s, wire, index)
    if wire.count == 1:
        schedule(s, entity, time)


@compiled
def travel(s, entity, index):
    """Send a packet over a wire, behind what a link at its entrance still has to transmit."""
    wire = wire_at(s.wires, entity_at(s.entities, entity).index)
    time = s.now
    if wire.rate > 0:
        time = max(time, wire.free) + packet_at(s.packets, index).size / wire.rate
        wire.free = time
    post(s, entity, index, time + wire.delay)


@compiled
def arrived(s, entity):
    """Take the packet that has come to the end of a wire."""
    wire = wire_at(s.wires, entity_at(s.entities, entity).index)
    index = take(s, wire)
    if wire.count > 0:
        schedule(s, entity, packet_at(s.packets, wire.head).arrives)
    else:
        schedule(s, entity, NEVER)
    return index
