"""Ports: a queue law in front of one transmitter, its signals, its timer and its accounts.

Load factors: a BMCC router compares its load factor with a hash of the packet, and marks (01) if it
is larger. Here the packet carries the number, the largest of its route, and the receiver compares
(`decode_load` in endpoints.py), which tells the sender the same. Qazi et al. (2010), section 3.2.

Several ports may share a transmitter by self-clocked fair queueing: Golestani (1994), A
self-clocked fair queueing scheme for broadband applications. A packet of `size` bytes at a port of
weight w gets the tag max(tag of the one before it, virtual time) + size/w; the packet with the
smallest tag is served next, and its tag is the virtual time while it is served. Within a port tags
grow, so that only the head needs one, set when a packet becomes the head. At equal tags the port
earlier in the chain goes first.

Time-shifted FIFO is the same with other tags, where ports have no weight: the arrival of the head,
and the shift of its port. RFC 9332, section 4.2.2.
"""

from math import inf

from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.calendar import (
    allocate,
    dequeue,
    enqueue,
    next_time,
    release,
    schedule,
    send_on_wire,
    take_from_wire,
)
from fluidcc.packets.engine.delays import count_delay
from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.pointer import call, compiled, inlined
from fluidcc.packets.engine.streams import draw, hashed
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
def _is_mapped(port, group):
    """Whether the queue's probability is mapped for this group; coupled ones map that beside."""
    return group.marking != 0 and port.coupled < 0


@compiled
def _map(group, mark):
    """The marking probability of a group at that of the queue; the same without a law for it."""
    if group.marking == 0:
        return mark
    r.number_at(group.marking_block, r.M_PROBABILITY).value = mark
    call(group.marking, group.marking_block)
    return r.number_at(group.marking_block, r.M_PROBABILITY).value


@compiled
def _choose(s, port, packet, flow, group, below):
    """Decide by chance whether the packet is marked; CHOSEN if it must be dropped instead.

    Packets are marked while the long-run probability is less than `below`: `mark_p_` of ns-2.35.
    """
    mark = r.number_at(port.block, r.Q_MARK).value
    chance = r.number_at(port.block, r.Q_CHANCE).value
    mapped = _is_mapped(port, group)
    if mapped:
        chance = _map(group, mark)
    return _draw(s, port, packet, flow, group, chance, mapped, mark < below, 1)


@compiled
def _draw(s, port, packet, flow, group, chance, mapped, marks, own):
    """Choose a packet with probability `chance`, and mark it if it `marks`: by the port's `own`
    law, which hears of it, or by another.
    """
    if chance != chance:
        s.status = r.NOT_A_NUMBER
    if not chance > 0 or (chance < 1 and draw(port) > chance):
        return KEEP
    if not mapped:
        port.gap = 0
        port.gap_bytes = 0
    if own == 1 and port.signalled != 0:
        call(port.signalled, port.block)
    if packet.flags & r.ECT == 0 or not marks:
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


@part(records="port")
def write_numbers(s, port, index):
    """Write the numbers of a link's signal into a packet, if they are larger than those there."""
    for k in range(r.NUMBERS):
        number = r.number_at(s.numbers, r.ROOM * index + k)
        number.value = max(number.value, r.number_at(port.block, r.Q_WRITTEN + k).value)


@part(records="port packet group")
def read_spacing(s, port, index, packet, group):
    """Read the spacing that the sender has written into a packet; 0 if it writes none."""
    spacing = 0.0
    if group.written > 0 and packet.flags & r.ACK == 0:
        spacing = r.number_at(s.numbers, r.ROOM * index + r.SPACING).value
    r.number_at(port.block, r.Q_SPACING).value = spacing


@inlined
def decide(s, port, index, packet, queued, full):
    """Decide the fate of an arriving packet by the port's law."""
    flow = r.flow_at(s.flows, packet.flow)
    group = r.group_at(s.groups, flow.group)
    if port.averages == 1 and port.busy == 0 and port.count == 0:
        _decay_average(s, port)
    if group.moment == r.ENTRY and not _is_mapped(port, group):
        port.gap += 1
        port.gap_bytes += packet.size
    queue = queued / port.unit if port.by_bytes == 1 else queued
    if port.counts_system == 1:
        queue += port.busy + 1
    write_arrival(s, port, packet.size, queue)
    if port.reads == 1:
        read_spacing(s, port, index, packet, group)
    port.seen_at = s.now
    call(port.arrive, port.block)
    if port.written == 1 and packet.flags & r.ACK == 0:
        write_numbers(s, port, index)
    mark = r.number_at(port.block, r.Q_MARK).value
    drop = r.number_at(port.block, r.Q_DROP).value
    fate = KEEP
    if (mark > 0 or drop > 0) and (port.averages == 0 or queued >= group.choice_waiting):
        if drop > 0 and (drop >= 1 or draw(port) < drop):
            fate = FORCED
            if port.signalled != 0:
                call(port.signalled, port.block)
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
    if not _is_mapped(port, group):
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


