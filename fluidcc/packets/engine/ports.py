"""Ports: a queue law in front of one transmitter, and its accounts."""

from fluidcc.packets.engine.calendar import schedule
from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.pointer import compiled, inlined
from fluidcc.packets.engine.queues import append, release, take
from fluidcc.packets.engine.records import (
    BESIDE,
    DEPARTURE,
    DROP,
    ENTER,
    LEAVE,
    NEVER,
    REPLY,
    TRANSMITTED,
    class_at,
    entity_at,
    flow_at,
    packet_at,
    port_at,
)
from fluidcc.packets.engine.scfq import tag_beside, tag_own, take_beside, take_own, turn_of_beside
from fluidcc.packets.engine.signals import FORCED, KEEP, judge, mark_leaving, tell_of_drop
from fluidcc.packets.engine.ticks import catch_up
from fluidcc.packets.engine.traces import note_at_port


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
        port.waiting_idle += span * count  # while the class beside is served
    if port.beside != 0:
        beside = class_at(port.beside, 0)
        if beside.busy == 1:
            beside.used += span
    port.changed = s.now


@compiled
def _rest(s, port):
    """Note that the port's own queue has nothing to send."""
    if port.busy == 1:
        port.busy = 0
        port.idle_since = s.now
        if port.due == 1:
            catch_up(s, port)


@compiled
def _serve_beside(s, entity, port, beside):
    """Start a transmission of the class beside; `busy` of the port is that of its own class."""
    index = take_beside(s, beside)
    size = packet_at(s.packets, index).size
    beside.bytes -= size
    beside.busy = 1
    port.serving = index
    port.started = s.now
    schedule(s, entity, s.now + size / port.rate, s.now)
    if port.count == 0:
        _rest(s, port)
    port.busy = 0


@inlined
def _transmit(s, entity, port, index):
    """Start a transmission from the port's own queue."""
    packet = packet_at(s.packets, index)
    port.bytes -= packet.size
    port.busy = 1
    port.serving = index
    if port.say != 0:
        mark_leaving(s, port, packet, DEPARTURE)
    port.started = s.now
    schedule(s, entity, s.now + packet.size / port.rate, s.now)


@part(records="port")
def serve_fairly(s, entity, port):
    """Start the next transmission of two classes, or idle."""
    beside = class_at(port.beside, 0)
    if turn_of_beside(port, beside) == 1:
        _serve_beside(s, entity, port, beside)
    elif port.count > 0:
        _transmit(s, entity, port, take_own(s, port, beside))
    else:
        beside.virtual = 0.0
        schedule(s, entity, NEVER, s.now)
        _rest(s, port)


@compiled
def _serve(s, entity, port):
    """Start the next transmission, or idle."""
    if port.beside != 0:
        serve_fairly(s, entity, port)
    elif port.count > 0:
        _transmit(s, entity, port, take(s, port))
    else:
        schedule(s, entity, NEVER, s.now)
        _rest(s, port)


@part(records="port")
def arrive_beside(s, entity, port, index):
    """Take a packet of the class beside into its queue, or drop it."""
    beside = class_at(port.beside, 0)
    packet = packet_at(s.packets, index)
    beside.arrivals += 1
    if beside.bytes + packet.size > beside.limit:
        beside.drops += 1
        if s.trace != 0:
            note_at_port(s, DROP, port, packet)
        flow_at(s.flows, packet.flow).lost += 1
        release(s, index)
        return
    if s.trace != 0:
        note_at_port(s, ENTER, port, packet)
    tag_beside(beside, packet.size)
    append(s, beside, index)
    beside.bytes += packet.size
    if port.busy == 0 and beside.busy == 0:
        _serve(s, entity, port)


@compiled
def arrive(s, entity, index):
    """Take a packet into the queue, or drop it."""
    port = port_at(s.ports, entity_at(s.entities, entity).index)
    packet = packet_at(s.packets, index)
    account(s, port)
    beside = port.beside
    if beside != 0 and packet.flags & BESIDE:
        arrive_beside(s, entity, port, index)
        return
    port.arrivals += 1
    queued = float(port.bytes) if port.by_bytes == 1 else float(port.count)
    full = queued >= port.limit
    fate = FORCED if full else KEEP
    if port.due == 1:
        catch_up(s, port)
    if port.arrive != 0:
        fate = judge(s, port, packet, queued, full)
    if fate != KEEP:
        port.drops += 1
        if s.trace != 0:
            note_at_port(s, DROP, port, packet)
        flow = flow_at(s.flows, packet.flow)
        if packet.flags & REPLY:
            flow.replies_lost += 1
        else:
            flow.lost += 1
            if port.arrive != 0:
                tell_of_drop(s, flow, packet)
        release(s, index)
        return
    if s.trace != 0:
        note_at_port(s, ENTER, port, packet)
    if beside != 0:
        tag_own(port, class_at(beside, 0), packet.size)
    append(s, port, index)
    port.bytes += packet.size
    if port.busy == 0 and (beside == 0 or class_at(beside, 0).busy == 0):
        _serve(s, entity, port)
    port.largest = max(port.largest, port.count)
    port.largest_bytes = max(port.largest_bytes, port.bytes)
    port.largest_system = max(port.largest_system, port.count + port.busy)


@inlined
def depart(s, entity):
    """End a transmission: the packet, when it began, and how long it took."""
    port = port_at(s.ports, entity_at(s.entities, entity).index)
    account(s, port)
    index = port.serving
    packet = packet_at(s.packets, index)
    size = packet.size
    if port.marks_sent == 1 and port.busy == 1:
        mark_leaving(s, port, packet, TRANSMITTED)
    if s.trace != 0:
        note_at_port(s, LEAVE, port, packet)
    start = port.started
    if port.busy == 1:
        port.departures += 1
    else:
        beside = class_at(port.beside, 0)
        beside.departures += 1
        beside.busy = 0
    _serve(s, entity, port)
    return index, start, size / port.rate
