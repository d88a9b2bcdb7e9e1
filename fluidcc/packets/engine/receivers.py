"""Receivers: reassembly, the echo of marks, one ACK for each packet."""

from fluidcc.packets.engine.blocks import report_blocks
from fluidcc.packets.engine.loads import decode
from fluidcc.packets.engine.pointer import compiled, inlined
from fluidcc.packets.engine.queues import post
from fluidcc.packets.engine.records import (
    CONFIRM,
    ECHO,
    MARKABLE,
    MARKED,
    RECEIVE,
    REPLY,
    REVERSE,
    SETUP,
    WINDOW_BEYOND_RING,
    byte_at,
    entity_at,
    flow_at,
    group_at,
    packet_at,
    receiver_at,
    wire_at,
)
from fluidcc.packets.engine.traces import note


@compiled
def _reassemble(s, receiver, flow, sequence):
    ring = s.ring + flow * (s.ring_mask + 1)
    if sequence == receiver.expected:
        receiver.expected += 1
        while byte_at(ring, receiver.expected & s.ring_mask).value != 0:
            byte_at(ring, receiver.expected & s.ring_mask).value = 0
            receiver.expected += 1
    elif sequence > receiver.expected:
        if sequence - receiver.expected >= s.ring_mask:
            s.status = WINDOW_BEYOND_RING
        else:
            byte_at(ring, sequence & s.ring_mask).value = 1


@compiled
def _echo(receiver, group, flags):
    """Echo of a packet's mark; sticky ones last until the sender confirms. RFC 3168, 6.1.3."""
    if flags & SETUP:
        return group.echoes
    if group.sticky == 0:
        return 1 if flags & MARKED else 0
    if flags & CONFIRM:
        receiver.echo = 0
    if flags & MARKED:
        receiver.echo = 1
    return receiver.echo if flags & MARKABLE else 0


@inlined
def receive(s, index, start, spent):
    """Take a data packet in, and send its ACK on the way back.

    Its last transmission took `spent` from `start`; what is left of its way is `tail_delay`.
    """
    packet = packet_at(s.packets, index)
    flow = flow_at(s.flows, packet.flow)
    receiver = receiver_at(s.receivers, packet.flow)
    group = group_at(s.groups, flow.group)
    flow.received += 1
    if s.trace != 0:
        note(s, RECEIVE, -1, packet)
    current = packet.connection == flow.connection
    sequence, echo = packet.sequence, 0
    if current:  # what is left over from before is acknowledged as well, but changes nothing
        _reassemble(s, receiver, packet.flow, sequence)
        echo = _echo(receiver, group, packet.flags)
        if group.loads == 1:
            decode(s, flow, group, receiver, packet)
        packet.sequence = receiver.expected - 1
    packet.flags = REPLY
    if echo == 1 and group.echoes == 1:
        packet.flags |= ECHO
    if group.moment == REVERSE:
        packet.flags |= MARKABLE
    packet.identity = sequence
    packet.size = group.ack_size
    if current and group.sack == 1:
        report_blocks(s, index, packet.flow, sequence, receiver.expected)
    time = start + (spent + flow.tail_delay)
    packet.delay = time - packet.sent
    wire = wire_at(s.wires, entity_at(s.entities, flow.return_wire).index)
    post(s, flow.return_wire, index, time + wire.delay, time)
