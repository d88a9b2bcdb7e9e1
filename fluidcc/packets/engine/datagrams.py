"""Packets that nobody acknowledges: sent to one link, gone at its end. Poisson cross traffic."""

from fluidcc.packets.engine.calendar import schedule
from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.pointer import compiled
from fluidcc.packets.engine.ports import arrive
from fluidcc.packets.engine.queues import allocate, release
from fluidcc.packets.engine.records import (
    MARKABLE,
    RECEIVE,
    SEND,
    call_at,
    cross_at,
    entity_at,
    flow_at,
    index_at,
    packet_at,
    voice_at,
)
from fluidcc.packets.engine.streams import exponential
from fluidcc.packets.engine.traces import note

NO_CALL = -1


@compiled
def launch(s, f, size, flags, call, connection):
    """Send a packet of flow `f` to its link; of number `connection` of a call, or of none."""
    index = allocate(s)
    if index < 0:
        return
    packet = packet_at(s.packets, index)
    flow = flow_at(s.flows, f)
    packet.flow = f
    packet.sequence = flow.sent
    packet.sent = s.now
    packet.load = 0.0
    packet.size = size
    packet.flags = flags
    packet.hop = 1
    packet.identity = call
    packet.connection = connection
    flow.sent += 1
    if s.trace != 0:
        note(s, SEND, -1, packet)
    arrive(s, index_at(s.routes, f * s.hops).value, index)


@part()
def cross(s, entity):
    """Send a packet of cross traffic, and wait for the next."""
    source = cross_at(s.crosses, entity_at(s.entities, entity).index)
    size = source.size
    if source.exponential == 1:  # in whole bytes
        size = max(int(exponential(source, float(source.size)) + 0.5), 1)
    schedule(s, entity, s.now + exponential(source, source.gap), s.now)
    launch(s, source.flow, size, MARKABLE, NO_CALL, 0)


@part(floats="start spent")
def leave(s, index, start, spent):
    """Account for a packet at the end of its link, whose transmission took `spent` from `start`."""
    packet = packet_at(s.packets, index)
    flow = flow_at(s.flows, packet.flow)
    delay = start + (spent + flow.tail_delay) - packet.sent
    flow.received += 1
    if s.trace != 0:
        note(s, RECEIVE, -1, packet)
    flow.delay_sum += delay
    flow.delay_squares += delay * delay
    if packet.identity != NO_CALL:
        call = call_at(s.calls, packet.identity)
        if call.number == packet.connection:
            if call.heard == 1:
                voice = voice_at(s.voices, call.voice)
                voice.delay_steps += abs(delay - call.last_delay)
                voice.steps += 1
            call.heard = 1
            call.last_delay = delay
    release(s, index)
