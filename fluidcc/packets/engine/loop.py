"""The event loop: takes the next event, and forwards packets along their routes."""

from fluidcc.packets.engine import endpoints, ports, sources
from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.calendar import first, next_time, send_on_wire, take_from_wire
from fluidcc.packets.engine.pointer import compiled, inlined
from fluidcc.packets.engine.sending import integrate_window


@inlined
def _forward(s, index, start, spent):
    """Bring a data packet to the next entity of its route, or to the receiver.

    It comes from a transmission of `spent` seconds that began at `start`, or from a wire.
    """
    packet = r.packet_at(s.packets, index)
    if packet.hop >= s.hops:
        s.status = r.ROUTE_ENDED
        return
    entity = r.index_at(s.routes, packet.flow * s.hops + packet.hop).value
    packet.hop += 1
    if entity < 0:
        if entity == r.LINK_END:
            sources.receive_datagram(s, index, start, spent)
        else:
            endpoints.receive(s, index, start, spent)
    elif r.entity_at(s.entities, entity).kind == r.PORT:
        ports.arrive(s, entity, index)
    else:
        send_on_wire(s, entity, index, start, spent)


@compiled
def advance(address, stop, budget):
    """Perform events up to and including time `stop`, at most `budget` of them.

    Returns FINISHED, MORE, or the number of what went wrong.
    """
    s = r.simulation_at(address, 0)
    for _ in range(budget):
        entity = first(s)
        time = next_time(s, entity)
        if time > stop:
            return r.FINISHED
        s.now = time
        s.events += 1
        kind = r.entity_at(s.entities, entity).kind
        if kind == r.SENDER:
            endpoints.wake(s, entity)
        elif kind == r.PORT:
            index, start, spent = ports.depart(s, entity)
            _forward(s, index, start, spent)
        elif kind == r.WIRE:
            _forward(s, take_from_wire(s, entity), s.now, 0.0)
        elif kind == r.ACK_WIRE:
            endpoints.receive_ack(s, take_from_wire(s, entity))
            if s.finished_flow >= 0:
                sources.finish_connection(s, s.finished_flow)
        elif kind == r.QUENCH_WIRE:
            endpoints.receive_quench(s, entity)
        elif kind == r.QUEUE_TIMER:
            ports.tick_queue(s, entity)
        elif kind == r.CALL:
            sources.advance_call(s, entity)
        elif kind == r.CROSS:
            sources.send_cross(s, entity)
        elif kind == r.CALLS:
            sources.admit_call(s, entity)
        elif kind == r.SESSION:
            sources.advance_session(s, entity)
        elif kind == r.SOURCE:
            sources.start_session(s, entity)
        elif kind == r.ACK_TIMER:
            endpoints.send_delayed_ack(s, entity)
        elif kind == r.STOP:
            sources.stop_flow(s, entity)
        elif kind == r.CHANGES:
            ports.change_link(s, entity)
        else:
            ports.rewrite_ack(s, entity)
        if s.status != 0:
            return s.status
    return r.MORE


@compiled
def settle(address, time):
    """Bring all accounts up to `time`, which no event has passed."""
    s = r.simulation_at(address, 0)
    s.now = time
    for k in range(s.port_count):
        ports.account(s, r.port_at(s.ports, k))
    for k in range(s.flow_count):
        flow = r.flow_at(s.flows, k)
        if flow.started == 1:
            integrate_window(s, flow, r.group_at(s.groups, flow.group))
    for k in range(s.voice_count):
        sources.count_calls(s, r.voice_at(s.voices, k))