@part(records="port packet flow group")
def mark_coupled(s, port, packet, flow, group):
    """Decide whether to mark a packet by the queue beside its own. RFC 9332, section 2.1."""
    other = r.port_at(s.ports, port.coupled)
    write_arrival(s, other, packet.size, waiting(other))
    call(other.signal, other.block)
    chance = _map(group, r.number_at(other.block, r.Q_MARK).value)
    _draw(s, port, packet, flow, group, chance, True, True, 0)


@compiled
def mark_at(s, port, packet, moment):
    """Decide about a packet at a moment, if its flow does so: by its own queue as it leaves that
    (on entry, `decide` has done so), and by the queue beside.
    """
    flow = r.flow_at(s.flows, packet.flow)
    group = r.group_at(s.groups, flow.group)
    if group.moment == moment and packet.flags & r.ECT:
        if port.signal != 0 and moment != r.ENTRY:
            mark_departure(s, port, packet, flow, group)
        if port.coupled >= 0:
            mark_coupled(s, port, packet, flow, group)


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


@inlined
def _waited(s, port):
    """Time that the head of a queue has waited [s]; 0 if there is none."""
    return s.now - r.packet_at(s.packets, port.head).arrives if port.count > 0 else 0.0


@compiled
def _perform_tick(s, port):
    """Perform a tick and set the timer; 0 if the law puts off a tick that would change nothing."""
    queue = waiting(port)
    if port.counts_system == 1:
        queue += port.busy
    write_arrival(s, port, port.unit, queue)
    sojourn = queue / port.capacity
    if port.transmitter != 0:  # its rate is not its own: that of the head so far
        sojourn = _waited(s, port)
        if port.ahead >= 0:  # the longer of both: RFC 9332, appendix A.2
            sojourn = max(sojourn, _waited(s, r.port_at(s.ports, port.ahead)))
    r.number_at(port.block, r.Q_SOJOURN).value = sojourn
    call(port.tick, port.block)
    changed = r.number_at(port.block, r.Q_CHANGED).value
    if changed != changed:
        s.status = r.NOT_A_NUMBER
    if changed == 0 and port.waits == 1:
        return 0
    span = port.period
    if port.spread > 0:
        span += port.spread * draw(port)
    schedule(s, port.timer, s.now + span, s.now)
    return 1


@part()
def tick_queue(s, entity):
    """Handle the timer of a queue law."""
    port = r.port_at(s.ports, r.entity_at(s.entities, entity).index)
    if _perform_tick(s, port) == 0:
        port.due = 1
        schedule(s, entity, r.NEVER, s.now)


@part(records="port")
def catch_up(s, port):
    """Perform a tick that is due, if it does something now."""
    if _perform_tick(s, port) == 1:
        port.due = 0


@inlined
def account(s, port):
    """Bring the integrals of the queue up to now; call before it changes."""
    span = s.now - port.changed
    count = float(port.count)
    port.area += span * count
    port.squares += span * count * count
    bytes_held = float(port.bytes)
    port.bytes_area += span * bytes_held
    port.bytes_squares += span * bytes_held * bytes_held
    if port.busy == 0:
        port.idle += span
        port.waiting_idle += span * count  # while another port sends
    port.changed = s.now


@compiled
def _become_idle(s, port):
    """Note that the port's own queue is empty and its transmission over."""
    if port.busy == 1:
        port.busy = 0
        port.idle_since = s.now
        if port.due == 1:
            catch_up(s, port)


@inlined
def _set_tag(port, packet, before):
    """Set the tag of a packet that becomes the head of a queue, at or after that `before` it."""
    if port.weight > 0:
        port.tag = before + packet.size / port.weight
    else:
        port.tag = packet.arrives + port.shift


@compiled
def _take(s, port):
    """Take the head of a queue, which holds a packet, and tag the next one."""
    index = dequeue(s, port)
    if port.transmitter != 0 and port.count > 0:
        _set_tag(port, r.packet_at(s.packets, port.head), port.tag)
    return index


