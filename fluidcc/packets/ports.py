"""Ports: a queue law in front of one transmitter, and its accounts."""

from fluidcc.packets.heap import schedule
from fluidcc.packets.pointer import call, compiled
from fluidcc.packets.queues import allocate, append, release, take, travel
from fluidcc.packets.records import (
    M_PROBABILITY,
    MARKABLE,
    MARKED,
    NEVER,
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
    entity_at,
    flow_at,
    group_at,
    index_at,
    number_at,
    packet_at,
    port_at,
)
from fluidcc.packets.streams import draw

KEEP, CHOSEN, FORCED = 0, 1, 2


@compiled
def account(s, port):
    """Bring the integrals of the queue up to now; call before it changes."""
    span = s.now - port.changed
    count = float(port.count)
    port.area += span * count
    port.squares += span * count * count
    port.bytes_area += span * port.bytes
    if port.busy == 0:
        port.idle += span
    port.changed = s.now


@compiled
def _tell(s, port, size, queue):
    """Write what an arrival or departure tells into the law's block."""
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
    """Count the packets that the idle time had room for; they found an empty queue."""
    count = int((s.now - port.idle_since) * port.capacity)
    if count > 0:
        _tell(s, port, port.unit, 0.0)
        number_at(port.block, Q_COUNT).value = float(count)
        call(port.update, port.block)
        port.seen_at = s.now


@compiled
def _quench(s, flow, packet):
    """Tell the source by a packet of the router's own."""
    index = allocate(s)
    if index < 0:
        return
    message = packet_at(s.packets, index)
    message.flow = packet.flow
    message.sequence = packet.sequence
    flow.quenches += 1
    travel(s, index_at(s.quenches, packet.flow * s.hops + packet.hop - 1).value, index, s.now, 0.0)


@compiled
def _choose(s, port, packet, flow, group):
    """Decide whether this packet carries a signal; CHOSEN if it must be dropped for it."""
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
    if packet.flags & MARKABLE == 0 or mark >= group.mark_below:
        return CHOSEN
    if packet.flags & MARKED == 0:
        packet.flags |= MARKED
        port.marks += 1
        flow.marked += 1
        if group.quenched == 1:
            _quench(s, flow, packet)
    return KEEP


@compiled
def _judge(s, port, packet, queued, full):
    """Fate of an arriving packet under the port's law."""
    flow = flow_at(s.flows, packet.flow)
    group = group_at(s.groups, flow.group)
    if port.averages == 1 and port.busy == 0:
        _pass_idle_time(s, port)
    counted = group.marking == 0 and group.front == 0
    if counted:
        port.gap += 1
        port.gap_bytes += packet.size
    queue = queued / port.unit if port.by_bytes == 1 else queued
    if port.counts_system == 1:
        queue += port.busy + 1
    _tell(s, port, packet.size, queue)
    port.seen_at = s.now
    call(port.arrive, port.block)
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
        elif group.front == 0:
            fate = _choose(s, port, packet, flow, group)
    else:
        port.armed = 0
    if full:
        fate = FORCED
    if fate == FORCED:
        port.gap = 0
        port.gap_bytes = 0
    return fate


@compiled
def _mark_front(s, port, packet):
    """Decide as a packet leaves the queue, for flows that ask for it."""
    flow = flow_at(s.flows, packet.flow)
    group = group_at(s.groups, flow.group)
    if group.front == 0 or packet.flags & MARKABLE == 0:
        return
    if port.averages == 1 and port.armed == 0 and group.choice_arms == 1:
        return
    if group.marking == 0:
        port.gap += 1
        port.gap_bytes += packet.size
    queue = port.bytes / port.unit if port.by_bytes == 1 else float(port.count)
    if port.counts_system == 1:
        queue += 1
    _tell(s, port, packet.size, queue)
    call(port.say, port.block)
    _choose(s, port, packet, flow, group)


@compiled
def _serve(s, entity, port):
    """Start the next transmission, or idle."""
    if port.count == 0:
        port.busy = 0
        port.idle_since = s.now
        schedule(s, entity, NEVER, s.now)
        return
    index = take(s, port)
    packet = packet_at(s.packets, index)
    port.bytes -= packet.size
    port.busy = 1
    port.serving = index
    if port.say != 0:
        _mark_front(s, port, packet)
    port.started = s.now
    schedule(s, entity, s.now + packet.size / port.rate, s.now)


@compiled
def arrive(s, entity, index):
    """Take a packet into the queue, or drop it."""
    port = port_at(s.ports, entity_at(s.entities, entity).index)
    packet = packet_at(s.packets, index)
    account(s, port)
    port.arrivals += 1
    queued = float(port.bytes) if port.by_bytes == 1 else float(port.count)
    full = queued >= port.limit
    fate = FORCED if full else KEEP
    if port.arrive != 0:
        fate = _judge(s, port, packet, queued, full)
    if fate != KEEP:
        port.drops += 1
        flow_at(s.flows, packet.flow).lost += 1
        release(s, index)
        return
    append(s, port, index)
    port.bytes += packet.size
    if port.busy == 0:
        _serve(s, entity, port)
    port.largest = max(port.largest, port.count)
    port.largest_system = max(port.largest_system, port.count + 1)


@compiled
def depart(s, entity):
    """End a transmission: the packet, when it began, and how long it took."""
    port = port_at(s.ports, entity_at(s.entities, entity).index)
    account(s, port)
    index = port.serving
    size = packet_at(s.packets, index).size
    start = port.started
    port.departures += 1
    _serve(s, entity, port)
    return index, start, size / port.rate
