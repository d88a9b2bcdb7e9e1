"""Signals of queue laws: which packets are marked, dropped or answered by a source quench.

Load factors: a BMCC router compares its load factor with a hash of the packet, and marks (01) if it
is larger. Here the packet carries the number, the largest of its route, and the receiver compares
(`decode_load` in receivers.py), which tells the sender the same. Qazi et al. (2010), section 3.2.
"""

from math import inf

from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.pointer import call, compiled, inlined
from fluidcc.packets.engine.queues import allocate, send_on_wire, take_from_wire
from fluidcc.packets.engine.streams import draw
from fluidcc.packets.engine.traces import trace_at_port

KEEP, CHOSEN, FORCED = 0, 1, 2


@compiled
def waiting(port):
    """Packets that wait, in the unit of the law."""
    return port.bytes / port.unit if port.by_bytes == 1 else float(port.count)


@inlined
def write_arrival(s, port, size, queue):
    """Write an arrival, departure or tick into the law's block."""
    block = port.block
    r.number_at(block, r.Q_ELAPSED).value = s.now - port.seen_at
    r.number_at(block, r.Q_QUEUE).value = queue
    r.number_at(block, r.Q_CAPACITY).value = port.capacity
    r.number_at(block, r.Q_SIZE).value = size / port.unit
    gap = port.gap
    if port.by_bytes == 1:
        gap = port.gap_bytes // int(port.unit)
    r.number_at(block, r.Q_GAP).value = float(gap)


@compiled
def _decay_average(s, port):
    """Let the law's average decay as if small packets had found an empty queue while it was idle.

    ns-2.35 and Floyd and Jacobson (1993): as many as the link could have sent in that time.
    """
    count = int((s.now - port.idle_since) * port.capacity)
    if count > 0:
        write_arrival(s, port, 0.0, 0.0)
        r.number_at(port.block, r.Q_COUNT).value = float(count)
        call(port.update, port.block)
        port.seen_at = s.now


@part(records="flow group packet")
def send_quench(s, flow, group, packet, flags):
    """Send a source quench (RFC 792); `flags` is CE for a marked packet, 0 for a dropped one."""
    index = allocate(s)
    if index < 0:
        return
    message = r.packet_at(s.packets, index)
    message.flow = packet.flow
    message.sequence = packet.sequence
    message.connection = packet.connection
    message.flags = r.ACK | flags
    message.size = group.quench_size
    flow.source_quenches += 1
    row = packet.flow * s.hops
    slot = r.index_at(s.quenches, row + packet.hop - 1).value
    message.hop = slot + 1
    send_on_wire(s, r.index_at(s.routes, row + slot).value, index, s.now, 0.0)


@compiled
def quench_drop(s, flow, packet):
    """Send a source quench for a packet that is about to be dropped, if its flow reacts to them."""
    group = r.group_at(s.groups, flow.group)
    if group.source_quench == 1 and packet.flags & r.ECT:
        send_quench(s, flow, group, packet, 0)


@compiled
def _choose(s, port, packet, flow, group, below):
    """Decide by chance whether the packet is marked; CHOSEN if it must be dropped instead.

    Packets are marked while the long-run probability is less than `below`: `mark_p_` of ns-2.35.
    """
    mark = r.number_at(port.block, r.Q_MARK).value
    chance = r.number_at(port.block, r.Q_CHANCE).value
    mapped = group.marking != 0
    if mapped:
        r.number_at(group.marking_block, r.M_PROBABILITY).value = mark
        call(group.marking, group.marking_block)
        chance = r.number_at(group.marking_block, r.M_PROBABILITY).value
    if chance != chance:
        s.status = r.NOT_A_NUMBER
    if not chance > 0 or (chance < 1 and draw(port) > chance):
        return KEEP
    if not mapped:
        port.gap = 0
        port.gap_bytes = 0
    if packet.flags & r.ECT == 0 or mark >= below:
        return CHOSEN
    if packet.flags & r.CE == 0:
        packet.flags |= r.CE
        port.marks += 1
        flow.marked += 1
        if s.trace != 0:
            trace_at_port(s, r.MARK, port, packet)
        if group.source_quench == 1:
            send_quench(s, flow, group, packet, r.CE)
    return KEEP


@inlined
def decide(s, port, packet, queued, full):
    """Decide the fate of an arriving packet by the port's law."""
    flow = r.flow_at(s.flows, packet.flow)
    group = r.group_at(s.groups, flow.group)
    if port.averages == 1 and port.busy == 0 and port.count == 0:
        _decay_average(s, port)
    if group.marking == 0 and group.moment == r.ENTRY:
        port.gap += 1
        port.gap_bytes += packet.size
    queue = queued / port.unit if port.by_bytes == 1 else queued
    if port.counts_system == 1:
        queue += port.busy + 1
    write_arrival(s, port, packet.size, queue)
    port.seen_at = s.now
    call(port.arrive, port.block)
    if port.loads == 1 and packet.flags & r.ACK == 0:
        packet.load = max(packet.load, r.number_at(port.block, r.Q_LOAD).value)
    mark = r.number_at(port.block, r.Q_MARK).value
    drop = r.number_at(port.block, r.Q_DROP).value
    fate = KEEP
    if (mark > 0 or drop > 0) and (port.averages == 0 or queued >= group.choice_waiting):
        if drop > 0 and (drop >= 1 or draw(port) < drop):
            fate = FORCED
        elif port.averages == 1 and group.choice_arms == 1 and port.armed == 0:
            port.armed = 1
            port.gap = 1
            port.gap_bytes = packet.size
        elif group.moment == r.ENTRY:
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
def _decide_late(s, port, packet, flow, group, queue):
    """Decide whether to mark a packet that cannot be dropped any more."""
    if group.marking == 0:
        port.gap += 1
        port.gap_bytes += packet.size
    write_arrival(s, port, packet.size, queue)
    call(port.signal, port.block)
    unarmed = port.averages == 1 and port.armed == 0 and group.choice_arms == 1
    if unarmed and r.number_at(port.block, r.Q_DROP).value < 1:
        return
    _choose(s, port, packet, flow, group, inf)


@part(records="port packet flow group")
def mark_departure(s, port, packet, flow, group):
    """Decide whether to mark a packet as it leaves the queue, or the transmitter."""
    queue = waiting(port)
    if port.counts_system == 1:
        queue += 1
    _decide_late(s, port, packet, flow, group, queue)


@compiled
def mark_leaving(s, port, packet, moment):
    """Decide about a packet at DEPARTURE from the queue, or TRANSMITTED, if its flow does so."""
    flow = r.flow_at(s.flows, packet.flow)
    group = r.group_at(s.groups, flow.group)
    if group.moment == moment and packet.flags & r.ECT:
        mark_departure(s, port, packet, flow, group)


@part()
def rewrite_ack(s, entity):
    """Let a router rewrite the advertised window of an ACK, by its queue as it is now."""
    index = take_from_wire(s, entity)
    wire = r.wire_at(s.wires, r.entity_at(s.entities, entity).index)
    port, packet = r.port_at(s.ports, wire.port), r.packet_at(s.packets, index)
    flow = r.flow_at(s.flows, packet.flow)
    queue = waiting(port)
    if port.counts_system == 1:
        queue += port.busy
    _decide_late(s, port, packet, flow, r.group_at(s.groups, flow.group), queue)
    send_on_wire(s, wire.onward, index, s.now, 0.0)