@compiled
def _judge_head(s, port, packet):
    """Decide the fate of the packet at the head of the queue, which is about to leave."""
    group = r.group_at(s.groups, r.flow_at(s.flows, packet.flow).group)
    queue = float(port.count - 1)
    if port.by_bytes == 1:
        queue = (port.bytes - packet.size) / port.unit
    if port.counts_system == 1:
        queue += 1
    port.gap += 1
    port.gap_bytes += packet.size
    write_arrival(s, port, packet.size, queue)
    r.number_at(port.block, r.Q_SOJOURN).value = s.now - packet.arrives
    if port.reads == 1:
        read_spacing(s, port, port.head, packet, group)
    port.seen_at = s.now
    call(port.depart, port.block)
    if port.written == 1 and packet.flags & r.ACK == 0:
        write_numbers(s, port, port.head)
    drop = r.number_at(port.block, r.Q_DROP).value
    if drop > 0 and (drop >= 1 or draw(port) < drop):
        if port.signalled != 0:
            call(port.signalled, port.block)
        return FORCED
    if r.number_at(port.block, r.Q_MARK).value > 0:
        flow = r.flow_at(s.flows, packet.flow)
        return _choose(s, port, packet, flow, group, inf)
    return KEEP


@part(records="port")
def judge_heads(s, port):
    """Decide about the packet that the port sends next, which is `judged` if it stays. If it is
    dropped, the one behind it is looked at, at once, unless another port may be next.
    """
    port.judged = 0
    while port.count > 0 and port.judged == 0:
        packet = r.packet_at(s.packets, port.head)
        if _judge_head(s, port, packet) == KEEP:
            port.judged = 1
            return
        index = _take(s, port)
        port.bytes -= packet.size
        port.drops += 1
        flow = r.flow_at(s.flows, packet.flow)
        _lose(s, port, flow, packet)
        if not packet.flags & r.ACK:
            quench_drop(s, flow, packet)
        release(s, index)
        if port.transmitter != 0:
            return


@inlined
def _transmit(s, entity, port, index):
    """Start a transmission from the port's own queue."""
    packet = r.packet_at(s.packets, index)
    port.bytes -= packet.size
    port.busy = 1
    port.serving = index
    if port.signal != 0 or port.coupled >= 0:
        mark_at(s, port, packet, r.DEPARTURE)
    port.started = s.now
    schedule(s, entity, s.now + packet.size / port.rate, s.now)


@compiled
def _choose_port(s, shared):
    """Number of the port that a transmitter serves next; -1 if none has a packet."""
    chosen, least = -1, inf
    k = shared.first
    while k >= 0:
        port = r.port_at(s.ports, k)
        if port.count > 0 and port.tag < least:
            chosen, least = k, port.tag
        k = port.sibling
    return chosen


@part(records="port")
def serve_fairly(s, port):
    """Start the next transmission of several ports, after `port` has ended one or got a packet."""
    shared = r.transmitter_at(port.transmitter, 0)
    chosen = _choose_port(s, shared)
    while chosen >= 0 and r.port_at(s.ports, chosen).depart != 0:
        other = r.port_at(s.ports, chosen)
        account(s, other)
        judge_heads(s, other)
        if other.judged == 1:
            break
        chosen = _choose_port(s, shared)
    if port.busy == 1:
        schedule(s, port.entity, r.NEVER, s.now)
        if port.count == 0:
            _become_idle(s, port)
        port.busy = 0
    shared.busy = 0
    if chosen < 0:
        shared.virtual = 0.0
        return
    shared.busy = 1
    other = r.port_at(s.ports, chosen)
    account(s, other)
    shared.virtual = other.tag
    _transmit(s, other.entity, other, _take(s, other))


@compiled
def _serve(s, entity, port):
    """Start the next transmission, or idle."""
    if port.transmitter != 0:
        serve_fairly(s, port)
        return
    if port.depart != 0:
        judge_heads(s, port)
    if port.count > 0:
        _transmit(s, entity, port, dequeue(s, port))
    else:
        schedule(s, entity, r.NEVER, s.now)
        _become_idle(s, port)


@inlined
def _is_free(port):
    """Whether a packet that arrives at a port can be sent at once."""
    shared = port.transmitter
    return port.busy == 0 and (shared == 0 or r.transmitter_at(shared, 0).busy == 0)


@inlined
def _lose(s, port, flow, packet):
    """Account for a packet of a flow that a port loses."""
    if s.trace != 0:
        trace_at_port(s, r.DROP, port, packet)
    if packet.flags & r.ACK:
        flow.acks_lost += 1
    else:
        flow.lost += 1


