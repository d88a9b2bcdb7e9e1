"""The packet pool, queues of packets, and wires."""

from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.calendar import schedule
from fluidcc.packets.engine.pointer import compiled


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

    A wire with a rate has the transmitter at its entrance, with a queue that never drops.
    """
    wire = r.wire_at(s.wires, r.entity_at(s.entities, entity).index)
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
