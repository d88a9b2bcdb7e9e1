"""The event loop: who acts next, and where packets go from there."""

from fluidcc.packets.engine.calendar import first, next_time
from fluidcc.packets.engine.calls import count_calls, ring, speak
from fluidcc.packets.engine.datagrams import cross, leave
from fluidcc.packets.engine.pointer import compiled, inlined
from fluidcc.packets.engine.ports import account, arrive, depart
from fluidcc.packets.engine.queues import arrived, travel
from fluidcc.packets.engine.receivers import receive
from fluidcc.packets.engine.records import (
    CALL,
    CALLS,
    CROSS,
    FINISHED,
    GONE,
    MORE,
    PORT,
    QUENCH,
    RETURN,
    ROUTE_ENDED,
    SENDER,
    SESSION,
    SOURCE,
    TIMER,
    WIRE,
    entity_at,
    flow_at,
    group_at,
    index_at,
    packet_at,
    port_at,
    simulation_at,
    voice_at,
)
from fluidcc.packets.engine.routers import rewrite
from fluidcc.packets.engine.senders import acknowledge, quenched, wake
from fluidcc.packets.engine.sources import come, conclude, proceed
from fluidcc.packets.engine.ticks import tick
from fluidcc.packets.engine.windows import hold


@inlined
def _forward(s, index, start, spent):
    """Bring a data packet to the next entity of its route, or to the receiver.

    It comes from a transmission of `spent` seconds that began at `start`, or from a wire.
    """
    packet = packet_at(s.packets, index)
    if packet.hop >= s.hops:
        s.status = ROUTE_ENDED
        return
    entity = index_at(s.routes, packet.flow * s.hops + packet.hop).value
    packet.hop += 1
    if entity < 0:
        if entity == GONE:
            leave(s, index, start, spent)
        else:
            receive(s, index, start, spent)
    elif entity_at(s.entities, entity).kind == PORT:
        arrive(s, entity, index)
    else:
        travel(s, entity, index, start, spent)


@compiled
def advance(address, stop, budget):
    """Perform events up to and including time `stop`, at most `budget` of them.

    Returns FINISHED, MORE, or the number of what went wrong.
    """
    s = simulation_at(address, 0)
    for _ in range(budget):
        entity = first(s)
        time = next_time(s, entity)
        if time > stop:
            return FINISHED
        s.now = time
        s.events += 1
        kind = entity_at(s.entities, entity).kind
        if kind == SENDER:
            wake(s, entity)
        elif kind == PORT:
            index, start, spent = depart(s, entity)
            _forward(s, index, start, spent)
        elif kind == WIRE:
            _forward(s, arrived(s, entity), s.now, 0.0)
        elif kind == RETURN:
            acknowledge(s, arrived(s, entity))
            if s.done >= 0:
                conclude(s, s.done)
        elif kind == QUENCH:
            quenched(s, entity)
        elif kind == TIMER:
            tick(s, entity)
        elif kind == CALL:
            speak(s, entity)
        elif kind == CROSS:
            cross(s, entity)
        elif kind == CALLS:
            ring(s, entity)
        elif kind == SESSION:
            proceed(s, entity)
        elif kind == SOURCE:
            come(s, entity)
        else:
            rewrite(s, entity)
        if s.status != 0:
            return s.status
    return MORE


@compiled
def settle(address, time):
    """Bring all accounts up to `time`, which no event has passed."""
    s = simulation_at(address, 0)
    s.now = time
    for k in range(s.port_count):
        account(s, port_at(s.ports, k))
    for k in range(s.flow_count):
        flow = flow_at(s.flows, k)
        if flow.started == 1:
            hold(s, flow, group_at(s.groups, flow.group))
    for k in range(s.voice_count):
        count_calls(s, voice_at(s.voices, k))