@compiled
def _lose_at_random(s, port, index):
    """Draw whether a packet is lost as it enters the link; 1, and it is gone, if so."""
    port.loss_draws += 1
    if hashed(port.loss_key, port.loss_draws) >= port.random_loss:
        return 0
    packet = r.packet_at(s.packets, index)
    port.arrivals += 1
    port.drops += 1
    _lose(s, port, r.flow_at(s.flows, packet.flow), packet)
    release(s, index)
    return 1


@compiled
def arrive(s, entity, index):
    """Take a packet into the queue, or drop it."""
    port = r.port_at(s.ports, r.entity_at(s.entities, entity).index)
    packet = r.packet_at(s.packets, index)
    account(s, port)
    if s.arrivals != 0 and port.link >= 0:
        group = r.flow_at(s.flows, packet.flow).group
        total = r.total_at(s.arrivals, port.link * s.group_count + group)
        total.value = total.value + 1
    if port.random_loss > 0 and _lose_at_random(s, port, index) == 1:
        return
    port.arrivals += 1
    queued = float(port.bytes) if port.by_bytes == 1 else float(port.count)
    full = queued >= port.limit
    fate = FORCED if full else KEEP
    if port.due == 1:
        catch_up(s, port)
    if port.arrive != 0:
        fate = decide(s, port, index, packet, queued, full)
    if fate != KEEP:
        port.drops += 1
        flow = r.flow_at(s.flows, packet.flow)
        _lose(s, port, flow, packet)
        if (port.arrive != 0 or port.depart != 0) and not packet.flags & r.ACK:
            quench_drop(s, flow, packet)
        release(s, index)
        return
    if port.coupled >= 0:
        mark_at(s, port, packet, r.ENTRY)
    if s.trace != 0:
        trace_at_port(s, r.ENTER, port, packet)
    packet.arrives = s.now
    if port.transmitter != 0 and port.count == 0:
        _set_tag(port, packet, r.transmitter_at(port.transmitter, 0).virtual)
    enqueue(s, port, index)
    port.bytes += packet.size
    if _is_free(port):
        _serve(s, entity, port)
    port.largest = max(port.largest, port.count)
    port.largest_bytes = max(port.largest_bytes, port.bytes)
    port.largest_system = max(port.largest_system, port.count + port.busy)


@part()
def change_link(s, entity):
    """Change the rate or delay of a link, and wait for the next change.

    What is left of a transmission goes on at the new rate. Under a shorter delay no packet arrives
    before those that are on their way.
    """
    own = r.schedule_at(s.schedules, r.entity_at(s.entities, entity).index)
    change = r.change_at(own.changes, own.next)
    if change.rate < r.NEVER:
        number = r.entity_at(s.entities, own.entity).index
        port = r.port_at(s.ports, number)
        if port.transmitter != 0:
            number = r.transmitter_at(port.transmitter, 0).first
        while number >= 0:
            port = r.port_at(s.ports, number)
            end = next_time(s, port.entity)
            if end < r.NEVER:
                end = s.now + (end - s.now) * port.rate / change.rate
                port.started = end - r.packet_at(s.packets, port.serving).size / change.rate
                schedule(s, port.entity, end, s.now)
            port.rate = change.rate
            port.capacity = change.capacity / port.shares
            number = port.sibling
    if change.delay < r.NEVER:
        for k in range(own.wire_count):
            wire = r.wire_at(s.wires, r.index_at(own.wires, k).value)
            wire.delay = change.delay
            wire.rate = r.NEVER  # from now on in order of `free`
            wire.free = r.packet_at(s.packets, wire.tail).arrives if wire.count > 0 else s.now
    own.next += 1
    time = r.change_at(own.changes, own.next).time if own.next < own.count else r.NEVER
    schedule(s, entity, time, s.now)


@inlined
def depart(s, entity):
    """End a transmission: the packet, when it began, and how long it took."""
    port = r.port_at(s.ports, r.entity_at(s.entities, entity).index)
    account(s, port)
    index = port.serving
    packet = r.packet_at(s.packets, index)
    size = packet.size
    if port.marks_transmitted == 1:
        mark_at(s, port, packet, r.TRANSMITTED)
    if s.trace != 0:
        trace_at_port(s, r.LEAVE, port, packet)
    start = port.started
    port.departures += 1
    if port.delays != 0:
        delay = s.now - packet.arrives
        port.delay_sum += delay
        count_delay(port.delays, delay)
    _serve(s, entity, port)
    return index, start, size / port.rate
