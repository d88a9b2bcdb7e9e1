"""Routers on the way back of acknowledgements, which they may change."""

from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.queues import arrived, travel
from fluidcc.packets.engine.records import (
    entity_at,
    flow_at,
    group_at,
    packet_at,
    port_at,
    wire_at,
)
from fluidcc.packets.engine.signals import choose_late, waiting


@part()
def rewrite(s, entity):
    """Bring an acknowledgement past a router, whose queue decides about it as it is now."""
    index = arrived(s, entity)
    wire = wire_at(s.wires, entity_at(s.entities, entity).index)
    port, packet = port_at(s.ports, wire.port), packet_at(s.packets, index)
    flow = flow_at(s.flows, packet.flow)
    queue = waiting(port)
    if port.counts_system == 1:
        queue += port.busy
    choose_late(s, port, packet, flow, group_at(s.groups, flow.group), queue)
    travel(s, wire.onward, index, s.now, 0.0)
