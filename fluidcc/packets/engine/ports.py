"""Ports: a queue law in front of one transmitter, its timer and its accounts.

A port may serve a second class of packets by self-clocked fair queueing: Golestani
(1994), A self-clocked fair queueing scheme for broadband applications. A packet of `size` bytes of
a class of weight w gets the tag max(tag of the one before it, virtual time) + size/w; the packet
with the smallest tag is served next, and its tag is the virtual time while it is served. Within a
class tags grow, so that only the head needs one, set when a packet becomes the head. At equal tags
the second class goes first.
"""

from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.calendar import schedule
from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.pointer import call, compiled, inlined
from fluidcc.packets.engine.queues import dequeue, enqueue, release
from fluidcc.packets.engine.signals import (
    FORCED,
    KEEP,
    decide,
    mark_leaving,
    quench_drop,
    waiting,
    write_arrival,
)
from fluidcc.packets.engine.streams import draw
from fluidcc.packets.engine.traces import trace_at_port


@compiled
def _tag_first(port, second, size):
    """Tag a packet that arrives at the port's own queue; call before it is put there."""
    if port.count == 0:
        second.first_tag = second.virtual + size / second.first_weight


@compiled
def _tag_second(second, size):
    """Tag a packet that arrives at the second queue; call before it is put there."""
    if second.count == 0:
        second.tag = second.virtual + size / second.weight


@compiled
def _is_second_next(port, second):
    """Whether the second queue is served next (1), or the port's own, which may be empty (0)."""
    if second.count == 0:
        return 0
    return 1 if port.count == 0 or second.tag <= second.first_tag else 0


@compiled
def _take_first(s, port, second):
    """Take the head of the port's own queue, which holds a packet."""
    index = dequeue(s, port)
    second.virtual = second.first_tag
    if port.count > 0:
        second.first_tag += r.packet_at(s.packets, port.head).size / second.first_weight
    return index


@compiled
def _take_second(s, second):
    """Take the head of the second queue, which holds a packet."""
    index = dequeue(s, second)
    second.virtual = second.tag
    if second.count > 0:
        second.tag += r.packet_at(s.packets, second.head).size / second.weight
    return index


@compiled
def _perform_tick(s, port):
    """Perform a tick and set the timer; 0 if the law puts off a tick that would change nothing."""
    queue = waiting(port)
    if port.counts_system == 1:
        queue += port.busy
    write_arrival(s, port, port.unit, queue)
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
        port.waiting_idle += span * count  # while the second class is served
    if port.second_class != 0:
        second = r.class_at(port.second_class, 0)
        if second.busy == 1:
            second.used += span
    port.changed = s.now


@compiled
def _become_idle(s, port):
    """Note that the port's own queue is empty and its transmission over."""
    if port.busy == 1:
        port.busy = 0
        port.idle_since = s.now
        if port.due == 1:
            catch_up(s, port)


@compiled
def _serve_second(s, entity, port, second):
    """Start a transmission of the second class; `port.busy` stands for the port's own class."""
    index = _take_second(s, second)
    size = r.packet_at(s.packets, index).size
    second.bytes -= size
    second.busy = 1
    port.serving = index
    port.started = s.now
    schedule(s, entity, s.now + size / port.rate, s.now)
    if port.count == 0:
        _become_idle(s, port)
    port.busy = 0


@inlined
def _transmit(s, entity, port, index):
    """Start a transmission from the port's own queue."""
    packet = r.packet_at(s.packets, index)
    port.bytes -= packet.size
    port.busy = 1
    port.serving = index
    if port.signal != 0:
        mark_leaving(s, port, packet, r.DEPARTURE)
    port.started = s.now
    schedule(s, entity, s.now + packet.size / port.rate, s.now)


@part(records="port")
def serve_fairly(s, entity, port):
    """Start the next transmission of two classes, or idle."""
    second = r.class_at(port.second_class, 0)
    if _is_second_next(port, second) == 1:
        _serve_second(s, entity, port, second)
    elif port.count > 0:
        _transmit(s, entity, port, _take_first(s, port, second))
    else:
        second.virtual = 0.0
        schedule(s, entity, r.NEVER, s.now)
        _become_idle(s, port)


@compiled
def _serve(s, entity, port):
    """Start the next transmission, or idle."""
    if port.second_class != 0:
        serve_fairly(s, entity, port)
    elif port.count > 0:
        _transmit(s, entity, port, dequeue(s, port))
    else:
        schedule(s, entity, r.NEVER, s.now)
        _become_idle(s, port)


@part(records="port")
def arrive_second(s, entity, port, index):
    """Take a packet of the second class into its queue, or drop it."""
    second = r.class_at(port.second_class, 0)
    packet = r.packet_at(s.packets, index)
    second.arrivals += 1
    if second.bytes + packet.size > second.limit:
        second.drops += 1
        if s.trace != 0:
            trace_at_port(s, r.DROP, port, packet)
        r.flow_at(s.flows, packet.flow).lost += 1
        release(s, index)
        return
    if s.trace != 0:
        trace_at_port(s, r.ENTER, port, packet)
    _tag_second(second, packet.size)
    enqueue(s, second, index)
    second.bytes += packet.size
    if port.busy == 0 and second.busy == 0:
        _serve(s, entity, port)


@compiled
def arrive(s, entity, index):
    """Take a packet into the queue, or drop it."""
    port = r.port_at(s.ports, r.entity_at(s.entities, entity).index)
    packet = r.packet_at(s.packets, index)
    account(s, port)
    second = port.second_class
    if second != 0 and packet.flags & r.SECOND_CLASS:
        arrive_second(s, entity, port, index)
        return
    port.arrivals += 1
    queued = float(port.bytes) if port.by_bytes == 1 else float(port.count)
    full = queued >= port.limit
    fate = FORCED if full else KEEP
    if port.due == 1:
        catch_up(s, port)
    if port.arrive != 0:
        fate = decide(s, port, packet, queued, full)
    if fate != KEEP:
        port.drops += 1
        if s.trace != 0:
            trace_at_port(s, r.DROP, port, packet)
        flow = r.flow_at(s.flows, packet.flow)
        if packet.flags & r.ACK:
            flow.acks_lost += 1
        else:
            flow.lost += 1
            if port.arrive != 0:
                quench_drop(s, flow, packet)
        release(s, index)
        return
    if s.trace != 0:
        trace_at_port(s, r.ENTER, port, packet)
    if second != 0:
        _tag_first(port, r.class_at(second, 0), packet.size)
    enqueue(s, port, index)
    port.bytes += packet.size
    if port.busy == 0 and (second == 0 or r.class_at(second, 0).busy == 0):
        _serve(s, entity, port)
    port.largest = max(port.largest, port.count)
    port.largest_bytes = max(port.largest_bytes, port.bytes)
    port.largest_system = max(port.largest_system, port.count + port.busy)


@inlined
def depart(s, entity):
    """End a transmission: the packet, when it began, and how long it took."""
    port = r.port_at(s.ports, r.entity_at(s.entities, entity).index)
    account(s, port)
    index = port.serving
    packet = r.packet_at(s.packets, index)
    size = packet.size
    if port.marks_transmitted == 1 and port.busy == 1:
        mark_leaving(s, port, packet, r.TRANSMITTED)
    if s.trace != 0:
        trace_at_port(s, r.LEAVE, port, packet)
    start = port.started
    if port.busy == 1:
        port.departures += 1
    else:
        second = r.class_at(port.second_class, 0)
        second.departures += 1
        second.busy = 0
    _serve(s, entity, port)
    return index, start, size / port.rate
