"""Ports: a queue law in front of one transmitter, and its accounts."""

from fluidcc.packets.heap import schedule
from fluidcc.packets.pointer import compiled
from fluidcc.packets.queues import append, release, take
from fluidcc.packets.records import NEVER, entity_at, flow_at, packet_at, port_at
from fluidcc.packets.signals import FORCED, KEEP, judge, mark_front
from fluidcc.packets.ticks import catch_up


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
def _serve(s, entity, port):
    """Start the next transmission, or idle."""
    if port.count == 0:
        port.busy = 0
        port.idle_since = s.now
        schedule(s, entity, NEVER, s.now)
        if port.due == 1:
            catch_up(s, port)
        return
    index = take(s, port)
    packet = packet_at(s.packets, index)
    port.bytes -= packet.size
    port.busy = 1
    port.serving = index
    if port.say != 0:
        mark_front(s, port, packet)
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
    if port.due == 1:
        catch_up(s, port)
    if port.arrive != 0:
        fate = judge(s, port, packet, queued, full)
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
