"""What a queue law says to packets: who is chosen, and what then happens to it."""

from math import inf

from fluidcc.packets.engine.loads import stamp
from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.pointer import call, compiled, inlined
from fluidcc.packets.engine.queues import allocate, travel
from fluidcc.packets.engine.records import (
    ENTRY,
    M_PROBABILITY,
    MARK,
    MARKABLE,
    MARKED,
    NOT_A_NUMBER,
    Q_CAPACITY,
    Q_CHANCE,
    Q_COUNT,
    Q_DROP,
    Q_ELAPSED,
    Q_GAP,
    Q_MARK,
    Q_QUEUE,
    Q_SIZE,
    REPLY,
    flow_at,
    group_at,
    index_at,
    number_at,
    packet_at,
)
from fluidcc.packets.engine.streams import draw
from fluidcc.packets.engine.traces import note_at_port

KEEP, CHOSEN, FORCED = 0, 1, 2


@compiled
def waiting(port):
    """Packets that wait, in the unit of the law."""
    return port.bytes / port.unit if port.by_bytes == 1 else float(port.count)


@inlined
def tell(s, port, size, queue):
    """Write what an arrival, departure or tick tells into the law's block."""
    block = port.block
    number_at(block, Q_ELAPSED).value = s.now - port.seen_at
    number_at(block, Q_QUEUE).value = queue
    number_at(block, Q_CAPACITY).value = port.capacity
    number_at(block, Q_SIZE).value = size / port.unit
    gap = port.gap
    if port.by_bytes == 1:
        gap = port.gap_bytes // int(port.unit)
    number_at(block, Q_GAP).value = float(gap)


@compiled
def _pass_idle_time(s, port):
    """Count the packets that the idle time had room for: they found an empty queue, and brought
    nothing.
    """
    count = int((s.now - port.idle_since) * port.capacity)
    if count > 0:
        tell(s, port, 0.0, 0.0)
        number_at(port.block, Q_COUNT).value = float(count)
        call(port.update, port.block)
        port.seen_at = s.now


@part(records="flow group packet")
def quench(s, flow, group, packet, told):
    """Tell the source by a packet of the router's own, with MARKED in `told` or nothing."""
    index = allocate(s)
    if index < 0:
        return
    message = packet_at(s.packets, index)
    message.flow = packet.flow
    message.sequence = packet.sequence
    message.connection = packet.connection
    message.flags = REPLY | told
    message.size = group.quench_size
    flow.quenches += 1
    row = packet.flow * s.hops
    slot = index_at(s.quenches, row + packet.hop - 1).value
    message.hop = slot + 1
    travel(s, index_at(s.routes, row + slot).value, index, s.now, 0.0)


@compiled
def tell_of_drop(s, flow, packet):
    """Tell the source of a packet that is about to be dropped, if its flow hears quenches."""
    group = group_at(s.groups, flow.group)
    if group.quenched == 1 and packet.flags & MARKABLE:
        quench(s, flow, group, packet, 0)


@compiled
def _choose(s, port, packet, flow, group, below):
    """Decide whether this packet carries a signal; CHOSEN if it must be dropped for it.

    Packets are marked while the long-run probability is less than `below`.
    """
    mark = number_at(port.block, Q_MARK).value
    chance = number_at(port.block, Q_CHANCE).value
    mapped = group.marking != 0
    if mapped:
        number_at(group.marking_block, M_PROBABILITY).value = mark
        call(group.marking, group.marking_block)
        chance = number_at(group.marking_block, M_PROBABILITY).value
    if chance != chance:
        s.status = NOT_A_NUMBER
    if not chance > 0 or (chance < 1 and draw(port) > chance):
        return KEEP
    if not mapped:
        port.gap = 0
        port.gap_bytes = 0
    if packet.flags & MARKABLE == 0 or mark >= below:
        return CHOSEN
    if packet.flags & MARKED == 0:
        packet.flags |= MARKED
        port.marks += 1
        flow.marked += 1
        if s.trace != 0:
            note_at_port(s, MARK, port, packet)
        if group.quenched == 1:
            quench(s, flow, group, packet, MARKED)
    return KEEP


@inlined
def judge(s, port, packet, queued, full):
    """Fate of an arriving packet under the port's law."""
    flow = flow_at(s.flows, packet.flow)
    group = group_at(s.groups, flow.group)
    if port.averages == 1 and port.busy == 0 and port.count == 0:
        _pass_idle_time(s, port)
    if group.marking == 0 and group.moment == ENTRY:
        port.gap += 1
        port.gap_bytes += packet.size
    queue = queued / port.unit if port.by_bytes == 1 else queued
    if port.counts_system == 1:
        queue += port.busy + 1
    tell(s, port, packet.size, queue)
    port.seen_at = s.now
    call(port.arrive, port.block)
    if port.loads == 1:
        stamp(port, packet)
    mark = number_at(port.block, Q_MARK).value
    drop = number_at(port.block, Q_DROP).value
    fate = KEEP
    if (mark > 0 or drop > 0) and (port.averages == 0 or queued >= group.choice_waiting):
        if drop > 0 and (drop >= 1 or draw(port) < drop):
            fate = FORCED
        elif port.averages == 1 and group.choice_arms == 1 and port.armed == 0:
            port.armed = 1
            port.gap = 1
            port.gap_bytes = packet.size
        elif group.moment == ENTRY:
            fate = _choose(s, port, packet, flow, group, 0.0 if full else group.mark_below)
    else:
        port.armed = 0
    if full:
        fate = FORCED
    if fate == FORCED:
        port.gap = 0
        port.gap_bytes = 0
    return fate


@compiled
def choose_late(s, port, packet, flow, group, queue):
    """Decide about a packet that cannot be dropped any more."""
    if group.marking == 0:
        port.gap += 1
        port.gap_bytes += packet.size
    tell(s, port, packet.size, queue)
    call(port.say, port.block)
    unarmed = port.averages == 1 and port.armed == 0 and group.choice_arms == 1
    if unarmed and number_at(port.block, Q_DROP).value < 1:
        return
    _choose(s, port, packet, flow, group, inf)


@part(records="port packet flow group")
def mark_front(s, port, packet, flow, group):
    """Decide as a packet leaves the queue, or the transmitter."""
    queue = waiting(port)
    if port.counts_system == 1:
        queue += 1
    choose_late(s, port, packet, flow, group, queue)


@compiled
def mark_leaving(s, port, packet, moment):
    """Mark a packet now, DEPARTURE from the queue or TRANSMITTED, if its flow asks for it."""
    flow = flow_at(s.flows, packet.flow)
    group = group_at(s.groups, flow.group)
    if group.moment == moment and packet.flags & MARKABLE:
        mark_front(s, port, packet, flow, group)
